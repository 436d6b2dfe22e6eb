"""The published numbers that one person changes by moving, and the classes of their true values.

The moves between all pairs of cells in all tables reduce to few cases, which say what changes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, permutations, product
from typing import Any

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
from cvxleak.tables.emptied import Emptied
from cvxleak.tables.keyed import KeyedMove
from cvxleak.tables.keys import fits, keys_of
from cvxleak.tables.losses import Book, Change, Noise, Ratios
from cvxleak.tables.release import TableRelease
from cvxleak.tables.shapes import Shape

__all__ = ["Moves"]

MOST_MOVES = 1 << 24
"""Most ordered pairs of cells that are gone through: those of 4096 cells take 40 seconds."""

LINKED = 1 << 10
"""Most tables that are gone through if keys link numbers."""


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
        every = [self.move] if self.move else permutations(range(len(self.within)), 2)
        if self.move and not inside[self.move[0]]:
            raise ValidationError(
                f"move: nobody is in {self.table.alphabet[self.move[0]]!r}, so nobody moves"
            )
        moves = ((source, target) for source, target in every if inside[source])
        return self._keyed(moves, [counts]) if self.release.linked else self._known(moves, counts)

    def _known(self, moves: Iterable[tuple[int, int]], counts: Sequence[int]) -> Iterator[int]:
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
        self, moves: Iterable[tuple[int, int]], tables: Sequence[Sequence[int]]
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
                above = self._enter(ratios), *(one.back if order else one for one in alone)
                kept = None if exact else tuple(one.back if order else one for one in least)
                if (above, kept) not in self._seen:
                    witness = self._moved(source, target, counts)
                    self._add(Case(above, lambda w=witness: w, kept), (above, kept))

    def _enter(self, ratios: Ratios) -> Change:
        """Return a change with these ratios, which belong to no true value."""
        same = frozenset(ratios.masses.items()), ratios.alone
        if same not in self._entered:
            noise = next(iter(self.release.keyed.values())).noise
            self._entered[same] = self.book.enter(noise, len(self._entered), ratios)
        return self._entered[same]

    def _alone(self, counts: Sequence[int], source: int, target: int) -> list[Change]:
        """Return the changes of the numbers that keys do not link."""
        found = []
        for some, by in zip(self.changed(source, target), (-1, 1), strict=True):
            for j in (j for j in some if j not in self.release.keyed):
                value = sum(counts[place] for place in self.release.sums[j])
                found.append(Change(self.laws[j], representative(self.laws[j], value, by), by))
        return found

    def _all_counts(self) -> list[list[int]] | None:
        """Return counts for every class of tables, up to cells that are alike.

        None if they are too many, or if keys from 0 to 1 have too large a joint distribution.

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
            return None
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
        linked, tables = [*self.release.keyed.values()], [*found.values()]
        if keys_of(linked) is None and not all(fits(linked, one, len(tables)) for one in tables):
            return None
        return tables

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
        linked = self.release.linked
        tables = self._all_counts() if linked else None
        if tables is not None:
            moves = [self.move] if self.move else permutations(range(len(self.within)), 2)
            return self._keyed([*moves], tables)
        moves = [self.move] if self.move else unlike_pairs(self.within, self.kinds)
        return self._emptying(moves) if linked else self._shaped(moves)

    def _emptying(self, moves: Iterable[tuple[int, int]]) -> Iterator[int]:
        """Add cases of moves that empty a cell: the upper bound of all moves is 1."""
        emptied = Emptied(self.release, self.within, self.kinds)
        told, best = self._enter(Ratios({}, fmpq(1))), fmpq(-1)
        both = ((move, back) for move in moves for back in (False, True))
        for done, (move, back) in enumerate(both):
            yield done
            source, target = move[::-1] if back else move
            e, counts = emptied.worst(source, target)
            if e > best:
                best = e
                counts[source] -= back
                counts[target] += back
                witness = self._moved(*move, counts[: len(self.table.cells)])
                least = self._enter(Ratios({1 - e: 1 - e} if e < 1 else {}, e))
                self._add(Case((told,), lambda w=witness: w, (least,)), e)

    def _shaped(self, moves: Iterable[tuple[int, int]]) -> Iterator[int]:
        """Add the cases of moves whose numbers are independent, in all tables."""
        shapes = set[Any]()
        for done, (source, target) in enumerate(moves):
            yield done
            shape = Shape(self, source, target)
            if shape.key not in shapes:
                shapes.add(shape.key)
                for case in shape.cases():
                    self._add_both(case)
