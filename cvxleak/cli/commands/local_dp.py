"""``cvxleak local-dp``: the most private channel that is useful whatever the true law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.documents import Output, counted
from cvxleak.cli.options import (
    ChannelPaths,
    Gap,
    Json,
    Proof,
    SpecPath,
    TimeLimit,
    Unit,
    Units,
    check_limits,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cvxleak.cli.spec_file import Given

__all__ = ["local_dp"]


def local_dp(
    spec: SpecPath,
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    channel: ChannelPaths = None,
    time_limit: TimeLimit = 60.0,
    tol: Gap = 1e-9,
) -> None:
    """Find the channel of least epsilon that is useful for every law of a set."""
    with complaining():
        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import Given
        from cvxleak.cli.statements import local_dp_problem
        from cvxleak.report import local_dp_report

        check_limits(tol, time_limit)
        output = Output("local-dp", spec, json_path, certificate, channel)
        given = Given(spec)
        problem = local_dp_problem(given, units.value)
        with Display(units.value) as watch, given.at("local_dp"):
            report = local_dp_report(
                problem, unit=units.value, tol=tol, time_limit=time_limit, watch=watch
            )
        heading = _heading(given, report.facts)
        output.publish(report, heading, given.identity())


def _heading(given: Given, facts: Mapping[str, Any]) -> list[str]:
    """Say in a few lines what is known about the law, and which class of sets that is."""
    known = given.spec.sources
    assert known is not None
    size = counted(facts["outcomes"], "outcome")
    lines = [given.title, f"{known.kind} -> set of laws of {size} -> {facts['outputs']} outputs"]
    if known.source is not None:
        lines.append(f"Sources: {known.source}")
    kinds = {
        "I": "Class I: the uniform law is one of the set or of its hull",
        "II": "Class II: all laws put the outcomes in the same order, "
        + ", ".join(map(str, facts["permutation"] or [])),
        "III": "Class III: laws in different orders, and the uniform one is not in the hull",
    }
    border = "" if facts["class_exact"] else " (up to rounding: the set is at a border)"
    return [*lines, kinds[facts["class"]] + border]
