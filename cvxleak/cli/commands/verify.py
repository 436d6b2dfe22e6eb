"""``cvxleak verify``: check a certificate, without CVXPY and without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.complaints import complaining

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cvxleak.certificates import Verification

__all__ = ["verify"]

UNFINISHED = 3
"""Exit code of a check that a time limit ended."""


def verify(
    path: Annotated[
        Path, typer.Argument(metavar="CERT", help="What --certificate or .save() wrote.")
    ],
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds; what is not checked by then is not confirmed (exit code 3)."),
    ] = None,
    second: Annotated[
        bool,
        typer.Option(
            "--second",
            help="Run the second checker (cvxleak/check.py) as well; both have to agree.",
        ),
    ] = False,
) -> None:
    """Check a certificate: PASS (exit code 0), FAIL (1), or not confirmed in the time given (3)."""
    with complaining():
        from rich.console import Console

        from cvxleak import certificates
        from cvxleak._validation import real_number
        from cvxleak.certificates.format import read_json
        from cvxleak.cli.watching import Display
        from cvxleak.errors import CertificateError

        if time_limit is not None:
            real_number(time_limit, "--time-limit", 0.0)
        try:
            content = read_json(path)
            if not isinstance(content, dict):
                raise CertificateError("not a cvxleak certificate")
        except CertificateError as error:
            typer.echo(f"FAIL  {error}")
            raise typer.Exit(1) from None
        with Display(Console(stderr=True)) as watch:
            watch.begin(f"checking {path}")
            answer = certificates.verify(content, time_limit=time_limit)
        several = len(answer.parts)
        for place, part in enumerate(answer.parts, start=1):
            where = f"{place} of {several}: " if several > 1 else ""
            typer.echo(f"{_word(part)}  {where}{_claim(part)}")
        if several != 1:
            typer.echo(f"{_word(answer)}  {_claim(answer)}")
        if second and not _agree(path, answer.parts or [answer]):
            raise typer.Exit(1)
        if not answer.passed:
            raise typer.Exit(1 if answer.finished else UNFINISHED)


def _agree(path: Path, parts: Sequence[Verification]) -> bool:
    """Report what the second checker says; return whether it contradicts the first nowhere.

    A kind or proof that it does not know is no contradiction, nor is a check that the time ended.
    """
    from cvxleak import check

    verdicts = check.check_file(path)
    agreed = len(verdicts) == len(parts)
    for verdict, part in zip(verdicts, parts, strict=agreed):
        typer.echo(f"second checker: {check.WORDS[verdict.code]}  {verdict.kind}: {verdict.text}")
        both = verdict.code != check.UNKNOWN and part.finished
        agreed = agreed and (not both or part.passed == (verdict.code == check.PROVED))
    if not agreed:
        typer.echo("ERROR  the two checkers disagree: at least one of them is wrong")
    return agreed


def _word(answer: Verification) -> str:
    return "PASS" if answer.passed else "FAIL" if answer.finished else "NOT CONFIRMED"


def _claim(answer: Verification) -> str:
    """Say what a certificate is about and what was found."""
    claim = answer.certificate
    if not answer.passed or claim is None:
        return answer.reason.removeprefix("not confirmed: ")  # which `_word` says
    about = f"{claim.kind}, {answer.about}" if answer.about else claim.kind
    return f"{about}: {claim.lower!r} to {claim.upper!r} {claim.unit}, {answer.reason}"
