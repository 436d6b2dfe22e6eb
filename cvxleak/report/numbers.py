"""Numbers as a person reads them: bounds rounded outward, so that what is read holds as well."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import groupby
from typing import TYPE_CHECKING

from cvxleak.report.names import COMPUTED

if TYPE_CHECKING:
    from cvxleak.report.quantity import Quantity

__all__ = ["about", "amount", "ends", "findings", "floors", "record_name"]

DIGITS = Decimal("0.000001")


def amount(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with six decimals, or inf."""
    if not math.isfinite(value):
        return str(value)
    return str(Decimal(value).quantize(DIGITS, rounding=rounding))


def ends(quantity: Quantity) -> tuple[str, str]:
    """Return both bounds as text, rounded outward unless they are one computed number."""
    if quantity.status == COMPUTED:
        return amount(quantity.lower), amount(quantity.upper)
    return amount(quantity.lower, ROUND_FLOOR), amount(quantity.upper, ROUND_CEILING)


def record_name(quantity: Quantity) -> str:
    """Return the record, or group of records, that a quantity is about: "record 0"."""
    record = quantity.record
    if isinstance(record, tuple):
        return f"records {', '.join(map(str, record))}"
    return f"record {record}"


def floors(leakages: Sequence[Quantity]) -> str:
    """Name the floors of leakages in the order of their floors."""
    first, last = f"{leakages[0].entropy_floor:g}", f"{leakages[-1].entropy_floor:g}"
    return first if first == last else f"{first} to {last}"


def findings(leakages: Sequence[Quantity], unit: str) -> Iterator[tuple[str, str]]:
    """Yield what leakages mean, as text, with the floors, and the records if there are several."""
    several = len({quantity.record for quantity in leakages}) > 1
    for _, run in groupby(leakages, lambda q: (several and q.record, q.meaning)):
        same = list(run)
        whose = f"{record_name(same[0])}; " if several else ""
        yield f"{whose}{floors(same)} {unit} of uncertainty", same[0].meaning


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
