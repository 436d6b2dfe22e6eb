"""A sweep as a table: a line for each point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR

from rich.console import Console
from rich.text import Text

from cvxleak.cli.rendering import COLORS, Page, plain_table
from cvxleak.report.numbers import amount
from cvxleak.sweeps import Sweep

__all__ = ["render_sweep"]


def render_sweep(results: Sweep, console: Console, heading: Sequence[str]) -> None:
    """Print what was swept, the bounds, and what went wrong at which points."""
    page = Page(console, heading)
    table = plain_table()
    names = list(results.rows[0].point)
    for name in names:
        table.add_column(name.replace(".", ".\n"), justify="right")
    for column in ("\nlower", "\nupper"):
        table.add_column(column, justify="right")
    for column in ("\nunit", "\nstatus"):
        table.add_column(column)
    for row in results:
        coordinates = [Text(f"{row.point[name]}") for name in names]
        ends = ("", "")
        if not math.isnan(row.lower):
            ends = amount(row.lower, ROUND_FLOOR), amount(row.upper, ROUND_CEILING)
        status = Text(row.status.lower(), style=COLORS.get(row.status, ""))
        table.add_row(*coordinates, *ends, row.unit, status)
    page.show("", table)
    errors: dict[str, list[str]] = {}
    for row in results:
        if row.error:
            point = "; ".join(f"{key} = {value}" for key, value in row.point.items())
            errors.setdefault(row.error, []).append(point)
    for message, points in errors.items():
        others = f" and {len(points) - 1} more" if len(points) > 1 else ""
        page.write(f"At {points[0]}{others}: {message}", indent="  ")
