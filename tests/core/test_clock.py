"""The clock that stops searches."""

from __future__ import annotations

import math

import pytest

from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import ValidationError


def test_a_clock_is_late_once_its_seconds_are_over(monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    clock, unlimited = Clock(2.0), Clock()
    assert (clock.late, clock.left, clock.limit, clock.seconds) == (False, 2.0, 2.0, 0.0)
    now = 101.5
    assert (clock.late, clock.left, clock.limit, clock.seconds) == (False, 0.5, 0.5, 1.5)
    now = 102.0
    assert (clock.late, clock.left, clock.limit) == (True, 0.0, 0.0)
    now = 1e9
    assert (clock.late, clock.left) == (True, 0.0)
    assert (unlimited.late, unlimited.left, unlimited.limit) == (False, math.inf, None)


def test_what_a_search_leaves_is_shared_by_those_after_it(monkeypatch):
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    shares = Clock(12.0).shares(3)
    assert next(shares) == 4.0
    now = 2.0
    assert next(shares) == 5.0
    now = 11.0
    assert list(shares) == [1.0]
    assert list(Clock().shares(2)) == [None, None]


@pytest.mark.parametrize("given", [-1.0, math.nan, "soon"])
def test_limits_that_are_none_are_refused_by_name(given):
    with pytest.raises(ValidationError, match="--time-limit"):
        Clock(given, "--time-limit")


def test_a_search_is_stopped_for_good_once_its_proof_needs_the_rest(monkeypatch):
    now, proof = 0.0, 1.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stop = Stop(Clock(10.0), lambda: proof)
    assert not stop()
    now = 6.0
    assert not stop(2.0)
    proof = 4.0
    assert stop()
    # A search that went on after all would go another way than one that had the time.
    proof = 0.0
    assert stop()
    assert stop(0.0)
    assert not Stop(Clock(None), lambda: math.inf)(math.inf)
