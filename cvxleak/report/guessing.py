"""How far a leakage can raise the chance of guessing a record: bounds, not attained values.

Let A be the record, Y the output and I(A;Y) <= L nats. Before Y is seen, the best guess is right
with probability v = max_a p(a); after, with probability u = sum_y max_a p(a, y). The event "the
guess made after seeing Y is right" has probability u under the joint distribution of (A, Y) and at
most v under the product of the marginals, where the guess knows nothing about A. Relative entropy
does not grow when only an event is looked at, so, with the binary divergence d(u||v) = u log(u/v) +
(1 - u) log((1 - u) / (1 - v)),

    d(u||v) <= I(A;Y) <= L.

For v = 1/k this is Fano's inequality, log k - h(u) - (1 - u) log(k - 1) <= I(A;Y); and since
d(u||v) >= 2 (u - v)^2 (Pinsker's inequality), u - v <= sqrt(L / 2) as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import root_scalar
from scipy.special import rel_entr

from cvxleak.core.validation import SIZE_LIMIT, real_number, whole_number

__all__ = ["GuessRise", "guess_rise"]

SLACK = 1e-9
"""Added to what a root finder returns, so that rounding leaves it a bound."""

TINY = 1e-9
"""Leakage in nats below which rounding swamps the divergence; there the two bounds agree."""


@dataclass(frozen=True)
class GuessRise:
    """Two upper bounds on how much the chance of a right guess can rise.

    Attributes
    ----------
    fano : float
        From the binary divergence (Fano's inequality for any prior); never above `pinsker`.
    pinsker : float
        min( sqrt(L / 2), 1 - 1/k ).

    Examples
    --------
    >>> from cvxleak.report import guess_rise
    >>> rise = guess_rise(0.02, k=2)
    >>> round(rise.fano, 4), round(rise.pinsker, 4)
    (0.0997, 0.1)
    """

    fano: float
    pinsker: float


def guess_rise(leakage: float, k: int) -> GuessRise:
    """Bound how much the chance of guessing a record can rise, if the leakage is at most `leakage`.

    For every prior on a record of k values and every channel with I(A;Y) <= L, the chance of a
    right guess before, v >= 1/k, and after, u, satisfy u - v <= r, where r is the largest number
    with min over v in [1/k, 1 - r] of d(v + r || v) <= L.

    Parameters
    ----------
    leakage : float
        L in nats, at least 0; may be inf.
    k : int
        Number of values that the record can have.

    Returns
    -------
    GuessRise

    Raises
    ------
    ValidationError
        An argument is outside its range.

    Notes
    -----
    Cover and Thomas, Elements of Information Theory (2nd ed.), Theorems 2.10.1 (Fano) and 11.6.1
    (Pinsker); the derivation that joins them is at the top of this module.

    Examples
    --------
    A binary symmetric channel with flip 0.1 leaks log 2 - h(0.1) under the uniform prior and raises
    the guess by exactly 0.4, which is what Fano's inequality allows:

    >>> from math import log
    >>> from cvxleak.report import guess_rise
    >>> leakage = log(2) + 0.1 * log(0.1) + 0.9 * log(0.9)
    >>> rise = guess_rise(leakage, 2)
    >>> round(rise.fano, 6), round(rise.pinsker, 6)
    (0.4, 0.42899)
    """
    amount = real_number(leakage, "leakage", 0.0)
    k = whole_number(k, "k", 1, SIZE_LIMIT)
    most = 1.0 - 1.0 / k
    pinsker = min(math.sqrt(amount / 2.0), most)
    if amount >= math.log(k) or amount <= TINY:
        return GuessRise(pinsker, pinsker)
    found = root_scalar(lambda r: _least_divergence(r, k) - amount, bracket=(0.0, most), xtol=1e-13)
    return GuessRise(min(found.root + SLACK, pinsker), pinsker)


def _least_divergence(rise: float, k: int) -> float:
    """Return the minimum over v in [1/k, 1 - rise] of d(v + rise || v), which is convex in v."""
    low, high = 1.0 / k, 1.0 - rise
    if rise <= 0.0:
        return 0.0

    def slope(v: float) -> float:
        u = v + rise
        return math.log(u * (1 - v) / (v * (1 - u))) - rise / (v * (1 - v))

    # The slope grows to infinity as v + rise tends to 1.
    inside = high - 1e-12
    if low < inside and slope(low) < 0.0:
        low = root_scalar(slope, bracket=(low, inside)).root if slope(inside) > 0.0 else inside
    u = min(low + rise, 1.0)
    return float(rel_entr(u, low) + rel_entr(1.0 - u, 1.0 - low))
