"""Which channel of a search is audited, how sharply, and what the audit is worth.

What an audit proves is always an upper bound. Least leakage: the channel is within its budget, and
leaks at most U. Least distortion: if U is above the budget L, the mixture of the channel with one
of constant output that has the share L / U leaks at most L, by convexity, and its distortion is an
upper bound. So an audit can stop at any time, and go on later.

The gap of a design has two parts: from the lower bound to what the best channel known is worth if
local searches missed nothing (cuts close it), and from there to what is proved (audits do). Work
goes to the larger part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.design.adversary_oracle import AdversaryOracle, Audit, Audited, Cut
from cvxleak.design.certify import Upper
from cvxleak.design.data import DesignData
from cvxleak.design.fallback_channels import FallbackChannels
from cvxleak.design.feasible import blended
from cvxleak.design.goal import Goal
from cvxleak.design.work import AUDIT, Work
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.problem.bound import Stopped
from cvxleak.proofs.bounds.design_mixtures import mixture_above
from cvxleak.proofs.design import most_values

__all__ = ["Audits", "Candidate"]

CLOSED = 0.3
"""Part of the tolerance to which the cuts close the gap before the last audit."""

ROUGH = 0.25
"""Relative gap of the cuts above which no channel is worth an audit yet."""


@dataclass(frozen=True)
class Candidate:
    """A channel, what local searches say that it leaks, and what it is worth if that is all.

    `cut` is the adversary who learns that, where there is one to be named.
    """

    matrix: Array
    worst: float
    worth: float
    cut: Cut | None = None


AuditedChannel = tuple[Array, Audited]
"""A channel and what its audit proved."""


class Audits:
    """The audits of one search for one budget, and the best upper bound that they proved.

    Attributes
    ----------
    best : Upper or None
        The witness so far.
    work : float
        What all audits took.
    late : bool
        Whether one was stopped by the clock.
    """

    def __init__(
        self,
        data: DesignData,
        oracle: AdversaryOracle,
        fallbacks: FallbackChannels,
        work: Work,
    ) -> None:
        self.data, self.oracle, self.fallbacks = data, oracle, fallbacks
        self.goal, self.costs = fallbacks.goal, data.costs
        self.best: Upper | None = None
        self.work, self._all = 0.0, work
        self.late = False
        self._matrix: Array | None = None
        self._audit: Audit | None = None
        self._proved = math.inf  # by the last turn of an audit
        self._stuck = False  # that turn proved no more than the one before

    @property
    def value(self) -> float:
        """The upper bound."""
        return math.inf if self.best is None else self.best.value

    @property
    def state(self) -> float:
        """How far the present audit has come: it is at work while this falls."""
        return self._proved

    def worth(self, matrix: Array, worst: float) -> float:
        """Return what a channel, made feasible, is worth if `worst` is all that it leaks."""
        if self.goal is Goal.LEAKAGE:
            return worst
        share = self.fallbacks.share(worst)
        return self.costs.worst(share * matrix + (1 - share) * self.fallbacks.fallback)

    def wanted(self, candidate: Candidate, lower: float, target: float, late: bool) -> bool:
        """Whether an audit is what the search should do next."""
        gap = candidate.worth - lower
        if candidate.worth >= self.value:
            return False
        if self.oracle.priors is not None or self.oracle.size == 0:
            return True  # next to nothing
        if gap <= CLOSED * target:
            return True
        return late or (gap <= ROUGH * candidate.worth and self.value - candidate.worth > gap)

    def go_on(
        self, candidate: Candidate, lower: float, target: float, work: float, clock: Clock
    ) -> tuple[Array, Audited]:
        """Audit a candidate, or go on with the channel whose audit is under way if it is as good.

        The audit ends when it is as sharp as the gap of the cuts makes sense of.
        """
        gap = candidate.worth - lower
        aim = max(target - gap, 0.5 * gap)
        matrix, audit = self._matrix, self._audit
        behind = 0.0
        if matrix is not None and audit is not None and matrix is not candidate.matrix:
            behind = self.worth(matrix, audit.state.value) - candidate.worth
            if self._stuck or behind > 0.5 * aim or not self.fallbacks.affordable(matrix):
                audit = None
        if matrix is None or audit is None:
            matrix, behind = candidate.matrix, 0.0
            audit = self.oracle.audit(self.data.channel(matrix), candidate.cut)
            self._matrix, self._audit = matrix, audit
        reach = candidate.worst
        if self.goal is Goal.DISTORTION:
            # What a relative change of the leakage that is proved changes in the distortion.
            reach = self.costs.worst(self.fallbacks.fallback) - candidate.worth
            reach /= max(
                1 - self.fallbacks.fallback_leakage / max(self.fallbacks.budget, 1e-300), 1e-3
            )
        before = self._proved
        audited = self.run(matrix, audit, 0.9 * (aim - behind) / max(reach, aim), work, clock)
        self._proved = audited.upper
        self._stuck = before == audited.upper
        return matrix, audited

    def run(self, matrix: Array, audit: Audit, tol: float, work: float, clock: Clock) -> Audited:
        """Run an audit with so much work, and take what it proves."""
        before = audit.work
        try:
            audited = audit.run(tol, work, clock)
        finally:
            spent = audit.work - before + AUDIT
            self.work += spent
            self._all.done += spent
        self.offer(matrix, audited)
        self.late = self.late or clock.worked_out or audit.stopped is Stopped.TIME_LIMIT
        if audit.stopped is Stopped.INTERRUPTED:
            raise KeyboardInterrupt
        return audited

    def once(self, matrix: Array, tol: float, work: float, clock: Clock) -> Audited:
        """Audit a channel, and take it as the witness if it is better."""
        audit = self.oracle.audit(self.data.channel(matrix))
        return self.run(matrix, audit, tol, work, clock)

    def offer(self, matrix: Array, audited: Audited) -> None:
        """Take a channel, made feasible if need be, as the witness if it is the best so far."""
        if self.goal is Goal.LEAKAGE or audited.upper <= self.fallbacks.budget:
            self._take((matrix, audited))
        else:
            self._take(self.mixed(self.fallbacks.share(audited.upper), matrix, audited))

    def _take(self, found: AuditedChannel | None) -> None:
        """Take a channel within the budgets as the witness if it is the best so far."""
        if found is None:
            return
        matrix, audited = found
        if self.goal is Goal.LEAKAGE:
            if self.fallbacks.affordable(matrix) and audited.upper < self.value:
                self.best = Upper(audited.upper, matrix, audited)
            return
        value = float_above(max(self.costs.exact(matrix)))
        if value < self.value and audited.upper <= self.fallbacks.budget:
            self.best = Upper(value, matrix, audited)

    def mixed(self, share: float, matrix: Array, audited: Audited) -> AuditedChannel | None:
        """Return a channel mixed with the fallback, and what the mixture is proved to leak."""
        law: Array | None = self.fallbacks.fallback[0]
        parts = [(share, matrix, audited)]
        if self.fallbacks.fallback_audit is not None:
            law = None
            parts.append((1.0 - share, self.fallbacks.fallback, self.fallbacks.fallback_audit))
        parts = [part for part in parts if part[0] > 0]
        if not parts:
            return None
        found = blended([(share, matrix) for share, matrix, _ in parts], law)
        if found is None:
            return None
        matrix, shares = found
        rows, size = self.data.rows, self.oracle.size
        channel = self.data.channel
        with precision():
            bounded = [
                (share, channel(part), audited.upper)
                for share, (_, part, audited) in zip(shares, parts, strict=True)
            ]
            upper = mixture_above(channel(matrix), bounded, most_values(rows, size))
        entries = [
            {"share": share, "channel": channel(part).to_dict(), "leakage": audited.proof}
            for share, (_, part, audited) in zip(shares, parts, strict=True)
        ]
        worst = max(parts, key=lambda part: part[0])[2]
        learned = self.oracle.learned(worst.cut, matrix)
        return matrix, replace(worst, upper=upper, value=learned, proof={"parts": entries})
