"""``cvxleak capacity``: the Shannon capacity of a channel in a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cvxleak.cli.cli_errors import complaining, place
from cvxleak.cli.documents import Output
from cvxleak.cli.options import (
    Json,
    Proof,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    WorkLimit,
    check_limits,
)
from cvxleak.core.errors import ValidationError
from cvxleak.core.wording import counted
from cvxleak.core.work import WORK_LIMIT

__all__ = ["capacity"]


def capacity(
    channel: Annotated[
        Path,
        typer.Argument(
            metavar="CHANNEL", help="CSV file with a row of probabilities for each input."
        ),
    ],
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    time_limit: TimeLimit = None,
    work_limit: WorkLimit = WORK_LIMIT,
    tol: Tolerance = None,
) -> None:
    """Compute the capacity of a channel, with a proof."""
    with complaining():
        from cvxleak.cli.progress import Display
        from cvxleak.cli.spec_file import read_file, sha256
        from cvxleak.model import Channel
        from cvxleak.report import capacity_report

        check_limits(tol, time_limit, work_limit)
        output = Output("capacity", channel, json_path, certificate)
        data = read_file(channel)
        if channel.suffix.lower() == ".toml":
            raise ValidationError(
                f"{channel}: a CSV file is needed, with a row of probabilities for each input; the "
                f"capacity of a spec's mechanism is in the report of cvxleak audit {channel}"
            )
        with place(str(channel)):
            given = Channel.from_csv(channel)
        with Display(units.value) as progress:
            report = capacity_report(
                given,
                unit=units.value,
                tol=tol,
                time_limit=time_limit,
                work_limit=work_limit,
                progress=progress,
            )
        inputs, outputs = given.shape
        heading = f"{channel.name}: {counted(inputs, 'input')}, {counted(outputs, 'output')}"
        identity = {"spec": channel.name, "sha256": sha256(data), "files": {}}
        output.publish(report, [heading], identity)
