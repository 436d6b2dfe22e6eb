"""The leakage about one record when all records are independent: both bounds, in floats.

The distribution of record j is in the hull P_j of given distributions, its vertices. P(Y | X_i = a)
is linear in each other record's distribution. I(X_i;Y) at a fixed distribution of record i is
convex in that channel, and so is its maximum over P_i. So the maximum over all the others'
distributions is attained at vertices, jointly. A *case* says how many of the records that add the
same to the query's total are at each vertex.

Floats here are sub-measures of the true values. Only products and sums of numbers >= 0 are
computed, so a result of m roundings in a row is at most (1 + u)^m times its true value, u = 2^-53,
and what is dropped (the far tails of a sum of many records) makes it smaller. So c R <= W, entry by
entry, for the computed rows R, the true channel W and c = 1 - m u. Suppose that an additional bit
says whether the output is drawn from c R or from the rest, of mass at most eps = 1 - c min_a
R_a(Y). Then, with D(.||.) for measures and any s >= 0 on the outputs,

    I(X_i;Y) <= max_v sum_a v_a D(c R_a || c s) + c (s(Y) - min_a R_a(Y)) + eps log k,

the maximum over the vertices v of P_i. The first part is I(p, c R) <= sum_a p_a D(c R_a || c s) -
D(c p R || c s). It is linear in p except for the last term, which is at least c (p R)(Y) - c s(Y).
The rest reveals at most log k. Since the bit itself reveals at most h(eps),

    I(X_i;Y) >= I(p, c R) - h(eps),

where h(eps) <= eps (1 - log eps), which increases up to eps = 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array, short
from cvxleak.exact.limits import charge
from cvxleak.exact.outward import LOG_ERROR, UNIT_ROUNDOFF, logarithm, x_log_x_sums
from cvxleak.model import AdditiveQuery, Mechanism, Query

__all__ = [
    "CASES_LIMIT",
    "IndependentRecords",
    "Kind",
    "Rows",
    "attained",
    "box",
    "choices",
    "divergences",
    "floats",
    "simplex",
    "upper_ends",
]

TINY = 2.0**-100
"""Probabilities of a total below this are dropped."""

LEAST_ENTRY = 2.0**-400
"""Entries of a channel below this are dropped: their products with others do not underflow."""

LAW_ROUNDINGS = 6
"""Roundings in x / sum(x), compared with the distribution that the numbers x stand for."""

LEAST_OUTPUT = 2.0**-1000
"""Smaller masses of an output count as 0."""

TOTALS_LIMIT = 1 << 22
"""Most totals, counted from 0 to the largest."""

CASES_LIMIT = 1 << 17
"""Most cases for the records that are not attacked."""

WORK_LIMIT = 1 << 31
"""Most totals in all cases together."""

BLOCK = 64
"""Cases whose rows are computed together."""

Vertices = tuple[tuple[float, ...], ...]


def simplex(size: int) -> Vertices:
    """Return the vertices of all distributions on `size` values."""
    return tuple(tuple(float(a == b) for b in range(size)) for a in range(size))


def box(size: int, least: float) -> Vertices:
    """Return the vertices of the distributions with at least the probability `least` everywhere."""
    low = fraction(least)
    high = float(1 - (size - 1) * low)
    if size * low == 1:
        return ((1 / size,) * size,)
    return tuple(tuple(high if a == b else least for b in range(size)) for a in range(size))


def floats(rows: Sequence[Sequence[float]] | Array) -> Array:
    """Return distributions as floats, each off by at most `LAW_ROUNDINGS` roundings."""
    found = np.array([[float(x) for x in row] for row in rows], dtype=float)
    sums = np.array([math.fsum(row) for row in found])
    return found / sums[:, None]


class Law(NamedTuple):
    """The distribution of a total: weights from the total `start` on, and their roundings."""

    start: int
    weights: Array
    roundings: int


class Rows(NamedTuple):
    """Rows of channels, shape (cases, values, outputs), with share * rows <= truth."""

    rows: Array
    share: float


class Kind(NamedTuple):
    """Exchangeable records: what they add to the total, and their hull's vertices."""

    codes: tuple[int, ...]
    vertices: Vertices


