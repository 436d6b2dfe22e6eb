"""[local_dp]: how useful, or how private, a channel has to be for every source."""

from __future__ import annotations

from typing import Literal

from pydantic import FiniteFloat, model_validator

from cvxleak.cli.spec.section import Section

__all__ = ["LocalDP"]


class LocalDP(Section):
    """A budget of distortion under the worst source, or one of privacy."""

    distortion_budget: FiniteFloat | None = None
    epsilon: FiniteFloat | None = None
    delta: FiniteFloat = 0.0
    unit: Literal["nats", "bits"] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> LocalDP:
        if (self.distortion_budget is None) == (self.epsilon is None):
            raise ValueError("either distortion_budget or epsilon is needed, and not both")
        return self
