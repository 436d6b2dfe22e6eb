"""``cvxleak verify``: check certificates, without CVXPY and without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.options import number

if TYPE_CHECKING:
    from cvxleak.proofs import Verification

__all__ = ["verify"]

FAILED = 1
"""Exit code of a check that found something wrong."""

UNFINISHED = 3
"""Exit code of a check that a time limit ended."""


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="CERT", help="Files written by --certificate or .save()."),
    ],
    time_limit: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="S",
            help="Time limit in seconds for each file. What has not been checked by then is not "
            "confirmed (exit code 3).",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print the proof of the upper bound, a line for each term with what it concludes.",
        ),
    ] = False,
) -> None:
    """Check certificates. Exit code 0: PASS; 1: FAIL; 3: not confirmed in the time given."""
    with complaining():
        from cvxleak.core.validation import real_number

        if time_limit is not None:
            real_number(time_limit, "--time-limit", 0.0)
        codes: set[int] = set()
        for path in paths:
            if len(paths) > 1:
                typer.echo(f"{path}:")
            codes.add(_check(path, time_limit, explain))
        for code in (FAILED, UNFINISHED):
            if code in codes:
                raise typer.Exit(code)


def _check(path: Path, time_limit: float | None, explain: bool) -> int:
    """Print what the checker says of one file, and return its exit code."""
    from cvxleak.cli.progress import Display
    from cvxleak.core.errors import CertificateError
    from cvxleak.proofs import verify as check
    from cvxleak.proofs.format import read_json

    try:
        content = read_json(path)
        if not isinstance(content, dict):
            raise CertificateError("not a cvxleak certificate")
    except CertificateError as error:
        typer.echo(f"FAIL  {error}; a certificate is a file that --certificate or save has written")
        return FAILED
    with Display() as progress:
        progress.begin(f"checking {path}")
        answer = check(content, time_limit=time_limit)
    several = len(answer.parts)
    for place, part in enumerate(answer.parts, start=1):
        where = f"{place} of {several}: " if several > 1 else ""
        typer.echo(f"{part.verdict}  {where}{_claim(part)}")
    if several != 1:
        typer.echo(f"{answer.verdict}  {_claim(answer)}")
    if explain:
        for part in answer.parts or (answer,):
            _explain(part)
    if answer.finished and not answer.passed:
        return FAILED
    return 0 if answer.finished else UNFINISHED


def _explain(answer: Verification) -> None:
    """Print the proof of a certificate's upper bound, if the kernel checks its kind."""
    from cvxleak.kernel.claims import KINDS, outline

    claim = answer.certificate
    if not answer.passed or claim is None or claim.upper is None:
        return
    if claim.kind not in KINDS:
        typer.echo(f"{claim.kind}: its rules are not those of the kernel, so there is no outline")
        return
    typer.echo(outline(claim.to_dict()))


def _claim(answer: Verification) -> str:
    """Say what a certificate is about and what was found."""
    claim = answer.certificate
    if not answer.passed or claim is None:
        return answer.reason.removeprefix("not confirmed: ")  # which the verdict says
    about = f"{claim.kind}, {answer.about}" if answer.about else claim.kind
    return f"{about}: {claim.lower!r} to {claim.upper!r} {claim.unit}, {answer.reason}"
