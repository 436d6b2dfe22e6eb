"""``cvxleak design``: the channel of least leakage, or of least distortion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.documents import Output, counted
from cvxleak.cli.options import (
    ChannelPaths,
    Json,
    Proof,
    SpecPath,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    check_limits,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cvxleak.cli.spec_file import Given

__all__ = ["design"]


def design(
    spec: SpecPath,
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    channel: ChannelPaths = None,
    time_limit: TimeLimit = 60.0,
    tol: Tolerance = 1e-3,
) -> None:
    """Design a channel: least leakage for a distortion budget, or the reverse."""
    with complaining():
        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import Given
        from cvxleak.cli.statements import design_problem
        from cvxleak.report import design_report

        check_limits(tol, time_limit)
        output = Output("design", spec, json_path, certificate, channel)
        given = Given(spec)
        problem = design_problem(given, units.value)
        with Display(units.value) as watch, given.at("design"):
            report = design_report(
                problem, unit=units.value, tol=tol, time_limit=time_limit, watch=watch
            )
        output.publish(report, _heading(given, report.facts, units.value), given.identity())


def _heading(given: Given, facts: Mapping[str, Any], unit: str) -> list[str]:
    """Say in a few lines what was designed."""
    about = "dataset" if given.spec.query is None else given.spec.query.kind
    who = {"record": "the worst record", "total": "the whole dataset"}.get(
        facts["objective"], f"the worst group of {facts['group_size']} records"
    )
    whom = "the given priors"
    if facts["entropy_floor"] is not None:
        whom = f"adversaries with at least {facts['entropy_floor']:g} {unit} of doubt"
    within = f"distortion at most {facts['budget']:g}"
    if facts["minimize"] == "distortion":
        within = f"leakage at most {facts['budget']:g} {unit}"
    lines = [
        given.title,
        f"{counted(facts['records'], 'record')} -> {about} "
        f"({counted(facts['query_values'], 'value')}) -> channel of "
        f"{counted(facts['rows'], 'row')} and {counted(facts['outputs'], 'output')}",
        f"Least {facts['minimize']}, {within}; leakage about {who}, to {whom}",
    ]
    if facts["binding"]:
        lines.append(f"Held back by: {', '.join(facts['binding'])}")
    return [*lines, *given.prior_source]
