"""[mechanism]: the noise, and the channel that it is."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from cvxleak import mechanisms, model, tables
from cvxleak.cli.spec.section import Number, Section, is_bare, numbers
from cvxleak.core.errors import ValidationError
from cvxleak.core.tables import numbers_from_text, read_cells, read_matrix, read_table
from cvxleak.core.validation import Array
from cvxleak.model import AdditiveNoise, Channel, ChannelSet, Distortion, Prior, Query
from cvxleak.tables import CountNoise

__all__ = ["Mechanism", "Noise", "Setting"]


@dataclass(frozen=True)
class Setting:
    """What noise is made for.

    Attributes
    ----------
    query : Query
    prior : Prior or None
        The distribution of [prior].
    file : callable
        Finds a file that the spec names.
    """

    query: Query
    prior: Prior | None
    file: Callable[[str], Path]

    @property
    def values(self) -> tuple[Hashable, ...]:
        """The values of the query."""
        return self.query.values

    @property
    def numbers(self) -> list[float]:
        """The values, if they are numbers."""
        return numbers(self.values)

    @property
    def largest(self) -> int:
        """The largest value, if all are counts."""
        for value in self.values:
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValidationError(f"values that are counts are needed; found {value!r}")
        return max(self.values)  # pyright: ignore[reportArgumentType, reportReturnType, reportCallIssue]

    def labeled(self, channel: Channel) -> Channel:
        """Return a channel from the values of the query to the same labels."""
        if channel.shape[0] != len(self.values):
            raise ValidationError(
                f"it has {channel.shape[0]} inputs; the query has {len(self.values)} values"
            )
        return Channel(channel.matrix, self.values, self.values)


class Noise(Section):
    """What [mechanism] has in common."""

    @abstractmethod
    def channel(self, to: Setting) -> Channel | ChannelSet | AdditiveNoise | Array:
        """Return what the query's value goes through: a channel or its rows, a set, or noise."""

    def of_counts(self, file: Callable[[str], Path]) -> CountNoise | AdditiveNoise:
        """Return what each number of a table goes through.

        Raises
        ------
        ValidationError
            It is no noise for counts.
        """
        raise ValidationError("kind: is no noise for the numbers of a table")


class RandomizedResponse(Noise):
    """The true value with the weight e^epsilon, each other value with the weight 1 (k-RR)."""

    kind: Literal["randomized_response"]
    epsilon: Number

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return to.labeled(mechanisms.randomized_response(len(to.values), self.epsilon))


class BinarySymmetric(Noise):
    """A bit that is flipped with probability `flip`; for flip = 1 - p, Warner's design."""

    kind: Literal["binary_symmetric"]
    flip: Number

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return to.labeled(mechanisms.binary_symmetric(self.flip))


class GeneralizedSymmetric(Noise):
    """A wrong value with probability `flip`, all wrong ones alike."""

    kind: Literal["generalized_symmetric"]
    flip: Number

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return to.labeled(mechanisms.generalized_symmetric(len(to.values), self.flip))


class LaplaceThreshold(Noise):
    """A bit plus Laplace noise, thresholded at 1/2."""

    kind: Literal["laplace_threshold"]
    epsilon: Number

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return to.labeled(mechanisms.laplace_threshold(self.epsilon))


class DiscretizedLaplace(Noise):
    """Laplace noise; the nearest of `outputs` (the query's values) is released."""

    kind: Literal["discretized_laplace"]
    epsilon: Number
    sensitivity: Number | None = None
    outputs: list[Number] | None = None

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        width = to.query.sensitivity if self.sensitivity is None else self.sensitivity
        outputs = self.outputs or sorted(to.numbers)
        return mechanisms.discretized_laplace(outputs, self.epsilon, width, to.numbers)


class DiscretizedGaussian(Noise):
    """Gaussian noise; the nearest of `outputs` (the query's values) is released."""

    kind: Literal["discretized_gaussian"]
    variance: Number
    outputs: list[Number] | None = None

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        outputs = self.outputs or sorted(to.numbers)
        return mechanisms.discretized_gaussian(outputs, self.variance, to.numbers)


