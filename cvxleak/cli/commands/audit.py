"""``cvxleak audit``: what one output of a mechanism tells, by every measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.cli_errors import complaining, place
from cvxleak.cli.documents import Output, counted
from cvxleak.cli.options import (
    TOLERANCES,
    Json,
    Proof,
    SpecPath,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    check_limits,
    number,
)

if TYPE_CHECKING:
    from cvxleak.cli.from_spec import Task
    from cvxleak.report import Report

__all__ = ["audit"]

Floors = Annotated[
    list[float] | None,
    typer.Option(
        parser=number,
        metavar="B",
        help="Least entropy of the adversary's belief about the dataset, in --units; may be "
        "repeated, and replaces the floors in the spec.",
    ),
]

Html = Annotated[
    str | None,
    typer.Option(
        "--html",
        metavar="PATH",
        help="Write the report as one web page, with pictures; needs cvxleak[html].",
    ),
]


def audit(
    spec: SpecPath,
    entropy_floor: Floors = None,
    units: Unit = Units.nats,
    json_path: Json = None,
    html: Html = None,
    certificate: Proof = None,
    time_limit: TimeLimit = 60.0,
    tol: Tolerance = TOLERANCES["audit"],
) -> None:
    """Audit a mechanism: what one output tells, by every measure."""
    with complaining():
        from cvxleak.cli.from_spec import load_task
        from cvxleak.cli.progress import Display
        from cvxleak.report import audit_report, check_floors, check_page

        check_limits(tol, time_limit)
        output = Output("audit", spec, json_path, certificate, html=html)
        if html is not None:
            with place("--html"):
                check_page()
        task = load_task(spec)
        floors = task.given.chosen(
            "--entropy-floor",
            entropy_floor,
            "adversary.entropy_floors",
            lambda floors, unit: check_floors(task.mechanism, floors, unit),
            units.value,
        )
        settings = task.given.spec.audit
        with Display(units.value) as watch:
            report = audit_report(
                task.mechanism,
                floors,
                unit=units.value,
                records=settings.records,
                group_sizes=settings.group_sizes,
                prior=task.prior,
                distortion=task.distortion,
                tol=tol,
                time_limit=time_limit,
                watch=watch,
            )
        heading = _heading(task)
        if html is not None:
            _write_page(task, report, heading, html, certificate)
        output.publish(report, heading, task.given.identity())


def _write_page(
    task: Task, report: Report, heading: list[str], path: str, certificate: str | None
) -> None:
    from cvxleak.core.files import write_atomic
    from cvxleak.report import html_page

    given = task.given
    page = html_page(
        report,
        heading,
        spec=given.text,
        sources={given.name: given.identity()["sha256"], **given.files},
        certificate=None if certificate is None else Path(certificate).name,
    )
    write_atomic(path, page)


def _heading(task: Task) -> list[str]:
    """Say in a few lines what was audited."""
    space, query, spec = task.mechanism.space, task.mechanism.query, task.given.spec
    values = " or ".join(str(size) for size in sorted(set(space.shape)))
    steps = [f"{counted(space.records, 'record')} of {values} values"]
    if spec.query is not None:
        steps.append(f"{spec.query.kind} ({counted(len(query.values), 'value')})")
    if spec.mechanism is not None:
        outputs = counted(len(task.mechanism.outputs), "output")
        steps.append(f"{spec.mechanism.kind} ({outputs})")
    return [task.given.title, " -> ".join(steps), *task.given.prior_source]
