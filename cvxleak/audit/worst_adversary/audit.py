"""`Audit`: the search of one problem about the worst adversary, for all groups of records.

What is done next is decided by counted work, and the clock only ends it: as long as the time limit
is not reached, the same seed gives the same answer whatever the limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, fmpz

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.worst_adversary.group import Group, Term
from cvxleak.audit.worst_adversary.loop import PRICE, GroupSearch, Progress
from cvxleak.audit.worst_adversary.real_outputs import BALL_SECONDS, RealCells
from cvxleak.core.clock import Clock, Stop, check_progress
from cvxleak.core.clock import Progress as Report
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.numbers import as_written, exact_law, written_law
from cvxleak.core.validation import Array, generator
from cvxleak.core.work import METER
from cvxleak.kernel.budget import limited
from cvxleak.kernel.claims import rules
from cvxleak.kernel.leakage import RecordLeakage, same
from cvxleak.kernel.numbers import RefusedError, ball, lower, precision, rational, upper
from cvxleak.kernel.view import ROUNDING
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.proofs.format import plain

if TYPE_CHECKING:
    from cvxleak.audit.record_leakage import RecordLeakage as Problem

__all__ = ["Audit", "Reporter"]

TURN = 256
"""Nodes of a turn, after which the group with the largest bound, and its tree, are looked for anew;
there is no climb from a maximizer in the first one. With a quarter of it the bank's gaps are the
same, with four times of it one is 22 times as wide; with a batch climbs come so early that at a
hundredth of the usual work gains have up to 28 times the gap."""

FINER = 0.03
"""Share of what the place in a cell told that it tells in the next stage, at least. Without stages
bounds that are cut short differ by up to 40 times as much; with 0.1 to the end it takes up to one
and a half times as long."""


class Audit:
    """The search of one problem.

    Attributes
    ----------
    problem : RecordLeakage
    content : dict
        What a certificate holds of the problem.
    """

    def __init__(
        self,
        problem: Problem,
        rng: int | np.random.Generator | None,
        report: Report = lambda lower, upper, nodes: None,
        like: Sequence[Audit] = (),
    ) -> None:
        """`like` are audits of the same problem at other floors, from which this one starts."""
        self.problem = problem
        self._rng, self._report = generator(rng), report
        if not like:
            self.content = content_of(problem)
            self._statement = _read(problem, self.content)
        else:
            self._statement, self.content = like[0].at(problem)
        self._records = like[0]._records if like else self._representatives()
        views = self._statement.views

        def alike(i: int, j: int) -> bool:
            return i == j or (views[i].counts == views[j].counts and same(views[i], views[j]))

        places = range(len(views))
        self._same = [next(i for i in places if alike(i, j)) for j in places]
        self._real = RealCells(problem.mechanism, self._statement) if self._output else None
        self._searches = self._made([one._searches for one in like])
        self._known: Found | None = None
        self._coarser: tuple[float, Term] = math.inf, {}
        self._work = 0.0
        self._told: Clock | None = None

    @property
    def _output(self) -> bool:
        return self._statement.output is not None

    def _representatives(self) -> list[tuple[int, ...]]:
        """Return a group of records for each audited group of the statement."""
        problem = self.problem
        if problem.records is not None:
            return [problem.records]
        of_run: dict[int, list[int]] = {}
        for i in range(self._statement.space.records):
            of_run.setdefault(self._statement.space.run_of(i), []).append(i)
        found = []
        for runs in self._statement.groups:
            waiting = {run: iter(of_run[run]) for run in runs}
            found.append(tuple(next(waiting[run]) for run in runs))
        return found

    def _made(self, before: Sequence[Mapping[int, GroupSearch]]) -> dict[int, GroupSearch]:
        """Return a search for each view that differs, which knows what those before found."""
        views = self._statement.views if self._real is None else self._real.views
        found = {}
        for place in sorted(set(self._same)):
            group = Group.of(views[place], self.problem.told)
            found[place] = GroupSearch(group, self._rng, [one[place] for one in before])
        return found

    def start(self, records: Sequence[int], weights: Array) -> None:
        """Look for adversaries of a group near one who is likely to be the worst, by weights."""
        runs = tuple(map(self._statement.space.run_of, records))
        self._searches[self._same[self._statement.groups.index(runs)]].start = weights[None]

    @property
    def lower(self) -> float:
        """What the worst adversary so far learns."""
        return max(search.ascent.value for search in self._searches.values())

    @property
    def upper(self) -> float:
        """The upper bound as it stands: no group of records leaks more."""
        return min(self._coarser[0], max(search.upper for search in self._searches.values()))

    @property
    def searched(self) -> bool:
        """Whether more than closed forms is needed for the upper bound."""
        return any(search.searched for search in self._searches.values())

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(search.nodes for search in self._searches.values())

    def proof_seconds(self) -> float:
        """Return about how long the proof takes."""
        balls = sum(s.group.lumped.rows.size + s.proof_size for s in self._searches.values())
        return BALL_SECONDS * balls

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed or something ends it."""
        spent = METER.spent
        try:
            return self._advance(gap, stop)
        finally:
            self._work += METER.spent - spent

    def _advance(self, gap: Gap, stop: Stop) -> Stopped:
        staged = self._real is not None
        while True:
            progress = self._begin(gap, stop, staged)
            stopped = self._search(progress)
            if stop() or self.upper <= target(self.lower, gap):
                return stopped
            staged = self._refined(gap, stop)
            if not staged and stopped is not Stopped.TOLERANCE:
                return stopped

    def _search(self, progress: Progress) -> Stopped:
        """Grow trees of the worst group until the gap is closed or something ends it."""
        while self.upper > progress.target()[0]:
            if progress.stop():
                return Stopped.at_limit(progress.stop.clock)
            worst = max(self._searches.values(), key=lambda search: search.upper)
            if worst.tight(progress.target()[1]):
                return Stopped.NO_PROGRESS
            if not worst.advance(progress, TURN):
                return Stopped.TOO_LARGE
            progress.report()
        return Stopped.TOLERANCE

    def _refined(self, gap: Gap, stop: Stop) -> bool:
        """Cut a real output into finer cells, as long as they are too coarse for the gap."""
        real, lost = self._real, PRICE * gap.allowed(self.lower)
        if real is None or real.lost <= lost:
            return False
        known = self.upper, self.upper_term()
        if not real.finer(max(lost, FINER * real.lost), stop):
            return False
        self._coarser = known
        self._searches = self._made([self._searches])
        return True

    def _begin(self, gap: Gap, stop: Stop, staged: bool) -> Progress:
        """Look for adversaries of each group, of one at least.

        A stage of coarse cells is to get to where the place in one is the same share of the gap.
        """

        def goal() -> tuple[float, float]:
            reached = self.lower
            end = target(reached, gap)
            if staged and self._real is not None:
                end = max(end, reached + self._real.lost / PRICE)
            return end, end - reached

        # Whoever refines the result later is not whom to tell.
        self._told = self._told or stop.clock
        told = self._told is stop.clock

        def report() -> None:
            if told:
                self._report(self.lower, self.upper, self.nodes)

        progress = Progress(goal, stop, report)
        for place, search in self._searches.items():
            if place and stop():
                break
            search.begin(progress)
            progress.report()
        return progress

    def found(self, gap: Gap) -> Found:
        """Return the worst adversary so far, with what proves both ends."""
        place, search = max(self._searches.items(), key=lambda item: item[1].ascent.value)
        records = self._records[place]
        output = self._statement.output
        kept = {} if self._real is None else self._real.cut
        cells = {key: kept[key] for key in kept if output is not None and key in output.lower}
        weights, below = search.ascent.point(self._statement, place, cells)
        above = self.upper_term()
        with precision():
            ends = lower(self._statement.lower(below)), upper(self._statement.upper(above))
        known = self._known
        if known is not None and known.upper < ends[1]:
            # Near log|X| a sharper bound may prove less: its multipliers are larger.
            ends, above = (ends[0], known.upper), known.parts[2]
        problem = self.problem
        stats: dict[str, Any] = {"nodes": self.nodes, "work": self._work}
        if self._real is not None:
            stats["cells"] = self._real.views[0].n
        # S is not looked for beyond what shows whether it is within the tolerance.
        sharing = [
            min(one.sharing.bound, max(one.sharing.least, one.ascent.value))
            for one in self._searches.values()
            if one.sharing
        ]
        if sharing:
            stats["time_sharing"] = max(sharing)
        self._known = Found(
            *ends,
            Adversary(problem.mechanism, records, weights, problem.adversaries),
            (self.content, below, above),
            {"entropy_floor": -search.ascent.multiplier},
            {"method": _method(above, self._output), **stats},
        )
        if not self._statement.views[place].exact:
            attained = min(max(self.lower, ends[0]), ends[1])
            self._known = replace(self._known, attained=attained)
        return self._known

    def upper_term(self, floor: float | None = None) -> Term:
        """Return the term of the upper end; for another floor it may be another one."""
        if floor is None and self._coarser[0] <= self.upper:
            return self._coarser[1]
        groups: list[Any] = []
        for own, place in enumerate(self._same):
            search = self._searches[place]
            groups.append(search.terms(_surplus(search, floor)) if place == own else place)
        cut = {} if self._real is None else self._real.cut
        return {"rule": "max", **cut, "groups": groups}

    def upper_at(self, floors: Array) -> Array:
        """Return what the terms for other floors prove there, in floats."""
        searches = self._searches.values()
        return np.max([search.upper_at(_surplus(search, floors)) for search in searches], axis=0)

    def at(self, problem: Problem) -> tuple[RecordLeakage, dict[str, Any]]:
        """Return the statement, and what a certificate holds, of the problem at another floor."""
        floor = floor_of(problem)
        return _at_floor(self._statement, floor), {**self.content, "entropy_floor": floor}


