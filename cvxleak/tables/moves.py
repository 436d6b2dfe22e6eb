"""The published numbers that one person changes by moving, and the classes of their true values.

The moves between all pairs of cells in all tables reduce to few cases, which say what changes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
from flint import fmpq

from cvxleak.core.clock import Clock, Progress
from cvxleak.core.errors import ValidationError
from cvxleak.tables.alike import unlike_pairs
from cvxleak.tables.cases import (
    Case,
    Codes,
    TableMove,
    both_orders,
    representative,
    start_and_period,
)
from cvxleak.tables.keyed import KeyedMove
from cvxleak.tables.losses import Book, Change, Noise, Ratios, dominating
from cvxleak.tables.release import TableRelease

__all__ = ["Moves"]

MOST_MOVES = 1 << 20
"""Most ordered pairs of cells that are gone through."""

TABLES = 1 << 16
"""Most classes of tables that are gone through for one pair of cells."""

LINKED = 1 << 10
"""Most tables that are gone through if keys link numbers."""

CASES = 1 << 12
"""Most cases of one pair of cells; if there are more, one that dominates all is used."""

CLASSES = 1 << 6
"""Most classes of a number that are compared with each other; two such numbers have more cases."""

LIKELY = 1, 2, 8
"""Values of c at which the classes with the largest H_c are tried besides the dominating case."""


class Moves:
    """The moves of a person between cells of a release's table, with its true counts or any.

    Attributes
    ----------
    cases : list of Case
        The cases of the moves that have been examined.
    complete : bool
        Whether these are all cases.
    """

    def __init__(
        self, release: TableRelease, move: tuple[int, int] | None, this_table: bool, book: Book
    ) -> None:
        self.release, self.table, self.book = release, release.table, book
        self.move, self.this_table = move, this_table
        self.cases: list[Case] = []
        self.complete = False
        self._seen: set[Hashable] = set()
        self._codes = Codes()
        self._steps: Iterator[int] | None = None
        self._joint: dict[Any, Any] = {}
        self._pairs: dict[Any, tuple[Ratios, Ratios]] = {}
        self._entered: dict[Any, Change] = {}
        self.laws = [law for _, law in release.noise]
        places = {id(law): place for place, law in enumerate(self.laws)}
        self.places_of_laws = [places[id(law)] for law in self.laws]
        self.worst: dict[tuple[Noise, int], list[Change]] = {}
        self.dominating: dict[tuple[Noise, int], Change] = {}
        cells = len(self.table.cells)
        within: list[list[int]] = [[] for _ in self.table.alphabet]
        for number, places in enumerate(release.sums):
            for place in places:
                within[place].append(number)
        self.within = [frozenset(numbers) for numbers in within]
        self.outside = cells if self.table.outside else None
        if move is None and len(within) ** 2 > MOST_MOVES:
            raise ValidationError(
                f"move: is missing; of {len(within)} cells there are more than {MOST_MOVES} moves: "
                "name one"
            )

    def collect(self, clock: Clock, progress: Progress | None) -> None:
        """Examine further moves, until none is left or the time is up.

        Raises
        ------
        ValidationError
            No person can make this move, or there is too much to examine.
        """
        if self.complete or (self._steps is not None and clock.late):
            return
        # After Ctrl-C the moves start again; computed results are kept.
        steps = self._steps or (self._of_this_table() if self.this_table else self._of_all_tables())
        self._steps = None
        for done in steps:
            if progress is not None:
                progress(0.0, 1.0, done)
            if clock.late:
                self._steps = steps
                return
        self.complete = True

    def _add(self, case: Case, key: Hashable) -> None:
        """Add a case; it is added before its key, in case of Ctrl-C between the two."""
        if key not in self._seen:
            self.cases.append(case)
            self._seen.add(key)

    def _add_both(self, case: Case) -> None:
        """Add a case in both orders."""
        for one in both_orders(case):
            self._add(one, self._codes.of(one.changes))

    def changed(self, source: int, target: int) -> tuple[list[int], list[int]]:
        """Return the numbers that fall and those that rise."""
        return (
            sorted(self.within[source] - self.within[target]),
            sorted(self.within[target] - self.within[source]),
        )

    def _of_this_table(self) -> Iterator[int]:
        """Add the cases of the table's true counts: each person may move.

        Each is added in both orders of the two tables. Yields the number of moves so far.
        """
        counts = self.table.in_cells.tolist()
        inside = [*counts, self.table.people - sum(counts)][: len(self.within)]
        moves = [self.move] if self.move else [*permutations(range(len(self.within)), 2)]
        if self.move and not inside[self.move[0]]:
            raise ValidationError(
                f"move: nobody is in {self.table.alphabet[self.move[0]]!r}, so nobody moves"
            )
        moves = [(source, target) for source, target in moves if inside[source]]
        return self._keyed(moves, [counts]) if self.release.linked else self._known(moves, counts)

    def _known(self, moves: Sequence[tuple[int, int]], counts: Sequence[int]) -> Iterator[int]:
        """Add the cases of moves in a table of independent numbers."""
        known = [
            {
                by: Change(law, representative(law, value, by), by)
                for by in (-1, 1)
                if value + by >= 0
            }
            for law, value in zip(self.laws, self.release.true, strict=True)
        ]
        last = None
        for done, (source, target) in enumerate(moves):
            if source != last:
                yield done
            last = source
            down, up = self.changed(source, target)
            changes = [known[j][-1] for j in down] + [known[j][1] for j in up]
            if self._codes.of(changes) not in self._seen:
                witness = self._moved(source, target, counts)
                self._add_both(Case(tuple(changes), lambda w=witness: w))

    def _keyed(
        self, moves: Sequence[tuple[int, int]], tables: Sequence[Sequence[int]]
    ) -> Iterator[int]:
        """Add the cases of moves in tables whose numbers are linked by keys, in both orders."""
        numbers = [*self.release.keyed.values()]
        for done, (counts, (source, target)) in enumerate(product(tables, moves)):
            yield done
            if source == self.outside:
                empty = sum(counts) == self.table.people
            else:
                empty = not counts[source]
            if empty:
                continue
            after = [*counts, 0]
            after[source] -= 1
            after[target] += 1
            cells = tuple(None if cell == self.outside else cell for cell in (source, target))
            move = KeyedMove(numbers, (cells[0], cells[1]), (counts, after[: len(counts)]))
            exact = move.exact(self._joint, len(tables))
            key = (*counts, source, target) if exact else move.key
            if key not in self._pairs:
                self._pairs[key] = exact or move.revealed()
            alone = self._alone(counts, source, target)
            least = [*alone, *(Change(one.noise, value, by) for one, value, by in move.chosen())]
            for order, ratios in enumerate(self._pairs[key]):
                same = frozenset(ratios.masses.items()), ratios.alone
                if same not in self._entered:
                    place = len(self._entered)
                    self._entered[same] = self.book.enter(numbers[0].noise, place, ratios)
                above = self._entered[same], *(one.back if order else one for one in alone)
                kept = None if exact else tuple(one.back if order else one for one in least)
                if (above, kept) not in self._seen:
                    witness = self._moved(source, target, counts)
                    self._add(Case(above, lambda w=witness: w, kept), (above, kept))

    def _alone(self, counts: Sequence[int], source: int, target: int) -> list[Change]:
        """Return the changes of the numbers that keys do not link."""
        found = []
        for some, by in zip(self.changed(source, target), (-1, 1), strict=True):
            for j in (j for j in some if j not in self.release.keyed):
                value = sum(counts[place] for place in self.release.sums[j])
                found.append(Change(self.laws[j], representative(self.laws[j], value, by), by))
        return found

    def _all_counts(self) -> list[list[int]]:
        """Return counts for every class of tables, up to cells that are alike.

        A count above start + period may be lowered by a period, which changes no class, with the
        people put outside of the table or into another cell with as large a count.
        """
        people, size = self.table.people, len(self.table.cells)
        pairs = [start_and_period(law) for law in self.laws]
        most = max(start for start, _ in pairs) + math.lcm(*(period for _, period in pairs))
        alike: dict[Any, list[int]] = {}
        for cell in range(size):
            own = [self.laws[j] for j in self.within[cell] if len(self.release.sums[j]) == 1]
            shared = frozenset(j for j in self.within[cell] if len(self.release.sums[j]) > 1)
            named = cell if self.move and cell in self.move else None
            alike.setdefault((shared, *own, named), []).append(cell)
        groups = [*alike.values()]
        values = range(min(most, people) + 1)
        whole = math.prod(math.comb(len(values) + len(one) - 1, len(one)) for one in groups)
        if whole > LINKED:
            raise ValidationError(
                f"release: keys link its numbers, and there are {whole} tables that differ in what "
                f"they tell, more than {LINKED}; this_table=True asks about its counts (in a spec, "
                "[table] states them), and summed_keys=False of the perturbation table takes the "
                "noise as independent"
            )
        found: dict[tuple[int, ...], list[int]] = {}
        for chosen in product(*(combinations_with_replacement(values, len(g)) for g in groups)):
            counts = [0] * size
            for group, some in zip(groups, chosen, strict=True):
                for cell, count in zip(group, some, strict=True):
                    counts[cell] = count
            if self.table.outside:
                if sum(counts) <= people:
                    found[tuple(counts)] = counts
                continue
            for group in groups:
                large = list(counts)
                large[group[-1]] += people - sum(counts)
                if large[group[-1]] >= 0:
                    found[tuple(large)] = large
        return [*found.values()]

    @property
    def kinds(self) -> list[Any]:
        """The kind of each value: whether it is a cell, and the noise of the numbers it is in."""
        laws = self.places_of_laws
        return [
            (cell == self.outside, *(laws[j] for j in sorted(own)))
            for cell, own in enumerate(self.within)
        ]

    def _moved(self, source: int, target: int, counts: Sequence[int]) -> TableMove:
        labels = self.table.alphabet
        return TableMove(labels[source], labels[target], tuple(map(int, counts)))

    def _of_all_tables(self) -> Iterator[int]:
        """Add the cases of tables of n people; cases that no table has may be among them."""
        if self.release.linked:
            moves = [self.move] if self.move else permutations(range(len(self.within)), 2)
            return self._keyed([*moves], self._all_counts())
        moves = [self.move] if self.move else unlike_pairs(self.within, self.kinds)
        return self._shaped(moves)

    def _shaped(self, moves: Iterable[tuple[int, int]]) -> Iterator[int]:
        """Add the cases of moves whose numbers are independent, in all tables."""
        shapes = set[Any]()
        for done, (source, target) in enumerate(moves):
            yield done
            shape = _Shape(self, source, target)
            if shape.key not in shapes:
                shapes.add(shape.key)
                for case in shape.cases():
                    self._add_both(case)


class _Shape:
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
