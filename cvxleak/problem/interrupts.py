"""Ctrl-C during a solve: the first ends the search, a second one everything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar, cast

from cvxleak.core.errors import CvxleakError, SolveInterrupted
from cvxleak.problem.bound import Stopped

__all__ = ["Interrupts", "interruptible"]

Solve = TypeVar("Solve", bound=Callable[..., Any])


class Interrupts:
    """While active, the first Ctrl-C raises KeyboardInterrupt only outside of `protected` parts.

    There it is noted and nothing is raised; a second Ctrl-C always raises. Where another handler
    than Python's own is set, or outside of the main thread, nothing is changed.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.protected = False
        self._before: Any = None

    def __enter__(self) -> Self:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.seen += 1
        if self.seen > 1 or not self.protected:
            raise KeyboardInterrupt


def interruptible(solve: Solve) -> Solve:
    """Make Ctrl-C in a problem's `solve` raise `SolveInterrupted` with a bracket.

    For methods that prove nothing before their end: the bracket is the one that the method returns
    with a time limit of 0. While it is made a second Ctrl-C raises a plain KeyboardInterrupt.
    """

    @wraps(solve)
    def interrupted(*arguments: Any, **options: Any) -> Any:
        with Interrupts() as interrupts:
            try:
                return solve(*arguments, **options)
            except SolveInterrupted:
                raise  # an audit inside had its bracket
            except KeyboardInterrupt as error:
                interrupts.seen, interrupts.protected = 1, True
                try:
                    bound = solve(*arguments, **{**options, "time_limit": 0.0})
                except CvxleakError:
                    raise SolveInterrupted from error
                stats = {**bound.stats, "stopped": Stopped.INTERRUPTED}
                raise SolveInterrupted(replace(bound, stats=stats)) from error

    return cast(Solve, interrupted)
