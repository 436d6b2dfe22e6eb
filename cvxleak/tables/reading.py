"""People and counts, from frames and files."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.tables import MISSING, label_from_text, read_table
from cvxleak.core.validation import in_order, is_missing, label_tuple, one_of, plain_label, short
from cvxleak.core.value import preview
from cvxleak.core.wording import counted
from cvxleak.tables.arguments import MOST_PEOPLE, TOTAL, Cell, check_size, places_of

__all__ = ["microdata_columns", "read_counts", "read_layout", "read_published"]

WITHOUT = "missing"
"""The category of people whose value is missing."""

COUNT, FREQ = "count", "freq"
"""The column of counts of a long file, in small letters; R's as.data.frame of a table says Freq."""

TOTALS = (TOTAL, "sum")
"""What files call margins, in lower case: R's addmargins says Sum."""

UNNAMED = ("row", "column")
"""The variables of a cross table that does not name them."""

_PEOPLE = "Table.from_microdata (in a spec, microdata) counts a line for each person"

_CROSS = f"; without a column called {COUNT!r} this is read as a cross table"

Coded = tuple[tuple[Hashable, ...], NDArray[np.intp]]
"""The categories of a variable, and the place of each person's among them."""

Counts = tuple[dict[str, tuple[Hashable, ...]], NDArray[np.int64], tuple[str, ...]]
"""Variables with their categories, the counts, and the variables that run across."""


def microdata_columns(
    data: Any, names: Sequence[str], categories: Mapping[str, Iterable[Hashable]], missing: str
) -> dict[str, Coded]:
    """Return for each variable its categories, and the position of each person's among them.

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
    """Return the columns with these names; None stands for a missing value."""
    if isinstance(data, (str, os.PathLike)):
        (_, header), *rows = read_table(data, semicolons=True)
        places = [_column_of(name, header) for name in names]
        labels: dict[str, Any] = {text: None for _, cells in rows for text in cells}
        for text in labels:
            if text.lower() not in MISSING:
                labels[text] = label_from_text(text)
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
        found[name] = [None if is_missing(value) else value for value in plain]
    return found


def _column_of(name: str, header: Sequence[Any]) -> int:
    if list(header).count(name) != 1:
        found = "twice" if name in header else "not there"
        raise ValidationError(
            f"data: the column {name!r} is {found}; the columns are {preview(tuple(header))}"
        )
    return list(header).index(name)


def _coded(column: list[Any], name: str, listed: Iterable[Hashable] | None, keep: bool) -> Coded:
    lines = {plain_label(value, f"data[{name!r}]"): line for line, value in enumerate(column)}
    if None in lines and not keep:
        raise ValidationError(
            f"data: the column {name!r} has no value for person {column.index(None)} (from 0); "
            "missing may be 'category', which makes that a category of its own"
        )
    if None in lines and WITHOUT in lines:
        raise ValidationError(
            f"data: the column {name!r} has missing values and a category {WITHOUT!r}; rename one"
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
        known = (*known, WITHOUT)
    places = {value: place for place, value in enumerate(known)}
    if None in lines:
        places[None] = places[WITHOUT]
    return known, np.array([places[value] for value in column], dtype=np.intp)


def read_counts(data: Any, zeros: Iterable[Any] = (), missing: str = "refuse") -> Counts:
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
    >>> read_counts(frame)
    ({'sex': ('f', 'm')}, array([3, 4]), ())
    """
    keep = one_of(missing, ("refuse", "zero"), "missing") == "zero"
    names, across, found = _labeled(data, f"; {_PEOPLE}")
    hint = f"{_CROSS}; {_PEOPLE}" if across else ""
    numbers = {label: _whole(value, line, hint) for label, (line, value) in found.items()}
    known = _categories(names, numbers)
    variables, shape = dict(zip(names, known, strict=True)), tuple(map(len, known))
    check_size(shape)
    counts, unknown = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=bool)
    for cell in zeros:
        unknown[places_of(cell, tuple(variables.items()), "zeros")] = False
    where: dict[Cell, tuple[Any, ...]] = {
        label: tuple(
            slice(None) if part == TOTAL else categories.index(part)
            for categories, part in zip(known, label, strict=True)
        )
        for label in numbers
    }
    for label, count in numbers.items():
        if TOTAL not in label:
            counts[where[label]], unknown[where[label]] = count, False
    for axis, categories in enumerate(known):
        for place, part in enumerate(categories):
            text, own = str(part).lower(), np.take(counts, place, axis)
            if text == "all" and (2 * own == counts.sum(axis)).all():
                raise ValidationError(f"data: found {part!r}; margins are called {TOTAL!r}")
    for label, stated in numbers.items():
        summed = int(counts[where[label]].sum())
        if stated != summed:
            raise ValidationError(
                f"data: the margin {label!r} is {stated}; its cells sum to {summed}. If the "
                "numbers are published ones, with noise, Table.from_published reads them"
            )
        unknown[where[label]] = False  # a margin that adds up leaves nobody for other cells
    if unknown.any() and not keep:
        cells = [
            tuple(categories[i] for categories, i in zip(known, place, strict=True))
            for place in np.argwhere(unknown)
        ]
        raise ValidationError(
            f"data: {len(cells)} of {counted(unknown.size, 'cell')} "
            f"{'has' if len(cells) == 1 else 'have'} no count, "
            f"{preview(tuple(cells))}; "
            "missing may be 'zero', which takes them as 0; zeros lists cells in which nobody can be"
        )
    return variables, counts, across


