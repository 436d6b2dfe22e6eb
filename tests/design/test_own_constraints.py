import cvxpy as cp
import numpy as np
import pytest

from cvxleak.constraints import local_dp, maximal_leakage, pml
from cvxleak.core.errors import ValidationError
from cvxleak.design.user_constraints import UserConstraints, as_rules, relaxed, user_violations


def test_callables_in_any_nesting_give_one_flat_list():
    rules = [lambda Q: Q[0, 0] >= 0.5, lambda Q: [[Q[0, 1] <= 1, local_dp(Q, 1.0)], ()]]
    found = UserConstraints((2, 2), rules).constraints
    assert len(found) == 4
    assert all(isinstance(c, cp.Constraint) for c in found)
    assert UserConstraints((2, 2), ()).constraints == []
    assert UserConstraints((2, 2), lambda Q: []).constraints == []


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (3, "constraints: expected a sequence"),
        ([3], r"constraints\[0\]: found 3"),
        (lambda Q: True, r"constraints\[0\]: it returned True"),
        (lambda Q: [Q[0, 0] >= 0, 1.0], r"constraints\[0\]: it returned 1.0"),
        (lambda Q: Q, r"constraints\[0\]: it returned"),
        ([lambda Q: [], lambda Q: cp.norm(Q) >= 1], r"constraints\[1\]: .*not convex"),
        (lambda Q: Q[5, 0] >= 0, r"constraints\[0\]: it failed .*shape \(2, 2\): IndexError"),
        (lambda Q: cp.Variable() >= 1, "do not contain the channel"),
        (lambda Q: Q[0, 0] >= cp.Variable(boolean=True), "not continuous"),
        (lambda Q: Q[0, 0] >= cp.Parameter(name="share"), "share has no value"),
    ],
)
def test_what_is_no_convex_set_of_channels_is_refused(constraints, words):
    with pytest.raises(ValidationError, match=words):
        UserConstraints((2, 2), constraints)


def test_ready_made_constraints_are_refused_with_the_way_to_write_them():
    other = cp.Variable((2, 2))
    for ready in (other[0, 0] >= 0.5, [other[0, 0] >= 0.5], local_dp(other, 1.0)):
        with pytest.raises(ValidationError, match=r"ready-made.*lambda Q"):
            as_rules(ready)


def test_violations_without_further_variables_are_exact():
    matrix = [[0.25, 0.75], [0.5, 0.5]]
    rules = [lambda Q: Q[0, 0] >= 0.5, lambda Q: [Q[1, 0] == 0.625, Q[0, 1] <= 1]]
    assert user_violations(rules, matrix) == {"constraints[0]": 0.25, "constraints[1]": 0.125}


def test_violations_of_the_builders_with_further_variables():
    p = 1 / (1 + np.exp(1.0))
    flip = np.array([[1 - p, p], [p, 1 - p]])
    prior = [0.5, 0.5]
    met = [
        lambda Q: local_dp(Q, 1.0 + 1e-6),
        lambda Q: pml(Q, prior, np.log(2 * (1 - p)) + 1e-6),
        lambda Q: maximal_leakage(Q, prior, np.log(2 * (1 - p)) + 1e-6),
    ]
    assert max(user_violations(met, flip).values()) < 1e-7
    # t <= p and 1 - p <= e^.5 t with a slack s on both: s = (1 - p - e^.5 p) / (1 + e^.5).
    broken = user_violations(lambda Q: local_dp(Q, 0.5), flip)["constraints[0]"]
    assert broken == pytest.approx((1 - p - np.exp(0.5) * p) / (1 + np.exp(0.5)), abs=1e-6)


def test_variables_shared_by_two_callables_are_chosen_once():
    shared = cp.Variable()
    rules = [lambda Q: Q[0, 0] <= shared, lambda Q: Q[0, 1] >= shared]
    found = user_violations(rules, [[0.75, 0.25]])
    assert sum(found.values()) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("slack", [0.25, -0.25])
def test_relaxed_moves_the_right_hand_side(slack):
    x = cp.Variable(2)
    sets = {
        "inequality": x >= 1,
        "nonneg": cp.NonNeg(x - 1),
        "norm": cp.SOC(x[0] - 1, x[1:]),
        "matrix": cp.diag(x - 1) >> 0,
        "exponential": cp.ExpCone(x[1], cp.Constant(1.0), x[0] - 1 + np.exp(-20)),
    }
    for name, constraint in sets.items():
        problem = cp.Problem(cp.Minimize(x[0]), [*relaxed(constraint, slack), x >= -20, x[1] <= 20])
        assert problem.solve(solver="CLARABEL") == pytest.approx(1 - slack, abs=1e-5), name


def test_an_equality_can_be_relaxed_and_has_no_room_to_be_tightened():
    x = cp.Variable()
    loose = cp.Problem(cp.Minimize(x), relaxed(x == 1, 0.25))
    assert loose.solve() == pytest.approx(0.75)
    equality = x == 1
    assert relaxed(equality, -0.25) == [equality]
