"""The channel from one person's cell to what is published, the counts of all others being known."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import product
from typing import Any

import numpy as np

from cvxleak.capacities import capacity
from cvxleak.core.clock import Clock, Progress
from cvxleak.core.validation import Array
from cvxleak.kernel.cases import below, leaked, simplex
from cvxleak.kernel.numbers import ball, precision
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.model import Channel
from cvxleak.problem import Bound, Stopped
from cvxleak.tables.cases import start_and_period
from cvxleak.tables.noise import CountNoise
from cvxleak.tables.release import TableRelease

__all__ = ["Given", "largest", "log_above", "others_of_table"]

OTHERS = 1 << 16
"""Most classes of tables of the others that are gone through."""


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
        rows = below(self._rows(float)[None], 2 * len(self._numbers))
        uniform = np.full((1, self._cells), 1 / self._cells)
        with precision():
            return float(leaked(rows, uniform, simplex(self._cells))[0])

    def channel(self, cells: Sequence[Hashable]) -> Channel:
        """Return the channel with exact probabilities, its outputs by their places."""
        rows = self._rows(object)
        return Channel(rows, cells, range(rows.shape[1]))


_NOTHING = Bound.proved("", 0.0, math.inf, tol=1e-3, stats={"seconds": 0.0})
"""What is known of a leakage at first."""


def log_above(values: int) -> float:
    """Return a float above log k, which is above the leakage about one of k values."""
    with precision():
        return float_above(ball(values).log())


def others_of_table(release: TableRelease) -> Array | None:
    """Return the others' counts, one vector for each class of tables; None if too many.

    A count above start + period may be lowered by a period, which changes no class, with the people
    put outside, or into another cell with as large a count.
    """
    table = release.table
    others, cells = table.people - 1, len(table.cells)
    pairs = [start_and_period(noise) for _, noise in release.noise]
    most = max(start for start, _ in pairs) + math.lcm(*(period for _, period in pairs))
    some = range(min(most, others) + 1)
    if (1 if table.outside else cells) * len(some) ** (cells - (not table.outside)) > OTHERS:
        return None
    if table.outside:
        found = np.array([*product(some, repeat=cells)])
        return found[found.sum(axis=1) <= others]
    rest = np.array([*product(some, repeat=cells - 1)], dtype=int)
    rest = rest[rest.sum(axis=1) <= others]
    large = others - rest.sum(axis=1)
    return np.concatenate([np.insert(rest, cell, large, axis=1) for cell in range(cells)])


def largest(
    given: Sequence[Given], cells: Sequence[Hashable], clock: Clock, progress: Progress | None
) -> tuple[Bound, int | None]:
    """Return the largest capacity and its position; the certificate is that of its channel.

    If the time is up, or after Ctrl-C, `stats` say so, and the position may be None.
    """
    trivial, above = log_above(len(cells)), list[float]()
    lower, upper, rest = 0.0, 0.0, trivial  # what is still to be examined is below `rest`
    best: tuple[Bound, int] | None = None
    try:
        for done, one in enumerate(given):
            if progress is not None:
                progress(lower, trivial, done)
            if done and clock.late:
                break
            above.append(one.upper)
        unseen = trivial if len(above) < len(given) else 0.0
        for done, place in enumerate(sorted(range(len(above)), key=lambda i: -above[i])):
            rest = max(above[place], unseen)
            if best is not None and (rest <= lower or clock.late):
                break
            if progress is not None:
                progress(lower, max(upper, rest), len(given) + done)
            bound = capacity(given[place].channel(cells), **clock.limits)
            upper = max(upper, min(bound.upper, above[place]))
            if best is None or bound.lower > lower:
                best, lower = (bound, place), bound.lower
        else:
            rest = unseen
        stopped = Stopped.at_limit(clock) if clock.late else None
    except KeyboardInterrupt:
        stopped = Stopped.INTERRUPTED
    bound, chosen = (_NOTHING, None) if best is None else best
    return (
        Bound.proved(
            bound.name,
            bound.lower,
            max(bound.lower, upper, rest),
            tol=1e-3,
            witness=bound.witness,
            certificate=bound.certificate,
            stats=bound.stats if stopped is None else {**bound.stats, "stopped": stopped},
        ),
        chosen,
    )
