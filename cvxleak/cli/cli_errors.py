"""What a user reads when something is wrong: one message, in the user's own terms."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import typer

from cvxleak.core.errors import CvxleakError, ValidationError

__all__ = ["complaining", "named", "place"]


@contextmanager
def complaining() -> Iterator[None]:
    """Turn the library's errors into one message on standard error and exit code 2.

    Every command does all its work, imports included, inside of this.
    """
    try:
        yield
        # Here, where a full disk is still an error that can be told, and not at the exit.
        sys.stdout.flush()
    except CvxleakError as error:
        message = error.detail if error.argument == "path" else str(error)
        for line in message.splitlines():
            typer.echo(f"cvxleak: {line}", err=True)
        raise typer.Exit(2) from None
    except MemoryError as error:
        # Sizes that only add up to too much; NumPy says what it could not get.
        typer.echo(f"cvxleak: too large for this machine's memory: {error}".rstrip(": "), err=True)
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


@contextmanager
def named(places: Mapping[str, str]) -> Iterator[None]:
    """Name options, or keys of a spec, instead of the library's arguments."""
    try:
        yield
    except CvxleakError as error:
        where = places.get(error.argument or "")
        if where is None:
            raise
        raise type(error)(f"{where}: {error.detail}") from error


@contextmanager
def place(where: str) -> Iterator[None]:
    """Name the place of an error (an option, a key) instead of the library's argument."""
    try:
        yield
    except CvxleakError as error:
        raise ValidationError(f"{where}: {error.detail}") from error
