"""Moves in a table whose numbers are linked by keys: exactly, or between two bounds.

P and R are the distributions of the published table before and after one person moves from cell a
to cell b. If the table is too large for the exact joint distribution, there are these bounds:

- Lower bound: that of some of the numbers, whose keys are independent. These are {a}, {b}, and
  numbers in an order such that each has a private cell: one with people, other than a and b, and in
  no number before it. Given the keys of all other cells, the number's own key is uniform.
- Upper bound: the keys of all other cells are published, too. They have the same distribution under
  P and R. Given them, only the keys of a and b are random, and the loss depends on the other keys
  through their sums. These are uniform on the subgroup that the patterns generate (the pattern of a
  cell says which numbers it is in). The loss is a mixture over these sums. If they are too many,
  more is revealed (`cvxleak.tables.cosets`).
- Closer upper bound, if all other cells have the same pattern: for some cells whose keys affect
  nothing else, the published values are revealed instead of the keys. Given these, each of their
  keys is uniform on those that give the value, and the distribution of their sum is a convolution.
  The loss is a mixture over these values and the sum of the keys that are revealed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
from flint import fmpq

from cvxleak.tables.cosets import EXACT, Labels, Side, pairs_of_sets
from cvxleak.tables.grid import GridLosses
from cvxleak.tables.keys import (
    WORK,
    Linked,
    Outcome,
    fits,
    joint_law,
    keys_of,
    places_of_keys,
    steps_together,
)
from cvxleak.tables.losses import ATOMS, Losses, Ratios

__all__ = ["Between", "KeyedMove"]

MIXED = 1 << 29
"""Most products for the distributions given the published values of cells with hidden keys."""

FINE = 1 << 12
"""Most parts of equal width into which keys from 0 to 1 are divided."""

BLOCKS = 1 << 12
"""Number of intervals into which ratios of two distributions are sorted if they are too many."""


@dataclass(frozen=True)
class Between:
    """Losses that give a lower bound, and losses that give an upper bound."""

    low: Losses | GridLosses
    high: Losses | GridLosses

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on H_c at c = e^epsilon."""
        return self.low.delta(epsilon)[0], self.high.delta(epsilon)[1]

    @property
    def certain(self) -> float:
        """A lower bound on the probability P of what R excludes."""
        return self.low.certain

    @property
    def knots(self) -> list[float]:
        """Losses at which the profiles bend."""
        return [*self.low.knots, *self.high.knots]


Kind = tuple[tuple[int, ...], ...]
"""For each published value of a cell, the keys that give it."""


class _Touched(NamedTuple):
    """A number that counts one of the two cells, or both: its noise, values, and which cells."""

    linked: Linked
    values: tuple[int, int]
    sides: tuple[bool, bool]


