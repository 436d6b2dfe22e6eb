r"""Privacy losses of the numbers that one person changes, and of all of them together.

P and R are the distributions of what is published for two tables that differ in one person, and
H_c(P || R) is the largest P(S) - c R(S) over events S. With the loss L(y) = log P(y) / R(y),

    H_c(P || R) = E_P[ (1 - c e^(-L))_+ ],

which increases with L; L = inf where R(y) = 0. The loss of independent numbers is the sum of
theirs.

The distribution of the loss is computed in one of these ways:

- exactly: the distribution of P/R under P, in rational numbers, is that of a product, and equal
  ratios are merged;
- otherwise on a grid (`cvxleak.tables.grid`);
- several Gaussian numbers together have a loss with the distribution N(mu^2 / 2, mu^2), where
  mu^2 = sum 1 / sigma^2. H_c is the mean of the Gaussian H at c e^(-L) over the losses L of all
  other numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from flint import arb, fmpq

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.kernel.numbers import ball, lower, precision, rational, upper
from cvxleak.model import (
    AdditiveNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Rounded,
    Uniform,
)
from cvxleak.proofs.exact import exp_above, exp_below
from cvxleak.tables.grid import COARSE, FINE, Cells, GridLosses, mean_of_gaussian, on_grid
from cvxleak.tables.inversion import edge_of, law_of_noise
from cvxleak.tables.noise import CountNoise, Law

__all__ = ["Book", "Change", "Losses", "Noise", "Ratios", "dominating"]

Noise = CountNoise | AdditiveNoise
"""The noise of one published number."""

ATOMS = 1 << 14
"""Most different ratios whose exact probabilities are kept."""

CELLS = 1 << 13
"""Cells of the real outputs between two true values."""

LARGEST = 700.0
"""The largest loss whose exponential is kept as a float."""

REACH = 13
"""Standard deviations, or three times as many scales, beyond which outputs count as certain."""


class Change(NamedTuple):
    """A number whose true value changes: its noise, the value under P, and by how much."""

    noise: Noise
    value: int
    by: int

    @property
    def back(self) -> Change:
        """The same with P and R exchanged."""
        return Change(self.noise, self.value + self.by, -self.by)


@dataclass(frozen=True)
class Ratios:
    """The distribution of P(y) / R(y) under P, exactly.

    Attributes
    ----------
    masses : dict
        The probability P of each positive ratio.
    alone : fmpq
        The probability P of the outputs that R excludes.
    """

    masses: dict[fmpq, fmpq]
    alone: fmpq = field(default_factory=fmpq)

    @classmethod
    def of_laws(cls, p: Law, r: Law) -> Ratios:
        """Return the ratios of two distributions."""
        masses: dict[fmpq, fmpq] = {}
        alone = fmpq(0)
        for y, chance in p.items():
            exact = rational(chance)
            if y in r:
                ratio = exact / rational(r[y])
                masses[ratio] = masses.get(ratio, fmpq(0)) + exact
            else:
                alone += exact
        return cls(masses, alone)

    def with_another(self, other: Ratios) -> Ratios:
        """Return the ratios of both outputs together, which are independent."""
        masses: dict[fmpq, fmpq] = {}
        for ratio, chance in self.masses.items():
            for more, second in other.masses.items():
                both = ratio * more
                masses[both] = masses.get(both, fmpq(0)) + chance * second
        return Ratios(masses, 1 - (1 - self.alone) * (1 - other.alone))

    @cached_property
    def falling(self) -> list[fmpq]:
        """The ratios, the largest first."""
        return sorted(self.masses, reverse=True)

    @cached_property
    def _sums(self) -> tuple[list[fmpq], list[fmpq]]:
        """Return P and R of the outputs with one of the first ratios."""
        masses = [self.masses[ratio] for ratio in self.falling]
        others = [mass / ratio for mass, ratio in zip(masses, self.falling, strict=True)]
        start = fmpq(0)
        return (
            list(accumulate(masses, initial=self.alone)),
            list(accumulate(others, initial=start)),
        )

    def at(self, c: fmpq) -> fmpq:
        """Return H_c(P || R)."""
        first, second = self._sums
        place = bisect_left(self.falling, -c, key=lambda ratio: -ratio)
        return first[place] - c * second[place]

    def below(self, other: Ratios) -> bool:
        """Whether H_c is at most that of `other` for every c; both are piecewise linear."""
        if self.alone > other.alone:
            return False
        return all(self.at(c) <= other.at(c) for c in {*self.masses, *other.masses})


def dominating(given: Sequence[Ratios]) -> Ratios:
    """Return distributions whose H_c is the largest of those given, at every c.

    A convex function from 1 at c = 0 that falls to a limit is the H_c of some distributions (Y.
    Zhu, J. Dong, Y. Wang, 2022, Proposition 8), and the H_c of a product of such distributions is
    at least that of a product of any of those that are given (Theorem 10).
    """
    if len(given) > 2:
        half = len(given) // 2
        given = [dominating(given[:half]), dominating(given[half:])]
    knots = sorted({fmpq(0), *(ratio for one in given for ratio in one.masses)})
    knots.append(2 * knots[-1] + 1)
    points: list[tuple[fmpq, fmpq]] = []
    for low, high in pairwise(knots):
        lines = {(one.at(low), one.at(high)) for one in given}
        points.append((low, max(first for first, _ in lines)))
        crossings = set()
        for first, last in lines:
            for other, end in lines:
                gap, gap_after = first - other, last - end
                if gap < 0 < gap_after:
                    crossings.add(low + (high - low) * (-gap) / (gap_after - gap))
        points += [(c, max(one.at(c) for one in given)) for c in sorted(crossings)]
    limit = max(one.alone for one in given)
    points.append((knots[-1], max(one.at(knots[-1]) for one in given)))
    # Beyond the last ratio each is constant; at a ratio, R has the change of the slope.
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(points)] + [fmpq(0)]
    masses = {
        point[0]: point[0] * (after - before)
        for point, (before, after) in zip(points[1:], pairwise(slopes), strict=True)
        if after != before
    }
    return Ratios(masses, limit)


@dataclass(frozen=True)
class Losses:
    """All that is known of the losses of several numbers: exact ratios, and Gaussian noise."""

    ratios: Ratios
    squared_mu: fmpq

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on H_c at c = e^epsilon."""
        if self.squared_mu:
            pairs = [(arb(ratio).log(), arb(p)) for ratio, p in self.ratios.masses.items()]
            found = mean_of_gaussian(pairs, self.squared_mu, epsilon) + arb(self.ratios.alone)
            return max(lower(found), 0.0), min(upper(found), 1.0)
        if epsilon == 0:
            exact = self.ratios.at(fmpq(1))
            return _float(exact, -1), _float(exact, 1)
        low, high = self.ratios.at(exp_above(epsilon)), self.ratios.at(exp_below(epsilon))
        return _float(low, -1), _float(high, 1)

    @property
    def certain(self) -> float:
        """A lower bound on the probability P of what R excludes."""
        return _float(self.ratios.alone, -1)

    @property
    def knots(self) -> list[float]:
        """Losses at which the profile bends."""
        return [] if self.squared_mu else [_log(ratio) for ratio in self.ratios.falling]


