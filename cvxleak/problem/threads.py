"""One BLAS thread while a search runs: its matrices are small, and waiting threads slow it down."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@cache
def _controller() -> ThreadpoolController:
    """Look for the BLAS libraries: NumPy and SciPy have each loaded theirs by now."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS uses one thread.

    The threads of a product of small matrices wait for each other longer than they work. Two cells
    and the total of 12 people at 97 % of log|X|, beside other programs on two cores: 12 s of
    processor time with one thread, 48 s with two.
    """
    return _controller().limit(limits=1, user_api="blas")
