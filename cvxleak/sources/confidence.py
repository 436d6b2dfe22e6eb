"""Intervals around the frequencies of a sample, which hold all together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from flint import arb, fmpq
from scipy.special import betainccinv, betaincinv

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array, label_tuple, real_number, short, whole_number
from cvxleak.exact import balls

__all__ = ["Interval", "clopper_pearson", "confidence_box"]

Interval = Literal["clopper-pearson", "dirichlet"]

LARGEST = 1 << 53
"""Counts past this are no floats any more."""

SLIP = 1e-11
"""The quantiles are good to about twelve digits; a box is moved outward by that."""

STEPS = [10.0**-digits for digits in range(13, 0, -2)]
"""How far an end is moved outward in turn, as a part of it, until it is proved."""


@lru_cache(maxsize=1 << 16)
def clopper_pearson(count: int, total: int, tail: Fraction) -> tuple[float, float]:
    """Return a probability that is too small to see `count` or more of `total`, and one too large.

    P(Binomial(total, low) >= count) <= tail and P(Binomial(total, high) <= count) <= tail, for both
    numbers as written: the tails, regularized incomplete beta functions, are evaluated in balls.
    Clopper and Pearson, Biometrika 26 (1934).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cvxleak.sources.confidence import clopper_pearson
    >>> low, high = clopper_pearson(70, 100, Fraction(1, 40))
    >>> round(low, 6), round(high, 6)
    (0.600185, 0.787594)
    >>> clopper_pearson(0, 0, Fraction(1, 40))
    (0.0, 1.0)
    """
    others, low, high = total - count, 0.0, 1.0
    with balls.precision():
        most = arb(fmpq(tail.numerator, tail.denominator))
        if count:
            near = float(betaincinv(count, others + 1, float(tail)))
            ends = (near * (1 - step) for step in STEPS)
            low = next(
                (p for p in ends if balls.number(p).beta_lower(count, others + 1, 1) <= most), 0.0
            )
        if others:
            near = float(betainccinv(count + 1, others, float(tail)))
            ends = (min(near * (1 + step), 1.0) for step in STEPS)
            high = next(
                (p for p in ends if (1 - balls.number(p)).beta_lower(others, count + 1, 1) <= most),
                1.0,
            )
    return low, high


def confidence_box(
    counts: Mapping[Any, int] | Any, level: float, method: Interval, pseudocount: float
) -> tuple[tuple[Hashable, ...], Array, Array]:
    """Return the labels, and lower and upper ends: what `SourceSet.from_counts` is made of.

    Raises
    ------
    ValidationError
        As for `SourceSet.from_counts`.

    Examples
    --------
    >>> from cvxleak.sources.confidence import confidence_box
    >>> labels, low, high = confidence_box({"yes": 70, "no": 30}, 0.9, "clopper-pearson", 0.5)
    >>> labels, low.round(3), high.round(3)
    (('yes', 'no'), array([0.6  , 0.212]), array([0.788, 0.4  ]))
    """
    if not hasattr(counts, "items"):
        raise ValidationError(
            f"counts: expected a mapping or a pandas Series, found {short(counts)}"
        )
    items = list(counts.items())
    if not items:
        raise ValidationError("counts: found no outcomes; at least one is needed")
    numbers = np.array(
        [whole_number(n, f"counts[{short(x)}]", 0, LARGEST) for x, n in items], float
    )
    if numbers.sum() == 0:
        raise ValidationError("counts: the total is 0; it must be positive")
    names = label_tuple([label for label, _ in items], len(items), "counts")
    missed = 1 - fraction(real_number(level, "level", 0, 1, open_low=True, open_high=True))
    tail = missed / (2 * len(items))
    if method == "clopper-pearson":
        total = int(numbers.sum())
        ends = [clopper_pearson(int(n), total, tail) for n in numbers]
        return names, *np.array(ends).T
    others = numbers.sum() - numbers
    if method == "dirichlet":
        prior = real_number(pseudocount, "pseudocount", 0, open_low=True)
        rest = others + prior * (len(items) - 1)
        if len(items) == 1:
            low = high = np.ones(1)
        else:
            low = betaincinv(numbers + prior, rest, float(tail))
            high = betainccinv(numbers + prior, rest, float(tail))
    else:
        raise ValidationError(
            f"method: found {short(method)}; allowed: 'clopper-pearson' and 'dirichlet'"
        )
    return names, np.clip(low * (1 - SLIP), 0, 1), np.clip(high * (1 + SLIP), 0, 1)
