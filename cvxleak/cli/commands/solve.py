"""``cvxleak solve``: any problem, from its statement in a spec."""

from __future__ import annotations

from typing import Annotated

import typer

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.documents import Output
from cvxleak.cli.options import ChannelPaths, Json, Proof, SpecPath, Unit, Units, check_limits

__all__ = ["solve"]

Limit = Annotated[float, typer.Option("--time-limit", metavar="S", help="Seconds of the search.")]
Own = Annotated[
    float | None,
    typer.Option(
        "--tol", metavar="T", help="Gap between the ends to reach; the problem's own if left out."
    ),
]


def solve(
    spec: SpecPath,
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    channel: ChannelPaths = None,
    time_limit: Limit = 60.0,
    tol: Own = None,
) -> None:
    """Solve the problem that [problem] states, with a proof."""
    with complaining():
        from cvxleak.cli.problems import build_problem
        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import Given
        from cvxleak.report import problem_report

        check_limits(0.0 if tol is None else tol, time_limit)
        output = Output("solve", spec, json_path, certificate, channel)
        given = Given(spec)
        problem = build_problem(given, units.value)
        with Display(units.value) as watch, given.at("problem"):
            report = problem_report(
                problem, unit=units.value, tol=tol, time_limit=time_limit, watch=watch
            )
        output.publish(report, [given.title], given.identity(), tables=False)