METHODS = {
    "cells": "branch and bound on cells of posteriors",
    "ratio": "branch and bound on log-ratios of output distributions, value by value",
    "share": "the time-sharing bound",
    "choices": "the capacity without an entropy floor",
}
"""What bounds the leakage from above, by the rule of the proof."""


def _method(above: Mapping[str, Any], real: bool) -> str:
    """Return the sentence that says what was done, and why."""
    groups = [terms for terms in above["groups"] if not isinstance(terms, int)]
    used = {name for terms in groups for name in rules(terms[-1])}
    # Log-ratio cells are below a time-sharing bound, which says less.
    used -= {"share"} if "ratio" in used else set()
    ways = [text for rule, text in METHODS.items() if rule in used]
    cut = "the output cut into cells, because it is a real number; for these " if real else ""
    return (
        f"{cut}local search from below, because information is not concave in the prior with an "
        f"entropy floor; from above {' and '.join(ways) or 'the entropy of the record'}, because "
        "no other bound was lower"
    )


def _surplus(search: GroupSearch, floor: Any) -> Any:
    """Return log|X| - b at floors; at that of the search without rounding."""
    group = search.group
    return group.surplus if floor is None else group.surplus + group.floor - floor


def target(lower: float, gap: Gap) -> float:
    """Return the upper bound that closes the gap.

    A little inside the tolerance, so that rounding outwards does not undo it.
    """
    return max(lower / (1 - 0.95 * gap.tol), lower + 0.9 * gap.absolute)


