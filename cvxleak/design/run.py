"""The rounds of a design for one budget: a master over finitely many adversaries, and audits.

Least leakage. The master's dual bound is a lower bound for all channels. Its channel, repaired to
be exactly feasible, is audited: what the audit proves is an upper bound, and the worst adversaries
become cuts (the problem is a semi-infinite convex program, and this is its cutting-set method).
Least distortion is the same with the roles exchanged.

Adversaries are asked for at the master's channel, where its model is at its worst, and on the way
from there to the best channel known, where it has to be good (in-out separation: Ben-Ameur and
Neto, Networks 2007). Local searches find them in a hundredth of the time of an audit; when it is
time for one, `cvxleak.design.audits` says. Where an audit takes long there may be another
channel, as good, whose audit does not: `cvxleak.design.search` looks for it.

"alternate" keeps the newest adversary only (LEAKAGE Algorithms 6 and 9): the bounds are as valid,
but the gap need not close, and the adversaries may come back in a cycle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.design.adversary_oracle import Cut
from cvxleak.design.audits import CLOSED, Audits, Candidate
from cvxleak.design.certify import Lower
from cvxleak.design.conic import Conic, OutOfTimeError
from cvxleak.design.cuts import Cuts
from cvxleak.design.designed import Round
from cvxleak.design.fallback_channels import FallbackChannels
from cvxleak.design.goal import Goal
from cvxleak.design.interior import Master, MasterPoint
from cvxleak.design.learned import Learned
from cvxleak.design.master import solve_master
from cvxleak.design.outer_approximation import Implied
from cvxleak.design.work import SECOND
from cvxleak.problem import Gap, Stopped

__all__ = ["Options", "Run"]

STALLED = 40
"""Rounds without progress after which the search gives up."""

ROUNDS = 500

LEAST_LEAKAGE = 1e-10
"""A master of least distortion keeps to no less than this many nats: it needs an interior."""

FIRST_LEAKAGE = 1e-4
"""It starts with no less than this, and a tenth each time that gains nothing more."""

QUICK = 0.9
"""Tolerance of an audit that is to find adversaries."""

NEARBY = 0.02
"""Distance of adversaries within which one may stand for the other."""

INWARD = 0.3
"""How far from the best channel known towards the master's the first question is asked."""

AUDITING = 0.5
"""Part of the work that audits may take while the cuts have not closed the gap."""

LAST = 0.3
"""Part of a limit that is left to audits, where they have more of the gap to close."""


@dataclass(frozen=True)
class Options:
    """How a search is run."""

    strategy: str = "cutting_set"
    solver: str | None = None
    solver_options: dict[str, Any] = field(default_factory=dict)
    verbose: bool = False


