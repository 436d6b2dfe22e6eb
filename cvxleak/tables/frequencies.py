r"""Bounds on the probability of one published two-way table whose keys are sums.

`transforms` is exact but goes through K^m vectors of keys. Here low frequencies are summed, and the
others are bounded. Rows are the p = 1, ..., n, columns the j = 1, ..., J; p = 0 and j = 0 stand for
margins. Let a_pj be the distribution of the key of cell (p, j), given what is published of it;
a_0j and a_p0 are uniform on the keys of column j and of row p, with the sign turned, that give what
is published of their margins, and a_00 on those of the total, with its own sign. With their Fourier
transforms A_pj, whose largest value is A_pj(0) = 1,

    P(y) = c sum over x in Z_K^n of prod_j F_j(x),   F_j(x) = sum_h prod_p A_pj(x_p - h),  x_0 = 0.

c is P(y) as it would be if the keys of all cells and margins were independent.

- *Low frequencies*, |x_p| <= B for all p, are summed as they are.
- *The others*: Z_K is divided into groups that grow with |x|. For a product G of groups, by
  Hoelder's inequality for the m = J + 1 factors and Minkowski's for the sum over h,

      sum over x in G of prod_j |F_j(x)| <= prod_j sum_h prod_p N_pj(h),
      N_pj(h)^m = sum over x_p in G_p of |A_pj(x_p - h)|^m.

- *Rounding*: if spectra are off by at most d, let p(t) be the sum over |x_p| <= B of
  prod_j sum_h prod_p (|A_pj(x_p - h)| + t d). Products are off by at most p(1) - p(0), which is at
  most p(T)/T for T >= 1, because p has nonnegative coefficients and is convex. Each product and sum
  of floats adds at most its unit roundoff times p(0). With T = FLOOR/d - 1 the same sums over
  groups, of computed |A| + FLOOR, bound both p(T) and the frequencies that are left out.

A person who moves changes at most three of the F_j. Frequencies are summed in slabs of equal x_1,
and for each slab each F_j is computed once for all moves that change it alike. F_j(-x) is the
conjugate of F_j(x).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cvxleak.core.validation import Array
from cvxleak.tables.parts import Blocks, Turns

__all__ = ["LowFrequencies", "groups_for"]

WORK = 1 << 37
"""Most complex products for all frequencies and moves: about 20 seconds."""

RATIOS = 1.2, 1.3, 1.4, 1.6, 2.0
"""Growth of groups: for 4 by 5 cells 1.1 takes ten times as long as 1.2 and bounds no better."""

KEYS = 1 << 12
"""Most keys: squares of this many indices fit into memory."""

FLOOR = 2.0**-14
"""What is added to absolute values of which errors are multiples."""

SLACK = 1 + 1e-8
"""More than sums and products of nonnegative doubles are too small by."""

EPS = float(np.finfo(float).eps)

Spectrum = Callable[[int, int, int], tuple[np.ndarray, float] | None]
"""A_pj and the logarithm of its factor of c, by j, p and the turn; None if it is 0."""


class _Groups(NamedTuple):
    """Groups of frequencies, the largest |x| of each, and how often it counts; mirrored apart."""

    members: list[np.ndarray]
    ends: np.ndarray

    @classmethod
    def of(cls, keys: int, ratio: float) -> _Groups:
        """Return groups whose ends grow by this ratio; only the first of two mirrored has x > 0."""
        members, ends, low = [np.zeros(1, dtype=int)], [0], 1
        while 2 * low <= keys:
            high = max(low, int(low * ratio))
            if 2 * high >= keys:
                members.append(np.arange(low, keys - low + 1))
                ends.append(keys // 2)
            else:
                members += [np.arange(low, high + 1), -np.arange(low, high + 1)]
                ends += [high, high]
            low = high + 1
        return cls(members, np.array(ends))

    @property
    def slabs(self) -> list[tuple[int, float]]:
        """One of each pair of mirrored groups, and how many it stands for."""
        twins = [len(one) and one[0] < 0 for one in self.members]
        follows = [*twins[1:], False]
        return [
            (g, 2.0 if pair else 1.0)
            for g, (twin, pair) in enumerate(zip(twins, follows, strict=True))
            if not twin
        ]


def groups_for(keys: int, places: int, tensors: int) -> _Groups | None:
    """Return the finest groups for which so many tensors take a limited amount of work."""
    every = (_Groups.of(keys, ratio) for ratio in RATIOS if keys <= KEYS)
    return next((one for one in every if len(one.members) ** places * tensors * keys <= WORK), None)


class LowFrequencies:
    """Bounds on P(y) after each of some moves, from the spectra of all parts."""

    def __init__(
        self, spectrum: Spectrum, doubt: float, keys: int, moves: Sequence[Blocks]
    ) -> None:
        self.keys, self.doubt, self._spectrum, self._moves = keys, doubt, spectrum, moves
        self.blocks, self.places = len(moves[0]), len(moves[0][0]) - 1
        self.tensors = len({(j, turns) for own in moves for j, turns in enumerate(own)})
        self.groups = groups_for(keys, self.places, self.tensors)

    def _scale(self, turns: Blocks) -> float:
        """Return log c."""
        logs = [self._spectrum(j, p, t) for j, own in enumerate(turns) for p, t in enumerate(own)]
        return sum(-math.inf if one is None else one[1] for one in logs)

    def bounds(self) -> Iterator[tuple[Array, Array] | None]:
        """Yield bounds on log P(y) for each move, closer and closer; None between them."""
        groups = self.groups
        assert groups is not None
        self.scales = np.array([self._scale(own) for own in self._moves])
        self.possible = np.flatnonzero(self.scales > -math.inf).tolist()
        # Moves that change the same blocks share the product of the others.
        self._alike: dict[tuple[int, ...], list[int]] = {}
        for one in self.possible:
            changed = tuple(j for j, turns in enumerate(self._moves[one]) if any(turns))
            self._alike.setdefault(changed, []).append(one)
        low, high = np.full((2, len(self._moves)), -math.inf)
        high[self.possible] = 0.0
        yield low, high
        if not self.possible:
            return
        ends = np.unique(groups.ends)
        shells = np.zeros((len(self._moves), len(ends)))
        for found in self._grouped(groups, ends):
            shells += found
            yield None
        for within in self._reaches(ends):
            values, size = np.zeros(len(self._moves)), min(2 * within + 1, self.keys)
            for found in self._summed(within):
                values += found
                yield None
            inside, beyond = (
                shells[:, some].sum(axis=1) for some in (ends <= within, ends > within)
            )
            off = (self._rounding(size) * inside + beyond) * SLACK
            off += self._lost(max(size, len(groups.members)))
            with np.errstate(divide="ignore"):
                low = self.scales + np.log(np.maximum(values - off, 0.0))
                high = self.scales + np.log(np.maximum(values, 0.0) + off)
            yield low, high

    def _reaches(self, ends: np.ndarray) -> list[int]:
        """Return the B for which low frequencies are summed, each an eighth of the next's work."""
        found, most = list[int](), WORK
        for end in ends[::-1].tolist():
            size = min(2 * end + 1, self.keys)
            work = size**self.places * self.tensors * self.keys
            if work <= most:
                most = work // 8
                found.append(end)
        return found[::-1]

    def _rounding(self, size: int) -> float:
        """Bound errors of sums of so many frequencies to the power n, relative to p(T)."""
        steps = self.blocks * (self.keys + 2 * self.places) + size**self.places
        steps += self.blocks * self.places * (2 + float(np.abs(self.scales[self.possible]).max()))
        return self.doubt / (FLOOR - self.doubt) + 4 * steps * EPS

    def _lost(self, size: int) -> float:
        """Bound what underflow loses: each product so much, times what is multiplied later."""
        log = math.log(4 * self.keys * (self.blocks + self.places) * 2**self.blocks)
        log += self.places * math.log(size) + math.log(float(np.finfo(float).tiny))
        log += (self.blocks + self.places) * math.log(self.keys)
        return math.exp(min(log + self.blocks * (self.places + 1) * math.log(2), 700.0))

    def _summed(self, within: int) -> Iterator[np.ndarray]:
        """Yield, for slabs of frequencies up to `within`, their sum for each move."""
        if 2 * within + 1 >= self.keys:
            at = np.arange(self.keys)
            slabs = [(x, 1.0 if 2 * x % self.keys == 0 else 2.0) for x in range(self.keys // 2 + 1)]
        else:
            at = np.arange(-within, within + 1)
            slabs = [(within + x, 2.0 if x else 1.0) for x in range(within + 1)]
        turned = (at[:, None] - np.arange(self.keys)) % self.keys

        def spectra(j: int, turns: Turns) -> list[np.ndarray]:
            return [self._of(j, p, turn)[turned] for p, turn in enumerate(turns)][1:]

        for slab, often in slabs:
            found = np.zeros(len(self._moves))
            for place, one, other in self._products(spectra, slab):
                found[place] = often * float(np.dot(one, other).real)
            yield found

    def _grouped(self, groups: _Groups, ends: np.ndarray) -> Iterator[np.ndarray]:
        """Yield, for slabs of groups, bounds on the sum of absolute values by the largest |x|."""
        turned = [(one[:, None] - np.arange(self.keys)) % self.keys for one in groups.members]
        known: dict[tuple[int, int, int], np.ndarray] = {}

        def norms(j: int, turns: Turns) -> list[np.ndarray]:
            for p, turn in enumerate(turns):
                if p and (j, p, turn) not in known:
                    sizes = np.abs(self._of(j, p, turn)) + FLOOR
                    powers = [(sizes[one] ** self.blocks).sum(axis=0) for one in turned]
                    known[j, p, turn] = np.array(powers) ** (1 / self.blocks)
            return [known[j, p, turn] for p, turn in enumerate(turns) if p]

        shell = np.searchsorted(ends, groups.ends)
        rest = np.zeros((1,) * (self.places - 1), dtype=int)
        for axis in range(self.places - 1):
            shape = [-1 if a == axis else 1 for a in range(self.places - 1)]
            rest = np.maximum(rest, shell.reshape(shape))
        for slab, often in groups.slabs:
            own = np.maximum(rest, shell[slab]).ravel()
            found = np.zeros((len(self._moves), len(ends)))
            for place, one, other in self._products(norms, slab, FLOOR):
                found[place] = often * np.bincount(own, one * other, len(ends))
            yield found

    def _of(self, j: int, p: int, turn: int) -> np.ndarray:
        found = self._spectrum(j, p, turn)
        assert found is not None  # moves for which it is 0 are impossible
        return found[0]

    def _products(
        self,
        matrices: Callable[[int, Turns], list[np.ndarray]],
        slab: int,
        floor: float | None = None,
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield, for each move, two factors of prod_j F_j for all x with this x_1."""
        opposite = -np.arange(self.keys) % self.keys
        known: dict[tuple[int, Turns], np.ndarray] = {}

        def sums(j: int, turns: Turns) -> np.ndarray:
            if (j, turns) not in known:
                first, *others = matrices(j, turns)
                own = self._of(j, 0, turns[0])[opposite]
                own = own if floor is None else np.abs(own) + floor
                half = len(others) // 2
                left = _together([(own * first[slab])[None, :], *others[:half]])
                known[j, turns] = (
                    left @ _together([np.ones((1, self.keys)), *others[half:]]).T
                ).ravel()
            return known[j, turns]

        base = (0,) * (self.places + 1)
        for changed, places in self._alike.items():
            rest = np.ones(1)
            for j in range(self.blocks):
                if j not in changed:
                    rest = rest * sums(j, base)
            for place in places:
                factors = [sums(j, self._moves[place][j]) for j in changed]
                one = rest
                for factor in factors[:-1]:
                    one = one * factor
                yield place, one, factors[-1] if factors else np.ones_like(one)


def _together(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the products of all choices of one row of each."""
    found = parts[0]
    for one in parts[1:]:
        found = (found[:, None, :] * one).reshape(-1, one.shape[1])
    return found
