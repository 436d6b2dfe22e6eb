r"""The distribution of the sum of several losses on a grid, from below and from above.

Let X = e^(-L), so that H_c = E[phi(X)] with phi(x) = (1 - c x)_+, which is convex and decreasing. A
loss between two neighbors u < v of the grid is replaced by u or v, with probabilities that keep the
mean of X; the total masses of P and R do not change. The product X of m independent numbers becomes
X'. Then E[phi(X')] >= E[phi(X)], because E[X' | X] = X. For a grid of step s,

    phi(X') - phi(X) - phi'(X) (X' - X) = |1 - c X'| if X and X' are on two sides of 1/c, or else 0,

where |log X' - log X| < m s. So E[phi(X')] exceeds E[phi(X)] by at most the mean of |1 - c X'| over
|log c X'| < m s, which is of the order of s^2. Losses and probabilities are rounded outward first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, fmpq

from cvxleak.core.validation import Array
from cvxleak.kernel.many import U
from cvxleak.kernel.numbers import ball, lower, precision, upper

__all__ = ["COARSE", "FINE", "Cells", "GridLosses", "mean_of_gaussian", "on_grid"]

FINE, COARSE = 1 << 18, 1 << 10
"""Points of a grid of losses: for reported bounds, and for finding the moves that may matter."""

WORK = 1 << 27
"""Most points of a grid times different losses of a number."""

BALLS = 1 << 12
"""Most points of a grid at each of which the Gaussian distribution is evaluated."""

POWERS = 1 << 10
"""Number of grid points whose e^(-loss) are one power times those of the first points."""

ROUNDING = 1e-12
"""Largest error of floats in the width of the bounds, relative to the largest."""


class Cells(NamedTuple):
    """Outputs of a number by their loss: bounds on loss and probability; `alone`: loss inf."""

    losses: tuple[Array, Array]
    masses: tuple[Array, Array]
    alone: tuple[float, float]


@dataclass(frozen=True)
class GridLosses:
    """Lower and upper bounds on the distribution of the loss, on a grid.

    Attributes
    ----------
    step : float
        A power of two.
    start : tuple of int
        The first loss of the lower and of the upper distribution, in steps.
    laws : tuple of array
        The mass at each point of the grid, for the lower and the upper distribution.
    alone : tuple of float
        Lower and upper bound on the mass of an infinite loss.
    squared_mu : fmpq
        Squared mu of the Gaussian numbers besides these.
    moved : int
        Largest number of steps by which a loss may have been moved.
    """

    step: float
    start: tuple[int, int]
    laws: tuple[Array, Array]
    alone: tuple[float, float]
    squared_mu: fmpq
    moved: int

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on H_c at c = e^epsilon."""
        low, high = (self._end(side, epsilon) for side in (0, 1))
        low = max(low - self._excess(epsilon), 0.0)
        return (
            (low + self.alone[0]) * (1 - 4 * U),
            min((high + self.alone[1]) * (1 + 4 * U), 1.0),
        )

    def _end(self, side: int, epsilon: float) -> float:
        """Return the mean of phi under one of the distributions."""
        law, start, outward = self.laws[side], self.start[side], (-1, 1)[side]
        if self.squared_mu:
            used = np.flatnonzero(law).tolist()
            pairs = [(arb(start + at) * arb(self.step), arb(float(law[at]))) for at in used]
            found = mean_of_gaussian(pairs, self.squared_mu, epsilon)
            return lower(found) if outward < 0 else upper(found)
        least = max(math.floor(epsilon / self.step) - 1 - start, 0)
        tail = law[least:]
        if not len(tail):
            return 0.0
        # 1 - c e^(-L), with the error of the table of powers on the outward side.
        powers = _powers(start + least, len(tail), self.step, epsilon)
        gains = np.maximum(1 - powers * (1 - outward * 16 * U), 0.0)
        return float(gains @ tail) * (1 + outward * 4 * (len(tail) + 4) * U)

    def _excess(self, epsilon: float) -> float:
        """Return how much the mean of phi under the lower distribution may exceed the true one."""
        reach = self.moved * self.step
        if reach > 1:
            return 1.0
        most = math.expm1(reach + self.step)
        if self.squared_mu:
            # The Gaussian loss has a density of at most 1 / (mu sqrt(2 pi)).
            share = 2 * reach / (math.sqrt(float(self.squared_mu)) * math.sqrt(2 * math.pi))
            return most * (min(share * (1 + ROUNDING), 1.0) + ROUNDING)
        law, start = self.laws[0], self.start[0]
        middle = epsilon / self.step - start
        low = max(math.floor(middle) - self.moved - 1, 0)
        near = law[low : max(math.ceil(middle) + self.moved + 2, 0)]
        away = np.abs((start + low + np.arange(len(near))) * self.step - epsilon)
        gains = np.expm1(np.minimum(away, reach))
        return float(gains @ near) * (1 + 1e3 * ROUNDING) + most * ROUNDING

    @property
    def certain(self) -> float:
        """A lower bound on the probability P of what R excludes."""
        return self.alone[0]

    @property
    def knots(self) -> list[float]:
        """Losses at which the profile bends; empty, because there are too many."""
        return []


