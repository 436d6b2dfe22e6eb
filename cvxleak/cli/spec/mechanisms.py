"""[mechanism]: the noise."""

from __future__ import annotations

from typing import Literal

from pydantic import FiniteFloat

from cvxleak.cli.spec.section import Section

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
    epsilon: FiniteFloat


class BinarySymmetric(Section):
    """A bit that is flipped with probability `flip`; for flip = 1 - p, Warner's design."""

    kind: Literal["binary_symmetric"]
    flip: FiniteFloat


class GeneralizedSymmetric(Section):
    """A wrong value with probability `flip`, all wrong ones alike."""

    kind: Literal["generalized_symmetric"]
    flip: FiniteFloat


class LaplaceThreshold(Section):
    """A bit plus Laplace noise, thresholded at 1/2."""

    kind: Literal["laplace_threshold"]
    epsilon: FiniteFloat


class DiscretizedLaplace(Section):
    """Laplace noise; the nearest of `outputs` (the query's values) is released."""

    kind: Literal["discretized_laplace"]
    epsilon: FiniteFloat
    sensitivity: FiniteFloat | None = None
    outputs: list[FiniteFloat] | None = None


class DiscretizedGaussian(Section):
    """Gaussian noise; the nearest of `outputs` (the query's values) is released."""

    kind: Literal["discretized_gaussian"]
    variance: FiniteFloat
    outputs: list[FiniteFloat] | None = None


class Exponential(Section):
    """The exponential mechanism with the score -|value - output| or with a CSV file of scores."""

    kind: Literal["exponential"]
    epsilon: FiniteFloat
    sensitivity: FiniteFloat | None = None
    scores: str | None = None


class RankExponential(Section):
    """The exponential channel by the ranks of the distances |value - output|."""

    kind: Literal["rank_exponential"]
    scale: FiniteFloat


class TruncatedGeometric(Section):
    """Two-sided geometric noise on a count, clamped to its range."""

    kind: Literal["truncated_geometric"]
    epsilon: FiniteFloat


class RandomRounding(Section):
    """Unbiased random rounding of a count to a multiple of `base`."""

    kind: Literal["random_rounding"]
    base: int


class PmlExtremal(Section):
    """The mechanism with pointwise maximal leakage epsilon for every output, for [prior]."""

    kind: Literal["pml_extremal"]
    epsilon: FiniteFloat


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
