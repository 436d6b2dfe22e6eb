"""Noise with a smooth density: Gaussian and Laplace."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtr, ndtri

from cvxleak.core.validation import Array
from cvxleak.model.noise.additive import TAIL, Scaled, around
from cvxleak.model.noise.real_output import MOST_CELLS, Cells

__all__ = ["Gaussian", "Laplace", "Smooth"]

GRID = 4096
"""Even steps in which the density is looked at to place the cells."""

FINE = 8
"""Steps beside that within a width of the noise, near the values."""

NEAR = 20
"""Widths from a value beyond which its density is left out of account."""

CHUNK = 256
"""Steps that are looked at together."""

ENOUGH = 1.1
"""What cells may cost for each nat that was asked for, before they are cut further."""


class Smooth(Scaled):
    """Noise with a log-concave density, of which ever finer cells tell ever more."""

    @abstractmethod
    def _density(self, z: Array) -> Array: ...

    @abstractmethod
    def reach(self, tail: float, *, between: bool = False) -> float:
        """Return how far beyond the query's values the bounded cells go, or between two of them.

        What is further away has less than the probability `tail`.
        """

    def _kinks(self, numbers: Sequence[Fraction]) -> list[float]:
        """Return where a log-density has no slope; cells end there."""
        return []

    def cells(self, values: Sequence[Hashable], excess: float, most: int = MOST_CELLS) -> Cells:
        """Return cells that are the finer the more of the excess would arise in them."""
        numbers = self.numbers(values)
        places = np.array([float(v) for v in numbers])
        if len(set(numbers)) == 1:
            return Cells(np.ones((len(places), 1)), np.array([-np.inf, np.inf]), places[:1])
        edges = np.union1d(self._edges(places, excess, most), self._kinks(numbers))
        if len(edges) >= most:
            edges = edges[np.linspace(0, len(edges) - 1, most - 1).round().astype(int)]
        while True:
            masses = self.masses(values, np.concatenate([[-np.inf], edges, [np.inf]]))
            middle = (edges[1:] + edges[:-1]) / 2
            tilts = self.tilts(places, middle)
            weights = np.maximum(masses[:, 1:-1], np.finfo(float).tiny)
            references = (weights * tilts).sum(axis=0) / weights.sum(axis=0)
            steps = (tilts - references) * np.diff(edges) / self.scale_of_tilt
            costs = masses[:, 1:-1] * steps**2 / (2 * math.pi**2)
            if costs.sum(axis=1).max() <= ENOUGH * excess:
                break
            # Noise that is small beside the distance of two values: between them the reference
            # jumps, which the widths do not account for.
            dear = costs.max(axis=0)
            finer = np.union1d(edges, middle[dear > dear.max() / 2])
            if not len(edges) < len(finer) < most:
                break
            edges = finer
        beyond = np.array([edges[0] - self.width, edges[-1] + self.width])
        ends = self.tilts(places, beyond).mean(axis=0)
        edges = np.concatenate([[-np.inf], edges, [np.inf]])
        return Cells(masses, edges, np.concatenate([ends[:1], references, ends[1:]]))

    def _edges(self, places: Array, excess: float, most: int) -> Array:
        """Return edges of cells that cost about as much as is asked for."""
        reach = self.reach(min(TAIL * excess, 0.1))
        grid = self._grid(places, reach)
        y, steps = (grid[1:] + grid[:-1]) / 2, np.diff(grid)
        ordered = np.sort(places)
        cost = np.empty(len(y))
        for part, _, rates in self._rates(ordered, y):
            cost[part] = rates.max(axis=0)
        # A cell of width h costs about h^3 times this, so its best width goes with the cube root.
        finest = np.cbrt(cost)
        finest = np.maximum(finest, 1e-3 * (finest @ steps) / steps.sum())
        inner = np.concatenate([[0.0], np.cumsum(finest * steps)])
        # N cells are 1/N times this wide; their costs add up with the square of that.
        weights = (inner[-1] / finest) ** 2 * steps
        costs = np.zeros(len(places))
        for part, near, rates in self._rates(ordered, y):
            costs[near] += rates @ weights[part]
        count = max(1, min(math.ceil(math.sqrt(costs.max() / excess)), most - 2))
        return np.interp(np.linspace(0, inner[-1], count + 1), inner, grid)

    def _grid(self, places: Array, reach: float) -> Array:
        """Return points of which many lie where the density of a value is."""
        low, high = places.min() - reach, places.max() + reach
        fine = self.width / FINE
        near = np.unique(np.round(places[:, None] / fine + np.arange(-6 * FINE, 6 * FINE + 1)))
        even = np.linspace(low, high, GRID + 1)
        return np.unique(np.clip(np.concatenate([even, near * fine]), low, high))

    def _rates(self, ordered: Array, y: Array) -> Iterator[tuple[slice, slice, Array]]:
        """Yield what cells cost at some points, for the values near to these: both by slices."""
        for begin in range(0, len(y), CHUNK):
            part = slice(begin, begin + CHUNK)
            first = np.searchsorted(ordered, y[part][0] - NEAR * self.width)
            last = np.searchsorted(ordered, y[part][-1] + NEAR * self.width)
            near = slice(max(int(first) - 1, 0), int(last) + 1)
            density = self._density(y[None, part] - ordered[near, None])
            density = np.maximum(density, np.finfo(float).tiny)
            tilts = self.tilts(ordered[near], y[part])
            references = (density * tilts).sum(axis=0) / density.sum(axis=0)
            slopes = (tilts - references) / self.scale_of_tilt
            yield part, near, density * slopes**2 / (2 * math.pi**2)


@dataclass(frozen=True, eq=False)
class Gaussian(Smooth):
    r"""Normal noise with density exp(-z^2 / 2 sigma^2) / (sigma sqrt(2 pi)).

    Parameters
    ----------
    sigma : float
        Standard deviation, positive, in the unit of the query.

    Raises
    ------
    ValidationError
        A number that is not positive and finite.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.model import Gaussian
    >>> from cvxleak.queries import count
    >>> print(record_leakage(Mechanism(count(3), Gaussian(sigma=1)), 1.4, tol=1e-2))
    record leakage: 0.40... to 0.40... nats (CERTIFIED)
    """

    kind = "gaussian"
    parameter = "sigma"
    sigma: float

    @property
    def scale_of_tilt(self) -> float:
        """The variance: a tilt is a place on the line."""
        return self.width**2

    def below(self, z: Array) -> Array:
        """Return P(Z < z)."""
        return ndtr(z / self.width)

    def tilts(self, values: Array, y: Array) -> Array:
        """Return the values: log f(y - v) has the slope (v - y) / sigma^2."""
        return np.broadcast_to(values[:, None], (len(values), len(y)))

    def _density(self, z: Array) -> Array:
        return np.exp(-((z / self.width) ** 2) / 2) / (self.width * math.sqrt(2 * math.pi))

    def reach(self, tail: float, *, between: bool = False) -> float:
        """Return how far from a value half of the tail begins."""
        return -float(ndtri(tail / 2)) * self.width


@dataclass(frozen=True, eq=False)
class Laplace(Smooth):
    """Laplace noise with density exp(-|z| / scale) / (2 scale).

    With scale = sensitivity / epsilon it is the mechanism of differential privacy.

    Parameters
    ----------
    scale : float
        Positive, in the unit of the query.

    Raises
    ------
    ValidationError
        A number that is not positive and finite.

    Notes
    -----
    All outputs above the largest value of the query have the same posterior, and so do all below
    the smallest: the two unbounded cells lose nothing.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.model import Laplace
    >>> from cvxleak.queries import count
    >>> print(record_leakage(Mechanism(count(3), Laplace(scale=2)), 1.4, tol=1e-2))
    record leakage: 0.12... to 0.12... nats (CERTIFIED)
    """

    kind = "laplace"
    parameter = "scale"
    scale: float

    @property
    def scale_of_tilt(self) -> float:
        """The scale: a tilt is a sign."""
        return self.width

    def below(self, z: Array) -> Array:
        """Return P(Z < z)."""
        tail = np.exp(-np.abs(z) / self.width) / 2
        return np.where(z < 0, tail, 1 - tail)

    def tilts(self, values: Array, y: Array) -> Array:
        """Return 1 below a value and -1 above it."""
        return np.sign(values[:, None] - y[None])

    def _density(self, z: Array) -> Array:
        return np.exp(-np.abs(z) / self.width) / (2 * self.width)

    def _kinks(self, numbers: Sequence[Fraction]) -> list[float]:
        return [place for number in numbers for place in around(number)]

    def reach(self, tail: float, *, between: bool = False) -> float:
        """Return 0: beyond all values the output tells no more."""
        return -math.log(tail) * self.width if between else 0.0
