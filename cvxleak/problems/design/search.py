"""The outer loop of a design: a master over finitely many adversaries, and audits that add more.

Least leakage. The master's dual bound is a lower end for all channels. Its channel, repaired to be
exactly feasible, is audited: what the audit proves is an upper end, and the worst adversaries
become cuts (THEORY: the problem is a semi-infinite convex program, and this is its cutting-set
method). Least distortion. The audited channel Q leaks at most U; its mixture with a channel of
constant output, (1 - theta) Q + theta c, leaks at most (1 - theta) U, by convexity, so theta =
1 - L / U is feasible, and its distortion is an upper end.

Adversaries are asked for at the master's channel, where its model is at its worst, and on the way
from there to the best channel known, where it has to be good (in-out separation: Ben-Ameur and
Neto, Networks 2007). Local searches find them in a hundredth of the time of an audit. So audits
wait until the cuts have all but closed the gap, and then have most of the tolerance to themselves.

"alternate" keeps the newest adversary only (LEAKAGE Algorithms 6 and 9): the bracket is as valid,
but it need not close, and the adversaries may come back in a cycle.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cvxleak._validation import Array
from cvxleak.certificates.rationals import float_above
from cvxleak.errors import InfeasibleError, SolverError
from cvxleak.problems.design.adversaries import Audited, Cut, Opponents
from cvxleak.problems.design.conic import Conic
from cvxleak.problems.design.designed import Round
from cvxleak.problems.design.footing import Footing
from cvxleak.problems.design.found import Found, Lower, Upper
from cvxleak.problems.design.half_spaces import Implied
from cvxleak.problems.design.interior import Master, MasterPoint
from cvxleak.problems.design.master import solve_master
from cvxleak.problems.design.statement import Problem
from cvxleak.result import ABSOLUTE_TOLERANCE, Bound

__all__ = ["Options", "Search"]

IDLE = 6
"""Rounds after which a cut without a multiplier is dropped."""

STALLED = 40
"""Rounds without progress after which the search gives up."""

ROUNDS = 500

LEAST_LEAKAGE = 1e-10
"""A master of least distortion keeps to no less than this many nats: it needs an interior."""

QUICK = 0.9
"""Tolerance of the first audit of a channel, which is to find adversaries."""

CUTS = 100
"""Cuts that are kept in any case: they cost little."""

NEARBY = 0.02
"""Distance of adversaries within which one may stand for the other."""

INWARD = 0.3
"""How far from the best channel known towards the master's the first question is asked."""

CLOSED = 0.3
"""Part of the tolerance to which the cuts close the gap before the last audit."""


@dataclass(frozen=True)
class Options:
    """How a search is run."""

    tol: float
    time_limit: float | None
    strategy: str = "cutting_set"
    solver: str | None = None
    solver_options: dict[str, Any] = field(default_factory=dict)
    verbose: bool = False


@dataclass
class _Known:
    """A cut in the master, its multiplier, and for how many rounds that was next to nothing."""

    cut: Cut
    theta: float = math.inf
    idle: int = 0


class Search:
    """The state of a design: it can be run for one budget after the other, and run on."""

    def __init__(
        self, problem: Problem, leakage: bool, rng: int | np.random.Generator | None
    ) -> None:
        self.problem, self.leakage = problem, leakage
        self.opponents: Opponents = problem.opponents(rng)
        self.costs = problem.costs
        self.known: list[_Known] = [_Known(cut) for cut in self.opponents.known]

    def run(self, budget: float, options: Options) -> Bound:
        """Return the proved bracket for one budget; cuts of earlier budgets are kept."""
        start = time.monotonic()
        run = _Run(self, budget, options, start)
        return run.go()


