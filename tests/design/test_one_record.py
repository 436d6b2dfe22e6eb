"""A source without records is a dataset of one record: two searches for one problem."""

import cvxpy as cp
import numpy as np
import pytest

from cvxleak.constraints import local_dp, mi_budget
from cvxleak.design import design_for_prior, min_distortion, min_leakage
from cvxleak.model import AdditiveQuery, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify


def identity(size):
    return AdditiveQuery(RecordSpace([range(size)]), [tuple(range(size))])


def steps(size):
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)


def near(Q):
    """Private, and about as large as the truth in the mean."""
    values = np.arange(Q.shape[0])
    return [*local_dp(Q, 3.0), cp.abs(Q @ values - values) <= 1.5]


def apart(Q):
    further, truth = cp.Variable(Q.shape), np.eye(Q.shape[0])
    return [Q - truth <= further, truth - Q <= further, cp.sum(further) <= 0.4]


SIX = np.random.default_rng(0).dirichlet(np.ones(6))
TWENTY = np.random.default_rng(1).dirichlet(np.ones(20))
COSTS = np.random.default_rng(2).random((20, 20))

CASES = {
    "outputs that die out": (SIX, steps(6), 0.9, lambda Q: Q[0, 0] <= 0.9),
    "affine": (SIX, steps(6), 0.9, near),
    "curved": ([0.2, 0.3, 0.5], steps(3), 0.6, lambda Q: mi_budget(Q, [1 / 3] * 3, 0.05)),
    "further variables": ([0.5, 0.5], 1 - np.eye(2), 0.5, apart),
    "twenty outputs": (TWENTY, COSTS, 0.25, lambda Q: local_dp(Q, 5.0)),
    "large distortions": ([0.4, 0.6], 1e6 * (1 - np.eye(2)), 2e5, lambda Q: Q[0, 0] >= 0.95),
    "no distortion": ([0.5, 0.5], 1 - np.eye(2), 0.0, lambda Q: Q[0, 0] >= 0.5),
    "two priors": ([[0.4, 0.6], [0.7, 0.3]], 1 - np.eye(2), 0.2, lambda Q: Q[0, 0] >= 0.7),
}


@pytest.mark.parametrize("name", CASES)
def test_both_ways_close_on_the_same_leakage(name):
    prior, distortion, budget, rule = CASES[name]
    source = design_for_prior(prior, distortion, budget, constraints=rule)
    laws = np.atleast_2d(prior)
    record = min_leakage(
        identity(len(distortion)),
        distortion=distortion,
        budget=budget,
        priors=laws,
        sources=laws,
        constraints=rule,
        tol=1e-5,
    )
    for bound in (source, record):
        assert bound.status is Status.CERTIFIED
        assert verify(bound.certificate).passed
    assert source.lower <= record.upper
    assert record.lower <= source.upper


@pytest.mark.parametrize(("budget", "tol"), [(0.0, 1e-3), (0.3, 1e-5)])
def test_both_ways_close_on_the_same_distortion(budget, tol):
    rule = near if budget else lambda Q: Q[0, 0] >= 0.1
    source = design_for_prior(SIX, steps(6), budget, minimize="distortion", constraints=rule)
    record = min_distortion(
        identity(6),
        distortion=steps(6),
        budget=budget,
        priors=[SIX],
        source=SIX,
        constraints=rule,
        tol=tol,
    )
    for bound in (source, record):
        assert bound.status is Status.CERTIFIED
        assert verify(bound.certificate).passed
    assert source.lower <= record.upper
    assert record.lower <= source.upper
