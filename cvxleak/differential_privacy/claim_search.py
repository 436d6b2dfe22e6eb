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
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import stacked
from cvxleak.core.validation import Array, dimensions, short
from cvxleak.core.value import preview
from cvxleak.core.work import spend
from cvxleak.model import Channel, Mechanism, Prior, as_channel
from cvxleak.model.prior import named_law
from cvxleak.problem.problem import ROUNDING

__all__ = ["Compared", "Distinguished", "Pair", "covers", "rows_compared", "worst"]

SHARE = 1e-6
"""How far above the largest D_alpha / alpha orders prove a bound, as a share of it.

With 1e-8 the claims of the bank take a third more orders, and with 1e-4 a third less. Where
D_alpha / alpha is nearly constant, as for a Gaussian, the number grows as one over the root of it.
"""

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
        # Orders less 1, D_alpha / alpha there, and its bounds before, between and after them.
        self.beyond = self.rates = self.bounds = np.zeros(0)

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
        """Return the largest D_alpha / alpha of the orders that were tried, if any were."""
        if not self.rates.size:
            return self.divergence(2.0)
        top = int(np.argmax(self.rates))
        return self.divergence(1 + float(self.beyond[top]))._replace(value=float(self.rates[top]))

    def look(self, more: Array) -> None:
        """Try more orders, less 1; bounds are those of the certificate kind ``zcdp``."""
        spend(2e3 * more.size * self.p.size)  # most of it is the proof's
        beyond, rates = np.append(self.beyond, more), np.append(self.rates, self.ratios(more))
        places = np.argsort(beyond)
        self.beyond, self.rates = beyond[places], rates[places]
        low, step, rates = self.beyond[:-1], np.diff(self.beyond), self.rates
        between = np.maximum(rates[:-1], rates[1:]) * (1 + step**2 / (4 * low * (1 + low)))
        ends = rates[0] * (1 + self.beyond[0]), self.most / (1 + self.beyond[-1])
        self.bounds = np.hstack([ends[0], between, ends[1]])

    def cover(self, goal: float) -> None:
        """Try more orders where those so far do not prove D_alpha / alpha <= goal."""
        if self.bounds.max() > goal:
            ends = self.beyond[0] / math.e**2, self.beyond[-1] * math.e**2
            known = np.hstack([ends[0], self.beyond, ends[1]])
            self.look(np.sqrt(known[:-1] * known[1:])[self.bounds > goal])

    def climb(self) -> None:
        """Try the order of the largest D_alpha / alpha next to the best order so far."""
        top, known = int(np.argmax(self.rates)), [np.finfo(float).eps, *self.beyond]
        found: Any = minimize_scalar(
            lambda x: -self.ratios(np.exp([x]))[0],
            bounds=np.log([known[top], known[min(top + 2, len(self.rates))]]),
            method="bounded",
            options={"xatol": 1e-8},
        )
        self.look(np.exp([found.x]))


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
    return int(np.argmax(values >= values.max() * (1 - ROUNDING)))


def covers(pairs: Sequence[Pair], stated: float, clock: Clock) -> list[list[float]]:
    """Return for each pair orders that cover all others, near enough to decide what is stated.

    Halving an interval leaves a quarter of what its bound is above the largest D_alpha / alpha.
    """
    most, least, orders = max(pair.most for pair in pairs), math.inf, [[] for _ in pairs]
    if math.isinf(most):
        return orders
    for pair in pairs:
        pair.look(np.ones(1))
    while True:
        best = max(float(pair.rates.max()) for pair in pairs)
        upper = max(float(pair.bounds.max()) for pair in pairs)
        if upper < least:
            # D_inf is enough for the others.
            least = upper
            orders = [(1 + one.beyond).tolist() if one.most > upper else [] for one in pairs]
        goal = min(best * (1 + SHARE), stated if stated > best else math.inf)
        # Less than these numbers is rounding.
        goal = max(goal, best * (1 + ROUNDING), np.finfo(float).eps * most)
        if upper <= goal or clock.late:
            break
        for pair in pairs:
            pair.cover(best + (upper - best) / 4)
    for pair in pairs:
        if pair.bounds.max() > best:
            pair.climb()
    return orders


def _quantiles(row: Array) -> Array:
    """Return the normal quantiles of the sums of the first 1, 2, ..., of all but the last entry."""
    below, above = np.cumsum(row)[:-1], np.cumsum(row[::-1])[::-1][1:]
    # A sum near 1 is known by what is missing.
    return np.where(below < 0.5, ndtri(np.minimum(below, 0.5)), -ndtri(np.minimum(above, 1.0)))
