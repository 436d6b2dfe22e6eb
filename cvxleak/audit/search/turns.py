"""Searches that share their time by turns, whose length is counted in work, not in seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cvxleak.audit.search.audit import Audit
from cvxleak.core.clock import Clock, Progress, Stop
from cvxleak.core.errors import SolveInterrupted
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.interrupts import Interrupts
from cvxleak.problem.threads import one_thread

__all__ = ["audit_in_turns", "in_turns"]

GROWTH = 4
"""Factor by which the number of turns grows from round to round.

Where all searches take long, the last round is most of the work, so a search that the others settle
has had about a quarter of what it could have had.
"""


def in_turns(
    first: Callable[[Sequence[int]], int],
    is_open: Callable[[], Sequence[int]],
    search: Callable[[int, int], bool],
    stop: Callable[[], bool],
) -> None:
    """Work on several searches until none is open, or `stop()`: 1, 4, 16, ... turns for each.

    Parameters
    ----------
    first : callable
        Which of some searches is to go first.
    is_open : callable
        Which searches there are still to be worked on; one may settle another.
    search : callable
        Does a number of turns of a search; false if nothing is left to be done there.
    stop : callable
    """
    turns = 1
    had: dict[int, int] = {}
    given_up: set[int] = set()
    while not stop():
        todo = [place for place in is_open() if place not in given_up]
        if not todo:
            return
        now = [place for place in todo if had.get(place, 0) < turns]
        if not now:
            turns *= GROWTH
            continue
        place = first(now)
        if not search(place, turns - had.get(place, 0)):
            given_up.add(place)
        had[place] = turns


def audit_in_turns(
    audits: Sequence[Audit], gap: Gap, clock: Clock, report: Progress
) -> list[Bound]:
    """Run some audits that have nothing to do with each other, within one time limit.

    After Ctrl-C their bounds say so, and nothing is raised.
    """
    stop = Stop(clock, lambda: sum(audit.proof_seconds() for audit in audits))
    with one_thread(), Interrupts() as interrupts:
        try:
            in_turns(
                min,
                lambda: [place for place, audit in enumerate(audits) if not audit.closed(gap)],
                lambda place, turns: audits[place].search(gap, stop, report, turns) is None,
                stop,
            )
        except KeyboardInterrupt:
            interrupts.protected = True
            return [_interrupted(audit, gap) for audit in audits]
    bounds: list[Bound] = []
    try:
        for audit in audits:
            bounds.append(audit.reached(gap, **clock.limits))
    except SolveInterrupted as error:
        bounds.append(error.bound)
        bounds += [_interrupted(audit, gap) for audit in audits[len(bounds) :]]
    return bounds


def _interrupted(audit: Audit, gap: Gap) -> Bound:
    bound = audit.reached(gap, 0.0)
    return replace(bound, stats={**bound.stats, "stopped": Stopped.INTERRUPTED})
