"""`Mechanism`: a query followed by a noise channel, the thing that is audited or designed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.errors import ValidationError
from cvxleak.model._validation import Array, whole_number
from cvxleak.model._value import Value, preview
from cvxleak.model.channel import Channel, as_channel
from cvxleak.model.lumping import Lumped
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.query import Query, TableQuery
from cvxleak.model.space import RecordSpace

__all__ = ["Mechanism"]


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Value):
    """A privacy mechanism q(y|x) = channel(y | f(x)) (DALENIUS Definition 3).

    Parameters
    ----------
    query : Query
        The function f of the dataset.
    channel : Channel or array_like
        One row per value of the query, matched by label (in the order of `query.values` if an
        array is given).

    Raises
    ------
    ValidationError
        A value of the query without a row, or a channel that is not stochastic.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.7, 0.3], [0.3, 0.7]])
    >>> mechanism.lumped(0)
    Lumped(2 values, 4 groups, 2 outputs, log|X| = 2.77259)
    >>> mechanism.lumped(0).multiplicities
    (4, 4, 4, 4)
    """

    query: Query
    channel: Channel

    def __init__(self, query: Query, channel: Channel | ArrayLike) -> None:
        if not isinstance(query, Query):
            raise ValidationError(f"query: expected a Query, found {type(query).__name__}")
        if not isinstance(channel, Channel):
            checked = as_channel(channel)
            if checked.shape[0] != len(query.values):
                raise ValidationError(
                    f"channel: found {checked.shape[0]} rows; "
                    f"the query has {len(query.values)} values"
                )
            channel = Channel(checked.matrix, query.values, checked.outputs)
        missing = tuple(value for value in query.values if value not in set(channel.inputs))
        if missing:
            raise ValidationError(
                f"channel: it has no row for the query values {preview(missing)}; "
                f"its inputs are {preview(channel.inputs)}"
            )
        object.__setattr__(self, "query", query)
        object.__setattr__(self, "channel", channel)

    @classmethod
    def from_channel(cls, space: RecordSpace, channel: Channel | ArrayLike) -> Mechanism:
        """Return the mechanism with one row per dataset, in product order (last record fastest).

        Examples
        --------
        >>> from cvxleak.model import Mechanism, RecordSpace
        >>> Mechanism.from_channel(RecordSpace.binary(1), [[0.9, 0.1], [0.1, 0.9]])
        Mechanism(1 records, 2 query values -> 2 outputs)
        """
        rows = as_channel(channel)
        if rows.shape[0] != space.size:
            raise ValidationError(
                f"channel: found {rows.shape[0]} rows; the space has {space.size} datasets"
            )
        identity = TableQuery(space, np.arange(space.size), rows.inputs)
        return cls(identity, rows)

    @property
    def space(self) -> RecordSpace:
        """The record space of the query."""
        return self.query.space

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """Output labels."""
        return self.channel.outputs

    def then(self, channel: Channel) -> Mechanism:
        """Return this mechanism with its output post-processed by `channel`."""
        return Mechanism(self.query, self.channel.then(channel))

    def product(self, other: Mechanism) -> Mechanism:
        """Return the composition: both outputs about the same dataset, with independent noise.

        The two queries may differ; then the space must be small enough to write out, unless the
        queries are equal.
        """
        if other.space != self.space:
            raise ValidationError(
                f"other: its space is {other.space!r}; it must be {self.space!r}"
            )
        if other.query == self.query:
            aligned = Channel(
                self._value_rows, self.query.values, self.channel.outputs
            ).product(Channel(other._value_rows, self.query.values, other.channel.outputs))
            return Mechanism(self.query, aligned)
        first, second = self.query.table(), other.query.table()
        width = len(other.query.values)
        pairs, inverse = np.unique(first * width + second, return_inverse=True)
        values = [(self.query.values[p // width], other.query.values[p % width]) for p in pairs]
        query = TableQuery(self.space, inverse, values)
        left = Channel(self._value_rows[pairs // width], values, self.outputs)
        right = Channel(other._value_rows[pairs % width], values, other.outputs)
        return Mechanism(query, left.product(right))

    def lumped(self, records: int | Sequence[int]) -> Lumped:
        """Return the lumped problem of one record, or of a group of records taken as one.

        Parameters
        ----------
        records : int or sequence of int
            The record's index, or distinct indices of a group.
        """
        group = self._group(records)
        rows, row_of_value = self._distinct_rows
        names: dict[int, list[Hashable]] = {}
        for place, row in enumerate(row_of_value):
            names.setdefault(int(row), []).append(self.query.values[place])
        value_index, row_index, multiplicities = [], [], []
        for a, fiber in enumerate(self.query.fibers(group)):
            counts: dict[int, int] = {}
            for place, count in fiber.items():
                row = int(row_of_value[place])
                counts[row] = counts.get(row, 0) + count
            for row, count in sorted(counts.items()):
                value_index.append(a)
                row_index.append(row)
                multiplicities.append(count)
        alphabets = [self.space.alphabets[i] for i in group]
        values = alphabets[0] if isinstance(records, int) else tuple(product(*alphabets))
        return Lumped(
            values=values,
            outputs=self.outputs,
            value_index=np.array(value_index, dtype=np.intp),
            rows=rows[row_index],
            multiplicities=tuple(multiplicities),
            contexts=tuple(tuple(names[row]) for row in row_index),
        )

    def groups(self, k: int = 1) -> list[tuple[int, ...]]:
        """Return one group of k records for each kind that can differ in leakage.

        Records that may be swapped without changing f leak the same, so one multiset of their
        classes stands for all groups made from it.
        """
        size = whole_number(k, "k", 1, self.space.records)
        parts = self.query.exchangeable()
        chosen = []
        for kinds in combinations_with_replacement(range(len(parts)), size):
            need = Counter(kinds)
            if all(len(parts[kind]) >= count for kind, count in need.items()):
                members = [parts[kind][:count] for kind, count in need.items()]
                chosen.append(tuple(sorted(i for part in members for i in part)))
        return chosen

    def expand(self, records: int | Sequence[int], weights: ArrayLike) -> Prior:
        """Return the prior on full datasets that spreads lumped weights evenly in each group."""
        lumped = self.lumped(records)
        w = np.asarray(weights, dtype=float)
        if w.shape != (len(lumped.multiplicities),):
            raise ValidationError(
                f"weights: found shape {w.shape}; {len(lumped.multiplicities)} are needed"
            )
        share = w / np.array([float(m) for m in lumped.multiplicities])
        return Prior(share[self._group_of_dataset(records)], list(self.space.datasets()))

    def lump(self, records: int | Sequence[int], prior: Prior | ArrayLike) -> Array:
        """Return the lumped weights of a prior on full datasets (product order)."""
        groups = self._group_of_dataset(records)
        p = as_prior(prior, self.space.size).probabilities
        return np.bincount(groups, weights=p, minlength=int(groups.max()) + 1)

    def to_channel(self) -> Channel:
        """Return q(y|x) with one row per dataset (small spaces only)."""
        rows = self._value_rows[self.query.table().ravel()]
        return Channel(rows, list(self.space.datasets()), self.outputs)

    def sample(
        self, dataset: Sequence[Hashable], rng: int | np.random.Generator | None = None
    ) -> Hashable:
        """Release one output for `dataset`, drawn exactly (see `Channel.sample`)."""
        return self.channel.sample(self.query(dataset), rng=rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism as plain lists, ready for JSON (floats round-trip exactly)."""
        return {"query": self.query.to_dict(), "channel": self.channel.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism that `to_dict` wrote."""
        try:
            return cls(Query.from_dict(data["query"]), Channel.from_dict(data["channel"]))
        except (KeyError, TypeError) as error:
            raise ValidationError(f"data: not a mechanism: {error}") from error

    @cached_property
    def _value_rows(self) -> Array:
        places = {label: place for place, label in enumerate(self.channel.inputs)}
        return self.channel.matrix[[places[value] for value in self.query.values]]

    @cached_property
    def _distinct_rows(self) -> tuple[Array, NDArray[np.intp]]:
        rows, inverse = np.unique(self._value_rows, axis=0, return_inverse=True)
        return rows, inverse.ravel()

    def _group(self, records: int | Sequence[int]) -> tuple[int, ...]:
        group = (records,) if isinstance(records, int) else tuple(records)
        last = self.space.records - 1
        checked = tuple(whole_number(i, "records", 0, last) for i in group)
        if not checked or len(set(checked)) != len(checked):
            raise ValidationError(f"records: found {group}; distinct indices are needed")
        return checked

    def _group_of_dataset(self, records: int | Sequence[int]) -> NDArray[np.intp]:
        group = self._group(records)
        lumped = self.lumped(records)
        row = self._distinct_rows[1][self.query.table()]
        shape = self.space.shape
        grids = np.indices(shape)
        value = np.ravel_multi_index([grids[i] for i in group], [shape[i] for i in group])
        width = len(self._distinct_rows[0])
        keys, inverse = np.unique(value.ravel() * width + row.ravel(), return_inverse=True)
        if len(keys) != len(lumped.multiplicities):
            raise ValidationError("records: the lumped problem does not match the query's table")
        return inverse.ravel()

    def __repr__(self) -> str:
        return (
            f"Mechanism({self.space.records} records, {len(self.query.values)} query values -> "
            f"{len(self.outputs)} outputs)"
        )
