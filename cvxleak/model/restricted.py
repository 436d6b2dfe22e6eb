"""`Restricted`: the lumped problem of one record, for adversaries of whom more is known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import short
from cvxleak.model._features import Counted, Expected, Linear, Near, Reference, feature_of
from cvxleak.model._implied import may_be_positive, not_implied, unlike
from cvxleak.model.channel_set import ChannelSet, LumpedSet
from cvxleak.model.joint import joint_query
from cvxleak.model.knowledge import Knowledge
from cvxleak.model.knowledge.binding import exchangeable
from cvxleak.model.lumping import Lumped
from cvxleak.model.mechanism import Mechanism
from cvxleak.model.noise.real_output import RealOutput
from cvxleak.model.query import FIBER_LIMIT, Query

__all__ = ["Linear", "Reference", "Restricted", "restrict"]


@dataclass(frozen=True)
class Restricted:
    """A lumped problem with the constraints that knowledge puts on its weights.

    The groups of contexts are finer than those of `Mechanism.lumped`: rows have to be equal, and so
    has all that the constraints depend on. Then spreading a group's mass evenly changes neither
    I(A;Y) nor a constraint, and entropy is largest, so the problem in the weights is still exact.
    Datasets of which a constraint says that they have no probability are left out: those that a
    reference p0 excludes, and those whose c(x) is not extreme where E[c(X)] has to be.

    `of_set` is the same problem with the boxes of the groups' rows, if the channel lies in a set.
    `places` is the group of a dataset, by the joint value of the records `looked_at` and by the
    value of the query `joint`; those left out are not in it.
    """

    mechanism: Mechanism
    records: tuple[int, ...]
    lumped: Lumped
    of_set: LumpedSet | None
    equations: tuple[Linear, ...]
    inequalities: tuple[Linear, ...]
    references: tuple[Reference, ...]
    joint: Query = field(repr=False)
    looked_at: tuple[int, ...] = field(repr=False)
    places: Mapping[tuple[int, int], int] = field(repr=False)

    @property
    def constraints(self) -> tuple[Any, ...]:
        """All constraints together."""
        return self.equations, self.inequalities, self.references


def restrict(
    mechanism: Mechanism, records: int | Sequence[int], knowledge: Sequence[Knowledge]
) -> Restricted:
    """Return the lumped problem of a record (or group), under (bound) knowledge about the prior.

    Of a real output it is that of its cells (`Mechanism.nominal`).

    Raises
    ------
    ValidationError
        Constraints that depend on too many joint values to look at.
    InfeasibleError
        The reference priors exclude every dataset.
    """
    noise = mechanism.noise
    if isinstance(noise, RealOutput):
        return restrict(mechanism.nominal, records, knowledge)
    space, query = mechanism.space, mechanism.query
    group = space.group(records)
    parts = exchangeable(query, knowledge)
    features = [feature_of(one, query, j, group, parts) for j, one in enumerate(knowledge)]
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
    row_of_value = mechanism.distinct_rows[1]
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
            entry = found.setdefault(label, [0, Counter(), at[: len(group)]])
            entry[0] += count
            entry[1][value] += count
            places_of[code, place] = label
    if not found:
        raise InfeasibleError("adversaries: the constraints exclude every dataset; loosen one")
    labels, equations, inequalities = _possible(features, found)
    names = space.values(records)
    kept = sorted({label[0] for label in labels})
    counts = tuple(found[label][1] for label in labels)
    firsts = [next(iter(counted)) for counted in counts]
    matrix = mechanism.nominal.channel.matrix
    lumped = Lumped(
        values=[names[a] for a in kept],
        outputs=mechanism.outputs,
        value_index=np.searchsorted(kept, [label[0] for label in labels]).astype(np.intp),
        rows=matrix[firsts],
        multiplicities=[found[label][0] for label in labels],
        contexts=[[query.values[v] for v in sorted(counted)] for counted in counts],
    )
    of_set = None
    if isinstance(noise, ChannelSet):
        of_set = LumpedSet(lumped, noise.lower[firsts], noise.upper[firsts], counts)
    references = [
        feature.reference([label[2][j] for label in labels])
        for j, feature in enumerate(features)
        if isinstance(feature, Near)
    ]
    order = {label: g for g, label in enumerate(labels)}
    return Restricted(
        mechanism,
        group,
        lumped,
        of_set,
        tuple(equations),
        tuple(inequalities),
        tuple(references),
        joint,
        looked_at,
        {where: order[label] for where, label in places_of.items() if label in order},
    )


def _possible(
    features: Sequence[Expected | Counted | Near], found: Mapping[tuple[Any, ...], list[Any]]
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
            kept &= may_be_positive(one.exact, one.side) & may_be_positive(
                [-c for c in one.exact], -one.side
            )
        for one in inequalities:
            kept &= may_be_positive(one.exact, one.side)
        if kept.all():
            break
        if not kept.any():
            return every, *_constraints(features, found, every)
        labels = [label for label, possible in zip(labels, kept, strict=True) if possible]
        equations, inequalities = _constraints(features, found, labels)
    equations = unlike([one for one in equations if any(c != one.side for c in one.exact)])
    inequalities = [one for one in inequalities if any(c > one.side for c in one.exact)]
    return labels, equations, not_implied(inequalities, equations)


def _constraints(
    features: Sequence[Expected | Counted | Near],
    found: Mapping[tuple[Any, ...], list[Any]],
    labels: Sequence[tuple[Any, ...]],
) -> tuple[list[Linear], list[Linear]]:
    equations: list[Linear] = []
    inequalities: list[Linear] = []
    values = [found[label][2] for label in labels]
    for j, feature in enumerate(features):
        if not isinstance(feature, Near):
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
