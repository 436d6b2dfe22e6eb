"""The commands. Each imports what it needs when it runs: ``--help`` and ``verify`` are light.

Exit codes: 0, done; 1, a certificate that does not hold; 2, wrong usage or input; 130, stopped.
"""

from __future__ import annotations

import enum
import errno
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvxleak._version import __version__
from cvxleak.errors import CvxleakError, ValidationError

if TYPE_CHECKING:
    from rich.console import Console

    from cvxleak.certificates import Verification
    from cvxleak.cli.building import Task
    from cvxleak.report import Report

__all__ = ["app", "main"]

app = typer.Typer(
    help="How much a privacy mechanism tells about one person: a bracket that is proved.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


class Units(enum.StrEnum):
    """Units of information."""

    nats = "nats"
    bits = "bits"


SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="What to audit, a TOML file.")]
Unit = Annotated[
    Units, typer.Option("--units", help="Unit of information, for inputs and outputs.")
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="PATH|-", help="Write the report as JSON; - prints that alone."),
]
Proof = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="PATH", help="Write the proof, for cvxleak verify."),
]


def main() -> None:
    """Run the command line (the console script ``cvxleak``)."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal without ≥ gets a ? rather than a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="cvxleak")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cvxleak {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def audit(
    spec: SpecFile,
    entropy_floor: Annotated[
        list[float] | None,
        typer.Option(
            metavar="B",
            help="Least entropy of the adversary's belief about the dataset, in --units; may be "
            "repeated, and replaces the floors in the spec.",
        ),
    ] = None,
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Seconds for all searches together, with the proofs of what they find.",
        ),
    ] = 60.0,
    tol: Annotated[
        float, typer.Option(metavar="T", help="Relative gap between the ends to reach.")
    ] = 1e-4,
) -> None:
    """Audit a mechanism: what one output tells, by every measure."""
    with _errors():
        from cvxleak._validation import real_number
        from cvxleak.cli.building import load_task
        from cvxleak.cli.documents import report_document
        from cvxleak.cli.watching import Interruptible
        from cvxleak.report import audit_report, check_floors
        from cvxleak.result import unit_scale

        real_number(tol, "--tol", 0.0, 1.0, open_high=True)
        real_number(time_limit, "--time-limit", 0.0)
        _check_targets(spec, json_path, certificate)
        task = load_task(spec)
        adversary = task.spec.adversary
        if entropy_floor:
            floors = entropy_floor
            with _at("--entropy-floor"):
                check_floors(task.mechanism, floors, units.value)
        else:
            unit = adversary.unit or units.value
            with _at(f"{spec}: adversary.entropy_floors"):
                check_floors(task.mechanism, adversary.entropy_floors, unit)
            factor = unit_scale(unit) / unit_scale(units.value)
            floors = [factor * floor for floor in adversary.entropy_floors]
        with Interruptible(_console(stderr=True), units.value) as watch:
            report = audit_report(
                task.mechanism,
                floors,
                unit=units.value,
                records=task.spec.audit.records,
                group_sizes=task.spec.audit.group_sizes,
                prior=task.prior,
                distortion=task.distortion,
                tol=tol,
                time_limit=time_limit,
                watch=watch,
            )
        document = report_document(
            report.to_dict(),
            command="audit",
            spec=task.name,
            sha256=task.sha256,
            files=task.files,
        )
        _write(report, document, json_path, certificate, _heading(task))


@app.command()
def capacity(
    channel: Annotated[
        Path,
        typer.Argument(metavar="CHANNEL", help="CSV file, a row of probabilities for each input."),
    ],
    units: Unit = Units.nats,
    json_path: Json = None,
    certificate: Proof = None,
    tol: Annotated[
        float, typer.Option(metavar="T", help="Gap between the ends to reach, in nats.")
    ] = 1e-9,
) -> None:
    """Compute the capacity of a channel, with a proof."""
    with _errors():
        from cvxleak._validation import real_number
        from cvxleak.cli.building import read_file
        from cvxleak.cli.documents import report_document
        from cvxleak.cli.watching import Display
        from cvxleak.model import Channel
        from cvxleak.report import capacity_report

        real_number(tol, "--tol", 0.0, 1.0, open_high=True)
        _check_targets(channel, json_path, certificate)
        data = read_file(channel)
        with _at(str(channel)):
            given = Channel.from_csv(channel)
        with Display(_console(stderr=True), units.value) as watch:
            report = capacity_report(given, unit=units.value, tol=tol, watch=watch)
        document = report_document(
            report.to_dict(),
            command="capacity",
            spec=channel.name,
            sha256=hashlib.sha256(data).hexdigest(),
            files={},
        )
        inputs, outputs = given.shape
        heading = f"{channel.name}: {_many(inputs, 'input')}, {_many(outputs, 'output')}"
        _write(report, document, json_path, certificate, [heading])


@app.command()
def verify(
    path: Annotated[
        Path, typer.Argument(metavar="CERT", help="What --certificate or .save() wrote.")
    ],
) -> None:
    """Check a certificate: PASS (exit code 0) or FAIL (1)."""
    with _errors():
        from cvxleak.certificates import Verification, read_certificates
        from cvxleak.certificates import verify as check
        from cvxleak.cli.watching import Display
        from cvxleak.errors import CertificateError

        try:
            members = read_certificates(path)
        except CertificateError as error:
            typer.echo(f"FAIL  {error}")
            raise typer.Exit(1) from None
        several = len(members) > 1
        answers = []
        for place, member in enumerate(members, start=1):
            where = f"{place} of {len(members)}: " if several else ""
            with Display(_console(stderr=True)) as watch:
                watch.begin(f"checking {where}{path}")
                answers.append(check(member))
            typer.echo(f"{_word(answers[-1])}  {where}{_claim(answers[-1])}")
        answer = Verification.of_parts(answers)
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
    about, floor = claim.kind, claim.problem.get("entropy_floor")
    if isinstance(floor, float):
        about += f" at entropy floor {floor:g}"
    return f"{about}: {claim.lower!r} to {claim.upper!r} {claim.unit}, {answer.reason}"


def _heading(task: Task) -> list[str]:
    """Say in a few lines what was audited."""
    space, query = task.mechanism.space, task.mechanism.query
    values = " or ".join(str(size) for size in sorted(set(space.shape)))
    steps = [f"{_many(space.records, 'record')} of {values} values"]
    if task.spec.query is not None:
        steps.append(f"{task.spec.query.kind} ({_many(len(query.values), 'value')})")
    steps.append(f"{task.spec.mechanism.kind} ({_many(len(task.mechanism.outputs), 'output')})")
    lines = [task.spec.title or task.name, " -> ".join(steps)]
    if task.spec.prior is not None and task.spec.prior.source is not None:
        lines.append(f"Prior: {task.spec.prior.source}")
    return lines


def _write(
    report: Report,
    document: dict[str, Any],
    json_path: str | None,
    certificate: Path | None,
    heading: list[str],
) -> None:
    """Print the report and write the files that were asked for, each all of it or nothing."""
    from cvxleak._files import write_atomic
    from cvxleak.certificates import save_certificates
    from cvxleak.cli.rendering import render

    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if certificate is not None:
        save_certificates(report.certificates(), certificate)
    if json_path == "-":
        typer.echo(text, nl=False)
        return
    if json_path is not None:
        write_atomic(json_path, text)
    render(report, _console(), heading)


def _check_targets(source: Path, json_path: str | None, certificate: Path | None) -> None:
    """See that the files can be written, and that none overwrites another or the source."""
    from cvxleak.cli.documents import check_target

    taken = {source.resolve(): os.fspath(source)}
    targets = {"--json": None if json_path == "-" else json_path, "--certificate": certificate}
    for option, path in targets.items():
        if path is None:
            continue
        check_target(path, option)
        place = Path(path).resolve()
        if place in taken and (place.is_file() or not place.exists()):
            raise ValidationError(f"{option}: {taken[place]} is taken; another path is needed")
        taken[place] = option


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Name the place of an error in the user's terms instead of the library's argument."""
    try:
        yield
    except CvxleakError as error:
        raise ValidationError(f"{where}: {error.detail}") from error


@contextmanager
def _errors() -> Iterator[None]:
    """Turn the library's errors into one message on standard error and exit code 2."""
    try:
        yield
        # Here, where a full disk is still an error that can be told, and not at the exit.
        sys.stdout.flush()
    except CvxleakError as error:
        message = error.detail if error.argument == "path" else str(error)
        for line in message.splitlines():
            typer.echo(f"cvxleak: {line}", err=True)
        raise typer.Exit(2) from None
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # somebody had enough, as in `cvxleak audit ... | head`: no message
        typer.echo(f"cvxleak: the output cannot be written: {error.strerror}", err=True)
        # What is still buffered cannot be written either: Python must not try again at its exit.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("cvxleak: stopped", err=True)
        raise typer.Exit(130) from None


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
