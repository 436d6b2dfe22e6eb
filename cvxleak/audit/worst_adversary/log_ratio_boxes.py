"""Boxes of functionals of log(vR / t), as the kernel's rule `ratio` has them, in floats.

`cvxleak.kernel.ratio` has the formulas and their proofs. These are the same for many boxes at once,
by products of matrices, without error bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.worst_adversary.group import LEAST
from cvxleak.audit.worst_adversary.time_sharing import Value, short
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel.ratio import Ratios

__all__ = ["LogRatioBoxes"]

FUNCTIONALS = 3
"""With 2 a count of 30 people with geometric noise stays open; where 2 are enough, 3 take up to
one and a half times the nodes."""


@dataclass(frozen=True, eq=False)
class LogRatioBoxes:
    """What boxes of one value need.

    A box is a table of what <q, u>, and -<q, u>, are at most for each row q. The rows are the
    functionals Psi, and the residuals R - 1 rho - X Psi of the groups.

    Attributes
    ----------
    rows, base, scale, log_t
        R, base, L and log t, of the outputs that are reached, in their order.
    order : array of int
        These outputs.
    law, x, psi : array
        What a term holds: a law v with rho = vR, X, and Psi without the last column.
    """

    rows: Array
    base: Array
    scale: float
    log_t: Array
    order: NDArray[np.intp]
    law: Array
    x: Array
    psi: Array

    @classmethod
    def of(cls, value: Value, base: Array, scale: float, log_t: Array, v: Array) -> LogRatioBoxes:
        """Return those whose functionals leave the residuals least."""
        used = value.used
        rows, law = value.rows[:, used], short(np.maximum(v, LEAST))
        rho = law @ rows / law.sum()
        # The outputs in the order of what tells most under v.
        m = np.sqrt(law)[:, None] * (rows - rho) / np.sqrt(rho)
        order = np.argsort(
            np.linalg.svd(m, full_matrices=False)[2][0] / np.sqrt(rho), kind="stable"
        )
        rows, rho = rows[:, order], rho[order]
        x, psi = _functionals(rows - rho, np.ptp(np.diff(np.log(rows), axis=1), axis=0))
        size = np.sqrt((psi**2 / rho).sum(axis=1))
        psi, used = short(psi / size[:, None])[:, :-1], used[order]
        return cls(rows, base, scale, log_t[used], used, law, short(x * size), psi)

    @cached_property
    def q(self) -> Array:
        """The rows q, which sum to 0."""
        psi = np.concatenate([self.psi, -self.psi.sum(axis=1, keepdims=True)], axis=1)
        rho = self.law @ self.rows / self.law.sum()
        return np.concatenate([psi, self.rows - rho - self.x @ psi])

    @cached_property
    def sums(self) -> Array:
        """The sums of each q up to an output."""
        return np.cumsum(self.q, axis=1)[:, :-1]

    @cached_property
    def increments(self) -> Array:
        """What the increments of u, and their negatives, are at most for all v."""
        logs = np.diff(np.log(self.rows), axis=1) - np.diff(self.log_t)
        return np.stack([logs.max(axis=0), -logs.min(axis=0)])

    @property
    def root(self) -> Array:
        """The box of all laws."""
        return self._abel(self.increments[None])[0]

    def narrowed(self, ends: Array) -> Array:
        """Return boxes without what no fixed point is in."""
        _, v, _, k, _ = self.middle(ends)
        ends = np.fmin(ends, self._wide(v, k))
        _, v, _, k, h = self.middle(ends)
        return np.fmin(ends, self._near(v, k, h))

    def middle(self, ends: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return z^c, v^c, A(z^c), k and h."""
        d = self.x.shape[1]
        c, h = (ends[:, 0] - ends[:, 1]) / 2, np.maximum(ends.sum(axis=1) / 2, 0)
        z = c[:, :d] @ self.x.T + c[:, d:]
        y = (z + self.base) / self.scale
        top = y.max(axis=1, keepdims=True)
        v = np.exp(y - top)
        mass = v.sum(axis=1, keepdims=True)
        v /= mass
        apart = np.abs(self.x - (v @ self.x)[:, None])
        k = (np.einsum("bgj,bj->bg", apart, h[:, :d]) + h[:, d:]) / self.scale
        return z, v, self.scale * (np.log(mass) + top)[:, 0], k, h

    def _wide(self, v: Array, k: Array) -> Array:
        """Return boxes by WIDE."""
        top, gaps = k.max(axis=1, keepdims=True), np.diff(self.log_t)
        high, low = v * np.exp(k - top), v * np.exp(-k - top)
        ends = [np.log(ratios.largest(high, low)) for ratios in self._ratios]
        return self._abel(
            np.fmin(np.stack([ends[0] - gaps, ends[1] + gaps], axis=1), self.increments)
        )

    @cached_property
    def _ratios(self) -> tuple[Ratios, Ratios]:
        """What bounds r_{y+1} / r_y, and r_y / r_{y+1}."""
        first, second = self.rows[:, :-1], self.rows[:, 1:]
        return Ratios(second, first), Ratios(first, second)

    def _abel(self, increments: Array) -> Array:
        """Return boxes from what the increments of u, and their negatives, are at most."""
        high, low = increments[:, 0], -increments[:, 1]
        at = (high + low) / 2 @ -self.sums.T
        rest = (high - low) / 2 @ np.abs(self.sums).T
        return np.stack([rest + at, rest - at], axis=1)

    @cached_property
    def _products(self) -> Array:
        """R_gy q_y, for all q and g."""
        return (self.rows.T[:, :, None] * self.q.T[:, None]).reshape(self.rows.shape[1], -1)

    def _near(self, v: Array, k: Array, h: Array) -> Array:
        """Return boxes by NEAR."""
        d, q = self.x.shape[1], self.q.T
        r = v @ self.rows
        excess = (v * (np.expm1(k) - k)) @ self.rows / r
        w = v[:, :, None] * (1 / r @ self._products).reshape(*v.shape, -1)
        rest = np.einsum("bjq,bj->bq", np.abs(self.x.T @ w), h[:, :d])
        rest += np.einsum("bgq,bg->bq", np.abs(w), h[:, d:])
        at = (np.log(r) - self.log_t) @ q
        sides = [(at, np.maximum(q, 0)), (-at, np.maximum(-q, 0))]
        return np.stack([x + rest / self.scale + excess @ part for x, part in sides], axis=1)

    def bounds(self, ends: Array) -> Array:
        """Return what f is at most at a fixed point in each box, by RATIO and RESIDUAL."""
        z, v, a, k, _ = self.middle(ends)
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
