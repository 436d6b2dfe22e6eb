"""The clock that stops searches."""

from __future__ import annotations

import math
import threading

import pytest

from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import ValidationError
from cvxleak.core.work import LOOK, spend


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
@pytest.mark.parametrize("name", ["time_limit", "work_limit"])
def test_limits_that_are_none_are_refused_by_name(name, given):
    with pytest.raises(ValidationError, match=name):
        Clock(**{name: given})


def test_a_clock_is_late_once_its_work_is_done():
    clock, three = Clock(work_limit=1e9), Clock(work_limit=1e9, searches=3)
    spend(9e8)
    assert (clock.late, clock.worked_out, clock.limit) == (False, False, None)
    assert clock.part_left == pytest.approx(0.1, abs=1e-3)  # to look is work, too
    assert clock.limits["work_limit"] == pytest.approx(1e8, rel=0.01)
    spend(2e8)
    assert (clock.late, clock.worked_out, clock.limits["work_limit"]) == (True, True, 0.0)
    assert clock.work == pytest.approx(1.1e9, rel=1e-3)
    assert not three.late


def test_whatever_looks_at_the_clock_in_a_loop_ends():
    stop, looks = Stop(Clock(work_limit=100 * LOOK)), 0
    while not stop():
        looks += 1
    assert looks < 100


def test_the_work_of_another_thread_does_not_count():
    clock = Clock(work_limit=1e9)
    other = threading.Thread(target=spend, args=(1e12,))
    other.start()
    other.join()
    assert not clock.late


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
