"""[query] and [space]: what is asked of the dataset."""

from __future__ import annotations

from typing import Literal

from cvxleak.cli.spec.section import Label, Section

__all__ = ["Count", "ModularSum", "PairSum", "Parity", "Query", "Space", "Table"]


class Count(Section):
    """Number of ones among the records."""

    kind: Literal["count"]
    records: int


class Parity(Section):
    """Number of ones, modulo 2."""

    kind: Literal["parity"]
    records: int


class ModularSum(Section):
    """Number of ones, modulo `modulus`."""

    kind: Literal["modular_sum"]
    records: int
    modulus: int


class PairSum(Section):
    """Number of pairs of ones."""

    kind: Literal["pair_sum"]
    records: int


class Table(Section):
    """Any function of a small dataset: one value for every dataset, last record fastest."""

    kind: Literal["table"]
    alphabets: list[list[Label]]
    values: list[Label]


class Space(Section):
    """A record space: the mechanism looks at the dataset itself."""

    alphabets: list[list[Label]]


Query = Count | Parity | ModularSum | PairSum | Table
