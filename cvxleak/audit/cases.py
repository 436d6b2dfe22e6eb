"""The worst case of independent records whose distributions are in polytopes; the polytopes, read.

`cvxleak.kernel.independent` defines the cases and explains why they are enough. In each case, the
leakage is a concave function of the distribution of record i, which is a mixture of the vertices of
its polytope. It is maximized by multiplying weights (Blahut and Arimoto, with longer steps), for
all cases of a block at once, as long as they may be the worst. A gain is largest at one of finitely
many distributions, the same in all cases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import entr, rel_entr

from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, in_order, real_number
from cvxleak.core.wording import counted
from cvxleak.core.work import spend
from cvxleak.kernel.cases import Law, Others, compositions, gained
from cvxleak.kernel.independent import Person, ProductLeakage, corners
from cvxleak.kernel.numbers import RefusedError, precision, proved
from cvxleak.measures import gain_leakage, mutual_information
from cvxleak.model import Mechanism, Prior, RecordSpace
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.model.prior import as_prior
from cvxleak.proofs.format import plain

__all__ = [
    "Worst",
    "floats",
    "interval",
    "known_laws",
    "law_leakage",
    "law_value",
    "mixed_laws",
    "per_record",
    "statement_of",
    "weights_of",
    "worst_case",
    "worst_gain",
]

Vertices = tuple[tuple[float, ...], ...]

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

    def spread_over(self, people: Sequence[Person], record: int) -> list[tuple[float, ...]]:
        """Return each record's weights on the vertices of its distribution."""
        members: dict[Person, list[int]] = {}
        for i, person in enumerate(people):
            members.setdefault(person, []).extend([i] * (i != record))
        others = {person: own for person, own in members.items() if own}
        ways = [compositions(len(own), len(person.vertices)) for person, own in others.items()]
        numbers = next(islice(product(*ways), self.case, None))
        weights: list[tuple[float, ...]] = [()] * len(people)
        weights[record] = self.weights
        for (person, own), counts in zip(others.items(), numbers, strict=True):
            start = 0
            for corner, count in zip(np.eye(len(person.vertices)), counts, strict=True):
                for i in own[start : start + count]:
                    weights[i] = tuple(corner.tolist())
                start += count
        return weights


def statement_of(problem: Mapping[str, Any]) -> ProductLeakage:
    """Return what the proof kernel makes of a problem.

    Raises
    ------
    ValidationError
        The kernel refuses it.
    """
    try:
        with precision():
            return ProductLeakage.read(plain(problem))
    except RefusedError as error:
        raise ValidationError(f"mechanism: {error}") from error


def worst_case(
    statement: ProductLeakage, people: Sequence[Person], record: int, clock: Clock
) -> Worst:
    """Return the case in which a record leaks most, over mixtures of its own vertices."""
    own = floats(people[record].own)
    inputs = np.full((statement.cases(people, record), len(own)), 1 / len(own))
    rough = [_values(rows, own, inputs[: len(rows)]) for rows in statement.blocks(people, record)]
    values = np.concatenate([value for value, _ in rough])
    above = np.concatenate([slopes.max(axis=1) for _, slopes in rough])
    best, start, late = float(values.max()), 0, False
    for block in statement.blocks(people, record):
        here = np.arange(start, start + len(block))
        start += len(here)
        open_ = here[above[here] > best + SHARP * abs(best)]
        if len(open_) and not late:
            rows = block[open_ - here[0]]
            inputs[open_], values[open_], late = _improved(rows, own, inputs[open_], best, clock)
            best = max(best, float(values.max()))
    case = int(np.argmax(values))
    return Worst(float(values[case]), case, tuple(inputs[case].tolist()), inputs, late)


def worst_gain(statement: ProductLeakage, people: Sequence[Person], record: int) -> Worst:
    """Return the case in which a gain is largest, over mixtures of the record's own vertices."""
    own = people[record].own
    gain = statement.gain(len(own[0]))
    best, start = Worst(-math.inf, 0, (), None, False), 0
    places = corners(gain, own)
    for rows in statement.blocks(people, record):
        for weights, law in places:
            values = gained(rows, law, gain, statement.times)
            case = int(values.argmax())
            if values[case] > best.value:
                mixture = tuple(floats([weights])[0].tolist())
                best = Worst(float(values[case]), start + case, mixture, None, False)
        start += len(rows)
    return best


def floats(rows: Sequence[Law]) -> Array:
    """Return distributions of exact numbers as floats."""
    return np.array([[int(x.p) / int(x.q) for x in row] for row in rows])


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


def weights_of(law: Array, vertices: Sequence[Law]) -> tuple[Array, float]:
    """Return weights on the vertices whose mixture is near a distribution, and its distance."""
    table = floats(vertices)
    found, _ = nnls(np.vstack([table.T, np.ones(len(table))]), np.append(law, 1.0))
    found = found / found.sum() if found.sum() > 0 else np.full(len(table), 1 / len(table))
    return found, float(np.abs(found @ table - law).max())


def mixed_laws(
    people: Sequence[Person], record: int, weights: Sequence[tuple[float, ...]]
) -> tuple[tuple[float, ...], ...]:
    """Return the distributions that weights on the vertices stand for."""
    known: dict[Any, tuple[float, ...]] = {}
    found = []
    for i, (person, one) in enumerate(zip(people, weights, strict=True)):
        key = person, one, i == record
        if key not in known:
            law = np.array(one) @ floats(person.own if i == record else person.vertices)
            known[key] = tuple((law / law.sum()).tolist())
        found.append(known[key])
    return tuple(found)


def law_leakage(
    given: Mechanism | ProductLeakage,
    record: int,
    laws: Sequence[tuple[float, ...]],
    told: GainForm = LEAKAGE,
) -> float:
    """Return I(X_i;Y) under a product prior, in nats, or another gain (floating point)."""
    if isinstance(given, Mechanism):
        given = statement_of({"mechanism": given.to_dict(), "record": None, "entropy_floor": 0})
    each = [own for own, n in given.space.stretches for _ in range(n)]
    pairs = list(zip(each, laws, strict=True))
    alike = Counter(pairs[:record] + pairs[record + 1 :])
    others = [Others(own, (tuple(map(proved, law)),), n) for (own, law), n in alike.items()]
    with precision():
        (rows,) = next(given.channels.blocks(each[record], others))
    return law_value(np.array(laws[record]), rows / rows.sum(axis=1, keepdims=True), told)


def law_value(law: Array, channel: Array, told: GainForm) -> float:
    """Return the leakage or gain of a channel about a record of this distribution, in floats."""
    if told.is_leakage:
        return float(mutual_information(channel, law))
    return gain_leakage(channel, law, told.gain, told.form)
