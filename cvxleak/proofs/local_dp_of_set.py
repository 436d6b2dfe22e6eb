"""Certificate kind ``local-dp-of-set``: local differential privacy over a set of channels.

problem: {"lower": l, "upper": u}, all channels between them; witness: {"most_private": Q,
"least_private": Q}; proof: {"level": f, "a": a, "b": b}, or no parts. The claim, in nats, is that
no member's epsilon is below the lower bound, and none above the upper bound.

Upper bound: each row can be any distribution between its bounds, independently of the others, so
the bound is the largest

    log( max q(y|x) / min q(y|x') ) over x != x' and y,

with max q(y|x) = min(u_xy, 1 - sum of the other l) and min q(y|x) = max(l_xy, 1 - sum of the other
u). Lower bound: the log of f. A member has log f or less if and only if t_y <= q(y|x) <= f t_y for
some t >= 0. For any a, b >= 0 with sum_x b_xy <= sum_x a_xy (b is scaled down to it) it would be

    sum_xy (b_xy / f - a_xy) q(y|x) <= sum_xy b_xy (q(y|x) / f - t_y) + a_xy (t_y - q(y|x)) <= 0,

so no member has it if the least value of the left side over all rows is positive. The lower bound
is infinite if every member has an output that it shows for one input, and never for another.

The epsilons of the witness's members (up to rounding) show how near the bounds are. Everything is
rational arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import mul, sub
from typing import Any

from flint import fmpq

from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.model import Channel, ChannelSet
from cvxleak.proofs import reading
from cvxleak.proofs.exact import log_above, log_below, rational

__all__ = ["Boxes", "about", "prove"]

Parts = Mapping[str, Any]
Row = Sequence[fmpq]
Table = list[list[fmpq]]

MEMBERS = ("most_private", "least_private")


def prove(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the epsilons of all members, in nats."""
    reading.parts(problem, {"lower", "upper"}, "the problem")
    reading.parts(witness, set(MEMBERS), "the witness")
    try:
        channels = ChannelSet(problem["lower"], problem["upper"])
        members = [Channel(witness[name]) for name in MEMBERS]
    except ValidationError as error:
        raise CertificateError(f"the set of channels: {error}") from error
    if not all(member in channels for member in members):
        raise CertificateError("the witness: a channel is not in the set")
    boxes = Boxes(channels)
    if boxes.told:
        reading.parts(proof, set(), "the proof")
        return math.inf, math.inf
    place = boxes.worst()
    upper = boxes.epsilon(place) if place else 0.0
    if not proof:
        return 0.0, upper
    reading.parts(proof, {"level", "a", "b"}, "the proof")
    level = rational(reading.number(proof["level"], "the level"))
    if not level >= 1:
        raise CertificateError("the level must be at least 1")
    a, b = (_multipliers(proof[name], channels.shape) for name in ("a", "b"))
    if not boxes.exclude(level, a, b):
        raise CertificateError("the proof: the multipliers do not exclude the claimed level")
    return log_below(level), upper


def about(problem: Parts) -> str:
    """Say what a problem that `prove` has read is about."""
    rows = problem["lower"]
    return f"every channel in a set, with {len(rows)} inputs and {len(rows[0])} outputs"


class Boxes:
    """The bounds of a set's rows, exactly, and the bounds of each probability.

    Where the lower or upper bounds of a row sum to 1 up to rounding, they are the row itself.
    """

    def __init__(self, channels: ChannelSet) -> None:
        self.low, self.high = (
            [[rational(x) for x in row] for row in ends.tolist()]
            for ends in (channels.lower, channels.upper)
        )
        both = [list(zip(*ends, strict=True)) for ends in zip(self.low, self.high, strict=True)]
        self.most = [
            [max(x, min(u, 1 - total + x)) for x, u in ends]
            for total, ends in zip(map(_sum, self.low), both, strict=True)
        ]
        self.least = [
            [min(u, max(x, 1 - total + u)) for x, u in ends]
            for total, ends in zip(map(_sum, self.high), both, strict=True)
        ]

    @property
    def told(self) -> bool:
        """Whether every member shows some output for one input and never for another."""
        columns = zip(zip(*self.least, strict=True), zip(*self.most, strict=True), strict=True)
        return any(max(least) > 0 and min(most) == 0 for least, most in columns)

    def worst(self) -> tuple[int, int, int] | None:
        """Return x, x' and y where max q(y|x) / min q(y|x') is largest; None if it is at most 1."""
        found: list[tuple[bool, fmpq, tuple[int, int, int]]] = []
        inputs = range(len(self.low))
        for y in range(len(self.low[0])):
            # The pair is among the two largest and the two smallest.
            first = sorted(inputs, key=lambda x, y=y: -self.most[x][y])[:2]
            second = sorted(inputs, key=lambda x, y=y: self.least[x][y])[:2]
            for x, other in ((x, other) for x in first for other in second if x != other):
                p, r = self.most[x][y], self.least[other][y]
                if p > r:
                    found.append((not r, p / r if r else p, (x, other, y)))
        return max(found)[2] if found else None

    def epsilon(self, place: tuple[int, int, int]) -> float:
        """Return the log of the ratio there, rounded up."""
        x, other, y = place
        least = self.least[other][y]
        return log_above(self.most[x][y] / least) if least else math.inf

    def exclude(self, level: fmpq, a: Table, b: Table) -> bool:
        """Whether these multipliers prove that no member has an epsilon of log(level) or less."""
        columns = zip(zip(*a, strict=True), zip(*b, strict=True), strict=True)
        scales = [_scale(_sum(own), _sum(other)) / level for own, other in columns]
        total = fmpq(0)
        for low, high, row_a, row_b in zip(self.low, self.high, a, b, strict=True):
            prices = [s * v - u for s, u, v in zip(scales, row_a, row_b, strict=True)]
            total += _least(low, high, prices)
        return total > 0


def _least(low: Row, high: Row, prices: Row) -> fmpq:
    """Return the least <q, prices> of a row, which the cheapest outputs fill."""
    left, value = 1 - _sum(low), _sum(map(mul, low, prices))
    for price, room in sorted(zip(prices, map(sub, high, low), strict=True)):
        taken = max(min(room, left), fmpq(0))
        left, value = left - taken, value + taken * price
    return value


def _scale(own: fmpq, other: fmpq) -> fmpq:
    """Return the factor that scales the sum of b in a column down to that of a or less."""
    return own / other if own < other else fmpq(1)


def _sum(numbers: Any) -> fmpq:
    return sum(numbers, fmpq(0))


def _multipliers(values: Any, shape: tuple[int, int]) -> Table:
    if not isinstance(values, list) or len(values) != shape[0]:
        raise CertificateError(f"the multipliers: expected {shape[0]} rows")
    read = [reading.numbers(row, "the multipliers", shape[1]) for row in values]
    reading.charge_fractions([x for row in read for x in row])
    rows = [[rational(x) for x in row] for row in read]
    if any(x < 0 for row in rows for x in row):
        raise CertificateError("the multipliers must not be negative")
    return rows
