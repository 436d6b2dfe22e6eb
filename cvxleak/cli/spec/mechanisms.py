"""[mechanism]: the noise."""

from __future__ import annotations

from typing import Literal

from cvxleak.cli.spec.section import Number, Section

__all__ = [
    "BinarySymmetric",
    "Constant",
    "DiscretizedGaussian",
    "DiscretizedLaplace",
    "Exponential",
    "GeneralizedSymmetric",
    "Identity",
    "LaplaceThreshold",
    "Matrix",
    "Noise",
    "PmlExtremal",
    "RandomRounding",
    "RandomizedResponse",
    "RankExponential",
    "TruncatedGeometric",
]


class RandomizedResponse(Section):
    """The true value with the weight e^epsilon, each other value with the weight 1 (k-RR)."""

    kind: Literal["randomized_response"]
    epsilon: Number


class BinarySymmetric(Section):
    """A bit that is flipped with probability `flip`; for flip = 1 - p, Warner's design."""

    kind: Literal["binary_symmetric"]
    flip: Number


class GeneralizedSymmetric(Section):
    """A wrong value with probability `flip`, all wrong ones alike."""

    kind: Literal["generalized_symmetric"]
    flip: Number


class LaplaceThreshold(Section):
    """A bit plus Laplace noise, thresholded at 1/2."""

    kind: Literal["laplace_threshold"]
    epsilon: Number


class DiscretizedLaplace(Section):
    """Laplace noise; the nearest of `outputs` (the query's values) is released."""

    kind: Literal["discretized_laplace"]
    epsilon: Number
    sensitivity: Number | None = None
    outputs: list[Number] | None = None


class DiscretizedGaussian(Section):
    """Gaussian noise; the nearest of `outputs` (the query's values) is released."""

    kind: Literal["discretized_gaussian"]
    variance: Number
    outputs: list[Number] | None = None


class Exponential(Section):
    """The exponential mechanism with the score -|value - output| or with a CSV file of scores."""

    kind: Literal["exponential"]
    epsilon: Number
    sensitivity: Number | None = None
    scores: str | None = None


class RankExponential(Section):
    """The exponential channel by the ranks of the distances |value - output|."""

    kind: Literal["rank_exponential"]
    scale: Number


class TruncatedGeometric(Section):
    """Two-sided geometric noise on a count, clamped to its range."""

    kind: Literal["truncated_geometric"]
    epsilon: Number


class RandomRounding(Section):
    """Unbiased random rounding of a count to a multiple of `base`."""

    kind: Literal["random_rounding"]
    base: int


class PmlExtremal(Section):
    """The mechanism with pointwise maximal leakage epsilon for every output, for [prior]."""

    kind: Literal["pml_extremal"]
    epsilon: Number


class Identity(Section):
    """The query's value as it is."""

    kind: Literal["identity"]


class Constant(Section):
    """The same output whatever the data."""

    kind: Literal["constant"]


class Matrix(Section):
    """A CSV file of probabilities: one row for each value of the query."""

    kind: Literal["matrix"]
    file: str


Noise = (
    RandomizedResponse
    | BinarySymmetric
    | GeneralizedSymmetric
    | LaplaceThreshold
    | DiscretizedLaplace
    | DiscretizedGaussian
    | Exponential
    | RankExponential
    | TruncatedGeometric
    | RandomRounding
    | PmlExtremal
    | Identity
    | Constant
    | Matrix
)
