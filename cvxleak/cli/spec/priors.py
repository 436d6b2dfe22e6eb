"""[prior]: the law of a record."""

from __future__ import annotations

from pydantic import FiniteFloat, model_validator

from cvxleak.cli.spec.section import Section

__all__ = ["Source"]


class Source(Section):
    """The law of the one record of a local mechanism, as counts or frequencies."""

    counts: dict[str, FiniteFloat] | None = None
    file: str | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Source:
        if (self.counts is None) == (self.file is None):
            raise ValueError("either counts or file is needed, and not both")
        return self
