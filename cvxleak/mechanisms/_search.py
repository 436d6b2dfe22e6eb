"""The one root search that the inverse formulas share."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["smallest"]


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