class Run:
    """The state of a design for one budget.

    Parameters
    ----------
    learned : Learned
        What is known from other budgets; this one adds to it.
    fallbacks : FallbackChannels
        Channels that are feasible whatever the adversaries are.
    conic : Conic
        The master's programs in CVXPY.
    options : Options
    gap : Gap
        When to end.
    clock : Clock
        When to end in any case.
    """

    idle = 6
    """Rounds after which a cut without a multiplier is dropped."""

    audited = True
    """Whether channels are audited, so that an adversary who was missed does no harm."""

    def __init__(
        self,
        learned: Learned,
        fallbacks: FallbackChannels,
        conic: Conic,
        options: Options,
        gap: Gap,
        clock: Clock,
    ) -> None:
        self.learned, self.fallbacks, self.conic, self.options = learned, fallbacks, conic, options
        self.data, self.goal, self.budget = learned.data, fallbacks.goal, fallbacks.budget
        self.oracle, self.costs = learned.oracle, learned.data.costs
        self.gap, self.clock, self.spent = gap, clock, 0.0
        self.begin, self.enough = learned.work.done, math.inf
        self.rounds: list[Round] = []
        self.lower = Lower()
        self.cycled = False
        self.stalled = 0  # rounds without progress
        self.seen: list[Cut] = []
        self.aim = self.budget
        if self.goal is Goal.DISTORTION:
            self.aim = max(self.budget, FIRST_LEAKAGE)
        self.candidate: Candidate | None = None  # the best channel so far, as far as is known
        self.audits = Audits(self.data, self.oracle, self.fallbacks, learned.work)
        self._ends_tried = False  # of the trade-off
        # Masters are solved in this unit; multipliers of user constraints keep theirs.
        rules = self.data.rules
        self.unit = 1.0 if rules else float(self.costs.price.max()) or 1.0
        self.mirrors = np.array_equal(self.costs.table, self.costs.table[:, ::-1, ::-1])
        self.uses_conic = bool(rules) or options.solver is not None or fallbacks.thin

    def go_on(self, gap: Gap, clock: Clock) -> Stopped:
        """Work until the gap is closed or something ends it."""
        self.gap, self.clock = gap, clock
        self.audits.late = False
        if gap.closed(*self.ends):
            return Stopped.TOLERANCE
        try:
            return self._settled() or self._rounds()
        except OutOfTimeError:
            return Stopped.at_limit(clock)
        finally:
            self.spent += clock.seconds

    @property
    def ends(self) -> tuple[float, float]:
        """The lower and the upper bound."""
        return self.lower.value, self.audits.value

    @property
    def promise(self) -> float:
        """What the best channel so far may turn out to be worth."""
        return math.inf if self.candidate is None else self.candidate.worth

    @property
    def target(self) -> float:
        """The gap to reach, a little inside the tolerance."""
        best = min(self.ends[1], self.promise)
        relative = 0.9 * self.gap.tol * best if math.isfinite(best) else 0.0
        return max(relative, 0.8 * self.gap.absolute)

    @property
    def work(self) -> float:
        """The work so far."""
        return self.learned.work.done - self.begin

    def fall_back(self) -> None:
        """See to it that there is a witness: at worst one that every search starts from."""
        if self.audits.best is not None:
            return
        if self.candidate is not None:
            self.audits.once(self.candidate.matrix, QUICK, SECOND, self.clock)
        if self.audits.best is None:
            known = (
                self.fallbacks.least_distortion
                if self.goal is Goal.LEAKAGE
                else self.fallbacks.fallback
            )
            self.audits.once(known, 0.5, SECOND, self.clock)
        if self.audits.best is None:
            raise SolverError("no channel was proved to be within the budget")

    def _settled(self) -> Stopped | None:
        """Try both extremes of the trade-off, at which the optimal channel is known."""
        if self._ends_tried:
            return None
        if self.goal is Goal.LEAKAGE:
            if self.fallbacks.constant is not None and self.fallbacks.affordable(
                self.fallbacks.constant
            ):
                self.audits.once(self.fallbacks.constant, 0.5, math.inf, self.clock)
        else:
            self._bounded_by_distortion()
            self.audits.once(self.fallbacks.fallback, 0.5, math.inf, self.clock)
            if not self._done():
                self.audits.once(
                    self.fallbacks.least_distortion, 0.1 * self.gap.tol, SECOND, self.clock
                )
        self._ends_tried = True
        return Stopped.TOLERANCE if self._done() else None

    def _bounded_by_distortion(self) -> None:
        """Least distortion: what no channel can beat, whatever it leaks."""
        if self.data.rules:
            return
        exact = [
            float(m) for m in np.tensordot(self.costs.table, self.fallbacks.least_distortion, 2)
        ]
        if len(exact) == 1:
            self.lower = Lower(exact[0] * (1 - 1e-12))
        if self.budget == 0 and self.oracle.silenced_by_constants:
            fallback, beta = self.fallbacks.fallback, self.costs.constant()[1]
            least = self.costs.worst(fallback) * (1 - 1e-9)
            nothing = np.zeros((0, 0, fallback.shape[1]))
            point = MasterPoint(fallback, least, least, np.zeros(0), beta, nothing)
            self.lower = Lower(least, (), point)

    # The loop ------------------------------------------------------------------------------------

    def _done(self) -> bool:
        lower, upper = self.ends
        return math.isfinite(upper) and upper - lower <= self.target

    def _rounds(self) -> Stopped:
        matrix = self.fallbacks.first()
        if self.learned.known:
            matrix = self._master().channel
            if self._done():
                self._log()
                return Stopped.TOLERANCE
        while True:
            if self.clock.late or self.audits.late:
                return Stopped.at_limit(self.clock)
            if self._time_for_audits:
                self._audit_candidate(last=True)
                self._log()
                return Stopped.at_limit(self.clock)
            if self.learned.work.done >= self.enough:
                return Stopped.WORK_LIMIT
            if len(self.rounds) >= ROUNDS:
                return Stopped.WORK_LIMIT
            before = self._standing
            if self.oracle.priors is None and self.options.strategy != "alternate":
                self._explore(matrix)
            else:
                self._confront(matrix)
            self._audit_candidate()
            self._log()
            if self._done():
                return Stopped.TOLERANCE
            if self.cycled:
                return Stopped.CYCLED
            matrix = self._master().channel
            if self._done():
                return Stopped.TOLERANCE
            self.stalled = self.stalled + 1 if before == self._standing else 0
            if self.goal is Goal.DISTORTION and self.stalled > 1 and self.aim > self._least_aim:
                self.aim, self.stalled = max(0.1 * self.aim, self._least_aim), 0
            if self.stalled > STALLED:
                return Stopped.NO_PROGRESS

    @property
    def _least_aim(self) -> float:
        return max(self.budget, LEAST_LEAKAGE)

    @property
    def _standing(self) -> tuple[float, ...]:
        """What changes when there is progress."""
        return *self.ends, self.promise, self.audits.state

    @property
    def _dust(self) -> float:
        """Entries of a channel below this become zero."""
        return min(1e-9, 1e-4 * self.gap.tol)

    def _explore(self, matrix: Array) -> None:
        """Look for adversaries of the master's channel, and on the way to the best one known."""
        if self.audited and self.learned.known and not self.rounds:
            # Where the neighbor's adversaries did, an audit will most likely find no others.
            released = self.fallbacks.repaired(matrix, self._dust)
            cuts = list(self.learned.known)
            learned = self._stated(cuts).informations(released)[2]
            self._propose(released, float(learned.max()), cuts[int(learned.argmax())])
            return
        places = [matrix]
        if self.candidate is not None:
            inner = self.candidate.matrix
            if self.goal is Goal.DISTORTION:
                share = self.fallbacks.share(self.candidate.worst)
                inner = share * inner + (1 - share) * self.fallbacks.fallback
            places.insert(0, INWARD * matrix + (1 - INWARD) * inner)
        for place in places:
            released = self.fallbacks.repaired(place, self._dust)
            learned = self.oracle.attack(
                released, self.learned.known.by_use, self.learned.work, self.clock
            )
            self._propose(released, *learned[0])
            self._keep(learned, released)

    def _confront(self, matrix: Array) -> None:
        """Look for the adversaries of one channel by an audit."""
        released = self.fallbacks.repaired(matrix, self._dust)
        audit = self.oracle.audit(self.data.channel(released))
        audited = self.audits.run(released, audit, QUICK, self._share(0.05), self.clock)
        self._propose(released, audited.value)
        if self.oracle.priors is None:
            self._keep([(audited.value, audited.cut)], released)

    def _propose(self, matrix: Array, worst: float, cut: Cut | None = None) -> None:
        """Take a channel as the next to be audited if it promises more than the present one."""
        worth = self.audits.worth(matrix, worst)
        if worth < self.promise:
            self.candidate = Candidate(matrix, worst, worth, cut)

    def _keep(self, learned: list[tuple[float, Cut]], matrix: Array) -> None:
        """Make adversaries and their mirror images cuts, but for those that are no news."""
        if self.options.strategy == "alternate":
            cut = max(learned, key=lambda pair: pair[0])[1]
            self.learned.known = Cuts([cut])
            self.cycled = any(cut.like(other) for other in self.seen)
            self.seen.append(cut)
            return
        level = self.lower.value if self.goal is Goal.LEAKAGE else self.aim
        for value, cut in learned:
            if value > level or not self.learned.known:
                for one in self.oracle.images(cut, self.mirrors):
                    if not self._known(one, value, matrix):
                        self.learned.known.add(one)

    @property
    def _nats(self) -> float:
        """What the target is worth in leakage."""
        if self.goal is Goal.LEAKAGE:
            return self.target
        point = self.lower.point
        price = 0.0 if point is None else float(point.theta.sum())
        return min(self.target / price if price > 0 else math.inf, self.gap.tol * self.aim)

    def _known(self, cut: Cut, value: float, matrix: Array) -> bool:
        """Whether a cut nearby says about a channel what this one does: both would be one twice."""
        near = self.learned.known.near(cut, NEARBY)
        if not near:
            return False
        if any(cut.like(other) for other in near):
            return True
        said = self._stated(near).informations(matrix)[2].max()
        return bool(said >= value - 0.02 * self._nats)

    def _audit_candidate(self, last: bool = False) -> None:
        """Audit the best channel so far, if it is time; the `last` time with all that is left."""
        if not self.audited:
            return
        # Cuts that gain nothing leave the rest to audits.
        late = last or self.stalled > 1
        for _ in range(4):
            candidate, lower = self.candidate, self.lower.value
            if candidate is None or not self.audits.wanted(candidate, lower, self.target, late):
                return
            if self._searching_without_floor and not last:
                self._search_without_floor()  # an audit of another channel took long already
                return
            closed = self.cuts_closed
            allowed = max(AUDITING * self.work, 0.1 * SECOND)
            if not closed and not last and self.audits.work > allowed:
                return
            work = math.inf if last else self._share(0.5 if closed else 0.2)
            released, audited = self.audits.go_on(candidate, lower, self.target, work, self.clock)
            if self.oracle.priors is None:
                self._keep([(audited.value, audited.cut)], released)
            if audited.upper - audited.value > self.gap.tol * audited.upper and not last:
                self._search_without_floor()
            if self.candidate is not candidate:
                continue
            learned = self.oracle.learned(audited.cut, candidate.matrix)
            if self.options.strategy == "alternate" or learned <= candidate.worst * (1 + 1e-9):
                return
            # The local search had missed an adversary.
            worth = self.audits.worth(candidate.matrix, learned)
            self.candidate = Candidate(candidate.matrix, learned, worth, audited.cut)

    @property
    def _searching_without_floor(self) -> bool:
        """Whether that has begun and not come to its end."""
        return False

    def _search_without_floor(self) -> None:
        """Look for a channel that is easier to audit and as good."""

    @property
    def cuts_closed(self) -> bool:
        """Whether all that is left to do is to audit the best channel."""
        return self.promise - self.lower.value <= CLOSED * self.target

    @property
    def _time_for_audits(self) -> bool:
        """Whether the time left is for audits alone: the cuts have less of the gap to close."""
        if self.clock.part_left > LAST or self.candidate is None:
            return False
        return self.audits.value - self.promise > self.promise - self.lower.value

    def _share(self, part: float) -> float:
        """Return the work of an audit: a part of the work so far, but not too little."""
        return max(SECOND, part * self.work)

    def _master(self) -> MasterPoint:
        """Solve the master for the adversaries known, and raise the lower bound."""
        cuts = list(self.learned.known)
        master = self._stated(cuts)
        implied: Implied | None = None
        if self.uses_conic:
            point, implied = self.conic.solve(master, self.clock)
        else:
            best = min(self.promise, self.ends[1])
            gap = max(0.1 * (best - self.lower.value), 0.05 * self.target)
            if not math.isfinite(gap):
                reach = self.costs.worst(self.fallbacks.fallback) - self.costs.worst(
                    self.fallbacks.least_distortion
                )
                gap = 0.03 * self.gap.tol * (0.1 if self.goal is Goal.LEAKAGE else reach)
            gap = gap if self.goal is Goal.LEAKAGE else gap / self.unit
            point = solve_master(master, self.fallbacks.first(), gap, self.clock)
        self.learned.work.done += point.work
        point = self._in_units(point)
        if not np.isfinite(point.lower):
            if not self.uses_conic:
                raise SolverError("the master's multipliers prove nothing")
            return point
        if self.fallbacks.tight:
            point = self.fallbacks.priced(point, master)
        if self.goal is Goal.DISTORTION:
            # What the multipliers prove for the budget that was asked for.
            moved = float(point.theta.sum()) * (self.aim - self.budget)
            point = replace(point, lower=point.lower + moved)
        better = point.lower > self.lower.value
        if better:
            self.lower = Lower(point.lower, tuple(cuts), point, implied)
        self.learned.known.used(point.theta)
        # Cuts are dropped on progress only, so that they cannot come and go in a cycle.
        if better and self.oracle.priors is None:
            self.learned.known.drop(self.idle)
        return point

    def _stated(self, cuts: list[Cut]) -> Master:
        values = max(len(cut.joint) for cut in cuts)
        joint = np.zeros((len(cuts), values, len(self.fallbacks.least_distortion)))
        for into, cut in zip(joint, cuts, strict=True):
            into[: len(cut.joint)] = cut.joint
        cost = self.costs.table
        if self.fallbacks.tight or (self.goal is Goal.LEAKAGE and not math.isfinite(self.budget)):
            cost = cost[:0]
        limit = self.aim if math.isfinite(self.aim) else 0.0
        return Master(
            joint,
            cost / self.unit,
            limit / self.unit if self.goal is Goal.LEAKAGE else limit,
            self.goal,
        )

    def _in_units(self, point: MasterPoint) -> MasterPoint:
        """Return what a master says, with the distortion in its own unit."""
        unit = self.unit
        if self.goal is Goal.LEAKAGE:
            return replace(point, beta=point.beta / unit)
        lower, value = point.lower * unit, point.value * unit
        return replace(point, lower=lower, value=value, theta=point.theta * unit)

    def _log(self) -> None:
        lower, upper = self.ends
        seconds = self.spent + self.clock.seconds
        self.rounds.append(Round(lower, upper, len(self.learned.known), seconds))
        if self.options.verbose:
            print(
                f"{seconds:7.1f} s  round {len(self.rounds)}: {lower:.7g} to {upper:.7g}, "
                f"{len(self.learned.known)} adversaries"
            )