def read_layout(
    data: Any,
) -> tuple[dict[str, tuple[Hashable, ...]], list[tuple[str, ...]], tuple[str, ...]]:
    """Return the variables, the margins and the columns of published numbers.

    Raises
    ------
    ValidationError
        As `Table.from_published`.

    Examples
    --------
    >>> import pandas as pd
    >>> from cvxleak.tables.reading import read_layout
    >>> read_layout(pd.DataFrame({"sex": ["f", "m", "Total"], "count": [3, 3, 9]}))
    ({'sex': ('f', 'm')}, [()], ())
    """
    if isinstance(data, (list, tuple)) or (hasattr(data, "ndim") and not hasattr(data, "columns")):
        raise ValidationError(
            "data: expected a DataFrame or the path of a CSV file, which name categories, found "
            f"{short(data)}; Table({{'sex': ['f', 'm'], 'age': ['young', 'old']}}) names those of "
            "an array, whose numbers are published in the order of Table.numbers, and "
            f"reset_index(name={COUNT!r}) makes a frame of a Series"
        )
    names, across, found = _labeled(data, "")
    known = _categories(names, found)
    for part in (part for categories in known for part in categories):
        if str(part).lower() == "all":
            raise ValidationError(
                f"data: found {part!r}; a margin is called {TOTAL!r}, and a table with such a "
                "category is made by Table(variables)"
            )
    pairs = [zip(names, label, strict=True) for label in found if TOTAL in label]
    margins = [tuple(name for name, part in pair if part != TOTAL) for pair in pairs]
    return dict(zip(names, known, strict=True)), list(dict.fromkeys(margins)), across


def _categories(names: Sequence[str], labels: Iterable[Cell]) -> list[tuple[Hashable, ...]]:
    """Return the categories of each variable, in the order in which they occur."""
    listed = list(labels)
    known = [
        tuple(part for part in dict.fromkeys(label[axis] for label in listed) if part != TOTAL)
        for axis in range(len(names))
    ]
    if not all(known):
        raise ValidationError("data: found margins alone; counts of the cells are needed")
    return known


def read_published(
    data: Any, names: tuple[str, ...], across: tuple[str, ...] = ()
) -> tuple[dict[Cell, Any], str]:
    """Return the published numbers of a table by label, from a frame or a file, and a hint.

    The hint, for a message about the labels, says so if they were read from a cross table.

    It is read as `Table.from_counts` reads counts; they may be negative, and need not add up. A
    cross table without names of its two variables is read as the table is shown: with the variable
    of `across` from left to right, the second if it is empty.

    Raises
    ------
    ValidationError
        It cannot be read, has other variables than `names`, or a number twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from cvxleak.tables.reading import read_published
    >>> frame = pd.DataFrame({"sex": ["f", "m", "total"], "count": [3, 3, 9]})
    >>> read_published(frame, ("sex",))
    ({('f',): 3, ('m',): 3, ('total',): 9}, '')
    """
    try:
        found_names, crossed, found = _labeled(data, "")
    except ValidationError as error:
        if error.argument != "data":
            raise
        raise ValidationError(f"published: {error.detail}") from error
    hint = _CROSS if crossed else ""
    if set(found_names) == set(names):
        order = [found_names.index(name) for name in names]
    elif found_names == UNNAMED[: len(names)]:
        order = [1, 0] if len(names) == 2 and across == names[:1] else list(range(len(names)))
    else:
        raise ValidationError(
            f"published: found the variables {preview(found_names)}; the table has "
            f"{preview(names)}{hint}"
        )
    return {tuple(label[i] for i in order): value for label, (_, value) in found.items()}, hint


