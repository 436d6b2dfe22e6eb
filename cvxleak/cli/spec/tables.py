"""[table]: which counts are published, of which people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from cvxleak import tables
from cvxleak.cli.spec.section import Label, Section
from cvxleak.core.errors import ValidationError

__all__ = ["CountTable"]


class CountTable(Section):
    """[table]: counts and margins of people, read from them, from counts, or only described."""

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
    known_people: int | None = None

    @model_validator(mode="after")
    def _one_source(self) -> CountTable:
        sources = (self.microdata, self.counts, self.people, self.categories)
        given = sum(source is not None for source in sources[:3])
        if given > 1 or (not given and (self.published is None or self.categories is not None)):
            raise ValueError(
                "either microdata or counts or people is needed, and not both; or published alone"
            )
        return self

    def table(self, file: Callable[[str], Path]) -> tables.Table:
        """Return the table."""
        zeros = [tuple(cell) for cell in self.zeros]
        shape: dict[str, Any] = {"margins": self.margins, "zeros": zeros}
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
        if self.people is None:
            if self.margins is not True:
                raise ValidationError(
                    "margins: not allowed with published alone; they are those of the file"
                )
            return tables.Table.from_published(
                file(self.published or ""), zeros=zeros, outside=self.outside
            )
        if self.categories is None:
            raise ValidationError("categories: is missing; people needs it")
        return tables.Table(
            self.categories, self.people, outside=self.outside, columns=self.columns, **shape
        )