def _read(problem: Problem, content: dict[str, Any]) -> RecordLeakage:
    """Return the statement of what a certificate holds, which anyone who checks it has to read.

    Raises
    ------
    InfeasibleError
        What the adversaries know excludes every dataset, or leaves too few for the floor.
    ValidationError
        Anything else that the kernel refuses.
    """
    problem.check_sizes()
    try:
        with precision(), limited():
            statement = RecordLeakage.read({**content, "entropy_floor": 0.0})
    except RefusedError as error:
        if "excludes every dataset" in str(error):
            raise InfeasibleError(str(error)) from error
        left_out = "; values that adversaries exclude are left out" if problem.adversaries else ""
        raise ValidationError(f"problem: the proof kernel refuses it: {error}{left_out}") from error
    return _at_floor(statement, content["entropy_floor"])


def _at_floor(statement: RecordLeakage, floor: float) -> RecordLeakage:
    """Return a statement at another floor; what adversaries know may leave too few datasets."""
    views = []
    for view in statement.views:
        with precision():
            most = arb(fmpz(sum(view.counts))).log()
            if ball(rational(floor)) > most + ROUNDING:
                raise InfeasibleError(
                    f"entropy_floor: found {floor!r} nats; no prior that meets the other "
                    f"constraints has more than {lower(most)!r} nats"
                )
            views.append(replace(view, floor=ball(rational(floor)).min(most)))
    return replace(statement, views=views)


def floor_of(problem: Problem) -> float:
    """Return the entropy floor, at most log|X| as floats have it.

    At b = log|X| rounding must not make the floor infeasible; a lower floor is on the safe side,
    since the leakage does not increase with b.
    """
    with precision():
        most = lower(arb(fmpz(problem.mechanism.space.size)).log())
    return min(problem.entropy_floor, max(most, 0.0))


def content_of(problem: Problem) -> dict[str, Any]:
    """Return what a certificate holds of the problem."""
    stored: dict[str, Any] = {
        "mechanism": problem.mechanism.to_dict(),
        "entropy_floor": floor_of(problem),
        "size": problem.size,
        "records": None if problem.records is None else [list(problem.records)],
    }
    stored |= problem.told.to_dict()
    if problem.adversaries:
        stored["adversaries"] = [_exact(one.to_dict()) for one in problem.adversaries]
    return plain(stored)


def _exact(known: dict[str, Any]) -> dict[str, Any]:
    """Return knowledge with fractions where floats do not sum to 1 as written."""
    laws = known.get("laws") and [[_law(own), n] for own, n in known["laws"]]
    more = {"laws": laws} | {key: known.get(key) and _law(known[key]) for key in ("law", "prior")}
    return known | {key: value for key, value in more.items() if key in known}


def _law(numbers: Sequence[Any]) -> list[Any]:
    written = [as_written(x) for x in numbers]
    return list(numbers) if written_law(written) else list(map(str, exact_law(written)))


class Reporter:
    """Hands the state of the search to whoever asked for it, at most once a second in print."""

    def __init__(self, verbose: bool = False, progress: Report | None = None) -> None:
        check_progress(progress)
        self._clock, self._verbose, self._progress = Clock(), verbose, progress
        self._last = 0.0

    def __call__(self, lower: float, upper: float, nodes: int) -> None:
        """Report the bounds and the number of nodes bounded so far."""
        if self._progress is not None:
            self._progress(lower, upper, nodes)
        now = self._clock.seconds
        if self._verbose and now - self._last >= 1.0:
            self._last = now
            print(f"{now:7.1f} s  {lower:.7g} to {upper:.7g} nats  {nodes} nodes")
