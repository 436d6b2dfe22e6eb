"""From a spec to what it names: query, mechanism, distortion; `laws` has priors and sources."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cvxleak import mechanisms, queries
from cvxleak.cli import spec as schema
from cvxleak.cli.laws import build_prior
from cvxleak.cli.spec_file import Given
from cvxleak.core.errors import ValidationError
from cvxleak.core.files import is_header, numbers_from_text, read_table
from cvxleak.model import Channel, Distortion, Mechanism, Prior, Query, RecordSpace, TableQuery
from cvxleak.report import check_targets

__all__ = [
    "Task",
    "build_distortion",
    "build_local",
    "build_mechanism",
    "build_query",
    "build_task",
    "load_task",
]


@dataclass(frozen=True)
class Task:
    """What a SPEC.toml asks an audit for.

    Attributes
    ----------
    given : Given
    mechanism : Mechanism
    prior : Prior or None
    distortion : Distortion or None
    """

    given: Given
    mechanism: Mechanism
    prior: Prior | None
    distortion: Distortion | None


def load_task(path: str | os.PathLike[str]) -> Task:
    """Read the spec of an audit, and the files that it names.

    Raises
    ------
    ValidationError
        A file that cannot be read, or something wrong in it; the message starts with the spec's
        path and the key.
    """
    return build_task(Given(path))


def build_task(given: Given) -> Task:
    """Return what a spec asks an audit for; `load_task` says what is wrong and how."""
    given.needs("audit", "mechanism", ("query", "space"))
    query = build_query(given)
    prior = build_prior(given, query)
    mechanism = build_mechanism(given, query, prior)
    distortion = build_distortion(given, query.values, mechanism.outputs)
    with given.at("audit"):
        check_targets(mechanism, given.spec.audit.records, given.spec.audit.group_sizes)
    return Task(given, mechanism, prior, distortion)


def build_query(given: Given) -> Query:
    """Return the query of [query] or, for [space], the dataset itself."""
    spec = given.spec
    if spec.space is not None:
        with given.at("space"):
            space = RecordSpace(spec.space.alphabets)
            datasets = list(space.datasets()) if space.records > 1 else space.alphabets[0]
            return TableQuery(space, np.arange(space.size), datasets)
    with given.at("query"):
        match spec.query:
            case schema.Count(records=n):
                return queries.count(n)
            case schema.Parity(records=n):
                return queries.parity(n)
            case schema.ModularSum(records=n, modulus=m):
                return queries.modular_sum(n, m)
            case schema.PairSum(records=n):
                return queries.pair_sum(n)
            case schema.Table(alphabets=alphabets, values=values):
                return queries.from_table(RecordSpace(alphabets), values)
    raise AssertionError(spec.query)


def build_mechanism(given: Given, query: Query, prior: Prior | None) -> Mechanism:
    """Return the query with the noise of [mechanism]."""
    noise = given.spec.mechanism
    if isinstance(noise, schema.Matrix):
        with given.at("mechanism.file"):
            path = given.file(noise.file)
            channel = Channel.from_csv(path)
            return Mechanism(query, channel.matrix if _bare(path) else channel)
    with given.at("mechanism"):
        return Mechanism(query, _channel(given, noise, query, prior))


def build_local(given: Given, command: str) -> tuple[Prior, Channel]:
    """Return the law of the only record and the channel from its value to the output."""
    given.needs(command, "mechanism", ("query", "space"), "prior")
    query = build_query(given)
    prior = build_prior(given, query)
    assert prior is not None
    mechanism = build_mechanism(given, query, prior)
    return prior, Channel(mechanism.to_channel().matrix, prior.labels, mechanism.outputs)


def _channel(
    given: Given, noise: schema.Noise | None, query: Query, prior: Prior | None
) -> Channel:
    values = query.values
    match noise:
        case schema.RandomizedResponse(epsilon=epsilon):
            return _same(mechanisms.randomized_response(len(values), epsilon), values)
        case schema.BinarySymmetric(flip=flip):
            return _same(mechanisms.binary_symmetric(flip), values)
        case schema.GeneralizedSymmetric(flip=flip):
            return _same(mechanisms.generalized_symmetric(len(values), flip), values)
        case schema.LaplaceThreshold(epsilon=epsilon):
            return _same(mechanisms.laplace_threshold(epsilon), values)
        case schema.DiscretizedLaplace(epsilon=epsilon, sensitivity=width, outputs=outputs):
            return mechanisms.discretized_laplace(
                outputs or sorted(_numbers(values)),
                epsilon,
                query.sensitivity if width is None else width,
                _numbers(values),
            )
        case schema.DiscretizedGaussian(variance=variance, outputs=outputs):
            return mechanisms.discretized_gaussian(
                outputs or sorted(_numbers(values)), variance, _numbers(values)
            )
        case schema.Exponential(epsilon=epsilon, sensitivity=width, scores=None):
            scores = -Distortion.absolute(_numbers(values)).matrix
            width = query.sensitivity if width is None else width
            return mechanisms.exponential(scores, epsilon, width, values, values)
        case schema.Exponential(epsilon=epsilon, sensitivity=width, scores=file):
            return _exponential(given, epsilon, width, str(file), values)
        case schema.RankExponential(scale=scale):
            return mechanisms.rank_exponential(Distortion.absolute(_numbers(values)), scale)
        case schema.TruncatedGeometric(epsilon=epsilon):
            return mechanisms.truncated_geometric(_largest(values), epsilon)
        case schema.RandomRounding(base=base):
            return mechanisms.random_rounding(_largest(values), base)
        case schema.PmlExtremal(epsilon=epsilon):
            if prior is None:
                raise ValidationError("pml_extremal is made for a law: [prior] is missing")
            return mechanisms.pml_extremal(prior, epsilon)
        case schema.Identity():
            return _same(mechanisms.identity(len(values)), values)
        case schema.Constant():
            constant = mechanisms.constant(len(values), [1.0])
            return Channel(constant.matrix, values, constant.outputs)
    raise AssertionError(noise)


def _exponential(
    given: Given, epsilon: float, width: float | None, file: str, values: tuple[Hashable, ...]
) -> Channel:
    if width is None:
        raise ValidationError("sensitivity: is missing; scores from a file need it")
    path = given.file(file)
    scores = [numbers_from_text(cells, line, path) for line, cells in read_table(path)]
    if len(scores) != len(values):
        raise ValidationError(
            f"scores: found {len(scores)} rows; the query has {len(values)} values"
        )
    return mechanisms.exponential(scores, epsilon, width, values)


def build_distortion(
    given: Given, values: tuple[Hashable, ...], outputs: tuple[Hashable, ...] | None = None
) -> Distortion | None:
    """Return the cost of [distortion] for these values and outputs, if there is one.

    Without outputs, those of a file are taken, and the values themselves otherwise.
    """
    cost = given.spec.distortion
    if isinstance(cost, schema.DistortionMatrix):
        with given.at("distortion.file"):
            path = given.file(cost.file)
            distortion = Distortion.from_csv(path)
            if _bare(path):
                if outputs is None and distortion.shape[1] == len(values):
                    outputs = values
                distortion = Distortion(distortion.matrix, values, outputs)
            return distortion
    outputs = values if outputs is None else outputs
    with given.at("distortion"):
        match cost:
            case schema.Hamming():
                return Distortion.hamming(values, outputs)
            case schema.Absolute():
                return Distortion.absolute(_numbers(values), _numbers(outputs))
            case schema.Squared():
                return Distortion.squared(_numbers(values), _numbers(outputs))
    return None


def _same(channel: Channel, values: tuple[Hashable, ...]) -> Channel:
    """Return a channel from the values of the query to the same labels."""
    if channel.shape[0] != len(values):
        raise ValidationError(
            f"it has {channel.shape[0]} inputs; the query has {len(values)} values"
        )
    return Channel(channel.matrix, values, values)


def _numbers(values: tuple[Hashable, ...]) -> list[Any]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValidationError(f"values that are numbers are needed; found {value!r}")
    return list(values)


def _largest(values: tuple[Hashable, ...]) -> int:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValidationError(f"values that are counts are needed; found {value!r}")
    return max(values)  # pyright: ignore[reportArgumentType, reportReturnType, reportCallIssue]


def _bare(path: Path) -> bool:
    """Whether a CSV file has no labels: its very first cell is a number."""
    return not is_header(read_table(path)[0], 1, path)
