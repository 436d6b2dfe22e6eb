"""The schema of SPEC.toml. docs/specs.md documents it; the tests compare the two."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

__all__ = [
    "Absolute",
    "Adversary",
    "Audit",
    "BinarySymmetric",
    "Constant",
    "Cost",
    "Count",
    "DiscretizedGaussian",
    "DiscretizedLaplace",
    "DistortionMatrix",
    "Exponential",
    "GeneralizedSymmetric",
    "Hamming",
    "Identity",
    "LaplaceThreshold",
    "Matrix",
    "ModularSum",
    "Noise",
    "PairSum",
    "Parity",
    "PmlExtremal",
    "Query",
    "RandomRounding",
    "RandomizedResponse",
    "RankExponential",
    "Section",
    "Source",
    "Space",
    "Spec",
    "Squared",
    "Table",
    "TruncatedGeometric",
]


def _label(value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"a label is text, a number, true or false, not {value!r:.40}")
    return value


Label = Annotated[Any, AfterValidator(_label)]


class Section(BaseModel):
    """A table of the spec: no key that is not in the schema, no type turned into another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Count(Section):
    """Number of ones among the records."""

    kind: Literal["count"]
    records: int


class Parity(Section):
    """Number of ones, modulo 2."""

    kind: Literal["parity"]
    records: int


class ModularSum(Section):
    """Number of ones, modulo `modulus`."""

    kind: Literal["modular_sum"]
    records: int
    modulus: int


class PairSum(Section):
    """Number of pairs of ones."""

    kind: Literal["pair_sum"]
    records: int


class Table(Section):
    """Any function of a small dataset: one value for every dataset, last record fastest."""

    kind: Literal["table"]
    alphabets: list[list[Label]]
    values: list[Label]


class Space(Section):
    """A record space: the mechanism looks at the dataset itself."""

    alphabets: list[list[Label]]


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


class Adversary(Section):
    """Least entropies of the adversaries' beliefs about the dataset."""

    entropy_floors: list[FiniteFloat] = Field(default=[0.0], min_length=1)
    unit: Literal["nats", "bits"] | None = None


class Audit(Section):
    """Whose leakage is asked for: the worst record if nothing is said."""

    records: list[int] | None = Field(default=None, min_length=1)
    group_sizes: list[int] = Field(default=[1], min_length=1)


class Source(Section):
    """The law of the one record of a local mechanism, as counts or frequencies."""

    counts: dict[str, FiniteFloat] | None = None
    file: str | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Source:
        if (self.counts is None) == (self.file is None):
            raise ValueError("either counts or file is needed, and not both")
        return self


class Hamming(Section):
    """1 for a wrong output, 0 for the right one."""

    kind: Literal["hamming"]


class Absolute(Section):
    """|value - output|."""

    kind: Literal["absolute"]


class Squared(Section):
    """(value - output)^2."""

    kind: Literal["squared"]


class DistortionMatrix(Section):
    """A CSV file of costs: rows are values of the query, columns outputs."""

    kind: Literal["matrix"]
    file: str


Query = Count | Parity | ModularSum | PairSum | Table
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
Cost = Hamming | Absolute | Squared | DistortionMatrix


class Spec(Section):
    """SPEC.toml, version 1."""

    version: Literal[1]
    title: str | None = None
    query: Annotated[Query, Field(discriminator="kind")] | None = None
    space: Space | None = None
    mechanism: Annotated[Noise, Field(discriminator="kind")]
    adversary: Adversary = Adversary()
    audit: Audit = Audit()
    prior: Source | None = None
    distortion: Annotated[Cost, Field(discriminator="kind")] | None = None

    @model_validator(mode="after")
    def _query_or_space(self) -> Spec:
        if (self.query is None) == (self.space is None):
            raise ValueError("either [query] or [space] is needed, and not both")
        return self
