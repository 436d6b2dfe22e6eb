"""`Gap`: when the gap between a lower and an upper bound is small enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cvxleak.core.validation import real_number

__all__ = ["ABSOLUTE_TOLERANCE", "Gap"]

ABSOLUTE_TOLERANCE = 1e-7
"""A gap of this many nats counts as closed at any `tol` above it."""


@dataclass(frozen=True)
class Gap:
    """The meaning of `tol` everywhere: upper - lower <= max(tol |upper|, min(tol, 1e-7) scale).

    Parameters
    ----------
    tol : float
        From 0 to 1. Relative to the upper bound; if that is small, a gap of min(tol, 1e-7) times
        the scale is enough.
    scale : float
        The unit of an absolute gap: one nat, a probability of 1, or the largest distortion.

    Raises
    ------
    ValidationError
        A number out of range.

    Examples
    --------
    >>> from cvxleak.problem import Gap
    >>> Gap(1e-3).closed(0.9995, 1.0), Gap(1e-3).closed(0.0, 1e-4), Gap(1e-3).closed(0.0, 1e-8)
    (True, False, True)
    """

    tol: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", real_number(self.tol, "tol", 0.0, 1.0, open_high=True))

    @property
    def absolute(self) -> float:
        """A gap of this size is closed, whatever the bounds."""
        return min(self.tol, ABSOLUTE_TOLERANCE) * self.scale

    def allowed(self, upper: float) -> float:
        """Return the largest gap that is closed, given the upper bound."""
        return max(self.tol * abs(upper), self.absolute) if math.isfinite(upper) else 0.0

    def closed(self, lower: float, upper: float) -> bool:
        """Whether the gap is closed: small enough, or both bounds equal (also if infinite)."""
        return lower == upper or upper - lower <= self.allowed(upper)
