"""Clopper and Pearson's interval for a probability, proved in ball arithmetic to be wide enough."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from scipy.special import betainccinv, betaincinv

from cvxleak.kernel.numbers import ball, precision

__all__ = ["LARGEST", "clopper_pearson"]

LARGEST = 1 << 53
"""Counts above this are not exact as floats."""

STEPS = [10.0**-digits for digits in range(13, 0, -2)]
"""By which factors an endpoint is moved outward, one after the other, until it is proved."""


@lru_cache(maxsize=1 << 16)
def clopper_pearson(count: int, total: int, tail: Fraction) -> tuple[float, float]:
    """Return a probability that is too small to see `count` or more of `total`, and one too large.

    P(Binomial(total, low) >= count) <= tail and P(Binomial(total, high) <= count) <= tail, for both
    numbers as written: the tails, regularized incomplete beta functions, are evaluated in balls.
    Clopper and Pearson, Biometrika 26 (1934).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cvxleak.mechanisms.binomial import clopper_pearson
    >>> low, high = clopper_pearson(70, 100, Fraction(1, 40))
    >>> round(low, 6), round(high, 6)
    (0.600185, 0.787594)
    >>> clopper_pearson(0, 0, Fraction(1, 40))
    (0.0, 1.0)
    """
    others, low, high = total - count, 0.0, 1.0
    with precision():
        most = ball(tail)
        if count:
            near = float(betaincinv(count, others + 1, float(tail)))
            ends = (near * (1 - step) for step in STEPS)
            low = next((p for p in ends if ball(p).beta_lower(count, others + 1, 1) <= most), 0.0)
        if others:
            near = float(betainccinv(count + 1, others, float(tail)))
            ends = (min(near * (1 + step), 1.0) for step in STEPS)
            high = next(
                (p for p in ends if (1 - ball(p)).beta_lower(others, count + 1, 1) <= most),
                1.0,
            )
    return low, high
