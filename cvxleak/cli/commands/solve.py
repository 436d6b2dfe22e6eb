"""``cvxleak solve``: any problem, from its statement in a spec; and what its views share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.documents import Output
from cvxleak.cli.options import (
    TOLERANCES,
    ChannelPaths,
    Json,
    OwnTolerance,
    Proof,
    SpecPath,
    TimeLimit,
    Unit,
    Units,
    check_limits,
)

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import Given
    from cvxleak.report import Report

__all__ = ["solve", "view"]


def view(
    command: str,
    title: str,
    about: Callable[[Given, Report], list[str]] | None = None,
) -> Callable[..., None]:
    """Return a command that solves the problem of its own table of a spec.

    Parameters
    ----------
    command : str
        One of `cvxleak.cli.problems.TABLES`.
    title : str
        Its line in --help.
    about : callable, optional
        Says in a few lines, below the title, what was solved. The quantities are shown in tables
        only if there is one.
    """

    def solve(
        spec: SpecPath,
        units: Unit = Units.nats,
        json_path: Json = None,
        certificate: Proof = None,
        channel: ChannelPaths = None,
        time_limit: TimeLimit = 60.0,
        tol: OwnTolerance = TOLERANCES[command],
    ) -> None:
        with complaining():
            from cvxleak import report
            from cvxleak.cli.problems import TABLES, problem_of
            from cvxleak.cli.progress import Display
            from cvxleak.cli.spec_file import Given

            check_limits(tol, time_limit)
            output = Output(command, spec, json_path, certificate, channel)
            given = Given(spec)
            problem = problem_of(command, given, units.value)
            reports = {"design": report.design_report, "local-dp": report.local_dp_report}
            solved = reports.get(command, report.problem_report)
            with Display(units.value) as watch, given.at(TABLES[command]):
                found = solved(
                    problem, unit=units.value, tol=tol, time_limit=time_limit, watch=watch
                )
            heading = [given.title, *([] if about is None else about(given, found))]
            output.publish(found, heading, given.identity(), tables=about is not None)

    solve.__doc__ = title
    return solve


solve = view("solve", "Solve the problem that [problem] states, with a proof.")
