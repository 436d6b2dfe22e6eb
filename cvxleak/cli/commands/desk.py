"""``cvxleak desk``: a ledger of releases to several parties who may collude."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvxleak.cli.cli_errors import complaining, place
from cvxleak.cli.documents import check_targets, report_document, write_document
from cvxleak.cli.options import Group, Json, SpecPath, TimeLimit, Unit, Units, check_limits, number
from cvxleak.core.errors import CvxleakError, ValidationError
from cvxleak.core.wording import counted

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import SpecFile
    from cvxleak.desk import Release
    from cvxleak.model import Channel, Distortion, Prior

__all__ = ["desk"]

desk = typer.Typer(
    cls=Group,
    help="Release data to several parties who may collude. One ledger keeps budgets and releases.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger, an SQLite file.")]


@desk.command()
def init(ledger: LedgerPath, spec: SpecPath, units: Unit = Units.nats) -> None:
    """Create a ledger from [prior] and [desk] of a spec."""
    with complaining():
        from cvxleak.cli.spec_file import SpecFile
        from cvxleak.desk import ReleaseDesk
        from cvxleak.problem.bound import converted

        if ledger.exists():
            raise ValidationError(
                f"LEDGER: {ledger} exists already; a new ledger needs a path of its own"
            )
        spec_file = SpecFile(spec)
        spec_file.needs("desk init", "prior", "desk")
        budgets = spec_file.spec.desk
        assert budgets is not None
        unit = budgets.unit or units.value
        epsilon = budgets.epsilon
        prior = _model(spec_file)
        with spec_file.at("desk"), _in_nats(unit):
            ReleaseDesk.create(
                ledger,
                prior,
                epsilon={name: converted(e, unit) for name, e in epsilon.items()}
                if isinstance(epsilon, dict)
                else converted(epsilon, unit),
                delta=converted(budgets.delta, unit),
                coalitions={
                    tuple(group.parties): converted(group.budget, unit)
                    for group in budgets.coalitions
                },
                mode=budgets.mode,
            )
        typer.echo(f"{ledger}: new ledger, {len(prior)} values, mode {budgets.mode}")


@desk.command()
def request(
    ledger: LedgerPath,
    party: Annotated[str, typer.Option(metavar="NAME", help="The party that asks.")],
    wanted: Annotated[
        Path | None,
        typer.Option(
            "--request",
            metavar="CSV",
            help="What is asked for, p(r|x): a row for each value x of the data, a column for "
            "each r. Default: the data itself.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="E",
            help="Most that this party may learn in total. Default: the ledger's budget.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="D",
            help="Most that all parties together may learn. Default: the ledger's budget.",
        ),
    ] = None,
    distortion: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Distortion d(r, released r). Default: 1 if they differ."),
    ] = None,
    time_limit: TimeLimit = None,
    units: Unit = Units.nats,
    json_path: Json = None,
) -> None:
    """Answer a request. The true value is read from standard input and not stored."""
    with complaining():
        from cvxleak.core.tables import label_from_text
        from cvxleak.desk import ReleaseDesk
        from cvxleak.problem.bound import converted

        check_limits(0.0, time_limit)
        check_targets(ledger, {"--json": json_path})
        counter = ReleaseDesk(ledger)
        channel, cost = _tables(wanted, distortion)
        with _in_nats(units.value):
            release = counter.request(
                party,
                channel,
                None if epsilon is None else converted(epsilon, units.value),
                None if delta is None else converted(delta, units.value),
                x=label_from_text(_secret()),
                distortion=cost,
                time_limit=time_limit,
            )
        try:
            _publish("desk request", ledger, _body(release), _text(release), json_path)
            sys.stdout.flush()
        except (CvxleakError, OSError):
            typer.echo(
                f"cvxleak: release {release.number} is recorded; cvxleak desk releases {ledger} "
                "shows it",
                err=True,
            )
            raise


@desk.command()
def releases(ledger: LedgerPath, json_path: Json = None) -> None:
    """List all releases so far, first to last."""
    with complaining():
        from cvxleak.desk import ReleaseDesk

        check_targets(ledger, {"--json": json_path})
        found = ReleaseDesk(ledger).releases()
        lines = [f"{release.number}  {release.party}: {release.output}" for release in found]
        body = {"releases": [_body(release) for release in found]}
        _publish("desk releases", ledger, body, lines or ["no releases so far"], json_path)


@desk.command()
def report(ledger: LedgerPath, units: Unit = Units.nats, json_path: Json = None) -> None:
    """Report what each party and coalition may have learned so far."""
    with complaining():
        from cvxleak.desk import ReleaseDesk

        check_targets(ledger, {"--json": json_path})
        counter = ReleaseDesk(ledger)
        found, head = counter.report().to(units.value), counter.head
        lines = [*str(found).splitlines(), f"head: {head}"]
        _publish("desk report", ledger, {**found.to_dict(), "head": head}, lines, json_path)


@desk.command()
def verify(
    ledger: LedgerPath,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="The head of an earlier report: check that nothing has been removed since.",
        ),
    ] = None,
) -> None:
    """Recompute the ledger from its first row. Exit code 0: PASS; 1: FAIL."""
    with complaining():
        from cvxleak.desk import ReleaseDesk

        counter = ReleaseDesk(ledger)
        answer = counter.verify(head)
        for error in answer.errors:
            typer.echo(f"FAIL  {error}")
        if not answer.passed:
            raise typer.Exit(1)
        count = len(counter.releases())
        each = "it" if count == 1 else "each"
        typer.echo(f"PASS  {counted(count, 'release')}; {each} met its budgets")


@contextmanager
def _in_nats(unit: str) -> Iterator[None]:
    """State the unit of the budgets in a message, if they were given in bits."""
    try:
        yield
    except CvxleakError as error:
        if unit == "nats" or error.argument not in {"epsilon", "delta", "coalitions"}:
            raise
        raise type(error)(f"{error} (1 bit = 0.693147 nats)") from error


def _body(release: Release) -> dict[str, Any]:
    lower, upper = release.distortion
    return {
        "number": release.number,
        "party": release.party,
        "output": release.output,
        "expected_distortion": {"lower": lower, "upper": upper},
        "copy_of": release.copy_of,
    }


def _text(release: Release) -> list[str]:
    lower, upper = release.distortion
    text = [f"release {release.number} to {release.party}: {release.output}"]
    text.append(f"expected distortion {upper:.6g}; the least possible is at least {lower:.6g}")
    if release.copy_of is not None:
        text.append(f"repeats release {release.copy_of}; reveals nothing to those who have it")
    return text


def _model(spec_file: SpecFile) -> Prior:
    """Return the distribution in [prior], with labels read as in a table."""
    from cvxleak.cli.from_spec import prior_counts
    from cvxleak.core.tables import label_from_text
    from cvxleak.model import Prior

    counts = prior_counts(spec_file)
    with spec_file.at("prior"):
        return Prior.from_counts({label_from_text(text): n for text, n in counts.items()})


def _tables(
    wanted: Path | None, distortion: Path | None
) -> tuple[Channel | None, Distortion | None]:
    from cvxleak.model import Channel, Distortion

    channel = cost = None
    if wanted is not None:
        with place("--request"):
            channel = Channel.from_csv(wanted)
    if distortion is not None:
        with place("--distortion"):
            cost = Distortion.from_csv(distortion)
    return channel, cost


def _secret() -> str:
    """Read the data from standard input; an argument would show in process lists and histories."""
    if sys.stdin is None:
        raise ValidationError("x: standard input is closed; the true value is read from it")
    if sys.stdin.isatty():
        return typer.prompt("True value", hide_input=True, err=True).strip()
    value = sys.stdin.readline().strip()
    if not value:
        raise ValidationError("x: standard input is empty; the true value is read from it")
    return value


def _publish(
    command: str, ledger: Path, body: dict[str, Any], lines: list[str], json_path: str | None
) -> None:
    document = report_document(body, command=command, spec=ledger.name, sha256="", files={})
    for key in ("spec", "spec_sha256", "files_sha256"):
        document.pop(key)
    if write_document(document, json_path):
        for line in lines:
            typer.echo(line)
