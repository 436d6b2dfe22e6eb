"""The wall clock of a search, which is used only to stop, never to choose the next step.

The next step of a search depends only on counted work (nodes, iterations, multiplications). So a
search with a time limit takes the same steps as one without, until it is stopped: if the limit is
not reached, the same seed gives the same answer even on a busy machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import real_number, short

__all__ = ["Clock", "Progress", "Stop", "check_progress"]

Progress = Callable[[float, float, int], None]
"""What a search tells: the lower and the upper bound so far, and the nodes or parts done."""


def check_progress(progress: Any) -> None:
    """Say so if what is to be told about progress is neither None nor a function."""
    if progress is not None and not callable(progress):
        raise ValidationError(
            f"progress: expected a function (such as print) or None, found {short(progress)}"
        )


class Clock:
    """Seconds since its creation, and seconds left until a time limit.

    Parameters
    ----------
    time_limit : float or None
        Seconds; no limit if None.
    name : str
        Name of the limit in error messages.

    Raises
    ------
    ValidationError
        A limit that is not a number, or negative.

    Examples
    --------
    >>> from cvxleak.core.clock import Clock
    >>> Clock().late, Clock().limit, Clock(0.0).late
    (False, None, True)
    """

    def __init__(self, time_limit: float | None = None, name: str = "time_limit") -> None:
        self._begin = time.monotonic()
        self._seconds = math.inf if time_limit is None else real_number(time_limit, name, 0.0)

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
        """Whether the time limit was reached."""
        return self.seconds >= self._seconds

    @property
    def limit(self) -> float | None:
        """The remaining time, as the `time_limit` of another search; None without a limit."""
        return None if self._seconds == math.inf else self.left

    def share(self, parts: int) -> float | None:
        """Return an equal share of the remaining time, as `limit`."""
        return None if self.limit is None else self.left / parts

    def shares(self, parts: int) -> Iterator[float | None]:
        """Yield the limits of so many searches, one after the other.

        Each is an equal share of the time that the searches before it left.
        """
        return (self.share(waiting) for waiting in range(parts, 0, -1))


class Stop:
    """Decides when a search must stop: when the remaining time is needed for its proof.

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
        if not self._said and self.clock.limit is not None:
            self._said = self.clock.left <= self._proof_seconds() + needed
        return self._said
