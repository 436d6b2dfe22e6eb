"""Simultaneous intervals around the frequencies of a sample."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
from scipy.special import betainccinv, betaincinv

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array, label_tuple, real_number, short, whole_number
from cvxleak.mechanisms.binomial import LARGEST, clopper_pearson

__all__ = ["Interval", "confidence_box"]

Interval = Literal["clopper-pearson", "dirichlet"]

SLIP = 1e-11
"""The quantiles are good to about twelve digits; a box is moved outward by that."""


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
