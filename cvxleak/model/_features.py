"""What knowledge about the prior asks of a dataset, and its constraints on lumped weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import short
from cvxleak.model.additive import AdditiveQuery
from cvxleak.model.knowledge import Expectation, Knowledge, KnownMarginals, RelativeEntropyBall
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace

__all__ = ["Counted", "Expected", "Linear", "Near", "Reference", "feature_of"]


@dataclass(frozen=True)
class Linear:
    """<C, w> = d, or <C, w> <= d, on the weights of a lumped problem; `owner` is the knowledge."""

    coefficients: tuple[float, ...]
    side: Fraction
    owner: int

    @cached_property
    def exact(self) -> tuple[Fraction, ...]:
        """The coefficients as written."""
        known = {c: fraction(c) for c in set(self.coefficients)}
        return tuple(known[c] for c in self.coefficients)


@dataclass(frozen=True)
class Reference:
    """D(p || p0) <= radius: p0 of each dataset in group g is the product of base**exponents[g]."""

    bases: tuple[Fraction, ...]
    exponents: tuple[tuple[int, ...], ...]
    radius: float
    owner: int


class _Feature:
    """What one piece of knowledge asks of a dataset: the values of records, and of a query."""

    query: Query | None = None
    """A query beside the mechanism's own."""

    def key(self, places: Mapping[int, int], value: int, counted: Any) -> Hashable | None:
        """Return what tells groups apart (None: excluded).

        `places` are those of the records' values, `value` that of the mechanism's query, `counted`
        the value of `query`.
        """
        raise NotImplementedError


class Expected(_Feature):
    """The function of an expectation."""

    def __init__(self, knowledge: Expectation, query: Query, owner: int) -> None:
        self.knowledge, self.owner = knowledge, owner
        self.table = knowledge.feature.tolist()
        self.query = knowledge.query
        shape = query.space.shape
        self.shape = [shape[i] for i in knowledge.records or ()]
        if knowledge.query is not None:
            self.place = {v: i for i, v in enumerate(knowledge.query.values)}

    def key(self, places: Mapping[int, int], value: int, counted: Any) -> Hashable | None:
        if self.knowledge.records is not None:
            place = 0
            for record, size in zip(self.knowledge.records, self.shape, strict=True):
                place = place * size + places[record]
            return self.table[place]
        return self.table[value if self.query is None else self.place[counted]]

    def constraints(
        self, keys: Sequence[Any], values: Sequence[tuple[int, ...]]
    ) -> tuple[list[Linear], list[Linear]]:
        low, high = self.knowledge.at_least, self.knowledge.at_most
        c = tuple(keys)
        if low is not None and low == high:
            return [Linear(c, fraction(low), self.owner)], []
        result = []
        if high is not None:
            result.append(Linear(c, fraction(high), self.owner))
        if low is not None:
            result.append(Linear(tuple(-x for x in c), -fraction(low), self.owner))
        return [], result


class Counted(_Feature):
    """How many of the records of each class, the audited ones aside, have each value."""

    def __init__(
        self,
        knowledge: KnownMarginals,
        query: Query,
        owner: int,
        group: tuple[int, ...],
        parts: list[list[int]],
    ) -> None:
        self.law, self.owner = exact_law(knowledge.law), owner
        named = set(knowledge.records or ())
        self.own = [place for place, i in enumerate(group) if i in named]
        classes = [[i for i in part if i in named and i not in group] for part in parts]
        self.classes = [part for part in classes if part]
        # One probability follows from the others; not one that is 0, which leaves datasets out.
        likeliest = self.law.index(max(self.law))
        self.counted = [u for u in range(len(self.law)) if u != likeliest]
        width = len(self.counted)
        if self.classes and width:
            units: list[list[int | None]] = [[None] * size for size in query.space.shape]
            for j, part in enumerate(self.classes):
                sums: list[int | None] = list(range(j * width, (j + 1) * width))
                for i in part:
                    units[i] = [*sums[:likeliest], None, *sums[likeliest:]]
            self.query = counts_query(query.space, units, len(self.classes) * width)

    def key(self, places: Mapping[int, int], value: int, counted: Any) -> Hashable | None:
        return () if self.query is None else counted

    def constraints(
        self, keys: Sequence[Any], values: Sequence[tuple[int, ...]]
    ) -> tuple[list[Linear], list[Linear]]:
        equations = []
        for place in self.own:
            for u in self.counted:
                c = tuple(float(joint[place] == u) for joint in values)
                equations.append(Linear(c, self.law[u], self.owner))
        if self.query is not None:
            sums = product(self.classes, self.counted)
            for j, (part, u) in enumerate(sums):
                c = tuple(float(key[j]) for key in keys)
                equations.append(Linear(c, len(part) * self.law[u], self.owner))
        return equations, []


class Near(_Feature):
    """The probability under the center of a relative-entropy ball, as a product of powers."""

    def __init__(self, knowledge: RelativeEntropyBall, query: Query, owner: int) -> None:
        self.radius, self.owner, space = knowledge.radius, owner, query.space
        if knowledge.prior is not None:
            table = exact_law(knowledge.prior)
            self.bases = tuple(sorted(set(table)))
            place = {base: k for k, base in enumerate(self.bases)}
            self.table = [place[p] for p in table]
            self.shape = space.shape
            return
        self.table = None
        exact = {law: exact_law(law) for law in set(knowledge.laws)}
        self.bases = tuple(sorted({p for law in exact.values() for p in law}))
        place = {base: k for k, base in enumerate(self.bases)}
        units = [[place[p] for p in exact[law]] for law in knowledge.laws]
        self.query = counts_query(space, units, len(self.bases))

    def key(self, places: Mapping[int, int], value: int, counted: Any) -> Hashable | None:
        if self.table is not None:
            code = 0
            for record, size in enumerate(self.shape):
                code = code * size + places[record]
            k = self.table[code]
            exponents = tuple(int(j == k) for j in range(len(self.bases)))
        else:
            exponents = counted
        if self.bases[0] == 0 and exponents[0]:
            return None
        return exponents

    def reference(self, keys: Sequence[Any]) -> Reference:
        return Reference(self.bases, tuple(keys), self.radius, self.owner)


def feature_of(
    one: Knowledge, query: Query, owner: int, group: tuple[int, ...], parts: list[list[int]]
) -> Expected | Counted | Near:
    if isinstance(one, Expectation):
        return Expected(one, query, owner)
    if isinstance(one, KnownMarginals):
        return Counted(one, query, owner, group, parts)
    if isinstance(one, RelativeEntropyBall):
        return Near(one, query, owner)
    raise ValidationError(f"adversaries: found {short(one)}, which cannot be lumped")


def counts_query(
    space: RecordSpace, units: Sequence[Sequence[int | None]], width: int
) -> AdditiveQuery:
    """Return the additive query that counts, in `width` sums, where each record's value belongs.

    ``units[i][v]`` is the sum that the v-th value of record i adds one to, or None.
    """
    zero = (0,) * width
    one = [tuple(int(j == k) for j in range(width)) for k in range(width)]
    known: dict[Any, list[tuple[int, ...]]] = {}
    contributions = []
    for unit in units:
        key = tuple(unit)
        if key not in known:
            known[key] = [zero if k is None else one[k] for k in key]
        contributions.append(known[key])
    return AdditiveQuery(space, contributions)
