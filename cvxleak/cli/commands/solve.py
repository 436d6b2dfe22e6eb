"""``cvxleak solve``: any problem, from its statement in a spec; and what its views share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.documents import Output
from cvxleak.cli.options import ChannelPaths, Json, Proof, SpecPath, Unit, Units, check_limits

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import Given
    from cvxleak.report import Report

__all__ = ["answer", "solve"]

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
    limits = {"time_limit": time_limit, "tol": tol}
    answer("solve", spec, units.value, (json_path, certificate, channel), limits)


def answer(
    command: str,
    spec: Path,
    unit: str,
    paths: tuple[str | None, str | None, list[str] | None],
    limits: dict[str, Any],
    about: Callable[[Given, Report], list[str]] | None = None,
) -> None:
    """Solve the problem that a command states in a spec, and write what was asked for.

    Parameters
    ----------
    command : str
        One of `cvxleak.cli.problems.TABLES`.
    spec, unit
        The file, and the unit of --units.
    paths
        Those of --json, of --certificate and of --channel.
    limits : dict
        ``time_limit`` and ``tol``.
    about : callable, optional
        Says in a few lines, below the title, what was solved. The quantities are shown in tables
        only if there is one.
    """
    with complaining():
        from cvxleak import report
        from cvxleak.cli.problems import TABLES, problem_of
        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import Given

        check_limits(limits["tol"] or 0.0, limits["time_limit"])
        output = Output(command, spec, *paths)
        given = Given(spec)
        problem = problem_of(command, given, unit)
        reports = {"design": report.design_report, "local-dp": report.local_dp_report}
        solved = reports.get(command, report.problem_report)
        with Display(unit) as watch, given.at(TABLES[command]):
            found = solved(problem, unit=unit, watch=watch, **limits)
        heading = [given.title, *([] if about is None else about(given, found))]
        output.publish(found, heading, given.identity(), tables=about is not None)
