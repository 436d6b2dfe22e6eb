"""Numbers as text, with words that agree. The command line's help loads it: it has no NumPy."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

__all__ = ["are", "between", "counted", "rounded", "whole_text"]


def between(low: int, high: int | None) -> str:
    """Say what the bounds of a whole number are.

    Examples
    --------
    >>> from cvxleak.core.wording import between
    >>> between(4, 7), between(5, 5), between(3, None)
    ('4 to 7', '5 exactly', 'at least 3')
    """
    if high is None:
        return f"at least {low}"
    return f"{low} to {high}" if low != high else f"{low} exactly"


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


def rounded(value: float, up: bool = False) -> str:
    """Return a number of at least 0 with four digits, rounded down, or up.

    Examples
    --------
    >>> from cvxleak.core.wording import rounded
    >>> rounded(0.123456), rounded(0.123456, up=True), rounded(float("inf"))
    ('0.1234', '0.1235', 'inf')
    """
    if math.isinf(value):
        return str(value)
    direction = ROUND_CEILING if up else ROUND_FLOOR
    return f"{float(Context(4, direction).create_decimal_from_float(value)):g}"
