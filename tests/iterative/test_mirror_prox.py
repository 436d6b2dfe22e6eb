"""Mirror-prox for designs with known priors, and the functions that such designs share."""

import cvxpy as cp
import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.iterative import mirror_prox
from cvxleak.iterative.design_terms import DesignTerms, dual_bound
from cvxleak.measures import information_gradient_mechanism, mutual_information
from cvxleak.model import Mechanism, RecordSpace


def records(prior, bits):
    """P(X_i = a, X = x) for each of the bits, the last varying fastest."""
    place = np.indices((2,) * bits).reshape(bits, -1)
    return [np.array([prior * (row == a) for a in (0, 1)]) for row in place]


def case(seed, kind):
    rng = np.random.default_rng(seed)
    priors = [rng.dirichlet(np.ones(8)) for _ in range(2)]
    secrets = priors if kind == "total" else [t for p in priors for t in records(p, 3)]
    sources = [rng.dirichlet(np.ones(8)) for _ in range(2)]
    return secrets, sources, rng.random((8, 4))


def conic(secrets, sources, d, slope):
    q, level, spent = cp.Variable((8, 4), nonneg=True), cp.Variable(), cp.Variable()
    rules = [cp.sum(q, axis=1) == 1]
    rules += [cp.sum(cp.multiply(p[:, None] * d, q)) <= spent for p in sources]
    for table in secrets:
        joint = cp.multiply(table[:, None], q) if table.ndim == 1 else table @ q
        law = table if table.ndim == 1 else table.sum(axis=1)
        product = cp.outer(law, cp.sum(joint, axis=0))
        rules.append(cp.sum(cp.rel_entr(joint, product)) <= level)
    return cp.Problem(cp.Minimize(level + slope * spent), rules).solve(solver="CLARABEL")


@pytest.mark.parametrize("kind", ["total", "record"])
def test_mirror_prox_brackets_what_a_conic_solver_finds(kind):
    secrets, sources, d = case(11, kind)
    value = conic(secrets, sources, d, 1.0)
    run = mirror_prox(secrets, sources, d, 1.0, tol=1e-4, max_iterations=3000)
    assert run.history["lower"][-1] <= value + 1e-6
    assert value <= run.value + 1e-6
    assert run.value - run.history["lower"][-1] <= 2e-3
    assert run.value == pytest.approx(value, abs=1e-4)


def test_any_reference_and_multipliers_give_a_valid_bound():
    secrets, sources, d = case(2, "record")
    terms = DesignTerms.checked(secrets, sources, d)
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights, prices = rng.dirichlet(np.ones(6)), rng.random(2)
        slopes = terms.slopes(rng.random((8, 4)))
        bound = dual_bound(terms, slopes, weights, prices)
        q = rng.dirichlet(np.ones(4), size=8)
        value = weights @ terms.information(q) + prices @ terms.distortions(q)
        assert bound <= value + 1e-12


def test_gradients_and_values_are_those_of_the_measures():
    rng = np.random.default_rng(4)
    prior, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(3), size=8)
    mechanism = Mechanism.from_channel(RecordSpace.binary(3), q)
    terms = DesignTerms.checked(records(prior, 3), [prior], np.zeros((8, 3)))
    for record, slope in enumerate(terms.slopes(q)):
        expected = information_gradient_mechanism(mechanism, prior, record)
        np.testing.assert_allclose(slope, expected, atol=1e-13)
    total = DesignTerms.checked([prior], [prior], np.zeros((8, 3)))
    assert total.information(q)[0] == pytest.approx(mutual_information(q, prior), abs=1e-13)


def test_arguments_that_do_not_fit():
    fair, d = [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(ValidationError, match=r"secrets\[0\]"):
        mirror_prox([[0.5, 0.5, 0.0]], [fair], d, 1.0)
    with pytest.raises(ValidationError, match="one form"):
        mirror_prox([fair, [fair]], [fair], d, 1.0)
    with pytest.raises(ValidationError, match="at least one"):
        mirror_prox([], [fair], d, 1.0)
    with pytest.raises(ValidationError, match="distortion"):
        mirror_prox([fair], [fair], [[0.0, -1.0], [1.0, 0.0]], 1.0)
