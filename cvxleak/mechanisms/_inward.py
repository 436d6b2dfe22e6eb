"""Rounding towards privacy: levels that leave room for the rounding of a channel's entries."""

from __future__ import annotations

__all__ = ["inward"]

FURTHEST = 700.0
"""Exponents beyond it do not occur: such probabilities are stored as 1e-300."""


def inward(epsilon: float, reach: float) -> float:
    """Return a level for which a channel of floats keeps `epsilon`, taken as exact numbers.

    With u = 2^-53, entries of the form c exp(-z), z <= `reach`, are off by a factor of 1 + (2 z +
    8) u at most: z comes from two rounded operations, the exponential is off by less than two units
    in the last place, and a product, a quotient and the decimal that stands for a float add a half
    each. A row's sum, by which it is divided if it is not exactly 1, is off by no larger factor. So
    the logarithm of the ratio of two rows' entries is off by 8 (reach + 4) u at most, and the
    level itself by 4 u of it. The difference made here is 8 u (8 + epsilon + reach).

    Examples
    --------
    >>> import math
    >>> from cvxleak.mechanisms._inward import inward
    >>> 0 < 1 - inward(1.0, 1.0) < 1e-14, inward(0.0, 0.0), inward(math.inf, math.inf)
    (True, 0.0, inf)
    """
    return max(epsilon * (1 - 2.0**-50) - 2.0**-50 * (8 + min(reach, FURTHEST)), 0.0)
