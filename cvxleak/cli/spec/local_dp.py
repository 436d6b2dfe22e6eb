"""[local_dp]: how useful, or how private, a channel has to be for every source."""

from __future__ import annotations

from typing import ClassVar, Literal

from cvxleak.cli.spec.section import Number, Section

__all__ = ["LocalDP"]


class LocalDP(Section):
    """A budget of distortion under the worst source, or one of privacy."""

    either: ClassVar[tuple[str, ...]] = ("distortion_budget", "epsilon")

    distortion_budget: Number | None = None
    epsilon: Number | None = None
    delta: Number = 0.0
    unit: Literal["nats", "bits"] | None = None
