"""`Samples`: pairs of a secret and an output, from a frame, a file or arrays."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.tables import MISSING, label_from_text, read_table
from cvxleak.core.validation import is_missing, plain_label, short
from cvxleak.core.value import Value, preview
from cvxleak.core.wording import counted

__all__ = ["Samples", "check_entry", "read_samples"]


@dataclass(frozen=True, eq=False, init=False)
class Samples(Value):
    """Draws from a mechanism: the secret (input) and the output of each.

    Parameters
    ----------
    secrets, outputs : iterable of hashable
        Of equal length: one secret and one output per draw.

    Raises
    ------
    ValidationError
        Different lengths, no draws, or an entry that is missing (None, NaN) or not hashable.

    Examples
    --------
    >>> from cvxleak.samples import Samples
    >>> samples = Samples("aabb", [0, 1, 1, 1])
    >>> len(samples), samples.distinct
    (4, ('a', 'b'))
    """

    secrets: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def __init__(self, secrets: Iterable[Hashable], outputs: Iterable[Hashable]) -> None:
        columns = {"secrets": _column(secrets, "secrets"), "outputs": _column(outputs, "outputs")}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValidationError(
                f"outputs: found {lengths['outputs']} for {counted(lengths['secrets'], 'secret')}"
            )
        if not columns["secrets"]:
            raise ValidationError("secrets: found no draws; each secret needs at least two")
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.secrets)

    @property
    def distinct(self) -> tuple[Hashable, ...]:
        """The secrets, each once, in the order in which they first appear."""
        return tuple(dict.fromkeys(self.secrets))

    def to_frame(self, secret: str = "x", output: str = "y") -> Any:
        """Return the draws as a pandas DataFrame with these two columns (needs pandas)."""
        import pandas as pd

        return pd.DataFrame({secret: list(self.secrets), output: list(self.outputs)})

    def __repr__(self) -> str:
        found = self.distinct
        return (
            f"Samples({counted(len(self), 'draw')} of {counted(len(found), 'secret')} "
            f"{preview(found)})"
        )


def read_samples(samples: Any, secret: str = "x", output: str = "y") -> Samples:
    """Return the pairs of secret and output in a frame, a file, named columns, or two arrays.

    Parameters
    ----------
    samples : Samples, pandas.DataFrame, mapping, path of a CSV file, or pair of arrays
        In a pair of arrays the secrets come first. Cells of a file are read as `Channel.from_csv`
        reads labels: 1 is a number, "1" in JSON quotes is text.
    secret, output : str
        Names of the columns, if they have names.

    Raises
    ------
    ValidationError
        Another type, a missing column, or an empty cell.

    Examples
    --------
    >>> from cvxleak.samples import read_samples
    >>> read_samples({"x": [0, 0, 1], "y": ["no", "yes", "yes"]})
    Samples(3 draws of 2 secrets [0, 1])
    """
    if isinstance(samples, Samples):
        return samples
    if isinstance(samples, (str, os.PathLike)):
        return _from_file(samples, secret, output)
    if isinstance(samples, Mapping) or (hasattr(samples, "iloc") and hasattr(samples, "columns")):
        columns: Any = samples
        names = list(columns.keys())
        for argument, name in (("secret", secret), ("output", output)):
            if not isinstance(name, Hashable) or name not in names:
                raise _unknown(argument, name, names)
        return _named(columns[secret], columns[output], secret, output)
    if isinstance(samples, (tuple, list)) and len(samples) == 2:
        return Samples(*samples)
    raise ValidationError(
        "samples: expected a DataFrame, columns by name, the path of a CSV file, or two arrays "
        f"(secrets, outputs); found {short(samples)}"
    )


def _from_file(path: str | os.PathLike[str], secret: str, output: str) -> Samples:
    (_, header), *rows = read_table(path)
    for argument, name in (("secret", secret), ("output", output)):
        if header.count(name) != 1:
            raise _unknown(argument, name, header)
    places = [header.index(secret), header.index(output)]
    for line, cells in rows:
        for place in places:
            if cells[place].lower() in MISSING:
                raise ValidationError(
                    f"path: line {line} of {os.fspath(path)!r}: the column {header[place]!r} is "
                    "empty; every draw needs a secret and an output"
                )
    if not rows:
        raise ValidationError(f"path: {os.fspath(path)!r} has a header and no draws")
    # Most cells are there many times.
    labels: dict[str, Hashable] = {}
    for _, cells in rows:
        for place in places:
            if cells[place] not in labels:
                labels[cells[place]] = label_from_text(cells[place])
    secrets, outputs = ([labels[cells[place]] for _, cells in rows] for place in places)
    return _named(secrets, outputs, secret, output)


def _named(secrets: Any, outputs: Any, secret: str, output: str) -> Samples:
    """Return the samples, and blame columns by their names."""
    try:
        return Samples(secrets, outputs)
    except ValidationError as error:
        column = {"secrets": secret, "outputs": output}[error.argument or "secrets"]
        raise ValidationError(f"column {column!r}: {error.detail}") from error


def _unknown(argument: str, name: Any, names: list[Any]) -> ValidationError:
    return ValidationError(
        f"{argument}: found {short(name)}; one of the columns {preview(tuple(names))} is needed"
    )


def _column(values: Any, name: str) -> tuple[Hashable, ...]:
    """Return a column as plain values, none of them missing."""
    plain = values.tolist() if hasattr(values, "tolist") else values
    try:
        column = tuple(plain)
    except TypeError as error:
        raise ValidationError(f"{name}: expected a column, found {short(values)}") from error
    known: dict[Hashable, Hashable] = {}
    for place, value in enumerate(column):
        if not isinstance(value, Hashable) or value not in known:
            known[value] = check_entry(value, f"{name}: entry {place}")
    return tuple(known[value] for value in column)


def check_entry(value: Any, where: str) -> Hashable:
    """Return a secret or an output as a plain value, or say that it is none.

    Raises
    ------
    ValidationError
        Nothing (None, NaN), or what is not hashable.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.samples.reading import check_entry
    >>> check_entry(np.int64(3), "row 1")
    3
    """
    if is_missing(value):
        raise ValidationError(f"{where} is {short(value)}; every draw needs a secret and an output")
    try:
        hash(value)
    except TypeError as error:
        raise ValidationError(
            f"{where} is {short(value)}, no value that can be counted; a number, a text or a tuple "
            "is one, and so an array that is short is given as tuple(array)"
        ) from error
    return plain_label(value, where)
