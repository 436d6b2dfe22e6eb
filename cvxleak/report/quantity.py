"""`Quantity` and `Report`: what an audit says, number by number, ready for a table or for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from cvxleak.model import Channel
from cvxleak.problem.bound import Bound, Status, Stopped
from cvxleak.proofs import Certificate
from cvxleak.report.names import COMPUTED

__all__ = ["Quantity", "Report", "about", "record_name"]

OPTIONAL = (
    *("entropy_floor", "outcome", "value", "delta", "epsilon"),
    *("alpha", "false_alarm", "tries", "set_width"),
)
"""What only some quantities have."""


@dataclass(frozen=True)
class Quantity:
    """One number of a report: a lower and an upper bound.

    Attributes
    ----------
    name : str
        One of `cvxleak.report.names`, for example ``"record leakage"``.
    lower, upper : float
        Equal for a formula that was evaluated; inf is a value.
    unit : str
        ``"nats"``, ``"bits"``, ``"probability"``, or the unit of the distortion.
    status : str
        ``"CERTIFIED"``, ``"BRACKETED"`` (see `Status`), ``"COMPUTED"`` or ``"BOUND"``.
    meaning : str
        One sentence.
    seconds : float
        Time that it took.
    record : int, tuple of int or None
        The record, or group of records, that it is about (the first record is 0).
    entropy_floor : float or None
        Least entropy of the adversaries that it is about, in the report's unit.
    outcome : hashable or None
        The output that it is about.
    value : hashable or None
        The value of the record that it is about.
    epsilon : float or None
        The level of leakage that it is about, in the report's unit.
    delta : float or None
        The probability that it is about.
    alpha : float or None
        The order of the divergence that it is.
    false_alarm : float or None
        The share of wrong accusations that the test makes.
    tries : int or None
        How many guesses there are.
    stopped : Stopped or None
        Why the search for it ended, if there was one.
    set_width : float or None
        For a set of channels: the part of the gap that no search can close.
    certificate : Certificate or None
        What proves it.
    witness : object
        What attains the attained end: for a leakage the `Adversary`.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.report import capacity_report
    >>> (quantity,) = capacity_report(binary_symmetric(0.1)).quantities
    >>> quantity.name, round(quantity.upper, 6), quantity.unit, quantity.status
    ('capacity', 0.368064, 'nats', 'CERTIFIED')
    """

    name: str
    lower: float
    upper: float
    unit: str
    status: str
    meaning: str
    seconds: float = 0.0
    record: int | tuple[int, ...] | None = None
    entropy_floor: float | None = None
    outcome: Hashable | None = None
    value: Hashable | None = None
    epsilon: float | None = None
    delta: float | None = None
    alpha: float | None = None
    false_alarm: float | None = None
    tries: int | None = None
    stopped: Stopped | None = None
    set_width: float | None = None
    certificate: Certificate | None = field(default=None, repr=False)
    witness: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of_bound(cls, name: str, bound: Bound, unit: str, meaning: str, **about: Any) -> Self:
        """Return what was proved, with its certificate; information is converted to `unit`."""
        shown = bound.to(unit)
        return cls(
            name,
            # The conversion of units rounds outward, below 0 even.
            max(shown.lower, min(bound.lower, 0.0)),
            shown.upper,
            shown.unit,
            bound.status.name,
            meaning,
            bound.stats["seconds"],
            stopped=bound.stats.get("stopped"),
            set_width=None if shown.attained is None else shown.set_width,
            certificate=bound.certificate,
            witness=bound.witness,
            **about,
        )

    @classmethod
    def computed(cls, name: str, value: float, unit: str, meaning: str, /, **about: Any) -> Self:
        """Return the value of a formula, which both bounds are."""
        return cls(name, value, value, unit, COMPUTED, meaning, **about)

    def __repr__(self) -> str:
        ends = f"{self.lower:.7g} to {self.upper:.7g} {self.unit}"
        return f"Quantity({self.name}: {ends} ({self.status}))"

    @property
    def subject(self) -> tuple[Any, ...]:
        """Whom and what it is about: equal for quantities about the same."""
        first = (self.record, self.entropy_floor, self.outcome, self.value, self.epsilon)
        return (*first, self.delta, self.alpha, self.false_alarm, self.tries)

    @property
    def open(self) -> bool:
        """Whether the gap between the bounds is wider than was asked for."""
        return self.status == Status.BRACKETED.name

    def to_dict(self) -> dict[str, Any]:
        """Return the quantity as JSON data: fixed keys, infinity as the text "inf"."""
        data: dict[str, Any] = {
            "name": self.name,
            "lower": _number(self.lower),
            "upper": _number(self.upper),
            "unit": self.unit,
            "status": self.status,
            "record": self.record if not isinstance(self.record, tuple) else list(self.record),
            "seconds": round(self.seconds, 6),
            "meaning": self.meaning,
        }
        if self.open:
            data["stopped"] = self.stopped.name if self.stopped else None
        for key in OPTIONAL:
            found = getattr(self, key)
            if found is not None:
                data[key] = _number(found) if isinstance(found, float) else found
        return data


@dataclass(frozen=True)
class Report:
    """All quantities of an audit, or of another command.

    Attributes
    ----------
    unit : str
        ``"nats"`` or ``"bits"``: the unit of every information quantity in it.
    quantities : tuple of Quantity
    facts : mapping
        Sizes and the like of what it is about; for an audit ``records``, ``query_values``,
        ``outputs``, ``max_entropy``.
    interrupted : bool
        Whether a search was ended early; its bounds are proved all the same.
    channel : Channel or None
        The channel that was designed, if one was asked for.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> from cvxleak.report import audit_report
    >>> report = audit_report(Mechanism(parity(3), binary_symmetric(0.1)))
    >>> [(q.name, round(q.upper, 3)) for q in report.named("maximal leakage")]
    [('maximal leakage', 0.588)]
    >>> len(report.certificates())
    4
    """

    unit: str
    quantities: tuple[Quantity, ...]
    facts: Mapping[str, Any]
    interrupted: bool = False
    channel: Channel | None = None

    def __repr__(self) -> str:
        return f"Report({len(self.quantities)} quantities, in {self.unit})"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        head = ("quantity", "about", "lower", "upper", "unit", "status", "meaning")
        rows = (
            (q.name, about(q, self.unit), q.lower, q.upper, q.unit, q.status, q.meaning)
            for q in self.quantities
        )
        return html_table(repr(self), head, rows)

    def named(self, name: str) -> list[Quantity]:
        """Return the quantities of that name, in order."""
        return [quantity for quantity in self.quantities if quantity.name == name]

    def beside(self, name: str) -> Callable[[Quantity], Quantity]:
        """Return what finds the quantity of that name that is about the same as another one."""
        found = {quantity.subject: quantity for quantity in self.named(name)}
        return lambda quantity: found[quantity.subject]

    def certificates(self) -> list[Certificate]:
        """Return the certificates of the quantities that have one, in order."""
        return [q.certificate for q in self.quantities if q.certificate is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return units, facts, quantities and the channel, if there is one, as JSON data."""
        data = {
            "units": self.unit,
            "interrupted": self.interrupted,
            "audited": dict(self.facts),
            "quantities": [quantity.to_dict() for quantity in self.quantities],
        }
        return data if self.channel is None else data | {"channel": self.channel.to_dict()}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def record_name(quantity: Quantity) -> str:
    """Return the record, or group of records, that a quantity is about: "record 0"."""
    record = quantity.record
    if isinstance(record, tuple):
        return f"records {', '.join(map(str, record))}"
    return f"record {record}"


def about(quantity: Quantity, unit: str) -> str:
    """Say in a few words whom and what a quantity is about; nothing if it is about everything.

    `unit` is that of the report.
    """
    parts = []
    if quantity.record is not None:
        parts.append(record_name(quantity))
    if quantity.entropy_floor is not None:
        parts.append(f"uncertainty at least {quantity.entropy_floor:g} {unit}")
    if quantity.outcome is not None:
        parts.append(f"output {quantity.outcome}")
    if quantity.value is not None:
        parts.append(f"value {quantity.value}")
    if quantity.delta is not None:
        parts.append(f"delta {quantity.delta:g}")
    if quantity.epsilon is not None:
        parts.append(f"epsilon {quantity.epsilon:g} {unit}")
    if quantity.alpha is not None:
        parts.append(f"order {quantity.alpha:g}")
    if quantity.false_alarm is not None:
        parts.append(f"false alarms {quantity.false_alarm:g}")
    if quantity.tries is not None:
        parts.append(f"tries {quantity.tries}")
    return ", ".join(parts)
