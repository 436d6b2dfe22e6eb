"""`Watch`: whoever looks on while an audit runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cvxleak.core.errors import SolveInterrupted
from cvxleak.core.validation import instance
from cvxleak.problem.bound import Bound

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

    def stop(self) -> None:
        """Take note that Ctrl-C ended a search; what it reached will be reported."""
        self.interrupted = True


def watching(watch: Watch | None) -> Watch:
    """Return who watches, or somebody who does nothing."""
    return Watch() if watch is None else instance(watch, Watch, "watch")


def solved(watch: Watch, what: str, solve: Callable[..., Bound], **options: Any) -> Bound:
    """Return what a solve finds, announced to the watch as the work on `what`.

    After Ctrl-C this is the bracket reached, if the watch reports it, and later solves have no time
    but for their first bracket.
    """
    if watch.interrupted:
        options["time_limit"] = 0.0
    watch.begin(what)
    try:
        return solve(**options)
    except SolveInterrupted as error:
        if error.bound is None or not (watch.interrupted or watch.reports_interrupts):
            raise
        watch.stop()
        return error.bound
    finally:
        watch.end()
