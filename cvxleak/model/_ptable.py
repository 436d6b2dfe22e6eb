"""`PTable`: the perturbation table of a statistical office, read from its file.

No certificate holds a ptable, so the checker does not load this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import NoReturn

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.core.tables import numbers_from_text, read_table
from cvxleak.core.validation import check_cells, short, whole_number
from cvxleak.model.channel import Channel

__all__ = ["PTable", "read_ptable"]

KEYS = ("pcv", "ckey", "pvalue")
PROBABILITIES = ("i", "j", "p")
CHECKED = ("v", "p_int_lb", "p_int_ub", "type")
SAME = {"diff": "v", "p_kum_u": "p_int_lb", "p_kum_o": "p_int_ub"}
"""What older files call a column."""

CYCLES = {750: 250}
"""Largest pcv, and how many of the last rows larger counts take in turn (ONS)."""

_WHOLE = re.compile(r"[+-]?\d{1,18}(\.0*)?", re.ASCII)

Law = dict[int, Fraction]
"""The probability of each perturbation."""


Steps = tuple[tuple[Fraction, int], ...]
"""The perturbation of a count by its cell key from 0 to 1: up to which key, and how much."""


@dataclass(frozen=True)
class PTable:
    """The perturbations of the counts 0, ..., `last`, and the cycle of larger ones, if known.

    Cell keys are uniform on 0, 1/keys, ..., 1 - 1/keys, or on the whole interval if `keys` is None.
    """

    laws: tuple[Law, ...]
    cycle: int | None
    steps: tuple[Steps, ...]
    keys: int | None

    @property
    def last(self) -> int:
        """The largest count with rows of its own."""
        return len(self.laws) - 1

    def period(self, cycle: int | None) -> int | None:
        """Return how many of the last rows larger counts take in turn, if that is known."""
        return self.cycle if cycle is None else whole_number(cycle, "cycle", 1, self.last)

    def place(self, count: int, cycle: int | None = None) -> int:
        """Return the row that a count takes."""
        if count <= self.last:
            return count
        period = self.period(cycle)
        if period is None:
            raise ValidationError(
                f"cycle: is missing; the count {count} is beyond the last row, {self.last}. Larger "
                "counts use the last rows in turn, and cycle says how many (1: only the last row); "
                "it has a default for files with columns i, j, p and for rows up to 750"
            )
        return self.last - period + 1 + (count - self.last - 1) % period

    def channel(self, counts: Sequence[Hashable], cycle: int | None = None) -> Channel:
        """Return the channel from these counts to the published ones that can occur."""
        self.period(cycle)
        laws: list[Law] = []
        for count in counts:
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise ValidationError(
                    f"query: values that are counts are needed; found {short(count)}"
                )
            law = self.laws[self.place(count, cycle)]
            laws.append({count + v: p for v, p in law.items() if p})
        outputs = sorted(set().union(*laws))
        check_cells(len(laws), len(outputs), "query")
        rows = np.array([[law.get(j, 0.0) for j in outputs] for law in laws], dtype=object)
        return Channel(rows, counts, outputs)


def read_ptable(path: str | os.PathLike[str]) -> PTable:
    """Return the table of a file: see `Mechanism.from_ptable`."""
    (line, header), *body = read_table(path, semicolons=True)
    columns = [SAME.get(name, name) for name in header]
    named = columns[1:] if columns[0] == "" else columns  # R writes the numbers of its rows
    if set(named) != set(KEYS) and not (
        set(PROBABILITIES) <= set(named) <= {*PROBABILITIES, *CHECKED}
    ):
        raise _wrong(
            path,
            line,
            f"the columns are {', '.join(map(repr, header))}; needed are {', '.join(KEYS)}, or "
            f"{', '.join(PROBABILITIES)} and, if wanted, {', '.join(CHECKED)}, and no others",
        )
    if len(set(named)) < len(named):
        raise _wrong(path, line, f"the columns are {', '.join(map(repr, header))}, one twice")
    rows = [_Row(path, line, dict(zip(columns, cells, strict=True))) for line, cells in body]
    for column in {"p", "p_int_lb", "p_int_ub"} & set(named):
        for row in rows:  # some write 0,75, which is no other number between 0 and 1
            row.cells[column] = row.cells[column].replace(",", ".")
    keyed = "pcv" in columns
    steps, keys = _of_keys(rows) if keyed else (_of_probabilities(rows), None)
    last = max(steps, default=0)
    lacking = next((count for count in range(1, last + 1) if count not in steps), 0 if last else 1)
    if lacking:
        raise ValidationError(
            f"path: {os.fspath(path)!r} has no row for the count {lacking}; each one from 1 to the "
            "last needs its rows"
        )
    stays = ((Fraction(1), 0),)
    every = tuple(steps.get(count, stays) for count in range(last + 1))
    return PTable(tuple(map(_law_of, every)), CYCLES.get(last) if keyed else 1, every, keys)


def _law_of(steps: Steps) -> Law:
    """Return the probability of each perturbation: how many keys lead to it."""
    law: Law = {}
    reached = Fraction(0)
    for end, noise in steps:
        law[noise] = law.get(noise, Fraction(0)) + end - reached
        reached = end
    return law


@lru_cache(maxsize=10_000)
def _whole(text: str) -> int | None:
    """Return a whole number; a file has few different ones, each thousands of times."""
    return int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else None


@dataclass(frozen=True)
class _Row:
    """A line of the file: its cells by column."""

    path: str | os.PathLike[str]
    line: int
    cells: dict[str, str]

    def number(self, column: str) -> Fraction:
        """Return a cell between 0 and 1 as written."""
        (value,) = numbers_from_text(
            [self.cells[column]], self.line, self.path, list(self.cells).index(column) + 1
        )
        if not 0 <= value <= 1:
            self.refuse(f"{column} is {self.cells[column]}; a probability from 0 to 1 is needed")
        return fraction(value)

    def whole(self, column: str, low: int | None = None) -> int:
        """Return a cell as a whole number that is not below `low`."""
        text = self.cells[column]
        value = _whole(text)
        if value is None:
            self.refuse(
                f"{column} is {text[:40]!r}; a whole number is needed, because tables for counts "
                "are read, not those for magnitudes"
            )
        if low is not None and value < low:
            self.refuse(f"{column} is {text}; a whole number from {low} on is needed")
        return value

    def check_published(self, count: int, noise: int) -> None:
        """See that a count with its perturbation is not below 0."""
        if count + noise < 0:
            self.refuse(f"the count {count} would be published as {count + noise}, below 0")

    def refuse(self, text: str) -> NoReturn:
        """Say what is wrong in this line."""
        raise _wrong(self.path, self.line, text)


def _wrong(path: str | os.PathLike[str], line: int, text: str) -> ValidationError:
    return ValidationError(f"path: line {line} of {os.fspath(path)!r}: {text}")


def _of_keys(rows: Iterable[_Row]) -> tuple[dict[int, Steps], int]:
    """Return the perturbations of each count by its key, and the number of keys."""
    table: dict[int, dict[int, int]] = {}
    first: dict[int, _Row] = {}
    for row in rows:
        count, key, noise = row.whole("pcv", 0), row.whole("ckey", 0), row.whole("pvalue")
        row.check_published(count, noise)
        first.setdefault(count, row)
        if key in table.setdefault(count, {}):
            row.refuse(f"the pcv {count} with the ckey {key} stands in an earlier line too")
        table[count][key] = noise
    size = 1 + max((max(keys) for keys in table.values()), default=0)
    for count, keys in table.items():
        if len(keys) < size:
            lacking = next(key for key in range(size) if key not in keys)
            first[count].refuse(
                f"the pcv {count} has no row for the ckey {lacking}; each pcv needs all cell keys "
                f"from 0 to the largest, {size - 1}"
            )
    if len(set(table.get(0, {}).values())) > 1:
        first[0].refuse(
            "the pcv 0 has several pvalues; a cell without people has no record keys, so that its "
            "cell key is always 0 and its perturbation no draw: give all its keys the pvalue of "
            "the ckey 0"
        )
    return {count: _runs(keys, size) for count, keys in table.items()}, size


def _runs(keys: dict[int, int], size: int) -> Steps:
    """Return the perturbations in the order of the keys, those of successive keys as one step."""
    ends = [key for key in range(size) if key == size - 1 or keys[key] != keys[key + 1]]
    return tuple((Fraction(key + 1, size), keys[key]) for key in ends)


def _of_probabilities(rows: Sequence[_Row]) -> dict[int, Steps]:
    """Return the perturbations of each count by its key: the intervals of keys, or p in turn."""
    table: dict[int, dict[int, _Row]] = {}
    for row in rows:
        count, published = row.whole("i", 0), row.whole("j")
        noise = published - count
        row.check_published(count, noise)
        if "v" in row.cells and row.whole("v") != noise:
            row.refuse(f"v is {row.cells['v']}; j - i is {noise}")
        if row.cells.get("type", "all") != "all":
            row.refuse(f"type is {row.cells['type']!r}; tables for counts, of type 'all', are read")
        if noise in table.setdefault(count, {}):
            row.refuse(f"i = {count} with j = {published} stands in an earlier line too")
        table[count][noise] = row
    if not rows:
        return {}
    digit = _last_digit(rows, "p")
    if "p_int_ub" not in rows[0].cells:
        return {count: _printed(count, group, digit) for count, group in table.items()}
    # Ends that print less than six digits are taken as exact.
    end_digit = min(_last_digit(rows, "p_int_ub"), Fraction(1, 10**6))
    return {count: _intervals(count, group, digit, end_digit) for count, group in table.items()}


def _printed(count: int, group: dict[int, _Row], digit: Fraction) -> Steps:
    """Return the probabilities of a count as printed, which sum to 1, one after the other."""
    law = {noise: row.number("p") for noise, row in group.items()}
    total = sum(law.values(), Fraction(0))
    if total != 1:
        rounded = abs(total - 1) <= len(law) * digit / 2
        [*group.values()][-1].refuse(
            f"the probabilities of i = {count} sum to {_decimal(total)} as printed, not to 1"
            + (", perhaps by rounding to the digits printed" if rounded else "")
            + "; rows are not rescaled: give all digits, or fractions, or the column p_int_ub, the "
            "upper endpoints of the intervals of cell keys"
        )
    return tuple(zip(accumulate(law.values()), law, strict=True))


def _intervals(count: int, group: dict[int, _Row], digit: Fraction, end_digit: Fraction) -> Steps:
    """Return the intervals of keys, which are looked up from the top line down."""
    steps: list[tuple[Fraction, int]] = []
    reached, row = Fraction(0), next(iter(group.values()))
    for noise, row in group.items():
        end = row.number("p_int_ub")
        if end < reached:
            row.refuse(f"p_int_ub falls to {row.cells['p_int_ub']}; the intervals are in order")
        width = end - reached
        steps.append((end, noise))
        if abs(row.number("p") - width) > digit / 2 + end_digit:
            row.refuse(
                f"p is {row.cells['p']}, but the interval of cell keys from {_decimal(reached)} to "
                f"{row.cells['p_int_ub']} is {_decimal(width)} wide"
            )
        if "p_int_lb" in row.cells and abs(row.number("p_int_lb") - reached) > end_digit:
            row.refuse(
                f"p_int_lb is {row.cells['p_int_lb']}; the interval before ends at "
                f"{_decimal(reached)}"
            )
        reached = end
    if reached != 1:
        row.refuse(
            f"the intervals of cell keys of i = {count} end at {_decimal(reached)}, not at 1; rows "
            "are not rescaled"
        )
    return tuple(steps)


def _last_digit(rows: Sequence[_Row], column: str) -> Fraction:
    """Return the unit of the last digit that a column prints; 0 if it has fractions like 1/3."""
    texts = [row.cells[column] for row in rows if row.number(column) >= 0]
    if any("/" in text for text in texts):
        return Fraction(0)
    return Fraction(10) ** min(int(Decimal(text).as_tuple().exponent) for text in texts)


def _decimal(value: Fraction) -> str:
    """Return a number as a decimal if it has not many digits, as a fraction otherwise."""
    text = str(float(value))
    return text if Fraction(text) == value else str(value)
