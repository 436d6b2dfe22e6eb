"""Boxes of functionals and increments of log(vR / t), as the kernel's rule `ratio` has them.

`cvxleak.kernel.ratio` has the formulas and their proofs. These are the same in floats, for many
boxes at once, without error bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.worst_adversary.group import LEAST
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.audit.worst_adversary.time_sharing import Value, short
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel.ratio import MARGIN, ORDERED, SIDES, STEPS, UNORDERED

__all__ = ["LogRatioBoxes"]

FUNCTIONALS = 3
"""With 1 a count of 40 people with Gaussian noise stays open; with 2 or 4 boxes are as many."""


@dataclass(frozen=True, eq=False)
class LogRatioBoxes:
    """What boxes of one value need.

    A box is a table of what the functionals Psi u and the increments of u, and their negatives, are
    at most.

    Attributes
    ----------
    rows, base, scale, log_t, law, x, psi
        R, base, L and log t; a law v with rho = vR, X, and Psi without the last column.
    outputs, groups : array of int
        The outputs that are reached and the groups, in the order that they have here.
    ordered : bool
        Whether likelihood ratios grow with the group, so that boxes are narrowed by ORDER.
    """

    rows: Array
    base: Array
    scale: float
    log_t: Array
    law: Array
    x: Array
    psi: Array
    outputs: NDArray[np.intp]
    groups: NDArray[np.intp]
    ordered: bool

    @classmethod
    def of(cls, value: Value, base: Array, scale: float, log_t: Array, v: Array) -> LogRatioBoxes:
        """Return those whose functionals leave the residuals least."""
        order, groups = _orders(value.rows[:, value.used])
        outputs, law = value.used[order], short(np.maximum(v, LEAST))[groups]
        rows = value.rows[groups][:, outputs]
        logs = np.diff(np.log(rows), axis=1)
        ordered = bool((np.diff(logs, axis=0) > -HAIR).all())
        rho = law @ rows / law.sum()
        x, psi = _functionals(rows - rho, np.ptp(logs, axis=0))
        size = np.sqrt((psi**2 / rho).sum(axis=1))
        found = law, short(x * size), short(psi / size[:, None])[:, :-1], outputs, groups
        return cls(rows, base[groups], scale, log_t[outputs], *found, ordered)

    @cached_property
    def _own(self) -> Array:
        """What makes Psi u of increments."""
        return _slopes(np.concatenate([self.psi, -self.psi.sum(axis=1, keepdims=True)], axis=1))

    @cached_property
    def _whole(self) -> Array:
        """What makes z of increments."""
        return _slopes(self.rows - self.law @ self.rows / self.law.sum())

    @cached_property
    def _z(self) -> Array:
        """What makes z of a box."""
        return np.concatenate([self.x.T, self._whole - self._own @ self.x.T])

    @cached_property
    def _sides(self) -> tuple[Array, Array, Array]:
        """R_g,y+1 and R_gy, and the reverse; and what the first have to be moved by for u."""
        below = np.stack([self.rows[:, :-1], self.rows[:, 1:]])
        return below[::-1], below, np.diff(self.log_t) * -SIDES

    @cached_property
    def _apart(self) -> Array:
        """What makes, of a box, what z is in a group more than in the one before, in two ways."""
        whole = np.concatenate([0 * self.x.T, self._whole])
        return np.concatenate([np.diff(self._z, axis=1), np.diff(whole, axis=1)], axis=1)

    @property
    def root(self) -> Array:
        """The box of all laws."""
        above, below, gaps = self._sides
        return self._joined((np.log(above / below) + gaps).max(axis=1)[None])[0]

    @property
    def work(self) -> float:
        """Multiplications for a box."""
        size = self.rows.size
        return 3.0 * ORDERED * (size + 1500) if self.ordered else 75.0 * UNORDERED * (size + 100)

    def narrowed(self, ends: Array) -> Array:
        """Return boxes without what no fixed point is in."""
        d = self.x.shape[1]
        narrow, steps = (self._order, ORDERED) if self.ordered else (self._wide, UNORDERED)
        for _ in range(steps):
            ends = np.fmin(ends, self._joined(np.fmin(ends[:, :, d:], narrow(ends))))
        return ends

    def _joined(self, increments: Array) -> Array:
        """Return boxes from ranges of the increments."""
        own = np.stack(_images(increments, self._own), axis=1)
        return np.concatenate([own, increments], axis=2)

    def middle(self, ends: Array) -> tuple[Array, Array, Array, Array]:
        """Return z^c, v^c, A(z^c) and k."""
        d, (c, h) = self.x.shape[1], _halves(ends)
        z, rest = c @ self._z, h[:, d:] @ np.abs(self._z[d:])
        y = (z + self.base) / self.scale
        top = y.max(axis=1, keepdims=True)
        v = np.exp(y - top)
        mass = v.sum(axis=1, keepdims=True)
        v /= mass
        apart = np.abs(self.x - (v @ self.x)[:, None])
        k = (np.einsum("bgj,bj->bg", apart, h[:, :d]) + rest) / self.scale
        return z, v, self.scale * (np.log(mass) + top)[:, 0], k

    def _order(self, ends: Array) -> Array:
        """Return ranges of increments by ORDER, if likelihood ratios grow with the group."""
        above, below, gaps = self._sides
        both = np.stack(_images(ends, self._apart)).reshape(2, len(ends), 2, -1)
        s = (np.fmin(both[:, :, 0], both[:, :, 1]) + SIDES * np.diff(self.base)) / self.scale
        log_v = SIDES * np.concatenate([0 * s[:, :, :1], s], axis=2).cumsum(axis=2)
        v = np.exp(log_v - log_v.max(axis=2, keepdims=True))
        return (np.log(v @ above / (v @ below)) + gaps).swapaxes(0, 1)

    def _wide(self, ends: Array) -> Array:
        """Return ranges of increments by WIDE."""
        _, v, _, k = self.middle(ends)
        above, below, gaps = self._sides
        top = k.max(axis=1, keepdims=True)
        high, low = ((v * np.exp(x - top))[:, :, None] for x in (k, -k))
        theta = (v @ above / (v @ below))[:, :, None]
        above, below = above[:, None], below[:, None]
        for _ in range(STEPS):
            w = np.where(above > theta * below, high, low)
            theta = (w * above).sum(axis=2, keepdims=True) / (w * below).sum(axis=2, keepdims=True)
        theta *= 1 + MARGIN
        spare = above - theta * below
        over = (np.maximum(spare, 0) * high + np.minimum(spare, 0) * low).sum(axis=2)
        found = np.log(np.where(over <= 0, theta[:, :, 0], np.inf)) + gaps
        return found.swapaxes(0, 1)

    def bounds(self, ends: Array) -> Array:
        """Return what f is at most at a fixed point in each box, by RATIO and RESIDUAL."""
        z, v, a, k = self.middle(ends)
        top = k.max(axis=1, keepdims=True)
        more, less = np.exp(k - top), np.exp(-k - top)
        mean = (v * (more + less)).sum(axis=1, keepdims=True) / 2
        slopes = v * (more - less) / (2 * mean)
        v0 = np.maximum(np.where(k > 1e-9, slopes / k, v), 1e-300)
        v0 /= v0.sum(axis=1, keepdims=True)
        r = v0 @ self.rows
        spread = (r * (np.log(r) - self.log_t)).sum(axis=1)
        rest = (np.log(mean) + top)[:, 0] + np.abs(slopes - k * v0).sum(axis=1)
        return a - (v0 * z).sum(axis=1) + spread + self.scale * rest


def _slopes(q: Array) -> Array:
    """Return the matrix that makes <q, u>, for rows q of sum 0, of the increments of u."""
    return -np.cumsum(q, axis=1)[:, :-1].T


def _halves(ends: Array) -> tuple[Array, Array]:
    """Return c and h."""
    return (ends[:, 0] - ends[:, 1]) / 2, np.maximum(ends.sum(axis=1) / 2, 0)


def _images(ends: Array, table: Array) -> tuple[Array, Array]:
    """Return what products of a table with numbers in ranges, and their negatives, are at most."""
    c, h = _halves(ends)
    at, rest = c @ table, h @ np.abs(table)
    return rest + at, rest - at


def _orders(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the outputs and the groups in the order of likelihood ratios, where they have one.

    It is that of the two groups, and the two outputs, that are farthest apart.
    """
    rho = rows.mean(axis=0)
    along = np.linalg.svd((rows - rho) / np.sqrt(rho), full_matrices=False)[0][:, 0]
    logs = np.log(rows)
    order = np.argsort(logs[along.argmax()] - logs[along.argmin()], kind="stable")
    return order, np.argsort(logs[:, order[-1]] - logs[:, order[0]], kind="stable")


