r"""What an output says about one of many independent records, the others at vertices: in floats.

A *case* says how many of the other records that are alike are at each vertex of what is known of
their distributions. There may be thousands of cases of thousands of records, so channels are
computed in floats, from below: arrays hold numbers that are certainly not above those that they
stand for. They come from sums of products of such numbers, lowered by more than rounding can have
added (`below`); what is small is dropped.

PARTS. Let R_a <= W_a for the rows of a channel W, and R_a(Y) >= 1 - e. Let one more bit tell
whether an output is drawn from R or from the rest. What it tells together with Y is, for every s,

    I(A;Y) <= sum_a p_a D(R_a || s) - D(pR || s) + rest <= max_v sum_a v_a D(R_a || s)
              + s(Y) - min_a R_a(Y) + e log k,

over the vertices v of the distribution of A. Here D(m || s) = sum_y m(y) log(m(y) / s(y)) >= m(Y) -
s(Y) for measures, and (pR)(Y) >= min_a R_a(Y). The rest is sum_a p_a x_a log(x_a / px) over the
outputs, x_a = W_a - R_a, each summand >= 0. So another output that brings each row of it up to the
mass e does not lower it, and makes it e times an information, at most e log k. For a gain G = max_w
<g_w, .>, G(m + n) <= G(m) + G(n), so that sum_y G(p W_y) <= sum_y G(p R_y) + e max(0, g), g the
largest entry of a g_w.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, arb_poly, fmpq
from numpy.typing import NDArray

from cvxleak.kernel.budget import charge, few
from cvxleak.kernel.gains import Gain
from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import dot, largest, least, lower, need
from cvxleak.kernel.space import LONGEST, Space, Total
from cvxleak.kernel.view import Row

__all__ = ["Channels", "Law", "Others", "below", "compositions", "gained", "leaked", "simplex"]

Array = NDArray[np.float64]
Law = Sequence[fmpq]

TINY, LEAST, NONE = 2.0**-100, 2.0**-400, 2.0**-900
"""Smaller probabilities of a total, of an output given what is known, and of one are dropped."""

BLOCK = 1 << 18
"""Numbers in the channels that are computed together."""


class Others(NamedTuple):
    """Records that are alike: what each value adds, vertices of their distributions, how many."""

    contributions: tuple[Total, ...]
    vertices: tuple[Law, ...]
    records: int


class _Totals(NamedTuple):
    """Weights of totals, from the code `start` on."""

    start: int
    weights: Array


class Channels:
    """The channels from a record to the output, if the distributions of the others are known.

    Totals are coded as the digits of one number, from the least total on.
    """

    def __init__(self, space: Space, rows: Mapping[Any, Row]) -> None:
        columns = list(zip(*(zip(*own, strict=True) for own, _ in space.stretches), strict=True))
        lows = [[min(own) for own in one] for one in columns]
        self._units = [
            math.gcd(*(x - low for own, low in zip(one, low_, strict=True) for x in own)) or 1
            for one, low_ in zip(columns, lows, strict=True)
        ]
        numbers = [n for _, n in space.stretches]
        each = zip(columns, self._units, strict=True)
        tops = [1 + dot([max(c) - min(c) for c in one], numbers) // unit for one, unit in each]
        self.totals = math.prod(tops)
        few(self.totals, LONGEST, "totals of independent records")
        self._strides = [math.prod(tops[i + 1 :]) for i in range(len(tops))]
        first = [dot(low, numbers) for low in lows]
        charge("ball operations", self.totals)
        self.places: NDArray[np.intp] = np.empty(self.totals, np.intp)
        for code, digits in enumerate(product(*map(range, tops))):
            steps = zip(first, digits, self._units, strict=True)
            total = space.add(tuple(x + d * unit for x, d, unit in steps))
            self.places[code] = space.place_of.get(total, -1)
        self._exact = arb_mat([list(rows[i].lo) for i in range(len(rows))])
        matrix = np.array([[lower(x) for x in rows[i].lo] for i in range(len(rows))])
        matrix[matrix < LEAST] = 0.0
        # Totals that the query does not have, at place -1, lead to no output.
        self.matrix = np.vstack([matrix, np.zeros(matrix.shape[1])])

    def codes(self, contributions: Sequence[Total]) -> list[int]:
        """Return what each value adds to a code."""
        away = [min(column) for column in zip(*contributions, strict=True)]
        scales = list(zip(away, self._units, self._strides, strict=True))
        return [
            sum((x - low) // unit * by for x, (low, unit, by) in zip(own, scales, strict=True))
            for own in contributions
        ]

    def at_once(self, contributions: Sequence[Total]) -> int:
        """Return in how many cases the rows of a record are computed together."""
        return max(BLOCK // max(len(contributions) * self.matrix.shape[1], self.totals >> 6), 1)

    def blocks(self, contributions: Sequence[Total], others: Sequence[Others]) -> Iterator[Array]:
        """Yield the rows of a record in all cases, shape (cases, values, outputs), some at a time.

        The order is that of the numbers of records at the first vertex, the second, ..., of each
        of `others` in turn.
        """
        powers = [
            [_powers(_of_one(self.codes(own), vertex), n) for vertex in vertices]
            for own, vertices, n in others
        ]
        found = _cases(_Totals(0, np.ones(1)), powers)
        while block := list(islice(found, self.at_once(contributions))):
            yield self._block(self.codes(contributions), block)

    def _block(self, codes: Sequence[int], cases: Sequence[_Totals]) -> Array:
        low = min(start for start, _ in cases)
        width = max(start + len(weights) for start, weights in cases) - low
        table = np.zeros((len(cases), width))
        for row, (start, weights) in zip(table, cases, strict=True):
            row[start - low : start - low + len(weights)] = weights
        charge("float operations", table.size * len(codes) * self.matrix.shape[1])
        rows = [table @ self.matrix[self.places[low + c :][:width]] for c in codes]
        return below(np.stack(rows, axis=1), width)

    def exactly(
        self, contributions: Sequence[Total], others: Sequence[tuple[Sequence[Total], Law, int]]
    ) -> list[list[arb]]:
        """Return the rows of a record, where each other one has a distribution, in balls."""
        found = arb_poly([1])
        for own, law, n in others:
            codes = self.codes(own)
            one = [fmpq(0)] * (max(codes) + 1)
            for code, x in zip(codes, law, strict=True):
                one[code] += x
            charge("ball operations", self.totals)
            found = found * arb_poly([arb(x) for x in one]) ** n
        weights = [(t, x) for t, x in enumerate(found.coeffs()) if not x == 0]
        table = []
        for code in self.codes(contributions):
            at = [arb(0)] * self._exact.nrows()
            for t, x in weights:
                place = int(self.places[t + code])
                need(place >= 0, "a total without a value")
                at[place] += x
            table.append(at)
        charge("ball operations", len(table) * self._exact.nrows() * self._exact.ncols())
        return (arb_mat(table) * self._exact).tolist()


def leaked(rows: Array, weights: Array, own: Sequence[Law]) -> Array:
    """Return for each case a float above the leakage, for all mixtures of the vertices `own`.

    `weights`, shape (cases, vertices), make the measure s on the outputs; any are valid (PARTS).
    """
    k = rows.shape[1]
    vertices = np.array([[_float(x) for x in v] for v in own])
    used = vertices.any(axis=0)
    rows, vertices = rows[:, used], vertices[:, used]
    s = np.einsum("ca,cay->cy", weights @ vertices, rows)
    known, one = s > NONE, np.ones(rows.shape[2])
    missed = (rows * ~known[:, None]).any(axis=2)
    terms = Many(rows).xlogx() - Many(rows) * Many(np.where(known, s, 1.0)[:, None]).log()
    far = terms.inner(one)
    far = Many(far.m[:, None], np.where(missed, np.inf, far.r)[:, None])
    with np.errstate(invalid="ignore"):
        means = far.inner(Many(vertices, vertices * 2.0**-52))
    mass = least(Many(rows[:, a]).inner(one) for a in range(rows.shape[1]))
    worst = largest(means[:, v] for v in range(len(own)))
    found = worst + Many(s).inner(one) - mass + (1 - mass) * arb(k).log()
    return np.where(found.certain(), found.upper(), np.inf)


def gained(rows: Array, p: Law, gain: Gain, times: Any) -> Array:
    """Return for each case a float above sum_y G(p W_y) - T G(p), or their quotient (PARTS)."""
    charge("float operations", 32 * rows.size * len(gain.linear))
    one = np.ones(rows.shape[2])
    each = [Many(rows[:, a]) for a in range(len(p))]
    mass = least(x.inner(one) for x in each)
    top = max(fmpq(0), *(x for action in gain.linear for x in action))
    before = gain.value([arb(q) for q in p])
    need(times is not None or before > 0, "a factor of a gain that may be 0 or less")
    with np.errstate(over="ignore", invalid="ignore"):
        seen = gain.value([x * arb(q) for x, q in zip(each, p, strict=True)]).inner(one)
        found = seen + (1 - mass) * arb(top)
        found = found / before if times is None else found - before * times
    return np.where(found.certain(), found.upper(), np.inf)


def below(x: Array, terms: int) -> Array:
    """Return what sums of so many products of numbers >= 0 are certainly not below; 0 if small.

    Rounding makes a sum at most (1 + u)^terms times as large, u = 2^-53, in any order.
    """
    return np.where(x < LEAST, 0.0, x * (1 - (terms + 4) * 2.0**-52))


def simplex(size: int) -> tuple[Law, ...]:
    """Return the vertices of all distributions on so many values."""
    charge("bytes of numbers", 64 * size * size)
    return tuple(tuple(fmpq(int(a == b)) for b in range(size)) for a in range(size))


def _of_one(codes: Sequence[int], law: Law) -> _Totals:
    exact: dict[int, fmpq] = {}
    for code, x in zip(codes, law, strict=True):
        exact[code] = exact.get(code, fmpq(0)) + x
    weights = np.zeros(max(codes) + 1)
    for code, x in exact.items():
        weights[code] = _float(x)
    return _trimmed(0, below(weights, 1))


def _trimmed(start: int, weights: Array) -> _Totals:
    kept = np.flatnonzero(weights >= TINY)
    low, high = (int(kept[0]), int(kept[-1]) + 1) if len(kept) else (0, 1)
    weights = weights[low:high]
    return _Totals(start + low, np.where(weights < TINY, 0.0, weights))


def _times(one: _Totals, other: _Totals) -> _Totals:
    """Return the sums of two independent totals."""
    if len(one.weights) < len(other.weights):
        one, other = other, one
    long, short = one.weights, other.weights
    used = np.flatnonzero(short)
    charge("float operations", len(long) * max(len(used), 1))
    if 16 * len(used) < len(short):
        weights = np.zeros(len(long) + len(short) - 1)
        for place in used:
            weights[place : place + len(long)] += short[place] * long
    else:
        weights = np.convolve(long, short)
    return _trimmed(one.start + other.start, below(weights, len(used)))


def _powers(one: _Totals, n: int) -> list[_Totals]:
    """Return the sums of 0, 1, ..., n independent totals of one kind."""
    found = [_Totals(0, np.ones(1))]
    for _ in range(n):
        found.append(_times(found[-1], one))
        charge("bytes of numbers", 8 * len(found[-1].weights))
    return found


def _cases(start: _Totals, powers: Sequence[Sequence[Sequence[_Totals]]]) -> Iterator[_Totals]:
    """Yield the totals of the others in each case, added to those of `start`."""
    if not powers:
        yield start
        return
    own, *rest = powers
    for numbers in compositions(len(own[0]) - 1, len(own)):
        some = (sums[n] for sums, n in zip(own, numbers, strict=True))
        yield from _cases(reduce(_times, some, start), rest)


def compositions(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a number as a sum of so many numbers >= 0."""
    if parts == 1:
        yield (number,)
        return
    for first in range(number + 1):
        for rest in compositions(number - first, parts - 1):
            yield (first, *rest)


def _float(x: fmpq) -> float:
    return int(x.p) / int(x.q)
