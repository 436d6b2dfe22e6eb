"""The files of a sweep: rows as JSON lines that survive a kill, and a folder of certificates."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.proofs import Certificate
from cvxleak.sweeps.rows import SweepRow

__all__ = ["Point", "Proofs", "Store", "key_of"]

FORMAT = "cvxleak-sweep"
VERSION = 1

Point = Mapping[str, Any]


def key_of(point: Point) -> str:
    """Return what tells a point from the others of its sweep."""
    # Floats round-trip through JSON, so a point that was read back is the same one.
    return json.dumps(to_json(point), sort_keys=True, default=repr)


class Proofs:
    """A folder of certificates, each in a file named after its hash."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValidationError(
                f"certificates: cannot make the folder {str(self._folder)!r}: {error}"
            ) from error

    def add(self, certificate: Certificate) -> None:
        """Write one more; before its row, so that what a row names is there."""
        certificate.save(self._file(certificate.hash))

    def hold(self, row: SweepRow) -> bool:
        """Whether a row that was read back has all that it can have."""
        if row.status not in ("CERTIFIED", "BRACKETED"):
            return True
        return bool(row.certificate) and self._file(row.certificate).is_file()

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"


class Store:
    """A file of JSON lines: a heading, then a row for each result."""

    def __init__(self, path: str | os.PathLike[str], title: str, names: tuple[str, ...]) -> None:
        self._path = Path(path)
        self._heading = {
            "format": FORMAT,
            "version": VERSION,
            "title": title,
            "coordinates": sorted(names),
        }

    def known(self, points: Sequence[Point]) -> dict[str, SweepRow]:
        """Return the results that the file holds, the last one for each point."""
        try:
            json.dumps([to_json(point) for point in points], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValidationError(
                f"grid: found a value that JSON cannot hold: {error}; without a path it can be any"
            ) from error
        try:
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        except (OSError, ValueError) as error:
            raise ValidationError(f"path: cannot read {str(self._path)!r}: {error}") from error
        heading = json.dumps(self._heading, allow_nan=False) + "\n"
        if heading.startswith(text):
            # A new file, or one whose heading was cut short by a crash.
            self._write(heading[len(text) :])
            return {}
        lines = text.split("\n")
        if _parsed(lines[0]) != self._heading:
            raise ValidationError(
                f"path: {str(self._path)!r} does not hold the sweep {self._heading['title']!r} "
                f"over {self._heading['coordinates']}"
            )
        if lines[-1]:
            # The last line was cut short by a crash: the next one must not be glued to it.
            self._write("\n")
        found = {}
        for line in lines[1:]:
            data = _parsed(line)
            try:
                row = SweepRow.from_dict(data)
            except (KeyError, TypeError, ValueError):
                continue
            if not row.failed:
                found[key_of(row.point)] = row
        return found

    def add(self, row: SweepRow) -> None:
        """Write one more result."""
        self._write(json.dumps(to_json(row.to_dict()), allow_nan=False) + "\n")

    def _write(self, text: str) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ValidationError(f"path: cannot write {str(self._path)!r}: {error}") from error


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
