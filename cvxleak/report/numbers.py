"""Numbers as a person reads them: bounds rounded outward, so that what is read holds as well."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import groupby

from cvxleak.report.names import COMPUTED
from cvxleak.report.quantity import Quantity, record_name

__all__ = ["amount", "ends", "findings", "floors"]

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
