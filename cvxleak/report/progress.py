"""`Progress`: an object that is told about the work on a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cvxleak.core.errors import SolveInterrupted
from cvxleak.core.validation import instance

__all__ = ["Progress", "as_progress", "solved"]

Found = TypeVar("Found")


class Progress:
    """Receives the progress of the work on a report; this base class ignores it.

    Attributes
    ----------
    interrupted : bool
        If true, the remaining searches stop as soon as they have a lower and an upper bound.
    reports_interrupts : bool
        Whether a search that Ctrl-C ends is reported with the bounds reached. If not, and
        `interrupted` is false, `SolveInterrupted` is raised.
    unit : str
        Unit of the bounds that `update` gets: "nats", or another one if they are no information.

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
        """Note that the work on `what` begins."""

    def update(self, lower: float, upper: float, nodes: int) -> None:
        """Note proved bounds, in `unit`; a KeyboardInterrupt from here ends the search."""

    def count(self, done: int, total: int) -> None:
        """Note that `done` parts are done; a KeyboardInterrupt from here ends the work."""

    def end(self) -> None:
        """Note that the work is done."""

    def stop(self) -> None:
        """Note that Ctrl-C ended a search; the bounds that it reached are reported."""
        self.interrupted = True


def as_progress(progress: Progress | None) -> Progress:
    """Return the object that is told about progress; by default one that does nothing."""
    return Progress() if progress is None else instance(progress, Progress, "progress")


def solved(
    progress: Progress,
    what: str,
    solve: Callable[..., Found],
    /,
    unit: str = "nats",
    **options: Any,
) -> Found:
    """Return what a solve finds, announced as the work on `what`, with bounds in `unit`.

    After Ctrl-C the result has the bounds reached, if `progress` says that they are reported, and
    later solves stop as soon as they have both bounds.
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