class Exponential(Noise):
    """The exponential mechanism with the score -|value - output| or with a CSV file of scores."""

    kind: Literal["exponential"]
    epsilon: Number
    sensitivity: Number | None = None
    scores: str | None = None

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        width = self.sensitivity
        if self.scores is None:
            scores = -Distortion.absolute(to.numbers).matrix
            width = to.query.sensitivity if width is None else width
            return mechanisms.exponential(scores, self.epsilon, width, to.values, to.values)
        if width is None:
            raise ValidationError("sensitivity: is missing; scores from a file need it")
        path = to.file(self.scores)
        rows = [numbers_from_text(cells, line, path) for line, cells in read_table(path)]
        if len(rows) != len(to.values):
            raise ValidationError(
                f"scores: found {len(rows)} rows; the query has {len(to.values)} values"
            )
        return mechanisms.exponential(rows, self.epsilon, width, to.values)


class RankExponential(Noise):
    """The exponential channel by the ranks of the distances |value - output|."""

    kind: Literal["rank_exponential"]
    scale: Number

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return mechanisms.rank_exponential(Distortion.absolute(to.numbers), self.scale)


class TruncatedGeometric(Noise):
    """Two-sided geometric noise on a count, clamped to its range."""

    kind: Literal["truncated_geometric"]
    epsilon: Number

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return mechanisms.truncated_geometric(to.largest, self.epsilon)


class RandomRounding(Noise):
    """Random rounding of a count to a multiple of `base`, unbiased without `up`."""

    kind: Literal["random_rounding"]
    base: int
    up: list[Number] | None = None

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return mechanisms.random_rounding(to.largest, self.base, self.up)

    def of_counts(self, file: Callable[[str], Path]) -> CountNoise:
        """Return the rounding."""
        return tables.RandomRounding(self.base, None if self.up is None else tuple(self.up))


class OfCounts(Noise):
    """What noise that is made for the counts of a table has in common."""

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        noise = self.of_counts(to.file)
        assert isinstance(noise, CountNoise)
        return noise.channel(to.largest)


class RoundToNearest(OfCounts):
    """A count rounded to the nearest multiple of `base`."""

    kind: Literal["round_to_nearest"]
    base: int
    halves: Literal["up", "even"] = "up"

    def of_counts(self, file: Callable[[str], Path]) -> CountNoise:
        """Return the rounding."""
        return tables.RoundToNearest(self.base, self.halves)


class SuppressBelow(OfCounts):
    """A count that is suppressed below `threshold`, or has a replacement there."""

    kind: Literal["suppress_below"]
    threshold: int
    replacement: int | None = None
    zeros: bool = True

    def of_counts(self, file: Callable[[str], Path]) -> CountNoise:
        """Return the suppression."""
        return tables.SuppressBelow(self.threshold, self.replacement, self.zeros)


class Ptable(Noise):
    """A statistical office's perturbation table in a CSV file."""

    kind: Literal["ptable"]
    file: str
    cycle: int | None = None
    summed_keys: bool = True

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return model.Mechanism.from_ptable(to.file(self.file), to.query, self.cycle).channel

    def of_counts(self, file: Callable[[str], Path]) -> CountNoise:
        """Return the table with its cell keys."""
        return tables.PerturbationTable(file(self.file), self.cycle, self.summed_keys)


class PmlExtremal(Noise):
    """The mechanism with pointwise maximal leakage epsilon for every output, for [prior]."""

    kind: Literal["pml_extremal"]
    epsilon: Number

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        if to.prior is None:
            raise ValidationError("pml_extremal needs a distribution: [prior] is missing")
        return mechanisms.pml_extremal(to.prior, self.epsilon)


class Identity(Noise):
    """The query's value as it is."""

    kind: Literal["identity"]

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        return to.labeled(mechanisms.identity(len(to.values)))


class Constant(Noise):
    """The same output whatever the data."""

    kind: Literal["constant"]

    def channel(self, to: Setting) -> Channel:
        """Return the channel."""
        constant = mechanisms.constant(len(to.values), [1.0])
        return Channel(constant.matrix, to.values, constant.outputs)


class Matrix(Noise):
    """A CSV file of probabilities: one row for each value of the query.

    With `digits` they are rounded to so many decimals, or each to those that are printed, and what
    is said holds for all channels of which they may be the rounding.
    """

    kind: Literal["matrix"]
    file: str
    digits: int | Literal["printed"] | None = None

    def channel(self, to: Setting) -> Channel | ChannelSet | Array:
        """Return the channel, its rows if the file has no labels, or the set."""
        path = to.file(self.file)
        if self.digits is None:
            channel = Channel.from_csv(path)
            return channel.matrix if is_bare(path) else channel
        cells, inputs, outputs = read_cells(path, ChannelSet.from_printed)
        digits = None if self.digits == "printed" else self.digits
        return ChannelSet.from_printed(cells, digits, inputs or to.values, outputs)


