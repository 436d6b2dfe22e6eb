"""``cvxleak envelope``: the leakage that holds up under any post-processing, per delta."""

from __future__ import annotations

from typing import Annotated

import typer

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.documents import Output, counted
from cvxleak.cli.options import (
    TOLERANCES,
    Json,
    Picture,
    Proof,
    SpecPath,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    check_limits,
    number,
)

__all__ = ["envelope"]

Deltas = Annotated[
    list[float] | None,
    typer.Option(
        parser=number,
        metavar="D...",
        help="Probabilities at which the envelope is wanted; replace the spec's.",
    ),
]
Epsilons = Annotated[
    list[float] | None,
    typer.Option(
        parser=number,
        metavar="E...",
        help="Levels, in --units, at which the failure probability is wanted; replace the spec's.",
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
    time_limit: TimeLimit = 60.0,
    tol: Tolerance = TOLERANCES["envelope"],
) -> None:
    """Compute the PML envelope: leakage that holds up under any post-processing."""
    with complaining():
        from cvxleak.cli.from_spec import build_local
        from cvxleak.cli.pictures import check_picture, draw_envelope, save_picture
        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import Given
        from cvxleak.core.errors import ValidationError
        from cvxleak.report import check_levels, check_probabilities, envelope_report

        check_limits(tol, time_limit)
        output = Output("envelope", spec, json_path, certificate, plot=plot)
        check_picture(plot)
        given = Given(spec)
        prior, channel = build_local(given, "envelope")
        deltas = given.chosen(
            "--delta", delta, "envelope.delta", lambda d, _: check_probabilities(d), None
        )
        epsilons = given.chosen(
            "--epsilon", epsilon, "envelope.epsilon", lambda e, _: check_levels(e), units.value
        )
        if not deltas and not epsilons:
            raise ValidationError(
                f"{given.path}: envelope needs --delta or --epsilon, or [envelope] in the spec"
            )
        with Display(units.value) as watch:
            report = envelope_report(
                prior,
                channel,
                epsilon=epsilons,
                delta=deltas,
                unit=units.value,
                tol=tol,
                time_limit=time_limit,
                watch=watch,
            )
            if plot is not None:
                watch.begin("drawing")
                limit = 0.0 if watch.interrupted else time_limit
                save_picture(draw_envelope(prior, channel, deltas, units.value, limit), plot)
        inputs, outputs = channel.shape
        heading = [given.title, f"{counted(inputs, 'value')} -> {counted(outputs, 'output')}"]
        heading += given.prior_source
        output.publish(report, heading, given.identity())
