"""From a spec to what a problem is about: the arguments of a report, or of a sweep."""

from __future__ import annotations

from typing import Any

from cvxleak.cli.building import build_distortion
from cvxleak.cli.given import Given
from cvxleak.cli.laws import build_sources
from cvxleak.result import unit_scale

__all__ = ["local_dp_arguments"]


def local_dp_arguments(given: Given, units: str) -> dict[str, Any]:
    """Return what `local_dp_report` takes; an epsilon is converted to `units`."""
    given.needs("local-dp", "sources", "local_dp")
    wanted = given.spec.local_dp
    assert wanted is not None
    sources = build_sources(given)
    epsilon = wanted.epsilon
    if epsilon is not None:
        epsilon *= unit_scale(wanted.unit or units) / unit_scale(units)
    return {
        "sources": sources,
        "distortion_budget": wanted.distortion_budget,
        "epsilon": epsilon,
        "distortion": build_distortion(given, sources.labels),
        "delta": wanted.delta,
    }
