"""`Check`: which way a shortfall points, and what counts as feasible."""

import math
import pickle

import pytest

from cvxleak.problem import Check
from cvxleak.problem.bound import Bound, Status


def bound(lower, upper):
    return Bound("test", lower, upper, Status.CERTIFIED)


def test_shortfall_of_a_maximization():
    check = Check(0.5, {}, bound(0.75, 1.0), maximize=True)
    assert check.shortfall == (0.25, 0.5)
    assert check.feasible


def test_shortfall_of_a_minimization():
    check = Check(1.5, {}, bound(0.75, 1.0), maximize=False)
    assert check.shortfall == (0.5, 0.75)


def test_a_candidate_as_good_as_the_witness():
    check = Check(0.75, {}, bound(0.75, 1.0), maximize=True)
    assert check.shortfall == (0.0, 0.25)
    assert "falls short by 0 to 0.25" in str(check)


def test_infinite_leakage_is_a_value():
    assert Check(math.inf, {}, bound(math.inf, math.inf), maximize=True).shortfall == (0.0, 0.0)
    assert Check(1.0, {}, bound(math.inf, math.inf), maximize=True).shortfall[0] == math.inf


def test_violations():
    check = Check(1.0, {"a": 1e-10, "b": 0.5, "c": math.nan}, bound(1, 1), maximize=True)
    assert not check.feasible
    lines = str(check).splitlines()
    assert lines[0] == "infeasible; value 1 nats"
    assert lines[1] == "b: violated by 0.5"
    assert lines[2] == "c: violated by nan"
    assert not Check(1.0, {"c": math.nan}, bound(1, 1), maximize=True).feasible
    assert Check(1.0, {"b": 0.5}, bound(1, 1), maximize=True, tolerance=0.5).feasible


def test_checks_are_frozen_and_pickle():
    check = Check(0.5, {"a": 0.0}, bound(0.75, 1.0), maximize=True)
    with pytest.raises(TypeError):
        check.violations["a"] = 1.0
    with pytest.raises(AttributeError):
        check.value = 1.0
    assert pickle.loads(pickle.dumps(check)) == check
