"""Ball arithmetic: real numbers as intervals that provably hold the exact value.

Everything is computed with python-flint's `arb` at `PRECISION` bits. A comparison of two balls is
true only if it holds for every pair of points in them, so a test that passes is a proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

import flint
import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import ratio, written_law

__all__ = [
    "PRECISION",
    "cross_entropy",
    "dot",
    "entropy",
    "largest",
    "least",
    "log_sum_exp",
    "logarithms",
    "mutual_information",
    "normalized",
    "number",
    "precision",
    "round_down",
    "round_up",
    "soft_maximum",
    "total",
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
    """Return balls around the distribution that numbers stand for; 0 stays exactly 0.

    See `cvxleak.core.numbers` for what numbers stand for.

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
    mass = total(shares)
    if not mass > 0:
        raise CertificateError("weights sum to zero")
    return [share / mass for share in shares]


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
    lowest = end if upper < 0.36 else -arb(-1).exp()
    return lowest.union(end.max(arb(0)))


def entropy(probabilities: Iterable[arb]) -> arb:
    """Return H(p) = -sum p log p."""
    return -total(x_log_x(p) for p in probabilities)


def cross_entropy(law: Sequence[arb], logs: Sequence[arb | None]) -> arb:
    """Return -sum p log t from the logarithms of t, None where t is 0; infinite if p needs it."""
    result = arb(0)
    for p, log_t in zip(law, logs, strict=True):
        if not p == 0:
            result -= arb.neg_inf() if log_t is None else p * log_t
    return result


def logarithms(law: Sequence[arb]) -> list[arb | None]:
    """Return log t for `cross_entropy`: None where it is not known to be finite."""
    return [t.log() if t > 0 else None for t in law]


def mutual_information(joint: Sequence[Sequence[arb]]) -> arb:
    """Return I(A;Y) of a joint distribution given by its rows s_{a,y}."""
    cells = -total(entropy(row) for row in joint)
    return cells + entropy(map(total, joint)) + entropy(map(total, zip(*joint, strict=True)))


def log_sum_exp(terms: Sequence[arb]) -> arb:
    """Return log sum exp(terms)."""
    # Exponents of balls are whole numbers of any size: e^x neither overflows nor vanishes for any
    # x up to 10^19 or so. For larger ones the answer is wide, but still contains the value.
    return total(term.exp() for term in terms).log()


def soft_maximum(terms: Sequence[arb], scale: arb, logs: Sequence[arb] | None = None) -> arb:
    """Return scale log sum_i exp(terms_i / scale + logs_i), or the largest term if scale is 0."""
    if scale == 0:
        return largest(terms)
    if logs is None:
        return scale * log_sum_exp([term / scale for term in terms])
    return scale * log_sum_exp([x / scale + m for x, m in zip(terms, logs, strict=True)])


def dot(one: Iterable[arb], other: Iterable[arb]) -> arb:
    """Return the inner product."""
    return total(a * b for a, b in zip(one, other, strict=True))


def total(terms: Iterable[arb]) -> arb:
    """Return the sum."""
    return sum(terms, arb(0))


def largest(values: Iterable[arb]) -> arb:
    """Return the largest of some balls."""
    return reduce(arb.max, values)


def least(values: Iterable[arb]) -> arb:
    """Return the least of some balls."""
    return reduce(arb.min, values)
