"""``cvxleak envelope``: the leakage that holds up under any post-processing, per delta."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvxleak.cli.commands.solve import Asked, answer
from cvxleak.cli.options import (
    Json,
    Picture,
    Proof,
    SpecPath,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    WorkLimit,
    number,
)
from cvxleak.core.wording import counted
from cvxleak.core.work import WORK_LIMIT

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import SpecFile

__all__ = ["envelope"]

Deltas = Annotated[
    list[float] | None,
    typer.Option(
        parser=number,
        metavar="D...",
        help="Probabilities at which to compute the envelope; they replace the spec's.",
    ),
]
Epsilons = Annotated[
    list[float] | None,
    typer.Option(
        parser=number,
        metavar="E...",
        help="Leakages, in --units, at which to compute the failure probability; they replace the "
        "spec's.",
    ),
]


def envelope(
    spec: SpecPath,
    delta: Deltas = None,
    epsilon: Epsilons = None,
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    plot: Picture = None,
    time_limit: TimeLimit = None,
    work_limit: WorkLimit = WORK_LIMIT,
    tol: Tolerance = None,
) -> None:
    """Compute the PML envelope, the leakage after post-processing."""

    def ask(spec_file: SpecFile) -> Asked:
        from cvxleak.cli.from_spec import build_local
        from cvxleak.cli.pictures import draw_envelope
        from cvxleak.core.errors import ValidationError
        from cvxleak.report import envelope_report

        prior, channel = build_local(spec_file, "envelope")
        deltas, of_delta = spec_file.numbers("--delta", delta, "envelope.delta", None)
        epsilons, of_epsilon = spec_file.numbers(
            "--epsilon", epsilon, "envelope.epsilon", units.value
        )
        if not deltas and not epsilons:
            raise ValidationError(
                f"{spec_file.path}: envelope needs --delta or --epsilon, or [envelope] in the spec"
            )
        inputs, outputs = channel.shape
        about = [
            f"{counted(inputs, 'value')} -> {counted(outputs, 'output')}",
            *spec_file.prior_source,
        ]
        return Asked(
            functools.partial(envelope_report, prior, channel, epsilon=epsilons, delta=deltas),
            lambda _: about,
            lambda path, seconds, _: draw_envelope(
                prior, channel, deltas, units.value, path, seconds
            ),
            places={"delta": of_delta, "epsilon": of_epsilon},
        )

    options = {"json_path": json_path, "certificate": certificate, "plot": plot}
    limits: dict[str, Any] = {"time_limit": time_limit, "work_limit": work_limit, "tol": tol}
    answer("envelope", spec, ask, units.value, **options, **limits)
