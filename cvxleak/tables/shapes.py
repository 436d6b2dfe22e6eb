"""The cases of one pair of cells whose numbers have independent noise, in all tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import fmpq

from cvxleak.tables.cases import Case, TableMove, representative, start_and_period
from cvxleak.tables.losses import Change, Noise, dominating

if TYPE_CHECKING:
    from cvxleak.tables.moves import Moves

__all__ = ["Shape"]

TABLES = 1 << 16
"""Most classes of tables that are gone through for one pair of cells."""

CASES = 1 << 12
"""Most cases of one pair of cells; if there are more, one that dominates all is used."""

CLASSES = 1 << 6
"""Most classes of a number that are compared with each other; two such numbers have more cases."""

LIKELY = 1, 2, 8
"""Values of c at which the classes with the largest H_c are tried besides the dominating case."""


class Shape:
    """A pair of cells, the numbers that change between them, and the other cells in these."""

    def __init__(self, moves: Moves, source: int, target: int) -> None:
        self.moves, self.source, self.target = moves, source, target
        self.down, self.up = moves.changed(source, target)
        self.numbers = [*self.down, *self.up]
        self.laws = [moves.laws[j] for j in self.numbers]
        self.signs = [-1] * len(self.down) + [1] * len(self.up)
        self.cells: dict[int, int] = {}
        for bit, number in enumerate(self.numbers):
            for cell in moves.release.sums[number]:
                self.cells[cell] = self.cells.get(cell, 0) | 1 << bit
        for cell in (source, target):
            self.cells.pop(cell, None)
        self.free = len(self.cells) + 2 < len(moves.within)
        self.groups = sorted(set(self.cells.values()))

    @property
    def slack(self) -> bool:
        """Whether people can be where none of the numbers counts them."""
        return self.free or self.moves.table.outside

    @property
    def key(self) -> Any:
        """A key that is equal for shapes with the same cases."""
        laws = self.moves.places_of_laws
        ends = self._outside(self.source), self._outside(self.target)
        down, up = (tuple(laws[j] for j in some) for some in (self.down, self.up))
        return down, up, tuple(self.groups), self.slack, ends

    @cached_property
    def _variables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the totals that each number is the sum of, and the least totals.

        The totals are those of the source, of each group of other cells, and of the target.
        """
        bits = range(len(self.numbers))
        rows = [[int(j in self.down) for j in self.numbers]]
        rows += [[group >> bit & 1 for bit in bits] for group in self.groups]
        rows += [[int(j in self.up) for j in self.numbers]]
        least = [int(not self._outside(self.source))] + [0] * (len(rows) - 1)
        return np.array(rows, dtype=int).reshape(len(rows), len(self.numbers)), np.array(least)

    def _outside(self, cell: int | None) -> bool:
        return cell is not None and cell == self.moves.outside

    @property
    def people(self) -> int:
        """The largest number of people in cells before the move."""
        return self.moves.table.people - self._outside(self.source)

    def cases(self) -> Iterator[Case]:
        """Yield the cases: those of all tables, or those of free classes."""
        totals = self._all_totals()
        if totals is None:
            yield from self._free_cases()
            return
        matrix, _ = self._variables
        values = totals @ matrix
        for place, (law, by) in enumerate(zip(self.laws, self.signs, strict=True)):
            start, period = start_and_period(law)
            first, column = start - min(by, 0), values[:, place]
            over = column >= first + period
            column[over] = first + (column[over] - first) % period
        unique, places = np.unique(values, axis=0, return_index=True)
        for row, own in zip(unique.tolist(), totals[places].tolist(), strict=True):
            changes = tuple(map(Change, self.laws, row, self.signs))
            yield Case(changes, lambda own=own: self._witness(own))

    def _all_totals(self) -> np.ndarray | None:
        """Return totals for every class of tables, or None if they are too many.

        A total above start + period may be lowered by a period, which changes no class, with the
        people put where they are not counted, or onto another total as large.
        """
        _, least = self._variables
        pairs = [start_and_period(law) for law in self.laws] or [(0, 1)]
        most = max(start for start, _ in pairs) + math.lcm(*(period for _, period in pairs))
        size = len(least)
        ends = {0: self.source, size - 1: self.target}
        ranges = [
            range(low, (0 if self._outside(ends.get(i)) else min(most, self.people)) + 1)
            for i, low in enumerate(least.tolist())
        ]
        if math.prod(map(len, ranges)) > TABLES:
            return None
        if self.slack:
            found = np.array(list(product(*ranges)), dtype=int)
            return found[found.sum(axis=1) <= self.people]
        parts = []
        for large in range(size):
            held = [range(1) if i == large else one for i, one in enumerate(ranges)]
            rows = np.array(list(product(*held)), dtype=int)
            rows[:, large] = self.people - rows.sum(axis=1)
            parts.append(rows[rows[:, large] >= least[large]])
        return np.concatenate(parts)

    def _free_cases(self) -> Iterator[Case]:
        """Yield the changes if the classes of the numbers are chosen freely; at least the worst.

        A class whose H_c is nowhere above that of another is left out; so is a product with it.
        """
        kinds: dict[tuple[int, int], list[int]] = {}
        for place, (law, by) in enumerate(zip(self.laws, self.signs, strict=True)):
            kinds.setdefault((id(law), by), []).append(place)
        worst = [self._worst_classes(places) for places in kinds.values()]
        pairs = [(own, len(places)) for own, places in zip(worst, kinds.values(), strict=True)]
        if math.prod(math.comb(len(own) + size - 1, size) for own, size in pairs) > CASES:
            yield self._dominating_case([*kinds.values()], back=False)
            yield self._dominating_case([*kinds.values()], back=True)
            for c in LIKELY:
                yield self._likely_case([*kinds.values()], c)
            return
        for chosen in product(*(combinations_with_replacement(*pair) for pair in pairs)):
            changes: list[Any] = [None] * len(self.numbers)
            for places, some in zip(kinds.values(), chosen, strict=True):
                for place, change in zip(places, some, strict=True):
                    changes[place] = change
            yield Case(tuple(changes), lambda changes=tuple(changes): self._realize(changes))

    def _classes(self, law: Noise, by: int) -> list[Change]:
        start, period = start_and_period(law)
        first, people = start - min(by, 0), self.moves.table.people
        last = min(first + period - 1, people - max(by, 0))
        return [Change(law, count, by) for count in range(-min(by, 0), last + 1)]

    def _worst_classes(self, places: Sequence[int]) -> list[Change]:
        key = self.laws[places[0]], self.signs[places[0]]
        if key not in self.moves.worst:
            self.moves.worst[key] = self._incomparable(*key)
        return self.moves.worst[key]

    def _incomparable(self, law: Noise, by: int) -> list[Change]:
        found: list[Change] = []
        for change in self._classes(law, by):
            one = self.moves.book.ratios(change)
            if one is None or len(found) > CLASSES:
                found.append(change)
                continue
            others = [self.moves.book.ratios(other) for other in found]
            if any(one.below(other) for other in others if other is not None):
                continue
            found = [
                kept
                for kept, other in zip(found, others, strict=True)
                if other is None or not other.below(one)
            ]
            found.append(change)
        return found

    def _dominating_case(self, kinds: Sequence[Sequence[int]], back: bool) -> Case:
        """Return distributions whose H_c is at least that of any table's, at every c."""
        changes: list[Any] = [None] * len(self.numbers)
        book, known = self.moves.book, self.moves.dominating
        for places in kinds:
            law, by = self.laws[places[0]], self.signs[places[0]]
            key = law, -by if back else by
            if key not in known:
                worst = self._worst_classes(places)
                above = [book.above(change.back if back else change) for change in worst]
                known[key] = book.enter(*key, dominating(above))
            for place in places:
                changes[place] = known[key]
        return Case(tuple(changes), lambda: None)

    def _likely_case(self, kinds: Sequence[Sequence[int]], c: int) -> Case:
        """Return a case with the class of each kind of numbers whose H_c is largest at one c."""
        changes: list[Any] = [None] * len(self.numbers)
        for places in kinds:
            worst = self._worst_classes(places)
            change = max(worst, key=lambda one: self.moves.book.above(one).at(fmpq(c)))
            for place in places:
                changes[place] = change
        return Case(tuple(changes), lambda: self._realize(changes))

    def _realize(self, changes: Sequence[Change]) -> TableMove | None:
        """Return a table whose numbers are in these classes, if a solver finds one."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        matrix, least = self._variables
        size, many = matrix.shape
        periods, goal, most = np.zeros((many, many)), [], []
        for place, change in enumerate(changes):
            start, period = start_and_period(change.noise)
            periods[place, place] = period
            goal.append(change.value)
            most.append(np.inf if change.value >= start - min(change.by, 0) else 0)
        upper = np.full(size, float(self.people))
        upper[0] *= not self._outside(self.source)
        upper[-1] *= not self._outside(self.target)
        total = np.concatenate([np.ones(size), np.zeros(many)])
        ends: Any = np.concatenate([least, np.zeros(many)]), np.concatenate([upper, most])
        goals: Any = goal, goal
        found: Any = milp(
            total,
            integrality=np.ones(size + many),
            bounds=Bounds(*ends),
            constraints=[
                LinearConstraint(np.hstack([matrix.T, -periods]), *goals),
                LinearConstraint(total, 0 if self.slack else self.people, self.people),
            ],
        )
        if found.x is None:
            return None
        totals = np.rint(found.x[:size]).astype(int)
        values = totals @ matrix
        fits = all(
            representative(change.noise, int(value), change.by) == change.value
            for change, value in zip(changes, values, strict=True)
        )
        right = (totals >= least).all() and totals.sum() <= self.people
        if not (fits and right and (self.slack or totals.sum() == self.people)):
            return None
        return self._witness(totals.tolist())

    def _witness(self, totals: Sequence[int]) -> TableMove:
        """Return a table with these totals: each in one cell of its group."""
        table = self.moves.table
        counts = [0] * len(self.moves.within)
        first: dict[int, int] = {}
        for cell, group in self.cells.items():
            first.setdefault(group, cell)
        places = [self.source, *(first[group] for group in self.groups), self.target]
        for place, total in zip(places, totals, strict=True):
            counts[place] += total
        if self.free and not table.outside:
            rest = next(
                place
                for place in range(len(counts))
                if place not in self.cells and place not in (self.source, self.target)
            )
            counts[rest] += self.people - sum(totals)
        return self.moves._moved(self.source, self.target, counts[: len(table.cells)])
