"""What several commands take: each option is stated once, so that it reads the same everywhere."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Json", "Proof", "SpecPath", "TimeLimit", "Tolerance", "Unit", "Units", "check_limits"]


class Units(enum.StrEnum):
    """Units of information."""

    nats = "nats"
    bits = "bits"


SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="What it is about, a TOML file.")]
Unit = Annotated[
    Units, typer.Option("--units", help="Unit of information, for inputs and outputs.")
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="PATH|-", help="Write the report as JSON; - prints that alone."),
]
Proof = Annotated[
    str | None,
    typer.Option("--certificate", metavar="PATH", help="Write the proof, for cvxleak verify."),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        metavar="S", help="Seconds for all searches together, with the proofs of what they find."
    ),
]
Tolerance = Annotated[
    float, typer.Option("--tol", metavar="T", help="Relative gap between the ends to reach.")
]


def check_limits(tol: float, time_limit: float = 0.0) -> None:
    """See that --tol and --time-limit are numbers that mean something."""
    from cvxleak._validation import real_number

    real_number(tol, "--tol", 0.0, 1.0, open_high=True)
    real_number(time_limit, "--time-limit", 0.0)
