"""Reading and writing files: atomic writes, tables, labels that survive CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import secrets
import shutil
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import as_written
from cvxleak.core.validation import short

# 50 %, 0,5, 1 000, 1_000, ½: a number to a person, and none here.
_NUMBER_OF_OTHERS = re.compile(r"[-+−]?[.,]?[\d½¼¾⅓⅔][\d½¼¾⅓⅔\s.,'_/%‰eE+−-]*")


def write_atomic(path: str | os.PathLike[str], text: str | bytes) -> None:
    """Write `text` to `path` so that a reader sees the old file or the new one, never a part."""
    target = Path(os.path.realpath(checked_path(path)))
    data = text.encode() if isinstance(text, str) else text
    temporary = target.parent / f".cvxleak-{secrets.token_hex(8)}"
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe is written to; replacing it by a file would destroy it.
            target.write_bytes(data)
            return
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ValidationError(f"path: cannot write {os.fspath(path)!r}: {error}") from error


def checked_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return a path, or say that it is none."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValidationError(f"path: expected text or a path, found {short(path)}")
    return path


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, with one clear error for whatever is wrong with it."""
    try:
        return Path(checked_path(path)).read_text(encoding="utf-8-sig")
    except ValidationError:
        raise
    except (OSError, ValueError) as error:
        raise ValidationError(f"path: cannot read {os.fspath(path)!r}: {error}") from error


def write_table(path: str | os.PathLike[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows of cells to a CSV file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    write_atomic(path, buffer.getvalue())


def read_table(path: str | os.PathLike[str]) -> list[tuple[int, list[str]]]:
    """Return (line number, stripped cells) of the non-blank lines of a CSV file, equally long."""
    reader = csv.reader(io.StringIO(read_text(path)), skipinitialspace=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValidationError(f"path: {os.fspath(path)!r} is not CSV: {error}") from error
    rows = [(line, cells) for line, cells in rows if cells not in ([], [""])]
    if not rows:
        raise ValidationError(f"path: {os.fspath(path)!r} is empty")
    if all(len(cells) == 1 and ";" in cells[0] for _, cells in rows):
        raise ValidationError(
            f"path: {os.fspath(path)!r} separates its cells by semicolons; CSV with commas (and "
            "points in the numbers) is needed"
        )
    width = len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise ValidationError(
                f"path: line {line} of {os.fspath(path)!r} has {len(cells)} cells; "
                f"{width} are needed"
            )
    return rows


def is_header(row: tuple[int, list[str]], column: int, path: str | os.PathLike[str]) -> bool:
    """Whether the first line of a table holds labels: its cell in `column` (from 1) is no number.

    A number in another notation is refused: taken for a label it would cost the table a line.
    """
    line, cells = row
    cell = cells[column - 1]
    if _NUMBER_OF_OTHERS.fullmatch(cell) and not is_number(cell):
        raise _not_a_number(
            cell, line, column, path, "; in a header there must be a word, or nothing"
        )
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
        f"with a decimal point, or a fraction such as 1/3, is needed{more}"
    )


def is_number(text: str) -> bool:
    """Whether a cell reads as a number: a decimal, or a fraction such as 1/3."""
    try:
        as_written(text)
    except (ValueError, OverflowError):
        return False
    return True


def labels_from_json(labels: Any) -> Any:
    """Turn the lists that JSON makes of tuples back into tuples."""
    if isinstance(labels, list):
        return tuple(labels_from_json(label) for label in labels)
    return labels


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
