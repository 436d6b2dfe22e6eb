"""`Watch`: whoever looks on while an audit runs."""

from __future__ import annotations

from collections.abc import Callable

from cvxleak._validation import instance
from cvxleak.errors import SolveInterrupted
from cvxleak.result import Bound

__all__ = ["Watch", "solved", "watching"]


class Watch:
    """Whoever looks on while an audit runs; this one does not.

    Attributes
    ----------
    interrupted : bool
        Once true, what is left to search takes no more time than its first bracket needs.
    reports_interrupts : bool
        Whether a search that Ctrl-C ends is reported with the bracket reached; if not, and
        `interrupted` is not true either, `SolveInterrupted` is raised.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.report import Watch, capacity_report
    >>> class Printing(Watch):
    ...     def begin(self, what: str) -> None:
    ...         print("now:", what)
    >>> report = capacity_report(binary_symmetric(0.1), watch=Printing())
    now: capacity
    """

    interrupted: bool = False
    reports_interrupts: bool = False

    def begin(self, what: str) -> None:
        """Take note that the work on `what` begins."""

    def progress(self, lower: float, upper: float, nodes: int) -> None:
        """Take note of a bracket, in nats; a KeyboardInterrupt from here ends the search."""

    def end(self) -> None:
        """Take note that the work is done."""


def watching(watch: Watch | None) -> Watch:
    """Return who watches, or somebody who does nothing."""
    return Watch() if watch is None else instance(watch, Watch, "watch")


def solved(watch: Watch, solve: Callable[[], Bound]) -> Bound:
    """Return what a solve finds; after Ctrl-C the bracket reached, if the watch reports it."""
    try:
        return solve()
    except SolveInterrupted as error:
        wanted = watch.interrupted or watch.reports_interrupts
        if not wanted or error.bound is None:
            raise
        return error.bound
