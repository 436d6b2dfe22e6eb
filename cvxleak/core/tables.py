"""Tables in CSV files: their cells as numbers and labels, labeled matrices and distributions.

No certificate holds a table, so the checker does not load this module.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json, read_text, write_atomic
from cvxleak.core.numbers import as_written
from cvxleak.core.validation import Array
from cvxleak.core.wording import counted

__all__ = [
    "MISSING",
    "is_header",
    "label_from_text",
    "label_to_text",
    "numbers_from_text",
    "read_cells",
    "read_law",
    "read_matrix",
    "read_table",
    "write_law",
    "write_matrix",
]

MISSING = ("", "na", "nan", "null")
"""Texts of empty cells, in lower case; in quotes, as "NA", each is a label."""

_UNNAMED = re.compile(r"\[,\d+\]|\[\d+,\]")
"""What R prints in place of a name: [1,] before a row and [,1] above a column."""

# 50 %, 0,5, 1 000, 1_000, ½: a number to a person, and none here.
_NUMBER_OF_OTHERS = re.compile(r"[-+−]?[.,]?[\d½¼¾⅓⅔][\d½¼¾⅓⅔\s.,'_/%‰eE+−-]*")


def write_matrix(
    path: str | os.PathLike[str],
    matrix: Array,
    inputs: Iterable[Hashable],
    outputs: Iterable[Hashable],
) -> None:
    """Write a matrix with a header of outputs, and a first column of inputs."""
    header = [label_to_text(label, "outputs") for label in outputs]
    names = [label_to_text(label, "inputs") for label in inputs]
    body = [[name, *row] for name, row in zip(names, matrix.tolist(), strict=True)]
    write_table(path, [["", *header], *body])


def read_matrix(
    path: str | os.PathLike[str], made: Callable[[list[list[float]]], object]
) -> tuple[list[list[float]], list[Hashable] | None, list[Hashable] | None]:
    """Return a matrix and its labels of rows and columns, None where the file has none.

    `made` raises a ValueError for a matrix of another kind, which decides whether a first column of
    numbers holds labels.
    """
    cells, inputs, outputs = read_cells(path, made)
    return [[as_written(cell) for cell in row] for row in cells], inputs, outputs


def read_cells(
    path: str | os.PathLike[str], made: Callable[[list[list[Any]]], object]
) -> tuple[list[list[str]], list[Hashable] | None, list[Hashable] | None]:
    """Return what `read_matrix` does, with the numbers as they are written in the file."""
    rows = read_table(path, spaces=True)
    _, header = rows[0]
    if not is_header(rows[0], 1, path):
        return _numbers(rows, path, 1), None, None
    if header[0] and _is_row(header[1:]):
        raise ValidationError(
            f"path: line {rows[0][0]} of {os.fspath(path)!r} may hold the names of the columns or "
            "a row; leave the top-left cell empty if it holds names, or write a line of names "
            "above it if it is a row"
        )
    if len(rows) == 1:
        raise ValidationError(f"path: {os.fspath(path)!r} has a header and no rows")
    unlike_rows = header[0] and not any(map(is_number, header))
    if unlike_rows and _is_whole([cells for _, cells in rows[1:]], made):
        raise ValidationError(
            f"path: {os.fspath(path)!r} has a header, and its first column may hold row labels "
            "or probabilities; leave the top-left cell empty if it holds row labels, or remove "
            "the header if it holds probabilities"
        )
    matrix = _numbers(rows[1:], path, 2)
    return matrix, _labels([cells[0] for _, cells in rows[1:]]), _labels(header[1:])


def _labels(cells: Sequence[str]) -> list[Hashable] | None:
    return None if all(map(_UNNAMED.fullmatch, cells)) else [label_from_text(c) for c in cells]


def _numbers(
    rows: Sequence[tuple[int, list[str]]], path: str | os.PathLike[str], first: int
) -> list[list[str]]:
    """Return the cells from column `first` on, all of which are numbers."""
    for line, cells in rows:
        numbers_from_text(cells[first - 1 :], line, path, first)
    return [cells[first - 1 :] for _, cells in rows]


def _is_row(cells: Sequence[str]) -> bool:
    """Whether the cells of a header are probabilities, and not the names 0 and 1 of two columns."""
    numbers = [as_written(cell) for cell in cells if is_number(cell)]
    return len(numbers) == len(cells) and abs(sum(numbers) - 1) < 0.02 and numbers != [0, 1]


def _is_whole(rows: Sequence[Sequence[str]], made: Callable[[Any], object]) -> bool:
    """Whether cells, none of them a label, are a matrix of this kind."""
    try:
        made(rows)
    except (ValueError, OverflowError):
        return False
    return True


def write_law(
    path: str | os.PathLike[str], probabilities: Array, labels: Iterable[Hashable]
) -> None:
    """Write a header and one line (label, probability) for each outcome."""
    names = [label_to_text(label, "labels") for label in labels]
    body = zip(names, probabilities.tolist(), strict=True)
    write_table(path, [("label", "probability"), *body])


def read_law(path: str | os.PathLike[str]) -> tuple[list[float], list[Hashable]]:
    """Return the probabilities and the labels of a file of two columns."""
    rows = read_table(path)
    if len(rows[0][1]) != 2:
        raise ValidationError(
            f"path: {os.fspath(path)!r} has {len(rows[0][1])} columns; "
            "two are needed, label and probability"
        )
    body = rows[1:] if is_header(rows[0], 2, path) else rows
    values = [numbers_from_text(cells[1:], line, path, 2)[0] for line, cells in body]
    return values, [label_from_text(cells[0]) for _, cells in body]


def write_table(path: str | os.PathLike[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows of cells to a CSV file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    write_atomic(path, buffer.getvalue())


def read_table(
    path: str | os.PathLike[str], semicolons: bool = False, spaces: bool = False
) -> list[tuple[int, list[str]]]:
    """Return (line number, stripped cells) of the non-blank lines of a CSV file, equally long.

    With `semicolons`, a file whose first line has one is separated by them. With `spaces`, a file
    without commas is separated by spaces or tabs, as R writes and prints matrices and tables, and a
    first line of names that is one cell short, as R writes it, has an empty cell put before them.
    """
    text = read_text(path)
    if spaces and not re.search("[,;]", _UNNAMED.sub("", text)):
        rows = _joined([(i, _words(line)) for i, line in enumerate(text.splitlines(), 1)])
    else:
        delimiter = ";" if semicolons and ";" in text.partition("\n")[0] else ","
        reader = csv.reader(io.StringIO(text), skipinitialspace=True, delimiter=delimiter)
        try:
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
        except csv.Error as error:
            raise ValidationError(f"path: {os.fspath(path)!r} is not CSV: {error}") from error
        rows = [(line, cells) for line, cells in rows if cells not in ([], [""])]
        if rows and delimiter == ",":
            _check_separator(rows, text, path)
    if not rows:
        raise ValidationError(f"path: {os.fspath(path)!r} is empty; rows of cells are needed")
    if spaces:
        rows = _with_corner(rows, text, path)
    first, width = rows[0][0], len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise ValidationError(
                f"path: line {line} of {os.fspath(path)!r} has {counted(len(cells), 'cell')}, "
                f"but line {first} has {counted(width, 'cell')}"
            )
    return rows


def _check_separator(
    rows: Sequence[tuple[int, list[str]]], text: str, path: str | os.PathLike[str]
) -> None:
    """Say so if what is read with commas between the cells has semicolons there."""
    lines = [line for line in text.splitlines() if line.strip()]
    widths = {line.count(";") for line in lines}
    # A comma in such a file is that of a decimal: of as many cells as there are, no line has none.
    if (
        len(widths) == 1
        and widths != {0}
        and (len(rows[0][1]) == 1 or any(re.search(r"\d,\d", line) for line in lines))
    ):
        raise ValidationError(
            f"path: {os.fspath(path)!r} separates its cells by semicolons; save it with commas "
            "between the cells and points in the numbers (0.5, not 0,5)"
        )


def _with_corner(
    rows: list[tuple[int, list[str]]], text: str, path: str | os.PathLike[str]
) -> list[tuple[int, list[str]]]:
    """Return lines whose first one has a cell above the row labels, which R leaves out.

    Of a table of two variables R prints the second one on a line of its own; it becomes "sex/age".
    """
    indented = text.splitlines()[rows[0][0] - 1][:1].isspace()
    if indented and len(rows) > 2 and len(rows[0][1]) == 1 < len(rows[1][1]) == len(rows[2][1]):
        (line, (across,)), (_, (down, *header)), *body = rows
        # A number here belongs to the first row of a single column.
        if len(header) > 1 or not is_number(header[0]):
            rows = [(line, [f"{down}/{across}", *header]), *body]
    (line, header), *body = rows
    if not body or len(header) != len(body[0][1]) - 1:
        return rows
    # Numbers are names if they are in quotes, the same as those of the rows, or beside a corner
    # that is blank, as R prints it.
    named = (
        text.lstrip().startswith('"')
        or header == [cells[0] for _, cells in body]
        or re.match(r"[^\S\n]+\S.*\n\S", text)
    )
    if all(map(is_number, header)) and not named:
        raise ValidationError(
            f"path: line {body[0][0]} of {os.fspath(path)!r} has "
            f"{counted(len(body[0][1]), 'cell')}, but line {line} has "
            f"{counted(len(header), 'cell')}; if it holds the names of the columns, put an empty "
            'cell before them ("" between spaces)'
        )
    return [(line, ["", *header]), *body]


def _words(line: str) -> list[str]:
    """Return the words of a line, of which R puts names in quotes."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)
    return [re.sub(r"\\(.)", r"\1", quoted) if not word else word for quoted, word in found]


