"""People and counts, from frames and files."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.tables import label_from_text, read_table
from cvxleak.core.validation import in_order, label_tuple, one_of, plain_label, short
from cvxleak.core.value import preview

__all__ = ["microdata_columns", "read_counts"]

MISSING = "missing"
"""The category of people whose value is missing."""

EMPTY = ("", "na", "nan", "null", "none")
"""Texts of cells of a file that hold nothing."""

COUNT = "count"
"""The column of counts of a long file."""

Coded = tuple[tuple[Hashable, ...], NDArray[np.intp]]
"""The categories of a variable, and the place of each person's among them."""

Counts = tuple[dict[str, tuple[Hashable, ...]], NDArray[np.int64], tuple[str, ...]]
"""Variables with their categories, the counts, and the variables that run across."""


def microdata_columns(
    data: Any, names: Sequence[str], categories: Mapping[str, Iterable[Hashable]], missing: str
) -> dict[str, Coded]:
    """Return for each variable its categories and where each person's is among them.

    Raises
    ------
    ValidationError
        As `Table.from_microdata`.

    Examples
    --------
    >>> from cvxleak.tables.reading import microdata_columns
    >>> microdata_columns({"sex": ["f", "m", "f"]}, ["sex"], {}, "refuse")
    {'sex': (('f', 'm'), array([0, 1, 0]))}
    """
    if not names:
        raise ValidationError("rows: found no variables; at least one is needed")
    if len(set(names)) < len(names):
        raise ValidationError(f"rows: found a variable twice in {preview(tuple(names))}")
    keep = one_of(missing, ("refuse", "category"), "missing") == "category"
    if not isinstance(categories, Mapping):
        raise ValidationError(f"categories: expected a mapping, found {short(categories)}")
    for name in categories:
        if name not in names:
            raise ValidationError(
                f"categories: found {short(name)}; the variables are {preview(tuple(names))}"
            )
    columns = _columns(data, names)
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        raise ValidationError(
            f"data: its columns have {sorted(sizes)} lines; equally many are needed"
        )
    if sizes == {0}:
        raise ValidationError("data: found no people")
    return {
        name: _coded(column, name, categories.get(name), keep) for name, column in columns.items()
    }