def _functionals(residuals: Array, widths: Array) -> tuple[Array, Array]:
    """Return X and Psi such that the residuals, less X Psi, have short ranges for all laws.

    By Abel's sum the range of <q, u> is sum_y |q_1 + .. + q_y| w_y, if the increment of u after
    output y has a range of length w_y. Each functional is the residual of a group, and its
    coefficients make all ranges least (weighted medians); it is the group with which their sum is
    least.
    """
    x, psi = [], []
    least = 0.0
    for _ in range(FUNCTIONALS):
        sums = np.cumsum(residuals, axis=1)[:, :-1]
        ranges = np.abs(sums) @ widths
        # What is left is rounding: as many functionals as rows that differ are enough.
        least = least or np.finfo(np.float32).eps * ranges.max()
        if ranges.max() <= least:
            break
        spend(20.0 * len(sums) * sums.size)
        found = []
        for own in np.flatnonzero(ranges > least):
            coefficients = _medians(sums, sums[own], widths)
            left = np.abs(sums - coefficients[:, None] * sums[own]) @ widths
            found.append((left.sum(), own, coefficients))
        _, own, coefficients = min(found, key=lambda one: one[0])
        x.append(coefficients)
        psi.append(residuals[own])
        residuals = residuals - coefficients[:, None] * residuals[own]
    return np.stack(x, axis=1), np.stack(psi)


def _medians(sums: Array, own: Array, widths: Array) -> Array:
    """Return the x_g for which sum_y |sums_gy - x_g own_y| widths_y is least."""
    used = own != 0
    ratios, weights = sums[:, used] / own[used], widths[used] * np.abs(own[used])
    order = np.argsort(ratios, axis=1, kind="stable")
    below = np.cumsum(weights[order], axis=1)
    half = (below >= below[:, -1:] / 2).argmax(axis=1)
    return np.take_along_axis(ratios, order, axis=1)[np.arange(len(ratios)), half]