class _Run:
    """One budget."""

    def __init__(self, search: Search, budget: float, options: Options, start: float) -> None:
        self.search, self.budget, self.options = search, budget, options
        self.problem, self.leakage = search.problem, search.leakage
        self.opponents, self.costs = search.opponents, search.costs
        self.begin, self.spent = start, 0.0
        limit = options.time_limit
        self.deadline = math.inf if limit is None else start + limit
        rules = self.problem.rules
        shape = self.costs.price.shape
        self.conic = Conic(shape, rules, options.solver, options.solver_options)
        self.rounds: list[Round] = []
        self.lower = Lower()
        self.upper: Upper | None = None
        self.cycled = False
        self.seen: list[Cut] = []
        self.aim = budget if self.leakage else max(budget, LEAST_LEAKAGE)
        self.promise = math.inf  # what the best channel so far may turn out to be worth
        self.candidate: tuple[Array, float] | None = None  # it, and what it is known to leak
        self.attempted = math.inf  # the gap of the last audit, had it succeeded
        self.audits = 0.0  # seconds that audits took
        self.footing = Footing(self.problem, self.leakage, budget, self.conic)
        if not self.leakage and self.footing.haven is None:
            self._find_haven()
        self.mirrors = np.array_equal(self.costs.table, self.costs.table[:, ::-1, ::-1])
        self.uses_conic = bool(rules) or options.solver is not None or self.footing.thin

    def resume(self, tol: float, time_limit: float | None) -> Bound:
        """Go on to a sharper tolerance."""
        self.options = replace(self.options, tol=tol, time_limit=time_limit)
        self.begin = time.monotonic()
        self.deadline = math.inf if time_limit is None else self.begin + time_limit
        return self.go()

    @property
    def ends(self) -> tuple[float, float]:
        """The bracket."""
        return self.lower.value, math.inf if self.upper is None else self.upper.value

    @property
    def target(self) -> float:
        """The gap to reach, a little inside the tolerance."""
        best = min(self.ends[1], self.promise)
        relative = 0.9 * self.options.tol * best if math.isfinite(best) else 0.0
        return max(relative, 0.8 * ABSOLUTE_TOLERANCE)

    def go(self) -> Bound:
        """Work until the gap is within the tolerance or something ends it."""
        try:
            stopped = self._settled()
            if stopped is None:
                stopped = self._rounds()
        except KeyboardInterrupt:
            stopped = "interrupted"
        if self.upper is None:
            # Always a witness: at worst one of the two that every search starts from.
            self._try(self.footing.anchor if self.leakage else self.footing.safe, 0.5)
        if self.upper is None:
            raise SolverError("no channel was proved to be within the budget")
        self.spent += time.monotonic() - self.begin
        stats = {"seconds": self.spent, "rounds": len(self.rounds), "stopped": stopped}
        if self.options.strategy == "alternate":
            stats["cycled"] = self.cycled
        found = Found(
            self.problem, self.opponents, self.leakage, self.budget, self.lower, self.upper
        )
        return found.bound(tuple(self.rounds), self.options.tol, stats, self.resume)

    def _find_haven(self) -> None:
        """Take the channel of least leakage, where own constraints rule out all constants."""
        options = replace(self.options, tol=0.01)
        bound = Search(self.problem, True, 0).run(math.inf, options)
        self.footing.haven = bound.witness.channel.matrix
        self.footing.haven_leaks = bound.upper
        if bound.upper > self.budget:
            raise InfeasibleError(
                f"budget: found {self.budget!r} nats; under the constraints the least leakage of a "
                f"channel is between {bound.lower!r} and {bound.upper!r}"
            )

    def _settled(self) -> str | None:
        """Try the two ends of the trade-off, where one channel is the answer at once."""
        if self.upper is not None:
            return None
        if self.leakage:
            if self.footing.haven is not None and self.footing.affordable(self.footing.haven):
                self._try(self.footing.haven, 0.5)
                return "a constant output is within the budget"
            return None
        self._bounded_by_distortion()
        self._try(self.footing.safe, 0.5)
        self._try(self.footing.anchor, 0.1 * self.options.tol)
        if self._done():
            return "the least distortion of all channels is within the budget"
        return None

    def _bounded_by_distortion(self) -> None:
        """Least distortion: what no channel can beat, whatever it leaks."""
        if self.problem.rules:
            return
        exact = [float(m) for m in np.tensordot(self.costs.table, self.footing.anchor, 2)]
        if len(exact) == 1:
            self.lower = Lower(exact[0] * (1 - 1e-12))

    # The loop ------------------------------------------------------------------------------------

    def _done(self) -> bool:
        lower, upper = self.ends
        return math.isfinite(upper) and upper - lower <= self.target

    def _rounds(self) -> str:
        stalled, matrix = 0, self.footing.first()
        if self.search.known:
            matrix = self._master().channel
        while True:
            if time.monotonic() > self.deadline:
                return f"the time limit of {self.options.time_limit:g} s was reached"
            if len(self.rounds) >= ROUNDS:
                return f"{ROUNDS} rounds"
            before = self.lower.value, self.ends[1], self.promise
            if self.opponents.priors is None and self.options.strategy != "alternate":
                self._explore(matrix)
            else:
                self._confront(matrix)
            self._audit_candidate()
            self._log()
            if self._done():
                return "the gap is within the tolerance"
            if self.cycled:
                return "an adversary came back: the alternation has cycled or settled"
            matrix = self._master().channel
            if self._done():
                return "the gap is within the tolerance"
            after = self.lower.value, self.ends[1], self.promise
            stalled = stalled + 1 if before == after else 0
            if stalled > STALLED:
                return "no further progress"

    @property
    def _dust(self) -> float:
        """Entries of a channel below this become zero."""
        return min(1e-9, 1e-4 * self.options.tol)

    def _explore(self, matrix: Array) -> None:
        """Look for adversaries of the master's channel, and on the way to the best one known."""
        if self.search.known and not self.rounds:
            # Where the neighbor's adversaries did, an audit will most likely find no others.
            released = self.footing.repaired(matrix, self._dust)
            learned = self._stated([known.cut for known in self.search.known])
            self._propose(released, float(learned.informations(released)[2].max()))
            return
        places = [matrix]
        if self.candidate is not None:
            inner = self.footing.mixed(*self.candidate) if not self.leakage else self.candidate[0]
            places.insert(0, INWARD * matrix + (1 - INWARD) * inner)
        for place in places:
            released = self.footing.repaired(place, self._dust)
            cuts = sorted(self.search.known, key=lambda known: -known.theta)
            learned = self.opponents.attack(released, [known.cut for known in cuts])
            self._propose(released, learned[0][0])
            self._keep(learned, released)

    def _confront(self, matrix: Array) -> None:
        """Look for the adversaries of one channel by an audit."""
        released = self.footing.repaired(matrix, self._dust)
        audited = self.opponents.audit(self.problem.channel(released)).run(
            QUICK, self._until(1.0, 0.05)
        )
        self._propose(released, audited.value)
        self._offer(released, audited)
        if self.opponents.priors is None:
            self._keep([(audited.value, audited.cut)], released)

    def _propose(self, matrix: Array, worst: float) -> None:
        """Take a channel as the next to be audited if it promises more than the present one."""
        value = self._value(matrix, worst)
        if value < self.promise:
            self.promise, self.candidate = value, (matrix, worst)

    def _keep(self, learned: list[tuple[float, Cut]], matrix: Array) -> None:
        """Make adversaries and their mirror images cuts, but for those that are no news."""
        if self.options.strategy == "alternate":
            cut = max(learned, key=lambda pair: pair[0])[1]
            self.search.known = [_Known(cut)]
            self.cycled = any(cut.like(other) for other in self.seen)
            self.seen.append(cut)
            return
        level = self.lower.value if self.leakage else self.budget
        for value, cut in learned:
            if value > level or not self.search.known:
                for one in self.opponents.images(cut, self.mirrors):
                    if not self._known(one, value, matrix):
                        self.search.known.append(_Known(one))

    def _known(self, cut: Cut, value: float, matrix: Array) -> bool:
        """Whether a cut nearby says about a channel what this one does: both would be one twice."""
        near = [k.cut for k in self.search.known if cut.like(k.cut, NEARBY)]
        if not near:
            return False
        if any(cut.like(other) for other in near):
            return True
        said = self._stated(near).informations(matrix)[2].max()
        return bool(said >= value - 0.02 * self.target)

    def _value(self, matrix: Array, worst: float) -> float:
        """Return what a channel, made feasible, is worth if `worst` is all that it leaks."""
        return worst if self.leakage else self.costs.worst(self.footing.mixed(matrix, worst))

    def _audit_candidate(self) -> None:
        """Audit the best channel so far, if it is time, and make it the witness."""
        for _ in range(4):
            if self.candidate is None or not self._worthwhile(self.promise):
                return
            matrix, worst = self.candidate
            gap = self.promise - self.lower.value
            final = gap <= CLOSED * self.target
            room = max(self.target - gap, 0.5 * gap)
            released, sharpness, inward = matrix, room / max(worst, room), 1.0
            if not self.leakage:
                # The channel that is audited keeps away from the budget, so that the audit need
                # not be sharp for its upper end to be within it.
                slack = self._slack(0.9 * room)
                released = self.footing.mixed(matrix, max(worst, self.budget) * (1 + slack))
                sharpness = 0.9 * slack
                # Leakage is convex: that of a mixture is in proportion at most.
                inward = max(worst, self.budget) * (1 + slack) / max(self.budget, 1e-300)
            begin = time.monotonic()
            audit = self.opponents.audit(self.problem.channel(released))
            state = audit.run(sharpness, self._until(2.0, 0.2, final))
            self.audits += time.monotonic() - begin
            self._offer(released, state)
            if self.opponents.priors is None:
                self._keep([(state.value, state.cut)], released)
            found = state.value * inward
            constant = not self.leakage and self.budget == 0
            alternating = self.options.strategy == "alternate"
            if constant or alternating or found <= worst * (1 + 1e-9):
                return
            # The local search had missed an adversary.
            self.candidate = (matrix, found)
            self.promise = self._value(matrix, found)

    def _slack(self, spent: float) -> float:
        """Return by which part of the budget a channel may stay below it, at a cost of `spent`."""
        reach = self.costs.worst(self.footing.safe) - self.promise
        return min(0.5, spent / max(reach - spent, spent))

    def _worthwhile(self, value: float) -> bool:
        """Whether a witness of this value would be so much better that an audit pays.

        An audit may cost more than many rounds. There is one each time the gap has halved, if the
        audits so far took no longer than all else did.
        """
        gap = value - self.lower.value
        if value >= self.ends[1]:
            return False
        if self.opponents.priors is not None or gap <= CLOSED * self.target:
            return True
        spent = time.monotonic() - self.begin
        if self.upper is None:
            return True  # any witness is better than none
        if gap > 0.5 * self.attempted or gap > 0.25 * value or self.audits > 0.4 * spent:
            return False
        self.attempted = gap
        return True

    def _until(self, least: float, part: float, final: bool = False) -> float:
        """Return when an audit has to end: after a part of the time that the search took."""
        if final:
            return self.deadline
        now = time.monotonic()
        return min(self.deadline, now + max(least, part * (now - self.begin)))

    def _offer(self, matrix: Array, audited: Audited) -> None:
        """Take a channel as the witness if it is feasible, and better than the present one."""
        if self.leakage:
            value, feasible = audited.upper, self.footing.affordable(matrix)
        else:
            value = float_above(max(self.costs.exact(matrix)))
            feasible = audited.upper <= self.budget
        if feasible and value < self.ends[1]:
            self.upper = Upper(value, matrix, audited)

    def _try(self, matrix: Array, tol: float) -> None:
        audit = self.opponents.audit(self.problem.channel(matrix))
        self._offer(matrix, audit.run(tol, self.deadline))

    def _master(self) -> MasterPoint:
        """Solve the master for the adversaries known, and raise the lower end."""
        cuts = [k.cut for k in self.search.known]
        master = self._stated(cuts)
        implied: Implied | None = None
        if self.uses_conic:
            point, implied = self.conic.solve(master, self.deadline)
        else:
            best = min(self.promise, self.ends[1])
            gap = max(0.1 * (best - self.lower.value), 0.05 * self.target)
            if not math.isfinite(gap):
                reach = self.costs.worst(self.footing.safe) - self.costs.worst(self.footing.anchor)
                gap = 0.03 * self.options.tol * (0.1 if self.leakage else reach)
            point = solve_master(master, self.footing.first(), gap, self.deadline)
        if not np.isfinite(point.lower):
            if not self.uses_conic:
                raise SolverError("the master's multipliers prove nothing")
            return point
        if self.footing.tight:
            point = self.footing.priced(point, master)
        if not self.leakage:
            # What the multipliers prove for the budget that was asked for.
            moved = float(point.theta.sum()) * (self.aim - self.budget)
            point = replace(point, lower=point.lower + moved)
        better = point.lower > self.lower.value
        if better:
            self.lower = Lower(point.lower, tuple(cuts), point, implied)
        for known, theta in zip(self.search.known, point.theta.tolist(), strict=True):
            known.theta = theta
            known.idle = 0 if theta > 1e-3 * point.theta.max() else known.idle + 1
        # Cuts are dropped on progress only, so that they cannot come and go in a cycle.
        if better and self.opponents.priors is None and len(cuts) > CUTS:
            self.search.known = [k for k in self.search.known if k.idle < IDLE]
        return point

    def _stated(self, cuts: list[Cut]) -> Master:
        values = max(len(cut.joint) for cut in cuts)
        joint = np.zeros((len(cuts), values, len(self.footing.anchor)))
        for into, cut in zip(joint, cuts, strict=True):
            into[: len(cut.joint)] = cut.joint
        cost = self.costs.table
        if self.footing.tight or (self.leakage and not math.isfinite(self.budget)):
            cost = cost[:0]
        return Master(joint, cost, self.aim if math.isfinite(self.aim) else 0.0, self.leakage)

    def _log(self) -> None:
        lower, upper = self.ends
        seconds = self.spent + time.monotonic() - self.begin
        self.rounds.append(Round(lower, upper, len(self.search.known), seconds))
        if self.options.verbose:
            print(
                f"{seconds:7.1f} s  round {len(self.rounds)}: {lower:.7g} to {upper:.7g}, "
                f"{len(self.search.known)} adversaries"
            )