def _columns(data: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns with these names; None is what is missing."""
    if isinstance(data, (str, os.PathLike)):
        (_, header), *rows = read_table(data, semicolons=True)
        places = [_column_of(name, header) for name in names]
        labels: dict[str, Any] = {text: None for _, cells in rows for text in cells}
        labels = {text: None if text.lower() in EMPTY else label_from_text(text) for text in labels}
        return {
            name: [labels[cells[place]] for _, cells in rows]
            for name, place in zip(names, places, strict=True)
        }
    if not (isinstance(data, Mapping) or (hasattr(data, "columns") and hasattr(data, "iloc"))):
        raise ValidationError(
            "data: expected a DataFrame, a mapping from names to columns, or the path of a CSV "
            f"file, found {short(data)}"
        )
    known = list(data.keys())
    for name in names:
        _column_of(name, known)
    found = {}
    for name in names:
        column = data[name]
        plain = column.tolist() if hasattr(column, "tolist") else list(in_order(column, name))
        found[name] = [None if _is_missing(value) else value for value in plain]
    return found


def _column_of(name: str, header: Sequence[Any]) -> int:
    if list(header).count(name) != 1:
        found = "twice" if name in header else "not there"
        raise ValidationError(
            f"data: the column {name!r} is {found}; the columns are {preview(tuple(header))}"
        )
    return list(header).index(name)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal
        return True


def _coded(column: list[Any], name: str, listed: Iterable[Hashable] | None, keep: bool) -> Coded:
    lines = {plain_label(value, f"data[{name!r}]"): line for line, value in enumerate(column)}
    if None in lines and not keep:
        raise ValidationError(
            f"data: the column {name!r} has no value for person {column.index(None)} (from 0); "
            "missing='category' makes that a category of its own"
        )
    if None in lines and MISSING in lines:
        raise ValidationError(
            f"data: the column {name!r} has missing values and a category {MISSING!r}; rename one"
        )
    present = [value for value in lines if value is not None]
    if listed is None:
        try:
            present.sort()  # pyright: ignore[reportCallIssue]
        except TypeError:
            present.sort(key=lambda value: (type(value).__name__, str(value)))
        known = tuple(present)
    else:
        given = in_order(listed, f"categories[{name!r}]")
        known = label_tuple(given, len(given), f"categories[{name!r}]")
        for value in present:
            if value not in known:
                raise ValidationError(
                    f"data: the column {name!r} has {short(value)} (person {lines[value]}, from "
                    f"0); its categories are {preview(known)}"
                )
    if None in lines:
        known = (*known, MISSING)
    places = {value: place for place, value in enumerate(known)}
    if None in lines:
        places[None] = places[MISSING]
    return known, np.array([places[value] for value in column], dtype=np.intp)


def read_counts(data: Any, total: str) -> Counts:
    """Return the variables and counts of a frame or a file (`Table.from_counts`).

    Raises
    ------
    ValidationError
        As `Table.from_counts`.

    Examples
    --------
    >>> import pandas as pd
    >>> from cvxleak.tables.reading import read_counts
    >>> frame = pd.DataFrame({"sex": ["f", "m"], "count": [3, 4]})
    >>> read_counts(frame, "total")
    ({'sex': ('f', 'm')}, array([3, 4]), ())
    """
    if isinstance(data, (str, os.PathLike)):
        (_, header), *rows = read_table(data, semicolons=True)
        body = [(f"line {line}", [label_from_text(cell) for cell in cells]) for line, cells in rows]
        corner = header[0]
        head: list[Any] = [label_from_text(cell) for cell in header]
    elif hasattr(data, "columns") and hasattr(data, "iloc"):
        head = list(data.columns)
        index, values = data.index.tolist(), data.to_numpy(dtype=object).tolist()
        if COUNT in head:
            body = [(f"row {short(i)}", list(row)) for i, row in zip(index, values, strict=True)]
            corner = ""
        else:
            names = (data.index.name, data.columns.name)
            corner = "/".join(map(str, names)) if None not in names else ""
            head = ["", *head]
            pairs = zip(index, values, strict=True)
            body = [(f"row {short(i)}", [i, *row]) for i, row in pairs]
    else:
        raise ValidationError(
            f"data: expected a DataFrame or the path of a CSV file, found {short(data)}"
        )
    if not body:
        raise ValidationError("data: found a header and no counts")
    if COUNT in head:
        return _long(head, body, total)
    return _cross(corner, head, body, total)


def _long(head: list[Any], body: list[tuple[str, list[Any]]], total: str) -> Counts:
    """Return what a line for each cell says."""
    where = head.index(COUNT)
    names = [str(name) for place, name in enumerate(head) if place != where]
    if not names or head.count(COUNT) > 1 or len(set(names)) < len(names):
        raise ValidationError(
            f"data: the columns are {preview(tuple(head))}; one for each variable and one called "
            f"{COUNT!r} are needed"
        )
    cells: dict[tuple[Hashable, ...], int] = {}
    for line, row in body:
        label = tuple(plain_label(v, line) for place, v in enumerate(row) if place != where)
        if label in cells:
            raise ValidationError(f"data: {line}: the cell {label!r} is there twice")
        cells[label] = _whole(row[where], line)
    known = [
        tuple(v for v in dict.fromkeys(label[axis] for label in cells) if v != total)
        for axis in range(len(names))
    ]
    counts = np.zeros([len(categories) for categories in known], dtype=np.int64)
    for label, count in cells.items():
        if total not in label:
            pairs = zip(known, label, strict=True)
            counts[tuple(categories.index(part) for categories, part in pairs)] = count
    for label, count in cells.items():
        if total in label:
            pairs = zip(known, label, strict=True)
            at = tuple(
                slice(None) if part == total else categories.index(part)
                for categories, part in pairs
            )
            _adds_up(label, count, int(counts[at].sum()))
    return dict(zip(names, known, strict=True)), counts, ()


def _cross(corner: str, head: list[Any], body: list[tuple[str, list[Any]]], total: str) -> Counts:
    """Return what a cross table says."""
    names = corner.split("/") if corner.count("/") == 1 else ["row", "column"]
    across, down = head[1:], [row[0] for _, row in body]
    for labels, name in ((across, names[1]), (down, names[0])):
        label_tuple(labels, len(labels), f"data: the categories of {name}")
    values = {
        (left, top): _whole(cell, line)
        for (line, row), left in zip(body, down, strict=True)
        for top, cell in zip(across, row[1:], strict=True)
    }
    left = tuple(label for label in down if label != total)
    top = tuple(label for label in across if label != total)
    if not left or not top:
        raise ValidationError("data: found margins alone; a cross table of counts is needed")
    counts = np.array([[values[i, j] for j in top] for i in left], dtype=np.int64)
    for i, j in product(down, across):
        if total in (i, j):
            rows = slice(None) if i == total else left.index(i)
            columns = slice(None) if j == total else top.index(j)
            _adds_up((i, j), values[i, j], int(counts[rows, columns].sum()))
    return {names[0]: left, names[1]: top}, counts, (names[1],)


def _whole(value: Any, line: str) -> int:
    number = value.item() if isinstance(value, np.generic) else value
    try:
        whole = not isinstance(number, bool) and number == int(number) >= 0
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise ValidationError(
            f"data: {line}: found {short(value)}; a count is a whole number, at least 0"
        )
    return int(number)


def _adds_up(label: tuple[Hashable, ...], stated: int, summed: int) -> None:
    if stated != summed:
        raise ValidationError(f"data: the margin {label!r} is {stated}; its cells sum to {summed}")
