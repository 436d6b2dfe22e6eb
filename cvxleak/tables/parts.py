"""The cells, margins and total of a table of two variables, and what a move changes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Blocks", "Parts", "Turns"]

Turns = tuple[int, ...]
"""By how much the people of each part of a block are more than in the table."""

Blocks = tuple[Turns, ...]
"""That of each block."""


class Parts(NamedTuple):
    """Where the cells of a table of two variables are, the smaller one first."""

    places: tuple[tuple[int, int], ...]
    rows: int
    columns: int

    @classmethod
    def of(cls, places: Sequence[tuple[int, ...]]) -> Parts | None:
        """Return the parts for cells at these positions; None if they are not of two variables."""
        if any(len(place) != 2 for place in places):
            return None
        axes = [sorted({place[axis] for place in places}) for axis in range(2)]
        axes, turn = (axes, 1) if len(axes[0]) <= len(axes[1]) else (axes[::-1], -1)
        own = tuple(
            (axes[0].index(place[::turn][0]), axes[1].index(place[::turn][1])) for place in places
        )
        return cls(own, len(axes[0]), len(axes[1]))

    def cells(self, j: int, p: int) -> tuple[int, ...]:
        """Return the cells of column j and row p, counted from 1; 0 stands for all of them."""
        return tuple(
            cell
            for cell, (row, column) in enumerate(self.places)
            if p in (0, row + 1) and j in (0, column + 1)
        )

    @property
    def every(self) -> set[tuple[int, ...]]:
        """The cells of each part."""
        return {self.cells(j, p) for j in range(self.columns + 1) for p in range(self.rows + 1)}

    def turns(self, source: int, target: int) -> Blocks:
        """Return the turns of all parts if a person moves; other positions are outside."""
        found = np.zeros((self.columns + 1, self.rows + 1), dtype=int)
        for cell, by in ((source, -1), (target, 1)):
            if source != target and 0 <= cell < len(self.places):
                p, j = self.places[cell]
                for part in ((0, 0), (j + 1, 0), (0, p + 1), (j + 1, p + 1)):
                    found[part] += by
        return tuple(tuple(row) for row in found.tolist())
