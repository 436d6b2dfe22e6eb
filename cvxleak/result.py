"""Results: a `Bound` says what was proved, by what, and how far apart the two ends are."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cvxleak.certificates import Certificate
from cvxleak.errors import ValidationError

__all__ = ["ABSOLUTE_TOLERANCE", "Bound", "Status", "unit_scale"]

ABSOLUTE_TOLERANCE = 1e-7
"""A gap of this many nats counts as closed, whatever the relative tolerance."""

UNITS = {"nats": 1.0, "bits": math.log(2.0)}


class Status(enum.Enum):
    """How a bracket stands; the value is the message."""

    CERTIFIED = "both ends are proved and the gap is within the tolerance"
    BRACKETED = "both ends are proved, but the gap is wider than the tolerance"


def unit_scale(unit: str) -> float:
    """Return the number of nats in one `unit` ("nats" or "bits")."""
    try:
        return UNITS[unit]
    except KeyError:
        raise ValidationError(f"unit: found {unit!r}; allowed: {sorted(UNITS)}") from None


@dataclass(frozen=True)
class Bound:
    """A number between two proved ends.

    Attributes
    ----------
    name : str
        The quantity, for example ``"record leakage"``.
    lower, upper : float
        Proved ends, in `unit`. For a maximization `lower` is attained by `witness` and `upper` is
        proved by `certificate`; for a minimization the other way round.
    status : Status
        CERTIFIED if the gap is at most max(tol * upper, 1e-7 nats) and the certificate's checker
        passes; BRACKETED otherwise (a time or node limit ended the search early).
    unit : str
        ``"nats"`` or ``"bits"``, or the unit of a distortion.
    witness : object
        The point that attains the attained end.
    certificate : Certificate or None
        What proves the ends; `certificate.save(path)` writes it.
    shadow_prices : mapping
        Derivatives of the value in the budgets, by the name of the argument (from multipliers).
    stats : mapping
        Seconds, iterations, nodes and whatever else the method reports.

    Examples
    --------
    >>> from cvxleak.result import Bound, Status
    >>> bound = Bound("capacity", 0.5, 0.5000001, Status.CERTIFIED)
    >>> print(bound)
    capacity: 0.5 to 0.5000001 nats (CERTIFIED)
    """

    name: str
    lower: float
    upper: float
    status: Status
    unit: str = "nats"
    witness: Any = None
    certificate: Certificate | None = None
    shadow_prices: Mapping[str, float] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    resume: Callable[[float, float | None], Bound] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def gap(self) -> float:
        """Difference of the two ends, in `unit`."""
        return self.upper - self.lower

    def to(self, unit: str) -> Bound:
        """Return the same bound in ``"nats"`` or ``"bits"``.

        The stored certificate keeps its nats.
        """
        scale = unit_scale(self.unit) / unit_scale(unit)
        if scale == 1.0:
            return self
        return replace(
            self,
            lower=math.nextafter(self.lower * scale, -math.inf),
            upper=math.nextafter(self.upper * scale, math.inf),
            unit=unit,
            resume=None,
        )

    def refine(self, tol: float, time_limit: float | None = None) -> Bound:
        """Go on from where the search stopped, to a relative gap of `tol`."""
        if self.resume is None:
            raise ValidationError(f"{self.name}: this bound cannot be refined")
        return self.resume(tol, time_limit)

    def to_frame(self) -> Any:
        """Return the bound as a one-row pandas DataFrame (needs pandas)."""
        import pandas as pd

        keys = ("name", "lower", "upper", "unit")
        row = {key: getattr(self, key) for key in keys} | {"status": self.status.name}
        return pd.DataFrame([row | dict(self.stats)])

    def __str__(self) -> str:
        return f"{self.name}: {self.lower:.7g} to {self.upper:.7g} {self.unit} ({self.status.name})"


def closed(lower: float, upper: float, tol: float) -> bool:
    """Whether a bracket in nats is within the tolerance that CERTIFIED asks for."""
    return upper - lower <= max(tol * upper, ABSOLUTE_TOLERANCE)
