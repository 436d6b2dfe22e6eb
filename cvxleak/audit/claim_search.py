"""What distinguishes two distributions best, in floats; the kernel then proves the values.

For zero-concentrated differential privacy, also orders whose bounds cover all the others: few where
D_alpha / alpha is far below what is to be proved, and close together around its maximum.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import stacked
from cvxleak.core.validation import Array, dimensions, short
from cvxleak.core.value import preview
from cvxleak.model import Channel, Mechanism, Prior, as_channel
from cvxleak.model.prior import named_law

__all__ = ["Compared", "Distinguished", "Pair", "covers", "rows_compared", "worst"]

SHARES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""How far above the largest D_alpha / alpha orders prove a bound, as a share of it.

Where D_alpha / alpha is nearly constant, as for a Gaussian, the number of orders grows as one over
the root of the share.
"""

WORK = 5_000_000
"""Outputs times orders, over all pairs, up to which a smaller share is worth its price."""

FIRST = 2.0**-40
"""The least order's distance from 1: that of floats is 2^-52."""

ROUNDS, ORDERS = 4, 100
"""How often the best order is looked for between the neighbors of the best one of so many."""

NARROW = 1e-6
"""Ratio, less 1, of the distances from 1 of orders between which no others are put."""

TIE = 1e-12
"""Relative difference of two pairs' values that only rounding makes."""


Compared = tuple[Any, Sequence[tuple[int, int]], Sequence[Hashable], Sequence[Hashable]]
"""Output distributions, which pairs of them are compared, and labels of inputs and outputs."""


class Distinguished(NamedTuple):
    """How well two distributions are distinguished, by which outputs, and at which order."""

    value: float
    outputs: list[int]
    order: float | None = None


