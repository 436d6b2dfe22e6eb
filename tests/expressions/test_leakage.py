import cvxpy as cp
import numpy as np
import pytest

from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError


def test_exp_maximal_leakage_is_the_exponential_of_the_measure(case, hold):
    p, q = case
    truth = np.exp(measures.maximal_leakage(q, p))
    for prior in ("array", "constant"):
        for channel in ("array", "constant", "variable", "parameter"):
            twin = expressions.exp_maximal_leakage(hold(q, channel), hold(p, prior))
            assert twin.value == pytest.approx(truth)


def test_curvature():
    Q = cp.Variable((3, 2))
    twin = expressions.exp_maximal_leakage(Q, [0.2, 0.3, 0.5])
    assert twin.is_convex()
    assert not twin.is_concave()
    assert expressions.exp_maximal_leakage(cp.Parameter((2, 2)) @ Q[:2], [0.2, 0.8]).is_dpp()


def test_an_honest_channel_leaks_all_its_outputs(solver):
    """With truth told at least half of the time, four values leak at least log 2."""
    Q = cp.Variable((4, 4))
    leakage = expressions.exp_maximal_leakage(Q, np.full(4, 0.25))
    rules = [Q >= 0, cp.sum(Q, axis=1) == 1, cp.diag(Q) >= 0.5]
    assert cp.Problem(cp.Minimize(leakage), rules).solve(solver=solver) == pytest.approx(
        2, abs=1e-4
    )


@pytest.mark.parametrize("prior", [cp.Variable(2), cp.Parameter(2)])
def test_the_support_must_be_known(prior):
    with pytest.raises(ValidationError, match="prior: found variables or Parameters"):
        expressions.exp_maximal_leakage(np.eye(2), prior)


@pytest.mark.parametrize("kind", ["array", "variable", "parameter"])
def test_exp_conditional_maximal_leakage_is_the_exponential_of_the_measure(case, hold, kind):
    p, first = case
    rng = np.random.default_rng(1)
    second = [rng.dirichlet(np.ones(3), size=len(p)) for _ in range(first.shape[1])]
    truth = np.exp(measures.conditional_maximal_leakage(first, second, p))
    held = [hold(q, kind) for q in second]
    twin = expressions.exp_conditional_maximal_leakage(first, held, p)
    assert twin.value == pytest.approx(truth)
    assert twin.is_convex()
    assert twin.is_dpp()


def test_a_second_release_may_tell_what_the_first_has_told(solver):
    """After an erasure, only the output that hides the bit needs noise."""
    erasure = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    second = [cp.Variable((2, 2)) for _ in range(3)]
    rules = [rule for Q in second for rule in (Q >= 0, cp.sum(Q, axis=1) == 1)]
    leakage = expressions.exp_conditional_maximal_leakage(erasure, second, [0.5, 0.5])
    told = sum(cp.trace(Q) for Q in second)
    most = cp.Problem(cp.Maximize(told), [*rules, leakage <= 1.5]).solve(solver=solver)
    assert most == pytest.approx(2 + 2 + 1.5, abs=1e-4)


HALVES = np.full(2, 0.5)


@pytest.mark.parametrize(
    ("prior", "first", "second", "message"),
    [
        (HALVES, np.eye(2), [np.eye(2)], "second: found 1 channel; the first has 2"),
        (HALVES, np.eye(2), [np.eye(2), np.eye(3)], r"second\[1\]: found 3 rows"),
        (HALVES, np.eye(2), [np.eye(2), np.ones((2, 2))], r"second\[1\]: row 0 sums to 2"),
        (HALVES, cp.Variable((2, 2)), [np.eye(2)] * 2, "first: found variables or Parameters"),
        (cp.Parameter(2), np.eye(2), [np.eye(2)] * 2, "first: found variables or Parameters"),
    ],
)
def test_a_second_release_is_checked(prior, first, second, message):
    with pytest.raises(ValidationError, match=message):
        expressions.exp_conditional_maximal_leakage(first, second, prior)
