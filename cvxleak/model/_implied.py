"""Constraints that leave out groups, or that say nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cvxleak.model._features import Linear

__all__ = ["may_be_positive", "not_implied", "unlike"]


def unlike(equations: Sequence[Linear]) -> list[Linear]:
    """Return the equations without those that say the same as an earlier one."""
    kept: list[Linear] = []
    for one in equations:
        if not any(_mean_of(one, other) == one.side for other in kept):
            kept.append(one)
    return kept


def not_implied(inequalities: Sequence[Linear], equations: Sequence[Linear]) -> list[Linear]:
    """Return the inequalities without those that a single equation implies."""

    def implied(one: Linear) -> bool:
        means = [_mean_of(one, equation) for equation in equations]
        return any(mean is not None and mean <= one.side for mean in means)

    return [one for one in inequalities if not implied(one)]


def _mean_of(one: Linear, equation: Linear) -> Fraction | None:
    """Return <C, w> if an equation determines it: if C is its coefficients, scaled and moved."""
    c, given = np.array(one.coefficients), np.array(equation.coefficients)
    low, high = int(given.argmin()), int(given.argmax())
    if given[low] == given[high]:
        return None
    # Mostly floats tell at once; what overflows is left to the exact comparison.
    with np.errstate(over="ignore", invalid="ignore"):
        slope = (c[high] - c[low]) / (given[high] - given[low])
        off = np.abs(c - c[low] - slope * (given - given[low])).max()
    if off > 1e-12 * np.abs(c).max():
        return None
    first, least = one.exact[low], equation.exact[low]
    rise = (one.exact[high] - first) / (equation.exact[high] - least)
    pairs = {*zip(one.exact, equation.exact, strict=True)}
    if any(x != first + rise * (y - least) for x, y in pairs):
        return None
    return first + rise * (equation.side - least)


def may_be_positive(coefficients: Sequence[Fraction], most: Fraction) -> NDArray[np.bool_]:
    """Return where <c, w> <= most lets w be positive: everywhere unless it is the least c."""
    least = min(coefficients)
    return np.array([c == least or least != most for c in coefficients])
