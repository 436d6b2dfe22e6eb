"""Ball arithmetic: real numbers as intervals that provably hold the exact value.

Everything is computed with python-flint's `arb` at `PRECISION` bits. A comparison of two balls is
true only if it holds for every pair of points in them, so a test that passes is a proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import flint
from flint import arb, fmpz
from numpy.typing import ArrayLike

from cvxleak.errors import CertificateError
from cvxleak.model.channel import integer_weights

__all__ = [
    "PRECISION",
    "divergence",
    "entropy",
    "log_sum_exp",
    "mutual_information",
    "normalized",
    "precision",
    "round_down",
    "round_up",
    "x_log_x",
]

PRECISION = 128
"""Working precision in bits."""


@contextmanager
def precision(bits: int = PRECISION) -> Iterator[None]:
    """Run a block at `bits` bits of working precision."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def round_down(ball: arb) -> float:
    """Return the largest convenient float that is certainly not above the ball."""
    if not ball.is_finite():
        return -math.inf
    return math.nextafter(float(ball.lower()), -math.inf)


def round_up(ball: arb) -> float:
    """Return the smallest convenient float that is certainly not below the ball."""
    if not ball.is_finite():
        return math.inf
    return math.nextafter(float(ball.upper()), math.inf)


def normalized(weights: ArrayLike) -> list[arb]:
    """Return the exact floats `weights` divided by their exact sum, as balls.

    Raises
    ------
    CertificateError
        A negative or non-finite weight, or a sum of zero.
    """
    values = [float(weight) for weight in weights]  # pyright: ignore[reportGeneralTypeIssues]
    if not values or not all(math.isfinite(value) and value >= 0 for value in values):
        raise CertificateError("weights must be finite and non-negative")
    integers = integer_weights(values)
    total = sum(integers)
    if total == 0:
        raise CertificateError("weights sum to zero")
    return [arb(fmpz(integer)) / arb(fmpz(total)) for integer in integers]


def x_log_x(x: arb) -> arb:
    """Return x log x, with 0 log 0 = 0, for a ball known to hold a number in [0, inf)."""
    if x == 0:
        return arb(0)
    if x > 0:
        return x * x.log()
    # The ball touches 0: x log x lies between -1/e (or its value at a small end) and its value at
    # the upper end; on [0, u] with u <= 1/e it is decreasing from 0 to u log u.
    upper = arb(x.upper())
    if not upper > 0:
        return arb(0)
    least = upper * upper.log() if upper < arb("0.36") else -arb(-1).exp()
    most = upper * upper.log() if upper > 1 else arb(0)
    return least.union(most)


def entropy(probabilities: Iterable[arb]) -> arb:
    """Return H(p) = -sum p log p."""
    total = arb(0)
    for p in probabilities:
        total -= x_log_x(p)
    return total


def divergence(p: Sequence[arb], q: Sequence[arb]) -> arb:
    """Return D(p || q) = sum p log(p / q), infinite where p > 0 = q."""
    total = arb(0)
    for a, b in zip(p, q, strict=True):
        if a == 0:
            continue
        if not b > 0:
            return arb("inf")
        total += x_log_x(a) - a * b.log()
    return total


def mutual_information(joint: Sequence[Sequence[arb]]) -> arb:
    """Return I(A;Y) of a joint distribution given by its rows s_{a,y}."""
    total = arb(0)
    for row in joint:
        for s in row:
            total += x_log_x(s)
        total -= x_log_x(_sum(row))
    for column in zip(*joint, strict=True):
        total -= x_log_x(_sum(column))
    return total


def log_sum_exp(terms: Sequence[arb]) -> arb:
    """Return log sum exp(terms)."""
    top = max(float(term.mid()) for term in terms)
    total = arb(0)
    for term in terms:
        total += (term - top).exp()
    return total.log() + top


def _sum(terms: Iterable[arb]) -> arb:
    total = arb(0)
    for term in terms:
        total += term
    return total
