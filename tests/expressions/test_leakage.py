import cvxpy as cp
import numpy as np
import pytest

from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError


def test_exp_maximal_leakage_is_the_exponential_of_the_measure(case, hold):
    p, q = case
    truth = np.exp(measures.maximal_leakage(p, q))
    for prior in ("array", "constant"):
        for channel in ("array", "constant", "variable", "parameter"):
            twin = expressions.exp_maximal_leakage(hold(p, prior), hold(q, channel))
            assert twin.value == pytest.approx(truth)


def test_curvature():
    Q = cp.Variable((3, 2))
    twin = expressions.exp_maximal_leakage([0.2, 0.3, 0.5], Q)
    assert twin.is_convex()
    assert not twin.is_concave()
    assert expressions.exp_maximal_leakage([0.2, 0.8], cp.Parameter((2, 2)) @ Q[:2]).is_dpp()


def test_an_honest_channel_leaks_all_its_outputs(solver):
    """With truth told at least half of the time, four values leak at least log 2."""
    Q = cp.Variable((4, 4))
    leakage = expressions.exp_maximal_leakage(np.full(4, 0.25), Q)
    rules = [Q >= 0, cp.sum(Q, axis=1) == 1, cp.diag(Q) >= 0.5]
    assert cp.Problem(cp.Minimize(leakage), rules).solve(solver=solver) == pytest.approx(
        2, abs=1e-4
    )


@pytest.mark.parametrize("prior", [cp.Variable(2), cp.Parameter(2)])
def test_the_support_must_be_known(prior):
    with pytest.raises(ValidationError, match="prior: found variables or Parameters"):
        expressions.exp_maximal_leakage(prior, np.eye(2))
