"""`Mechanism`: a query followed by a noise channel; what audits bound and designs return."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, in_order, instance, short, whole_number
from cvxleak.core.value import Stored, check_keys, preview
from cvxleak.core.wording import counted
from cvxleak.model._groups import kinds_of_groups
from cvxleak.model._matrix import distinct_rows
from cvxleak.model.additive import AdditiveQuery
from cvxleak.model.channel import Channel, as_channel
from cvxleak.model.channel_set import ChannelSet, LumpedSet
from cvxleak.model.joint import joint_query
from cvxleak.model.lumping import Lumped
from cvxleak.model.noise import RealOutput
from cvxleak.model.noise.real_output import CutOutput, most_cells
from cvxleak.model.prior import Prior, as_prior, has_labels
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace
from cvxleak.model.table import TableQuery

__all__ = ["Mechanism"]


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Stored):
    """A privacy mechanism q(y|x) = channel(y | f(x)) (DALENIUS Definition 3).

    Parameters
    ----------
    query : Query
        The function f of the dataset.
    channel : Channel, ChannelSet, RealOutput, pandas.DataFrame or array_like
        One row per value of the query, matched by label (in the order of `query.values` if an array
        is given). A channel may have inputs in any order, and some that are not values of the
        query; the stored `channel` has exactly the rows of `query.values`, in that order. The
        inputs 0, 1, ... of a channel count as labels: pass its matrix if they are only row numbers.
        With an `AdditiveNoise` the output is the value of the query, a number, plus the noise; with
        a `BoundedDensity` it has a density that is known within bounds.

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
    noise: Channel | ChannelSet | RealOutput

    def __init__(
        self, query: Query, channel: Channel | ChannelSet | RealOutput | ArrayLike
    ) -> None:
        values = instance(query, Query, "query").values
        if isinstance(channel, RealOutput):
            self._hold(query=query, noise=channel.of_query(values))
            return
        given = channel if isinstance(channel, ChannelSet) else as_channel(channel)
        if has_labels(given if isinstance(channel, ChannelSet) else channel):
            given = given.select(values, name="channel")
        elif given.shape[0] != len(values):
            raise ValidationError(
                f"channel: found {counted(given.shape[0], 'row')}; "
                f"the query has {counted(len(values), 'value')}, {preview(values)}, and each needs "
                "a row, in this order"
            )
        elif isinstance(given, ChannelSet):
            given = ChannelSet(given.lower, given.upper, values, given.outputs)
        else:
            given = Channel(given.matrix, values, given.outputs)
        self._hold(query=query, noise=given)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.query, self.noise)

    @property
    def channel(self) -> Channel:
        """The noise channel, if it is known exactly.

        Raises
        ------
        ValidationError
            The channel is only known to lie in a set, or the outputs are not a finite set.
        """
        if isinstance(self.noise, RealOutput):
            raise ValidationError(
                f"mechanism: its output is {self.noise.described}, and this needs a matrix of "
                "probabilities; record_leakage, group_leakage, leakage_curve and balance take that "
                "output, tables.table_privacy has delta and zCDP of counts with noise, and "
                f"Mechanism(query, {self.noise.coarser}) has the cell of the output as its output, "
                "which tells less: its leakage, epsilon and delta are lower bounds"
            )
        if isinstance(self.noise, ChannelSet):
            raise ValidationError(
                "mechanism: its channel is only known to lie in a set; record_leakage, "
                "group_leakage, leakage_curve and capacity cover every channel of the set, and "
                "Mechanism(query, noise.center) is the mechanism of one of them"
            )
        return self.noise

    @classmethod
    def from_channel(cls, space: RecordSpace, channel: Channel | ArrayLike) -> Self:
        """Return the mechanism with one row per dataset.

        Parameters
        ----------
        space : RecordSpace
            The datasets.
        channel : Channel, pandas.DataFrame or array_like
            If its inputs are the datasets (tuples, or plain values for a single record), in any
            order, they are matched by label. Otherwise the rows are taken in product order (last
            record fastest).

        Raises
        ------
        ValidationError
            Another number of rows than datasets, or a channel that is not stochastic.

        Examples
        --------
        >>> from cvxleak.model import Mechanism, RecordSpace
        >>> Mechanism.from_channel(RecordSpace.binary(1), [[0.9, 0.1], [0.1, 0.9]])
        Mechanism(1 record, 2 query values -> 2 outputs)
        """
        given = as_channel(channel)
        if given.shape[0] != instance(space, RecordSpace, "space").size:
            raise ValidationError(
                f"channel: found {counted(given.shape[0], 'row')}; "
                f"the space has {counted(space.size, 'dataset')}"
            )
        labels = given.inputs
        if has_labels(channel):
            datasets = tuple(space.datasets())
            if set(labels) == set(datasets):
                labels = datasets
            elif space.records == 1 and set(labels) == set(space.alphabets[0]):
                labels = space.alphabets[0]
        return cls(TableQuery(space, np.arange(space.size), labels), given)

    @classmethod
    def from_ptable(
        cls,
        path: str | os.PathLike[str],
        query: Query | int | None = None,
        cycle: int | None = None,
    ) -> Self:
        r"""Return the mechanism of a statistical office's perturbation table, read as written.

        A table (*ptable*) of the cell key method gives the distribution of the noise for each true
        count. The file is CSV, separated by commas or semicolons, with a header. Two formats are
        accepted:

        - ``pcv, ckey, pvalue`` (the Office for National Statistics): `pvalue` is added to a count
          of `pcv` whose cell key is `ckey`. Cell keys are uniform on 0, ..., the largest key, so
          the probability of a perturbation is its share of the keys. Each key must occur exactly
          once.
        - ``i, j, p`` (the R packages ptable and cellKey, and tau-ARGUS): a count of i is published
          as j with probability p. If there is a column ``p_int_ub`` (``p_kum_o``) with the upper
          ends of the intervals of cell keys, these are the table, because they are what the
          packages look up, and p must agree with them within the digits that both print. Columns
          ``v`` (``diff``), ``p_int_lb`` (``p_kum_u``) and ``type`` are checked if present.

        A count of 0 without rows stays 0. Counts beyond the last row reuse the last rows.

        Parameters
        ----------
        path : path
            The file.
        query : Query or int, optional
            The published count, or the number of people counted; if left out, the largest count
            with rows in the table.
        cycle : int, optional
            Number of last rows that counts beyond the table use in turn: 1 for ``i, j, p``, 250 for
            a table of ``pcv`` 1 to 750 (counts of 751, 1001, ... use row 501). For a table of
            another length it must be given if larger counts occur.

        Raises
        ------
        ValidationError
            A file that cannot be read, missing or unknown columns, duplicate or missing rows, an
            entry that does not belong in its column, a published count below 0, probabilities that
            do not sum to exactly 1 (rows are not rescaled), or a query whose values are not counts.

        References
        ----------
        G. Thompson, S. Broadfoot, D. Elazar, Methodology for the automatic confidentialisation of
        statistical outputs from remote servers at the Australian Bureau of Statistics, UNECE work
        session on statistical data confidentiality, 2013. ONS, cell key perturbation, method
        specification 1.1. S. Giessing, Computational issues in the design of transition
        probabilities and disclosure risk estimation for additive noise, PSD 2016.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from cvxleak.model import Mechanism
        >>> table = "i,j,p\n1,0,1/3\n1,1,1/2\n1,3,1/6\n2,1,1/4\n2,2,1/2\n2,3,1/4\n"
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "ptable.csv")
        ...     _ = path.write_text(table)
        ...     mechanism = Mechanism.from_ptable(path, 4)
        >>> mechanism.channel.inputs, mechanism.channel.outputs
        ((0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5))
        >>> mechanism.channel.row(1).tolist()
        [1/3, 0.5, 0.0, 1/6, 0.0, 0.0]
        """
        from cvxleak.model._ptable import read_ptable

        table = read_ptable(path)
        if not isinstance(query, Query):
            n = table.last if query is None else whole_number(query, "query", 1)
            query = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n)
        return cls(query, table.channel(query.values, cycle))

    @property
    def space(self) -> RecordSpace:
        """The record space of the query."""
        return self.query.space

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """Output labels.

        Raises
        ------
        ValidationError
            The outputs are not a finite set.
        """
        return self.noise.outputs if isinstance(self.noise, ChannelSet) else self.channel.outputs

    @cached_property
    def nominal(self) -> Mechanism:
        """A mechanism with a single finite channel, for numbers that are computed, not proved.

        It is this mechanism itself; the one with the center of a set of channels; or, for a
        real-valued output, the one with its cells, fine enough that the position within a cell
        leaks less than 1e-5 nats, if possible.
        """
        if isinstance(self.noise, ChannelSet):
            return Mechanism(self.query, self.noise.center)
        if isinstance(self.noise, RealOutput):
            cells = self.standard.cells(1e-5, most_cells(self.query.values))
            return Mechanism(self.query, cells.masses)
        return self

    @cached_property
    def standard(self) -> CutOutput:
        """The real output as an audit reads it (`RealOutput.standard`).

        Raises
        ------
        ValidationError
            The outputs are a finite set.
        """
        return instance(self.noise, RealOutput, "channel").standard(self.query.values)

    def then(self, channel: Channel) -> Mechanism:
        """Return this mechanism with its output post-processed by `channel`.

        Raises
        ------
        ValidationError
            The inputs of `channel` are not the outputs of this mechanism, in the same order.
        """
        return Mechanism(self.query, self.channel.then(channel))

    def product(self, mechanism: Mechanism) -> Mechanism:
        """Return the composition: both outputs on the same dataset, with independent noise.

        The two queries may differ: two additive ones compose for any number of records, others if
        the space is small enough to write out.

        Raises
        ------
        ValidationError
            The record spaces differ, or the joint query is too large to write out.

        Examples
        --------
        >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
        >>> space = RecordSpace.binary(10)
        >>> count = Mechanism(AdditiveQuery(space, [(0, 1)] * 10), [[0.5, 0.5]] * 11)
        >>> parity = Mechanism(AdditiveQuery(space, [(0, 1)] * 10, modulus=2), [[1, 0], [0, 1]])
        >>> count.product(parity)
        Mechanism(10 records, 11 query values -> 4 outputs)
        """
        if not isinstance(mechanism, Mechanism) or mechanism.space != self.space:
            raise ValidationError(
                f"mechanism: expected a mechanism on {self.space!r}, found {short(mechanism)}"
            )
        if mechanism.query == self.query:
            return Mechanism(self.query, self.channel.product(mechanism.channel))
        query = joint_query(self.query, mechanism.query)
        sides = []
        for side, one in enumerate((self, mechanism)):
            place = {value: i for i, value in enumerate(one.query.values)}
            pairs: tuple[Any, ...] = query.values
            rows = one.channel.matrix[[place[pair[side]] for pair in pairs]]
            sides.append(Channel(rows, query.values, one.outputs))
        return Mechanism(query, sides[0].product(sides[1]))

    def lumped(self, records: int | Sequence[int]) -> Lumped:
        """Return the lumped problem of one record, or of a group of records taken together.

        Parameters
        ----------
        records : int or sequence of int
            The record's index, or distinct indices of a group.

        Raises
        ------
        ValidationError
            Not distinct indices of records, or a group with too many joint values.
        """
        return self._lumped(records, self.channel.matrix)[0]

    def lumped_set(self, records: int | Sequence[int]) -> LumpedSet:
        """Return the lumped problem of a mechanism whose channel lies in a set.

        Raises
        ------
        ValidationError
            As for `lumped`, or the channel is known exactly.
        """
        noise = instance(self.noise, ChannelSet, "channel")
        center, counts = self._lumped(records, noise.center.matrix)
        firsts = [next(iter(counted)) for counted in counts]
        return LumpedSet(center, noise.lower[firsts], noise.upper[firsts], tuple(counts))

    def _lumped(
        self, records: int | Sequence[int], matrix: Array
    ) -> tuple[Lumped, list[dict[int, int]]]:
        """Return the lumped problem, and for each group its contexts of each query value."""
        group, row_of_value = self.space.group(records), self.distinct_rows[1]
        value_index, row_index, multiplicities, contexts = [], [], [], []
        counts: list[dict[int, int]] = []
        for a, fiber in enumerate(self.query.fibers(group)):
            merged: dict[int, list[int]] = {}
            for place in fiber:
                merged.setdefault(int(row_of_value[place]), []).append(place)
            for _, places in sorted(merged.items()):
                value_index.append(a)
                row_index.append(places[0])
                counts.append({place: fiber[place] for place in places})
                multiplicities.append(sum(counts[-1].values()))
                contexts.append(tuple(self.query.values[place] for place in places))
        lumped = Lumped(
            values=self.space.values(records),
            outputs=self.outputs,
            value_index=np.array(value_index, dtype=np.intp),
            rows=matrix[row_index],
            multiplicities=multiplicities,
            contexts=contexts,
        )
        return lumped, counts

    def groups(
        self, size: int = 1, parts: Sequence[Sequence[int]] | None = None
    ) -> list[tuple[int, ...]]:
        """Return one group of `size` records from each class of groups with equal leakage.

        Records that can be swapped without changing f leak the same, so one group represents all
        groups with the same multiset of classes. `parts` are the classes, those of the query if
        left out; constraints on the adversary may require finer ones.

        Raises
        ------
        ValidationError
            size is not from 1 to n, or there are more than 100,000 kinds of groups.
        """
        size = whole_number(size, "size", 1, self.space.records)
        if parts is None:
            return kinds_of_groups(self.query.exchangeable(), size)
        return kinds_of_groups([self.space.group(p) for p in in_order(parts, "parts")], size)

    def expand(self, records: int | Sequence[int], weights: ArrayLike) -> Prior:
        """Return the prior on full datasets that spreads lumped weights evenly in each group.

        Raises
        ------
        ValidationError
            Weights that are not a distribution on the groups, or a space that is too large.
        """
        groups = self._group_of_dataset(records)
        sizes = np.bincount(groups)
        w = as_prior(weights, len(sizes), "weights").probabilities
        return Prior((w / sizes)[groups], self.space.datasets())

    def lump(self, records: int | Sequence[int], prior: Prior | ArrayLike) -> Array:
        """Return the lumped weights of a prior on full datasets.

        Parameters
        ----------
        records : int or sequence of int
            As in `lumped`.
        prior : Prior or array_like
            Matched by label if its labels are the datasets, otherwise in product order.

        Raises
        ------
        ValidationError
            Not a prior on the datasets, or a space that is too large.
        """
        groups = self._group_of_dataset(records)
        return np.bincount(groups, weights=self.space.law(prior)).astype(float)

    def to_channel(self) -> Channel:
        """Return q(y|x) with one row per dataset (small spaces only).

        Raises
        ------
        ValidationError
            The space has more than 2^22 datasets.
        """
        rows = self.channel.matrix[self.query.table().ravel()]
        return Channel(rows, self.space.datasets(), self.outputs)

    def sample(
        self,
        dataset: Sequence[Hashable],
        size: int | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> Any:
        """Draw outputs for a dataset, exactly: `Channel.sample` for the query's value.

        Parameters
        ----------
        dataset : sequence of hashables
            One value for each record.
        size, rng
            As for `Channel.sample`.

        Raises
        ------
        ValidationError
            A dataset that is not in the record space; otherwise as for `Channel.sample`.

        Examples
        --------
        >>> from cvxleak.mechanisms import random_rounding
        >>> from cvxleak.model import Mechanism
        >>> from cvxleak.queries import count
        >>> Mechanism(count(3), random_rounding(3, 3)).sample([1, 1, 1], size=2)
        [3, 3]
        """
        return self.channel.sample(self.query(dataset), size, rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism as plain lists, ready for JSON (floats round-trip exactly)."""
        keys = {ChannelSet: "channel_set", Channel: "channel"}
        key = keys.get(type(self.noise), "noise")
        return {"query": self.query.to_dict(), key: self.noise.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the mechanism that `to_dict` wrote.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        if isinstance(data, Mapping) and "channel_set" in data:
            check_keys(data, {"query", "channel_set"})
            return cls(Query.from_dict(data["query"]), ChannelSet.from_dict(data["channel_set"]))
        if isinstance(data, Mapping) and "noise" in data:
            check_keys(data, {"query", "noise"})
            return cls(Query.from_dict(data["query"]), RealOutput.from_dict(data["noise"]))
        check_keys(data, {"query", "channel"})
        return cls(Query.from_dict(data["query"]), Channel.from_dict(data["channel"]))

    @cached_property
    def distinct_rows(self) -> tuple[Array, NDArray[np.intp]]:
        """The distinct rows in lexicographic order, and which one each query value has.

        Of a set of channels: the distinct boxes, lower bounds next to upper ones.
        """
        if isinstance(self.noise, ChannelSet):
            return distinct_rows(np.hstack([self.noise.lower, self.noise.upper]))
        return distinct_rows(self.nominal.channel.matrix)

    def _group_of_dataset(self, records: int | Sequence[int]) -> NDArray[np.intp]:
        """Return the index in `lumped(records)` of every dataset's group, in product order."""
        rows, row_of_value = self.distinct_rows
        row = row_of_value[self.query.table().ravel()]
        codes = self.space.value_index(records) * len(rows) + row
        return np.unique(codes, return_inverse=True)[1]

    def _repr_html_(self) -> str:
        from html import escape

        noise = self.noise
        below = (
            noise._repr_html_() if isinstance(noise, Channel) else f"<p>{escape(repr(noise))}</p>"
        )
        return f"<p>{escape(repr(self))}</p>{below}"

    def __repr__(self) -> str:
        count = f"{self.space.records} record" + ("s" if self.space.records > 1 else "")
        noise = self.noise
        after = (
            repr(noise) if isinstance(noise, RealOutput) else counted(len(self.outputs), "output")
        )
        return f"Mechanism({count}, {len(self.query.values)} query values -> {after})"
