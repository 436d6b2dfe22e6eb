"""`DesignSearch`: the search of a design for one budget, which can be cut short and go on."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import InfeasibleError, SolverError
from cvxleak.design.certify import Ends
from cvxleak.design.conic import Conic
from cvxleak.design.fallback_channels import FallbackChannels
from cvxleak.design.goal import Goal
from cvxleak.design.learned import Learned
from cvxleak.design.run import NEARBY, QUICK, Options, Run
from cvxleak.design.work import SECOND
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found

__all__ = ["DesignSearch", "WithoutFloor"]

WITHOUT_FLOOR = 2.0
"""How much work may go to channels against adversaries without a floor, for each unit before."""

FALLBACK_TOLERANCES = (0.01, 1e-4)
"""Tolerances of the least leakage, if a channel of little leakage has to be looked for; the second
is used if the first leaves open whether one is within the budget."""

PART_OF_TOLERANCE = 0.5
"""Part of the tolerance to which the gap is closed."""

PART_OF_FLOOR = 0.1
"""Part of what the floor is worth at least, to which it is closed in any case."""


class DesignSearch:
    """The search of a design problem for one budget.

    Parameters
    ----------
    learned : Learned
        What is known from other budgets; this one adds to it.
    budget : float
    options : Options
    """

    def __init__(self, learned: Learned, budget: float, options: Options) -> None:
        self.learned, self.budget, self._options = learned, budget, options
        self._runs: list[_Run] = []

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed or something ends it."""
        run, data = self.run(gap, stop.clock), self.learned.data
        stopped = run.go_on(gap, stop.clock)
        stuck = stopped is Stopped.NO_PROGRESS and run.options.solver is None
        if stuck and data.priors is not None and not data.rules:
            # With given priors there is one master, which a conic solver may solve where the method
            # in NumPy does not get on.
            conic = replace(self._options, solver="CLARABEL", solver_options={})
            with suppress(SolverError):
                other = self._made(conic, gap, stop.clock)
                self._runs.append(other)
                stopped = other.go_on(gap, stop.clock)
        return stopped

    def found(self, gap: Gap) -> Found:
        """Return the best channel so far, with the proof of both bounds."""
        run = self.run(gap, Clock(0.0))
        run.fall_back()
        assert run.audits.best is not None  # or an error was raised
        stats = {"method": _method(run), "rounds": len(run.rounds), "work": run.work}
        if self._options.strategy == "alternate":
            stats["cycled"] = run.cycled
        ends = Ends(run.data, run.oracle, run.goal, run.budget, run.lower, run.audits.best)
        return ends.found(tuple(run.rounds), stats)

    def proof_seconds(self) -> float:
        """Return 0: the exact proof comes on top of a time limit."""
        return 0.0

    def run(self, gap: Gap, clock: Clock) -> Run:
        """Return the run with the smallest gap; the first is made now."""
        if not self._runs:
            self._runs.append(self._made(self._options, gap, clock))
        return min(self._runs, key=lambda run: run.ends[1] - run.ends[0])

    def _made(self, options: Options, gap: Gap, clock: Clock) -> _Run:
        learned = self.learned
        data, shape = learned.data, learned.data.costs.price.shape
        conic = Conic(shape, data.half_spaces, options.solver, options.solver_options)
        fallbacks = FallbackChannels(data, learned.goal, self.budget, conic)
        if learned.goal is Goal.DISTORTION and fallbacks.constant is None:
            self._find_fallback(fallbacks, options, clock)
        return _Run(learned, fallbacks, conic, options, gap, clock)

    def _find_fallback(self, fallbacks: FallbackChannels, options: Options, clock: Clock) -> None:
        """Take the channel of least leakage, where user constraints rule out all constants."""
        known = self.learned
        learned = Learned(known.data, Goal.LEAKAGE, 0, work=known.work)
        search = DesignSearch(learned, math.inf, options)
        lower = upper = math.nan
        for gap in map(Gap, FALLBACK_TOLERANCES):
            search.advance(gap, Stop(clock))
            run = search.run(gap, clock)
            run.fall_back()
            best = run.audits.best
            assert best is not None  # or an error was raised
            if best.value <= self.budget:
                fallbacks.constant, fallbacks.fallback_audit = best.matrix, best.audited
                return
            lower, upper = run.lower.value, best.value
            if lower > self.budget:
                raise InfeasibleError(
                    f"budget: found {self.budget!r} nats; under the constraints the least leakage "
                    f"of a channel is between {lower!r} and {upper!r}"
                )
        raise SolverError(
            f"budget: no channel within {self.budget!r} nats was found; under the constraints the "
            f"least leakage of a channel is between {lower!r} and {upper!r}"
        )


