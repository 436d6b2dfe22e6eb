"""`SpecFile`: a SPEC.toml and the files that it names, as a command finds them."""

from __future__ import annotations

import copy
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cvxleak.cli.cli_errors import place
from cvxleak.cli.reading import check_spec, is_list, read_toml
from cvxleak.cli.spec.section import Percent
from cvxleak.core.errors import CvxleakError, ValidationError
from cvxleak.problem.bound import converted

__all__ = ["SpecFile", "read_file", "sha256"]

ARGUMENTS = {
    "adversary.feature": "values",
    "n": "number of records",
    "k": "number of values",
    "query.table": "values",
    "path": None,
    "local_dp.budget": "distortion_budget",
}
"""What the library's arguments are called in a spec, anywhere or in one table; None where the key
says it already."""

FILES = ("file", "scores", "microdata", "counts", "published")
"""Keys whose text is the name of a file."""


class SpecFile:
    """A spec, read and checked against the schema, and the files that it names.

    Attributes
    ----------
    path : str
        The spec's path, as the user gave it.
    name : str
        Its file name.
    spec : Spec
    text : str
        The file's content, as it is.
    files : dict of str to str
        SHA-256 of each file that the spec names and that was looked up so far.

    Raises
    ------
    ValidationError
        A file that cannot be read, or that is not what the schema asks for.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.name = Path(path).name
        data = read_file(path)
        self._content = read_toml(data, self.path)
        self.spec = check_spec(self._content, self.path)
        self.files: dict[str, str] = {}
        self._hash = sha256(data)
        self.text = data.decode("utf-8-sig")

    def having(self, changes: Mapping[str, Any]) -> SpecFile:
        """Return the same spec with other values of some keys, section.key by section.key.

        A single value for a key that has a list is the list's only element.

        Raises
        ------
        ValidationError
            A key that is not one of a section, or a value that the schema does not allow.
        """
        content = {
            name: dict(part) if isinstance(part, dict) else part
            for name, part in self._content.items()
        }
        for key, value in changes.items():
            section, _, name = key.partition(".")
            part = content.setdefault(section, {})
            if not name or not isinstance(part, dict):
                raise ValidationError(
                    f"{self.path}: {key}: a key of a section is needed, as in query.n"
                )
            single = is_list(section, name) and not isinstance(value, list)
            part[name] = [value] if single else value
        other = copy.copy(self)
        other._content, other.files = content, {}
        other.spec = check_spec(content, self.path)
        return other

    def look_up_files(self) -> None:
        """Take note of what is in all files that the spec names."""
        for name, part in self._content.items():
            for key in FILES:
                if isinstance(part, dict) and isinstance(part.get(key), str):
                    with self.at(f"{name}.{key}"):
                        self.file(part[key])

    @property
    def title(self) -> str:
        """The first line of what a command prints."""
        return self.spec.title or self.name

    @property
    def prior_source(self) -> list[str]:
        """The line that says where the numbers of [prior] are from, if the spec does."""
        prior = self.spec.prior
        return [] if prior is None or prior.source is None else [f"Prior: {prior.source}"]

    def needs(self, command: str, *sections: str | tuple[str, ...]) -> None:
        """See that the sections are there which a command needs; of a tuple, any one.

        Raises
        ------
        ValidationError
            Sections are missing: a line for each.
        """
        lines = []
        for names in sections:
            choice = (names,) if isinstance(names, str) else names
            if all(getattr(self.spec, name) is None for name in choice):
                wanted = " or ".join(f"[{name}]" for name in choice)
                lines.append(f"{self.path}: {command} needs {wanted}")
        if lines:
            raise ValidationError("\n".join(lines) + "; docs/specs.md describes what a spec has")

    @contextmanager
    def at(self, key: str, *, naming: bool = True) -> Iterator[None]:
        """Say what the library complains about in terms of the spec: its path, then the key.

        The argument that is to blame is a part of the key if it stands in that table of the spec;
        if not, it is named after the key, unless `naming` is false because the key says it already.
        """
        try:
            yield
        except CvxleakError as error:
            name = error.argument
            if name:
                name = ARGUMENTS.get(f"{key}.{name}", ARGUMENTS.get(name, name))
            where = key
            if name and naming:
                part = self._content.get(key)
                stated = isinstance(part, dict) and name.partition("[")[0] in part
                where += f".{name}" if stated else f": {name}"
            raise type(error)(f"{self.path}: {where}: {error.detail}") from error

    def numbers(
        self,
        option: str,
        values: Sequence[float] | None,
        key: str,
        unit: str | None,
        check: Callable[[Sequence[float], str], object] | None = None,
        most: float = math.inf,
    ) -> tuple[list[float], str]:
        """Return the numbers of an option or else of a key of a section, and where they stand.

        If there is a `unit`, that of the report, they are information: those of the spec may have
        another unit, that of their section. `check` is given the numbers and their unit as stated.
        Percents are shares of `most` nats.
        """
        found, stated, where = list(values or ()), unit, option
        if not found:
            section, _, name = key.partition(".")
            table = getattr(self.spec, section)
            found, where = getattr(table, name), f"{self.path}: {key}"
            stated = unit and (table.unit or unit)
        if unit and stated:
            found = [
                x * converted(most, "nats", stated) if isinstance(x, Percent) else x for x in found
            ]
        if check is not None and stated is not None:
            with place(where):
                check(found, stated)
        return [converted(x, stated, unit) for x in found] if unit and stated else found, where

    def file(self, relative: str) -> Path:
        """Return the path of a file that the spec names, and take note of what is in it."""
        path = Path(self.path).parent / relative
        self.files[relative] = sha256(read_file(path))
        return path

    def identity(self) -> dict[str, Any]:
        """Return what a report says about where it is from, as `report_document` takes it."""
        return {"spec": self.name, "sha256": self._hash, "files": self.files}


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return a file's content, or say in a few words why not."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValidationError(f"{os.fspath(path)}: {error.strerror or error}") from error


def sha256(data: bytes) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
