"""Moves in a table of which keys link the numbers: exactly if it is small, or between two bounds.

P and R are the laws of what is published before and after one person moves from cell a to cell b.

- Lower bound: that of some of the numbers, whose keys are independent. Take {a}, {b}, and numbers
  in an order such that each has a private cell: with people, not a nor b, and in no number before.
  Given the keys of all other cells, its own key is uniform.
- Upper bound: that of these numbers and the keys of all other cells. The latter have the same law
  under P and R; given them, the keys of a and b alone decide, by the sums of the others, which are
  uniform on the subgroup that the patterns (in which numbers a cell is) generate. The loss is a
  mixture over these sums.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import fmpq

from cvxleak.core.errors import ValidationError
from cvxleak.tables.keys import WORK, Linked, Outcome, fits, joint_law, keys_of, places_of_keys
from cvxleak.tables.losses import GridLosses, Losses, Ratios

__all__ = ["Between", "KeyedMove"]


@dataclass(frozen=True)
class Between:
    """Losses of which some are known to be there, and others to be all that can be."""

    low: Losses | GridLosses
    high: Losses | GridLosses

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return ends of H_c at c = e^epsilon."""
        return self.low.delta(epsilon)[0], self.high.delta(epsilon)[1]

    @property
    def certain(self) -> float:
        """A lower end of the probability P of what R excludes."""
        return self.low.certain

    @property
    def knots(self) -> list[float]:
        """Losses at which the profiles bend."""
        return [*self.low.knots, *self.high.knots]


class _Touched(NamedTuple):
    """A number that counts one of the two cells, or both: its noise, values and which it counts."""

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
        """Return the numbers that are linked to one with the two cells, over others or at once."""
        reached, found = {cell for cell in self.cells if cell is not None}, list[Linked]()
        rest = list(numbers)
        while more := [one for one in rest if not reached.isdisjoint(one.places)]:
            rest = [one for one in rest if reached.isdisjoint(one.places)]
            found += more
            reached |= self.peopled.intersection(p for one in more for p in one.places)
        return found

    @property
    def key(self) -> tuple[object, ...]:
        """What moves have in common that have the same laws."""
        people = [
            tuple(None if cell is None else bool(one[cell]) for cell in self.cells)
            for one in self.counts
        ]
        touched = [(one.linked.noise, one.values, one.sides) for one in self.touched]
        return tuple(touched), frozenset(self.patterns), tuple(people)

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
        """In which of the touched numbers the other cells with people are."""
        held = [frozenset(one.linked.places) for one in self.touched]
        others = sorted(self.peopled.difference(self.cells))
        return [*dict.fromkeys(tuple(int(cell in one) for one in held) for cell in others)]

    def exact(self, known: dict[object, dict[Outcome, Fraction]]) -> tuple[Ratios, Ratios] | None:
        """Return the ratios in both orders, or None if the joint laws take too long."""
        if not all(fits(self.numbers, one) for one in self.counts):
            return None
        laws = []
        for one in self.counts:
            key = *self.numbers, *one
            if key not in known:
                known[key] = joint_law(self.numbers, one)
            laws.append(known[key])
        return Ratios.of_laws(*laws), Ratios.of_laws(*laws[::-1])

    def revealed(self) -> tuple[Ratios, Ratios]:
        """Return them, in both orders, with the keys of all other cells."""
        if self.keys is None:
            raise ValidationError(
                "release: keys from 0 to 1 link its numbers; what they tell is computed for small "
                "tables with one margin"
            )
        keys, touched = self.keys, self.touched
        outcomes = [
            sorted({y for value in one.values for y in one.linked.noise.law(value)})
            for one in touched
        ]
        size = math.prod(map(len, outcomes))
        none = (0,) * len(touched)
        shifts = _generated([none, *self.patterns], keys, WORK // (keys**2 + size))
        places = []
        for one, some in zip(touched, outcomes, strict=True):
            own = []
            for value in one.values:
                steps = one.linked.noise.steps(value)
                index = [some.index(y) if y in some else -1 for _, y in steps]
                own.append(np.array(index)[places_of_keys(steps, keys)])
            places.append(own)
        pairs: Counter[int] = Counter()
        for shift in shifts:
            p, r = (self._counted(side, shift, places, outcomes, size) for side in (0, 1))
            packed, many = np.unique(p * (keys**2 + 1) + r, return_counts=True)
            pairs.update(dict(zip(packed.tolist(), many.tolist(), strict=True)))
        unit = keys**2 * len(shifts)
        both = [(*divmod(packed, keys**2 + 1), many) for packed, many in pairs.items()]
        return _ratios(both, unit), _ratios([(r, p, many) for p, r, many in both], unit)

    def _counted(
        self,
        side: int,
        shift: Sequence[int],
        places: Sequence[Sequence[np.ndarray]],
        outcomes: Sequence[Sequence[int]],
        size: int,
    ) -> np.ndarray:
        """Return how many of the K^2 keys of the two cells give each outcome of the numbers."""
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

    def chosen(self) -> list[tuple[Linked, int, int]]:
        """Return numbers whose keys are independent: with their value and what it changes by."""
        changed = [one for one in self.touched if one.sides[0] != one.sides[1]]
        others = self.peopled.difference(self.cells)
        held = {j: others.intersection(one.linked.places) for j, one in enumerate(changed)}
        found: dict[object, int] = {}
        for j, one in enumerate(changed):  # of those that are a or b alone, one each
            if not held[j]:
                found.setdefault(one.sides, j)
        rest = [j for j in held if held[j]]
        while rest:
            private = {j: held[j].difference(*(held[i] for i in rest if i != j)) for j in rest}
            free = [j for j in rest if private[j]]
            if free:  # they come last, in any order
                found.update((j, j) for j in free)
            else:
                free = [max(rest, key=lambda j: len(held[j]))]  # it is left out
            rest = [j for j in rest if j not in free]
        picked = [changed[j] for j in found.values()]
        return [(one.linked, one.values[0], one.values[1] - one.values[0]) for one in picked]


def _generated(patterns: Sequence[tuple[int, ...]], keys: int, most: int) -> list[tuple[int, ...]]:
    """Return the subgroup that patterns generate modulo the number of keys."""
    found = {(0,) * len(patterns[0])}
    for pattern in patterns:
        size = 1 if pattern in found else keys
        if len(found) * size > most:
            raise ValidationError(
                f"release: keys link its numbers, and those that a move changes share {keys} keys "
                f"with so many others that there are more than {most} cases of these; the most is "
                f"{WORK} over the outcomes and pairs of keys of a case"
            )
        turns = [tuple(u * part for part in pattern) for u in range(size)]
        found = {
            tuple((x + y) % keys for x, y in zip(one, turn, strict=True))
            for one in found
            for turn in turns
        }
    return sorted(found)


def _ratios(pairs: Sequence[tuple[int, int, int]], unit: int) -> Ratios:
    """Return the ratios of pairs P, R that occur so many times."""
    masses: dict[fmpq, fmpq] = {}
    alone = fmpq(0)
    for p, r, many in pairs:
        if p and r:
            ratio = fmpq(p, r)
            masses[ratio] = masses.get(ratio, fmpq(0)) + fmpq(p * many, unit)
        elif p:
            alone += fmpq(p * many, unit)
    return Ratios(masses, alone)
