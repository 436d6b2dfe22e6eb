"""Noise for which finitely many cells lose nothing: uniform, integer-valued, rounded."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtri

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction, to_json
from cvxleak.core.validation import Array, real_number, short
from cvxleak.core.value import check_keys
from cvxleak.model.noise.additive import FAR, TAIL, AdditiveNoise, Scaled, around
from cvxleak.model.noise.real_output import MOST_CELLS, Cells, RealOutput
from cvxleak.model.noise.smooth import Gaussian, Laplace

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Rounded", "Uniform"]

HALFWAY = Fraction(1, 10**9)
"""Part of the base by which an edge may miss the middle between two of its multiples."""

LARGEST_TAIL = 0.1
"""Most probability of the outputs that are joined because they are far from all values."""

WIDEST = 10_000
"""Largest sigma of discrete Gaussian noise, whose distribution is summed up term by term."""


class Stepped(AdditiveNoise):
    """Noise of which some cells tell all that the output does."""

    @property
    def scale_of_tilt(self) -> float:
        """One: there are no tilts."""
        return 1.0

    @abstractmethod
    def _edges(self, numbers: tuple[Fraction, ...], tail: float) -> list[float]:
        """Return the edges of these cells, in order; outer ones of less than `tail` are joined."""

    def cells(self, values: Sequence[Hashable], excess: float, most: int = MOST_CELLS) -> Cells:
        """Return the cells within which the output tells no more, joined if they are too many."""
        inner = self._edges(self.numbers(values), min(TAIL * excess, LARGEST_TAIL))
        if len(inner) >= most:
            inner = inner[:: math.ceil(len(inner) / (most - 1))]
        edges = np.array([-np.inf, *inner, np.inf])
        return Cells(self.masses(values, edges), edges, np.zeros(len(edges) - 1))


class Lattice(Stepped):
    """Noise whose outputs are the multiples of a base."""

    @property
    @abstractmethod
    def limiting(self) -> str:
        """The parameter that decides how many outputs there are."""

    @abstractmethod
    def _reaches(self, tail: float) -> tuple[Fraction, Fraction]:
        """Return how far beyond all values, and how far between two, outputs are told apart."""

    def _edges(self, numbers: tuple[Fraction, ...], tail: float) -> list[float]:
        half = self.grain / 2
        runs = self._runs_within(numbers, tail)
        return [float(half * (2 * k + 1)) for low, high in runs for k in range(low, high)]

    def of_query(self, values: Sequence[Hashable]) -> RealOutput:
        """Return the noise, once it is seen that its outputs can be told apart.

        Raises
        ------
        ValidationError
            As `standard`, and more outputs beside these values than cells can be looked at.
        """
        standard = self.standard(values)
        assert isinstance(standard.noise, Lattice)
        standard.noise._runs_within(standard.places, LARGEST_TAIL)
        return self

    def _runs_within(self, numbers: Sequence[Fraction], tail: float) -> list[tuple[int, int]]:
        """Return ranges of k for the edges base (k + 1/2): as many as are allowed."""
        base = self.grain
        places = sorted({number / base for number in numbers})
        runs = self._runs(places, base, tail)
        while _length(runs) >= MOST_CELLS and tail < LARGEST_TAIL:
            tail = min(10 * tail, LARGEST_TAIL)
            runs = self._runs(places, base, tail)
        if _length(runs) >= MOST_CELLS:
            raise ValidationError(
                f"{self.limiting}: on these values {short(_length(runs) + 1)} outputs have to be "
                f"told apart; at most {MOST_CELLS} can be"
            )
        return runs

    def _runs(self, places: list[Fraction], base: Fraction, tail: float) -> list[tuple[int, int]]:
        """Return ranges of k for the edges base (k + 1/2) between outputs to be told apart."""
        beyond, between = (reach / base for reach in self._reaches(tail))
        # The first edge is no higher than all that has to be told apart, the last no lower.
        whole = _range(places[0] - beyond, places[-1] + beyond)
        if whole[1] - whole[0] < MOST_CELLS:
            return [whole]
        found: list[tuple[int, int]] = []  # what is far from all values is one cell
        for place in places:
            low, high = _range(place - between, place + between)
            low, high = max(low, whole[0]), min(high, whole[1])
            if found and low <= found[-1][1]:
                found[-1] = (found[-1][0], max(high, found[-1][1]))
            else:
                found.append((low, high))
        return found


def _range(low: Fraction, high: Fraction) -> tuple[int, int]:
    """Return the range of k with k + 1/2 from at most `low` to at least `high`."""
    half = Fraction(1, 2)
    return math.floor(low - half), math.ceil(high - half) + 1


def _length(runs: list[tuple[int, int]]) -> int:
    return sum(max(high - low, 0) for low, high in runs)


@dataclass(frozen=True, eq=False)
class Uniform(Scaled, Stepped):
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

    def _edges(self, numbers: tuple[Fraction, ...], tail: float) -> list[float]:
        half = self.grain
        ends = {v + sign * half for v in numbers for sign in (-1, 1)}
        return sorted({edge for end in ends for edge in around(end)})

    def _in_unit(self, numbers: Sequence[Fraction]) -> tuple[AdditiveNoise, Fraction, Fraction]:
        low, half = min(numbers), self.grain
        lengths = [half, *(v - low for v in numbers)]
        below = math.lcm(*(length.denominator for length in lengths))
        unit = Fraction(math.gcd(*(int(length * below) for length in lengths)), below)
        if half + max(lengths) > FAR * unit:  # floats would not be exact
            unit = half
        width: Any = half / unit
        return Uniform(width), low, unit


class Discrete(Scaled, Lattice):
    """Noise in whole numbers."""

    whole = True

    @property
    def limiting(self) -> str:
        """The parameter."""
        return self.parameter

    @property
    def grain(self) -> Fraction:
        """One."""
        return Fraction(1)

    def _in_unit(self, numbers: Sequence[Fraction]) -> tuple[AdditiveNoise, Fraction, Fraction]:
        return self, min(numbers), Fraction(1)


@dataclass(frozen=True, eq=False)
class DiscreteGaussian(Discrete):
    """Integer noise k with probability proportional to exp(-k^2 / 2 sigma^2).

    The distribution that libraries for differential privacy sample (C. Canonne, G. Kamath, T.
    Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020).

    Parameters
    ----------
    sigma : float
        Positive, at most 10,000. If it is small, the standard deviation is slightly less.

    Raises
    ------
    ValidationError
        A number that is not positive, or above 10,000 (probabilities are summed term by term).

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
    most = WIDEST
    sigma: float

    def below(self, z: Array) -> Array:
        """Return P(Z < z), z being no whole number."""
        far = math.ceil(40 * self.width) + 1
        k = np.arange(-far, far + 1)
        with np.errstate(over="ignore"):
            law = np.exp(-((k / self.width) ** 2) / 2)
        cumulated = np.concatenate([[0.0], np.cumsum(law / law.sum()), [1.0]])
        places = np.clip(np.floor(np.nan_to_num(z, posinf=far, neginf=-far - 1)), -far - 1, far)
        return cumulated[(places + far + 1).astype(int)]

    def _reaches(self, tail: float) -> tuple[Fraction, Fraction]:
        reach = Fraction(-self.width * float(ndtri(tail / 2)))
        return reach, reach


