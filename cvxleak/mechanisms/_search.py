"""Shared by the inverse formulas: the check of the leakage, and the search for a parameter."""

from __future__ import annotations

import math
from collections.abc import Callable

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import real_number, short

__all__ = ["smallest", "wanted_leakage"]


def wanted_leakage(leakage: float, k: int, *, attained: bool = True) -> float:
    """Return a wanted leakage in nats, or say that k outputs cannot leak as much.

    The largest leakage is log k. Where it is not `attained`, both it and 0 are refused.
    """
    budget = real_number(leakage, "leakage", 0.0, open_low=not attained)
    most = math.log(k)
    if budget > most * (1 + 1e-12) or (budget >= most and not attained):
        bound = "at most" if attained else "less than"
        raise ValidationError(
            f"leakage: found {short(leakage)}; {k} outputs leak {bound} log {k} = {most:.6f} nats"
        )
    return budget


def smallest(admissible: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest float in (low, high] that is admissible.

    `admissible` must not become false again as its argument grows, and must hold at `high`.
    Bisection down to neighboring floats costs some dozens of calls and ends on the safe side.
    """
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return high
        if admissible(middle):
            high = middle
        else:
            low = middle
