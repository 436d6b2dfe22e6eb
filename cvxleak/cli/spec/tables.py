"""[table]: which counts are published, of which people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from cvxleak import tables
from cvxleak.cli.spec.section import Label, Section
from cvxleak.core.errors import ValidationError

__all__ = ["CountTable"]


class CountTable(Section):
    """[table]: counts and margins of people, read from them, from counts, or only described."""

    either: ClassVar[tuple[str, ...]] = ("microdata", "counts", "people")

    microdata: str | None = None
    counts: str | None = None
    people: int | None = None
    rows: list[str] | None = None
    columns: list[str] = Field(default=[])
    categories: dict[str, list[Label]] | None = None
    missing: Literal["refuse", "category", "zero"] = "refuse"
    margins: bool | list[list[str]] = True
    zeros: list[list[Label]] = Field(default=[])
    outside: bool = False
    published: str | None = None

    def table(self, file: Callable[[str], Path]) -> tables.Table:
        """Return the table."""
        shape = {"margins": self.margins, "zeros": [tuple(cell) for cell in self.zeros]}
        if self.microdata is not None:
            if self.rows is None or self.outside:
                raise ValidationError(
                    "rows: is missing; microdata needs it"
                    if self.rows is None
                    else "outside: not allowed with microdata; it needs people"
                )
            return tables.Table.from_microdata(
                file(self.microdata),
                self.rows,
                self.columns,
                categories=self.categories,
                missing=self.missing,
                **shape,
            )
        for name in ("rows", "categories") if self.counts is not None else ("rows",):
            if getattr(self, name) is not None:
                raise ValidationError(f"{name}: allowed with microdata only")
        if self.counts is not None:
            return tables.Table.from_counts(
                file(self.counts), outside=self.outside, missing=self.missing, **shape
            )
        if self.missing != "refuse":
            raise ValidationError("missing: allowed with microdata or counts only")
        if self.categories is None:
            raise ValidationError("categories: is missing; people needs it")
        return tables.Table(
            self.categories, self.people, outside=self.outside, columns=self.columns, **shape
        )