@dataclass(frozen=True, eq=False)
class DiscreteLaplace(Discrete):
    """Integer noise k with probability proportional to exp(-|k| / scale).

    The geometric mechanism without truncation; for a count with privacy epsilon, scale = 1 /
    epsilon.

    Parameters
    ----------
    scale : float
        Positive, at most 1e15.

    Raises
    ------
    ValidationError
        A number that is not positive, or above 1e15.

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
    most = FAR
    scale: float

    def below(self, z: Array) -> Array:
        """Return P(Z < z), z being no whole number."""
        k, q = np.floor(z), math.exp(-1 / self.width)
        tail = q ** np.where(k < 0, -k, k + 1) / (1 + q)
        return np.where(k < 0, tail, 1 - tail)

    def _reaches(self, tail: float) -> tuple[Fraction, Fraction]:
        # All from the largest value on is one cell, and all up to the least.
        return Fraction(-1), Fraction(-self.width * math.log(tail))


@dataclass(frozen=True, eq=False)
class Rounded(Lattice):
    """f(X) + Z rounded to the nearest multiple of `base`, with continuous noise Z.

    Parameters
    ----------
    noise : Gaussian, Laplace or Uniform
    base : float
        Positive.

    Raises
    ------
    ValidationError
        Noise of a different kind, or a base that is not positive and finite.

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

    @property
    def limiting(self) -> str:
        """The base."""
        return "base"

    @property
    def grain(self) -> Fraction:
        """The base."""
        return fraction(self.base)

    def _reaches(self, tail: float) -> tuple[Fraction, Fraction]:
        inner = self.noise
        if isinstance(inner, Uniform):
            return inner.grain, inner.grain
        return Fraction(inner.reach(tail)), Fraction(inner.reach(tail, between=True))

    def _in_unit(self, numbers: Sequence[Fraction]) -> tuple[AdditiveNoise, Fraction, Fraction]:
        base, name = self.grain, self.noise.parameter
        width: Any = self.noise.grain / base
        if not Fraction(1, FAR) <= width <= FAR:
            raise ValidationError(
                f"base: found {self.base!r} beside {self.noise!r}; either may be at most {FAR:.0e} "
                "times the other"
            )
        return Rounded(type(self.noise)(**{name: width}), 1.0), min(numbers) // base * base, base

    def _edge(self, edge: float) -> Fraction:
        base = self.grain
        place = fraction(edge) / base - Fraction(1, 2)
        if abs(place - round(place)) > HALFWAY:
            raise ValidationError(
                f"edges: found {short(edge)}; an edge is halfway between two multiples of {base}"
            )
        return (round(place) + Fraction(1, 2)) * base

    def to_dict(self) -> dict[str, Any]:
        """Return kind, noise and base, ready for JSON."""
        return {"kind": self.kind, "noise": self.noise.to_dict(), "base": to_json(self.base)}

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> AdditiveNoise:
        check_keys(data, {"kind", "noise", "base"})
        noise: Any = RealOutput.from_dict(data["noise"])
        return cls(noise, data["base"])
