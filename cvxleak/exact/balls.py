"""Ball arithmetic: real numbers as intervals that provably hold the exact value.

Everything is computed with python-flint's `arb` at `PRECISION` bits. A comparison of two balls is
true only if it holds for every pair of points in them, so a test that passes is a proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import flint
import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import ratio, written_law

__all__ = [
    "PRECISION",
    "entropy",
    "log_sum_exp",
    "mutual_information",
    "normalized",
    "number",
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
    return 0.0 if ball == 0 else math.nextafter(float(ball.lower()), -math.inf)


def round_up(ball: arb) -> float:
    """Return the smallest convenient float that is certainly not below the ball."""
    if not ball.is_finite():
        return math.inf
    # An exact zero stays one.
    return 0.0 if ball == 0 else math.nextafter(float(ball.upper()), math.inf)


def number(value: float) -> arb:
    """Return a ball that holds a finite number as written: 0.3 is three tenths.

    Examples
    --------
    >>> from cvxleak.exact import balls
    >>> 10 * balls.number(0.3) == 3, 10 * balls.number(0.3) > 3
    (False, False)
    """
    return arb(fmpq(*ratio(value)))


def normalized(weights: Sequence[float] | NDArray[np.float64]) -> list[arb]:
    """Return balls that hold the law that numbers are (`cvxleak.core.numbers`); 0 stays exactly 0.

    Raises
    ------
    CertificateError
        A negative or non-finite weight, or a sum of zero.

    Examples
    --------
    >>> from cvxleak.exact import balls
    >>> [float(share) for share in balls.normalized([1.0, 3.0])]
    [0.25, 0.75]
    """
    values = weights.tolist() if isinstance(weights, np.ndarray) else list(weights)
    if not values or not all(math.isfinite(value) and value >= 0 for value in values):
        raise CertificateError("weights must be finite and non-negative")
    shares = [arb(value) for value in written_law(values) or values]
    total = _sum(shares)
    if not total > 0:
        raise CertificateError("weights sum to zero")
    return [share / total for share in shares]


def x_log_x(x: arb) -> arb:
    """Return x log x, with 0 log 0 = 0, for a ball known to hold a number in [0, inf)."""
    if x > 0:
        return x * x.log()
    if x == 0:
        return arb(0)
    if not (x.is_finite() and x.upper() >= 0):
        return arb.nan()
    # The ball touches 0. On [0, u] x log x is at most max(0, u log u); it falls until 1/e = 0.3678,
    # where it is -1/e, and rises from there.
    upper = x.upper()
    if upper == 0:
        return arb(0)
    end = upper * upper.log()
    least = end if upper < 0.36 else -arb(-1).exp()
    return least.union(end.max(arb(0)))


def entropy(probabilities: Iterable[arb]) -> arb:
    """Return H(p) = -sum p log p."""
    total = arb(0)
    for p in probabilities:
        total -= x_log_x(p)
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
    # Exponents of balls are whole numbers of any size: e^x neither overflows nor vanishes for any
    # x up to 10^19 or so, and for larger ones the answer is wide, but holds.
    total = arb(0)
    for term in terms:
        total += term.exp()
    return total.log()


def _sum(terms: Iterable[arb]) -> arb:
    total = arb(0)
    for term in terms:
        total += term
    return total
