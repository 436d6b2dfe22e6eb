"""Additive noise whose outputs are real numbers, or all whole numbers: Y = f(X) + Z."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction, to_json
from cvxleak.core.validation import Array, real_number, short
from cvxleak.core.value import Stored, check_keys
from cvxleak.model.channel import Channel

__all__ = [
    "AdditiveNoise",
    "Cells",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Rounded",
    "Uniform",
]

MOST_CELLS = 1 << 14
"""Most cells of the output."""

GRID = 4096
"""Points at which the density is looked at to place the cells."""

AROUND = 1 << 23
"""About how many densities are computed for that."""

ENOUGH = 1.1
"""What cells may cost for each nat that was asked for, before they are cut further."""

TAIL = 0.02
"""Share of the excess that the two unbounded cells may have."""


class Cells(NamedTuple):
    """A partition of the output into intervals.

    Attributes
    ----------
    edges : array, shape (cells + 1,)
        From -inf to inf; cell j is the interval between edges j and j + 1.
    references : array, shape (cells,)
        For each cell the tilt (`AdditiveNoise.tilts`) of the law in it to which the conditional
        laws are compared.
    """

    edges: Array
    references: Array


@dataclass(frozen=True, eq=False)
class AdditiveNoise(Stored, ABC):
    """Noise Z that is added to the value of a query, with the law of one of the subclasses.

    In the place of a channel, ``Mechanism(query, noise)``, it stands for the real output f(X) + Z,
    which no table of probabilities holds. An audit cuts the output into cells, of which the lower
    end may be said (what is done to an output afterwards tells nothing more), and adds to the upper
    end what the place of an output within its cell can tell. The query's values are to be numbers.

    `Gaussian`, `Laplace`, `Uniform`, `DiscreteGaussian` and `DiscreteLaplace` exist, and `Rounded`
    for the first three. None is clamped to a range. For noise that is, build the channel: `channel`
    with the edges of the range, or `cvxleak.mechanisms`.

    Examples
    --------
    A count with Gaussian noise, and the same count after the noise was clamped to its range:

    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.model import AdditiveNoise, Gaussian
    >>> from cvxleak.queries import count
    >>> noise = Gaussian(sigma=2)
    >>> isinstance(noise, AdditiveNoise)
    True
    >>> clamped = noise.channel(range(4), [0, 1, 2, 3])
    >>> for given in noise, clamped:
    ...     print(record_leakage(Mechanism(count(3), given), 1.4, tol=1e-3))
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    """

    kind: ClassVar[str]

    whole: ClassVar[bool] = False
    """Whether the noise, and so the query, is in whole numbers."""

    @property
    @abstractmethod
    def scale_of_tilt(self) -> float:
        """Number by which a tilt is divided to get a slope of the log-density."""

    @abstractmethod
    def below(self, z: Array) -> Array:
        """Return P(Z < z) where z is no value of discrete noise."""

    @abstractmethod
    def cells(self, values: Sequence[Hashable], excess: float) -> Cells:
        """Return cells in which the place of an output tells less than about `excess` nats.

        Parameters
        ----------
        values : sequence
            The values of the query.
        excess : float
            Nats; of cells that cannot be refined, like those of noise in whole numbers, and of more
            than 16384 cells, it may be more.
        """

    def tilts(self, values: Array, y: Array) -> Array:
        """Return the slopes at y of log f(y - v), less what all values have in common.

        They are in units of which `scale_of_tilt` make one. Shape (values, len(y)).
        """
        return np.zeros((len(values), len(y)))

    def numbers(self, values: Sequence[Hashable]) -> tuple[Fraction, ...]:
        """Return the values of a query as numbers.

        Raises
        ------
        ValidationError
            A value that is no number, or no whole number where the noise is.
        """
        found = []
        for value in values:
            try:
                number = fraction(real_number(value, "query"))
            except ValidationError as error:
                raise ValidationError(
                    f"query: found the value {short(value)}; noise is added to numbers"
                ) from error
            if self.whole and number.denominator != 1:
                raise ValidationError(
                    f"query: found the value {short(value)}; {type(self).__name__} is noise in "
                    "whole numbers"
                )
            found.append(number)
        return tuple(found)

    def channel(self, values: Sequence[Hashable], edges: Sequence[float] | Array) -> Channel:
        """Return the channel of the cell that f(X) + Z is in: a coarser output, which tells less.

        Parameters
        ----------
        values : sequence
            The values of the query.
        edges : sequence of float
            Increasing; the first and the last cell are unbounded, whether -inf and inf are given
            or not.

        Raises
        ------
        ValidationError
            Edges that do not increase, or a value that is no number.

        Examples
        --------
        >>> from cvxleak.model import Gaussian
        >>> Gaussian(sigma=2).channel([0, 1], [0.5])
        Channel(2 inputs [0, 1] -> 2 outputs ['(-inf, 0.5)', '(0.5, inf)'])
        """
        inner = [float(edge) for edge in edges if np.isfinite(edge)]
        ends = np.array([-np.inf, *inner, np.inf])
        if not (np.diff(ends) > 0).all() or any(np.isnan(edge) for edge in edges):
            raise ValidationError("edges: expected increasing numbers")
        labels = [f"({low:.12g}, {high:.12g})" for low, high in pairwise(ends)]
        if len(set(labels)) < len(labels):
            labels = list(range(len(labels)))
        return Channel(self.masses(values, ends), values, labels)

    def masses(self, values: Sequence[Hashable], edges: Array) -> Array:
        """Return P(f + Z in cell) for each value f, shape (values, cells), in floats."""
        places = np.array([float(v) for v in self.numbers(values)])
        z = edges[None] - places[:, None]
        low, high = z[:, :-1], z[:, 1:]
        # The law is symmetric: on the right, what is above is known to more digits.
        right = low + high > 0
        found = np.where(
            right, self.below(-low) - self.below(-high), self.below(high) - self.below(low)
        )
        return np.maximum(found, 0.0) / found.sum(axis=1, keepdims=True)

    @classmethod
    def _kinds(cls) -> dict[str, type[AdditiveNoise]]:
        kinds = (Gaussian, Laplace, Uniform, DiscreteGaussian, DiscreteLaplace, Rounded)
        return {kind.kind: kind for kind in kinds}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> AdditiveNoise:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the noise that `to_dict` wrote, of whichever kind it is.

        Raises
        ------
        ValidationError
            An unknown kind, a key that is missing or unknown, or a value that is not valid.
        """
        kinds = AdditiveNoise._kinds()
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise ValidationError(f"noise: found the kind {short(kind)}; allowed: {sorted(kinds)}")
        return kinds[kind]._read(data)

    @classmethod
    @abstractmethod
    def _read(cls, data: Mapping[str, Any]) -> AdditiveNoise: ...


