"""[query] and [space]: what is asked of the dataset."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cvxleak import model, queries
from cvxleak.cli.spec.section import Label, Section

__all__ = ["Query", "Space"]


class Count(Section):
    """Number of ones among the records."""

    kind: Literal["count"]
    records: int

    def query(self) -> model.Query:
        """Return the query."""
        return queries.count(self.records)


class Parity(Section):
    """Number of ones, modulo 2."""

    kind: Literal["parity"]
    records: int

    def query(self) -> model.Query:
        """Return the query."""
        return queries.parity(self.records)


class ModularSum(Section):
    """Number of ones, modulo `modulus`."""

    kind: Literal["modular_sum"]
    records: int
    modulus: int

    def query(self) -> model.Query:
        """Return the query."""
        return queries.modular_sum(self.records, self.modulus)


class PairSum(Section):
    """Number of pairs of ones."""

    kind: Literal["pair_sum"]
    records: int

    def query(self) -> model.Query:
        """Return the query."""
        return queries.pair_sum(self.records)


class Table(Section):
    """Any function of a small dataset: one value for every dataset, last record fastest."""

    kind: Literal["table"]
    alphabets: list[list[Label]]
    values: list[Label]

    def query(self) -> model.Query:
        """Return the query."""
        return queries.from_table(model.RecordSpace(self.alphabets), self.values)


class Histogram(Section):
    """How many records have each category: with noise, each count has its own."""

    kind: Literal["histogram"]
    records: int
    categories: int | list[Label]

    def query(self) -> model.Query:
        """Return the query."""
        return queries.histogram(self.records, self.categories)


class Crosstab(Section):
    """How many records have each pair of a row and a column, each count with its own noise."""

    kind: Literal["crosstab"]
    records: int
    rows: int | list[Label]
    columns: int | list[Label]

    def query(self) -> model.Query:
        """Return the query."""
        return queries.crosstab(self.records, self.rows, self.columns)


class Space(Section):
    """A record space: the mechanism looks at the dataset itself."""

    alphabets: list[list[Label]]

    def query(self) -> model.Query:
        """Return the query whose value is the dataset."""
        space = model.RecordSpace(self.alphabets)
        datasets = list(space.datasets()) if space.records > 1 else space.alphabets[0]
        return model.TableQuery(space, np.arange(space.size), datasets)


Query = Count | Parity | ModularSum | PairSum | Table | Histogram | Crosstab
