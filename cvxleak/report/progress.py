"""`Progress`: what is told of the work on a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cvxleak.core.errors import SolveInterrupted
from cvxleak.core.validation import instance

__all__ = ["Progress", "as_progress", "solved"]

Found = TypeVar("Found")


class Progress:
    """What is told of the work on a report; this one keeps it to itself.

    Attributes
    ----------
    interrupted : bool
        Once true, what is left to search takes no more time than its first bracket needs.
    reports_interrupts : bool
        Whether a search that Ctrl-C ends is reported with the bracket reached; if not, and
        `interrupted` is not true either, `SolveInterrupted` is raised.
    unit : str
        That of the brackets that `update` is told of: "nats", or what is no amount of information.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.report import Progress, capacity_report
    >>> class Printing(Progress):
    ...     def begin(self, what: str) -> None:
    ...         print("now:", what)
    >>> report = capacity_report(binary_symmetric(0.1), progress=Printing())
    now: capacity
    """

    interrupted: bool = False
    reports_interrupts: bool = False
    unit: str = "nats"

    def begin(self, what: str) -> None:
        """Take note that the work on `what` begins."""

    def update(self, lower: float, upper: float, nodes: int) -> None:
        """Take note of a bracket, in `unit`; a KeyboardInterrupt from here ends the search."""

    def count(self, done: int, total: int) -> None:
        """Take note that so many parts are done; a KeyboardInterrupt from here ends the work."""

    def end(self) -> None:
        """Take note that the work is done."""

    def stop(self) -> None:
        """Take note that Ctrl-C ended a search; what it reached will be reported."""
        self.interrupted = True


def as_progress(progress: Progress | None) -> Progress:
    """Return what is told of the progress; by default it does nothing."""
    return Progress() if progress is None else instance(progress, Progress, "progress")


def solved(
    progress: Progress,
    what: str,
    solve: Callable[..., Found],
    /,
    unit: str = "nats",
    **options: Any,
) -> Found:
    """Return what a solve finds, announced as the work on `what`, whose brackets are in `unit`.

    After Ctrl-C this is the bracket reached, if `progress` says that it is reported, and later
    solves have no time but for their first bracket.
    """
    if progress.interrupted:
        options["time_limit"] = 0.0
    progress.unit = unit
    progress.begin(what)
    try:
        return solve(**options)
    except SolveInterrupted as error:
        if error.bound is None or not (progress.interrupted or progress.reports_interrupts):
            raise
        progress.stop()
        return error.bound
    finally:
        progress.end()
        progress.unit = "nats"
