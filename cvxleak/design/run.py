"""The rounds of a design for one budget: a master over finitely many adversaries, and audits.

Least leakage. The master's dual bound is a lower end for all channels. Its channel, repaired to be
exactly feasible, is audited: what the audit proves is an upper end, and the worst adversaries
become cuts (THEORY: the problem is a semi-infinite convex program, and this is its cutting-set
method). Least distortion is the same with the roles exchanged.

Adversaries are asked for at the master's channel, where its model is at its worst, and on the way
from there to the best channel known, where it has to be good (in-out separation: Ben-Ameur and
Neto, Networks 2007). Local searches find them in a hundredth of the time of an audit; when it is
time for one, `cvxleak.design.audits` says. Where an audit takes long there may be another
channel, as good, whose audit does not: `cvxleak.design.search_without_floor` looks for it.

"alternate" keeps the newest adversary only (LEAKAGE Algorithms 6 and 9): the bracket is as valid,
but it need not close, and the adversaries may come back in a cycle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, SolveInterrupted, SolverError
from cvxleak.core.validation import Array
from cvxleak.design.adversary_oracle import Cut
from cvxleak.design.audits import CLOSED, Audits, Candidate
from cvxleak.design.certify import Found, Lower
from cvxleak.design.conic import Conic, OutOfTimeError
from cvxleak.design.cuts import Cuts
from cvxleak.design.designed import Round
from cvxleak.design.fallback_channels import Footing
from cvxleak.design.goal import Goal
from cvxleak.design.interior import Master, MasterPoint
from cvxleak.design.master import solve_master
from cvxleak.design.outer_approximation import Implied
from cvxleak.design.work import SECOND
from cvxleak.problem.bound import Bound, Stopped

if TYPE_CHECKING:
    from cvxleak.design.search import Search
    from cvxleak.design.search_without_floor import WithoutFloor

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

ASIDE = 2.0
"""How much work may go to channels against adversaries without a floor, for each unit before."""

AUDITING = 0.5
"""Part of the work that audits may take while the cuts have not closed the gap."""

LAST = 0.3
"""Part of the time limit that is left to audits, where they have more of the gap to close."""


@dataclass(frozen=True)
class Options:
    """How a search is run; it works to `part` of the tolerance `tol`."""

    tol: float
    time_limit: float | None
    strategy: str = "cutting_set"
    solver: str | None = None
    solver_options: dict[str, Any] = field(default_factory=dict)
    verbose: bool = False
    part: float = 1.0


class Run:
    """The state of a design for one budget."""

    idle = 6
    """Rounds after which a cut without a multiplier is dropped."""

    audited = True
    """Whether channels are audited, so that an adversary who was missed does no harm."""

    def __init__(self, search: Search, budget: float, options: Options, clock: Clock) -> None:
        self.search, self.budget, self.options = search, budget, options
        self.problem, self.goal = search.problem, search.goal
        self.opponents, self.costs = search.opponents, search.costs
        self.clock, self.spent = clock, 0.0
        self.begin, self.enough = search.work.done, math.inf
        rules = self.problem.rules
        shape = self.costs.price.shape
        self.conic = Conic(shape, rules, options.solver, options.solver_options)
        self.rounds: list[Round] = []
        self.lower = Lower()
        self.cycled = False
        self.stalled = 0  # rounds without progress
        self.seen: list[Cut] = []
        self.aim = budget if self.goal is Goal.LEAKAGE else max(budget, FIRST_LEAKAGE)
        self.candidate: Candidate | None = None  # the best channel so far, as far as is known
        self.footing = Footing(self.problem, self.goal, budget, self.conic)
        self.audits = Audits(
            self.problem, self.opponents, self.footing, search.audited, search.work
        )
        if self.goal is Goal.DISTORTION and self.footing.haven is None:
            self._find_ground()
        # Masters are solved in this unit; multipliers of own constraints keep theirs.
        self.unit = 1.0 if rules else float(self.costs.price.max()) or 1.0
        self.mirrors = np.array_equal(self.costs.table, self.costs.table[:, ::-1, ::-1])
        self._aside: WithoutFloor | None = None
        self._looked_aside = False  # to the end
        self.uses_conic = bool(rules) or options.solver is not None or self.footing.thin

    def resume(self, tol: float, time_limit: float | None) -> Bound:
        """Go on to a sharper tolerance."""
        self.options = replace(self.options, tol=tol, time_limit=time_limit)
        self._aside, self._looked_aside = None, False
        self.clock, self.audits.late = Clock(time_limit), False
        return self.go()

    @property
    def ends(self) -> tuple[float, float]:
        """The bracket."""
        return self.lower.value, self.audits.value

    @property
    def promise(self) -> float:
        """What the best channel so far may turn out to be worth."""
        return math.inf if self.candidate is None else self.candidate.worth

    @property
    def target(self) -> float:
        """The gap to reach, a little inside the tolerance."""
        best = min(self.ends[1], self.promise)
        relative = 0.9 * self.options.part * self.options.tol * best if math.isfinite(best) else 0.0
        return max(relative, 0.8 * self.problem.absolute(self.goal))

    def go(self) -> Bound:
        """Work until the gap is within the tolerance or something ends it."""
        try:
            stopped = self._settled()
            if stopped is None:
                stopped = self._rounds()
        except OutOfTimeError:
            stopped = Stopped.TIME_LIMIT
        except KeyboardInterrupt:
            stopped = Stopped.INTERRUPTED
        if self.audits.best is None:
            self._fall_back()
        if self.audits.best is None:
            raise SolverError("no channel was proved to be within the budget")
        self.spent += self.clock.seconds
        stats = {"seconds": self.spent, "rounds": len(self.rounds), "stopped": stopped}
        stats["work"] = self._work
        if self.options.strategy == "alternate":
            stats["cycled"] = self.cycled
        found = Found(
            self.problem, self.opponents, self.goal, self.budget, self.lower, self.audits.best
        )
        bound = found.bound(tuple(self.rounds), self.options.tol, stats, self.resume)
        if stopped is Stopped.INTERRUPTED:
            raise SolveInterrupted(bound)
        return bound

    def _find_ground(self) -> None:
        """Take the channel of least leakage, where own constraints rule out all constants."""
        options = replace(self.options, tol=0.01, time_limit=self.clock.limit)
        try:
            bound = self.search.least_leakage(options)
        except SolveInterrupted as error:
            raise SolveInterrupted from error  # a bracket of another problem
        matrix = bound.witness.channel.matrix
        if bound.upper > self.budget:
            raise InfeasibleError(
                f"budget: found {self.budget!r} nats; under the constraints the least leakage of a "
                f"channel is between {bound.lower!r} and {bound.upper!r}"
            )
        audited = self.opponents.audit(self.problem.channel(matrix)).run(0.01, clock=self.clock)
        self.footing.haven, self.footing.ground_audit = matrix, audited

    def _fall_back(self) -> None:
        """See to it that there is a witness: at worst one that every search starts from."""
        if self.candidate is not None:
            self.audits.once(self.candidate.matrix, QUICK, SECOND, self.clock)
        if self.audits.best is None:
            known = self.footing.anchor if self.goal is Goal.LEAKAGE else self.footing.ground
            self.audits.once(known, 0.5, SECOND, self.clock)

    def _settled(self) -> Stopped | None:
        """Try the two ends of the trade-off, where one channel is the answer at once."""
        if self.audits.best is not None:
            return None
        if self.goal is Goal.LEAKAGE:
            if self.footing.haven is not None and self.footing.affordable(self.footing.haven):
                self.audits.once(self.footing.haven, 0.5, math.inf, self.clock)
                return Stopped.TOLERANCE
            return None
        self._bounded_by_distortion()
        self.audits.once(self.footing.ground, 0.5, math.inf, self.clock)
        if self._done():
            return Stopped.TOLERANCE
        self.audits.once(self.footing.anchor, 0.1 * self.options.tol, SECOND, self.clock)
        if self._done():
            return Stopped.TOLERANCE
        return None

    def _bounded_by_distortion(self) -> None:
        """Least distortion: what no channel can beat, whatever it leaks."""
        if self.problem.rules:
            return
        exact = [float(m) for m in np.tensordot(self.costs.table, self.footing.anchor, 2)]
        if len(exact) == 1:
            self.lower = Lower(exact[0] * (1 - 1e-12))
        if self.budget == 0 and self.opponents.silenced_by_constants:
            ground, beta = self.footing.ground, self.costs.constant_and_shares()[1]
            least = self.costs.worst(ground) * (1 - 1e-9)
            point = MasterPoint(ground, least, least, np.zeros(0), beta, ground)
            self.lower = Lower(least, (), point)

    # The loop ------------------------------------------------------------------------------------

    def _done(self) -> bool:
        lower, upper = self.ends
        return math.isfinite(upper) and upper - lower <= self.target

    def _rounds(self) -> Stopped:
        matrix = self.footing.first()
        if self.search.known:
            matrix = self._master().channel
            if self.audited:
                self.audits.inherit()
            if self._done():
                self._log()
                return Stopped.TOLERANCE
        while True:
            if self.clock.late or self.audits.late:
                return Stopped.TIME_LIMIT
            if self._time_for_audits:
                self._audit_candidate(last=True)
                self._log()
                return Stopped.TIME_LIMIT
            if self.search.work.done >= self.enough:
                return Stopped.WORK_LIMIT
            if len(self.rounds) >= ROUNDS:
                return Stopped.WORK_LIMIT
            before = self._standing
            if self.opponents.priors is None and self.options.strategy != "alternate":
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
        return min(1e-9, 1e-4 * self.options.tol)

    def _explore(self, matrix: Array) -> None:
        """Look for adversaries of the master's channel, and on the way to the best one known."""
        if self.audited and self.search.known and not self.rounds:
            # Where the neighbor's adversaries did, an audit will most likely find no others.
            released = self.footing.repaired(matrix, self._dust)
            cuts = list(self.search.known)
            learned = self._stated(cuts).informations(released)[2]
            self._propose(released, float(learned.max()), cuts[int(learned.argmax())])
            return
        places = [matrix]
        if self.candidate is not None:
            inner = self.candidate.matrix
            if self.goal is Goal.DISTORTION:
                share = self.footing.share(self.candidate.worst)
                inner = share * inner + (1 - share) * self.footing.ground
            places.insert(0, INWARD * matrix + (1 - INWARD) * inner)
        for place in places:
            released = self.footing.repaired(place, self._dust)
            learned = self.opponents.attack(
                released, self.search.known.by_use, self.search.work, self.clock
            )
            self._propose(released, *learned[0])
            self._keep(learned, released)

    def _confront(self, matrix: Array) -> None:
        """Look for the adversaries of one channel by an audit."""
        released = self.footing.repaired(matrix, self._dust)
        audit = self.opponents.audit(self.problem.channel(released))
        audited = self.audits.run(released, audit, QUICK, self._share(0.05), self.clock)
        self._propose(released, audited.value)
        if self.opponents.priors is None:
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
            self.search.known = Cuts([cut])
            self.cycled = any(cut.like(other) for other in self.seen)
            self.seen.append(cut)
            return
        level = self.lower.value if self.goal is Goal.LEAKAGE else self.aim
        for value, cut in learned:
            if value > level or not self.search.known:
                for one in self.opponents.images(cut, self.mirrors):
                    if not self._known(one, value, matrix):
                        self.search.known.add(one)

    @property
    def _nats(self) -> float:
        """What the target is worth in leakage."""
        if self.goal is Goal.LEAKAGE:
            return self.target
        point = self.lower.point
        price = 0.0 if point is None else float(point.theta.sum())
        return min(self.target / price if price > 0 else math.inf, self.options.tol * self.aim)

    def _known(self, cut: Cut, value: float, matrix: Array) -> bool:
        """Whether a cut nearby says about a channel what this one does: both would be one twice."""
        near = self.search.known.near(cut, NEARBY)
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
            if self._aside is not None and not self._looked_aside and not last:
                self._look_aside()  # that of another channel took long already
                return
            closed = self.cuts_closed
            allowed = max(AUDITING * self._work, 0.1 * SECOND)
            if not closed and not last and self.audits.work > allowed:
                return
            work = math.inf if last else self._share(0.5 if closed else 0.2)
            released, audited = self.audits.go_on(candidate, lower, self.target, work, self.clock)
            if self.opponents.priors is None:
                self._keep([(audited.value, audited.cut)], released)
            if audited.upper - audited.value > self.options.tol * audited.upper and not last:
                self._look_aside()
            if self.candidate is not candidate:
                continue
            learned = self.opponents.learned(audited.cut, candidate.matrix)
            if self.options.strategy == "alternate" or learned <= candidate.worst * (1 + 1e-9):
                return
            # The local search had missed an adversary.
            worth = self.audits.worth(candidate.matrix, learned)
            self.candidate = Candidate(candidate.matrix, learned, worth, audited.cut)

    def _look_aside(self) -> None:
        """Look for a channel that is easier to audit and as good."""
        search = self.search.without_floor
        if self._looked_aside or search is None or self.options.strategy == "alternate":
            return
        if self._aside is None:
            self._aside = search.aside(self.budget, self.options, self.clock)
        for cut in self.search.known:
            if not search.known.near(cut, NEARBY):
                search.known.add(cut)
        self._looked_aside = self._aside.find(self.ends, max(ASIDE * self._work, SECOND))
        found = self._aside.candidate
        if found is None:
            return
        audited = self.audits.once(found.matrix, QUICK, SECOND, self.clock)
        self._propose(found.matrix, audited.upper)
        moved = [self.opponents.moved(cut) for cut in search.known.by_use]
        learned = [(self.opponents.learned(cut, found.matrix), cut) for cut in moved]
        self._keep(learned, found.matrix)

    @property
    def cuts_closed(self) -> bool:
        """Whether all that is left to do is to audit the best channel."""
        return self.promise - self.lower.value <= CLOSED * self.target

    @property
    def _time_for_audits(self) -> bool:
        """Whether the time left is for audits alone: the cuts have less of the gap to close."""
        limit = self.options.time_limit
        if limit is None or self.clock.left > LAST * limit or self.candidate is None:
            return False
        return self.audits.value - self.promise > self.promise - self.lower.value

    @property
    def _work(self) -> float:
        """The work so far."""
        return self.search.work.done - self.begin

    def _share(self, part: float) -> float:
        """Return the work of an audit: a part of the work so far, but not too little."""
        return max(SECOND, part * self._work)

    def _master(self) -> MasterPoint:
        """Solve the master for the adversaries known, and raise the lower end."""
        cuts = list(self.search.known)
        master = self._stated(cuts)
        implied: Implied | None = None
        if self.uses_conic:
            point, implied = self.conic.solve(master, self.clock)
        else:
            best = min(self.promise, self.ends[1])
            gap = max(0.1 * (best - self.lower.value), 0.05 * self.target)
            if not math.isfinite(gap):
                reach = self.costs.worst(self.footing.ground) - self.costs.worst(
                    self.footing.anchor
                )
                gap = 0.03 * self.options.tol * (0.1 if self.goal is Goal.LEAKAGE else reach)
            gap = gap if self.goal is Goal.LEAKAGE else gap / self.unit
            point = solve_master(master, self.footing.first(), gap, self.clock)
        self.search.work.done += point.work
        point = self._in_units(point)
        if not np.isfinite(point.lower):
            if not self.uses_conic:
                raise SolverError("the master's multipliers prove nothing")
            return point
        if self.footing.tight:
            point = self.footing.priced(point, master)
        if self.goal is Goal.DISTORTION:
            # What the multipliers prove for the budget that was asked for.
            moved = float(point.theta.sum()) * (self.aim - self.budget)
            point = replace(point, lower=point.lower + moved)
        better = point.lower > self.lower.value
        if better:
            self.lower = Lower(point.lower, tuple(cuts), point, implied)
        self.search.known.used(point.theta)
        # Cuts are dropped on progress only, so that they cannot come and go in a cycle.
        if better and self.opponents.priors is None:
            self.search.known.drop(self.idle)
        return point

    def _stated(self, cuts: list[Cut]) -> Master:
        values = max(len(cut.joint) for cut in cuts)
        joint = np.zeros((len(cuts), values, len(self.footing.anchor)))
        for into, cut in zip(joint, cuts, strict=True):
            into[: len(cut.joint)] = cut.joint
        cost = self.costs.table
        if self.footing.tight or (self.goal is Goal.LEAKAGE and not math.isfinite(self.budget)):
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
        self.rounds.append(Round(lower, upper, len(self.search.known), seconds))
        if self.options.verbose:
            print(
                f"{seconds:7.1f} s  round {len(self.rounds)}: {lower:.7g} to {upper:.7g}, "
                f"{len(self.search.known)} adversaries"
            )
