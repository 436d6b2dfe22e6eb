"""Results: a `Bound` holds a lower and an upper bound, both proved, and what proves them."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import instance, one_of, real_number, short
from cvxleak.kernel.claims import KINDS, Statement
from cvxleak.kernel.numbers import lower, precision, upper
from cvxleak.problem.gap import ABSOLUTE_TOLERANCE
from cvxleak.proofs import Certificate
from cvxleak.proofs.checker import PROVERS

__all__ = ["ABSOLUTE_TOLERANCE", "Bound", "Status", "Stopped", "unit_scale"]

UNITS = {"nats": 1.0, "bits": math.log(2.0)}


Resume = Callable[[float, float | None, float | None], "Bound"]
"""(tol, time_limit, work_limit) -> a bound at least as good."""


class Status(enum.Enum):
    """Whether the gap between the two bounds is within the tolerance; the value is the message.

    Examples
    --------
    >>> from cvxleak import Status, capacity
    >>> bound = capacity([[0.9, 0.1], [0.1, 0.9]])
    >>> bound.status is Status.CERTIFIED
    True
    >>> print(bound.status.value)
    both bounds are proved and the gap is within the tolerance
    """

    CERTIFIED = "both bounds are proved and the gap is within the tolerance"
    BRACKETED = "both bounds are proved, but the gap is wider than the tolerance"


class Stopped(enum.Enum):
    """Why a search ended; the value is the message.

    ``bound.stats["stopped"]`` holds a member, and ``print(bound)`` gives the message if the gap is
    not within the tolerance. Files and tables hold the member's name.

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
    WORK_LIMIT = "the limit of work was reached"
    INTERRUPTED = "the search was interrupted"
    NO_PROGRESS = "no method makes further progress"
    ROUNDING = "rounding errors prevent a sharper proof"
    TOO_LARGE = "the problem is too large for branch and bound"
    CYCLED = "the alternation found an earlier adversary again: it has cycled or converged"

    @classmethod
    def at_limit(cls, clock: Clock) -> Stopped:
        """Return which limit of a clock that is late was reached."""
        return cls.WORK_LIMIT if clock.worked_out else cls.TIME_LIMIT


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
    """Convert an amount of information to another unit; in the same unit it stays as written.

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
    """A lower and an upper bound on a number, both proved.

    Two bounds are equal if all attributes but `stats` are: `stats` describe the computation, not
    the result.

    Attributes
    ----------
    name : str
        The quantity, for example ``"record leakage"``.
    lower, upper : float
        Proved bounds, in `unit`. For a maximization `lower` is attained by `witness` and `upper` is
        proved by `certificate`; for a minimization `upper` is attained and `lower` is proved.
    status : Status
        CERTIFIED if the gap is within the requested tolerance, BRACKETED otherwise. `Bound.proved`
        sets it.
    unit : str
        ``"nats"`` or ``"bits"``, or the unit of a distortion or a probability.
    witness : object
        The point at which the attained bound is attained: an adversary, a channel, a distribution.
    certificate : Certificate or None
        Data that prove both bounds; `certificate.save(path)` writes them to a file.
    shadow_prices : mapping
        Derivatives of the value with respect to the budgets, by the name of the argument (from
        multipliers).
    stats : mapping
        Seconds, iterations, nodes and whatever else the method reports; ``"method"`` says in a
        sentence which method ran, and why; ``"stopped"`` is the reason why the search ended, a
        `Stopped`.
    attained : float, optional
        For a set of channels only: the largest value found for rows within the set, while `lower`
        and `upper` hold for every channel of the set. CERTIFIED refers to the gap between
        `attained` and `upper`, which the search can close; the rest, `set_width`, is the
        uncertainty of the set.

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
        """Return a bound from two proved numbers; CERTIFIED if the gap is small enough.

        Small enough means at most max(tol * upper, `absolute`), or equal bounds (both infinite
        included). `feasible` says whether the witness meets all constraints: if it does not, the
        bound is never CERTIFIED. `refine` calls `resume`.
        """
        near = math.isfinite(upper) and upper - lower <= max(tol * upper, absolute)
        done = lower == upper or near
        status = Status.CERTIFIED if done and feasible else Status.BRACKETED
        return cls(name, lower, upper, status, _resume=resume, **parts)

    @classmethod
    def of_terms(
        cls,
        name: str,
        kind: str,
        problem: Mapping[str, Any],
        below: Mapping[str, Any],
        above: Mapping[str, Any],
        *,
        statement: Statement | None = None,
        **parts: Any,
    ) -> Self:
        """Return the bound that the kernel's terms of both ends prove, with its certificate.

        `statement` is what the kernel has read of the problem, if it has; for the rest, see
        `proved`.
        """
        with precision():
            known = KINDS[kind].read(problem) if statement is None else statement
            ends = lower(known.lower(below)), upper(known.upper(above))
        unit = PROVERS[kind].unit_of(problem)
        certificate = Certificate(kind, problem, *ends, below, above, unit=unit)
        return cls.proved(name, *ends, unit=unit, certificate=certificate, **parts)

    @property
    def gap(self) -> float:
        """Upper minus lower bound, in `unit`; 0 if they are equal, also if both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def set_width(self) -> float:
        """The part of the gap due to the uncertainty of a set of channels; 0 for one channel."""
        return 0.0 if self.attained is None else self.attained - self.lower

    @property
    def verdict(self) -> str:
        """Name of the status; if BRACKETED also the reason why the search ended, where it is known.

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

        The certificate stays in nats. Bounds on quantities other than information are unchanged.
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

    def refine(
        self, tol: float, time_limit: float | None = None, work_limit: float | None = WORK_LIMIT
    ) -> Bound:
        """Continue the search from where it stopped, to a tolerance of `tol` and with new limits.

        Raises
        ------
        ValidationError
            The search cannot be continued: the bound was loaded from a file, or comes from a method
            that does not search.
        """
        if self._resume is None:
            raise ValidationError(
                f"{self.name}: this bound cannot be refined; solve the problem again with a "
                "smaller tol, or a larger work_limit"
            )
        return self._resume(tol, time_limit, work_limit)

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
