"""[distortion]: what an error costs."""

from __future__ import annotations

from typing import Literal

from cvxleak.cli.spec.section import Section

__all__ = ["Absolute", "Cost", "DistortionMatrix", "Hamming", "Squared"]


class Hamming(Section):
    """1 for a wrong output, 0 for the right one."""

    kind: Literal["hamming"]


class Absolute(Section):
    """|value - output|."""

    kind: Literal["absolute"]


class Squared(Section):
    """(value - output)^2."""

    kind: Literal["squared"]


class DistortionMatrix(Section):
    """A CSV file of costs: rows are values of the query, columns outputs."""

    kind: Literal["matrix"]
    file: str


Cost = Hamming | Absolute | Squared | DistortionMatrix
