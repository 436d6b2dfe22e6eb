"""From the sections of a spec that have a command of their own to the problem they state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cvxleak.audit import RecordLeakage
from cvxleak.cli.building import build_distortion, build_local, build_query, build_task
from cvxleak.cli.laws import build_prior, build_sources
from cvxleak.cli.spec_file import Given
from cvxleak.core.errors import ValidationError
from cvxleak.design import MinDistortion, MinLeakage
from cvxleak.envelope import FailureProbability, PMLEnvelope
from cvxleak.local_dp import MinDistortionLocalDP, MinLocalDP
from cvxleak.problem.bound import converted

__all__ = [
    "audit_problem",
    "design_problem",
    "envelope_problem",
    "local_dp_problem",
    "only",
    "only_record",
]


def design_problem(given: Given, units: str) -> MinLeakage | MinDistortion:
    """Return the problem of [design]."""
    given.needs("design", "design", "distortion", ("query", "space"))
    wanted = given.spec.design
    assert wanted is not None
    query = build_query(given)
    outputs = None if wanted.outputs is None else tuple(wanted.outputs)
    unit = wanted.unit or units
    floor = wanted.entropy_floor
    known: dict[str, Any] = {"sources": wanted.sources}
    if wanted.sources is None and query.space.records == 1:
        known = {"source": build_prior(given, query)}
    arguments = {
        "distortion": build_distortion(given, query.values, outputs),
        "entropy_floor": None if floor is None else converted(floor, unit),
        "outputs": outputs,
        "objective": wanted.objective,
        "size": wanted.size,
        "priors": wanted.priors,
        "rows": wanted.rows,
        **known,
    }
    with given.at("design"):
        if wanted.minimize == "leakage":
            return MinLeakage(query, budget=wanted.budget, **arguments)
        return MinDistortion(query, budget=converted(wanted.budget, unit), **arguments)


def local_dp_problem(given: Given, units: str) -> MinLocalDP | MinDistortionLocalDP:
    """Return the problem of [local_dp]."""
    given.needs("local-dp", "sources", "local_dp")
    wanted = given.spec.local_dp
    assert wanted is not None
    sources = build_sources(given)
    distortion = build_distortion(given, sources.labels)
    with given.at("local_dp"):
        if wanted.epsilon is None:
            assert wanted.distortion_budget is not None  # the schema wants one of them
            return MinLocalDP(sources, wanted.distortion_budget, distortion, delta=wanted.delta)
        nats = converted(wanted.epsilon, wanted.unit or units)
        return MinDistortionLocalDP(sources, nats, distortion, delta=wanted.delta)


def envelope_problem(given: Given, units: str) -> PMLEnvelope | FailureProbability:
    """Return the problem of an [envelope] with one probability, or with one level alone."""
    prior, channel = build_local(given, "envelope")
    asked = given.spec.envelope
    with given.at("envelope"):
        if asked.epsilon and not asked.delta:
            level = only(asked.epsilon, "envelope.epsilon")
            return FailureProbability(prior, channel, converted(level, asked.unit or units))
        return PMLEnvelope(prior, channel, only(asked.delta, "envelope.delta"))


def audit_problem(given: Given, units: str) -> RecordLeakage:
    """Return the problem of [audit] with one floor, one group size and at most one record."""
    mechanism = build_task(given).mechanism
    known, asked = given.spec.adversary, given.spec.audit
    floor = only(known.entropy_floors, "adversary.entropy_floors")
    size = only(asked.group_sizes, "audit.group_sizes")
    record = only_record(given)
    with given.at("adversary.entropy_floors", naming=False):
        return RecordLeakage(mechanism, converted(floor, known.unit or units), record, size)


def only(values: Sequence[Any], key: str) -> Any:
    """Return the only value of a key.

    Raises
    ------
    ValidationError
        There are others.
    """
    if len(values) != 1:
        raise ValidationError(f"{key}: found {len(values)} values; a point of a sweep has one")
    return values[0]


def only_record(given: Given) -> int | None:
    """Return the record that [audit] asks for; None stands for the worst one."""
    records = given.spec.audit.records
    return None if records is None else only(records, "audit.records")
