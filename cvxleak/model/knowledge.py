"""What may be known about an adversary's prior, beside how uncertain it is about the dataset.

Each of these is a convex set of priors. Together with an entropy floor, several of them are
intersected: the adversary class of DALENIUS Definition 5.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak._validation import Array, frozen_array, in_order, real_number, short
from cvxleak._value import Stored, check_keys
from cvxleak.errors import ValidationError
from cvxleak.model.additive import AdditiveQuery
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.query import Query, runs_to_list
from cvxleak.model.space import RecordSpace, check_table_size

__all__ = ["Expectation", "Knowledge", "KnownMarginals", "RelativeEntropyBall", "as_knowledge"]


class Knowledge(Stored):
    """A convex set of priors that an adversary's is known to be in.

    `bind` reads what was given against the datasets and the query; only then is it complete, and
    can be stored and used. Three kinds exist: `Expectation`, `KnownMarginals` and
    `RelativeEntropyBall`. Several are intersected.

    Examples
    --------
    >>> from cvxleak.model import Knowledge, KnownMarginals
    >>> from cvxleak.queries import parity
    >>> known = KnownMarginals([0.9, 0.1]).bind(parity(3))
    >>> known.statement, known.records
    ('records have their known laws', (0, 1, 2))
    >>> Knowledge.from_dict(known.to_dict()) == known
    True
    """

    kind: ClassVar[str]

    @abstractmethod
    def bind(self, query: Query) -> Self:
        """Return the same knowledge with functions written out as tables, all of it checked.

        Raises
        ------
        ValidationError
            What does not fit the datasets or the query.
        """

    @abstractmethod
    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return the records whose own values count, so that no other can take their place."""

    @abstractmethod
    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return a label for each record; equal ones may be swapped without changing the set."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """What is known, in words."""

    @abstractmethod
    def violation(self, query: Query, prior: Array) -> dict[str, float]:
        """Return, in words, by how much a prior (shaped like the space) misses the set."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the (bound) knowledge that `to_dict` wrote, of whichever kind it is."""
        kinds = {kind.kind: kind for kind in cls.__subclasses__()}
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise ValidationError(f"data: found the kind {short(kind)}; allowed: {sorted(kinds)}")
        return kinds[kind].from_dict(data)


