"""``cvxleak audit``: what one output of a mechanism tells, by every measure."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.commands.solve import Asked, answer
from cvxleak.cli.documents import counted
from cvxleak.cli.options import (
    Json,
    Proof,
    SpecPath,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    number,
)

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import SpecFile
    from cvxleak.model import Mechanism

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
    tol: Tolerance = None,
) -> None:
    """Audit a mechanism: what one output tells, by every measure."""

    def ask(spec_file: SpecFile) -> Asked:
        from cvxleak.cli.from_spec import build_knowledge, build_task, independent_people
        from cvxleak.report import audit_report
        from cvxleak.report.targets import check_floors

        task = build_task(spec_file)
        floors, _ = spec_file.numbers(
            "--entropy-floor",
            entropy_floor,
            "adversary.entropy_floors",
            units.value,
            functools.partial(check_floors, task.mechanism),
            task.mechanism.space.max_entropy,
        )
        rest = dict(spec_file.spec.audit, prior=task.prior, distortion=task.distortion)
        rest["adversaries"] = build_knowledge(spec_file, task.mechanism.query, units.value)
        rest["independent"] = independent_people(spec_file, task.mechanism, units.value)
        return Asked(
            functools.partial(audit_report, task.mechanism, floors, **rest),
            lambda _: _about(spec_file, task.mechanism),
            places={key: f"{spec_file.path}: audit.{key}" for key in ("epsilons", "outputs")},
        )

    options = {"json_path": json_path, "html": html, "certificate": certificate}
    answer("audit", spec, ask, units.value, **options, time_limit=time_limit, tol=tol)


def _about(spec_file: SpecFile, mechanism: Mechanism) -> list[str]:
    """Say in a few lines what was audited."""
    space, spec = mechanism.space, spec_file.spec
    values = " or ".join(str(size) for size in sorted(set(space.shape)))
    steps = [f"{counted(space.records, 'record')} of {values} values"]
    if spec.query is not None:
        steps.append(f"{spec.query.kind} ({counted(len(mechanism.query.values), 'value')})")
    if spec.mechanism is not None:
        steps.append(f"{spec.mechanism.kind} ({counted(len(mechanism.outputs), 'output')})")
    return [" -> ".join(steps), *spec_file.prior_source]
