"""[envelope]: at which probabilities, and at which levels of leakage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, FiniteFloat

from cvxleak.cli.spec.section import Section

__all__ = ["Envelope"]


class Envelope(Section):
    """Where the PML envelope, and its inverse, are wanted."""

    delta: list[FiniteFloat] = Field(default=[])
    epsilon: list[FiniteFloat] = Field(default=[])
    unit: Literal["nats", "bits"] | None = None
