"""``cvxleak solve``: any problem, from its statement in a spec; and what its views share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from cvxleak.cli.cli_errors import complaining, named, place
from cvxleak.cli.documents import Output, write_page
from cvxleak.cli.options import (
    ChannelPaths,
    Json,
    Proof,
    SpecPath,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    WorkLimit,
    check_limits,
)
from cvxleak.core.errors import ValidationError
from cvxleak.core.work import WORK_LIMIT

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import SpecFile
    from cvxleak.report import Report

__all__ = ["Asked", "answer", "solve", "view"]


class Asked(NamedTuple):
    """What a spec asks a command for.

    Attributes
    ----------
    report : callable
        Makes the report, of `unit`, `tol`, `time_limit`, `work_limit` and `progress`.
    about : callable
        Says in a few lines, below the title, what the report is about.
    draw : callable, optional
        Writes the picture of --plot to a path, in so many seconds, given the report.
    tables : bool
        Whether quantities that belong together are shown in tables.
    places : mapping of str to str
        Where arguments of the report stand: an option, or a key of the spec.
    """

    report: Callable[..., Report]
    about: Callable[[Report], Sequence[str]]
    draw: Callable[[str, float | None, Report], None] | None = None
    tables: bool = True
    places: Mapping[str, str] = MappingProxyType({})


def answer(
    command: str,
    spec: Path,
    ask: Callable[[SpecFile], Asked],
    units: str,
    *,
    json_path: str | None,
    certificate: str | None,
    channel: Sequence[str] | None = None,
    html: str | None = None,
    plot: str | None = None,
    time_limit: float | None,
    work_limit: float,
    tol: float | None,
) -> None:
    """Do what all commands do that report on one spec; the options are theirs."""
    with complaining():
        from cvxleak.cli.pictures import check_picture
        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import SpecFile
        from cvxleak.report import check_page

        check_limits(tol, time_limit, work_limit)
        output = Output(command, spec, json_path, certificate, channel, html=html, plot=plot)
        if html is not None:
            with place("--html"):
                check_page()
        check_picture(plot)
        spec_file = SpecFile(spec)
        asked = ask(spec_file)
        if plot is not None and asked.draw is None:
            raise ValidationError("--plot: there is no picture of what this SPEC asks for")
        with Display(units) as progress, named(asked.places):
            report = asked.report(
                unit=units,
                tol=tol,
                time_limit=time_limit,
                work_limit=work_limit,
                progress=progress,
            )
            if asked.draw is not None and plot is not None:
                progress.begin("drawing")
                asked.draw(plot, 0.0 if progress.interrupted else time_limit, report)
        heading = [spec_file.title, *asked.about(report)]
        if html is not None:
            write_page(html, report, heading, spec_file.identity(), certificate, spec_file.text)
        output.publish(report, heading, spec_file.identity(), tables=asked.tables)


def view(
    command: str,
    title: str,
    about: Callable[[SpecFile, Report], list[str]] | None = None,
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
        time_limit: TimeLimit = None,
        work_limit: WorkLimit = WORK_LIMIT,
        tol: Tolerance = None,
    ) -> None:
        def ask(spec_file: SpecFile) -> Asked:
            from cvxleak import report
            from cvxleak.cli.problems import TABLES, problem_of

            problem = problem_of(command, spec_file, units.value)
            reports = {"design": report.design_report, "local-dp": report.local_dp_report}
            make = spec_file.at(TABLES[command])(reports.get(command, report.problem_report))
            return Asked(
                functools.partial(make, problem),
                lambda found: [] if about is None else about(spec_file, found),
                tables=about is not None,
            )

        options = {"json_path": json_path, "certificate": certificate, "channel": channel}
        limits: dict[str, Any] = {"time_limit": time_limit, "work_limit": work_limit, "tol": tol}
        answer(command, spec, ask, units.value, **options, **limits)

    solve.__doc__ = title
    return solve


solve = view("solve", "Solve the problem stated in [problem], with a proof.")
