"""Linear limits on the adversary: in both duals, their derivatives, the trees and the checker."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.audit.search import CellSearch, SlabSearch, bound_by_dataset
from cvxleak.audit.search.cell_dual import CellDual, Cells, Task
from cvxleak.audit.search.slab_dual import SlabDual
from cvxleak.audit.search.slabs import principal_functional
from cvxleak.core.errors import ValidationError
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.model import Limits, Lumped, Mechanism, RecordSpace
from tests.audit.search.proving import proved_bound
from tests.reference import information


def problem(seed: int, values: int = 2, contexts: int = 3, outputs: int = 3) -> Lumped:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(outputs), size=values * contexts)
    return Mechanism.from_channel(RecordSpace([range(values), range(contexts)]), rows).lumped(0)


def met_by(w: np.ndarray, rng: np.random.Generator, count: int) -> Limits:
    """Random limits that w meets, some of them just."""
    coefficients = rng.normal(size=(count, len(w)))
    return Limits(coefficients, coefficients @ w + rng.exponential(size=count) * rng.integers(2))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 3), lam=st.sampled_from([0.0, 1e-2, 3.0]))
def test_any_multipliers_bound_every_adversary_within_the_limits(seed, k, lam):
    rng = np.random.default_rng(seed)
    lumped = problem(seed, k)
    w = rng.dirichlet(np.full(len(lumped.rows), 0.5))
    limits = met_by(w, rng, 2)
    floor = lumped_entropy(w, lumped)
    kappa = rng.exponential(size=2)
    cells = Cells.of(np.broadcast_to(np.eye(k), (1, 3, k, k)))
    mu = rng.exponential(size=(1, 3, k))
    cell = CellDual(lumped, floor, limits).value(cells, np.array([lam]), mu, kappa[None])[0]
    dual = SlabDual(lumped, floor, principal_functional(lumped, w), limits)
    q = rng.uniform(0.1, 0.9)
    slab = dual.value(lam, q, rng.normal(size=3), q * dual.negentropy, kappa)
    assert lumped_information(w, lumped) <= min(cell, slab) + 1e-12 * (1 + lam)


def test_derivatives_with_limits():
    lumped = problem(3, 3, 4)
    rng = np.random.default_rng(0)
    limits = met_by(lumped.uniform(), rng, 2)
    dual = CellDual(lumped, 1.5, limits)
    cells = Cells.of(np.broadcast_to(np.eye(3), (2, 3, 3, 3)))
    z = rng.uniform(0.1, 0.6, size=(2, 1 + 9 + 2))
    task = Task(cells, np.full(2, dual.surplus), np.full(2, 0.01))
    point = dual._point(task, z)
    law = SlabDual(lumped, 1.5, principal_functional(lumped, lumped.uniform()), limits)
    free, fixed = np.arange(4), np.arange(4, 12)
    y = np.concatenate([[0.2, 0.7], rng.normal(size=3), rng.uniform(size=2), rng.normal(size=4)])

    def smooth(y):
        nu = np.concatenate([y[7:], y[1] * law.negentropy[fixed]])
        return law._smooth(y[0], y[1], y[2:5], y[5:7], nu, free, fixed)

    value = smooth(y)
    for place in range(12):
        step = np.zeros(12)
        step[place] = 1e-6
        above, below = dual._point(task, z + step), dual._point(task, z - step)
        slope = (above.value - below.value) / 2e-6
        assert np.allclose(slope, point.gradient[:, place], rtol=1e-6, atol=1e-7)
        curve = (above.gradient - below.gradient) / 2e-6
        assert np.allclose(curve, point.hessian[:, place], rtol=1e-5, atol=1e-5)
        if place < len(y):
            step = np.zeros(len(y))
            step[place] = 1e-6
            up, down = smooth(y + step), smooth(y - step)
            assert (up.value - down.value) / 2e-6 == pytest.approx(
                value.gradient[place], rel=1e-6, abs=1e-7
            )
            curve = (up.gradient - down.gradient) / 2e-6
            assert np.allclose(curve, value.hessian[place], rtol=1e-5, atol=1e-5)


def marginal(lumped: Lumped, most: float) -> Limits:
    """The second value of the record has at most this probability."""
    return Limits((lumped.value_index == 1)[None].astype(float), [most])


def run(search, target):
    search.run(
        lambda: target,
        resolution=1e-5,
        stop=lambda: False,
        on_weights=lambda weights: None,
        node_limit=300,
    )
    return search


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_trees_under_a_limit_close_on_what_is_attained_and_are_proved(seed):
    lumped = problem(seed)
    floor, limits = 1.2, marginal(problem(seed), 0.15)
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(len(lumped.rows), 0.5), size=20_000)
    second = lumped.value_index == 1
    share = laws[:, second].sum(axis=1, keepdims=True)
    laws *= np.where(share > 0.15, np.where(second, 0.15 / share, 0.85 / (1 - share)), 1.0)
    # No two datasets are lumped, so this is the entropy of the prior.
    laws = laws[entr(laws).sum(axis=1) >= floor]
    joints = np.stack([laws[:, a] @ lumped.rows[a] for a in (~second, second)], axis=1)
    attains = laws[np.argmax(information(joints))]
    assert lumped_entropy(attains, lumped) >= floor
    best = lumped_information(attains, lumped)
    cells = run(CellSearch(lumped, floor, limits), 0.0)
    slabs = SlabSearch(lumped, floor, lumped.uniform(), limits)
    run(slabs, 0.0)
    dataset = bound_by_dataset(lumped, floor, lumped.uniform(), limits)
    free = run(CellSearch(lumped, floor), 0.0)
    assert best <= cells.upper <= 1.1 * best
    assert cells.upper < free.upper
    for search in (cells, slabs):
        assert search.upper >= best
        entry = {search.kind: search.encoded([[y] for y in range(3)], "<f8")}
        assert best <= proved_bound(lumped, floor, entry, limits) <= search.upper + 1e-9
    assert dataset.upper >= slabs.upper - 1e-6
    assert len(dataset.kappa) == 1


def test_the_root_under_limits_is_the_concave_program():
    lumped = problem(4, 2, 4)
    floor, limits = 1.4, Limits(np.random.default_rng(4).normal(size=(2, 8)), [0.1, 0.0])
    search = run(CellSearch(lumped, floor, limits), 10.0)
    found = search.dual.solve(
        Cells.of(search._regions[0][None]),
        np.array([0.1]),
        np.full((1, 3, 2), 1e-3),
        -np.inf,
        accuracy=1e-9,
        kappa=np.full((1, 2), 1e-3),
    )
    # The cells are whole simplices: only H(A) is left of the objective.
    w = cp.Variable(8, nonneg=True)
    shares = np.eye(2)[lumped.value_index].T @ w
    doubt = cp.sum(cp.entr(w)) + lumped.log_multiplicity @ w
    rules = [cp.sum(w) == 1, doubt >= floor, limits.coefficients @ w <= limits.bounds]
    program = cp.Problem(cp.Maximize(cp.sum(cp.entr(shares))), rules)
    program.solve(solver="CLARABEL")
    assert found.bound[0] == pytest.approx(program.value, abs=1e-6)


def test_limits_are_checked():
    with pytest.raises(ValidationError, match="bounds"):
        Limits([[1.0, 2.0]], [1.0, 2.0])
    lumped = problem(0)
    assert Limits.none(lumped).coefficients.shape == (0, 6)
