"""``cvxleak verify``: check a certificate, without CVXPY and without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.complaints import complaining

if TYPE_CHECKING:
    from cvxleak.certificates import Verification

__all__ = ["verify"]


def verify(
    path: Annotated[
        Path, typer.Argument(metavar="CERT", help="What --certificate or .save() wrote.")
    ],
) -> None:
    """Check a certificate: PASS (exit code 0) or FAIL (1)."""
    with complaining():
        from rich.console import Console

        from cvxleak import certificates
        from cvxleak.cli.watching import Display
        from cvxleak.errors import CertificateError

        try:
            members = certificates.read_certificates(path)
        except CertificateError as error:
            typer.echo(f"FAIL  {error}")
            raise typer.Exit(1) from None
        several = len(members) > 1
        answers = []
        for place, member in enumerate(members, start=1):
            where = f"{place} of {len(members)}: " if several else ""
            with Display(Console(stderr=True)) as watch:
                watch.begin(f"checking {where}{path}")
                answers.append(certificates.verify(member))
            typer.echo(f"{_word(answers[-1])}  {where}{_claim(answers[-1])}")
        answer = certificates.Verification.of_parts(answers)
        if several:
            typer.echo(f"{_word(answer)}  {answer.reason}")
        if not answer.passed:
            raise typer.Exit(1)


def _word(answer: Verification) -> str:
    return "PASS" if answer.passed else "FAIL"


def _claim(answer: Verification) -> str:
    """Say what a certificate is about and what was found."""
    claim = answer.certificate
    if not answer.passed or claim is None:
        return answer.reason
    about = f"{claim.kind}, {answer.about}" if answer.about else claim.kind
    return f"{about}: {claim.lower!r} to {claim.upper!r} {claim.unit}, {answer.reason}"
