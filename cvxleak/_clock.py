"""The wall clock of a search: it is read here and only to stop, never to choose what comes next.

What a search does next is decided by counted work (nodes, iterations, multiplications). So a search
with a time limit takes the same way as one without, and is cut short where the clock says so: if
the limit is not reached, the same seed gives the same answer on a busy machine.
"""

from __future__ import annotations

import math
import time

from cvxleak._validation import real_number

__all__ = ["Clock"]


class Clock:
    """Seconds since it was made, and those that are left until a time limit.

    Parameters
    ----------
    time_limit : float or None
        Seconds; no limit if None.
    name : str
        What the limit is called in an error.

    Raises
    ------
    ValidationError
        A limit that is no number or negative.

    Examples
    --------
    >>> from cvxleak._clock import Clock
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
        """What is left, as the `time_limit` of another search; None without a limit."""
        return None if self._seconds == math.inf else self.left
