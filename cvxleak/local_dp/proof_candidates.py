"""What searches hand over, channels and proofs to try, and the best of them so far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array
from cvxleak.local_dp.linear import Mixture, supports
from cvxleak.model import Channel, Prior
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.sources import SourceSet

__all__ = [
    "STEPS",
    "Attempt",
    "Best",
    "constant",
    "flat_channels",
    "labeled_channel",
    "summing_to",
    "support_mixture",
    "unit_law",
]

STEPS = (0.0, *(2.0**-k for k in range(52, 15, -3)))
"""Relative moves to the safe side, in turn, until the exact check agrees."""

CLOSE = 1e-12
"""A gap that is not worth another attempt."""

WHOLE = 10**6
"""Largest denominator of the probabilities that are tried as whole numbers."""


@dataclass(frozen=True)
class Attempt:
    """Channels and multipliers from which the two bounds are proved, computed when asked for.

    Attributes
    ----------
    channels : iterable of ndarray
        The first one that meets the budget in exact arithmetic counts.
    proofs : iterable of dict
        As certificates store them; the best one counts.
    mixture : Mixture or None
        The distribution that decides.
    price : float
        Derivative of epsilon in the budget.
    programs : int
        Linear programs that were solved.
    target : float or None
        delta > 0: the epsilon to expect; channels that are far from it are passed over.
    """

    channels: Iterable[Array] = ()
    proofs: Iterable[dict[str, Any]] = ()
    mixture: Mixture | None = None
    price: float = 0.0
    programs: int = 1
    target: float | None = None


class Best:
    """The best bounds so far, and what proves them.

    Parameters
    ----------
    prove : callable
        The prover of the certificate: (problem, witness, proof) -> the two bounds.
    stored : mapping
        What the certificate holds of the problem.
    sources : SourceSet
    distortion : ndarray, shape (k, m)
    rough : ndarray
        The channel of least distortion: a witness for proofs while there is no better one.
    gap : Gap
        When the bounds are near enough to each other.
    clock : Clock
        When it is late, no more is tried than is needed for both bounds.
    """

    def __init__(
        self,
        prove: Callable[..., tuple[float, float]],
        stored: Mapping[str, Any],
        sources: SourceSet,
        distortion: Array,
        rough: Array,
        gap: Gap,
        clock: Clock,
    ) -> None:
        self._prove, self._stored, self._rough = prove, stored, rough
        self._sources, self._distortion = sources, distortion
        self._gap, self._clock = gap, clock
        self.lower, self.upper = 0.0, math.inf
        self.channel: Array | None = None
        self.proof: Mapping[str, Any] = {}
        self.mixture: Mixture | None = None
        self.price, self.programs = 0.0, 0

    @property
    def done(self) -> bool:
        """Whether the bounds are as near as asked for, or as floats allow."""
        near = self.upper - self.lower <= CLOSE if self.upper < math.inf else False
        return near or self._gap.closed(self.lower, self.upper)

    @property
    def stopped(self) -> Stopped | None:
        """Why no further attempt is needed; None if one is."""
        if self.done:
            return Stopped.TOLERANCE
        if self._clock.late and self.channel is not None:
            return Stopped.at_limit(self._clock)
        return None

    def meets(self, channel: Array) -> bool:
        """Whether a channel meets the budgets in exact arithmetic."""
        return self._ends(channel, {}) is not None

    def search(self, attempts: Iterable[Attempt]) -> None:
        """Try one attempt after the other until no further one is needed."""
        for attempt in attempts:
            self.improve(attempt)
            if self.stopped:
                return

    def improve(self, attempt: Attempt) -> None:
        """Take what is better: the first channel that holds, the best proof."""
        self.programs += attempt.programs
        proofs = iter(attempt.proofs)
        first = next(proofs, {})
        before = self.lower, self.upper, self.channel is None
        for channel in attempt.channels:
            upper = self._take(channel, first)
            # Pure privacy: the first one is as good as any. Else a zero may cost a lot.
            target = attempt.target
            near = target is None or upper - target <= self._gap.allowed(upper) / 2
            if (upper < math.inf and near) or self._clock.late:
                break
        if self.channel is None:
            self._take(self._rough, first)
        if self.channel is not None:
            for proof in itertools.chain([first], proofs):
                if self.stopped:
                    break
                ends = self._ends(self.channel, proof)
                if ends is not None and ends[0] > self.lower:
                    self.lower, self.proof = ends[0], proof
        after = self.lower, self.upper, self.channel is None
        if attempt.mixture is not None and (after != before or self.mixture is None):
            self.mixture, self.price = attempt.mixture, attempt.price

    def found(
        self, outputs: tuple[Hashable, ...], prices: Mapping[str, float], method: str
    ) -> Found:
        """Return the channel with its labels, and what proves the bounds."""
        labels, rows = self._sources.labels, np.asarray(self.channel)
        law = None
        if self.mixture is not None:
            law = Prior(self.mixture.law / self.mixture.law.sum(), labels)
        return Found(
            self.lower,
            self.upper,
            labeled_channel(rows, labels, outputs),
            (self._stored, self._witness(rows), self.proof),
            prices,
            {"method": method, "programs": self.programs, "worst_source": law},
        )

    def _take(self, channel: Array, proof: Mapping[str, Any]) -> float:
        """Try a channel together with a proof; return its upper bound, inf if it is not valid."""
        ends = self._ends(channel, proof)
        if ends is None and proof:
            ends, proof = self._ends(channel, {}), {}
        if ends is None:
            return math.inf
        if self.channel is None or ends[1] < self.upper:
            self.channel, self.upper = channel, ends[1]
        if ends[0] > self.lower:
            self.lower, self.proof = ends[0], proof
        return ends[1]

    def _ends(self, channel: Array, proof: Mapping[str, Any]) -> tuple[float, float] | None:
        """Return the bounds that the checker proves, or None if it proves nothing."""
        try:
            return self._prove(self._stored, self._witness(channel), proof)
        except CertificateError:
            return None

    def _witness(self, channel: Array) -> dict[str, Any]:
        cost = (channel * self._distortion).sum(axis=1)
        return {"channel": channel.tolist(), "supports": supports(self._sources, cost)}


def labeled_channel(
    rows: Array, inputs: tuple[Hashable, ...], outputs: tuple[Hashable, ...]
) -> Channel:
    """Return a channel; rows of whole numbers, which are as meant, are divided here."""
    sums = rows.sum(axis=1, keepdims=True)
    return Channel(rows if np.allclose(sums, 1.0) else rows / sums, inputs, outputs)


def constant(channels: Iterable[Array], mixture: Mixture | None = None) -> Attempt:
    """Return an attempt at epsilon 0: outputs that ignore the input, and nothing to prove."""
    return Attempt(channels, mixture=mixture)


def flat_channels(law: Array, rows: int) -> Iterator[Array]:
    """Yield the channel whose rows are all this one, also with near fractions as whole numbers.

    Rows that do not sum to 1 are divided by their sums, so that whole numbers say thirds exactly.
    """
    yield np.tile(law, (rows, 1))
    near = [Fraction(p).limit_denominator(WHOLE) for p in law.tolist()]
    scale = math.lcm(*(p.denominator for p in near))
    if scale < 1 << 53 and any(near):
        yield np.tile([float(p * scale) for p in near], (rows, 1))


def support_mixture(sources: SourceSet) -> Mixture:
    """Return a mixture of positive weight on every distribution and polytope of a set."""
    bodies = sources.polytopes
    members = tuple((1.0, body.member(body.center)) for body in bodies)
    law = sources.points.sum(axis=0)
    law = law + sum(
        (np.array([float(p) for p in exact]) for _, exact in members), np.zeros(len(law))
    )
    return Mixture(law / law.sum(), np.ones(len(sources.points)), members)


def unit_law(sources: SourceSet, place: int) -> Mixture:
    """Return one of the points of a set as a mixture."""
    weights = np.zeros(len(sources.points))
    weights[place] = 1.0
    nothing = tuple((0.0, None) for _ in sources.polytopes)
    return Mixture(sources.points[place], weights, nothing)


def summing_to(potentials: Array, total: float) -> list[float | str]:
    """Return the potentials with what rounding left of `total` on the largest: exact in sum."""
    place = int(potentials.argmax())
    rest = sum(map(fraction, np.delete(potentials, place).tolist()), Fraction(0))
    values: list[float | str] = potentials.tolist()
    values[place] = str(fraction(total) - rest)
    return values
