"""Atoms whose gradients, domains and attributes CVXPY knows in part, or says wrongly."""

import cvxpy as cp
import numpy as np
import pytest

from cvxleak.constraints import mi_budget
from cvxleak.core.errors import ValidationError
from cvxleak.design import design_for_prior, min_distortion, min_leakage
from cvxleak.design.fixed_prior import DesignForPrior
from cvxleak.model import AdditiveQuery, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify

PRIOR = [0.3, 0.3, 0.4]
STEPS = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
IDENTITY = AdditiveQuery(RecordSpace([range(3)]), [(0, 1, 2)])
ORDER = np.arange(9.0).reshape(3, 3)


def least_distortion(rule, budget, distortion=STEPS):
    given = {"priors": [PRIOR], "source": PRIOR, "constraints": rule}
    return min_distortion(IDENTITY, distortion=distortion, budget=budget, **given)


def plain(rule, budget):
    """The least distortion by a conic solver alone."""
    q = cp.Variable((3, 3), nonneg=True)
    leaks = mi_budget(q, PRIOR, budget)
    spent = cp.sum(cp.multiply(np.array(PRIOR)[:, None] * STEPS, q))
    rules = [cp.sum(q, axis=1) == 1, *leaks, rule(q)]
    return cp.Problem(cp.Minimize(spent), rules).solve(solver="CLARABEL")


def test_a_gradient_that_is_none_proves_nothing():
    # CVXPY 1.9 gives the entries of this gradient in the wrong order.
    bound = least_distortion(lambda q: cp.dotsort(q, ORDER) <= 16, 0.3)
    assert bound.lower <= 0.5 + 1e-9
    assert verify(bound.certificate).passed
    costs = [[0.1, 0.6, 0.3], [0.9, 0.1, 0.7], [0.9, 0.2, 0.9]]
    room = least_distortion(lambda q: cp.dotsort(q, ORDER) <= 16, 0.5, costs)
    assert room.lower <= room.upper


@pytest.mark.parametrize(
    "rule",
    [
        lambda q: cp.quad_over_lin(q[0, 1] - 0.1, q[0, 0] - 0.4) <= 0.05,
        lambda q: cp.power(q[0, 0] - 0.3, 3) <= 0.001,
        lambda q: cp.norm(q[0] - q[1], "inf") <= 0.2,
        lambda q: cp.cummax(q[0]) <= 0.7,
    ],
)
def test_domains_and_atoms_without_a_gradient(rule):
    bound, truth = least_distortion(rule, 0.05), plain(rule, 0.05)
    assert bound.lower <= truth + 1e-6
    assert truth <= bound.upper + 1e-6
    assert verify(bound.certificate).passed


def test_a_channel_outside_of_a_domain_is_not_feasible():
    rule = lambda q: cp.quad_over_lin(q[0, 1] - 0.1, q[0, 0] - 0.4) <= 0.05  # noqa: E731
    design = DesignForPrior(PRIOR, STEPS, 0.05, minimize="distortion", constraints=rule)
    assert not design.check([[0.3, 0.4, 0.3]] * 3).feasible


def test_what_is_declared_of_further_variables():
    def bounded(q):
        z = cp.Variable((3, 3), bounds=[0, 0.3])
        return [cp.abs(q - 1 / 3) <= z]

    def symmetric(q):
        return [q == cp.Variable((3, 3), symmetric=True)]

    bound = design_for_prior(PRIOR, STEPS, 50.0, minimize="distortion", constraints=bounded)
    assert bound.status is Status.CERTIFIED
    assert bound.upper == pytest.approx(0.39, abs=1e-6)
    bound = least_distortion(symmetric, 0.3)
    assert bound.status is Status.CERTIFIED
    with pytest.raises(ValidationError, match=r"diag=True; declare a vector"):
        least_distortion(lambda q: q <= cp.Variable((3, 3), diag=True) + 0.4, 0.3)


@pytest.mark.parametrize("options", [{}, {"measure": "pml"}])
def test_next_to_no_leakage_a_constant_is_found(options):
    rule = lambda q: q[0, 0] <= 0.7  # noqa: E731
    given = {"minimize": "distortion", "constraints": rule}
    bound = design_for_prior(PRIOR, STEPS, 1e-12, **given, **options)
    assert bound.status is Status.CERTIFIED
    assert bound.upper == pytest.approx(0.7, abs=1e-6)


def test_a_curved_constraint_beside_a_privacy_measure():
    rule = lambda q: mi_budget(q, [0.2, 0.5, 0.3], 0.05)  # noqa: E731
    bound = design_for_prior(PRIOR, STEPS, 1.0, measure="local_dp", constraints=rule)
    assert bound.status is Status.CERTIFIED


@pytest.mark.parametrize("unit", [1e-6, 1.0])
def test_a_budget_near_the_least_distortion_is_not_called_infeasible(unit):
    rule = lambda q: cp.sum(cp.log(1.01 - cp.diag(q))) >= 3 * np.log(0.02)  # noqa: E731
    wrong = unit * (1 - np.eye(3))
    given = {"priors": [[1 / 3] * 3], "constraints": rule}
    bound = min_leakage(IDENTITY, distortion=wrong, budget=1.0001e-2 * unit, **given)
    assert bound.lower <= bound.upper
