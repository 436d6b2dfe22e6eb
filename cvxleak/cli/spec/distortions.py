"""[distortion]: what an error costs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from cvxleak.cli.spec.section import Section, numbers
from cvxleak.model import Distortion

__all__ = ["Cost", "DistortionMatrix"]

Labels = tuple[Hashable, ...]


class Hamming(Section):
    """1 for a wrong output, 0 for the right one."""

    kind: Literal["hamming"]

    def of(self, values: Labels, outputs: Labels) -> Distortion:
        """Return the cost of each output for each value."""
        return Distortion.hamming(values, outputs)


class Absolute(Section):
    """|value - output|."""

    kind: Literal["absolute"]

    def of(self, values: Labels, outputs: Labels) -> Distortion:
        """Return the cost of each output for each value."""
        return Distortion.absolute(numbers(values), numbers(outputs))


class Squared(Section):
    """(value - output)^2."""

    kind: Literal["squared"]

    def of(self, values: Labels, outputs: Labels) -> Distortion:
        """Return the cost of each output for each value."""
        return Distortion.squared(numbers(values), numbers(outputs))


class DistortionMatrix(Section):
    """A CSV file of costs: rows are values of the query, columns outputs."""

    kind: Literal["matrix"]
    file: str


Cost = Hamming | Absolute | Squared | DistortionMatrix
