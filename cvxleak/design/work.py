"""The work of a design, counted in multiplications: it decides which part of a search goes on.

Seconds would decide otherwise on a busy machine. Where the constants were measured a multiplication
in a Newton step of the master or of a node takes about a nanosecond, so 10^9 of them are a second.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AUDIT", "NODE", "PROGRAM", "SECOND", "STEP", "Work", "work_of_updates"]

SECOND = 1e9
"""Multiplications that take about a second."""

STEP = 1e6
"""What a Newton step or an update of a local search costs however small its arrays are: 0.8 to 1.6
milliseconds were measured."""

NUMBER = 10.0
"""What an update costs for each probability of its channel and each start."""

NODE = 5e5
"""The cost of a node of an audit, added to its multiplications; many are bounded at once."""

AUDIT = 1e7
"""The cost of a turn of an audit in addition to its search: its proof."""

PROGRAM = 3e7
"""What it costs to state a program in CVXPY and to start a solver."""


@dataclass
class Work:
    """What a search has done so far; its parts share one, and each adds its own.

    Attributes
    ----------
    done : float
        Multiplications.

    Examples
    --------
    >>> from cvxleak.design.work import Work
    >>> work = Work()
    >>> work.done += 2e9
    >>> work.done
    2000000000.0
    """

    done: float = 0.0


def work_of_updates(updates: int, numbers: int) -> float:
    """Return what updates of a local search cost, from the numbers that each touches."""
    return updates * (STEP + NUMBER * numbers)
