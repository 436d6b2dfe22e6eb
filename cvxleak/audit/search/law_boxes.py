r"""`LawBoxes`: the inner maximum of the time-sharing bound, by boxes of the contexts' distribution.

f(v) = D(v R || t) + lam (H(v) + <v, log m>) is convex in the probabilities r = v R of the outputs
and concave in v otherwise. With many outputs and smooth noise, the r_y nearly determine each other,
while v has only as many numbers as a value has groups. A region is a box of distributions v. Two
bounds are linear in v, and so largest at a vertex of the box and the simplex (proved in
`cvxleak.kernel.values`):

- by chords of r log(r / t_y) between the endpoints of each r_y on the box, and a tangent of H;
- with an eta for which D(v R || w R) <= eta D(v || w) near the box, by the tangent at a
  distribution w; where eta exceeds lam the rest, (eta - lam) sum v log v, is bounded by its chords.
  On a small box eta is near the second largest eigenvalue of R diag(1/r) R^T against diag(1/v). If
  that is below lam, f is concave there, and the maximum's neighborhood is a single leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import rel_entr

from cvxleak.audit.search.intervals import Cut
from cvxleak.audit.search.simplex_boxes import (
    BoxLeaf,
    BoxTree,
    chords,
    clipped,
    linear_maximizers,
)
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.exact.packing import pack
from cvxleak.solvers.best_first import Bounded

__all__ = ["GRID", "LawBoxes", "fits_boxes"]

GRID = 2.0**-40
"""Cuts are multiples of this, so that sums and differences of ends of boxes are exact."""

LEAST_ENTRY = 2.0**-900
"""Least positive entry of the rows, so that no product underflows."""

TAU = 100.0
"""Weight of the penalty that keeps the sum of d near 0."""

BATCH_SIZE = 1 << 19
"""About how many numbers the largest array of a batch may have."""

STEPS = 3
"""Steps towards the maximizer of f in a box."""

BOX_STEPS = 200.0
"""About how often a node goes through the rows."""

MOST_GROUPS = 12
"""Most groups of a value for boxes: with 5 they take hundreds of nodes, with 8 ten thousand."""

NEAR_ZERO = 0.05
"""An interval from 0 to more than this is cut at a third: most of it is of no account."""


def fits_boxes(rows: Array) -> bool:
    """Whether a value has few groups, no more than outputs, and rows that floats can prove."""
    groups, outputs = rows.shape
    return groups <= min(outputs, MOST_GROUPS) and float(rows[rows > 0].min()) > 2 * LEAST_ENTRY


class LawBoxes(BoxTree):
    """Upper bounds on max_v D(v R || t) - lam D(v || s), for one value of the record.

    A region has one interval per group. A leaf's eta is 0 for chords.
    """

    def _root(self) -> tuple[Array, BoxLeaf]:
        self._fit(BATCH_SIZE)
        self._order = np.argsort(self._rows, axis=0)
        self._sorted = np.take_along_axis(self._rows, self._order, axis=0)
        self._logs_t = np.log(self._t)
        box = np.tile([0.0, 1.0], (len(self._rows), 1))
        return box, self._renewed([box], [BoxLeaf(np.inf, self._law(self.law))])[0]

    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the tree as `cvxleak.audit.old_terms` reads it."""
        tree, leaves = self._cuts_and_nodes()
        tree["groups"] = tree.pop("nodes")
        # An eta that single precision makes smaller may be none.
        more = 1 + 1e-6 if dtype == "<f4" else 1
        numbers = [np.concatenate([[leaf.eta * more], leaf.law]) for leaf in leaves]
        return tree | {"leaves": pack(np.array(numbers), dtype)}

    def _renewed(self, regions: list[Array], leaves: list[BoxLeaf]) -> list[BoxLeaf]:
        ends = np.stack(regions)
        laws = np.stack([leaf.law for leaf in leaves])
        eta = np.array([leaf.eta for leaf in leaves])
        means = self._means(ends)
        eta = np.where(eta > 0, np.maximum(eta, self._lam), 0.0)
        bounds = np.where(
            eta > 0,
            self._by_curvature(ends, eta, laws),
            self._by_chords(ends, means, self._chords(means), laws),
        )
        return [BoxLeaf(*found) for found in zip(bounds.tolist(), laws, eta.tolist(), strict=True)]

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[BoxLeaf],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[BoxLeaf, Cut]]:
        spend(2e6 + BOX_STEPS * len(regions) * self._rows.size)
        ends = np.stack(regions)
        means = self._means(ends)
        slopes = self._chords(means)
        laws = self._maximizers(ends, slopes)
        bounds, eta = self._by_chords(ends, means, slopes, laws), np.zeros(len(ends))
        left = np.flatnonzero(bounds > threshold)
        if len(left):
            touching = self._touching(ends[left], laws[left])
            curved = self._eta(ends[left], means[0][left], touching)
            found = self._by_curvature(ends[left], curved, touching)
            laws[left] = touching
            better = found < bounds[left]
            bounds[left[better]], eta[left[better]] = found[better], curved[better]
            # What chords prove takes the distribution of their own.
            worse = left[~better]
            laws[worse] = self._maximizers(ends[worse], slopes[worse])
        splits = self._branch(ends, means, laws)
        return [
            Bounded(BoxLeaf(float(bound), law, float(one)), split, law)
            for bound, one, law, split in zip(bounds, eta, laws, splits, strict=True)
        ]

    def _branch(self, ends: Array, means: tuple[Array, Array], laws: Array) -> list[Cut]:
        """Return the branching rule: the group whose interval moves the outputs most, its middle.

        What a group's share adds to the gap of the chords grows with its width squared times
        sum_y (R_gy - r_y)^2 / r_y.
        """
        low, high = ends[..., 0], ends[..., 1]
        r = 0.5 * (means[0] + means[1])
        weights = 1 / np.maximum(r, 1e-300)
        # sum_y (R_gy - r_y)^2 / r_y = sum_y R_gy^2 / r_y - 2 + sum_y r_y.
        far = weights @ (self._rows**2).T - 2 + r.sum(axis=1, keepdims=True)
        g = ((high - low) ** 2 * np.maximum(far, 1e-12)).argmax(axis=1)
        n = np.arange(len(ends))
        low, high = low[n, g], high[n, g]
        where = np.where((low == 0) & (high > NEAR_ZERO), high / 3, 0.5 * (low + high))
        where = np.clip(np.rint(where / GRID) * GRID, low, high)
        return list(zip(g.tolist(), where.tolist(), strict=True))

    def _means(self, ends: Array) -> tuple[Array, Array]:
        """Return the least and the largest probability of each output over each box."""
        low = ends[..., 0]
        room = (ends[..., 1] - low)[:, self._order]
        base, left = low @ self._rows, 1 - low.sum(axis=1)[:, None, None]
        found = []
        for step in (1, -1):
            ordered = room[:, ::step]
            taken = np.clip(left - (np.cumsum(ordered, axis=1) - ordered), 0, ordered)
            found.append(base + (taken * self._sorted[::step]).sum(axis=1))
        return found[0] * (1 - self._rounding), found[1] * (1 + self._rounding)

    def _chords(self, means: tuple[Array, Array]) -> Array:
        """Return the slopes of the chords of r log(r / t)."""
        least, most = means
        width = most - least
        wide = width > 1e-6 * most
        rise = rel_entr(most, self._t) - rel_entr(least, self._t)
        tangents = np.log(np.maximum(most, 1e-300)) - self._logs_t + 1
        return np.where(wide, rise / np.where(wide, width, 1), tangents)

    def _maximizers(self, ends: Array, slopes: Array) -> Array:
        """Return where in each box <v, R slopes> - lam D(v || s) is largest, or near that."""
        x = slopes @ self._rows.T / self._lam + self._log_shares
        return self._law(clipped(x, ends))

    def _touching(self, ends: Array, laws: Array) -> Array:
        """Return points of the boxes where f is larger: the best known one, or some steps up."""
        for _ in range(STEPS):
            laws = self._maximizers(ends, self._slopes(laws))
        inside = (self.law >= ends[..., 0]) & (self.law <= ends[..., 1])
        return np.where(inside.all(axis=1, keepdims=True), self._law(self.law), laws)

    def _eta(self, ends: Array, least: Array, laws: Array) -> Array:
        """Return the least eta >= lam for each box that a checker is sure to find large enough."""
        h = np.maximum(ends[..., 1], laws)
        q = np.minimum(least, laws @ self._rows)
        unused = self._rows.max(axis=0) <= 0
        usable = (unused | (q > 1e-300)).all(axis=1)
        b = np.sqrt(h)[:, :, None] * self._rows / np.sqrt(np.where(q > 1e-300, q, 1.0))[:, None]
        k = np.matmul(b, b.swapaxes(1, 2))
        trace = np.trace(k, axis1=1, axis2=2)
        roots = np.sqrt(h)
        k -= TAU * roots[:, :, None] * roots[:, None, :]
        largest = np.maximum(np.linalg.eigvalsh(k)[:, -1], self._lam)
        size = len(h[0]) * largest + TAU * h.sum(axis=1) + trace
        return np.where(usable, largest + self._rounding * size, np.inf)

    def _by_chords(
        self, ends: Array, means: tuple[Array, Array], slopes: Array, laws: Array
    ) -> Array:
        lines = [rel_entr(r, self._t) - slopes * r for r in means]
        x = slopes @ self._rows.T + self._lam * (self._log_shares - np.log(laws))
        sizes = np.abs(slopes).max(axis=1) + np.abs(x).max(axis=1)
        return self._linear(x, ends, sizes) + np.maximum(*lines).sum(axis=1)

    def _by_curvature(self, ends: Array, eta: Array, laws: Array) -> Array:
        above = (eta - self._lam)[:, None]
        rise, offset = chords(ends)
        with np.errstate(invalid="ignore"):
            x = self._slopes(laws) @ self._rows.T + self._lam * self._log_shares
            x += above * rise - eta[:, None] * np.log(laws)
            bound = self._linear(x, ends, np.abs(x).max(axis=1)) + (above * offset).sum(axis=1)
        return np.where(np.isfinite(eta), bound, np.inf)

    def _linear(self, x: Array, ends: Array, sizes: Array) -> Array:
        """Return the largest <v, x> over each box, and an allowance for rounding."""
        best = (x * linear_maximizers(x, ends)).sum(axis=1)
        return best + self._rounding * (1 + self._lam + sizes)
