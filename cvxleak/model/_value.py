"""What all model objects share: immutability, equality by content, pickling by re-validation."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np


class Value:
    """Mixin of the frozen dataclasses of the model.

    Two objects are equal when they have the same type and equal fields (arrays bit for bit).
    Unpickling calls the constructor, so a loaded object is validated and its arrays are read-only
    again (NumPy forgets that flag when it pickles).
    """

    def _state(self) -> tuple[Any, ...]:
        return tuple(
            getattr(self, field.name)
            for field in dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
            if field.init
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in zip(self._state(), other._state(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(
            tuple(
                (part.shape, part.tobytes()) if isinstance(part, np.ndarray) else part
                for part in self._state()
            )
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._state()


def preview(labels: tuple[Any, ...], limit: int = 6) -> str:
    """Return a short text of `labels` for a repr."""
    shown = [repr(label) for label in labels[:limit]]
    if len(labels) > limit:
        shown = [*shown[: limit - 1], "...", repr(labels[-1])]
    return "[" + ", ".join(shown) + "]"