class Book:
    """The losses of changes: those of a change that occurs in many moves are computed once."""

    def __init__(self) -> None:
        self._ratios: dict[Change, Ratios | None] = {}
        self._cells: dict[Change, Cells] = {}

    def ratios(self, change: Change) -> Ratios | None:
        """Return the exact ratios of a number's outputs; None if they are not rational."""
        if change not in self._ratios:
            self._ratios[change] = _ratios(change)
        return self._ratios[change]

    def above(self, change: Change) -> Ratios:
        """Return the exact ratios, or others whose H_c is nowhere below that of the number."""
        exact = self.ratios(change)
        if exact is not None:
            return exact
        cells = self.cells(change)
        masses: dict[fmpq, fmpq] = {}
        alone = fmpq(*cells.alone[1].as_integer_ratio())
        for loss, mass in zip(cells.losses[1].tolist(), cells.masses[1].tolist(), strict=True):
            more = fmpq(*mass.as_integer_ratio())
            if loss > LARGEST:
                alone += more
                continue
            ratio = fmpq(*upper(arb(loss).exp()).as_integer_ratio())
            masses[ratio] = masses.get(ratio, fmpq(0)) + more
        return Ratios(masses, alone)

    def enter(self, noise: Noise, by: int, ratios: Ratios) -> Change:
        """Return a change with the given ratios, which belong to no true value: the value is -1."""
        change = Change(noise, -1, by)
        self._ratios[change] = ratios
        return change

    def cells(self, change: Change) -> Cells:
        """Return the outputs of one number, with bounds on their losses and probabilities."""
        if change not in self._cells:
            self._cells[change] = _cells(change, self.ratios(change))
        return self._cells[change]

    def losses(self, changes: Iterable[Change]) -> Losses | GridLosses:
        """Return the losses of independent numbers: exact if they are few, or on a fine grid."""
        others, squared = _split(changes)
        exact = [self.ratios(change) for change in others]
        found = _product([one for one in exact if one is not None]) if all(exact) else None
        if found is not None:
            return Losses(found, squared)
        return on_grid([self.cells(change) for change in others], squared, FINE)

    def coarse(self, changes: Iterable[Change]) -> GridLosses:
        """Return the losses on a coarse grid."""
        others, squared = _split(changes)
        return on_grid([self.cells(change) for change in others], squared, COARSE)


