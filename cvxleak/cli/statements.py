"""From a spec to what a problem is about: the arguments of a report, or of a sweep."""

from __future__ import annotations

from typing import Any

from cvxleak.cli.building import build_distortion, build_query
from cvxleak.cli.laws import build_prior, build_sources
from cvxleak.cli.spec_file import Given
from cvxleak.design import MinDistortion, MinLeakage
from cvxleak.problem.bound import converted

__all__ = ["design_problem", "local_dp_arguments"]


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


def local_dp_arguments(given: Given, units: str) -> dict[str, Any]:
    """Return what `local_dp_report` takes; an epsilon is converted to `units`."""
    given.needs("local-dp", "sources", "local_dp")
    wanted = given.spec.local_dp
    assert wanted is not None
    sources = build_sources(given)
    epsilon = wanted.epsilon
    if epsilon is not None:
        epsilon = converted(epsilon, wanted.unit or units, units)
    return {
        "sources": sources,
        "budget": wanted.distortion_budget,
        "epsilon": epsilon,
        "distortion": build_distortion(given, sources.labels),
        "delta": wanted.delta,
    }
