"""[sources]: what is known about the distribution of a record, if it is not known exactly."""

from __future__ import annotations

from typing import ClassVar, Literal

from cvxleak.cli.spec.section import Number, Section

__all__ = ["Box", "Laws", "Polytope", "Sample", "Sources"]


class Laws(Section):
    """One of these distributions: a list of probabilities for each, or a row of a CSV file."""

    either: ClassVar[tuple[str, ...]] = ("laws", "file")

    kind: Literal["laws"]
    laws: list[list[Number]] | None = None
    file: str | None = None
    source: str | None = None


class Sample(Section):
    """What a sample does not rule out: an interval around each frequency."""

    either: ClassVar[tuple[str, ...]] = ("counts", "file")

    kind: Literal["sample"]
    counts: dict[str, int] | None = None
    file: str | None = None
    level: Number = 0.95
    method: Literal["clopper-pearson", "dirichlet"] = "clopper-pearson"
    pseudocount: Number = 0.5
    source: str | None = None


class Polytope(Section):
    """All distributions p with matrix p <= bound."""

    kind: Literal["polytope"]
    matrix: list[list[Number]]
    bound: list[Number]
    source: str | None = None


class Box(Section):
    """All distributions p with lower <= p <= upper."""

    kind: Literal["box"]
    lower: list[Number]
    upper: list[Number]
    source: str | None = None


Sources = Laws | Sample | Polytope | Box
