"""[prior]: the law of a record."""

from __future__ import annotations

from typing import ClassVar

from cvxleak.cli.spec.section import Number, Section

__all__ = ["Source"]


class Source(Section):
    """The law of the one record of a local mechanism, as counts or frequencies."""

    either: ClassVar[tuple[str, ...]] = ("counts", "file")

    counts: dict[str, Number] | None = None
    file: str | None = None
    source: str | None = None
