import math
import pickle

import numpy as np
import pytest

from cvxleak.errors import ValidationError
from cvxleak.problems import capacity
from cvxleak.result import Bound, Status


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