class IndependentRecords:
    """A mechanism, and for each record the vertices of the hull that its distribution is in.

    Parameters
    ----------
    mechanism : Mechanism
    hulls : sequence of vertices
        The vertices of each record's hull.
    own : sequence of vertices, optional
        The vertices of each record's hull if it is the one attacked; `hulls` if left out.

    Raises
    ------
    ValidationError
        More than 2^22 totals, or a channel that is only known to lie in a set.
    """

    def __init__(
        self, mechanism: Mechanism, hulls: Sequence[Vertices], own: Sequence[Vertices] | None = None
    ) -> None:
        self.mechanism, self._channel = mechanism, mechanism.channel
        self.codes, self._places = _totals(mechanism.query)
        self.hulls, self.own = hulls, hulls if own is None else own
        self._kinds = [Kind(c, v) for c, v in zip(self.codes, hulls, strict=True)]

    @cached_property
    def _matrix(self) -> Array:
        rows = floats(self._channel.matrix)
        return np.where(rows < LEAST_ENTRY, 0.0, rows)

    def attacked(self, record: int | None) -> list[int]:
        """Return the records that are attacked, one of each class of exchangeable ones."""
        if record is not None:
            return [record]
        first: dict[tuple[Kind, Vertices], int] = {}
        for i, key in enumerate(zip(self._kinds, self.own, strict=True)):
            first.setdefault(key, i)
        return list(first.values())

    def others(self, record: int) -> dict[Kind, list[int]]:
        """Return the records that are not attacked, by kind."""
        found: dict[Kind, list[int]] = {}
        for i, kind in enumerate(self._kinds):
            if i != record:
                found.setdefault(kind, []).append(i)
        return found

    @property
    def totals(self) -> int:
        """How many totals there are."""
        return len(self._places)

    def cases(self, record: int) -> int:
        """Return the number of cases.

        Raises
        ------
        ValidationError
            There are too many.
        """
        found = math.prod(
            math.comb(len(members) + len(kind.vertices) - 1, len(members))
            for kind, members in self.others(record).items()
        )
        if found > CASES_LIMIT or found * self.totals > WORK_LIMIT:
            raise ValidationError(
                f"mechanism: found {short(found)} cases of the other records, on "
                f"{self.totals} totals; at most {CASES_LIMIT} cases and {WORK_LIMIT} totals "
                "in all of them are gone through"
            )
        return found

    def blocks(self, record: int) -> Iterator[Rows]:
        """Yield the rows of record i in all cases, in the order of `choices`, block by block."""
        groups = [
            (len(members), [_of_one(kind.codes, v) for v in floats(kind.vertices)])
            for kind, members in self.others(record).items()
        ]
        found = _spread(Law(0, np.ones(1), 0), groups)
        while block := list(islice(found, BLOCK)):
            yield self._rows(record, block)

    def at(self, record: int, laws: Sequence[tuple[float, ...]], roundings: int) -> Rows:
        """Return the rows of record i in one case, with the `roundings` of the other records."""
        together: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
        for j, (codes, law) in enumerate(zip(self.codes, laws, strict=True)):
            if j != record:
                together[codes, law] = together.get((codes, law), 0) + 1
        found = Law(0, np.ones(1), 0)
        for (codes, law), number in together.items():
            found = _times(found, _power(_of_one(codes, np.array(law), roundings), number))
        return self._rows(record, [found])

    def _rows(self, record: int, laws: Sequence[Law]) -> Rows:
        low = min(law.start for law in laws)
        width = max(law.start + len(law.weights) for law in laws) - low
        table = np.zeros((len(laws), width))
        for row, law in zip(table, laws, strict=True):
            row[law.start - low : law.start - low + len(law.weights)] = law.weights
        products = table.size * len(self.codes[record]) * self._matrix.shape[1]
        charge("steps", products >> 12, "the rows of independent records")
        # A total that cannot occur has weight 0 and an arbitrary row.
        rows = np.stack(
            [table @ self._matrix[self._places[low + c :][:width]] for c in self.codes[record]],
            axis=1,
        )
        roundings = max(law.roundings for law in laws) + LAW_ROUNDINGS + width + 2
        return Rows(rows, 1 - roundings * UNIT_ROUNDOFF)


