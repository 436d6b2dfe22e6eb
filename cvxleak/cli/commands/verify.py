"""``cvxleak verify``: check certificates, without CVXPY and without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.cli_errors import complaining
from cvxleak.cli.options import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cvxleak.check import Verdict
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
    second: Annotated[
        bool,
        typer.Option(
            "--second",
            help="Also run the second checker (cvxleak/check.py); the two must agree.",
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
            codes.add(_check(path, time_limit, second))
        for code in (FAILED, UNFINISHED):
            if code in codes:
                raise typer.Exit(code)


def _check(path: Path, time_limit: float | None, second: bool) -> int:
    """Print what the checkers say of one file, and return its exit code."""
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
    finished = answer.finished
    if second:
        verdicts = _second(path, time_limit)
        if isinstance(verdicts, str):
            typer.echo(f"second checker: NOT CONFIRMED  {verdicts}")
            finished = False
        elif not _agree(verdicts, answer.parts or [answer]):
            return FAILED
    if answer.finished and not answer.passed:
        return FAILED
    return 0 if finished else UNFINISHED


def _second(path: Path, time_limit: float | None) -> list[Verdict] | str:
    """Return what the second checker says, or why it said nothing in the time given."""
    from cvxleak import check
    from cvxleak.proofs.timed import run_within

    if time_limit is None:
        return check.check_file(path)
    return run_within(check.check_file, path, time_limit)


def _agree(verdicts: list[Verdict], parts: Sequence[Verification]) -> bool:
    """Report what the second checker says; return whether it contradicts the first nowhere.

    A kind or proof that it does not know is no contradiction, nor is a check that the time ended.
    """
    from cvxleak import check

    agreed = len(verdicts) == len(parts)
    for verdict, part in zip(verdicts, parts, strict=agreed):
        typer.echo(f"second checker: {check.WORDS[verdict.code]}  {verdict.kind}: {verdict.text}")
        both = verdict.code != check.UNKNOWN and part.finished
        agreed = agreed and (not both or part.passed == (verdict.code == check.PROVED))
    if not agreed:
        typer.echo("ERROR  the two checkers disagree: at least one of them is wrong")
    return agreed


def _claim(answer: Verification) -> str:
    """Say what a certificate is about and what was found."""
    claim = answer.certificate
    if not answer.passed or claim is None:
        return answer.reason.removeprefix("not confirmed: ")  # which the verdict says
    about = f"{claim.kind}, {answer.about}" if answer.about else claim.kind
    return f"{about}: {claim.lower!r} to {claim.upper!r} {claim.unit}, {answer.reason}"
