"""`Restricted`: the lumped problem of one record, for adversaries of whom more is known."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from cvxleak._validation import Array, short
from cvxleak.errors import InfeasibleError, ValidationError
from cvxleak.model.joint import joint_query
from cvxleak.model.knowledge import (
    Expectation,
    Knowledge,
    KnownMarginals,
    RelativeEntropyBall,
    counts_query,
    exact_law,
    exchangeable,
    worst_of,
)
from cvxleak.model.lumping import Lumped
from cvxleak.model.mechanism import Mechanism
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.query import FIBER_LIMIT, Query

__all__ = ["Linear", "Reference", "Restricted", "restrict"]


@dataclass(frozen=True)
class Linear:
    """<C, w> = d, or <C, w> <= d, on the weights of a lumped problem; `owner` is the knowledge."""

    coefficients: tuple[float, ...]
    side: Fraction
    owner: int


@dataclass(frozen=True)
class Reference:
    """D(p || p0) <= radius: p0 of each dataset in group g is the product of base**exponents[g]."""

    bases: tuple[Fraction, ...]
    exponents: tuple[tuple[int, ...], ...]
    radius: float
    owner: int


@dataclass(frozen=True)
class Restricted:
    """A lumped problem with the constraints that knowledge puts on its weights.

    The groups of contexts are finer than those of `Mechanism.lumped`: rows have to be equal, and so
    has all that the constraints depend on. Then spreading a group's mass evenly changes neither
    I(A;Y) nor a constraint, and entropy is largest, so the problem in the weights is still exact.
    Datasets of which a constraint says that they have no probability are left out: those that a
    reference p0 excludes, and those whose c(x) is not extreme where E[c(X)] has to be.
    """

    mechanism: Mechanism
    records: tuple[int, ...]
    lumped: Lumped
    equations: tuple[Linear, ...]
    inequalities: tuple[Linear, ...]
    references: tuple[Reference, ...]
    _joint: Query = field(repr=False)
    _looked_at: tuple[int, ...] = field(repr=False)
    _place: Mapping[tuple[int, int], int] = field(repr=False)

    @property
    def constraints(self) -> tuple[Any, ...]:
        """All constraints together."""
        return self.equations, self.inequalities, self.references

    def violations(self, weights: Array, knowledge: Sequence[Knowledge]) -> dict[str, float]:
        """Return, in words, by how much lumped weights miss each piece of knowledge."""
        result = {one.statement: 0.0 for one in knowledge}
        doubt = float(entr(weights).sum() + weights @ self.lumped.log_multiplicity)
        for ball in self.references:
            logs = [math.log(base) if base else 0.0 for base in ball.bases]
            mean = float(weights @ (np.array(ball.exponents) @ np.array(logs)))
            one = knowledge[ball.owner]
            if isinstance(one, RelativeEntropyBall):
                result = worst_of(result, one.missed(-doubt - mean))
        for one, equal in [(x, True) for x in self.equations] + [
            (x, False) for x in self.inequalities
        ]:
            off = float(weights @ np.array(one.coefficients)) - float(one.side)
            name = knowledge[one.owner].statement
            result = worst_of(result, {name: abs(off) if equal else max(off, 0.0)})
        return result

    def group_of_dataset(self) -> NDArray[np.intp]:
        """Return the group of every dataset in product order, -1 for those left out."""
        space = self.mechanism.space
        values = space.value_index(self._looked_at)
        codes = values * len(self._joint.values) + self._joint.table().ravel()
        found, inverse = np.unique(codes, return_inverse=True)
        width = len(self._joint.values)
        places = [self._place.get(divmod(int(code), width), -1) for code in found]
        return np.array(places, dtype=np.intp)[inverse.ravel()]

    def expand(self, weights: ArrayLike) -> Prior:
        """Return the prior on full datasets that spreads the weights evenly in each group."""
        groups = self.group_of_dataset()
        sizes = np.array(self.lumped.multiplicities, dtype=float)
        w = as_prior(weights, len(sizes), "weights").probabilities
        shares = np.append(w / sizes, 0.0)
        return Prior(shares[groups], self.mechanism.space.datasets())

    def lump(self, prior: Prior | ArrayLike) -> Array:
        """Return the lumped weights of a prior on full datasets; what is left out is lost."""
        groups = self.group_of_dataset()
        law = self.mechanism.space.law(prior)
        kept = groups >= 0
        size = len(self.lumped.multiplicities)
        return np.bincount(groups[kept], weights=law[kept], minlength=size).astype(float)


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


class _Expected(_Feature):
    def __init__(self, knowledge: Expectation, query: Query, owner: int) -> None:
        self.knowledge, self.owner = knowledge, owner
        self.table = [float(x) for x in np.asarray(knowledge.feature)]
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
            return [Linear(c, Fraction(low), self.owner)], []
        result = []
        if high is not None:
            result.append(Linear(c, Fraction(high), self.owner))
        if low is not None:
            result.append(Linear(tuple(-x for x in c), Fraction(-low), self.owner))
        return [], result


class _Counted(_Feature):
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


class _Near(_Feature):
    def __init__(self, knowledge: RelativeEntropyBall, query: Query, owner: int) -> None:
        self.radius, self.owner, space = knowledge.radius, owner, query.space
        if knowledge.prior is not None:
            table = exact_law(np.asarray(knowledge.prior))
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


def _feature(
    one: Knowledge, query: Query, owner: int, group: tuple[int, ...], parts: list[list[int]]
) -> _Expected | _Counted | _Near:
    if isinstance(one, Expectation):
        return _Expected(one, query, owner)
    if isinstance(one, KnownMarginals):
        return _Counted(one, query, owner, group, parts)
    if isinstance(one, RelativeEntropyBall):
        return _Near(one, query, owner)
    raise ValidationError(f"adversaries: found {short(one)}, which cannot be lumped")


def restrict(
    mechanism: Mechanism, records: int | Sequence[int], knowledge: Sequence[Knowledge]
) -> Restricted:
    """Return the lumped problem of a record (or group), under (bound) knowledge about the prior.

    Raises
    ------
    ValidationError
        Constraints that depend on too many joint values to look at.
    InfeasibleError
        The reference priors exclude every dataset.
    """
    space, query = mechanism.space, mechanism.query
    group = space.group(records)
    parts = exchangeable(query, knowledge)
    features = [_feature(one, query, j, group, parts) for j, one in enumerate(knowledge)]
    others = sorted({i for one in knowledge for i in one.singled_out(space)} - set(group))
    looked_at = (*group, *others)
    joint: Query = query
    for feature in features:
        if feature.query is not None:
            joint = joint_query(joint, feature.query)
    extra = sum(feature.query is not None for feature in features)
    sizes = [space.shape[i] for i in looked_at]
    if math.prod(sizes) * len(joint.values) > FIBER_LIMIT:
        raise ValidationError(
            f"adversaries: the constraints depend on {short(math.prod(sizes))} joint values of "
            f"{len(looked_at)} records and {len(joint.values)} values of queries; at most "
            f"{FIBER_LIMIT} pairs can be looked at one by one"
        )
    rows, row_of_value = mechanism.distinct_rows
    own = math.prod(space.shape[i] for i in group)
    # The joint query's values are nested pairs; the mechanism's own value is the innermost.
    unnested = [_unnested(value, extra) for value in joint.values]
    own_place = {value: i for i, value in enumerate(query.values)}
    found: dict[tuple[Any, ...], list[Any]] = {}
    places_of: dict[tuple[int, int], tuple[Any, ...]] = {}
    rest = math.prod(sizes) // own
    every = product(*(range(size) for size in sizes))
    for code, (at, fiber) in enumerate(zip(every, joint.fibers(looked_at), strict=True)):
        at_record = dict(zip(looked_at, at, strict=True))
        for place, count in fiber.items():
            first, counted = unnested[place]
            value = own_place[first]
            waiting = iter(counted)
            keys = tuple(
                feature.key(at_record, value, next(waiting) if feature.query is not None else None)
                for feature in features
            )
            if None in keys:
                continue
            label = (code // rest, int(row_of_value[value]), keys)
            entry = found.setdefault(label, [0, set(), at[: len(group)]])
            entry[0] += count
            entry[1].add(value)
            places_of[code, place] = label
    if not found:
        raise InfeasibleError("adversaries: the constraints exclude every dataset")
    labels, equations, inequalities = _possible(features, found)
    names = space.values(records)
    kept = sorted({label[0] for label in labels})
    lumped = Lumped(
        values=[names[a] for a in kept],
        outputs=mechanism.outputs,
        value_index=np.searchsorted(kept, [label[0] for label in labels]).astype(np.intp),
        rows=rows[[label[1] for label in labels]],
        multiplicities=[found[label][0] for label in labels],
        contexts=[[query.values[v] for v in sorted(found[label][1])] for label in labels],
    )
    references = [
        feature.reference([label[2][j] for label in labels])
        for j, feature in enumerate(features)
        if isinstance(feature, _Near)
    ]
    order = {label: g for g, label in enumerate(labels)}
    return Restricted(
        mechanism,
        group,
        lumped,
        tuple(equations),
        tuple(inequalities),
        tuple(references),
        joint,
        looked_at,
        {where: order[label] for where, label in places_of.items() if label in order},
    )


def _possible(
    features: Sequence[_Expected | _Counted | _Near], found: Mapping[tuple[Any, ...], list[Any]]
) -> tuple[list[tuple[Any, ...]], list[Linear], list[Linear]]:
    """Return the labels of groups that may have probability, and the constraints on these.

    Where the mean of c has to be its largest value, only groups with that value have probability,
    and nothing is left to ask. If that leaves no group, all stay, for the violation to be told.
    """
    every = sorted(found)
    labels, equations, inequalities = every, *_constraints(features, found, every)
    while True:
        kept = np.ones(len(labels), dtype=bool)
        for one in equations:
            kept &= _extreme(one.coefficients, one.side) & _extreme(
                [-c for c in one.coefficients], -one.side
            )
        for one in inequalities:
            kept &= _extreme(one.coefficients, one.side)
        if kept.all():
            break
        if not kept.any():
            return every, *_constraints(features, found, every)
        labels = [label for label, possible in zip(labels, kept, strict=True) if possible]
        equations, inequalities = _constraints(features, found, labels)
    equations = _unlike([one for one in equations if any(c != one.side for c in one.coefficients)])
    inequalities = [one for one in inequalities if any(c > one.side for c in one.coefficients)]
    return labels, equations, _not_implied(inequalities, equations)


def _unlike(equations: Sequence[Linear]) -> list[Linear]:
    """Return the equations without those that say the same as an earlier one."""
    kept: list[Linear] = []
    for one in equations:
        if not any(_mean_of(one, other) == one.side for other in kept):
            kept.append(one)
    return kept


def _not_implied(inequalities: Sequence[Linear], equations: Sequence[Linear]) -> list[Linear]:
    """Return the inequalities without those that a single equation implies."""

    def implied(one: Linear) -> bool:
        means = [_mean_of(one, equation) for equation in equations]
        return any(mean is not None and mean <= one.side for mean in means)

    return [one for one in inequalities if not implied(one)]


def _mean_of(one: Linear, equation: Linear) -> Fraction | None:
    """Return <C, w> if an equation determines it: if C is its coefficients, scaled and moved."""
    c, given = np.array(one.coefficients), np.array(equation.coefficients)
    low, high = int(given.argmin()), int(given.argmax())
    if given[low] == given[high]:
        return None
    slope = (c[high] - c[low]) / (given[high] - given[low])
    if np.abs(c - c[low] - slope * (given - given[low])).max() > 1e-12 * np.abs(c).max():
        return None
    exact = [(Fraction(x), Fraction(y)) for x, y in {*zip(c.tolist(), given.tolist(), strict=True)}]
    first, least = Fraction(float(c[low])), Fraction(float(given[low]))
    rise = (Fraction(float(c[high])) - first) / (Fraction(float(given[high])) - least)
    if any(x != first + rise * (y - least) for x, y in exact):
        return None
    return first + rise * (equation.side - least)


def _extreme(coefficients: Sequence[float], most: Fraction) -> NDArray[np.bool_]:
    """Return where <c, w> <= most lets w be positive: everywhere unless it is the least c."""
    least = min(coefficients)
    return np.array([c == least or least != most for c in coefficients])


def _constraints(
    features: Sequence[_Expected | _Counted | _Near],
    found: Mapping[tuple[Any, ...], list[Any]],
    labels: Sequence[tuple[Any, ...]],
) -> tuple[list[Linear], list[Linear]]:
    equations: list[Linear] = []
    inequalities: list[Linear] = []
    values = [found[label][2] for label in labels]
    for j, feature in enumerate(features):
        if not isinstance(feature, _Near):
            equal, most = feature.constraints([label[2][j] for label in labels], values)
            equations += equal
            inequalities += most
    return equations, inequalities


def _unnested(value: Any, extra: int) -> tuple[Any, list[Any]]:
    counted = []
    for _ in range(extra):
        value, last = value
        counted.append(last)
    return value, counted[::-1]
