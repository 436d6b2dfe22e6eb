"""Counted work: what the searches of this thread have done, in multiplications.

Whoever does the work counts it. The counts are estimates from the sizes of arrays, so they are the
same on every machine; small arrays take longer for each multiplication than large ones.
"""

from __future__ import annotations

import threading

__all__ = ["LOOK", "METER", "WORK_LIMIT", "spend"]

WORK_LIMIT = 1e10
"""Multiplications of a search without a limit of its own: some ten seconds of an ordinary machine.
"""

LOOK = 1e5
"""Multiplications between two looks at the clock, at least: a search that looks ends."""


class _Meter(threading.local):
    """The work of this thread so far."""

    spent: float = 0.0


METER = _Meter()


def spend(multiplications: float) -> None:
    """Count work that was done, or is about to be done.

    Examples
    --------
    >>> from cvxleak.core.clock import Clock
    >>> from cvxleak.core.work import spend
    >>> clock = Clock(work_limit=1e6)
    >>> spend(2e6)
    >>> clock.late, clock.worked_out
    (True, True)
    """
    METER.spent += multiplications
