"""``cvxleak desk``: a ledger of releases to several parties who may collude."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvxleak.cli.complaints import complaining, place
from cvxleak.cli.documents import check_targets, report_document
from cvxleak.cli.options import Json, SpecPath, Unit, Units

if TYPE_CHECKING:
    from cvxleak.cli.given import Given
    from cvxleak.model import Channel, Distortion, Prior

__all__ = ["desk"]

desk = typer.Typer(
    help="Release data to several parties who may collude, within budgets, on one ledger.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger, one SQLite file.")]


@desk.command()
def init(ledger: LedgerPath, spec: SpecPath, units: Unit = Units.nats) -> None:
    """Make a new ledger from the [prior] and the [desk] of a spec."""
    with complaining():
        from cvxleak.cli.given import Given
        from cvxleak.desk import ReleaseDesk
        from cvxleak.result import unit_scale

        given = Given(spec)
        given.needs("desk init", "prior", "desk")
        budgets = given.spec.desk
        assert budgets is not None
        scale = unit_scale(budgets.unit or units.value)
        epsilon = budgets.epsilon
        prior = _model(given)
        with given.at("desk"):
            ReleaseDesk.create(
                ledger,
                prior,
                epsilon={name: scale * e for name, e in epsilon.items()}
                if isinstance(epsilon, dict)
                else scale * epsilon,
                delta=scale * budgets.delta,
                coalitions={
                    tuple(group.parties): scale * group.budget for group in budgets.coalitions
                },
                mode=budgets.mode,
            )
        typer.echo(f"{ledger}: a new ledger about {len(prior)} values, mode {budgets.mode}")


@desk.command()
def request(
    ledger: LedgerPath,
    party: Annotated[str, typer.Option(metavar="NAME", help="Who asks.")],
    wanted: Annotated[
        Path | None,
        typer.Option(
            "--request",
            metavar="CSV",
            help="p(r|x): a row for each value of the data, a column for each r. The data itself "
            "if left out.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="E", help="What the party may learn in all; the ledger's if left out."
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(metavar="D", help="What everybody may learn; the ledger's if left out."),
    ] = None,
    distortion: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="d(r, released r); 1 for every wrong one if left out."),
    ] = None,
    units: Unit = Units.nats,
    json_path: Json = None,
) -> None:
    """Answer a request. The true data is read from standard input, and kept nowhere."""
    with complaining():
        from cvxleak._files import label_from_text
        from cvxleak.desk import ReleaseDesk
        from cvxleak.result import unit_scale

        check_targets(ledger, {"--json": json_path})
        counter = ReleaseDesk(ledger)
        channel, cost = _tables(wanted, distortion)
        scale = unit_scale(units.value)
        release = counter.request(
            party,
            channel,
            None if epsilon is None else scale * epsilon,
            None if delta is None else scale * delta,
            x=label_from_text(_secret()),
            distortion=cost,
        )
        lower, upper = release.distortion
        body = {
            "number": release.number,
            "party": party,
            "output": release.output,
            "expected_distortion": {"lower": lower, "upper": upper},
            "copy_of": release.copy_of,
        }
        text = [f"release {release.number} to {party}: {release.output}"]
        text.append(f"expected distortion {upper:.6g}, at least {lower:.6g} within the budgets")
        if release.copy_of is not None:
            text.append(f"the same as release {release.copy_of}: for who has that one, no news")
        _publish("desk request", ledger, body, text, json_path)


@desk.command()
def report(ledger: LedgerPath, units: Unit = Units.nats, json_path: Json = None) -> None:
    """Say what each party and each coalition may have learned so far."""
    with complaining():
        from cvxleak.desk import ReleaseDesk

        check_targets(ledger, {"--json": json_path})
        found = ReleaseDesk(ledger).report().to(units.value)
        _publish("desk report", ledger, found.to_dict(), str(found).splitlines(), json_path)


@desk.command()
def verify(ledger: LedgerPath) -> None:
    """Recompute the ledger from its first row on: PASS (exit code 0) or FAIL (1)."""
    with complaining():
        from cvxleak.desk import ReleaseDesk

        counter = ReleaseDesk(ledger)
        answer = counter.verify()
        for complaint in answer.complaints:
            typer.echo(f"FAIL  {complaint}")
        if not answer.passed:
            raise typer.Exit(1)
        count = len(counter.releases())
        typer.echo(f"PASS  {count} releases, and each kept its budgets")


def _model(given: Given) -> Prior:
    """Return the law of [prior], its labels read as in a table."""
    from cvxleak._files import label_from_text
    from cvxleak.cli.laws import prior_counts
    from cvxleak.model import Prior

    counts = prior_counts(given)
    with given.at("prior"):
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
    """Read the data from standard input, which no list of processes and no history shows."""
    if sys.stdin.isatty():
        return typer.prompt("True value", hide_input=True, err=True).strip()
    return sys.stdin.readline().strip()


def _publish(
    command: str, ledger: Path, body: dict[str, Any], lines: list[str], json_path: str | None
) -> None:
    from cvxleak._files import write_atomic

    document = report_document(body, command=command, spec=ledger.name, sha256="", files={})
    for key in ("spec", "spec_sha256", "files_sha256"):
        document.pop(key)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if json_path == "-":
        typer.echo(text, nl=False)
        return
    if json_path is not None:
        write_atomic(json_path, text)
    for line in lines:
        typer.echo(line)
