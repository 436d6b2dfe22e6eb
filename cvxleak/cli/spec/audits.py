"""[adversary] and [audit]: against whom, and about whom."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cvxleak.cli.spec.section import Number, Section

__all__ = ["Adversary", "Audit"]


class Adversary(Section):
    """Least entropies of the adversaries' beliefs about the dataset."""

    entropy_floors: list[Number] = Field(default=[0.0], min_length=1)
    unit: Literal["nats", "bits"] | None = None


class Audit(Section):
    """Whose leakage is asked for: the worst record if nothing is said."""

    records: list[int] | None = Field(default=None, min_length=1)
    group_sizes: list[int] = Field(default=[1], min_length=1)