def _joined(lines: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Return the lines of a matrix that R has printed a few columns at a time, each with all."""
    rows = [(line, cells) for line, cells in lines if cells]
    heads = [i for i, (_, cells) in enumerate(rows) if not any(map(is_number, cells[1:] or cells))]
    size = heads[1] - heads[0] if len(heads) > 1 else 0
    if size < 2 or heads != list(range(0, len(rows), size)):
        return rows
    parts = [rows[i : i + size] for i in heads]
    names = [[cells[0] for _, cells in part[1:]] for part in parts]
    if any(other != names[0] for other in names):
        return rows
    whole = [(line, list(cells)) for line, cells in parts[0]]
    for part in parts[1:]:
        for i, ((_, cells), (_, more)) in enumerate(zip(whole, part, strict=True)):
            cells += more[1:] if i else more
    return whole


def is_header(row: tuple[int, list[str]], column: int, path: str | os.PathLike[str]) -> bool:
    """Whether the first line of a table holds labels: its cell in `column` (from 1) is no number.

    A number in another notation is an error: taken as a label, the line would be lost as a header.
    """
    line, cells = row
    cell = cells[column - 1]
    if _NUMBER_OF_OTHERS.fullmatch(cell) and not is_number(cell):
        raise _not_a_number(cell, line, column, path, "; a header needs words or empty cells")
    return not is_number(cell)


def numbers_from_text(
    cells: Sequence[str], line: int, path: str | os.PathLike[str], column: int = 1
) -> list[float]:
    """Return the cells of one line, from `column` on, as numbers (`cvxleak.core.numbers`)."""
    for place, cell in enumerate(cells, column):
        if not is_number(cell):
            raise _not_a_number(cell, line, place, path)
    return [as_written(cell) for cell in cells]


def _not_a_number(
    cell: str, line: int, column: int, path: str | os.PathLike[str], more: str = ""
) -> ValidationError:
    return ValidationError(
        f"path: line {line}, column {column} of {os.fspath(path)!r}: found {cell[:40]!r}; a number "
        f"with a decimal point (0.5, not 0,5 or 50%), or a fraction such as 1/3, is needed{more}"
    )


def is_number(text: str) -> bool:
    """Whether a cell reads as a number: a decimal, or a fraction such as 1/3."""
    try:
        as_written(text)
    except (ValueError, OverflowError):
        return False
    return True


def label_from_text(text: str) -> Hashable:
    """Return the label that a CSV cell stands for: its value if it is JSON, the text otherwise.

    So 1 is an int, 1.0 a float, [0, 1] a tuple, "1" (in quotes) a text, and 007, yes or NaN too.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict) else labels_from_json(value)


def label_to_text(label: Hashable, name: str) -> str:
    """Return the cell that `label_from_text` reads as `label`."""
    plain = isinstance(label, str) and label.isprintable() and label == label.strip() != ""
    if plain and label_from_text(str(label)) == label:
        return str(label)
    try:
        text = json.dumps(label)
    except (TypeError, ValueError):
        text = ""
    if repr(label_from_text(text)) != repr(label):
        raise ValidationError(
            f"{name}: the label {label!r:.60} cannot be written to CSV; "
            "text, numbers, booleans, None and tuples of them can"
        )
    return text


def _no_constant(name: str) -> float:
    raise ValueError(name)
