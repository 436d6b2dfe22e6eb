import math
import pickle

import numpy as np
import pytest

from cvxleak.audit import balance, product_leakage, record_leakage
from cvxleak.capacities import capacity
from cvxleak.capacities import shannon as channel_capacity
from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Mechanism
from cvxleak.problem.bound import Bound, Status, Stopped
from cvxleak.queries import count


def bound(**changes):
    parts = {"name": "x", "lower": 0.5, "upper": 0.6, "tol": 1.0} | changes
    return Bound.proved(parts.pop("name"), parts.pop("lower"), parts.pop("upper"), **parts)


def test_bounds_are_compared_by_what_they_say():
    array = np.array([0.5, 0.5])
    assert bound(witness=array) == bound(witness=array.copy())
    assert bound(witness=array) != bound(witness=np.array([0.5, 0.25]))
    assert bound(witness=array) != bound(witness=None)
    assert bound(stats={"seconds": 1.0}) == bound(stats={"seconds": 2.0})
    assert bound(shadow_prices={"b": 1.0}) != bound()
    assert bound(upper=0.7) != bound()
    assert bound() != 0.5
    assert len({bound(), bound(), bound(upper=0.7)}) == 2
    channel = [[0.75, 0.25], [0.25, 0.75]]
    assert capacity(channel) == capacity(channel)
    again = pickle.loads(pickle.dumps(capacity(channel)))
    assert again == capacity(channel)


@pytest.mark.parametrize(
    ("lower", "upper", "status"),
    [
        (0.5, 0.500001, Status.CERTIFIED),
        (0.5, 0.6, Status.BRACKETED),
        (math.inf, math.inf, Status.CERTIFIED),
        (0.0, math.inf, Status.BRACKETED),
        (0.0, 1e-8, Status.CERTIFIED),
    ],
)
def test_status(lower, upper, status):
    assert bound(lower=lower, upper=upper, tol=1e-4).status is status


def test_an_open_bracket_says_why_the_search_stopped():
    for why in Stopped:
        stats = {"stopped": why}
        said = str(bound(tol=1e-4, stats=stats))
        closed = why is Stopped.TOLERANCE
        assert said.endswith("(BRACKETED)" if closed else f"(BRACKETED: {why.value})")
        assert str(bound(stats=stats)).endswith("(CERTIFIED)")
        assert bound(stats=stats).to_frame()["stopped"].tolist() == [why.name]
        assert pickle.loads(pickle.dumps(bound(stats=stats))).stats["stopped"] is why
    assert str(bound(tol=1e-4)).endswith("(BRACKETED)")


@pytest.mark.parametrize("solve", [record_leakage, product_leakage, balance])
def test_audits_say_why_they_stopped(solve):
    mechanism = Mechanism(count(6), random_rounding(6, base=3))
    late = solve(mechanism, 3.0, time_limit=0.0)
    assert late.status is Status.BRACKETED
    assert late.stats["stopped"] is Stopped.TIME_LIMIT
    assert "(BRACKETED: the time limit was reached)" in str(late)
    assert solve(mechanism, 0.0).stats["stopped"] is Stopped.TOLERANCE


def test_product_priors_that_no_bound_reaches_are_no_matter_of_time():
    bound = product_leakage(Mechanism(count(2), random_rounding(2, base=2)), 1.0, time_limit=None)
    assert bound.status is Status.BRACKETED
    assert bound.stats["stopped"] is Stopped.NO_PROGRESS


def test_capacity_says_why_it_stopped(monkeypatch):
    channel = random_rounding(6, base=3)
    assert capacity(channel, tol=1e-9).stats["stopped"] is Stopped.TOLERANCE
    assert capacity(channel, tol=0.0).stats["stopped"] is Stopped.ROUNDING
    assert capacity(channel, tol=1e-9, time_limit=0.0).stats["stopped"] is Stopped.TIME_LIMIT
    monkeypatch.setattr(channel_capacity, "NEWTON_STEPS", 2)
    assert capacity(channel, tol=1e-9).stats["stopped"] is Stopped.WORK_LIMIT


def test_units_are_changed_outward():
    bits = bound(lower=0.0, upper=math.log(2)).to("bits")
    assert bits.lower == 0.0
    assert 1.0 <= bits.upper < 1.0 + 1e-15
    assert bits.to("bits") is bits
    assert bound(unit="distortion").to("bits").unit == "distortion"
    with pytest.raises(ValidationError, match="unit"):
        bound().to("bans")
    with pytest.raises(ValidationError, match="cannot be refined"):
        bits.refine(1e-6)
