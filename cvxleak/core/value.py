"""Shared by all model objects: equality by content, pickling by re-validation, JSON files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Set
from typing import Any, Self

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import read_text, write_atomic
from cvxleak.core.numbers import from_json, same_numbers
from cvxleak.core.validation import short

__all__ = ["Stored", "Value", "check_keys", "preview"]


class Value:
    """Mixin of the frozen dataclasses of the model.

    Two objects are equal when they have the same type and equal fields. Unpickling calls the
    constructor, so a loaded object is validated and its arrays are read-only again (NumPy forgets
    that flag when it pickles).
    """

    def _hold(self, **data: Any) -> None:
        """Set data of the frozen object: for its constructor."""
        for name, value in data.items():
            object.__setattr__(self, name, value)

    def _state(self) -> tuple[Any, ...]:
        return tuple(
            getattr(self, field.name)
            for field in dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
            if field.init
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(self._state(), other._state(), strict=True)
        return all(_equal(mine, theirs) for mine, theirs in pairs)

    def __hash__(self) -> int:
        return hash(
            tuple(
                (part.shape, part.tobytes()) if isinstance(part, np.ndarray) else part
                for part in self._state()
            )
        )

    def __reduce__(self) -> tuple[Any, ...]:
        named = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # pyright: ignore[reportArgumentType]
        return _made, (type(self), named)


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        return type(mine) is type(theirs) and same_numbers(mine, theirs)
    return mine == theirs


def _made(kind: type[Any], named: dict[str, Any]) -> Any:
    return kind(**named)


class Stored(Value):
    """Mixin of the values that can be written as JSON, through `to_dict` and `from_dict`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain lists, ready for JSON (floats round-trip exactly)."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the object that `to_dict` wrote, validated.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        raise NotImplementedError

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the object to a JSON file (all of it or nothing).

        Raises
        ------
        ValidationError
            A label that JSON cannot hold (text, numbers, booleans, None and tuples of them are
            fine), or a path that cannot be written.
        """
        try:
            text = json.dumps(self.to_dict())
        except TypeError as error:
            raise ValidationError(f"path: a label cannot be written as JSON: {error}") from error
        write_atomic(path, text + "\n")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Self:
        """Read the object from a JSON file that `to_json` wrote.

        Raises
        ------
        ValidationError
            The file cannot be read, is not JSON, or does not hold a valid object.
        """
        try:
            data = json.loads(read_text(path), parse_float=from_json)
        except (ValueError, RecursionError) as error:
            if isinstance(error, ValidationError):
                raise
            raise ValidationError(f"path: {os.fspath(path)!r} is not JSON: {error}") from error
        return cls.from_dict(data)


def check_keys(data: Any, needed: set[str], optional: Set[str] = frozenset()) -> None:
    """Check that `data` is a mapping with the keys `needed`, and none but these and `optional`."""
    if not isinstance(data, Mapping):
        raise ValidationError(f"data: expected a mapping, found {short(data)}")
    missing = needed - data.keys()
    unknown = data.keys() - needed - optional
    if missing or unknown:
        raise ValidationError(
            f"data: missing keys {sorted(missing)}, unknown keys {preview(tuple(unknown))}"
        )


def preview(labels: tuple[Any, ...], limit: int = 6) -> str:
    """Return a short text of `labels`: the first ones and the last."""
    shown = [short(label) for label in labels[:limit]]
    if len(labels) > limit:
        shown = [*shown[: limit - 1], "...", short(labels[-1])]
    return "[" + ", ".join(shown) + "]"
