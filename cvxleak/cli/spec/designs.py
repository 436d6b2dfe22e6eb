"""[design]: which channel is looked for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cvxleak.cli.spec.section import Label, Number, Section

__all__ = ["Design"]


class Design(Section):
    """What is minimized, within which budget, and against whom."""

    minimize: Literal["leakage", "distortion"]
    budget: Number
    entropy_floor: Number | None = None
    unit: Literal["nats", "bits"] | None = None
    objective: Literal["record", "group", "total"] = "record"
    size: int = 1
    outputs: list[Label] | None = Field(default=None, min_length=1)
    sources: list[list[Number]] | None = Field(default=None, min_length=1)
    priors: list[list[Number]] | None = Field(default=None, min_length=1)
    rows: Literal["auto", "orbits", "datasets", "query"] = "auto"