def _labeled(
    data: Any, people: str
) -> tuple[tuple[str, ...], tuple[str, ...], dict[Cell, tuple[str, Any]]]:
    """Return the variables, those that run across, and each number with its line.

    `people` follows a message where the lines may be people.
    """
    if isinstance(data, (str, os.PathLike)):
        (_, header), *rows = read_table(data, semicolons=True, spaces=True)
        places = [i for i, cell in enumerate(header) if str(cell).lower() in (COUNT, FREQ)]
        if len(places) == 1 and COUNT not in header:
            header[places[0]] = COUNT
        if header == ["", COUNT]:  # R's names of the rows are the only variable
            header[0] = UNNAMED[0]
        elif COUNT in header and header[0] == "":  # R writes the numbers of its rows
            header, rows = header[1:], [(line, cells[1:]) for line, cells in rows]
        body = [(f"line {line}", [label_from_text(cell) for cell in cells]) for line, cells in rows]
        corner, head = header[0], [label_from_text(cell) for cell in header]
    elif hasattr(data, "columns") and hasattr(data, "iloc"):
        corner, head = "", list(data.columns)
        values = data.to_numpy(dtype=object).tolist()
        index = data.index.tolist()
        if COUNT not in head:
            names = (data.index.name, data.columns.name)
            corner = "" if None in names else "/".join(map(str, names))
            head = [corner, *head]
            values = [[label, *row] for label, row in zip(index, values, strict=True)]
        body = [(f"row {short(label)}", row) for label, row in zip(index, values, strict=True)]
    else:
        raise ValidationError(
            "data: expected a DataFrame or the path of a CSV file, found "
            + (
                f"a {type(data).__name__}; reset_index(name={COUNT!r}) makes a frame of it"
                if hasattr(data, "reset_index")
                else f"{short(data)}; Table({{'sex': ['f', 'm'], 'age': ['young', 'old']}}, "
                "counts=[[1, 2], [3, 4]]) takes an array, and names its rows and columns"
            )
        )
    if not body:
        raise ValidationError("data: found a header and no counts")
    found: dict[Cell, tuple[str, Any]] = {}

    def note(label: Iterable[Hashable], line: str, value: Any) -> None:
        parts = [plain_label(part, f"data: {line}") for part in label]
        cell = tuple(TOTAL if str(part).lower() in TOTALS else part for part in parts)
        if cell in found:
            hint = "" if COUNT in head else _CROSS + people
            raise ValidationError(f"data: {line}: {cell!r} is there twice{hint}")
        found[cell] = (line, value)

    if COUNT not in head:
        if corner.count("/") != 1 and len(head) < 3:
            raise ValidationError(
                f"data: the columns are {preview(tuple(head))}; a column called {COUNT!r} and one "
                "for each variable are needed, or a cross table of two variables (separated by "
                f"commas, semicolons, tabs or spaces){people}"
            )
        for line, (left, *row) in body:
            for top, value in zip(head[1:], row, strict=True):
                note((left, top), line, value)
        named = tuple(corner.split("/")) if corner.count("/") == 1 else UNNAMED
        return named, named[1:], found
    where = head.index(COUNT)
    named = tuple(str(name) for place, name in enumerate(head) if place != where)
    if not named or len({*named, COUNT}) < len(head):
        raise ValidationError(
            f"data: the columns are {preview(tuple(head))}; one for each variable and one called "
            f"{COUNT!r} are needed; reset_index() makes columns of a frame's index"
        )
    for line, row in body:
        note(row[:where] + row[where + 1 :], line, row[where])
    return named, (), found


def _whole(value: Any, line: str, hint: str) -> int:
    number = value.item() if isinstance(value, np.generic) else value
    try:
        whole = not isinstance(number, bool) and 0 <= number == int(number) <= MOST_PEOPLE
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise ValidationError(
            f"data: {line}: found {short(value)}; a count is a whole number from 0 to "
            f"{MOST_PEOPLE}{hint}"
        )
    return int(number)
