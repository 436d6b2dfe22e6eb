"""What one file may ask for, counted before it is expanded.

A short file can stand for very much: runs of equal records, compressed arrays, trees. Each of the
totals below is over the whole file. Outside of `limited` nothing is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["LIMITS", "RefusedError", "charge", "choices", "few", "limited", "need"]


class RefusedError(Exception):
    """A statement or a proof that the kernel does not accept; the message says why."""


def need(holds: object, why: str) -> None:
    """Refuse unless something is certain."""
    if not holds:
        raise RefusedError(why)


def few(found: int, most: int, what: str) -> None:
    """Refuse more things than are gone through."""
    number = found if found < 1 << 64 else "very many"
    need(found <= most, f"found {number} {what}; at most {most} are gone through")


LIMITS = {
    "records' values": 1 << 24,
    "bytes of packed arrays": 1 << 30,
    "bytes of numbers": 1 << 30,
    "float operations": 1 << 35,
    "ball operations": 1 << 28,
}
"""Most of each: a gigabyte, and some minutes of either kind of operation."""

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


def charge(what: str, amount: int) -> None:
    """Count what is about to be expanded; refuse a file that asks for too much."""
    spent = _spent.get()
    if spent is not None:
        spent[what] += amount
        need(spent[what] <= LIMITS[what], f"the file asks for more than {LIMITS[what]} {what}")


def choices(n: int, k: int) -> int:
    """Return how many sets of k of n things there are, or a number that every budget refuses.

    There are as many as of n - k things, and at least as many as of 30 if both are more, which is
    above 2^56. The number itself could take longer than all that is charged.
    """
    return math.comb(n, min(k, n - k, 30))
