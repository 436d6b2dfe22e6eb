"""The page on convexity knows every expression and every builder, and nothing else."""

import re
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import cvxleak as cl
from cvxleak import constraints, expressions, measures

PAGE = (Path(__file__).parents[2] / "docs" / "convexity.md").read_text(encoding="utf-8")
OTHER_ROOMS = {"cvxleak.expressions", "cvxleak.constraints", "cvxleak.measures"}


def test_every_name_is_on_the_page():
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    public = set(expressions.__all__) | set(constraints.__all__)
    assert public <= named
    assert named <= public | set(measures.__all__)


def test_the_page_says_expression_or_builder_where_it_is_one():
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    for row in rows:
        if len(row) == 5:  # number, in the channel, in the prior, expression, ceiling
            assert set(re.findall(r"`([a-z_]+)`", row[3])) <= set(expressions.__all__)
            assert set(re.findall(r"`([a-z_]+)`", row[4])) <= set(constraints.__all__)
        elif len(row) == 3:
            assert set(re.findall(r"`([a-z_]+)`", row[1])) <= set(constraints.__all__)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(("k", "right"), [(3, 0.4), (3, 0.5), (3, 2 / 3), (3, 0.9), (4, 0.9)])
def test_a_bisection_that_says_optimal_is_right(k, right):
    """The statement in bold: with another status, "user_limit", the value may be anything.

    Independent: sum_y max_x q(y|x) is at least the trace, which is at least k times the share.
    """
    Q, rows = cl.channel(k, k)
    total = expressions.exp_maximal_leakage(Q, np.full(k, 1 / k))
    rules = [*rows, cp.trace(Q) >= right * k]
    problem = cp.Problem(cp.Minimize(cp.log(total)), rules)
    problem.solve(qcp=True, solver="CLARABEL")
    truth = np.log(right * k)
    assert problem.status != "optimal" or problem.value == pytest.approx(truth, abs=1e-4)
    instead = cp.Problem(cp.Minimize(total), rules).solve(solver="CLARABEL")
    assert np.log(instead) == pytest.approx(truth, abs=1e-6)