class _Scaled(AdditiveNoise):
    """Noise with one parameter, a positive number."""

    parameter: ClassVar[str]

    @property
    def width(self) -> float:
        """The parameter, as a float."""
        return float(getattr(self, self.parameter))

    def __post_init__(self) -> None:
        given = getattr(self, self.parameter)
        number = real_number(given, self.parameter, 0.0, open_low=True, open_high=True)
        object.__setattr__(self, self.parameter, number)

    def to_dict(self) -> dict[str, Any]:
        """Return kind and parameter, ready for JSON."""
        return {"kind": self.kind, self.parameter: to_json(getattr(self, self.parameter))}

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> AdditiveNoise:
        check_keys(data, {"kind", cls.parameter})
        return cls(**{cls.parameter: data[cls.parameter]})


class _Smooth(_Scaled):
    """Noise with a log-concave density, of which ever finer cells tell ever more."""

    @abstractmethod
    def _density(self, z: Array) -> Array: ...

    @abstractmethod
    def _reach(self, tail: float) -> float:
        """Return how far beyond the query's values the bounded cells go, in `width`s."""

    def _kinks(self, places: Array) -> Array:
        """Return where a log-density has no slope; cells end there."""
        return places[:0]

    def _grid(self, places: Array, low: float, high: float) -> Array:
        """Return points of which many lie where the density of a value is."""
        each = int(np.clip(AROUND // len(places) ** 2, 8, 64))
        near = places[:, None] + self.width * np.linspace(-6, 6, each)
        even = np.linspace(low, high, GRID + 1)
        return np.unique(np.clip(np.concatenate([even, near.ravel()]), low, high))

    def cells(self, values: Sequence[Hashable], excess: float) -> Cells:
        """Return cells that are the finer the more of the excess would arise in them."""
        places = np.array([float(v) for v in self.numbers(values)])
        reach = self.width * self._reach(min(TAIL * excess, 0.1))
        low, high = places.min() - reach, places.max() + reach
        if places.min() == places.max():
            return Cells(np.array([-np.inf, np.inf]), np.zeros(1))
        grid = self._grid(places, low, high)
        y, steps = (grid[1:] + grid[:-1]) / 2, np.diff(grid)
        density = np.maximum(self._density(y[None] - places[:, None]), np.finfo(float).tiny)
        tilts = self.tilts(places, y)
        references = (density * tilts).sum(axis=0) / density.sum(axis=0)
        slopes = (tilts - references) / self.scale_of_tilt
        # A cell of width h costs about h^3 times this, so its best width goes with the cube root.
        cost = (density * slopes**2).max(axis=0) / (2 * math.pi**2)
        finest = np.cbrt(np.maximum(cost, cost.max() * 1e-12))
        inner = np.concatenate([[0.0], np.cumsum(finest * steps)])
        # N cells are 1/N times this wide; their costs add up with the square of that.
        widths = inner[-1] / finest
        costs = (density * slopes**2) @ (widths**2 * steps) / (2 * math.pi**2)
        count = min(math.ceil(math.sqrt(costs.max() / excess)), MOST_CELLS - 2)
        edges = np.interp(np.linspace(0, inner[-1], count + 1), inner, grid)
        edges = np.union1d(edges, self._kinks(places))
        while True:
            masses = self.masses(values, np.concatenate([[-np.inf], edges, [np.inf]]))
            middle = (edges[1:] + edges[:-1]) / 2
            tilts = self.tilts(places, middle)
            weights = np.maximum(masses[:, 1:-1], np.finfo(float).tiny)
            references = (weights * tilts).sum(axis=0) / weights.sum(axis=0)
            steps = (tilts - references) * np.diff(edges) / self.scale_of_tilt
            costs = masses[:, 1:-1] * steps**2 / (2 * math.pi**2)
            if costs.sum(axis=1).max() <= ENOUGH * excess or len(edges) > MOST_CELLS - 2:
                break
            # Noise that is small beside the distance of two values: between them the reference
            # jumps, which the widths do not account for.
            most = costs.max(axis=0)
            edges = np.sort(np.concatenate([edges, middle[most > most.max() / 2]]))
        ends = self.tilts(places, np.array([low - 1, high + 1])).mean(axis=0)
        return Cells(
            np.concatenate([[-np.inf], edges, [np.inf]]),
            np.concatenate([ends[:1], references, ends[1:]]),
        )


@dataclass(frozen=True, eq=False)
class Gaussian(_Smooth):
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

    def _reach(self, tail: float) -> float:
        return -float(ndtri(tail / 2))


@dataclass(frozen=True, eq=False)
class Laplace(_Smooth):
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
    An output above all values of the query tells no more than one at the largest of them, so the
    two unbounded cells cost nothing.

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

    def _kinks(self, places: Array) -> Array:
        return places

    def _reach(self, tail: float) -> float:
        return 0.0


class _Stepped(AdditiveNoise):
    """Noise of which some cells tell all that the output does."""

    @property
    def scale_of_tilt(self) -> float:
        """One: there are no tilts."""
        return 1.0

    @abstractmethod
    def _edges(self, values: tuple[Fraction, ...], tail: float) -> list[Fraction]:
        """Return the edges of these cells, in order."""

    def cells(self, values: Sequence[Hashable], excess: float) -> Cells:
        """Return the cells within which the output tells no more; outer ones may be joined."""
        edges = self._edges(self.numbers(values), min(TAIL * excess, 0.1))
        if len(edges) >= MOST_CELLS:
            raise ValidationError(
                f"channel: {type(self).__name__} on these values takes {len(edges) + 1} cells; at "
                f"most {MOST_CELLS} can be looked at"
            )
        ends = np.array([-np.inf, *(float(edge) for edge in edges), np.inf])
        return Cells(ends, np.zeros(len(ends) - 1))


@dataclass(frozen=True, eq=False)
class Uniform(_Scaled, _Stepped):
    """Noise that is uniform between -half_width and half_width.

    Parameters
    ----------
    half_width : float
        Positive, in the unit of the query.

    Raises
    ------
    ValidationError
        A number that is not positive and finite.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.model import Uniform
    >>> from cvxleak.queries import count
    >>> print(record_leakage(Mechanism(count(3), Uniform(2)), 1.4))
    record leakage: 0.3698... to 0.3699... nats (CERTIFIED)
    """

    kind = "uniform"
    parameter = "half_width"
    half_width: float

    def below(self, z: Array) -> Array:
        """Return P(Z < z)."""
        return np.clip(z / (2 * self.width) + 0.5, 0.0, 1.0)

    def _edges(self, values: tuple[Fraction, ...], tail: float) -> list[Fraction]:
        half = fraction(self.half_width)
        return sorted({v + sign * half for v in values for sign in (-1, 1)})


class _Discrete(_Scaled, _Stepped):
    whole = True

    def _between(self, values: tuple[Fraction, ...], reach: int) -> list[Fraction]:
        low, high = int(min(values)) - reach, int(max(values)) + reach
        return [Fraction(2 * k + 1, 2) for k in range(low, min(high, low + MOST_CELLS))]


@dataclass(frozen=True, eq=False)
class DiscreteGaussian(_Discrete):
    """Whole numbers k with probability proportional to exp(-k^2 / 2 sigma^2), on all of them.

    What libraries for differential privacy sample (C. Canonne, G. Kamath, T. Steinke, The discrete
    Gaussian for differential privacy, NeurIPS 2020).

    Parameters
    ----------
    sigma : float
        Positive; the standard deviation is a little less where it is small.

    Raises
    ------
    ValidationError
        A number that is not positive and finite.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.model import DiscreteGaussian
    >>> from cvxleak.queries import count
    >>> print(record_leakage(Mechanism(count(3), DiscreteGaussian(2)), 1.4))
    record leakage: 0.1625... to 0.1625... nats (CERTIFIED)
    """

    kind = "discrete-gaussian"
    parameter = "sigma"
    sigma: float

    def below(self, z: Array) -> Array:
        """Return P(Z < z), z being no whole number."""
        sigma = self.width
        far = math.ceil(40 * sigma) + 1
        k = np.arange(-far, far + 1)
        law = np.exp(-(k**2) / (2 * sigma**2))
        cumulated = np.concatenate([[0.0], np.cumsum(law / law.sum()), [1.0]])
        places = np.clip(np.floor(np.nan_to_num(z, posinf=far, neginf=-far - 1)), -far - 1, far)
        return cumulated[(places + far + 1).astype(int)]

    def _edges(self, values: tuple[Fraction, ...], tail: float) -> list[Fraction]:
        reach = 1 - self.width * float(ndtri(tail / 2))
        return self._between(values, math.ceil(min(reach, MOST_CELLS)))


@dataclass(frozen=True, eq=False)
class DiscreteLaplace(_Discrete):
    """Whole numbers k with probability proportional to exp(-|k| / scale), on all of them.

    The geometric mechanism without truncation; with scale = 1 / epsilon that of a count.

    Parameters
    ----------
    scale : float
        Positive.

    Raises
    ------
    ValidationError
        A number that is not positive and finite.

    Examples
    --------
    Values outside of the query's range can be moved to its ends without loss:

    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import truncated_geometric
    >>> from cvxleak.model import DiscreteLaplace
    >>> from cvxleak.queries import count
    >>> for noise in DiscreteLaplace(2), truncated_geometric(3, epsilon=0.5):
    ...     print(record_leakage(Mechanism(count(3), noise), 1.4))
    record leakage: 0.1290... to 0.1290... nats (CERTIFIED)
    record leakage: 0.1290... to 0.1290... nats (CERTIFIED)
    """

    kind = "discrete-laplace"
    parameter = "scale"
    scale: float

    def below(self, z: Array) -> Array:
        """Return P(Z < z), z being no whole number."""
        k, q = np.floor(z), math.exp(-1 / self.width)
        tail = q ** np.where(k < 0, -k, k + 1) / (1 + q)
        return np.where(k < 0, tail, 1 - tail)

    def _edges(self, values: tuple[Fraction, ...], tail: float) -> list[Fraction]:
        return self._between(values, 0)


@dataclass(frozen=True, eq=False)
class Rounded(_Stepped):
    """f(X) + Z rounded to the nearest multiple of `base`, with continuous noise Z.

    Parameters
    ----------
    noise : Gaussian, Laplace or Uniform
    base : float
        Positive.

    Raises
    ------
    ValidationError
        Noise of another kind, or a base that is not positive and finite.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.model import Gaussian, Rounded
    >>> from cvxleak.queries import count
    >>> print(record_leakage(Mechanism(count(3), Rounded(Gaussian(sigma=1), base=2)), 1.4))
    record leakage: 0.3481... to 0.3481... nats (CERTIFIED)
    """

    kind = "rounded"
    noise: Gaussian | Laplace | Uniform
    base: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Gaussian | Laplace | Uniform):
            raise ValidationError(
                f"noise: expected Gaussian, Laplace or Uniform noise, found {short(self.noise)}"
            )
        base = real_number(self.base, "base", 0.0, open_low=True, open_high=True)
        object.__setattr__(self, "base", base)

    def below(self, z: Array) -> Array:
        """Return P(Z < z) of the noise before rounding."""
        return self.noise.below(z)

    def _edges(self, values: tuple[Fraction, ...], tail: float) -> list[Fraction]:
        inner = self.noise
        reach = Fraction(inner.width * inner._reach(tail)) if isinstance(inner, _Smooth) else 0
        if isinstance(inner, Uniform):
            reach = fraction(inner.half_width)
        base, half = fraction(self.base), Fraction(1, 2)
        # The first edge is no higher than all that has to be told apart, the last no lower.
        first = math.floor((min(values) - reach) / base - half)
        last = math.ceil((max(values) + reach) / base - half)
        return [base * (k + half) for k in range(first, min(last, first + MOST_CELLS) + 1)]

    def to_dict(self) -> dict[str, Any]:
        """Return kind, noise and base, ready for JSON."""
        return {"kind": self.kind, "noise": self.noise.to_dict(), "base": to_json(self.base)}

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> AdditiveNoise:
        check_keys(data, {"kind", "noise", "base"})
        noise: Any = AdditiveNoise.from_dict(data["noise"])
        return cls(noise, data["base"])
