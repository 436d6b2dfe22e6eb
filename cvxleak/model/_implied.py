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
    first, least = one.exact[0], equation.exact[0]
    other = next((k for k, given in enumerate(equation.exact) if given != least), None)
    if other is None:
        return None
    rise = (one.exact[other] - first) / (equation.exact[other] - least)
    pairs = zip(one.exact, equation.exact, strict=True)
    if any(x != first + rise * (y - least) for x, y in pairs):
        return None
    return first + rise * (equation.side - least)


def may_be_positive(coefficients: Sequence[Fraction], most: Fraction) -> NDArray[np.bool_]:
    """Return where <c, w> <= most lets w be positive: everywhere unless it is the least c."""
    least = min(coefficients)
    return np.array([c == least or least != most for c in coefficients])
