"""What several commands take: each option is stated once, so that it reads the same everywhere."""

from __future__ import annotations

import enum
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from cvxleak.cli.cli_errors import complaining
from cvxleak.core.work import WORK_LIMIT

Choice = TypeVar("Choice", bound=enum.StrEnum)

__all__ = [
    "ChannelPaths",
    "Group",
    "Json",
    "Picture",
    "Proof",
    "Several",
    "SpecPath",
    "TimeLimit",
    "Tolerance",
    "Unit",
    "Units",
    "WorkLimit",
    "check_limits",
    "choice",
    "number",
    "whole",
]


class Group(TyperGroup):
    """Commands whose help loads no pydantic, and where Ctrl-C is one line."""

    def get_params(self, ctx: Any) -> Any:
        """Say the same of the options for completion."""
        params = super().get_params(ctx)
        for option in params:
            if option.name in ("install_completion", "show_completion"):
                option.default = False
        return params

    def get_help_option(self, ctx: Any) -> Any:
        """Say that --help is off unless given: Typer asks pydantic to convert a value of None."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command whose help has no Python types beside the names of its arguments."""
        command: Any = super().get_command(ctx, cmd_name)
        for argument in getattr(command, "params", ()):
            if argument.param_type_name == "argument":
                argument.display_type_rich = lambda ctx: None
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C is told while its arguments are read, too."""
        with complaining():
            return super().invoke(ctx)


class Several(TyperCommand):
    """A command whose repeatable options take several numbers at once: --delta 0.1 0.2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give every number that follows such an option the option's name."""
        repeatable = {
            name for option in self.params if getattr(option, "multiple", 0) for name in option.opts
        }
        spread: list[str] = []
        option = ""
        for place, arg in enumerate(args):
            if arg == "--":
                return super().parse_args(ctx, [*spread, *args[place:]])
            if arg in repeatable:
                option = arg
            elif not _is_number(arg):
                option = ""
            elif option and spread[-1] != option:
                spread.append(option)
            spread.append(arg)
        return super().parse_args(ctx, spread)


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return bool([float(part) for part in text.split("/", 1)])
    return False


def number(text: str) -> float:
    """Return the number that an option is given: a decimal, or a fraction such as 1/3."""
    from cvxleak.core.numbers import as_written  # here: it comes with NumPy, and help needs none

    try:
        return as_written(text)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"found {text!r}; a number is needed.") from error


def whole(text: str) -> int:
    """Return the whole number that an option is given."""
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"found {text!r}; a whole number is needed.") from error


def choice(words: type[Choice]) -> dict[str, Any]:
    """Return what Typer is told of an option that takes one of these words."""

    def read(text: str) -> Choice:
        try:
            return words(text)
        except ValueError as error:
            allowed = " or ".join(words)
            raise typer.BadParameter(f"found {text!r}; {allowed} is needed.") from error

    return {"parser": read, "metavar": "|".join(words), "autocompletion": lambda: list(words)}


class Units(enum.StrEnum):
    """Units of information."""

    nats = "nats"
    bits = "bits"


SpecPath = Annotated[
    Path,
    typer.Argument(metavar="SPEC", help="TOML file that describes the mechanism or the problem."),
]
Unit = Annotated[
    Units,
    typer.Option("--units", **choice(Units), help="Unit of information for input and output."),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="PATH|-", help="Write the report as JSON; - prints only the JSON."
    ),
]
Proof = Annotated[
    str | None,
    typer.Option(
        "--certificate", metavar="PATH", help="Write the certificates, for cvxleak verify."
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="S",
        help="Time limit in seconds for all searches together, with their proofs.",
    ),
]
WorkLimit = Annotated[
    float,
    typer.Option(
        parser=number,
        metavar="W",
        help="Most work of each search, in multiplications that are counted and not measured. The "
        "default takes some ten seconds of an ordinary machine.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tol",
        parser=number,
        metavar="T",
        help="Largest gap between lower and upper bound, relative to the value. Default: the "
        "problem's own.",
    ),
]
ChannelPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--channel",
        metavar="PATH",
        help="Write the channel to a .csv or .json file; may be repeated.",
    ),
]
Picture = Annotated[
    str | None,
    typer.Option("--plot", metavar="PATH", help="Draw the result to a .png, .svg or .pdf file."),
]


def check_limits(
    tol: float | None, time_limit: float | None = None, work_limit: float = WORK_LIMIT
) -> None:
    """See that --tol, --time-limit and --work-limit are numbers that mean something."""
    from cvxleak.core.validation import real_number

    if tol is not None:
        real_number(tol, "--tol", 0.0, 1.0, open_high=True)
    if time_limit is not None:
        real_number(time_limit, "--time-limit", 0.0)
    real_number(work_limit, "--work-limit", 0.0)
