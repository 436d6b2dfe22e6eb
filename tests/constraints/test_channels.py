import cvxpy as cp
import numpy as np
import pytest

from cvxleak import measures
from cvxleak.constraints import distortion_budget, joint_law, output_support, row_stochastic
from cvxleak.core.errors import ValidationError
from cvxleak.model import Distortion


def test_row_stochastic_is_the_set_of_channels(solver, best):
    rng = np.random.default_rng(1)
    Q, gain = cp.Variable((4, 3)), rng.normal(size=(4, 3))
    value = best(cp.sum(cp.multiply(gain, Q)), row_stochastic(Q), solver)
    assert value == pytest.approx(gain.max(axis=1).sum(), abs=1e-4)


def test_joint_law_is_the_set_of_scaled_channels(solver, best):
    rng = np.random.default_rng(2)
    J, gain, p = cp.Variable((4, 3)), rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
    value = best(cp.sum(cp.multiply(gain, J)), joint_law(p, J), solver)
    assert value == pytest.approx(p @ gain.max(axis=1), abs=1e-4)
    prior = cp.Parameter(4, nonneg=True, value=p)
    assert best(cp.sum(cp.multiply(gain, J)), joint_law(prior, J)) == pytest.approx(value, abs=1e-4)


def test_support_is_kept(best):
    rng = np.random.default_rng(3)
    Q, gain = cp.Variable((4, 5)), rng.random((4, 5))
    for allowed in (rng.random((4, 5)) < 0.6, np.array([False, True, True, False, True])):
        mask = np.broadcast_to(allowed, (4, 5))
        value = best(cp.sum(cp.multiply(gain, Q)), row_stochastic(Q) + output_support(Q, allowed))
        assert value == pytest.approx(np.where(mask, gain, 0).max(axis=1).sum(), abs=1e-6)
        assert np.abs(Q.value[~mask]).max() < 1e-7


def test_support_of_data(holds):
    q = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert holds(output_support(q, [True, True, False]))
    assert holds(output_support(q, q > 0))
    assert not holds(output_support(q, [True, False, True]))


def test_full_support_constrains_nothing():
    assert output_support(cp.Variable((2, 2)), [True, True]) == []


def test_distortion_budget_holds_from_the_measure_on(random_case, holds):
    p, q = random_case
    d = np.random.default_rng(0).random(q.shape)
    sources = [p, np.full(len(p), 1 / len(p))]
    worst = measures.worst_case_distortion(sources, q, d)
    assert holds(distortion_budget(sources, q, d, worst + 1e-4))
    assert not holds(distortion_budget(sources, q, d, worst - 1e-4))


def test_every_source_limits_the_lies_about_its_own_outcome(solver, best):
    k, D = 3, 0.2
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + distortion_budget(np.eye(k), Q, Distortion.hamming(range(k)), D)
    assert best(-cp.trace(Q), rules, solver) == pytest.approx(-k * (1 - D), abs=1e-4)


def test_too_few_outputs_for_the_budget():
    Q = cp.Variable((3, 2))
    d = Distortion.hamming(range(3), range(2))
    for budget, status in ((1 / 3 + 1e-3, "optimal"), (1 / 3 - 1e-3, "infeasible")):
        rules = row_stochastic(Q) + distortion_budget([np.full(3, 1 / 3)], Q, d, budget)
        problem = cp.Problem(cp.Minimize(0), rules)
        problem.solve(solver="CLARABEL")
        assert problem.status == status


def test_distortion_budget_follows_parameters():
    sources = [cp.Parameter(2, nonneg=True), np.array([0.5, 0.5])]
    D = cp.Parameter(nonneg=True)
    Q = cp.Variable((2, 2))
    rules = row_stochastic(Q) + distortion_budget(sources, Q, Distortion.hamming([0, 1]), D)
    problem = cp.Problem(cp.Maximize(Q[0, 1]), rules)
    assert problem.is_dpp()
    for share, budget in [(0.8, 0.2), (0.4, 0.3)]:
        sources[0].value, D.value = np.array([share, 1 - share]), budget
        value = problem.solve(solver="CLARABEL", enforce_dpp=True)
        assert value == pytest.approx(min(1.0, budget / max(share, 0.5)), abs=1e-6)


Q32 = cp.Variable((3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: row_stochastic(cp.Variable(3)), "channel: expected 2 dimension"),
        (lambda: row_stochastic(cp.exp(Q32)), "channel: .* not affine"),
        (lambda: joint_law([0.5, 0.5], Q32), "joint: found 3 rows"),
        (lambda: joint_law([0.5, 0.6], Q32), "prior: sums to"),
        (lambda: output_support(Q32, [1, 0]), "allowed: found an array of int"),
        (lambda: output_support(Q32, [True, True, False]), "allowed: found an array of bool"),
        (lambda: output_support(Q32, [False, False]), "allowed: row 0 allows no output"),
        (
            lambda: distortion_budget([[0.2, 0.3, 0.5]], Q32, np.ones((3, 2)), -0.1),
            "budget: found -0.1",
        ),
        (lambda: distortion_budget([], Q32, np.ones((3, 2)), 0.1), "priors: found none"),
        (
            lambda: distortion_budget([[0.5, 0.5]], Q32, np.ones((3, 2)), 0.1),
            "prior: found 2 outcomes",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
