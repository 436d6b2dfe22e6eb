"""What a search does next is decided by counted work; the clock only stops it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cvxleak.audit import balance, group_leakage, leakage_curve, product_leakage, record_leakage
from cvxleak.capacities import capacity
from cvxleak.core.work import METER
from cvxleak.mechanisms import generalized_symmetric, random_rounding, truncated_geometric
from cvxleak.model import Mechanism, RecordSpace, RelativeEntropyBall
from cvxleak.problem.bound import Bound, Status, Stopped
from cvxleak.proofs import verify
from cvxleak.queries import count, modular_sum


class Ticks:
    """A clock that goes on by a fixed step each time that the test's own thread reads it."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.read = 0
        self.thread = threading.get_ident()

    def __call__(self) -> float:
        # Threads that other tests have left behind look at the clock, too.
        self.read += threading.get_ident() == self.thread
        return self.step * self.read


@pytest.fixture
def ticks(monkeypatch) -> Callable[[float], Ticks]:
    def set_clock(step: float) -> Ticks:
        clock = Ticks(step)
        monkeypatch.setattr("time.monotonic", clock)
        monkeypatch.setattr("time.perf_counter", clock)
        return clock

    return set_clock


def three_valued() -> Mechanism:
    rng = np.random.default_rng(20261120)
    rows = np.concatenate([rng.dirichlet(np.ones(3), size=4) for _ in range(3)])
    return Mechanism.from_channel(RecordSpace([range(3), range(4)]), rows)


def unequal_records() -> Mechanism:
    rows = np.random.default_rng(5).dirichlet(np.ones(3), size=8)
    return Mechanism.from_channel(RecordSpace.binary(3), rows)


ROUNDED = Mechanism(count(4), random_rounding(4, base=3))
NEAR = RelativeEntropyBall(0.5, laws=[0.6, 0.4])
SOLVES: dict[str, Callable[..., Any]] = {
    "an audit": lambda **o: record_leakage(ROUNDED, 1.5, tol=1e-3, **o),
    "modular": lambda **o: record_leakage(
        Mechanism(modular_sum(5, 3), generalized_symmetric(3, 0.1)), 2.6, tol=1e-3, **o
    ),
    "many outputs": lambda **o: record_leakage(
        Mechanism(count(14), truncated_geometric(14, 0.7)), 6.0, tol=0.05, **o
    ),
    "three values": lambda **o: record_leakage(three_valued(), 1.9, 0, tol=0.05, **o),
    "records of different kinds": lambda **o: record_leakage(unequal_records(), 1.5, tol=1e-2, **o),
    "a group": lambda **o: group_leakage(ROUNDED, 1.5, 2, tol=0.02, **o),
    "a class": lambda **o: record_leakage(ROUNDED, 1.5, adversaries=NEAR, tol=0.02, **o),
    "a balance": lambda **o: balance(ROUNDED, 2.2, tol=0.05, **o),
    "product priors": lambda **o: product_leakage(ROUNDED, 1.0, **o),
    "a curve": lambda **o: leakage_curve(
        Mechanism(count(3), truncated_geometric(3, 1.0)), np.linspace(0.2, 2.0, 7), tol=1e-3, **o
    ),
    "a curve of three values": lambda **o: leakage_curve(
        three_valued(), [0.9, 1.2, 1.9, 2.3], 1, tol=1e-2, **o
    ),
    "a curve of audits": lambda **o: leakage_curve(
        Mechanism(count(2), random_rounding(2, 3)),
        [0.3, 1.0, 1.3],
        adversaries=NEAR,
        tol=0.05,
        **o,
    ),
}

EVERY = [
    pytest.param(name, marks=pytest.mark.slow) if name == "a curve of audits" else name
    for name in SOLVES
]


def said(found: Any) -> list[Any]:
    """Return what must not depend on the clock: all but seconds."""
    bounds = [found] if isinstance(found, Bound) else list(found.bounds)
    return [
        (
            bound.lower,
            bound.upper,
            bound.status,
            bound.certificate,
            {name: value for name, value in bound.stats.items() if name != "seconds"},
            dict(bound.shadow_prices),
        )
        for bound in bounds
    ]


@pytest.mark.parametrize("name", EVERY)
def test_the_answer_is_the_same_however_slow_the_machine_and_whatever_the_limit(name, ticks):
    """The clock goes by hours between two looks, or by a microsecond, and no limit is reached."""
    solve = SOLVES[name]
    ticks(1e-6)
    expected = said(solve(time_limit=None))
    clock = ticks(1.0)
    assert said(solve(time_limit=1e12)) == expected
    # Not much more than what it takes: no part of it is kept for anything else than the proof.
    enough = 1.1 * clock.read + 40.0
    ticks(1.0)
    assert said(solve(time_limit=enough)) == expected
    ticks(3600.0)
    assert said(solve(time_limit=None)) == expected


@pytest.mark.parametrize("name", EVERY)
def test_a_limit_that_is_reached_leaves_a_proved_bracket(name, ticks):
    solve = SOLVES[name]
    clock = ticks(1.0)
    whole = solve(time_limit=1e12)
    needed = clock.read
    pairs: list[tuple[Bound, Bound]] = []
    for share in (0.0, 0.1, 0.5):
        ticks(1.0)
        cut = solve(time_limit=share * needed)
        if isinstance(cut, Bound):
            pairs.append((cut, whole))
        else:
            pairs += zip(cut.bounds, whole.bounds, strict=True)
    for short, full in pairs:
        assert short.lower <= full.upper
        assert full.lower <= short.upper
        assert short.certificate is not None
        assert verify(short.certificate).passed
        if short.status is Status.BRACKETED:
            assert short.stats["stopped"] in (Stopped.TIME_LIMIT, Stopped.NO_PROGRESS)


@pytest.mark.parametrize("share", [0.02, 0.12])
def test_product_priors_say_that_the_limit_cut_their_search_short(share, ticks):
    """The audit after it closes, which does not mean that nothing more could be done."""
    solve = SOLVES["product priors"]
    clock = ticks(1.0)
    whole = solve(time_limit=1e12)
    assert whole.status is Status.BRACKETED
    assert whole.stats["stopped"] is Stopped.NO_PROGRESS
    needed = clock.read
    ticks(1.0)
    cut = solve(time_limit=share * needed)
    assert cut.lower < whole.lower
    assert cut.stats["stopped"] is Stopped.TIME_LIMIT


def test_a_balance_does_no_more_than_two_limits_of_work():
    """What the first audits leave is not doubled again: with the limit doubled, 2.4 of them."""
    limit, before = 1.5e8, METER.spent
    found = balance(
        Mechanism(count(5), truncated_geometric(5, 1.0)), 1.1, tol=0.02, work_limit=limit
    )
    assert found.stats["stopped"] is Stopped.WORK_LIMIT
    assert METER.spent - before < 2.2 * limit


def test_capacity_does_not_depend_on_the_clock(ticks):
    channel = random_rounding(9, base=3)
    ticks(1e-6)
    expected = said(capacity(channel))
    ticks(3600.0)
    assert said(capacity(channel)) == expected
    ticks(1.0)
    assert said(capacity(channel, time_limit=1e4)) == expected
