"""Results: a `Bound` says what was proved, by what, and how far apart the two ends are."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import instance, one_of, real_number, short
from cvxleak.problem.gap import ABSOLUTE_TOLERANCE
from cvxleak.proofs import Certificate

__all__ = ["ABSOLUTE_TOLERANCE", "Bound", "Status", "Stopped", "unit_scale"]

UNITS = {"nats": 1.0, "bits": math.log(2.0)}


Resume = Callable[[float, float | None], "Bound"]
"""(tol, time_limit) -> a bound at least as good."""


class Status(enum.Enum):
    """How a bracket stands; the value is the message.

    Examples
    --------
    >>> from cvxleak import Status, capacity
    >>> bound = capacity([[0.9, 0.1], [0.1, 0.9]])
    >>> bound.status is Status.CERTIFIED
    True
    >>> print(bound.status.value)
    both ends are proved and the gap is within the tolerance
    """

    CERTIFIED = "both ends are proved and the gap is within the tolerance"
    BRACKETED = "both ends are proved, but the gap is wider than the tolerance"


class Stopped(enum.Enum):
    """Why a search ended; the value is the message.

    ``bound.stats["stopped"]`` holds a member, and ``print(bound)`` gives the message where the
    bracket is open. Files and tables hold the member's name.

    Examples
    --------
    >>> from cvxleak import Mechanism, Stopped, record_leakage
    >>> from cvxleak.mechanisms import random_rounding
    >>> from cvxleak.queries import count
    >>> mechanism = Mechanism(count(6), random_rounding(6, base=3))
    >>> late = record_leakage(mechanism, 3.0, time_limit=0.0)
    >>> late.stats["stopped"] is Stopped.TIME_LIMIT
    True
    >>> print(late)
    record leakage: 0... to 0... nats (BRACKETED: the time limit was reached)
    >>> print(late.refine(1e-3).stats["stopped"].value)
    the gap is within the tolerance
    """

    TOLERANCE = "the gap is within the tolerance"
    TIME_LIMIT = "the time limit was reached"
    WORK_LIMIT = "the largest number of steps was reached"
    INTERRUPTED = "the search was interrupted"
    NO_PROGRESS = "no method makes further progress"
    ROUNDING = "rounding keeps the proof from getting sharper"
    TOO_LARGE = "the problem is too large for branch and bound"
    UNCHECKED = "within the tolerance, but no certificate can hold a function of the user's own"
    CYCLED = "an adversary came back: the alternation has cycled or settled"


def unit_scale(unit: str) -> float:
    """Return the number of nats in one `unit` ("nats" or "bits").

    Raises
    ------
    ValidationError
        Another unit.

    Examples
    --------
    >>> from cvxleak.problem.bound import unit_scale
    >>> round(unit_scale("bits"), 6)
    0.693147
    """
    return UNITS[one_of(unit, UNITS, "unit")]


def converted(value: float, unit: str, to: str = "nats") -> float:
    """Return an amount of information in another unit; in the same one it stays as written.

    Examples
    --------
    >>> from cvxleak.core.numbers import as_written
    >>> from cvxleak.problem.bound import converted
    >>> converted(as_written("1/3"), "nats"), round(converted(1.0, "bits"), 6)
    (1/3, 0.693147)
    """
    scale, target = unit_scale(unit), unit_scale(to)
    return value if scale == target else value * (scale / target)


@dataclass(frozen=True, eq=False)
class Bound:
    """A number between two proved ends.

    Two bounds are equal if what they say is: all attributes but `stats`, which tell of the way.

    Attributes
    ----------
    name : str
        The quantity, for example ``"record leakage"``.
    lower, upper : float
        Proved ends, in `unit`. For a maximization `lower` is attained by `witness` and `upper` is
        proved by `certificate`; for a minimization the other way round.
    status : Status
        CERTIFIED if the gap is within the tolerance that was asked for, BRACKETED otherwise.
        `Bound.proved` sets it.
    unit : str
        ``"nats"`` or ``"bits"``, or the unit of a distortion or a probability.
    witness : object
        The point that attains the attained end.
    certificate : Certificate or None
        What proves the ends; `certificate.save(path)` writes it. None if they rest on a function of
        the user's own; such a bound is never CERTIFIED.
    shadow_prices : mapping
        Derivatives of the value in the budgets, by the name of the argument (from multipliers).
    stats : mapping
        Seconds, iterations, nodes and whatever else the method reports; under ``"stopped"`` why the
        search ended, a `Stopped`.
    attained : float, optional
        Of a set of channels, for all of which `lower` and `upper` hold: the most that was found for
        rows within it. CERTIFIED is about the gap between it and `upper`, which the search has to
        close; the rest of the bracket is what the set leaves open, `set_width`.

    Examples
    --------
    >>> from cvxleak.problem.bound import Bound
    >>> bound = Bound.proved("capacity", 0.5, 0.5000001, tol=1e-3)
    >>> print(bound)
    capacity: 0.5 to 0.5000001 nats (CERTIFIED)
    """

    name: str
    lower: float
    upper: float
    status: Status
    unit: str = "nats"
    witness: Any = None
    certificate: Certificate | None = field(default=None, repr=False)
    shadow_prices: Mapping[str, float] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    _resume: Resume | None = field(default=None, repr=False, compare=False)
    attained: float | None = None

    def __post_init__(self) -> None:
        instance(self.name, str, "name")
        instance(self.unit, str, "unit")
        instance(self.status, Status, "status")
        for name in ("lower", "upper"):
            real_number(getattr(self, name), name)
        if self.attained is not None:
            real_number(self.attained, "attained")
        for name in ("shadow_prices", "stats"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise ValidationError(f"{name}: expected a mapping, found {short(given)}")
            object.__setattr__(self, name, MappingProxyType(dict(given)))

    @classmethod
    def proved(
        cls,
        name: str,
        lower: float,
        upper: float,
        *,
        tol: float,
        absolute: float = ABSOLUTE_TOLERANCE,
        feasible: bool = True,
        resume: Resume | None = None,
        **parts: Any,
    ) -> Self:
        """Return a bound whose ends are proved; CERTIFIED if they are near enough to each other.

        Near enough means a gap of at most max(tol * upper, `absolute`), or equal ends (two
        infinite ones too). `feasible` says whether the witness meets all that was asked for: if it
        does not, nothing is CERTIFIED. `resume` is what `refine` calls.
        """
        near = math.isfinite(upper) and upper - lower <= max(tol * upper, absolute)
        done = lower == upper or near
        status = Status.CERTIFIED if done and feasible else Status.BRACKETED
        return cls(name, lower, upper, status, _resume=resume, **parts)

    @property
    def gap(self) -> float:
        """Difference of the two ends, in `unit`; 0 if they are equal, infinite or not."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def set_width(self) -> float:
        """What a set of channels leaves open, however long the search; 0 for one channel."""
        return 0.0 if self.attained is None else self.attained - self.lower

    @property
    def verdict(self) -> str:
        """Name of the status; for an open bracket also why the search ended, where that is known.

        Examples
        --------
        >>> from cvxleak import Bound, Stopped
        >>> stats = {"stopped": Stopped.NO_PROGRESS}
        >>> Bound.proved("leakage", 0.5, 0.6, tol=1e-3, stats=stats).verdict
        'BRACKETED: no method makes further progress'
        """
        why = self.stats.get("stopped")
        # Where the witness does not meet all that was asked for, a small gap does not close it.
        if (
            self.status is Status.BRACKETED
            and isinstance(why, Stopped)
            and why is not Stopped.TOLERANCE
        ):
            return f"{self.status.name}: {why.value}"
        return self.status.name

    def to(self, unit: str) -> Bound:
        """Return the same bound in ``"nats"`` or ``"bits"``, rounded outward.

        The certificate keeps its nats. Bounds on other things than information stay as they are.
        """
        target = unit_scale(unit)
        if self.unit not in UNITS or self.unit == unit:
            return self
        scale, resume = UNITS[self.unit] / target, self._resume
        return replace(
            self,
            lower=_rounded(self.lower * scale, -math.inf),
            upper=_rounded(self.upper * scale, math.inf),
            unit=unit,
            _resume=None if resume is None else lambda *args: resume(*args).to(unit),
            attained=None if self.attained is None else self.attained * scale,
        )

    def refine(self, tol: float, time_limit: float | None = None) -> Bound:
        """Go on from where the search stopped, to a tolerance of `tol`.

        Raises
        ------
        ValidationError
            If nothing is left to go on from: the bound was loaded from a file, or made by a method
            that does not search.
        """
        if self._resume is None:
            raise ValidationError(f"{self.name}: this bound cannot be refined")
        return self._resume(tol, time_limit)

    def to_frame(self) -> Any:
        """Return the bound as a one-row pandas DataFrame (needs pandas)."""
        import pandas as pd

        keys = ("name", "lower", "upper", "unit")
        row = {key: getattr(self, key) for key in keys} | {"status": self.status.name}
        plain = {
            key: value.name if isinstance(value, Stopped) else value
            for key, value in self.stats.items()
        }
        return pd.DataFrame([row | plain])

    def __reduce__(self) -> tuple[Any, ...]:
        # Neither a mapping proxy nor the state of a search goes into a file.
        return type(self), (
            self.name,
            self.lower,
            self.upper,
            self.status,
            self.unit,
            self.witness,
            self.certificate,
            dict(self.shadow_prices),
            dict(self.stats),
            None,
            self.attained,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound):
            return NotImplemented
        parts = ("name", "lower", "upper", "status", "unit", "certificate", "attained")
        return (
            all(getattr(self, part) == getattr(other, part) for part in parts)
            and dict(self.shadow_prices) == dict(other.shadow_prices)
            and same(self.witness, other.witness)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.lower, self.upper, self.status, self.unit))

    def __repr__(self) -> str:
        return f"Bound({self})"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        return html_table("", BOUND_HEAD, [bound_row(self)])

    def __str__(self) -> str:
        verdict = self.verdict
        if self.attained is not None:
            verdict += f"; the set of channels leaves {self.set_width:.3g} open"
        return f"{self.name}: {self.lower:.7g} to {self.upper:.7g} {self.unit} ({verdict})"


BOUND_HEAD = ("quantity", "lower", "upper", "unit", "status")
"""What a notebook shows of a bound."""


def bound_row(bound: Bound) -> tuple[Any, ...]:
    """Return what a notebook shows of a bound, below `BOUND_HEAD`."""
    return bound.name, bound.lower, bound.upper, bound.unit, bound.verdict


def same(one: Any, other: Any) -> bool:
    """Whether two witnesses are the same."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one == other


def _rounded(value: float, outward: float) -> float:
    return value if value == 0 or math.isinf(value) else math.nextafter(value, outward)
