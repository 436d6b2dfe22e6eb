"""What ends a search: a limit of counted work, which is always in force, and the wall clock.

Work is counted in multiplications, by the code that does it (`spend`). The next step of a search
depends on nothing else, and the clock only ends it: as long as the time limit is not reached, the
same seed gives the same answer on a busy machine, and a search ends by itself on every machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import real_number, short
from cvxleak.core.work import LOOK, METER, WORK_LIMIT, spend

__all__ = ["WORK_LIMIT", "Clock", "Progress", "Stop", "check_progress", "spend"]

Progress = Callable[[float, float, int], None]
"""What a search tells: the lower and the upper bound so far, and the nodes or parts done."""


def check_progress(progress: Any) -> None:
    """Say so if what is to be told about progress is neither None nor a function."""
    if progress is not None and not callable(progress):
        raise ValidationError(
            f"progress: expected a function (such as print) or None, found {short(progress)}"
        )


class Clock:
    """Seconds and work since its creation, and what is left of them until a limit.

    All work of this thread counts, whoever does it.

    Parameters
    ----------
    time_limit : float or None
        Seconds; no limit if None.
    work_limit : float or None
        Multiplications; no limit if None.
    searches : int
        How many searches share the limits: each may do so much work.

    Raises
    ------
    ValidationError
        A limit that is not a number, or negative.

    Examples
    --------
    >>> from cvxleak.core.clock import Clock
    >>> Clock().late, Clock().limit, Clock(0.0).late, Clock(work_limit=0).late
    (False, None, True, True)
    """

    def __init__(
        self,
        time_limit: float | None = None,
        work_limit: float | None = None,
        searches: int = 1,
    ) -> None:
        self._begin = time.monotonic()
        self._seconds = (
            math.inf if time_limit is None else real_number(time_limit, "time_limit", 0.0)
        )
        work = math.inf if work_limit is None else real_number(work_limit, "work_limit", 0.0)
        self._spent = METER.spent
        self._end = METER.spent + searches * work

    @property
    def work(self) -> float:
        """Multiplications since the clock was made."""
        return METER.spent - self._spent

    @property
    def worked_out(self) -> bool:
        """Whether the limit of work was reached."""
        return METER.spent >= self._end

    @property
    def seconds(self) -> float:
        """Seconds since the clock was made."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0; inf without a limit."""
        return max(self._seconds - self.seconds, 0.0)

    @property
    def late(self) -> bool:
        """Whether a limit was reached. To ask is work, so that whatever asks in a loop ends."""
        spend(LOOK)
        return self.worked_out or self.seconds >= self._seconds

    @property
    def part_left(self) -> float:
        """Which part of the time and of the work is left, whichever is less."""
        time = 1.0 if self.limit is None else self.left / max(self._seconds, 1e-300)
        if self._end == math.inf:
            return time
        return min(time, 1 - self.work / max(self._end - self._spent, 1e-300))

    @property
    def limit(self) -> float | None:
        """The remaining time, as the `time_limit` of another search; None without a limit."""
        return None if self._seconds == math.inf else self.left

    @property
    def limits(self) -> dict[str, Any]:
        """What is left, as the limits of another search."""
        work = None if self._end == math.inf else max(self._end - METER.spent, 0.0)
        return {"time_limit": self.limit, "work_limit": work}

    def share(self, parts: int) -> float | None:
        """Return an equal share of the remaining time, as `limit`."""
        return None if self.limit is None else self.left / parts

    def shares(self, parts: int) -> Iterator[float | None]:
        """Yield the limits of so many searches, one after the other.

        Each is an equal share of the time that the searches before it left.
        """
        return (self.share(waiting) for waiting in range(parts, 0, -1))


class Stop:
    """Decides when a search must stop: at its limit of work, or when its proof needs the time left.

    Once it has decided to stop, it does not change its answer, so a search ends and never takes
    other steps.

    Parameters
    ----------
    clock : Clock
    proof_seconds : callable, optional
        Estimate of the time for the proof of the result so far.

    Examples
    --------
    >>> from cvxleak.core.clock import Clock, Stop
    >>> Stop(Clock())(), Stop(Clock(60.0))(), Stop(Clock(60.0), lambda: 100.0)()
    (False, False, True)
    """

    def __init__(self, clock: Clock, proof_seconds: Callable[[], float] = lambda: 0.0) -> None:
        self.clock, self._proof_seconds = clock, proof_seconds
        self._said = False

    def __call__(self, needed: float = 0.0) -> bool:
        """Whether the time is too short for a step of `needed` seconds and the proof."""
        if not self._said:
            self._said = self.clock.late
        if not self._said and self.clock.limit is not None:
            self._said = self.clock.left <= self._proof_seconds() + needed
        return self._said
