"""The result of a sweep: a row for each point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["Sweep", "SweepRow"]


@dataclass(frozen=True)
class SweepRow:
    """The result at one point.

    Attributes
    ----------
    point : mapping
        The arguments, by name.
    lower, upper : float
        The lower and the upper bound; NaN if there is none.
    unit : str
    status : str
        CERTIFIED or BRACKETED for a bound, COMPUTED for a plain number, INFEASIBLE, UNBOUNDED or
        FAILED.
    seconds : float
    error : str
        The error message; empty if there was no error.
    certificate : str
        The hash of the stored certificate; empty if none is stored.

    Examples
    --------
    >>> from cvxleak.sweeps import SweepRow
    >>> SweepRow({"flip": 0.1}, 0.368, 0.369, "nats", "CERTIFIED", 0.01).failed
    False
    """

    point: Mapping[str, Any]
    lower: float
    upper: float
    unit: str
    status: str
    seconds: float
    error: str = ""
    certificate: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", MappingProxyType(dict(self.point)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple((vars(self) | {"point": dict(self.point)}).values())

    @property
    def failed(self) -> bool:
        """Whether the solve failed for a reason other than an infeasible or unbounded problem."""
        return self.status == "FAILED"

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data; infinities are text and NaN is None, as JSON needs it."""
        ends = {"lower": _to_json(self.lower), "upper": _to_json(self.upper)}
        return vars(self) | {"point": dict(self.point)} | ends

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SweepRow:
        """Return the row that `to_dict` wrote."""
        return cls(
            data["point"],
            _from_json(data["lower"]),
            _from_json(data["upper"]),
            str(data["unit"]),
            str(data["status"]),
            float(data["seconds"]),
            str(data["error"]),
            str(data.get("certificate", "")),
        )


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep, in the order of the grid.

    Examples
    --------
    >>> from cvxleak import capacity
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.sweeps import sweep
    >>> results = sweep(lambda flip: capacity(binary_symmetric(flip)), {"flip": [0.1, 0.5]})
    >>> [round(row.upper, 4) for row in results]
    [0.3681, 0.0]
    """

    rows: tuple[SweepRow, ...] = field(default=())

    def __repr__(self) -> str:
        return f"Sweep({len(self.rows)} points, {len(self.failed)} without a result)"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        names = [*self.rows[0].point] if self.rows else []
        rows = (
            (*(row.point.get(name, "") for name in names), row.lower, row.upper, row.unit)
            for row in self.rows
        )
        return html_table(repr(self), (*names, "lower", "upper", "unit"), rows)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """The rows without a result."""
        return tuple(row for row in self.rows if row.failed)

    def to_frame(self) -> Any:
        """Return one line for each point as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        records = []
        for row in self.rows:
            data = {**row.to_dict(), "lower": row.lower, "upper": row.upper}
            records.append({**data.pop("point"), **data})
        return pd.DataFrame(records)


def _to_json(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else float(np.float64(value))


def _from_json(value: Any) -> float:
    return math.nan if value is None else float(value)