class Intervals(Noise):
    """Two CSV files, of the least and of the largest probabilities."""

    kind: Literal["intervals"]
    lower: str
    upper: str

    def channel(self, to: Setting) -> ChannelSet:
        """Return the set."""
        lower, inputs, outputs = read_matrix(to.file(self.lower), Channel)
        upper, *labels = read_matrix(to.file(self.upper), Channel)
        if labels != [inputs, outputs]:
            raise ValidationError(f"upper: its labels are not those of {self.lower!r}")
        return ChannelSet(lower, upper, inputs or to.values, outputs)


class Additive(Noise):
    """What noise that is added to the query's value has in common."""

    @abstractmethod
    def noise(self) -> AdditiveNoise:
        """Return the noise."""

    def channel(self, to: Setting) -> AdditiveNoise:
        """Return the noise."""
        return self.noise()

    def of_counts(self, file: Callable[[str], Path]) -> AdditiveNoise:
        """Return the noise."""
        return self.noise()


class Smooth(Additive):
    """Noise in real numbers."""

    base: Number | None = None

    def channel(self, to: Setting) -> AdditiveNoise:
        """Return the noise, rounded if that is asked for."""
        return self.of_counts(to.file)

    def of_counts(self, file: Callable[[str], Path]) -> AdditiveNoise:
        """Return the noise, rounded if that is asked for."""
        noise: Any = self.noise()
        return noise if self.base is None else model.Rounded(noise, self.base)


class Gaussian(Smooth):
    """The value plus Gaussian noise, in real numbers, or to multiples of `base`."""

    kind: Literal["gaussian"]
    sigma: Number

    def noise(self) -> AdditiveNoise:
        """Return the noise."""
        return model.Gaussian(self.sigma)


class Laplace(Smooth):
    """The value plus Laplace noise, in real numbers, or to multiples of `base`."""

    kind: Literal["laplace"]
    scale: Number

    def noise(self) -> AdditiveNoise:
        """Return the noise."""
        return model.Laplace(self.scale)


class Uniform(Smooth):
    """The value plus uniform noise, in real numbers, or to multiples of `base`."""

    kind: Literal["uniform"]
    half_width: Number

    def noise(self) -> AdditiveNoise:
        """Return the noise."""
        return model.Uniform(self.half_width)


class DiscreteGaussian(Additive):
    """The value plus discrete Gaussian noise, in whole numbers, not truncated."""

    kind: Literal["discrete_gaussian"]
    sigma: Number

    def noise(self) -> AdditiveNoise:
        """Return the noise."""
        return model.DiscreteGaussian(self.sigma)


class DiscreteLaplace(Additive):
    """The value plus discrete Laplace (geometric) noise, in whole numbers, not truncated."""

    kind: Literal["discrete_laplace"]
    scale: Number

    def noise(self) -> AdditiveNoise:
        """Return the noise."""
        return model.DiscreteLaplace(self.scale)


CountStep = RoundToNearest | SuppressBelow | RandomRounding | Ptable


class Steps(OfCounts):
    """Noise of counts, one after the other."""

    kind: Literal["steps"]
    steps: list[Annotated[CountStep, Field(discriminator="kind")]] = Field(min_length=1)

    def of_counts(self, file: Callable[[str], Path]) -> CountNoise:
        """Return the noise."""
        first, *more = (step.of_counts(file) for step in self.steps)
        return functools.reduce(lambda noise, step: noise.then(step), more, first)


Mechanism = (
    RandomizedResponse
    | BinarySymmetric
    | GeneralizedSymmetric
    | LaplaceThreshold
    | DiscretizedLaplace
    | DiscretizedGaussian
    | Exponential
    | RankExponential
    | TruncatedGeometric
    | RoundToNearest
    | SuppressBelow
    | RandomRounding
    | Ptable
    | Steps
    | PmlExtremal
    | Identity
    | Constant
    | Matrix
    | Intervals
    | Gaussian
    | Laplace
    | Uniform
    | DiscreteGaussian
    | DiscreteLaplace
)
