"""Ctrl-C during a solve: the first ends the search, a second one everything."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["Interrupts"]


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