class KeyedMove:
    """The numbers that keys link in a move, given the counts of all cells before and after."""

    def __init__(
        self,
        numbers: Sequence[Linked],
        cells: tuple[int | None, int | None],
        counts: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        self.cells, self.counts = cells, counts
        self.peopled = {place for one in counts for place, count in enumerate(one) if count}
        self.numbers = self._reached(numbers)
        self.keys = keys_of(numbers)

    def _reached(self, numbers: Sequence[Linked]) -> list[Linked]:
        """Return the numbers that are linked to one with the two cells, directly or over others."""
        reached, found = {cell for cell in self.cells if cell is not None}, list[Linked]()
        rest = list(numbers)
        while more := [one for one in rest if not reached.isdisjoint(one.places)]:
            rest = [one for one in rest if reached.isdisjoint(one.places)]
            found += more
            reached |= self.peopled.intersection(p for one in more for p in one.places)
        return found

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for moves with the same distributions."""
        people = [
            tuple(None if cell is None else bool(one[cell]) for cell in self.cells)
            for one in self.counts
        ]
        touched = []
        for (noise, _), (before, after), sides in self.touched:
            rows = [noise.table.place(count, noise.cycle) for count in (before, after)]
            touched.append((noise, *rows, after - before, sides))
        patterns = frozenset(self.patterns)
        alike = self._apart if len(patterns.difference([(0,) * len(touched)])) == 1 else ()
        return tuple(touched), patterns, tuple(people), alike

    @property
    def touched(self) -> list[_Touched]:
        """The numbers that count one of the two cells."""
        found = []
        for one in self.numbers:
            a, b = (cell is not None and cell in one.places for cell in self.cells)
            if a or b:
                before, after = (sum(some[p] for p in one.places) for some in self.counts)
                found.append(_Touched(one, (before, after), (a, b)))
        return found

    @property
    def patterns(self) -> list[tuple[int, ...]]:
        """For each other cell with people, the touched numbers that contain it."""
        held = [frozenset(one.linked.places) for one in self.touched]
        others = sorted(self.peopled.difference(self.cells))
        return [*dict.fromkeys(tuple(int(cell in one) for one in held) for cell in others)]

    def exact(
        self, known: dict[object, dict[Outcome, Fraction]], tables: int
    ) -> tuple[Ratios, Ratios] | None:
        """Return the ratios in both orders; None if the distributions take too long."""
        if not all(fits(self.numbers, one, tables) for one in self.counts):
            return None
        laws = []
        for one in self.counts:
            key = *self.numbers, *one
            if key not in known:
                known[key] = joint_law(self.numbers, one)
            laws.append(known[key])
        return Ratios.of_laws(*laws), Ratios.of_laws(*laws[::-1])

    @cached_property
    def _others(self) -> set[int]:
        """The other cells with people of touched numbers."""
        linked = {place for one in self.touched for place in one.linked.places}
        return (self.peopled & linked).difference(self.cells)

    @cached_property
    def _apart(self) -> tuple[tuple[Kind, int], ...]:
        """Return how keys give the published values of other cells, with the numbers of such cells.

        The cells are those in touched numbers that are otherwise only in numbers that sum nobody
        else.
        """
        alike: Counter[Kind] = Counter()
        for cell in self._others if self.keys else ():
            alone = [
                one
                for one in self.numbers
                if cell in one.places and set(self.cells).isdisjoint(one.places)
            ]
            if any(len(self.peopled.intersection(one.places)) > 1 for one in alone):
                continue
            count = self.counts[0][cell]
            found: dict[tuple[int, ...], list[int]] = {}
            steps = steps_together([(one.noise, count) for one in alone]) or [(Fraction(1), ())]
            for key, place in enumerate(places_of_keys(steps, self.keys or 1)):
                found.setdefault(steps[place][1], []).append(key)
            alike[tuple(sorted(tuple(some) for some in found.values()))] += 1
        return tuple(sorted(alike.items()))

    def revealed(self) -> tuple[Ratios, Ratios]:
        """Return the ratios, in both orders, with all other cells' keys or values revealed."""
        if self.keys is None:
            return _both_orders(*self._by_sets())
        keys, touched = self.keys, self.touched
        outcomes = [
            sorted({y for value in one.values for y in one.linked.noise.law(value)})
            for one in touched
        ]
        size = math.prod(map(len, outcomes))
        none = (0,) * len(touched)
        shifts = _generated([none, *self.patterns], keys, WORK // (keys**2 + size))
        if shifts is None:
            return _both_orders(*self._by_sets())
        places = []
        for one, some in zip(touched, outcomes, strict=True):
            own = []
            for value in one.values:
                steps = one.linked.noise.steps(value)
                index = [some.index(y) if y in some else -1 for _, y in steps]
                own.append(np.array(index)[places_of_keys(steps, keys)])
            places.append(own)
        turning = [pattern for pattern in self.patterns if any(pattern)]
        if len(turning) == 1:
            p, r = (
                np.array([self._counted(side, shift, places, outcomes, size) for shift in shifts])
                for side in (0, 1)
            )
            return _both_orders(*self._mixed(p, r))
        pairs: Counter[int] = Counter()
        for shift in shifts:
            p, r = (self._counted(side, shift, places, outcomes, size) for side in (0, 1))
            packed, many = np.unique(p * (keys**2 + 1) + r, return_counts=True)
            pairs.update(dict(zip(packed.tolist(), many.tolist(), strict=True)))
        p, r = np.divmod(np.array([*pairs]), keys**2 + 1)
        return _both_orders(p, r, np.array([*pairs.values()]))

    def _by_sets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pairs P, R and how often they occur, with parts of the two cells' keys, too.

        If shifts depend on each other, both keys are revealed, and with them everything. If keys
        are from 0 to 1, published values are functions of the whole part of K times the key for
        some K. The rest of K times each key is revealed, and with it what sums of these carry. So
        the whole parts are K keys with other shifts, as uniform and independent; but the rest of
        the key of no people, which is 0, would reveal that nobody is there.
        """
        all_told = np.array([1, 0]), np.array([0, 1]), np.ones(2, int)
        changed, held, taken = self._ordered
        if len(taken) < sum(map(bool, held)):
            return all_told
        steps = [[*map(one.linked.noise.steps, one.values)] for one in changed]
        keys = self.keys
        if keys is None:
            keys = math.lcm(*(end.denominator for one in steps for some in one for end, _ in some))
            moved = any(
                cell is not None and bool(self.counts[0][cell]) != bool(self.counts[1][cell])
                for cell in self.cells
            )
            if moved or keys > FINE:
                return all_told
        sides = []
        for which, cell in enumerate(self.cells):
            numbers: tuple[list[Labels], list[Labels]] = [], []
            for one, some, others in zip(changed, steps, held, strict=True):
                if one.sides[which]:
                    before, after = (
                        np.array([y for _, y in own])[places_of_keys(own, keys)] for own in some
                    )
                    numbers[bool(others)].append((before, after))
            if cell is not None:
                people = bool(self.counts[0][cell]), bool(self.counts[1][cell])
                sides.append(Side(people, *numbers))
        summed = any(all(one.sides) for one in self.touched)
        return pairs_of_sets(sides, keys, summed) or all_told

    def _mixed(self, p: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pairs P, R and how often they occur, with the keys of some cells hidden.

        Row s has the distributions given that the sum of all other keys is s.
        """
        keys, (hidden, everyone) = len(p), self._hidden(p.shape[1])
        turns = np.subtract.outer(np.arange(keys), np.arange(keys)).T % keys
        parts = []
        for law, often in _sums_of_keys(hidden, keys):
            kernel = law[turns[:1] if everyone else turns]
            mixed = [(kernel @ one.astype(float)).ravel() for one in (p, r)]
            parts.append((*mixed, np.full(mixed[0].shape, often)))
        first, second, many = (np.concatenate(column) for column in zip(*parts, strict=True))
        return first.astype(np.int64), second.astype(np.int64), many

    def _hidden(self, size: int) -> tuple[list[tuple[Kind, int]], bool]:
        """Return how many cells of each kind keep their keys secret, and whether all others do."""
        assert self.keys is not None
        room = int(math.log(EXACT, self.keys)) - 2
        chosen: list[tuple[Kind, int]] = []
        cases = self.keys**2 * size
        for kind, cells in sorted(self._apart, key=lambda one: -one[1]):
            for often in range(min(cells, room), 0, -1):
                more = cases * math.comb(often + len(kind) - 1, often)
                if more <= MIXED:
                    chosen.append((kind, often))
                    cases, room = more, room - often
                    break
        return chosen, sum(often for _, often in chosen) == len(self._others)

    def _counted(
        self,
        side: int,
        shift: Sequence[int],
        places: Sequence[Sequence[np.ndarray]],
        outcomes: Sequence[Sequence[int]],
        size: int,
    ) -> np.ndarray:
        """Return how many of the K^2 pairs of keys of the two cells give each outcome."""
        assert self.keys is not None
        own = [
            np.arange(self.keys)
            if cell is not None and self.counts[side][cell]
            else np.zeros(1, int)
            for cell in self.cells
        ]
        code = np.zeros((len(own[0]), len(own[1])), dtype=int)
        rows = zip(self.touched, shift, places, outcomes, strict=True)
        for one, by, place, some in rows:
            sums = one.sides[0] * own[0][:, None] + one.sides[1] * own[1] + by
            code = code * len(some) + place[side][sums % self.keys]
        return np.bincount(code.ravel(), minlength=size) * (self.keys**2 // code.size)

    @cached_property
    def _ordered(self) -> tuple[list[_Touched], list[set[int]], list[int]]:
        """Return the numbers that change, the other peopled cells in each, and those to use.

        Of the numbers with other people those are used that have a private cell in some order.
        """
        changed = [one for one in self.touched if one.sides[0] != one.sides[1]]
        others = self.peopled.difference(self.cells)
        held = [others.intersection(one.linked.places) for one in changed]
        taken: list[int] = []
        rest = [j for j, some in enumerate(held) if some]
        while rest:
            private = {j: held[j].difference(*(held[i] for i in rest if i != j)) for j in rest}
            free = [j for j in rest if private[j]]
            if free:  # they come last, in any order
                taken += free
            else:
                free = [max(rest, key=lambda j: len(held[j]))]  # it is left out
            rest = [j for j in rest if j not in free]
        return changed, held, taken

    def chosen(self) -> list[tuple[Linked, int, int]]:
        """Return numbers whose keys are independent, with their value and its change."""
        changed, held, taken = self._ordered
        found: dict[object, int] = {}
        for j, one in enumerate(changed):  # of those that are a or b alone, one each
            if not held[j]:
                found.setdefault(one.sides, j)
        picked = [changed[j] for j in (*found.values(), *taken)]
        return [(one.linked, one.values[0], one.values[1] - one.values[0]) for one in picked]


def _generated(
    patterns: Sequence[tuple[int, ...]], keys: int, most: int
) -> list[tuple[int, ...]] | None:
    """Return the subgroup that patterns generate modulo the number of keys; None if too large."""
    found = {(0,) * len(patterns[0])}
    for pattern in patterns:
        size = 1 if pattern in found else keys
        if len(found) * size > most:
            return None
        turns = [tuple(u * part for part in pattern) for u in range(size)]
        found = {
            tuple((x + y) % keys for x, y in zip(one, turn, strict=True))
            for one in found
            for turn in turns
        }
    return sorted(found)


def _sums_of_keys(
    hidden: Sequence[tuple[Kind, int]], keys: int
) -> Iterator[tuple[np.ndarray, int]]:
    """Yield the number of ways in which the hidden keys have each sum, by their cells' values."""
    for values in product(*(combinations_with_replacement(*one) for one in hidden)):
        law, often = np.zeros(keys), 1
        law[0] = 1
        for some in values:
            often *= math.factorial(len(some))
            for own, times in Counter(some).items():
                often //= math.factorial(times)
                for _ in range(times):
                    law = np.add.reduce([np.roll(law, key) for key in own])
        yield law, often


def _both_orders(p: np.ndarray, r: np.ndarray, many: np.ndarray) -> tuple[Ratios, Ratios]:
    return _ratios(p, r, many), _ratios(r, p, many)


def _ratios(p: np.ndarray, r: np.ndarray, many: np.ndarray) -> Ratios:
    """Return the ratios of pairs P, R that occur `many` times, or distributions with larger H_c.

    Outcomes with ratios between u and v may be replaced by two with the ratios u and v, and the
    same total P and R: the mean of a convex function of the ratio under R does not fall.
    """
    unit = int((p * many).sum())
    alone = fmpq(int((p * many)[r == 0].sum()), unit)
    both = (p > 0) & (r > 0)
    p, r, many = p[both], r[both], many[both]
    masses: dict[fmpq, fmpq] = {}
    if len(np.unique(p / r)) <= ATOMS:
        common = np.gcd(p, r)
        exact, places = np.unique((p // common) + 1j * (r // common), return_inverse=True)
        sums = np.zeros(len(exact), dtype=np.int64)
        np.add.at(sums, places, p * many)
        for ratio, mass in zip(exact.tolist(), sums.tolist(), strict=True):
            masses[fmpq(int(ratio.real), int(ratio.imag))] = fmpq(mass, unit)
        return Ratios(masses, alone)
    order = np.argsort(p / r)
    ratios, p, r = (p / r)[order], (p * many)[order], (r * many)[order]
    logs = np.log(ratios)
    blocks = np.floor((logs - logs[0]) / (logs[-1] - logs[0]) * BLOCKS)
    starts = np.flatnonzero(np.diff(blocks, prepend=-1.0))
    ends = np.append(starts[1:], len(ratios)) - 1
    sums = [np.add.reduceat(one, starts).tolist() for one in (p, r)]
    for first, last, mass, other in zip(starts.tolist(), ends.tolist(), *sums, strict=True):
        u = fmpq(*math.nextafter(ratios[first], 0.0).as_integer_ratio())
        v = fmpq(*math.nextafter(ratios[last], math.inf).as_integer_ratio())
        lower = u * (other * v - mass) / (v - u)
        for ratio, part in ((u, lower), (v, mass - lower)):
            masses[ratio] = masses.get(ratio, fmpq(0)) + part / unit
    return Ratios(masses, alone)
