"""``cvxleak capacity``: the Shannon capacity of a channel in a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cvxleak.cli.cli_errors import complaining, place
from cvxleak.cli.documents import check_targets, counted, publish, report_document
from cvxleak.cli.options import Gap, Json, Proof, Unit, Units, check_limits

__all__ = ["capacity"]


def capacity(
    channel: Annotated[
        Path,
        typer.Argument(metavar="CHANNEL", help="CSV file, a row of probabilities for each input."),
    ],
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    tol: Gap = 1e-9,
) -> None:
    """Compute the capacity of a channel, with a proof."""
    with complaining():
        from rich.console import Console

        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import read_file, sha256
        from cvxleak.model import Channel
        from cvxleak.report import capacity_report

        check_limits(tol)
        check_targets(channel, {"--json": json_path, "--certificate": certificate})
        data = read_file(channel)
        with place(str(channel)):
            given = Channel.from_csv(channel)
        with Display(Console(stderr=True), units.value) as watch:
            report = capacity_report(given, unit=units.value, tol=tol, watch=watch)
        document = report_document(
            report.to_dict(), command="capacity", spec=channel.name, sha256=sha256(data), files={}
        )
        inputs, outputs = given.shape
        heading = f"{channel.name}: {counted(inputs, 'input')}, {counted(outputs, 'output')}"
        publish(report, document, [heading], json_path=json_path, certificate=certificate)
