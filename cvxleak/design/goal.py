"""`Goal`: which of leakage and distortion a design minimizes, within a budget on the other."""

from __future__ import annotations

import enum

__all__ = ["Goal"]


class Goal(enum.Enum):
    """What a design minimizes; the value is its name.

    Examples
    --------
    >>> from cvxleak.design.goal import Goal
    >>> Goal.LEAKAGE.value, Goal.DISTORTION.unit
    ('leakage', 'distortion')
    """

    LEAKAGE = "leakage"
    DISTORTION = "distortion"

    @property
    def unit(self) -> str:
        """The unit of what is minimized."""
        return "nats" if self is Goal.LEAKAGE else "distortion"
