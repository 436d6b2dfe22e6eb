"""A report, or a sweep, as tables that a person can read, in 80 columns and up."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cvxleak.problem.bound import Status, Stopped
from cvxleak.report import Quantity, Report, names
from cvxleak.report.numbers import amount, ends, findings
from cvxleak.report.sentences import ENVELOPE_BOUNDS, percent

if TYPE_CHECKING:
    from cvxleak.sweeps import Sweep, SweepRow

__all__ = ["render", "render_sweep"]

WIDEST = 100
"""Columns beyond which lines get hard to read."""

OUTCOMES = 12
"""Most outputs that get a line of their own."""

COLORS = {"CERTIFIED": "green", "BRACKETED": "yellow"}
LEAKAGES = {
    names.RECORD_LEAKAGE: "What one output tells about one person's record",
    names.GROUP_LEAKAGE: "What one output tells about a group of records together",
}
FAILURES = {
    names.FAILURE: (">", names.RELEASED_FAILURE),
    names.FAILURE_OR_EQUAL: ("≥", names.RELEASED_FAILURE_OR_EQUAL),
}
SERIES = {
    names.RECORD_DELTA: ("(epsilon, delta)-differential privacy", "epsilon", "epsilon", "delta"),
    names.RENYI_DP: ("Rényi differential privacy", "order", "alpha", "epsilon"),
    names.HITS: ("The best test for one record", "false alarms", "false_alarm", "hits"),
}
"""Title, head and attribute of the first column, and what the bounds are on."""

BY_FLOOR = {
    names.GAIN: "The gain asked for",
    names.BALANCE: "Balance",
}
"""What has a line for each floor, and the titles."""

IN_TABLES = {
    *LEAKAGES,
    *BY_FLOOR,
    *SERIES,
    *(names.BLIND_GUESS, names.INFORMED_GUESS),
    *(names.GUESS_BEFORE, names.GUESS_AFTER, names.CHANCE, names.RISE),
    names.PML,
    names.POSTERIOR,
    names.ENVELOPE,
    *ENVELOPE_BOUNDS,
    *FAILURES,
    *(released for _, released in FAILURES.values()),
}
LEAKAGE_NOTE = (
    "uncertainty: entropy of an adversary's belief about the whole dataset before the output is "
    "seen; an adversary who knows nothing has {most}, 100 %. guess: chance that the worst "
    "adversary found guesses the record correctly. rise: the most by which the output raises that "
    "chance, for any adversary with this much uncertainty."
)
ENVELOPE_NOTE = (
    "released: the leakage that the output, released as it is, exceeds with probability at most "
    "delta. some event: the largest leakage from learning that an event of probability delta or "
    "more has happened, a lower bound. tail average, Theorem 3: upper bounds."
)
WORDS = ("record", "output", "value", "unit", "status")
"""Heads of columns that hold no numbers."""

Columns = dict[str, Callable[[Any], "str | Text"]]
"""The cell of a row, by the head of its column."""


def render(
    report: Report, console: Console, heading: Sequence[str], *, tables: bool = True
) -> None:
    """Print what was audited, then the numbers of a report, each with what it means.

    Those that belong together are tables, unless `tables` is false.
    """
    page = Page(console, heading)
    if tables:
        _tables(page, report)
    # One level alone needs no table.
    alone = {name for name in SERIES if len(report.named(name)) == 1}
    shown = IN_TABLES - alone if tables else set()
    others = [q for q in report.quantities if q.name not in shown]
    if others:
        page.entries(others)
    if tables and report.named(names.PML):
        _outcomes(page, report)
    if tables and (rows := report.named(names.POSTERIOR)):
        columns = {"value": lambda q: Text(str(q.value)), "probability": lambda q: f"{q.upper:.6f}"}
        for outcome in dict.fromkeys(q.outcome for q in rows):
            given = [q for q in rows if q.outcome == outcome]
            page.table(
                f"Probability of each value of the record, given the output {outcome}",
                given,
                columns,
            )
            page.write(f"First line: {given[0].meaning}", indent="  ")
    if any(quantity.open for quantity in report.quantities):
        page.write(_why_open(report))


def _tables(page: Page, report: Report) -> None:
    _series(page, report)
    for name, title in LEAKAGES.items():
        if rows := report.named(name):
            _leakages(page, report, rows, title)
    unit = report.unit
    for name, title in BY_FLOOR.items():
        if rows := report.named(name):
            floor = {"uncertainty at least": lambda q: f"{q.entropy_floor:g}"}
            columns = _whose(rows) | floor | _bracket(line="") | {"status": _status}
            page.table(f"{title}, in {rows[0].unit}", rows, columns)
            for meaning in dict.fromkeys(q.meaning for q in rows):
                page.write(meaning, indent="  ")
    if rows := report.named(names.ENVELOPE):
        columns = {
            "\ndelta": lambda q: f"{q.delta:g}",
            "as it is\nreleased": _beside(report, names.PML_QUANTILE),
            "some event\nleaks": _beside(report, names.EVENT_ENVELOPE),
            **_bracket("envelope"),
            "\nstatus": _status,
            "tail\naverage": _beside(report, names.TAIL_AVERAGE),
            "bound of\nTheorem 3": _beside(report, names.THEOREM_3),
        }
        page.table(f"PML envelope: leakage after any post-processing, in {unit}", rows, columns)
        page.write(f"First line: {rows[0].meaning}", indent="  ")
        page.write(ENVELOPE_NOTE, "dim", "  ")
    if rows := [q for q in report.quantities if q.name in FAILURES]:
        columns = {
            "leakage\nepsilon": lambda q: f"{FAILURES[q.name][0]} {q.epsilon:g}",
            "as it is\nreleased": lambda q: _beside(report, FAILURES[q.name][1])(q),
            **_bracket("at most"),
            "\nstatus": _status,
        }
        page.table(
            f"Probability that the leakage exceeds (>) or reaches (≥) epsilon, in {unit}",
            rows,
            columns,
        )
        page.write(f"First line: {rows[0].meaning}", indent="  ")


def _series(page: Page, report: Report) -> None:
    """Print a line for each level, order, share of false alarms, or number of tries."""
    for name, (title, head, attribute, what) in SERIES.items():
        rows = report.named(name)
        if len(rows) > 1:

            def level(q: Quantity, attribute: str = attribute) -> str:
                return f"{getattr(q, attribute):g}"

            unit = "" if rows[0].unit == names.PROBABILITY else f", in {rows[0].unit}"
            columns: Columns = {f"\n{head}": level, **_bracket(what), "\nstatus": _status}
            page.table(title + unit, rows, columns)
            page.write(f"First line: {rows[0].meaning}", indent="  ")
    if rows := report.named(names.BLIND_GUESS):
        after = report.beside(names.INFORMED_GUESS)
        columns: Columns = {
            "tries": lambda q: str(q.tries),
            "without the output": lambda q: percent(q.upper),
            "with it, others known": lambda q: percent(after(q).upper, math.ceil),
        }
        page.table("Guessing a record about which nothing is known", rows, columns)
        page.write(f"First line: {rows[0].meaning} {after(rows[0]).meaning}", indent="  ")


def _leakages(page: Page, report: Report, rows: Sequence[Quantity], title: str) -> None:
    """Print leakage and guesses, a line for each record and floor."""
    unit, most = report.unit, report.facts["max_entropy"]
    before, after = (report.beside(name) for name in (names.GUESS_BEFORE, names.GUESS_AFTER))
    rise = report.beside(names.RISE)

    def uncertainty(q: Quantity) -> str:
        floor = q.entropy_floor or 0.0
        return f"{floor:g} ({percent(floor / most, math.floor)})"

    columns = {
        **_whose(rows),
        "uncertainty\nat least": uncertainty,
        **_bracket("leakage"),
        "\nstatus": _status,
        "guess\nbefore, after": lambda q: f"{percent(before(q).lower)}, {percent(after(q).lower)}",
        "rise\nat most": lambda q: percent(rise(q).upper, math.ceil),
    }
    page.table(f"{title}, in {unit}", rows, columns)
    for whose, meaning in findings(rows, unit):
        text = f"{whose[:1].upper()}{whose[1:]}: {meaning}"
        page.write(text, "bold" if "Discloses" in text else "", "  ")
    page.write(LEAKAGE_NOTE.format(most=f"{most:.6f} {unit}"), "dim", "  ")


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

    def table(self, title: str, rows: Iterable[Any], columns: Columns) -> None:
        """Print a line for each row, with a column for each head, below a title if there is one."""
        table = Table(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
            padding=(0, 1),
            collapse_padding=True,
        )
        for head in columns:
            table.add_column(head, justify="left" if head.strip() in WORDS else "right")
        for row in rows:
            table.add_row(*(cell(row) for cell in columns.values()))
        self.console.print()
        if title:
            self.write(title, "bold")
        self.console.print(table)

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
            of = f", delta {quantity.delta:g}" if quantity.delta else ""
            line = Text(f"{quantity.name + of:<{name}}{lower:>11}{upper:>13}  {quantity.unit:<13}")
            self.console.print(line + _status(quantity), soft_wrap=True)
            self.write(quantity.meaning, indent="  ")


def _outcomes(page: Page, report: Report) -> None:
    """Print pointwise maximal leakage, a line for each output."""
    rows = sorted(report.named(names.PML), key=lambda q: -q.upper)
    columns = {"output": lambda q: Text(str(q.outcome)), **_bracket(line=""), "status": _status}
    title = f"Pointwise maximal leakage of each output, in {report.unit}"
    page.table(title, rows[:OUTCOMES], columns)
    if (left := len(rows) - OUTCOMES) > 0:
        page.write(
            f"{left} more outputs, with lower leakage, are not shown (see --json).", indent="  "
        )
    page.write(f"First line: {rows[0].meaning}", indent="  ")


def render_sweep(results: Sweep, console: Console, heading: Sequence[str]) -> None:
    """Print what was swept, the bounds, and what went wrong at which points."""
    page = Page(console, heading)
    keys: Columns = {
        key.replace(".", ".\n"): lambda row, key=key: Text(f"{row.point[key]}")
        for key in results.rows[0].point
    }
    columns = keys | _bracket() | {"\nunit": lambda row: row.unit, "\nstatus": _status}
    page.table("", results, columns)
    errors: dict[str, list[str]] = {}
    for row in results:
        if row.error:
            point = "; ".join(f"{key} = {value}" for key, value in row.point.items())
            errors.setdefault(row.error, []).append(point)
    for message, points in errors.items():
        others = f" and {len(points) - 1} more" if len(points) > 1 else ""
        page.write(f"At {points[0]}{others}: {message}", indent="  ")


MORE = {
    Stopped.TIME_LIMIT: "--time-limit gives more time",
    Stopped.WORK_LIMIT: "--work-limit allows more work",
}
"""What carries a search on that a limit ended."""


def _why_open(report: Report) -> str:
    """Say what `bracketed` means, why searches ended, and what more time would do."""
    reasons = dict.fromkeys(q.stopped for q in report.quantities if q.open and q.stopped)
    if report.interrupted:
        reasons = {Stopped.INTERRUPTED: None}
    text = "; ".join([Status.BRACKETED.value, *(reason.value for reason in reasons)])
    more = [said for reason, said in MORE.items() if reason in reasons]
    return f"bracketed: {text}{': ' if more else ''}{', '.join(more)}."


def _bracket(head: str = "", line: str = "\n") -> Columns:
    """Return the columns of both bounds; where there is no number, they are empty."""
    return {
        f"{head}{line}lower": lambda row: "" if math.isnan(row.lower) else ends(row)[0],
        f"{line}upper": lambda row: "" if math.isnan(row.lower) else ends(row)[1],
    }


def _beside(report: Report, name: str) -> Callable[[Quantity], str]:
    """Return the cell for the quantity of that name that is about the same as the row's."""
    found = report.beside(name)
    return lambda quantity: amount(found(quantity).upper)


def _whose(rows: Sequence[Quantity]) -> Columns:
    """Return the column of records, if there are several."""

    def record(quantity: Quantity) -> str:
        of = quantity.record
        return ", ".join(map(str, of)) if isinstance(of, tuple) else str(of)

    return {"record": record} if len({quantity.record for quantity in rows}) > 1 else {}


def _status(row: Quantity | SweepRow) -> Text:
    return Text(row.status.lower(), style=COLORS.get(row.status, ""))
