"""From a spec to what it names: query, mechanism, distortion; `laws` has priors and sources."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass

from cvxleak.cli.laws import build_prior
from cvxleak.cli.spec import DistortionMatrix, Setting
from cvxleak.cli.spec.section import is_bare
from cvxleak.cli.spec_file import Given
from cvxleak.model import Channel, Distortion, Mechanism, Prior, Query
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
    asked, table = given.spec.space or given.spec.query, "space" if given.spec.space else "query"
    assert asked is not None
    with given.at(table):
        return asked.query()


def build_mechanism(given: Given, query: Query, prior: Prior | None) -> Mechanism:
    """Return the query with the noise of [mechanism]."""
    noise = given.spec.mechanism
    assert noise is not None
    with given.at("mechanism.file" if noise.kind == "matrix" else "mechanism"):
        return Mechanism(query, noise.channel(Setting(query, prior, given.file)))


def build_local(given: Given, command: str) -> tuple[Prior, Channel]:
    """Return the law of the only record and the channel from its value to the output."""
    given.needs(command, "mechanism", ("query", "space"), "prior")
    query = build_query(given)
    prior = build_prior(given, query)
    assert prior is not None
    mechanism = build_mechanism(given, query, prior)
    return prior, Channel(mechanism.to_channel().matrix, prior.labels, mechanism.outputs)


def build_distortion(
    given: Given, values: tuple[Hashable, ...], outputs: tuple[Hashable, ...] | None = None
) -> Distortion | None:
    """Return the cost of [distortion] for these values and outputs, if there is one.

    Without outputs, those of a file are taken, and the values themselves otherwise.
    """
    cost = given.spec.distortion
    if isinstance(cost, DistortionMatrix):
        with given.at("distortion.file"):
            path = given.file(cost.file)
            distortion = Distortion.from_csv(path)
            if is_bare(path):
                if outputs is None and distortion.shape[1] == len(values):
                    outputs = values
                distortion = Distortion(distortion.matrix, values, outputs)
            return distortion
    with given.at("distortion"):
        return None if cost is None else cost.of(values, values if outputs is None else outputs)
