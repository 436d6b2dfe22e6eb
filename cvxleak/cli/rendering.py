"""A report, or a sweep, as tables that a person can read, in 80 columns and up."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cvxleak.problem.bound import Status, Stopped
from cvxleak.report import Quantity, Report, names
from cvxleak.report.numbers import amount, ends
from cvxleak.report.sentences import percent

if TYPE_CHECKING:
    from cvxleak.sweeps import Sweep

__all__ = ["Page", "plain_table", "render", "render_sweep"]

WIDEST = 100
"""Columns beyond which lines get hard to read."""

OUTCOMES = 12
"""Most outputs that get a line of their own."""

COLORS = {"CERTIFIED": "green", "BRACKETED": "yellow"}
LEAKAGES = {
    names.RECORD_LEAKAGE: "What one output tells about one person's record",
    names.GROUP_LEAKAGE: "What one output tells about a group of records together",
}
GUESSES = (names.GUESS_BEFORE, names.GUESS_AFTER, names.FANO, names.PINSKER)
BOUNDS = (names.PML_QUANTILE, names.EVENT_ENVELOPE, names.TAIL_AVERAGE, names.THEOREM_3)
FAILURES = (
    (names.FAILURE, names.RELEASED_FAILURE, ">"),
    (names.FAILURE_OR_EQUAL, names.RELEASED_FAILURE_OR_EQUAL, "≥"),
)
IN_TABLES = {
    *LEAKAGES,
    *GUESSES,
    names.BALANCE,
    names.PML,
    names.ENVELOPE,
    *BOUNDS,
    *(name for kind in FAILURES for name in kind[:2]),
}


def render(
    report: Report, console: Console, heading: Sequence[str], *, tables: bool = True
) -> None:
    """Print what was audited, then the numbers of a report, each with what it means.

    Those that belong together are tables, unless `tables` is false.
    """
    page = Page(console, heading)
    if tables:
        _tables(page, report)
    others = [q for q in report.quantities if not tables or q.name not in IN_TABLES]
    if others:
        page.entries(others)
    if tables and report.named(names.PML):
        page.outcomes(report)
    if any(quantity.open for quantity in report.quantities):
        page.write(_why_open(report))


def _tables(page: Page, report: Report) -> None:
    for name, title in LEAKAGES.items():
        if report.named(name):
            page.leakages(report, name, title)
    if report.named(names.BALANCE):
        page.balance(report)
    if report.named(names.ENVELOPE):
        page.envelope(report)
    if report.named(names.FAILURE):
        page.failures(report)


class Page:
    """What is printed, below a heading whose first line stands out."""

    def __init__(self, console: Console, heading: Sequence[str]) -> None:
        self.console = console
        self.width = min(console.width, WIDEST)
        for place, line in enumerate(heading):
            self.write(line, "bold" if place == 0 else "")

    def write(self, text: str, style: str = "", indent: str = "") -> None:
        """Print a paragraph."""
        filled = textwrap.fill(text, self.width, initial_indent=indent, subsequent_indent=indent)
        self.console.print(Text(filled, style=style), soft_wrap=True)

    def leakages(self, report: Report, name: str, title: str) -> None:
        """Print leakage and guesses, a line for each record and floor."""
        rows = report.named(name)
        about = {(q.record, q.entropy_floor, q.name): q for q in report.quantities}
        several = len({quantity.record for quantity in rows}) > 1
        most = report.facts["max_entropy"]
        table = plain_table()
        if several:
            table.add_column("record")
        table.add_column("doubt\nat least", justify="right")
        for column in ("leakage\nlower", "\nupper"):
            table.add_column(column, justify="right")
        table.add_column("\nstatus")
        table.add_column("guess\nbefore, after", justify="right")
        table.add_column("rise\nat most", justify="right")
        for quantity in rows:
            floor = quantity.entropy_floor or 0.0
            key = (quantity.record, quantity.entropy_floor)
            before, after = about[*key, names.GUESS_BEFORE], about[*key, names.GUESS_AFTER]
            rise = about[*key, names.FANO]
            table.add_row(
                *([_record(quantity)] if several else []),
                f"{floor:g} ({percent(floor / most, math.floor)})",
                *ends(quantity),
                _status(quantity),
                f"{percent(before.lower)}, {percent(after.lower)}",
                percent(rise.upper, math.ceil),
            )
        self.show(f"{title}, in {report.unit}", table)
        for _, run in groupby(rows, lambda q: (several and q.record, q.meaning)):
            same = list(run)
            whose = f"Record {_record(same[0])}, " if several else ""
            text = f"{whose}{_doubts(same, report.unit)} of doubt: {same[0].meaning}"
            self.write(text, "bold" if "Discloses" in text else "", "  ")
        self.write(
            "doubt: entropy of somebody's belief about the whole dataset before the output is "
            f"out; somebody who knows nothing has {most:.6f} {report.unit}, 100 %. guess: chance "
            "of guessing the record right, for the worst adversary found. rise: a bound, by Fano's "
            "inequality, on how much that chance rises for any adversary with this much doubt.",
            "dim",
            "  ",
        )

    def balance(self, report: Report) -> None:
        """Print what knowing more brings, a line for each floor."""
        rows = report.named(names.BALANCE)
        several = len({quantity.record for quantity in rows}) > 1
        table = plain_table()
        if several:
            table.add_column("record")
        table.add_column("doubt at least", justify="right")
        for column in ("lower", "upper"):
            table.add_column(column, justify="right")
        table.add_column("status")
        for quantity in rows:
            record = [_record(quantity)] if several else []
            floor = f"{quantity.entropy_floor:g}"
            table.add_row(*record, floor, *ends(quantity), _status(quantity))
        self.show(f"Balance: what knowing more brings, in {report.unit}", table)
        for _, run in groupby(rows, lambda q: q.meaning):
            self.write(next(run).meaning, indent="  ")

    def envelope(self, report: Report) -> None:
        """Print the envelope between its bounds, a line for each delta."""
        about = {(q.delta, q.name): q for q in report.quantities}
        table = plain_table()
        for column in (
            "\ndelta",
            "as it is\nreleased",
            "some event\nleaks",
            "envelope\nlower",
            "\nupper",
        ):
            table.add_column(column, justify="right")
        table.add_column("\nstatus")
        for column in ("tail\naverage", "bound of\nTheorem 3"):
            table.add_column(column, justify="right")
        rows = report.named(names.ENVELOPE)
        for quantity in rows:
            released, event, tail, theorem = (
                amount(about[quantity.delta, name].upper) for name in BOUNDS
            )
            status = _status(quantity)
            delta = f"{quantity.delta:g}"
            table.add_row(delta, released, event, *ends(quantity), status, tail, theorem)
        self.show(f"PML envelope: leakage after any post-processing, in {report.unit}", table)
        self.write(f"First line: {rows[0].meaning}", indent="  ")
        self.write(
            "released: the leakage that the output as it is exceeds with probability delta at "
            "most. some event: the most that the news of an event of probability delta or more "
            "leaks, a lower bound. tail average, Theorem 3: upper bounds.",
            "dim",
            "  ",
        )

    def failures(self, report: Report) -> None:
        """Print the failure probabilities, two lines for each level."""
        about = {(q.epsilon, q.name): q for q in report.quantities}
        table = plain_table()
        for column in ("leakage\nepsilon", "as it is\nreleased", "at most\nlower", "\nupper"):
            table.add_column(column, justify="right")
        table.add_column("\nstatus")
        rows = report.named(names.FAILURE)
        for row in rows:
            for name, released, sign in FAILURES:
                quantity = about[row.epsilon, name]
                table.add_row(
                    f"{sign} {row.epsilon:g}",
                    amount(about[row.epsilon, released].upper),
                    *ends(quantity),
                    _status(quantity),
                )
        self.show(f"Probability of a leakage above epsilon, or as large, in {report.unit}", table)
        self.write(f"First line: {rows[0].meaning}", indent="  ")

    def entries(self, quantities: Sequence[Quantity]) -> None:
        """Print a line of numbers for each quantity and, over the whole width, what it means."""
        name = self.width - 48
        header = f"{'quantity':<{name}}{'lower':>11}{'upper':>13}  {'unit':<13}{'status':<9}"
        self.console.print()
        self.console.print(Text(header.rstrip(), style="bold"), soft_wrap=True)
        line = "-" if self.console.options.ascii_only else "─"
        self.console.print(line * self.width)
        for quantity in quantities:
            lower, upper = ends(quantity)
            line = Text(f"{quantity.name:<{name}}{lower:>11}{upper:>13}  {quantity.unit:<13}")
            self.console.print(line + _status(quantity), soft_wrap=True)
            self.write(quantity.meaning, indent="  ")

    def outcomes(self, report: Report) -> None:
        """Print pointwise maximal leakage, a line for each output."""
        rows = sorted(report.named(names.PML), key=lambda q: -q.upper)
        table = plain_table()
        table.add_column("output")
        for column in ("lower", "upper"):
            table.add_column(column, justify="right")
        table.add_column("status")
        for quantity in rows[:OUTCOMES]:
            table.add_row(Text(str(quantity.outcome)), *ends(quantity), _status(quantity))
        self.show(f"Pointwise maximal leakage of each output, in {report.unit}", table)
        if len(rows) > OUTCOMES:
            left = len(rows) - OUTCOMES
            self.write(f"{left} more, with less, are left out here (see --json).", indent="  ")
        self.write(f"First line: {rows[0].meaning}", indent="  ")

    def show(self, title: str, table: Table) -> None:
        """Print a table below its title."""
        self.console.print()
        if title:
            self.write(title, "bold")
        self.console.print(table)


def plain_table() -> Table:
    """Return a table without rows and columns, with a line below its head."""
    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True
    )


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


def _why_open(report: Report) -> str:
    """Say what `bracketed` means, why searches ended, and what more time would do."""
    reasons = dict.fromkeys(q.stopped for q in report.quantities if q.open and q.stopped)
    if report.interrupted:
        reasons = {Stopped.INTERRUPTED: None}
    text = "; ".join([Status.BRACKETED.value, *(reason.value for reason in reasons)])
    more = ": --time-limit gives more time" if Stopped.TIME_LIMIT in reasons else ""
    return f"bracketed: {text}{more}."


def _status(quantity: Quantity) -> Text:
    return Text(quantity.status.lower(), style=COLORS.get(quantity.status, ""))


def _record(quantity: Quantity) -> str:
    record = quantity.record
    return ", ".join(map(str, record)) if isinstance(record, tuple) else str(record)


def _doubts(rows: Sequence[Quantity], unit: str) -> str:
    """Name the floors of consecutive rows with the same meaning."""
    first, last = f"{rows[0].entropy_floor:g}", f"{rows[-1].entropy_floor:g}"
    return f"{first} {unit}" if first == last else f"{first} to {last} {unit}"