class Pair:
    """Two distributions P and R in floats, and their divergences D_alpha(P || R)."""

    def __init__(self, p: Array, r: Array) -> None:
        self.p, self.r = np.asarray(p, dtype=float), np.asarray(r, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(self.p > 0, np.log(self.p) - np.log(self.r), -np.inf)
        self.loss, self.most = loss, max(float(loss.max()), 0.0)
        self._seen = self.p[self.p > 0], loss[self.p > 0]

    def ratios(self, beyond: Array) -> Array:
        """Return D_alpha / alpha at the orders 1 + `beyond`, for finite losses."""
        p, loss = self._seen
        exponents = np.outer(beyond, loss)
        top = exponents.max(axis=1)
        large = top + np.log(np.exp(exponents - top[:, None]) @ p)
        # log(1 + sum P (e^x - 1)) keeps its digits where alpha is near 1.
        near = np.log1p(np.maximum(np.expm1(np.minimum(exponents, 1.0)) @ p, -0.9))
        return np.where(top < 1.0, near, large) / (beyond * (1 + beyond))

    def divergence(self, order: float) -> Distinguished:
        """Return D_alpha of an order above 1, and the output that weighs most in it."""
        if math.isinf(order) or math.isinf(self.most):
            return Distinguished(self.most, [int(np.argmax(self.loss))], order)
        with np.errstate(divide="ignore"):
            weight = np.log(self.p) + (order - 1) * self.loss  # of P^alpha R^(1 - alpha)
        heaviest = int(np.argmax(np.where(self.loss > 0, weight, -np.inf)))
        value = order * float(self.ratios(np.array([order - 1]))[0])
        return Distinguished(value, [heaviest], order)

    def event(self, epsilon: float) -> Distinguished:
        """Return the largest P(S) - e^epsilon R(S) of an event."""
        gaps = self.p - math.exp(min(epsilon, 700.0)) * self.r
        return Distinguished(float(np.maximum(gaps, 0.0).sum()), np.flatnonzero(gaps > 0).tolist())

    def shift(self) -> Distinguished:
        """Return the largest Phi^-1(P(S)) - Phi^-1(R(S)) of an event."""
        order = np.argsort(-self.loss, kind="stable")
        p, r = (_quantiles(row[order]) for row in (self.p, self.r))
        with np.errstate(invalid="ignore"):
            shifts = np.append(0.0, np.where(p > r, p - r, 0.0))
        size = int(np.argmax(shifts))
        return Distinguished(float(shifts[size]), sorted(order[:size].tolist()))

    def rate(self) -> Distinguished:
        """Return the largest D_alpha / alpha that was found."""
        if self.most == 0 or math.isinf(self.most):
            return self.divergence(2.0)._replace(value=self.most)
        # Where D_inf / alpha is below what order 2 has, there is nothing to be found.
        high = max(4.0, self.most / max(float(self.ratios(np.array([1.0]))[0]), 1e-12))
        low, value, order = FIRST, 0.0, 2.0
        for _ in range(ROUNDS):
            beyond = np.geomspace(low, high, ORDERS)
            ratios = self.ratios(beyond)
            top = int(np.argmax(ratios))
            value, order = float(ratios[top]), 1 + float(beyond[top])
            low, high = beyond[max(top - 1, 0)], beyond[min(top + 1, ORDERS - 1)]
        return self.divergence(order)._replace(value=value)

    def covering(self, goal: float, most: int) -> list[float]:
        """Return rising orders that prove D_alpha / alpha <= goal at all orders, if `most` suffice.

        The bounds are those of the certificate kind ``zcdp``. An interval between two orders that
        does not prove it is cut in two.
        """
        if self.most <= goal:
            return []
        steps: Array = np.ldexp(FIRST, np.arange(80))
        enough = np.flatnonzero(self.ratios(steps) * (1 + steps) <= goal)
        first = steps[enough[-1] if len(enough) else 0]
        beyond = np.array([first, max(first, self.most / goal - 1)])
        wide = np.array([beyond[1] > first])
        while wide.any() and len(beyond) <= most:
            beyond = np.sort(np.append(beyond, np.sqrt(beyond[:-1] * beyond[1:])[wide]))
            low, ratios = beyond[:-1], self.ratios(beyond)
            slack = 1 + np.diff(beyond) ** 2 / (4 * low * (1 + low))
            wide = np.maximum(ratios[:-1], ratios[1:]) * slack > goal
            wide &= np.diff(beyond) > NARROW * low
        return np.unique(1 + beyond).tolist()


def rows_compared(first: Any, second: Any) -> Compared:
    """Return the rows that a claim compares: neighbors, all pairs, or one by one with `second`."""
    if not isinstance(first, Mechanism):
        one = _as_rows(first, "first")
        if second is not None:
            return _row_by_row(one, second)
        pairs = list(combinations(range(len(one.inputs)), 2))
    elif second is None:
        one, pairs = first.channel, sorted(first.query.neighbor_pairs())
    else:
        raise ValidationError(
            "second: found one in addition to a Mechanism, which defines its own pairs of "
            "datasets; leave out second"
        )
    if not pairs:
        raise ValidationError(
            "first: found no two inputs to compare; at least two inputs, or `second`, are needed"
        )
    return one.matrix, pairs, one.inputs, one.outputs


def _row_by_row(one: Channel, second: Any) -> Compared:
    """Return the rows of two channels, those of equal place as pairs."""
    other = _as_rows(second, "second")
    if one.shape != other.shape or one.outputs != other.outputs:
        raise ValidationError(
            f"second: found {short(second)} with outputs {preview(other.outputs)}; it needs as "
            f"many rows as first, and the same outputs, {preview(one.outputs)}"
        )
    k, named = len(one.inputs), (("first", one), ("second", other))
    labels = [name if k == 1 else (name, x) for name, rows in named for x in rows.inputs]
    matrix = stacked([one.matrix, other.matrix])
    return matrix, [(i, k + i) for i in range(k)], labels, one.outputs


def _as_rows(given: Any, name: str) -> Channel:
    """Return a channel; one distribution is a channel with one row."""
    given = given if hasattr(given, "columns") else named_law(given)
    if isinstance(given, Prior):
        return Channel(given.probabilities[None], outputs=given.labels)
    table = isinstance(given, Channel) or hasattr(given, "iloc")
    return as_channel(given if table or dimensions(given, name) != 1 else [given], name)


def worst(found: Sequence[Distinguished]) -> int:
    """Return the place of the largest value, the first of those that only rounding tells apart."""
    values = np.array([one.value for one in found])
    return int(np.argmax(values >= values.max() * (1 - TIE)))


def covers(pairs: Sequence[Pair], most: float, stated: float) -> list[list[float]]:
    """Return for each pair orders that cover all others, for a bound near to what is found."""
    orders: list[list[float]] = [[] for _ in pairs]
    if math.isinf(most):
        return orders
    goals = {most * (1 + share) for share in SHARES}
    if stated > most:
        goals.add((most + stated) / 2)  # half way decides the claim
    # A goal takes about three times as many orders as one that is ten times as far away.
    room = WORK // len(pairs[0].p)
    for goal in sorted(goals, reverse=True):
        found = [pair.covering(goal, room) for pair in pairs]
        if sum(map(len, found)) > room:
            break
        orders = found
    return orders


def _quantiles(row: Array) -> Array:
    """Return the normal quantiles of the sums of the first 1, 2, ..., of all but the last entry."""
    below, above = np.cumsum(row)[:-1], np.cumsum(row[::-1])[::-1][1:]
    # A sum near 1 is known by what is missing.
    return np.where(below < 0.5, ndtri(np.minimum(below, 0.5)), -ndtri(np.minimum(above, 1.0)))
