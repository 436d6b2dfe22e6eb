"""[desk]: the budgets of a release desk."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cvxleak.cli.spec.section import Number, Section

__all__ = ["Coalition", "Desk"]


class Coalition(Section):
    """Parties who may pool what they got, and what they may learn together."""

    parties: list[str] = Field(min_length=2)
    budget: Number


class Desk(Section):
    """What each party, all parties together, and some coalitions may learn."""

    epsilon: Number | dict[str, Number]
    delta: Number
    unit: Literal["nats", "bits"] | None = None
    mode: Literal["ex_ante", "realized"] = "ex_ante"
    coalitions: list[Coalition] = Field(default=[])
