"""Moves that empty a cell, in sparse tables whose numbers are linked by keys: a lower bound.

P and R are the distributions of the published table before and after the only person of cell a
moves to cell b. Consider the numbers that count people of at most one cell after the move.

- A number that counts nobody then has the key 0, so that R gives its published value with
  certainty.
- What is published of the numbers that count people of cell c alone is, under R, a function of the
  key of c. Let V_c be the set of its values.

Under P the numbers with a have a key that is greater by k_a, the key of the person, which is
uniform. The keys of the cells are independent. So the probability P of what R excludes is at least

    e = 1 - 1/K sum over k_a of prod over c of #{k_c : what k_a and k_c give is in V_c} / K,

where c stands for the numbers without people, too. H_c(P || R) is at least that of the two
distributions (e, 1 - e) and (0, 1).

Keys from 0 to 1 are put into K intervals. What any key of an interval gives counts as possible,
under P and under R, so that e is not overstated.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from flint import fmpq

from cvxleak.tables.cases import start_and_period
from cvxleak.tables.keys import Outcome, keys_of, steps_together
from cvxleak.tables.noise import PerturbationTable
from cvxleak.tables.release import TableRelease

__all__ = ["Emptied"]

INTERVALS = 1 << 10
"""Number of intervals of keys from 0 to 1; what any key of an interval gives counts as possible."""


class _Number(NamedTuple):
    """A number: its noise, and its rows and values before and after, less the value after."""

    noise: PerturbationTable
    rows: tuple[int, int]
    changes: tuple[int, int]
    own: bool
    """Whether it counts the cell of the person who moves."""


class Emptied:
    """Tables of n people in which one cell has a single person, who leaves it.

    Parameters
    ----------
    release : TableRelease
        Keys link its numbers.
    within : sequence of set of int
        The numbers that count each value of `Table.alphabet`.
    kinds : sequence
        What else matters of each value, such as the noise of its numbers.
    """

    def __init__(
        self, release: TableRelease, within: Sequence[Iterable[int]], kinds: Sequence[Hashable]
    ) -> None:
        self.numbers, self.people, self.kinds = release.keyed, release.table.people, kinds
        keys = keys_of([*self.numbers.values()])
        self.keys, self.real = keys or INTERVALS, keys is None
        self.within = [self.numbers.keys() & set(own) for own in within]
        laws = [*dict.fromkeys(one.noise for one in self.numbers.values())]
        most = min(max(sum(start_and_period(noise)) for noise in laws), self.people - 1)
        unlike: dict[Hashable, int] = {}
        for many in range(1, most + 1):
            pairs = product(laws, (many, many + 1))
            rows = [noise.table.steps[noise.table.place(n, noise.cycle)] for noise, n in pairs]
            unlike.setdefault(tuple(rows), many)
        self.sizes = [*unlike.values()]
        self._known: dict[Hashable, list[int]] = {}

    def worst(self, source: int, target: int) -> tuple[fmpq, list[int]]:
        """Return the largest e found for a move, and the counts that attain it, before the move.

        At first everybody else is in the target. Then one more cell after the other gets people of
        these, each time the cell and as many as give the largest e.
        """
        counts = [0] * len(self.within)
        counts[source], counts[target] = 1, self.people - 1
        best = self.excluded(counts, source, target), counts
        while further := self._further(counts, source, target):
            found = ((self.excluded(one, source, target), one) for one in further)
            e, counts = max(found, key=itemgetter(0))
            if e > best[0]:
                best = e, counts
        return best

    def _further(self, counts: Sequence[int], source: int, target: int) -> list[list[int]]:
        """Return counts with people of the target in one more cell.

        The cell is in a number that counts the source alone so far. Of cells that are alike the
        first is taken.
        """
        peopled = {cell for cell, count in enumerate(counts) if count}
        taken = {j for cell in (peopled | {target}) - {source} for j in self.within[cell]}
        near = self.within[source] | taken
        free = {cell for j in self.within[source] - taken for cell in self.numbers[j].places}
        unlike: dict[Hashable, int] = {}
        for cell in sorted(free - peopled):
            unlike.setdefault((frozenset(self.within[cell] & near), self.kinds[cell]), cell)
        found = []
        for cell, many in product(unlike.values(), self.sizes):
            if many <= counts[target]:
                found.append([*counts])
                found[-1][cell], found[-1][target] = many, counts[target] - many
        return found

    def excluded(self, counts: Sequence[int], source: int, target: int) -> fmpq:
        """Return e for these counts before the move, with one person in the source."""
        after = list(counts)
        after[source], after[target] = 0, counts[target] + 1
        held: dict[int, list[int]] = {j: [] for j in self.within[source]}
        for cell, count in enumerate(after):
            for j in self.within[cell] if count else ():
                held.setdefault(j, []).append(cell)
        groups: dict[int | None, set[_Number]] = {}
        for j, cells in held.items():
            if len(cells) > 1:
                continue
            (cell,), noise, own = cells or [None], self.numbers[j].noise, j in self.within[source]
            values = [0 if cell is None else some[cell] for some in (counts, after)]
            values[0] += own
            first, last = (noise.table.place(value, noise.cycle) for value in values)
            one = _Number(noise, (first, last), (values[0] - values[1], 0), own)
            groups.setdefault(cell, set()).add(one)
        ways = [1] * self.keys
        for cell, group in groups.items():
            key = frozenset(group), cell is not None and counts[cell] > 0, cell is not None
            if key not in self._known:
                self._known[key] = self._allowed(*key)
            ways = [one * more for one, more in zip(ways, self._known[key], strict=True)]
        return 1 - fmpq(sum(ways), self.keys ** (1 + len(groups)))

    def _allowed(self, group: Iterable[_Number], before: bool, after: bool) -> list[int]:
        """Return how many keys of a cell give what R allows, for each key of the person.

        `before` and `after` say whether the cell has people. If it has none, its key is 0.
        """
        own, rest = ([one for one in group if one.own == whose] for whose in (True, False))
        possible = _steps([*own, *rest], 1)
        allowed = {y for _, y in (possible if after else possible[:1])}
        p, others = (self._by_key(_steps(some, 0)) for some in (own, rest))
        fits = {
            zs: np.array([int(any(y + z in allowed for y, z in product(ys, zs))) for ys in p])
            for zs in {*others}
        }
        if not before:
            return (self.keys * fits[others[0]]).tolist()
        if self.real:  # the sum of two keys is in one of two intervals
            fits = {zs: one | np.roll(one, -1) for zs, one in fits.items()}
        ways = np.zeros(self.keys, dtype=int)
        for key, zs in enumerate(others):
            ways += np.roll(fits[zs], -key)
        return ways.tolist()

    def _by_key(self, steps: Sequence[tuple[Fraction, Outcome]]) -> list[tuple[Outcome, ...]]:
        """Return the outcomes of each key, one if keys are whole numbers, or interval of keys."""
        found: list[tuple[Outcome, ...]] = [()] * self.keys
        start = Fraction(0)
        for end, y in steps:
            for key in range(math.floor(start * self.keys), math.ceil(end * self.keys)):
                found[key] += (y,)
            start = end
        return found


def _steps(group: Sequence[_Number], side: int) -> list[tuple[Fraction, Outcome]]:
    """Return what numbers are before or after the move, less the value after, by their one key."""
    steps = steps_together([(one.noise, one.rows[side]) for one in group]) or ((Fraction(1), ()),)
    less = [one.rows[side] - one.changes[side] for one in group]
    return [(end, tuple(y - z for y, z in zip(ys, less, strict=True))) for end, ys in steps]
