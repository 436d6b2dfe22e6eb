"""`AdditiveNoise`: the base class of noise that is added to a number."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction, to_json
from cvxleak.core.validation import Array, in_order, real_number, short
from cvxleak.core.value import check_keys
from cvxleak.model.channel import Channel
from cvxleak.model.noise.real_output import MOST_CELLS, Cells, RealOutput

__all__ = [
    "TAIL",
    "AdditiveNoise",
    "Scaled",
    "Standard",
    "around",
]

TAIL = 0.02
"""Share of the excess that the two unbounded cells may have."""

FAR = 10**15
"""How often the width of the noise may go into the range of the values, and they into it: floats
tell so much apart."""


class Standard(NamedTuple):
    """The same output in the noise's own unit: y stands for (y - origin) / unit.

    Attributes
    ----------
    noise : AdditiveNoise
        The noise in that unit.
    places : tuple of Fraction
        The values of the query in that unit.
    origin, unit : Fraction
    """

    noise: AdditiveNoise
    places: tuple[Fraction, ...]
    origin: Fraction
    unit: Fraction

    def cells(self, excess: float, most: int) -> Cells:
        """Return at most so many cells, in this unit, whose insides tell about `excess` nats."""
        return self.noise.cells(self.places, excess, most)


@dataclass(frozen=True, eq=False)
class AdditiveNoise(RealOutput):
    """Noise Z that is added to the value of a query; each subclass is a distribution.

    Used in place of a channel, ``Mechanism(query, noise)``, it means the real-valued output f(X) +
    Z, which has no finite matrix of probabilities. An audit partitions the output into cells. The
    leakage of the cell is a lower bound on that of the output (data processing); the upper bound
    adds a bound on the leakage of the position within the cell. The query's values must be numbers.

    The kinds are `Gaussian`, `Laplace`, `Uniform`, `DiscreteGaussian` and `DiscreteLaplace`, and
    `Rounded` for the first three. None is clamped to a range. For clamped noise use a channel:
    `channel` with the ends of the range as edges, or one of `cvxleak.mechanisms`.

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

    coarser = "noise.channel(query.values, edges)"
    whole: ClassVar[bool] = False
    """Whether the noise, and so the query, is in whole numbers."""

    @property
    def described(self) -> str:
        """What the output is, in words."""
        return f"a number with {self.kind} noise"

    @property
    @abstractmethod
    def scale_of_tilt(self) -> float:
        """Number by which a tilt is divided to get a slope of the log-density."""

    @abstractmethod
    def below(self, z: Array) -> Array:
        """Return P(Z < z) where z is no value of discrete noise."""

    @abstractmethod
    def cells(self, values: Sequence[Hashable], excess: float, most: int = MOST_CELLS) -> Cells:
        """Return cells in which the place of an output tells less than about `excess` nats.

        Parameters
        ----------
        values : sequence
            The values of the query.
        excess : float
            Nats; of cells that cannot be refined, like those of noise in whole numbers, and of more
            than `most` cells, it may be more.
        most : int
            Most cells.
        """

    @property
    @abstractmethod
    def grain(self) -> Fraction:
        """The noise's own unit: its parameter, the base of rounded noise, 1 in whole numbers."""

    @abstractmethod
    def _in_unit(self, numbers: Sequence[Fraction]) -> tuple[AdditiveNoise, Fraction, Fraction]:
        """Return the noise in a unit that is good for these values, with origin and unit."""

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
        return tuple(self._number(value) for value in values)

    def _number(self, value: Hashable) -> Fraction:
        if isinstance(value, Fraction):
            number = value
        else:
            try:
                number = fraction(real_number(value, "query", open_low=True, open_high=True))
            except ValidationError as error:
                hint = f", say {value:d}" if isinstance(value, bool) else ""
                raise ValidationError(
                    f"query: found the value {short(value)}; noise is added to numbers{hint}"
                ) from error
        if self.whole and number.denominator != 1:
            raise ValidationError(
                f"query: found the value {short(value)}; {type(self).__name__} is noise in "
                "whole numbers"
            )
        return number

    def standard(self, values: Sequence[Hashable]) -> Standard:
        """Return the output in the noise's own unit, which tells the same.

        The least value is at 0; of rounded noise, the largest multiple of the base that is not
        above it. The unit is `grain`, but of uniform noise the largest of which all ends of
        supports are multiples.

        Raises
        ------
        ValidationError
            As `numbers`, and values so close together or far apart that floats do not tell.

        Examples
        --------
        >>> from cvxleak.model import Gaussian
        >>> noise, places, origin, unit = Gaussian(sigma=0.5).standard([7, 8])
        >>> print(noise, *places, origin, unit)
        Gaussian(sigma=1.0) 0 2 7 1/2
        """
        numbers = self.numbers(values)
        span, grain = max(numbers) - min(numbers), self.grain
        if span > FAR * grain or 0 < FAR * span < grain:
            raise ValidationError(
                f"query: found values {_size(span)} apart; beside {self!r} they may be from "
                f"{_size(grain / FAR)} to {_size(grain * FAR)} apart"
            )
        noise, origin, unit = self._in_unit(numbers)
        return Standard(noise, tuple((v - origin) / unit for v in numbers), origin, unit)

    def channel(self, values: Sequence[Hashable], edges: Sequence[float] | Array) -> Channel:
        """Return the channel to the cell of f(X) + Z, a coarser output that leaks no more.

        Parameters
        ----------
        values : sequence
            The values of the query.
        edges : sequence of float
            Increasing. The first and the last cell are unbounded, whether -inf and inf are given or
            not. No edge may be a possible output: for integer noise no edge is an integer; for
            rounded noise the edges lie halfway between two multiples of the base (within 1e-9).

        Raises
        ------
        ValidationError
            Edges that do not increase or are possible outputs, or a value that is not a number.

        Examples
        --------
        >>> from cvxleak.model import Gaussian
        >>> Gaussian(sigma=2).channel([0, 1], [0.5])
        Channel(2 inputs [0, 1] -> 2 outputs ['(-inf, 0.5)', '(0.5, inf)'])
        """
        noise, places, origin, unit = self.standard(values)
        given = [real_number(edge, "edges") for edge in in_order(edges, "edges")]
        inner = [self._edge(edge) for edge in given if math.isfinite(edge)]
        shown = [-math.inf, *map(float, inner), math.inf]
        ends = [-math.inf, *((e - origin) / unit for e in inner), math.inf]
        if any(high <= low for low, high in pairwise(given)) or any(
            high <= low for low, high in pairwise(ends)
        ):
            raise ValidationError("edges: expected increasing numbers")
        labels: list[Any] = [f"({low:.12g}, {high:.12g})" for low, high in pairwise(shown)]
        if len(set(labels)) < len(labels):
            labels = list(range(len(labels)))
        return Channel(noise.masses(places, np.array(ends, dtype=float)), values, labels)

    def _edge(self, edge: float) -> Fraction:
        """Return an edge between two outputs, exactly."""
        exact = fraction(edge)
        if self.whole and exact.denominator == 1:
            raise ValidationError(
                f"edges: found {short(edge)}, an output; an edge is between whole numbers"
            )
        return exact

    def masses(self, values: Sequence[Hashable], edges: Array) -> Array:
        """Return P(f + Z in cell) for each value f, shape (values, cells), in floats.

        The edges are in order, from -inf to inf.
        """
        places, missed = _floats(self.numbers(values))
        written, rounded = _floats([fraction(edge) for edge in edges[1:-1].tolist()])
        # What floats leave of edges and places counts where both are large and near to each other.
        z = np.full((len(places), len(edges)), np.inf)
        z[:, 0] = -np.inf
        z[:, 1:-1] = (written - places[:, None]) + (rounded - missed[:, None])
        low, high = z[:, :-1], z[:, 1:]
        # The distribution is symmetric: on the right, what is above is known to more digits.
        right = low > -high
        found = np.where(
            right, self.below(-low) - self.below(-high), self.below(high) - self.below(low)
        )
        return np.maximum(found, 0.0) / found.sum(axis=1, keepdims=True)


