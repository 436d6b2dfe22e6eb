"""The probability of one published table whose keys are summed, for all moves of one person.

The margins are split into *rows*, of which no two share a cell, and the others. Cells that are in
the same others form a *column*. (In a table of two variables these are its rows and columns, and
the total is a sum of columns.) With s_p the sum of the keys of column p, s in Z_K^m for m columns,

    P(y) = sum_s (f_1 * ... * f_r)(s) M(s),
    f_i(s) = h_i(sum_p s_p) prod_p g_ip(s_p),

where g_ip is the distribution of the key of row i in column p together with the published values of
its cells, h_i is 1 for the keys of the row that give its published value and else 0, M the same for
the other margins, and * is the convolution over Z_K^m: a product of Fourier transforms. If one
person moves, at most two of the f_i change.

In floats, a transform of N = K^m numbers is off by at most u times its norm, u = O(log N) times the
unit roundoff. The f_i are normalized to masses of one, so that no product is above one, and by the
Cauchy-Schwarz inequality P(y) is off by at most (r + 2) u |M|_2 max_i |f_i|_2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, short
from cvxleak.tables.frequencies import LowFrequencies, groups_for
from cvxleak.tables.keys import Linked, places_of_keys
from cvxleak.tables.parts import Parts

__all__ = ["Bounds", "Linkage"]

STATES = 1 << 24
"""Most sums of keys in all columns that are gone through: arrays of 128 MB."""

WORK = 1 << 32
"""Most such sums over all pairs of cells: a minute or two."""

KEPT = 1 << 26
"""Most numbers of distributions whose transforms are kept: half a GB."""

ROUNDING = 32 * float(np.finfo(float).eps)
"""Error of a transform, relative to its norm, for each doubling of its length; radix 2 has a tenth
of it (N. J. Higham, Accuracy and stability of numerical algorithms, Theorem 24.2)."""

Moved = tuple[int, int]
"""The cells that lose and get a person; -1 if there is none."""

STAY: Moved = -1, -1

Bounds = dict[Moved, tuple[float, float]]
"""A lower and an upper bound of a logarithm after some moves."""


class _Plan(NamedTuple):
    """Rows, and cells that are in none; the other margins, and the column of each cell."""

    blocks: list[tuple[int, ...]]
    rows: int
    margins: list[tuple[int, ...]]
    column_of: dict[int, int]
    columns: int

    @classmethod
    def of(cls, sums: Sequence[tuple[int, ...]], rows: Sequence[tuple[int, ...]]) -> _Plan:
        """Return the plan for these rows."""
        margins = [one for one in sums if len(one) > 1 and one not in rows]
        cells = sorted({cell for one in sums for cell in one})
        within = {c: frozenset(j for j, one in enumerate(margins) if c in one) for c in cells}
        columns = [*dict.fromkeys(some for some in within.values() if some)]
        held = {cell for row in rows for cell in row}
        return cls(
            [*rows, *((cell,) for cell in cells if cell not in held)],
            len(rows),
            margins,
            {cell: columns.index(some) if some else -1 for cell, some in within.items()},
            len(columns),
        )

    def work(self, keys: int, pairs: int) -> int:
        """Return the number of products for so many pairs of cells."""
        inside = 0
        for block in self.blocks:
            alike = len(block) - len({self.column_of[cell] for cell in block})
            inside += len(block) ** 2 * alike * keys**2
        return keys**self.columns * (pairs + len(self.blocks) ** 3) + inside


class _Term(NamedTuple):
    """A flat transform of a distribution, the log of its mass before, and its norm."""

    values: np.ndarray
    scale: float
    norm: float


class Linkage:
    """Numbers whose keys are sums, the true counts of the cells, and what was published."""

    def __init__(
        self,
        numbers: Sequence[Linked],
        keys: int,
        counts: Sequence[int],
        published: Sequence[int],
        places: int,
        parts: Parts | None = None,
    ) -> None:
        self.keys, self.counts, self.places, self._parts = keys, counts, places, parts
        self._members: dict[tuple[int, ...], list[tuple[Linked, int]]] = {}
        for one, y in zip(numbers, published, strict=True):
            self._members.setdefault(tuple(sorted(one.places)), []).append((one, y))
        self.plan = self._planned()
        columns = self.plan.columns
        self.shape = (keys,) * columns if columns else (1,)
        self.states = keys**columns
        self._term = lru_cache(max(4, KEPT // self.states))(self._new_term)
        self._rest = lru_cache(1)(self._new_rest)
        self._weights = lru_cache(max(2, KEPT // self.states))(self._new_weights)
        self._block_of = {c: i for i, block in enumerate(self.plan.blocks) for c in block}
        first: dict[int, int] = {-1: -1}
        for cell, column in self.plan.column_of.items():
            first.setdefault(column, cell)
        self._alike = {cell: first[column] for cell, column in self.plan.column_of.items()}
        self._spectrum = lru_cache(None)(self._new_spectrum)

    def _planned(self) -> _Plan:
        """Return the rows that cause the least work."""
        sums = [*self._members]
        wide = [one for one in sums if len(one) > 1]
        plans = [_Plan.of(sums, [])]
        for first in wide:
            rows, held = [first], set(first)
            for one in wide:
                if held.isdisjoint(one):
                    rows.append(one)
                    held.update(one)
            plans.append(_Plan.of(sums, rows))
        return min(plans, key=lambda one: one.work(self.keys, self.places**2))

    def bounds(self, peopled: Sequence[int]) -> Iterator[Bounds]:
        """Yield bounds on log P(y) after moves, by the positions before and after.

        A position that is no cell is outside of the table.

        Raises
        ------
        ValidationError
            The table is too large.
        """
        moves = [(a, c) for a in peopled for c in range(self.places) if a != c]
        stays = [(a, a) for a in peopled]
        work = self.plan.work(self.keys, self.places**2)
        if self.states > STATES or work > WORK:
            yield from self._low(stays, moves, work)
            return
        yield dict.fromkeys(stays, self._log_likelihood(STAY))
        # Moves that change the same rows share the product of the others.
        for move in sorted(moves, key=lambda move: sorted(map(self._block, move))):
            yield {move: self._log_likelihood(move)}

    def _low(self, stays: Sequence[Moved], moves: Sequence[Moved], work: int) -> Iterator[Bounds]:
        """Yield bounds from low frequencies, closer and closer."""
        low, parts = None, self._parts
        if (
            parts is not None
            and parts.every.issuperset(self._members)
            and groups_for(self.keys, parts.rows, 1)
        ):
            turns = [parts.turns(*move) for move in (STAY, *moves)]
            doubt = ROUNDING * (2 + math.log2(self.keys)) * math.sqrt(self.keys)
            low = LowFrequencies(self._spectrum, doubt, self.keys, turns)
        if low is None or low.groups is None:
            count = sum(map(len, self._members.values()))
            raise ValidationError(
                f"noise: keys link {count} numbers; the probability of what was published takes "
                f"{self.keys}^{self.plan.columns} states, {self.keys} keys for each of "
                f"{self.plan.columns} sums, and {short(work)} steps for all pairs of cells; the "
                f"most is {STATES} states and {WORK} steps. It takes fewer if the smaller variable "
                "has fewer values, margins of it are not published, or there are fewer keys"
            )
        for found in low.bounds():
            if found is None:
                yield {}
                continue
            of_stay, *others = zip(*map(np.ndarray.tolist, found), strict=True)
            yield dict.fromkeys(stays, of_stay) | dict(zip(moves, others, strict=True))

    def _new_spectrum(self, j: int, p: int, turn: int) -> tuple[np.ndarray, float] | None:
        """Return the transform of the keys that a part may have, and the log of their share."""
        assert self._parts is not None
        cells = self._parts.cells(j, p)
        moved = {0: STAY, 1: (-1, *cells[:1]), -1: (*cells[:1], -1)}[turn]
        if j and p:
            law, scale = self._law(cells, moved)
        else:
            allowed = self._allowed(cells, moved)
            size = int(allowed.sum())
            law, scale = allowed / max(size, 1), math.log(size / self.keys) if size else -math.inf
        if scale == -math.inf:
            return None
        found = np.fft.fft(law)
        return (found if bool(j) == bool(p) else found.conj()), scale

    def _block(self, cell: int) -> int:
        return self._block_of.get(cell, -1)

    def _log_likelihood(self, moved: Moved) -> tuple[float, float]:
        """Return bounds on log P(y) after a move."""
        changed: dict[int, list[int]] = {}
        for end, cell in enumerate(moved):
            changed.setdefault(self._block(cell), [-1, -1])[end] = cell
        changed.pop(-1, None)
        terms = [self._rest(tuple(sorted(changed)))]
        terms += [self._term(place, (ends[0], ends[1])) for place, ends in changed.items()]
        first, last = (self._alike.get(cell, -1) for cell in moved)
        weights = self._weights((first, last))
        parts = [term for term in terms if term is not None]
        if weights is None or len(parts) < len(terms):
            return -math.inf, -math.inf
        values = parts[0].values
        for term in parts[1:]:
            values = values * term.values
        found = float(np.real(values * weights.values).sum()) / self.states
        scale = sum(term.scale for term in parts)
        unit = ROUNDING * (2 + math.log2(self.states)) * (2 + len(self.plan.blocks))
        doubt = unit * weights.norm * max(term.norm for term in parts)
        low = scale + math.log(found - doubt) if found > doubt else -math.inf
        return low, scale + math.log(max(found, 0.0) + doubt)

    def _people(self, cells: Sequence[int], moved: Moved) -> int:
        return sum(self.counts[cell] for cell in cells) - (moved[0] in cells) + (moved[1] in cells)

    def _allowed(self, cells: tuple[int, ...], moved: Moved) -> np.ndarray:
        """Return the keys of the sum of some cells that give its published value."""
        found, total = np.ones(self.keys, dtype=bool), self._people(cells, moved)
        for one, y in self._members.get(cells, ()):
            steps = one.noise.steps(total)
            found &= np.array([value == y for _, value in steps])[places_of_keys(steps, self.keys)]
        return found

    def _law(self, cells: Sequence[int], moved: Moved) -> tuple[Array, float]:
        """Return the distribution of a sum of keys given each cell's published value; its log P."""
        law, scale = np.eye(1, self.keys)[0], 0.0
        for cell in cells:
            own = self._allowed((cell,), moved)
            if self._people((cell,), moved):
                scale -= math.log(self.keys)
            else:
                own[1:] = False  # the key of no people is 0
            choices = np.flatnonzero(own)
            if not len(choices):
                return law, -math.inf
            scale += math.log(len(choices))
            law = law[np.subtract.outer(np.arange(self.keys), choices) % self.keys].mean(axis=1)
        return law, scale

    def _new_term(self, place: int, moved: Moved) -> _Term | None:
        """Return the transform of f_i; None if it is 0."""
        block, columns = self.plan.blocks[place], range(self.plan.columns)
        parts: dict[int, list[int]] = {}
        for cell in block:
            parts.setdefault(self.plan.column_of[cell], []).append(cell)
        alone, scale = self._law(parts.get(-1, ()), moved)
        law = np.ones((1,) * len(columns))
        if place < self.plan.rows:
            turns = np.add.outer(np.arange(self.keys), np.arange(self.keys)) % self.keys
            law = (self._allowed(block, moved)[turns] @ alone)[self._sum_of(columns)]
        for column in columns:
            own, by = self._law(parts.get(column, ()), moved)
            law = law * own.reshape([self.keys if p == column else 1 for p in columns])
            scale += by
        mass = float(law.sum())
        if not mass or scale == -math.inf:
            return None
        law = law.reshape(self.shape) / mass
        norm = float(np.linalg.norm(law))
        return _Term(np.fft.rfftn(law).ravel(), scale + math.log(mass), norm)

    def _sum_of(self, columns: Sequence[int]) -> np.ndarray:
        """Return the sum of some of the columns' keys, for all of them."""
        found = np.zeros((1,) * self.plan.columns, dtype=np.int32)
        for column in columns:
            axes = [self.keys if p == column else 1 for p in range(self.plan.columns)]
            found = found + np.arange(self.keys, dtype=np.int32).reshape(axes)
        return found % self.keys

    def _new_rest(self, changed: tuple[int, ...]) -> _Term | None:
        """Return the product of the transforms of rows in which nobody moves."""
        found = _Term(np.ones(()), 0.0, 0.0)
        for place in range(len(self.plan.blocks)):
            if place not in changed:
                term = self._term(place, STAY)
                if term is None:
                    return None
                found = _Term(
                    found.values * term.values,
                    found.scale + term.scale,
                    max(found.norm, term.norm),
                )
        return found

    def _new_weights(self, moved: Moved) -> _Term | None:
        """Return the transform of M, for a sum over the half of it that is kept; None if M is 0."""
        given = np.ones(self.shape, dtype=bool)
        for cells in self.plan.margins:
            columns = {self.plan.column_of[cell] for cell in cells}
            given &= self._allowed(cells, moved)[self._sum_of(sorted(columns))]
        size = int(given.sum())
        if not size:
            return None
        values = np.fft.rfftn(given).conj()
        # The other half is conjugate: numbers that are not in it count twice.
        values[..., 1 : (self.shape[-1] + 1) // 2] *= 2
        return _Term(values.ravel(), 0.0, math.sqrt(size))