class _Run(Run):
    """A run that also searches for channels against adversaries without a floor."""

    _without_floor: WithoutFloor | None = None
    _exhausted = False  # that search has come to its end

    def go_on(self, gap: Gap, clock: Clock) -> Stopped:
        """Work until the gap is closed or something ends it."""
        self._without_floor, self._exhausted = None, False
        return super().go_on(gap, clock)

    @property
    def _searching_without_floor(self) -> bool:
        return self._without_floor is not None and not self._exhausted

    def _search_without_floor(self) -> None:
        learned = self.learned.without_floor
        if self._exhausted or learned is None or self.options.strategy == "alternate":
            return
        if self._without_floor is None:
            self._without_floor = WithoutFloor(
                learned, self.fallbacks, self.conic, self.options, self.gap, self.clock
            )
        for cut in self.learned.known:
            if not learned.known.near(cut, NEARBY):
                learned.known.add(cut)
        self._exhausted = self._without_floor.find(
            self.ends, max(WITHOUT_FLOOR * self.work, SECOND)
        )
        found = self._without_floor.candidate
        if found is None:
            return
        audited = self.audits.once(found.matrix, QUICK, SECOND, self.clock)
        self._propose(found.matrix, audited.upper)
        moved = [self.oracle.moved(cut) for cut in learned.known.by_use]
        worst = [(self.oracle.learned(cut, found.matrix), cut) for cut in moved]
        self._keep(worst, found.matrix)


class WithoutFloor(Run):
    """The search for the best channel against adversaries without a floor, the worst of all.

    Let L_0(q) be the leakage of a channel without an entropy floor. It is at least L(q), and it is
    a maximum over few choices (`cvxleak.design.choices`), so it is computed exactly even if the
    tree for L(q) would take days: under a designed channel, hundreds of adversaries are equally
    bad. If the floor is on the plateau of the best channel, or affects only unlikely datasets, the
    best channel for L_0 is also the best for L.

    So the same search is run for L_0, with exact adversaries and without an audit. It starts with
    the cuts of the search that started it, all of which are adversaries for L_0, too. It ends when
    its gap is small enough, or when its lower bound shows that its channels cannot help.

    Parameters
    ----------
    learned : Learned
        Its adversaries have no entropy floor.
    fallbacks, conic, options, gap, clock
        As for `Run`.
    """

    idle = 2
    audited = False

    def __init__(
        self,
        learned: Learned,
        fallbacks: FallbackChannels,
        conic: Conic,
        options: Options,
        gap: Gap,
        clock: Clock,
    ) -> None:
        super().__init__(learned, fallbacks, conic, replace(options, verbose=False), gap, clock)
        self._least, self._most = 0.0, math.inf

    @property
    def ends(self) -> tuple[float, float]:
        """The lower and the upper bound, as if local searches missed nothing."""
        return self.lower.value, self.promise

    def find(self, ends: tuple[float, float], work: float) -> bool:
        """Look until `candidate` is good enough, or is not going to be; false if not yet so far.

        `ends` are the bounds of the design for the floor that was asked for, `work` what the search
        may take.
        """
        self._least, self._most = ends
        self.enough = self.learned.work.done + work
        if self.fallbacks.fallback_audit is not None:
            return True
        return self._rounds() not in (Stopped.WORK_LIMIT, Stopped.TIME_LIMIT)

    def _done(self) -> bool:
        lower, upper = self.ends
        enough = max(PART_OF_TOLERANCE * self.target, PART_OF_FLOOR * (lower - self._least))
        return lower > self._most or (math.isfinite(upper) and upper - lower <= enough)


def _method(run: Run) -> str:
    """Return the sentence that says what was done, and why."""
    by = run.options.solver or ("CLARABEL" if run.uses_conic else "a method of its own")
    if run.options.strategy == "alternate":
        return (
            f"alternation between the best channel, by {by}, and the newest worst adversary only, "
            "because the strategy 'alternate' was asked for; its gap need not close"
        )
    return (
        f"a cutting-set method: the best channel against finitely many adversaries, by {by}, and "
        "an audit of it for worse ones, because there are infinitely many"
    )
