"""Numbers in words that agree with them. The command line's help loads it, so it has no NumPy."""

from __future__ import annotations

import math

__all__ = ["are", "counted", "whole_text"]


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is due.

    Examples
    --------
    >>> from cvxleak.core.wording import are, counted
    >>> [f"{counted(n, 'row')} {are(n)} needed" for n in (1, 2)]
    ['1 row is needed', '2 rows are needed']
    """
    return f"{whole_text(count)} {noun}{'' if count == 1 else 's'}"


def are(count: int) -> str:
    """Return the verb that goes with a number."""
    return "is" if count == 1 else "are"


def whole_text(number: int) -> str:
    """Return a short text of an integer: Python refuses to print more than 4300 digits."""
    if abs(number) < 10**18:
        return str(number)
    return f"about {'-' if number < 0 else ''}10^{math.log10(abs(number)):.0f}"