def on_grid(numbers: Sequence[Cells], squared_mu: fmpq, size: int) -> GridLosses:
    """Return the distribution of the sum of the losses, on a grid of about so many points."""
    kept = [one for one in numbers if len(one.losses[0])]
    spans = [float(one.losses[1].max() - one.losses[0].min()) for one in kept]
    width = max(sum(spans), 1e-6)
    # Each loss of a number uses at most two points, and no more than there are.
    most = max((2 * len(one.losses[0]) for one in kept), default=1)
    part = max(*spans, 0.0, width / size) / width
    points = min(size, max(WORK // most, math.isqrt(int(WORK / part))))
    step = 2.0 ** math.ceil(math.log2(width / (min(points, BALLS) if squared_mu else points)))
    laws, starts = [], []
    for side, outward in enumerate((-1, 1)):
        law, start, steps = np.ones(1), 0, 0
        for one in kept:
            first, own = _spread(one.losses[side], one.masses[side], step, outward)
            wider = np.zeros(len(law) + len(own) - 1)
            for place in np.flatnonzero(own).tolist():
                wider[place : place + len(law)] += own[place] * law
            law, start = wider, start + first
            steps += 4 * len(one.losses[0]) + 8
        # Sums and products of non-negative numbers; what underflows is far below 2^-900.
        law *= 1 + outward * 2 * steps * U
        law = np.maximum(law - 2.0**-900, 0.0) if side == 0 else law + 2.0**-900
        if len(kept) < len(numbers):  # a number reveals everything
            law = np.zeros(1)
        laws.append(law)
        starts.append(start)
    stays = [math.prod(1 - one.alone[side] for one in numbers) for side in (0, 1)]
    room = 2 * (len(numbers) + 1) * U
    alone = max(1 - stays[0] - room, 0.0), min(1 - stays[1] + room, 1.0)
    if not any(one.alone[1] for one in numbers):
        alone = 0.0, 0.0
    return GridLosses(
        step, (starts[0], starts[1]), (laws[0], laws[1]), alone, squared_mu, len(kept)
    )


def _spread(losses: Array, masses: Array, step: float, outward: int) -> tuple[int, Array]:
    """Return the distribution of a number on the grid, from its first point on."""
    below = np.floor(losses / step)
    left = 1 - (losses / step - below)
    # e^(-L) = w e^(-k s) + (1 - w) e^(-(k + 1) s) for L = (k + 1) s - left s; less of w tells more.
    share = np.expm1(left * step) / math.expm1(step)
    share = np.clip(share * (1 - outward * 16 * U), 0.0, 1.0)
    first = int(below.min())
    places = (below - first).astype(int)
    size = int(places.max()) + 2
    law = np.zeros(size)
    for at, part in ((places, share), (places + 1, 1 - share)):
        law += np.bincount(at, weights=masses * part, minlength=size)
    return first, law


def _powers(first: int, count: int, step: float, epsilon: float) -> Array:
    """Return e^(epsilon - k step) for k = first, ..., each off by at most 8 units of rounding."""
    with precision():
        c = ball(epsilon)
        blocks = range(first, first + count, POWERS)
        high = [float((c - arb(k) * arb(step)).exp()) for k in blocks]
    return np.multiply.outer(np.array(high), _first_powers(step)).ravel()[:count]


@lru_cache(maxsize=16)
def _first_powers(step: float) -> Array:
    """Return e^(-k step) for k = 0, 1, ..., POWERS - 1."""
    with precision():
        return np.array([float((-arb(k) * arb(step)).exp()) for k in range(POWERS)])


def mean_of_gaussian(pairs: Sequence[tuple[arb, arb]], squared: fmpq, epsilon: float) -> arb:
    """Return a ball around the mean of the Gaussian profile at x = epsilon - loss.

    It is Phi(mu/2 - x/mu) - e^x Phi(-mu/2 - x/mu) (Balle and Wang, 2018, Theorem 8).
    """
    with precision():
        mu = arb(squared).sqrt()
        scale, half, at = arb(2).sqrt(), mu / 2, ball(epsilon)
        found = arb(0)
        for loss, mass in pairs:
            x = at - loss
            first = ((x / mu - half) / scale).erfc() / 2
            second = ((x / mu + half) / scale).erfc() / 2
            found += mass * (first - x.exp() * second)
        return found
