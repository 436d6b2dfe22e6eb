"""``cvxleak reproduce``: the papers' figures and tables, computed again and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.cli_errors import complaining

if TYPE_CHECKING:
    from rich.table import Table

    from cvxleak.papers.gallery import Item, Reproduction

__all__ = ["reproduce"]


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ITEM", help="Items to compute, such as leakage-table-3."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Compute all items.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the items and exit.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for numbers (JSON) and pictures (PNG, SVG)."),
    ] = None,
) -> None:
    """Recompute the papers' figures and tables and compare them.

    The exit code is 1 if a printed number is neither reproduced nor on the list of errata.
    """
    with complaining():
        from rich.console import Console

        from cvxleak.core.errors import ValidationError
        from cvxleak.papers.gallery import ITEMS

        console = Console()
        if listing:
            console.print(_list(list(ITEMS.values())))
            return
        if bool(names) == everything:
            found = f"{names[0]} and --all" if names else "neither"
            raise ValidationError(f"found {found}; name items, or take --all (--list names them)")
        chosen = _chosen(names or list(ITEMS))
        if out is not None:
            _make(out)
        unexplained = 0
        for item in chosen:
            found = item.run()
            console.print(f"[bold]{item.name}[/bold]: {item.title}", highlight=False)
            if names:
                console.print(_pairs(found))
            if item.note and names:
                console.print(item.note, highlight=False)
            console.print(_summary(found), highlight=False)
            if out is not None:
                for path in found.save(out):
                    console.print(f"  {path}", highlight=False, soft_wrap=True)
            unexplained += not found.explained
        if unexplained:
            raise typer.Exit(1)


def _chosen(names: list[str]) -> list[Item]:
    """Find all items before any of them is computed."""
    from cvxleak.papers.gallery.registry import find

    return [find(name) for name in names]


def _make(folder: Path) -> None:
    from cvxleak.core.errors import ValidationError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValidationError(f"--out: cannot make {folder}: {error.strerror}") from error


def _list(items: list[Item]) -> Table:
    from rich.table import Table

    table = Table(box=None)
    for heading in ("item", "what"):
        table.add_column(heading, overflow="fold")
    for item in items:
        table.add_row(item.name, item.title + (" (slow)" if item.slow else ""))
    return table


def _pairs(found: Reproduction) -> Table:
    from rich.table import Table

    table = Table(box=None)
    table.add_column("", overflow="fold")
    for heading in ("computed", "compared with"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for pair in found.pairs:
        table.add_row(
            pair.name,
            f"{pair.computed:.7g}",
            pair.numeral or f"{pair.printed:.7g}",
            "ok" if pair.agrees else pair.erratum or "NOT EXPLAINED",
        )
    return table


def _summary(found: Reproduction) -> str:
    agree = sum(pair.agrees for pair in found.pairs)
    errata = sum(pair.explained and not pair.agrees for pair in found.pairs)
    text = f"  {agree} of {len(found.pairs)} agree"
    if errata:
        text += f", {errata} on the errata page"
    if not found.explained:
        text += f", {len(found.pairs) - agree - errata} NOT EXPLAINED"
    return f"{text}; {found.seconds:.1f} s"
