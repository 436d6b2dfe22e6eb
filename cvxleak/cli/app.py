"""The program: its commands, its own options, and how it starts.

Exit codes: 0, done; 1, a certificate that does not hold; 2, wrong usage or input; 3, a certificate
that was not checked in the time given; 130, stopped.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from cvxleak._version import __version__
from cvxleak.cli.commands import (
    audit,
    capacity,
    design,
    desk,
    envelope,
    explain,
    local_dp,
    reproduce,
    solve,
    survey,
    sweep,
    verify,
)
from cvxleak.cli.options import Group, Several

__all__ = ["app", "main"]

app = typer.Typer(
    cls=Group,
    help="Bound what a privacy mechanism reveals about one person, with proofs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
# In the order of --help; a command with subcommands is a Typer of its own (app.add_typer).
app.command(cls=Several)(audit.audit)
app.command(cls=Several)(explain.explain)
app.command(cls=Several)(envelope.envelope)
app.command("design")(design.design)
app.command("local-dp")(local_dp.local_dp)
app.command()(solve.solve)
app.command()(sweep.sweep)
app.command()(capacity.capacity)
app.command()(verify.verify)
app.command()(survey.randomize)
app.command()(survey.estimate)
app.add_typer(desk.desk, name="desk")
app.command()(reproduce.reproduce)


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