def _split(changes: Iterable[Change]) -> tuple[list[Change], fmpq]:
    """Return the numbers with other than Gaussian noise, and the squared mu of the rest."""
    others, squared = [], fmpq(0)
    for change in changes:
        if isinstance(change.noise, Gaussian):
            squared += 1 / rational(fraction(change.noise.sigma)) ** 2
        else:
            others.append(change)
    return others, squared


def _product(exact: Iterable[Ratios]) -> Ratios | None:
    """Return the ratios of independent numbers; None if there are too many."""
    found = Ratios({fmpq(1): fmpq(1)})
    for one in sorted(exact, key=lambda ratios: len(ratios.masses)):
        if len(found.masses) * len(one.masses) > 4 * ATOMS:
            return None
        found = found.with_another(one)
    return found if len(found.masses) <= ATOMS else None


def _ratios(change: Change) -> Ratios | None:
    noise = change.noise
    if isinstance(noise, CountNoise):
        return Ratios.of_laws(noise.law(change.value), noise.law(change.value + change.by))
    if isinstance(noise, Uniform):
        alone = min(fmpq(1), 1 / (2 * rational(fraction(noise.half_width))))
        return Ratios({fmpq(1): 1 - alone} if alone < 1 else {}, alone)
    return None


def _cells(change: Change, exact: Ratios | None) -> Cells:
    with precision():
        if exact is not None:
            pairs = [(arb(ratio).log(), arb(mass)) for ratio, mass in exact.masses.items()]
            alone = _float(exact.alone, -1), _float(exact.alone, 1)
        else:
            pairs, sure, missed = _real_cells(change)
            alone = max(lower(sure), 0.0), max(upper(sure + missed), 0.0)
        low = np.array([lower(loss) for loss, _ in pairs])
        high = np.array([upper(loss) for loss, _ in pairs])
        less = np.array([max(lower(mass), 0.0) for _, mass in pairs])
        more = np.array([upper(mass) for _, mass in pairs])
    return Cells((low, high), (less, more), alone)


def _real_cells(change: Change) -> tuple[list[tuple[arb, arb]], arb, arb]:
    """Return balls around the losses in cells of the output, and around their masses.

    The other two numbers are the probability of what R excludes, and of what is left out.
    """
    noise, values = change.noise, (Fraction(change.value), Fraction(change.value + change.by))
    assert isinstance(noise, AdditiveNoise)
    low, high = min(values), max(values)
    edges: list[Fraction]
    if isinstance(noise, DiscreteLaplace):
        edges = [(low + high) / 2]
    elif isinstance(noise, Laplace):
        edges = [low + (high - low) * k / CELLS for k in range(CELLS + 1)]
    elif not isinstance(noise, Rounded | DiscreteGaussian):
        raise ValidationError(f"noise: found {noise!r}, whose losses are not known")
    else:
        base = fraction(noise.base) if isinstance(noise, Rounded) else Fraction(1)
        inner = noise.noise if isinstance(noise, Rounded) else noise
        spread = 3 * REACH if isinstance(inner, Laplace) else REACH
        reach = math.ceil(spread * fraction(getattr(inner, inner.parameter)) / base) + 1  # pyright: ignore
        first, last = math.floor(low / base) - reach, math.ceil(high / base) + reach
        edges = [(k + Fraction(1, 2)) * base for k in range(first, last)]
    law = law_of_noise(noise)
    rows = []
    for v in values:
        rows.append(law.masses([edge_of(noise, e - v) for e in edges]))
    pairs, sure, missed = [], arb(0), arb(0)
    scale = ball(noise.scale) if isinstance(noise, Laplace) else None
    tells_all = isinstance(noise, DiscreteLaplace | Laplace)
    for place, (p, r) in enumerate(zip(*rows, strict=True)):
        if not tells_all and place in (0, len(edges)):
            missed += p
        elif p == 0:
            continue
        elif r == 0:
            sure += p
        elif not (p > 0 and r > 0):
            missed += p  # too small to be distinguished from 0
        elif scale is not None and 0 < place < len(edges):
            # The loss is linear between the two values, (2 y - low - high) / scale or its opposite.
            sign = 1 if values[0] > values[1] else -1
            ends = [
                sign * ball(2 * edge - low - high) / scale for edge in edges[place - 1 : place + 1]
            ]
            pairs.append((ends[0].union(ends[1]), p))
        else:
            pairs.append(((p / r).log(), p))
    return pairs, sure, missed


def _log(number: fmpq) -> float:
    with precision():
        return float(arb(number).log())


def _float(number: fmpq, outward: int) -> float:
    """Return the float next to a rational, on one side of it."""
    near = int(number.p) / int(number.q)
    if (fmpq(*near.as_integer_ratio()) - number) * outward >= 0:
        return near
    return math.nextafter(near, math.inf * outward)
