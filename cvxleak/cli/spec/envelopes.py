"""[envelope]: at which probabilities, and at which levels of leakage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cvxleak.cli.spec.section import Number, Section

__all__ = ["Envelope"]


class Envelope(Section):
    """Where the PML envelope, and its inverse, are wanted."""

    delta: list[Number] = Field(default=[])
    epsilon: list[Number] = Field(default=[])
    unit: Literal["nats", "bits"] | None = None