def choices(others: dict[Kind, list[int]]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield each case: for each kind the number of its records at each vertex."""
    return product(*(list(_compositions(len(m), len(kind.vertices))) for kind, m in others.items()))


def upper_ends(found: Rows, weights: Array, own: Array) -> Array:
    """Return for each case a float above the leakage of record i, over all its distributions.

    `weights`, shape (cases, vertices), are those of the mixture of the vertices `own` that makes
    the output distribution s; any are valid.
    """
    rows, (_, values, outputs) = found.rows, found.rows.shape
    u = UNIT_ROUNDOFF
    s = np.einsum("ca,cay->cy", weights @ own, rows)
    divergence, error = divergences(rows, s)
    sums = rows.sum(axis=2)
    least = sums.min(axis=1) * (1 - (outputs + 2) * u)
    most = s.sum(axis=1) * (1 + (outputs + 2) * u)
    rest = np.maximum(1 - found.share * least, 0.0) + 4 * u
    with np.errstate(invalid="ignore"):  # outputs that s excludes have no probability
        terms = np.where(own[None] > 0, own[None] * (divergence + error)[:, None, :], 0.0)
    ends = terms.sum(axis=2) + (LAW_ROUNDINGS + values + 4) * u * np.abs(terms).sum(axis=2)
    # log k < k.
    bounds = np.maximum(ends.max(axis=1), 0.0) + np.maximum(most - least, 0.0) + rest * values
    return bounds * (1 + 8 * u)


def attained(found: Rows, law: Array, roundings: int) -> float:
    """Return a float below the leakage of record i in one case, for inputs with `roundings`."""
    rows, (_, values, outputs) = found.rows, found.rows.shape
    u = UNIT_ROUNDOFF
    t = np.einsum("a,cay->cy", law, rows)
    divergence, error = divergences(rows, t)
    sums = rows.sum(axis=2)
    rest = max(1 - found.share * float(sums.min()) * (1 - (outputs + 2) * u), 0.0) + 4 * u
    off = (roundings + values + 2) * u
    with np.errstate(invalid="ignore"):  # outputs that t excludes have no probability
        terms = np.where(law > 0, law * (divergence - error - 1.1 * off * sums)[0], 0.0)
        information = float(terms.sum() - 1.1 * off * np.abs(terms).sum())
    doubt = rest * (1 - float(logarithm(np.array([rest]))[0])) * (1 + 1e-12)  # >= h(rest)
    return max(found.share * information * (1 - 4 * u) - doubt, 0.0)


def divergences(rows: Array, s: Array) -> tuple[Array, Array]:
    """Return sum_y R log(R / s) for rows, shape (cases, values, outputs), and its error."""
    cases, values, outputs = rows.shape
    own, sizes = (x.reshape(cases, values) for x in x_log_x_sums(rows.reshape(-1, outputs)))
    positive = s > LEAST_OUTPUT
    logs = np.where(positive, logarithm(np.where(positive, s, 1.0)), 0.0)
    cross = np.einsum("cay,cy->ca", rows, logs)
    magnitude = np.einsum("cay,cy->ca", rows, np.abs(logs))
    missed = (rows * ~positive[:, None, :]).any(axis=2)
    step = (LOG_ERROR + 8 + outputs) * UNIT_ROUNDOFF * 1.1
    error = step * (2 * rows.sum(axis=2) + sizes + magnitude)
    return np.where(missed, np.inf, own - cross), error


def _totals(query: Query) -> tuple[list[tuple[int, ...]], NDArray[np.intp]]:
    """Return what each record adds to a total for each of its values, and the totals' values.

    Several sums are coded as the digits of one number; a table has one total for each dataset.
    """
    if not isinstance(query, AdditiveQuery):
        shape = query.space.shape
        strides = [math.prod(shape[j + 1 :]) for j in range(len(shape))]
        codes = [
            tuple(a * stride for a in range(size))
            for size, stride in zip(shape, strides, strict=True)
        ]
        return codes, query.table().ravel()
    known = {record: record for record in query.contributions}
    distinct = {part for record in known for part in record}
    units = [math.gcd(*column) or 1 for column in zip(*distinct, strict=True)]
    highest = {record: tuple(map(max, zip(*record, strict=True))) for record in known}
    tops = [
        1 + sum(column) // unit
        for column, unit in zip(
            zip(*(highest[record] for record in query.contributions), strict=True),
            units,
            strict=True,
        )
    ]
    size = math.prod(tops)
    if size > TOTALS_LIMIT:
        raise ValidationError(
            f"mechanism: found {short(size)} totals of the query; at most {TOTALS_LIMIT} are gone "
            "through for independent records"
        )
    strides = [math.prod(tops[j + 1 :]) for j in range(len(tops))]
    coded = {
        record: tuple(
            sum(c // unit * stride for c, unit, stride in zip(part, units, strides, strict=True))
            for part in record
        )
        for record in known
    }
    index = {name: place for place, name in enumerate(query.values)}
    named = {total: index[name] for total, name in query.value_of_total}
    places = np.zeros(size, dtype=np.intp)
    for place, digits in enumerate(product(*map(range, tops))):
        total = tuple(digit * unit for digit, unit in zip(digits, units, strict=True))
        if query.modulus is not None:
            total = tuple(part % query.modulus for part in total)
        places[place] = named.get(total, 0)
    return [coded[record] for record in query.contributions], places


def _of_one(codes: tuple[int, ...], law: Array, roundings: int = LAW_ROUNDINGS) -> Law:
    weights = np.zeros(max(codes) + 1)
    np.add.at(weights, list(codes), law)
    return _trimmed(0, weights, roundings + len(codes))


def _trimmed(start: int, weights: Array, roundings: int) -> Law:
    kept = np.flatnonzero(weights >= TINY)
    low, high = (int(kept[0]), int(kept[-1]) + 1) if len(kept) else (0, 1)
    weights = weights[low:high]
    return Law(start + low, np.where(weights < TINY, 0.0, weights), roundings)


def _times(one: Law, other: Law) -> Law:
    """Return the distribution of the sum of two independent totals."""
    if len(one.weights) < len(other.weights):
        one, other = other, one
    long, short_one = one.weights, other.weights
    used = np.flatnonzero(short_one)
    charge("steps", len(long) * len(used) >> 10, "a sum of independent records")
    if 16 * len(used) < len(short_one):
        weights = np.zeros(len(long) + len(short_one) - 1)
        for place in used:
            weights[place : place + len(long)] += short_one[place] * long
    else:
        weights = np.convolve(long, short_one)
    roundings = one.roundings + other.roundings + len(used) + 1
    return _trimmed(one.start + other.start, weights, roundings)


def _power(law: Law, power: int) -> Law:
    """Return the distribution of the sum of `power` independent totals."""
    result = Law(0, np.ones(1), 0)
    for digit in f"{power:b}":
        result = _times(result, result)
        if digit == "1":
            result = _times(result, law)
    return result


def _spread(law: Law, groups: Sequence[tuple[int, Sequence[Law]]]) -> Iterator[Law]:
    if not groups:
        yield law
        return
    number, vertices = groups[0]
    for one in _mixed(law, number, vertices):
        yield from _spread(one, groups[1:])


def _mixed(law: Law, number: int, vertices: Sequence[Law]) -> Iterator[Law]:
    """Yield the distribution convolved with that of `number` records, as in `_compositions`."""
    first, *rest = vertices
    if len(rest) == 1:
        yield from _halved(law, number, first, rest[0], {})
    elif not rest:
        yield _times(law, _power(first, number))
    else:
        for taken in range(number + 1):
            yield from _mixed(_times(law, _power(first, taken)), number - taken, rest)


def _halved(
    law: Law, number: int, first: Law, last: Law, powers: dict[tuple[bool, int], Law]
) -> Iterator[Law]:
    """Yield `law` convolved with first^j last^(number - j) for j = 0, ..., number.

    The factors that all of one half have in common are multiplied once. There are as many products
    as cases, but most with short factors.
    """

    def power(of_first: bool, exponent: int) -> Law:
        key = of_first, exponent
        if key not in powers:
            powers[key] = _power(first if of_first else last, exponent)
        return powers[key]

    if number == 0:
        yield law
        return
    half = number // 2
    yield from _halved(_times(law, power(False, number - half)), half, first, last, powers)
    above = number - half - 1
    yield from _halved(_times(law, power(True, half + 1)), above, first, last, powers)


def _compositions(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (number,)
        return
    for first in range(number + 1):
        for rest in _compositions(number - first, parts - 1):
            yield (first, *rest)
