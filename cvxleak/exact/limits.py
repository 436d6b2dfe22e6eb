"""Limits on the work that one file may cause the checker, applied before anything is expanded.

A certificate may come from anyone, and a short file can stand for very much: runs of equal
records, compressed arrays, trees, groups of records. The totals are over the whole file, and over
all certificates of a list together, so that many small pieces cannot add up to more than the limit.
Outside of `verify` nothing is limited here, because a search knows what it asked for.

The third total counts steps, pieces of work of about a microsecond each. Steps that correspond to
the file's own length do not count: the rows of a mechanism that the file writes out, and the leaves
of a tree, as long as the file has a character for each of their numbers. Trees that a search found
have about four characters for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import ExactFloat, as_written, ratio

__all__ = [
    "LIMITS",
    "charge",
    "charge_fractions",
    "charge_records",
    "limited",
]

LIMITS = {"values in runs": 1 << 24, "bytes of packed arrays": 1 << 30, "steps": 1 << 27}
"""Most of each that one file may ask for.

Four million binary records, which have two values and two contributions each; a gigabyte; and some
two minutes.
"""

ENTRY = 16
"""Steps that an entry of a lumped problem counts for: in balls it takes 80 bytes."""

_spent: ContextVar[dict[str, int] | None] = ContextVar("spent", default=None)


@contextmanager
def limited() -> Iterator[None]:
    """Count the totals of one file; a nested block belongs to the outer one's file."""
    if _spent.get() is not None:
        yield
        return
    token = _spent.set(dict.fromkeys(LIMITS, 0))
    try:
        yield
    finally:
        _spent.reset(token)


def charge(what: str, amount: int, why: str) -> None:
    """Count what is about to be expanded.

    Raises
    ------
    CertificateError
        The file asks for more than is allowed, in all.

    Examples
    --------
    >>> from cvxleak.exact.limits import charge, limited
    >>> from cvxleak.core.errors import CertificateError
    >>> with limited():
    ...     charge("values in runs", 10_000_000, "a space")
    ...     try:
    ...         charge("values in runs", 10_000_000, "a space")
    ...     except CertificateError as error:
    ...         print(error)
    a space: the file asks for 20000000 values in runs in all; at most 16777216 are allowed
    """
    spent = _spent.get()
    if spent is None:
        return
    total = spent[what] + amount
    if total > LIMITS[what]:
        # Python refuses to print integers of thousands of digits.
        found = str(total) if total < 10**18 else f"about 10^{math.log10(total):.0f}"
        raise CertificateError(
            f"{why}: the file asks for {found} {what} in all; at most {LIMITS[what]} are allowed"
        )
    spent[what] = total


def charge_records(data: Any) -> None:
    """Count the records of a stored query or mechanism, or of whatever has a space in it.

    A run stands for as many copies of its item as it says: an alphabet, a record's contributions,
    a distribution. Anything that is not a run is left for the reader to complain about.
    """
    if not isinstance(data, Mapping):
        return
    for key, value in data.items():
        if key in ("alphabets", "contributions", "laws") and isinstance(value, Sequence):
            runs = [run for run in value if isinstance(run, Sequence) and len(run) == 2]
            copies = sum(run[1] * max(_size(run[0]), 2) for run in runs if type(run[1]) is int)
            charge("values in runs", max(copies, 0), f"the runs of {key}")
        elif key == "matrix" and isinstance(value, list):
            for row in value:
                _charge_written(row)
        elif isinstance(value, Mapping):
            charge_records(value)


def charge_fractions(values: Sequence[float], name: str) -> None:
    """Count what it takes to find a common denominator, which may be far longer than the file."""
    if ExactFloat in set(map(type, values)):
        below = 1
        for value in values:
            below = math.lcm(below, ratio(value)[1])
            charge("steps", below.bit_length() ** 2 >> 20, f"{name}: fractions")


def _charge_written(row: Any) -> None:
    if isinstance(row, list) and any(isinstance(value, str) for value in row):
        try:
            numbers = [as_written(value) for value in row]
        except (TypeError, ValueError, OverflowError):
            return
        charge_fractions([x for x in numbers if math.isfinite(x)], "a matrix")


def _size(item: Any) -> int:
    """Return how many numbers and texts an item of a run holds."""
    if isinstance(item, list):
        return sum(map(_size, item))
    return 1