@dataclass(frozen=True, eq=False)
class Expectation(Knowledge):
    r"""Priors under which a function of the dataset has a known, or bounded, expectation.

    The set {p : l <= E_p[c(X)] <= u}. With several of them it is any polytope of priors: a known
    correlation E[X_i X_j] = c, moments of the query, a probability of an event (its indicator).

    Parameters
    ----------
    feature : callable, mapping or array_like
        c, as a function of what is named next: its arguments, or numbers in their order.
    records : int or sequence of int, optional
        c depends on the values of these records: ``feature(x_i, x_j, ...)``, or an array over their
        joint values in product order (the last of them fastest).
    query : Query, optional
        c depends on the value of this query. Left out together with `records`, it depends on the
        value of the mechanism's own query.
    at_least, at_most : float, optional
        l and u.
    name : str, optional
        What messages call it.
    equals : float, optional
        Both at once: E_p[c(X)] is this number, exactly as stored.

    Raises
    ------
    ValidationError
        No bound at all, l > u, both records and a query, numbers that are not finite, and, once
        there is a mechanism, a function that does not fit its datasets.

    Notes
    -----
    The values of the records that are named have to be looked at one by one. So it takes few
    records, or a small space; a function of the sum of many records is best given by its query.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Expectation
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> rarely_both = Expectation(lambda x, y: x * y, records=(0, 1), at_most=0.1)
    >>> print(record_leakage(mechanism, entropy_floor=1.8, adversaries=rarely_both))
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    """

    kind: ClassVar[str] = "expectation"

    feature: Any
    records: tuple[int, ...] | None
    query: Query | None
    at_least: float | None
    at_most: float | None
    name: str

    def __init__(
        self,
        feature: Callable[..., float] | Mapping[Any, float] | ArrayLike,
        records: int | Sequence[int] | None = None,
        query: Query | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        name: str | None = None,
        *,
        equals: float | None = None,
    ) -> None:
        if equals is not None:
            if at_least is not None or at_most is not None:
                raise ValidationError("equals: found at_least or at_most beside it; give one kind")
            at_least = at_most = equals
        if at_least is None and at_most is None:
            raise ValidationError("at_most: found no bound; give at_least, at_most or equals")
        low, high = (
            None if bound is None else real_number(bound, side, open_low=True, open_high=True)
            for bound, side in ((at_least, "at_least"), (at_most, "at_most"))
        )
        if low is not None and high is not None and low > high:
            raise ValidationError(f"at_least: found {low!r}, above at_most = {high!r}")
        if records is not None and query is not None:
            raise ValidationError("query: found one beside records; give one of the two")
        if query is not None and not isinstance(query, Query):
            raise ValidationError(f"query: expected a Query, found {short(query)}")
        group = None
        if records is not None:
            group = tuple(
                in_order(records, "records") if isinstance(records, Iterable) else [records]
            )
        object.__setattr__(self, "feature", feature)
        object.__setattr__(self, "records", group)
        object.__setattr__(self, "query", query)
        object.__setattr__(self, "at_least", low)
        object.__setattr__(self, "at_most", high)
        object.__setattr__(self, "name", self._default_name(group) if name is None else str(name))

    @staticmethod
    def _default_name(records: tuple[int, ...] | None) -> str:
        return "expectation" if records is None else f"expectation over records {records}"

    def bind(self, query: Query) -> Self:
        """Return the same with a table in place of the function (see `Knowledge.bind`)."""
        space, records = query.space, self.records
        if records is not None:
            records = space.group(records)
            size = math.prod(space.shape[i] for i in records)
            if size > TABLE_LIMIT:
                raise ValidationError(
                    f"records: these {len(records)} have {short(size)} joint values; at most "
                    f"{TABLE_LIMIT} can be looked at one by one"
                )
            arguments: list[Any] = list(product(*(space.alphabets[i] for i in records)))
        else:
            used = query if self.query is None else self.query
            if used.space != space:
                raise ValidationError(f"query: found one on {used.space!r}, not on {space!r}")
            arguments = [(value,) for value in used.values]
        table = _written_out(self.feature, arguments)
        return type(self)(table, records, self.query, self.at_least, self.at_most, self.name)

    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return the records that the function is about."""
        return self.records or ()

    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return a label for each record: its class under the query that the function is about."""
        return [0] * space.records if self.query is None else _classes(self.query)

    def values_on(self, query: Query) -> Array:
        """Return c for every dataset, shaped like the space (small spaces only)."""
        table = np.asarray(self.feature)
        if self.records is None:
            return table[(query if self.query is None else self.query).table()]
        places = query.space.value_index(self.records).reshape(query.space.shape)
        return table[places]

    def violation(self, query: Query, prior: Array) -> dict[str, float]:
        """Return by how much E_p[c(X)] is out of bounds."""
        mean = float((prior * self.values_on(query)).sum())
        below = 0.0 if self.at_least is None else self.at_least - mean
        above = 0.0 if self.at_most is None else mean - self.at_most
        return {self.statement: max(below, above, 0.0)}

    @property
    def statement(self) -> str:
        """What is known, in words."""
        return f"{self.name} is within its bounds"

    def to_dict(self) -> dict[str, Any]:
        """Return the knowledge (bound) as plain lists, ready for JSON."""
        return {
            "kind": self.kind,
            "values": np.asarray(self.feature).tolist(),
            "records": None if self.records is None else list(self.records),
            "query": None if self.query is None else self.query.to_dict(),
            "at_least": self.at_least,
            "at_most": self.at_most,
            "name": self.name,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the knowledge that `to_dict` wrote."""
        check_keys(data, {"kind", "values", "records", "query", "at_least", "at_most", "name"})
        query = None if data["query"] is None else Query.from_dict(data["query"])
        if not isinstance(data["name"], str):
            raise ValidationError(f"name: expected text, found {short(data['name'])}")
        return cls(
            frozen_array(data["values"], "values", 1),
            data["records"],
            query,
            data["at_least"],
            data["at_most"],
            data["name"],
        )


@dataclass(frozen=True, eq=False)
class KnownMarginals(Knowledge):
    """Priors under which each of some records has a known law, P(X_i = u) = p_u.

    How the records depend on each other stays unknown.

    Parameters
    ----------
    law : Prior or array_like
        p, on the alphabet that these records share.
    records : int or sequence of int, optional
        All records if left out.

    Raises
    ------
    ValidationError
        Once there is a mechanism: no law on the records' alphabet, or records with different ones.

    Notes
    -----
    Records that can be swapped are not told apart, so that it takes thousands of them: what is
    asked of a record that is not audited is asked of the mean over all those that can take its
    place. That is the same, since mixing a prior with its images under such swaps changes neither
    I(X_i;Y) nor that mean, and lowers no entropy.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import KnownMarginals
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> rare = KnownMarginals([0.9, 0.1])
    >>> print(record_leakage(mechanism, entropy_floor=0.0, adversaries=rare))
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    """

    kind: ClassVar[str] = "marginals"

    law: Any
    records: tuple[int, ...] | None

    def __init__(self, law: Prior | ArrayLike, records: int | Sequence[int] | None = None) -> None:
        group = None
        if records is not None:
            group = tuple(
                in_order(records, "records") if isinstance(records, Iterable) else [records]
            )
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "records", group)

    def bind(self, query: Query) -> Self:
        """Return the same with the records named (see `Knowledge.bind`)."""
        space = query.space
        everyone = range(space.records)
        records = space.group(everyone if self.records is None else self.records)
        alphabets = {space.alphabets[i] for i in records}
        if len(alphabets) > 1:
            raise ValidationError("records: found different alphabets; give a law for each")
        alphabet = alphabets.pop()
        law = as_prior(self.law, len(alphabet), "law", alphabet).probabilities
        return type(self)(law, records)

    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return no records."""
        return ()

    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return for each record whether its law is known."""
        named = set(self.records or ())
        return [i in named for i in range(space.records)]

    def violation(self, query: Query, prior: Array) -> dict[str, float]:
        """Return the largest difference of a probability."""
        axes = range(prior.ndim)
        worst = max(
            float(
                np.abs(
                    prior.sum(axis=tuple(j for j in axes if j != i)) - np.asarray(self.law)
                ).max()
            )
            for i in self.records or ()
        )
        return {self.statement: worst}

    @property
    def statement(self) -> str:
        """What is known, in words."""
        return "records have their known laws"

    def to_dict(self) -> dict[str, Any]:
        """Return the knowledge (bound) as plain lists, ready for JSON."""
        records = [] if self.records is None else list(self.records)
        return {"kind": self.kind, "law": np.asarray(self.law).tolist(), "records": records}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the knowledge that `to_dict` wrote."""
        check_keys(data, {"kind", "law", "records"})
        return cls(frozen_array(data["law"], "law", 1), data["records"])


@dataclass(frozen=True, eq=False)
class RelativeEntropyBall(Knowledge):
    r"""Priors near a given one: D(p || p0) = sum_x p(x) log(p(x) / p0(x)) <= r.

    Somebody who believes p0 and has at most r nats of information on top of it.

    Parameters
    ----------
    radius : float
        r >= 0, in nats.
    prior : Prior or array_like, optional
        p0 on the datasets, by label or in product order (small spaces only).
    laws : Prior, array_like, or sequence of these, optional
        Instead: one law for all records, or one for each; p0 is their product (any number of
        records).

    Raises
    ------
    ValidationError
        A negative radius, both a prior and laws or neither, and, once there is a mechanism, a prior
        that does not fit its datasets.

    Notes
    -----
    D(p || p0) = -H(p) - E_p[log p0(X)]. Among the datasets with equal rows and equal p0 it is least
    when probability is spread evenly, so lumping stays exact once the groups of contexts are told
    apart by p0.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import RelativeEntropyBall
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> near = RelativeEntropyBall(0.1, laws=[0.7, 0.3])
    >>> print(record_leakage(mechanism, entropy_floor=0.0, adversaries=near))
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    """

    kind: ClassVar[str] = "relative-entropy"

    radius: float
    prior: Any
    laws: Any

    def __init__(
        self,
        radius: float,
        prior: Prior | ArrayLike | None = None,
        laws: Prior | ArrayLike | Sequence[Prior | ArrayLike] | None = None,
    ) -> None:
        if (prior is None) == (laws is None):
            raise ValidationError("prior: expected either a prior or laws of the records")
        object.__setattr__(self, "radius", real_number(radius, "radius", 0.0, open_high=True))
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "laws", laws)

    def bind(self, query: Query) -> Self:
        """Return the same with a law for each record, or a table (see `Knowledge.bind`)."""
        space = query.space
        if self.prior is not None:
            check_table_size(space)
            return type(self)(self.radius, prior=space.law(self.prior))
        laws: Any = self.laws
        if isinstance(laws, Prior) or hasattr(laws, "reindex"):
            laws = [laws] * space.records
        laws = in_order(laws, "laws")
        if laws and np.isscalar(laws[0]):
            laws = [laws] * space.records
        if len(laws) != space.records:
            raise ValidationError(
                f"laws: found {len(laws)}; one for all records or {space.records} are needed"
            )
        known: dict[Any, tuple[float, ...]] = {}
        bound = []
        for i, (law, alphabet) in enumerate(zip(laws, space.alphabets, strict=True)):
            key = (id(law), alphabet)
            if key not in known:
                given = as_prior(law, len(alphabet), f"laws[{i}]", alphabet)
                known[key] = tuple(given.probabilities.tolist())
            bound.append(known[key])
        return type(self)(self.radius, laws=tuple(bound))

    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return all records for a table, none for a product."""
        return () if self.prior is None else tuple(range(space.records))

    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return each record's law."""
        return [0] * space.records if self.laws is None else list(self.laws)

    def reference(self, query: Query) -> Array:
        """Return p0 for every dataset, shaped like the space (small spaces only)."""
        shape = query.space.shape
        if self.prior is not None:
            table = np.asarray(self.prior)
            return table.reshape(shape) / table.sum()
        check_table_size(query.space)
        result = np.ones(())
        for law in self.laws:
            result = np.multiply.outer(result, np.array(law) / sum(law))
        return result

    def violation(self, query: Query, prior: Array) -> dict[str, float]:
        """Return by how much D(p || p0) exceeds r."""
        p0 = self.reference(query)
        used = prior > 0
        with np.errstate(divide="ignore"):
            divergence = float((prior[used] * (np.log(prior[used]) - np.log(p0[used]))).sum())
        return self.missed(divergence)

    def missed(self, divergence: float) -> dict[str, float]:
        """Return by how much a divergence exceeds r."""
        return {self.statement: max(divergence - self.radius, 0.0)}

    @property
    def statement(self) -> str:
        """What is known, in words."""
        return "relative entropy is at most the radius"

    def to_dict(self) -> dict[str, Any]:
        """Return the knowledge (bound) as plain lists, ready for JSON."""
        laws = self.laws and [[list(law), len(list(run))] for law, run in groupby(self.laws)]
        return {
            "kind": self.kind,
            "radius": self.radius,
            "prior": None if self.prior is None else np.asarray(self.prior).tolist(),
            "laws": laws,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the knowledge that `to_dict` wrote."""
        check_keys(data, {"kind", "radius", "prior", "laws"})
        if data["laws"] is None:
            return cls(data["radius"], prior=frozen_array(data["prior"], "prior", 1))
        laws = runs_to_list(data["laws"], "laws", RECORD_LIMIT)
        return cls(data["radius"], data["prior"], [frozen_array(law, "laws", 1) for law in laws])


TABLE_LIMIT = 1 << 20
"""Most joint values of records that a function may be asked about one by one."""

RECORD_LIMIT = 1 << 24


def as_knowledge(
    given: Knowledge | Iterable[Knowledge] | None, query: Query
) -> tuple[Knowledge, ...]:
    """Return what was given as `adversaries`, bound to a query."""
    if given is None:
        return ()
    items = (given,) if isinstance(given, Knowledge) else in_order(given, "adversaries")
    for item in items:
        if not isinstance(item, Knowledge):
            kinds = sorted(kind.__name__ for kind in Knowledge.__subclasses__())
            raise ValidationError(f"adversaries: found {short(item)}; expected any of {kinds}")
    return tuple(item.bind(query) for item in items)


def exchangeable(query: Query, knowledge: Sequence[Knowledge]) -> list[list[int]]:
    """Partition the records so that swapping two of one part changes neither query nor class."""
    space = query.space
    labels: list[list[Hashable]] = [_classes(query), *(one.alike(space) for one in knowledge)]
    single = {i for one in knowledge for i in one.singled_out(space)}
    parts: dict[Any, list[int]] = {}
    for i, label in enumerate(zip(*labels, strict=True)):
        parts.setdefault((label, i if i in single else None), []).append(i)
    return list(parts.values())


def worst_of(*violations: Mapping[str, float]) -> dict[str, float]:
    """Return the largest violation by each name: several pieces of knowledge may share one."""
    result: dict[str, float] = {}
    for one in violations:
        for name, missed in one.items():
            result[name] = max(missed, result.get(name, 0.0))
    return result


def exact_law(weights: Any) -> tuple[Fraction, ...]:
    """Return floats divided by their exact sum."""
    parts = [Fraction(float(weight)) for weight in weights]
    total = sum(parts, Fraction(0))
    return tuple(part / total for part in parts)


def _classes(query: Query) -> list[Hashable]:
    labels: list[Hashable] = [0] * query.space.records
    for place, part in enumerate(query.exchangeable()):
        for i in part:
            labels[i] = place
    return labels


def _written_out(feature: Any, arguments: list[tuple[Any, ...]]) -> Array:
    values: Any
    if callable(feature):
        values = [feature(*argument) for argument in arguments]
    elif isinstance(feature, Mapping):
        keys = [argument[0] if len(argument) == 1 else argument for argument in arguments]
        missing = [key for key in keys if key not in feature]
        if missing:
            raise ValidationError(f"feature: found no number for {short(missing[0])}")
        values = [feature[key] for key in keys]
    else:
        values = np.asarray(feature).ravel()
    table = frozen_array(values, "feature", 1)
    if len(table) != len(arguments):
        raise ValidationError(f"feature: found {len(table)} numbers; {len(arguments)} are needed")
    if not np.isfinite(table).all():
        raise ValidationError("feature: found an infinite number; all have to be finite")
    return table


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
