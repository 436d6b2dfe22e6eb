"""Pufferfish and membership privacy, against their definitions and differential privacy."""

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import min_distortion, verify
from cvxleak.constraints import channel, pufferfish
from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    max_information,
    membership_epsilon,
    pufferfish_epsilon,
    record_dp_epsilon,
)
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.queries import from_function

seeds = st.integers(0, 10**6)
FIRST = ([1, 1, 0, 0], [0, 0, 1, 1])


@given(seeds)
def test_by_the_definition(seed):
    rng = np.random.default_rng(seed)
    rows, priors = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(4), size=2)
    worst = 0.0
    inside = 0.0
    for p in priors:
        for s, t in (((0, 1), (2, 3)), ((0,), (1, 2))):
            one, other = (p[list(e)] @ rows[list(e)] / p[list(e)].sum() for e in (s, t))
            worst = max(worst, np.abs(np.log(one / other)).max())
            inside = max(inside, np.log(one / (p @ rows)).max())
    pairs = [FIRST, ([1, 0, 0, 0], [0, 1, 1, 0])]
    assert pufferfish_epsilon(rows, priors, pairs) == pytest.approx(worst)
    events = [pair[0] for pair in pairs]
    assert membership_epsilon(rows, priors, events) == pytest.approx(inside)


@settings(max_examples=20)
@given(seeds)
def test_known_contexts_give_differential_privacy(seed):
    rng = np.random.default_rng(seed)
    space = RecordSpace([range(2), range(3)])
    query = from_function(space, lambda x: 3 * x[0] + x[1])
    mechanism = Mechanism(query, rng.dirichlet(np.ones(3), size=6))
    places, priors, pairs = np.arange(6).reshape(2, 3), [], []
    for record in (0, 1):
        values = places if record == 0 else places.T
        masks = [np.isin(np.arange(6), row).astype(float) for row in values]
        pairs += [(a, b) for i, a in enumerate(masks) for b in masks[i + 1 :]]
        # The other record is known.
        priors += [np.isin(np.arange(6), column) / len(column) for column in values.T]
    value = pufferfish_epsilon(mechanism.to_channel(), priors, pairs)
    assert value == pytest.approx(record_dp_epsilon(mechanism))


def test_a_secret_that_a_belief_excludes_does_not_count():
    noisy = np.kron([[0.9, 0.1], [0.1, 0.9]], [[1.0], [1.0]])
    assert pufferfish_epsilon(noisy, [[0.5, 0.5, 0, 0]], [FIRST]) == 0
    assert pufferfish_epsilon(noisy, [FAIR := [0.25] * 4], [FIRST]) == pytest.approx(math.log(9))
    assert pufferfish_epsilon(np.eye(4), [FAIR], [FIRST]) == math.inf


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_constraint_is_the_measure(epsilon):
    prior = [0.4, 0.1, 0.1, 0.4]
    Q, rows = channel(4, 2)
    level = cp.Parameter(nonneg=True, value=epsilon)
    error = 0.4 * Q[0, 1] + 0.1 * Q[1, 1] + 0.1 * Q[2, 0] + 0.4 * Q[3, 0]
    problem = cp.Problem(cp.Minimize(error), rows + pufferfish(Q, [prior], [FIRST], level))
    problem.solve(solver="HIGHS")
    assert problem.is_dpp()
    found = np.asarray(Q.value)
    assert pufferfish_epsilon(found / found.sum(axis=1, keepdims=True), [prior], [FIRST]) == (
        pytest.approx(epsilon, abs=1e-6)
    )
    # Of the first bit, which is fair: randomized response.
    assert problem.value == pytest.approx(1 / (1 + math.exp(epsilon)), abs=1e-7)


def test_the_least_error_is_certified():
    beliefs, epsilon = [[0.45, 0.05, 0.05, 0.45], [0.25] * 4], math.log(3)
    bound = min_distortion(
        from_function(RecordSpace.binary(2), lambda x: x[0]),
        distortion=1 - np.eye(2),
        budget=1.0,
        entropy_floor=0.0,
        source=beliefs[0],
        constraints=lambda Q: pufferfish(Q, beliefs, [FIRST], epsilon),
    )
    # Randomized response tells the first bit with e^epsilon = 3.
    assert bound.lower - 1e-9 <= 0.25 <= bound.upper + 1e-9
    assert bound.upper - bound.lower < 1e-4
    assert verify(bound.certificate).passed
    told = bound.witness.mechanism.to_channel()
    assert pufferfish_epsilon(told, beliefs, [FIRST]) <= epsilon + 1e-6


def test_definition_7_read_literally():
    noisy = binary_symmetric(0.1)
    assert max_information(noisy, [1.0, 0.0]) == 0
    assert max_information(noisy, [1.0, 0.0], every_input=True) == pytest.approx(math.log(9))
    # It is the limit of what rare inputs leak, and a maximum of (3): epsilon itself.
    rare = max_information(noisy, [1 - 1e-9, 1e-9])
    assert rare == pytest.approx(math.log(9), abs=1e-6)
    fair = max_information(noisy, [0.5, 0.5])
    assert max_information(noisy, [0.5, 0.5], every_input=True) == pytest.approx(fair)
    assert max_information(np.eye(2), [1.0, 0.0], every_input=True) == math.inf


@pytest.mark.parametrize(
    ("priors", "pairs", "name"),
    [
        ([], [FIRST], "priors: found none"),
        ([[0.25] * 4], [], "pairs: found none"),
        ([[0.25] * 4], [(FIRST[0],)], r"pairs\[0\]: found 1 secrets"),
        ([[0.25] * 4], [([1, 0], [0, 1])], r"pairs\[0\]: found shape"),
        ([[0.25] * 4], [([2, 0, 0, 0], FIRST[1])], r"pairs\[0\]: found shape"),
    ],
)
def test_complaints(priors, pairs, name):
    with pytest.raises(ValidationError, match=name):
        pufferfish_epsilon(np.full((4, 2), 0.5), priors, pairs)
