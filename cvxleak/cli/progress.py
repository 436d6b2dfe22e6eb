"""Progress on standard error, and what Ctrl-C does."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console

from cvxleak.core.wording import counted
from cvxleak.problem.bound import unit_scale
from cvxleak.report import Progress

__all__ = ["STOPPED", "Display"]

STOPPED = 130
"""Exit code of a program that Ctrl-C ended."""

PATIENCE = 1.0
"""Seconds before anything is said about a step."""


class Display(Progress):
    """Shows what lasts longer than a second.

    On a terminal one line is kept up to date; elsewhere (a log) a line is written after 1, 2, 4, 8,
    ... seconds. The first Ctrl-C during a search ends it and has its bracket reported; what is left
    gets no more time than a first bracket takes. A second one, or one between searches, stops the
    program.
    """

    reports_interrupts = True

    def __init__(self, unit: str = "nats", console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._unit, self._scale = unit, unit_scale(unit)
        self._what = ""
        self._started = self._due = 0.0
        self._display: bars.Progress | None = None
        self._timer: threading.Timer | None = None
        self.interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def begin(self, what: str) -> None:
        """Start the clock of a step."""
        self.end()
        self._what = what
        self._started = time.monotonic()
        self._due = PATIENCE
        if self._console.is_terminal:
            display = bars.Progress(
                bars.SpinnerColumn(),
                bars.TimeElapsedColumn(),
                bars.TextColumn("{task.description}"),
                console=self._console,
                transient=True,
            )
            display.add_task(what)
            # A step that does not report progress is shown as well.
            self._timer = threading.Timer(PATIENCE, display.start)
            self._timer.daemon = True
            self._timer.start()
            self._display = display

    def update(self, lower: float, upper: float, nodes: int) -> None:
        """Show a bracket."""
        if upper < lower:
            return  # part of the search's nodes are in its hands and not counted
        scale, unit = (self._scale, self._unit) if self.unit == "nats" else (1.0, self.unit)
        bracket = f"{lower / scale:.6f} to {upper / scale:.6f} {unit}"
        self._show(f"{self._what}: {bracket}", f", {counted(nodes, 'node')}")

    def count(self, done: int, total: int) -> None:
        """Show how many parts are done."""
        self._show(f"{self._what}: {done} of {total}")

    def _show(self, text: str, more: str = "") -> None:
        """Show a text; in a log, with more."""
        if self._display is not None:
            self._display.update(self._display.task_ids[0], description=text)
            return
        seconds = time.monotonic() - self._started
        if seconds >= self._due:
            while self._due <= seconds:
                self._due *= 2
            self._console.print(f"{text}{more}, {seconds:.0f} s", highlight=False, soft_wrap=True)

    def end(self) -> None:
        """Take the line away."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._display is not None:
            self._display.stop()
        self._timer = self._display = None

    def stop(self) -> None:
        """Say that a report follows; at the second Ctrl-C raise KeyboardInterrupt instead."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self._console.print(
            "Interrupted: the report follows with the bounds reached. "
            "Press Ctrl-C again to stop without it.",
            highlight=False,
            soft_wrap=True,
        )
