"""The worst case of independent records whose distributions are in polytopes; the polytopes, read.

`cvxleak.proofs.bounds.independent` defines the cases and explains why they are enough. In each
case, the leakage is a concave function of the distribution of record i, which is a mixture of the
vertices of its polytope. It is maximized by multiplying weights (Blahut and Arimoto, with longer
steps), for all cases of a block at once, as long as they may be the worst. A gain is largest at one
of finitely many distributions, the same in all cases (`cvxleak.proofs.bounds.independent_gains`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import entr, rel_entr

from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, in_order, real_number
from cvxleak.core.wording import counted
from cvxleak.core.work import spend
from cvxleak.measures import gain_leakage, mutual_information
from cvxleak.model import Mechanism, Prior, RecordSpace
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.model.prior import as_prior
from cvxleak.proofs.bounds.independent import (
    IndependentRecords,
    Vertices,
    choices,
    floats,
    simplex,
)
from cvxleak.proofs.bounds.independent_gains import actions_of, corners, gain_ends, laws_of

__all__ = [
    "Worst",
    "interval",
    "known_laws",
    "law_leakage",
    "law_value",
    "mixed_laws",
    "per_record",
    "weights_of",
    "worst_case",
    "worst_gain",
]

ITERATIONS = 400

SHARP = 1e-11
"""Gap, as a part of the leakage, at which a case is known well enough."""

LEAST_WEIGHT = 1e-15
"""No weight is less: the output distribution would miss outputs."""

SLACK = 1e-13
"""Nats by which the two least probabilities of a record floor are on either side of it."""


@dataclass(frozen=True)
class Worst:
    """The worst case for one record.

    Attributes
    ----------
    value : float
    case : int
        Its place among all.
    weights : tuple of float
        In it, on the vertices of the record's own distribution.
    inputs : array, shape (cases, vertices of the record's own distribution), or None
        Weights on these vertices, for each case; None for a gain.
    late : bool
        Whether the time was up before all were good.
    """

    value: float
    case: int
    weights: tuple[float, ...]
    inputs: Array | None
    late: bool

    def spread_over(self, setting: IndependentRecords, record: int) -> list[tuple[float, ...]]:
        """Return each record's weights on the vertices of its distribution."""
        others = setting.others(record)
        numbers = next(islice(choices(others), self.case, None))
        weights: list[tuple[float, ...]] = [()] * setting.mechanism.space.records
        weights[record] = self.weights
        for (kind, members), counts in zip(others.items(), numbers, strict=True):
            corners, start = simplex(len(kind.vertices)), 0
            for corner, count in zip(corners, counts, strict=True):
                for i in members[start : start + count]:
                    weights[i] = corner
                start += count
        return weights


def worst_case(setting: IndependentRecords, record: int, clock: Clock) -> Worst:
    """Return the case in which a record leaks most, over mixtures of its own vertices."""
    own = floats(setting.own[record])
    inputs = np.full((setting.cases(record), len(own)), 1 / len(own))
    rough = [
        _values(block.rows, own, inputs[: len(block.rows)]) for block in setting.blocks(record)
    ]
    values = np.concatenate([value for value, _ in rough])
    above = np.concatenate([slopes.max(axis=1) for _, slopes in rough])
    best, start, late = float(values.max()), 0, False
    for block in setting.blocks(record):
        here = np.arange(start, start + len(block.rows))
        start += len(here)
        open_ = here[above[here] > best + SHARP * abs(best)]
        if len(open_) and not late:
            rows = block.rows[open_ - here[0]]
            inputs[open_], values[open_], late = _improved(rows, own, inputs[open_], best, clock)
            best = max(best, float(values.max()))
    case = int(np.argmax(values))
    return Worst(float(values[case]), case, tuple(inputs[case].tolist()), inputs, late)


def worst_gain(setting: IndependentRecords, record: int, told: GainForm) -> Worst:
    """Return the case in which a gain is largest, over mixtures of the record's own vertices."""
    own = setting.own[record]
    actions = actions_of(told.gain, len(own[0]))
    weights = corners(actions, own)
    laws = laws_of(weights, own)
    best, start = Worst(-math.inf, 0, (), None, False), 0
    for block in setting.blocks(record):
        values, _ = gain_ends(block, laws, 1, actions, told.form)
        case, law = np.unravel_index(int(values.argmax()), values.shape)
        if values[case, law] > best.value:
            mixture = tuple(int(x.p) / int(x.q) for x in weights[law])
            best = Worst(float(values[case, law]), start + int(case), mixture, None, False)
        start += len(values)
    return best


def _values(rows: Array, own: Array, weights: Array) -> tuple[Array, Array]:
    """Return f = I(p, rows) at p = weights @ own for each case, and its slope in each weight.

    f is concave in the weights and sum_v weights_v slope_v = f, so that max_v slope_v bounds it.
    """
    laws = weights @ own
    s = np.einsum("ca,cay->cy", laws, rows)
    divergence = rel_entr(rows, s[:, None, :]).sum(axis=2)
    divergence = np.where(np.isfinite(divergence), divergence, 0.0)  # no vertex gives that value
    return (laws * divergence).sum(axis=1), divergence @ own.T


def _improved(
    rows: Array, own: Array, weights: Array, best: float, clock: Clock
) -> tuple[Array, Array, bool]:
    """Return better weights, the values at them, and whether the time was up."""
    value, slopes = _values(rows, own, weights)
    # If a channel leaks little, steps of 1 move the weights by about as little as it leaks.
    step = np.maximum(1.0, 0.5 / np.maximum(value, 1e-300))
    for _ in range(ITERATIONS):
        best = max(best, float(value.max()))
        gap = slopes.max(axis=1) - value
        going = (gap > SHARP * value) & (slopes.max(axis=1) > best * (1 + SHARP))
        if not going.any():
            break
        if clock.late:
            return weights, value, True
        spend(1e5 + 20 * rows.size)
        exponents = step[:, None] * (slopes - slopes.max(axis=1, keepdims=True))
        moved = np.maximum(weights * np.exp(exponents), LEAST_WEIGHT)
        moved /= moved.sum(axis=1, keepdims=True)
        new, new_slopes = _values(rows, own, moved)
        better = going & ((new_slopes.max(axis=1) - new < gap) | (new > value))
        step = np.where(better, 1.2 * step, np.maximum(0.3 * step, 1.0))
        weights = np.where(better[:, None], moved, weights)
        value = np.where(better, new, value)
        slopes = np.where(better[:, None], new_slopes, slopes)
    return weights, value, False


def known_laws(space: RecordSpace, name: str, value: Any) -> Any:
    """Return what is known of the records' distributions, checked."""
    if name == "laws":
        one = isinstance(value, Prior | Mapping) or hasattr(value, "reindex")
        given = (value,) if one else in_order(value, name)
        if not given:
            raise ValidationError("laws: found none; at least one distribution is needed")
        if _is_law(given[0]):
            known = {
                alphabet: _vertices(given, alphabet, name) for alphabet in set(space.alphabets)
            }
            if len(known) == 1:
                return known[space.alphabets[0]]
            return tuple(known[alphabet] for alphabet in space.alphabets)
        if len(given) != space.records:
            raise ValidationError(
                f"laws: found {len(given)} sets of distributions; one for all records or "
                f"{space.records} are needed"
            )
        return tuple(
            _vertices(in_order(one, f"laws[{i}]"), alphabet, f"laws[{i}]")
            for i, (one, alphabet) in enumerate(zip(given, space.alphabets, strict=True))
        )
    if name == "least_probability":
        return real_number(value, name, 0.0, 1 / max(space.shape))
    if set(space.shape) != {2}:
        record = next(i for i, size in enumerate(space.shape) if size != 2)
        raise ValidationError(
            f"record_floor: record {record} has {counted(space.shape[record], 'value')}, "
            "and only records "
            "of two values can have an entropy floor; give laws or least_probability"
        )
    floor = real_number(value, name, 0.0)
    if floor > math.log(2) * (1 + 1e-12):
        raise InfeasibleError(
            f"record_floor: found {floor!r} nats; no record of two values has more than log 2 = "
            f"{math.log(2)!r} nats"
        )
    return min(floor, math.log(2) - 1e-12)


def _is_law(given: Any) -> bool:
    if isinstance(given, Prior | Mapping) or hasattr(given, "reindex"):
        return True
    parts = in_order(given, "laws")
    return not any(
        isinstance(x, Prior) or (np.iterable(x) and not isinstance(x, str)) for x in parts
    )


def _vertices(laws: Sequence[Any], alphabet: tuple[Hashable, ...], name: str) -> Vertices:
    if not laws:
        raise ValidationError(f"{name}: found none; at least one distribution is needed")
    priors = [as_prior(x, len(alphabet), f"{name}[{v}]", alphabet) for v, x in enumerate(laws)]
    return tuple(dict.fromkeys(tuple(prior.probabilities.tolist()) for prior in priors))


def per_record(space: RecordSpace, laws: Any) -> list[Vertices]:
    """Return the vertices for each record, from those of all or of each."""
    return list(laws) if isinstance(laws[0][0], tuple) else [laws] * space.records


def interval(floor: float) -> tuple[float, float]:
    """Return floats a, b with h(a) < floor < h(b), near to each other.

    Examples
    --------
    >>> from cvxleak.audit.cases import interval
    >>> [round(least, 9) for least in interval(0.5)]
    [0.199709903, 0.199709903]
    """
    below, above = (_least_probability(floor + side * SLACK) for side in (-1, 1))
    return below, above


def _least_probability(floor: float) -> float:
    if floor <= 0:
        return 0.0
    if floor >= math.log(2):
        return 0.5
    low, high = 0.0, 0.5
    while low < (middle := (low + high) / 2) < high:
        if entr([middle, 1 - middle]).sum() < floor:
            low = middle
        else:
            high = middle
    return low


def weights_of(law: Array, vertices: Vertices) -> tuple[Array, float]:
    """Return weights on the vertices whose mixture is near a distribution, and its distance."""
    corners = floats(vertices)
    found, _ = nnls(np.vstack([corners.T, np.ones(len(corners))]), np.append(law, 1.0))
    found = found / found.sum() if found.sum() > 0 else np.full(len(corners), 1 / len(corners))
    return found, float(np.abs(found @ corners - law).max())


def mixed_laws(
    setting: IndependentRecords, record: int, weights: Sequence[tuple[float, ...]]
) -> tuple[tuple[float, ...], ...]:
    """Return the distributions that weights on the vertices stand for."""
    known: dict[Any, tuple[float, ...]] = {}
    for i, one in enumerate(weights):
        vertices = setting.own[i] if i == record else setting.hulls[i]
        key = one, vertices
        if key not in known:
            law = np.array(one) @ floats(vertices)
            known[key] = tuple((law / law.sum()).tolist())
    return tuple(
        known[one, setting.own[i] if i == record else setting.hulls[i]]
        for i, one in enumerate(weights)
    )


def law_leakage(
    mechanism: Mechanism,
    record: int,
    laws: Sequence[tuple[float, ...]],
    told: GainForm = LEAKAGE,
) -> float:
    """Return I(X_i;Y) under a product prior, in nats, or another gain (floating point)."""
    whole = [simplex(size) for size in mechanism.space.shape]
    rows = IndependentRecords(mechanism, whole).at(record, laws, 0).rows[0]
    return law_value(np.array(laws[record]), rows / rows.sum(axis=1, keepdims=True), told)


def law_value(law: Array, channel: Array, told: GainForm) -> float:
    """Return the leakage or gain of a channel about a record of this distribution, in floats."""
    if told.is_leakage:
        return float(mutual_information(channel, law))
    return gain_leakage(channel, law, told.gain, told.form)
