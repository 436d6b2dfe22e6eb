"""The clock that stops searches."""

from __future__ import annotations

import math

import pytest

from cvxleak._clock import Clock
from cvxleak.errors import ValidationError


def test_a_clock_is_late_once_its_seconds_are_over(monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    clock, endless = Clock(2.0), Clock()
    assert (clock.late, clock.left, clock.limit, clock.seconds) == (False, 2.0, 2.0, 0.0)
    now = 101.5
    assert (clock.late, clock.left, clock.limit, clock.seconds) == (False, 0.5, 0.5, 1.5)
    now = 102.0
    assert (clock.late, clock.left, clock.limit) == (True, 0.0, 0.0)
    now = 1e9
    assert (clock.late, clock.left) == (True, 0.0)
    assert (endless.late, endless.left, endless.limit) == (False, math.inf, None)


@pytest.mark.parametrize("given", [-1.0, math.nan, "3"])
def test_limits_that_are_none_are_refused_by_name(given):
    with pytest.raises(ValidationError, match="--time-limit"):
        Clock(given, "--time-limit")
