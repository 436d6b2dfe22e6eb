"""What distinguishes two distributions best, in floats; the kernel then proves the values.

For zero-concentrated differential privacy, also orders whose bounds cover all the others: few where
D_alpha / alpha is far below what is to be proved, and close together around its maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from cvxleak.core.validation import Array

__all__ = [
    "Found",
    "Laws",
    "worst_for_divergence",
    "worst_for_event",
    "worst_for_shift",
    "worst_for_zcdp",
]

SHARES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""How far above the largest D_alpha / alpha orders prove a bound, as a share of it.

Where D_alpha / alpha is nearly constant, as for a Gaussian, the number of orders grows as one over
the root of the share.
"""

WORK = 5_000_000
"""Outputs times orders, over all pairs, up to which a smaller share is worth its price."""

FIRST = 2.0**-40
"""The least order's distance from 1: that of floats is 2^-52."""

GRID = 1.3
"""Ratio of the distances from 1 of neighboring orders, where the best order is looked for."""

TIE = 1e-12
"""Relative difference of two pairs' values that only rounding makes."""


class Laws:
    """Two distributions P and R in floats, and their divergences D_alpha(P || R)."""

    def __init__(self, p: Array, r: Array) -> None:
        self.p, self.r = np.asarray(p, dtype=float), np.asarray(r, dtype=float)

    @property
    def flipped(self) -> Laws:
        """The same in the other order."""
        return Laws(self.r, self.p)

    @cached_property
    def loss(self) -> Array:
        """The privacy loss log P(y) / R(y) of each output; -inf where P has none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.p > 0, np.log(self.p) - np.log(self.r), -np.inf)

    @cached_property
    def seen(self) -> tuple[Array, Array]:
        """The probabilities under P, and the losses, of the outputs that P has."""
        return self.p[self.p > 0], self.loss[self.p > 0]

    @cached_property
    def most(self) -> float:
        """The divergence of order infinity."""
        return max(float(self.loss.max()), 0.0)

    def moments(self, beyond: Array) -> Array:
        """Return (alpha - 1) D_alpha at the orders 1 + `beyond`, for finite losses."""
        p, loss = self.seen
        exponents = np.outer(beyond, loss)
        top = exponents.max(axis=1)
        large = top + np.log(np.exp(exponents - top[:, None]) @ p)
        # log(1 + sum P (e^x - 1)) keeps its digits where alpha is near 1.
        near = np.expm1(np.minimum(exponents, 1.0)) @ p
        return np.where(top < 1.0, np.log1p(np.maximum(near, -0.9)), large)

    def ratios(self, beyond: Array) -> Array:
        """Return D_alpha / alpha at the orders 1 + `beyond`."""
        return self.moments(beyond) / (beyond * (1 + beyond))


class Found(NamedTuple):
    """The pair of distributions that is distinguished best, how, and the numbers of the proof."""

    place: int
    outputs: list[int]
    order: float | None = None
    orders: Sequence[list[float]] | None = None


def _largest(values: Sequence[float]) -> int:
    """Return the place of the largest, the first of those that only rounding tells apart."""
    return int(np.argmax(np.array(values) >= max(values) * (1 - TIE)))


def worst_for_divergence(laws: Sequence[Laws], order: float) -> Found:
    """Return the pair of the largest divergence of an order above 1, and the output in it."""
    if math.isinf(order) or any(math.isinf(one.most) for one in laws):
        place = _largest([one.most for one in laws])
        return Found(place, [int(np.argmax(laws[place].loss))], order)
    beyond = np.array([order - 1])
    place = _largest([float(one.moments(beyond)[0]) for one in laws])
    return Found(place, [_heaviest(laws[place], order)], order)


def worst_for_event(laws: Sequence[Laws], epsilon: float) -> Found:
    """Return the pair and the event of the largest P(S) - e^epsilon R(S)."""
    factor = math.exp(min(epsilon, 700.0))
    gaps = [one.p - factor * one.r for one in laws]
    place = _largest([float(np.maximum(gap, 0.0).sum()) for gap in gaps])
    return Found(place, np.flatnonzero(gaps[place] > 0).tolist())


def worst_for_shift(laws: Sequence[Laws]) -> Found:
    """Return the pair and the event of the largest Phi^-1(P(S)) - Phi^-1(R(S))."""
    found = []
    for one in laws:
        order = np.argsort(-one.loss, kind="stable")
        p, r = (_quantiles(row[order]) for row in (one.p, one.r))
        with np.errstate(invalid="ignore"):
            shifts = np.append(0.0, np.where(p > r, p - r, 0.0))
        size = int(np.argmax(shifts))
        found.append((float(shifts[size]), order[:size].tolist()))
    place = _largest([shift for shift, _ in found])
    return Found(place, sorted(found[place][1]))


def _quantiles(row: Array) -> Array:
    """Return the normal quantiles of the sums of the first 1, 2, ..., of all but the last entry."""
    below, above = np.cumsum(row)[:-1], np.cumsum(row[::-1])[::-1][1:]
    # A sum near 1 is known by what is missing.
    return np.where(below < 0.5, ndtri(np.minimum(below, 0.5)), -ndtri(np.minimum(above, 1.0)))


def worst_for_zcdp(laws: Sequence[Laws], stated: float) -> Found:
    """Return the pair and the order of the largest D_alpha / alpha, and orders that cover all."""
    apart = [i for i, one in enumerate(laws) if math.isinf(one.most)]
    if apart:
        return Found(apart[0], [int(np.argmax(laws[apart[0]].loss))], 2.0, [[] for _ in laws])
    best = [_best(one) for one in laws]
    place = _largest([one[0] for one in best])
    most, order = best[place]
    goals = {most * (1 + share) for share in SHARES}
    if stated > most:
        goals.add((most + stated) / 2)  # half way decides the claim
    # A goal takes about three times as many orders as one that is ten times as far away.
    orders, room = [[] for _ in laws], WORK // len(laws[place].p)
    for goal in sorted(goals, reverse=True):
        found = _cover(laws, goal, room)
        if found is None:
            break
        orders = found
    return Found(place, [_heaviest(laws[place], order)], order, orders)


def _best(laws: Laws) -> tuple[float, float]:
    """Return the largest D_alpha / alpha that was found, and its order."""
    if laws.most == 0:
        return 0.0, 2.0
    # From the order where D_inf / alpha is below what order 2 has, there is nothing to be found.
    last = max(4.0, laws.most / max(float(laws.ratios(np.array([1.0]))[0]), 1e-12))
    size = int(math.log(last / FIRST) / math.log(GRID)) + 2
    # What a float keeps of them, once 1 is added.
    beyond: Array = (1 + FIRST * GRID ** np.arange(size, dtype=float)) - 1
    ratios = laws.ratios(beyond)
    top = int(np.argmax(ratios))
    found = float(ratios[top]), float(1 + beyond[top])
    if 0 < top < size - 1:
        near: Any = minimize_scalar(
            lambda log: -laws.ratios(np.exp([log]))[0],
            bounds=(math.log(beyond[top - 1]), math.log(beyond[top + 1])),
            method="bounded",
            options={"xatol": 1e-9},
        )
        found = max(found, (-float(near.fun), 1 + math.exp(near.x)))
    return found


def _cover(laws: Sequence[Laws], goal: float, room: int) -> list[list[float]] | None:
    """Return orders for each pair that prove a bound of `goal`, or None if that takes too many."""
    found = []
    for one in laws:
        found.append(_orders(one, goal, room))
        room -= len(found[-1])
        if room <= 0:
            return None
    return found


def _orders(laws: Laws, goal: float, most: int) -> list[float]:
    """Return rising orders that prove D_alpha / alpha <= goal at all orders, as well as they can.

    The bounds are those of the certificate kind ``zcdp``. Each order is as far from the one before
    as they allow.
    """
    if laws.most <= goal:
        return []
    steps: Array = np.ldexp(FIRST, np.arange(80))
    low = np.flatnonzero(laws.moments(steps) <= goal * steps)
    beyond = float(1 + steps[low[-1] if len(low) else 0]) - 1
    orders, here = [1 + beyond], float(laws.ratios(np.array([beyond]))[0])
    growth = 4.0
    while laws.most > goal * orders[-1] and len(orders) < most:
        further = orders[-1] - 1
        while True:
            there = float(laws.ratios(np.array([further * growth]))[0])
            slack = 1 + further * (growth - 1) ** 2 / (4 * (1 + further))
            if max(here, there) * slack <= goal or growth < 1 + 1e-6:
                break
            growth = 1 + (growth - 1) / 1.5
        orders.append(1 + further * growth)
        here, growth = there, 1 + (growth - 1) * 2
    return orders


def _heaviest(laws: Laws, order: float) -> int:
    """Return the output that weighs most in a divergence: the largest P^alpha R^(1 - alpha)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(laws.p > 0, np.log(laws.p) + (order - 1) * laws.loss, -np.inf)
    return int(np.argmax(np.where(laws.loss > 0, weight, -np.inf)))