class Scaled(AdditiveNoise):
    """Noise with one parameter, a positive number."""

    parameter: ClassVar[str]

    most: ClassVar[float] = math.inf
    """The parameter's largest value."""

    @property
    def width(self) -> float:
        """The parameter, as a float."""
        return float(getattr(self, self.parameter))

    def __post_init__(self) -> None:
        given, most = getattr(self, self.parameter), self.most
        number = real_number(
            given, self.parameter, 0.0, most, open_low=True, open_high=math.isinf(most)
        )
        object.__setattr__(self, self.parameter, number)

    @property
    def grain(self) -> Fraction:
        """The parameter."""
        return fraction(getattr(self, self.parameter))

    def _in_unit(self, numbers: Sequence[Fraction]) -> tuple[AdditiveNoise, Fraction, Fraction]:
        return type(self)(**{self.parameter: 1.0}), min(numbers), self.grain

    def to_dict(self) -> dict[str, Any]:
        """Return kind and parameter, ready for JSON."""
        return {"kind": self.kind, self.parameter: to_json(getattr(self, self.parameter))}

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> AdditiveNoise:
        check_keys(data, {"kind", cls.parameter})
        return cls(**{cls.parameter: data[cls.parameter]})


def around(number: Fraction) -> list[float]:
    """Return a number as a float, or the two next to it if no float is it as written.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cvxleak.model.noise.additive import around
    >>> around(Fraction(1, 2)), around(Fraction(1, 3))
    ([0.5], [0.3333333333333333, 0.33333333333333337])
    """
    near = float(number)
    if fraction(near) == number:
        return [near]
    toward = math.inf if fraction(near) < number else -math.inf
    return sorted([near, math.nextafter(near, toward)])


def _floats(numbers: Sequence[Fraction]) -> tuple[Array, Array]:
    """Return numbers as floats, and what is left of them."""
    near = [float(number) for number in numbers]
    left = [float(number - Fraction(x)) for number, x in zip(numbers, near, strict=True)]
    return np.array(near), np.array(left)


def _size(number: Fraction) -> str:
    """Return a number's text, also where it is no float."""
    if 10**-300 < number < 10**300:
        return f"{float(number):.6g}"
    digits = math.log10(number.numerator) - math.log10(number.denominator)
    return f"about 10^{digits:.0f}"
