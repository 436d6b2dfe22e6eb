"""The channel from one person's cell to what is published, the counts of all others being known."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cvxleak.capacities import capacity
from cvxleak.core.validation import Array
from cvxleak.exact.outward import UNIT_ROUNDOFF
from cvxleak.model import Channel
from cvxleak.problem import Bound
from cvxleak.proofs.bounds.independent import Rows, upper_ends
from cvxleak.tables.noise import CountNoise

__all__ = ["Given", "largest"]


class Given:
    """The distributions of numbers whose noise is independent, given the others.

    Parameters
    ----------
    laws : sequence of CountNoise
    values : sequence of int
        The true value of each number without the person.
    incidence : ndarray, shape (numbers, cells)
        Which numbers count the person if they are in a cell: 1, or else 0.
    """

    def __init__(self, laws: Sequence[CountNoise], values: Sequence[int], incidence: Array) -> None:
        self._cells, self._numbers = incidence.shape[1], []
        for noise, value, row in zip(laws, values, incidence, strict=True):
            pair = noise.law(value), noise.law(value + 1)
            outputs = sorted({*pair[0], *pair[1]})
            if not row.all() and pair[0] != pair[1]:  # otherwise it reveals nothing
                self._numbers.append((row, [[law.get(y, 0) for y in outputs] for law in pair]))

    @property
    def entries(self) -> int:
        """How many probabilities there are."""
        return self._cells * math.prod(len(pair[0]) for _, pair in self._numbers)

    def _rows(self, kind: Any) -> Array:
        rows = np.ones((self._cells, 1), dtype=kind)
        for counted, pair in self._numbers:
            own = np.array(pair, dtype=kind)[counted]
            rows = (rows[:, :, None] * own[:, None, :]).reshape(self._cells, -1)
        return rows

    @property
    def upper(self) -> float:
        """A float above the capacity, at the uniform distribution."""
        if not self._numbers:
            return 0.0
        share = 1 - 2 * (len(self._numbers) + 1) * UNIT_ROUNDOFF
        uniform = np.full((1, self._cells), 1 / self._cells)
        rows = Rows(self._rows(float)[None], share)
        return float(upper_ends(rows, uniform, np.eye(self._cells))[0])

    def channel(self, cells: Sequence[Hashable]) -> Channel:
        """Return the channel with exact probabilities, its outputs by their places."""
        rows = self._rows(object)
        return Channel(rows, cells, range(rows.shape[1]))


def largest(given: Sequence[Given], cells: Sequence[Hashable]) -> tuple[Bound, int]:
    """Return the largest capacity and its position; the certificate is that of its channel."""
    above = [one.upper for one in given]
    best, chosen, upper = None, 0, 0.0
    for place in sorted(range(len(given)), key=lambda i: -above[i]):
        if best is not None and above[place] <= best.lower:
            break
        bound = capacity(given[place].channel(cells))
        upper = max(upper, min(bound.upper, above[place]))
        if best is None or bound.lower > best.lower:
            best, chosen = bound, place
    assert best is not None
    return (
        Bound.proved(
            best.name,
            best.lower,
            max(best.lower, upper),
            tol=1e-3,
            witness=best.witness,
            certificate=best.certificate,
            stats=best.stats,
        ),
        chosen,
    )
