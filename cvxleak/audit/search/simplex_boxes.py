"""`BoxTree`: trees of boxes of distributions, their part in the simplex, and maximizers there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from cvxleak.audit.search.intervals import Cut
from cvxleak.audit.search.value_tree import ValueTree
from cvxleak.core.validation import Array

__all__ = ["LEAST_WEIGHT", "BoxLeaf", "BoxTree", "chords", "clipped", "linear_maximizers"]

HALVINGS = 45
"""Halvings of an interval for the multiplier of sum v = 1; any v near the maximizer will do."""

LEAST_WEIGHT = 1e-30
"""Distributions at which tangents touch are not below this."""


@dataclass(frozen=True)
class BoxLeaf:
    """What proves `bound`: the point at which a tangent touches, and eta, or 0 if it has none."""

    bound: float
    law: Array
    eta: float = 0.0


class BoxTree(ValueTree[BoxLeaf]):
    """A tree whose regions are boxes: arrays of the endpoints of intervals, shape (intervals, 2).

    Each interval is as small as the others and the simplex allow.
    """

    def _fit(self, numbers: int) -> None:
        """Have a batch touch about so many numbers at once, and allow for their rounding."""
        groups, outputs = self._rows.shape
        self.batch = int(np.clip(numbers // self._rows.size, 1, 512))
        self._rounding = 4 * np.finfo(float).eps * (outputs + 4 * groups + 40)

    def _children(
        self, regions: Sequence[Array], leaves: Sequence[BoxLeaf], splits: Sequence[Cut]
    ) -> list[list[tuple[Array, BoxLeaf]]]:
        """Return the parts of boxes that the other intervals leave: none leaks that is empty."""
        children = super()._children(regions, leaves, splits)
        if not children:
            return []
        boxes = np.array([[box for box, _ in pair] for pair in children])
        low, high = boxes[..., 0], boxes[..., 1]
        low, high = (
            np.maximum(low, 1 - (high.sum(axis=-1, keepdims=True) - high)),
            np.minimum(high, 1 - (low.sum(axis=-1, keepdims=True) - low)),
        )
        empty: Any = (low > high).any(axis=-1)
        return [
            [
                (box, BoxLeaf(-np.inf, leaf.law) if none else leaf)
                for box, none, (_, leaf) in zip(*both, pair, strict=True)
            ]
            for *both, pair in zip(np.stack([low, high], axis=-1), empty, children, strict=True)
        ]

    def _law(self, law: Array) -> Array:
        law = np.maximum(law, LEAST_WEIGHT)
        return law / law.sum(axis=-1, keepdims=True)


def chords(ends: Array) -> tuple[Array, Array]:
    """Return slopes of the chords of x log x over intervals, and their heights at 0."""
    low, high = ends[..., 0], ends[..., 1]
    width = high - low
    rise = (xlogy(high, high) - xlogy(low, low)) / np.where(width > 0, width, 1)
    return rise, xlogy(low, low) - rise * low


def linear_maximizers(x: Array, ends: Array) -> Array:
    """Return the distribution of each box at which <v, x> is largest."""
    low, room = ends[..., 0], ends[..., 1] - ends[..., 0]
    order = np.argsort(-x, axis=1)
    ordered = np.take_along_axis(room, order, axis=1)
    left = 1 - low.sum(axis=1, keepdims=True)
    taken = np.clip(left - (np.cumsum(ordered, axis=1) - ordered), 0, ordered)
    law = low.copy()
    np.put_along_axis(law, order, np.take_along_axis(low, order, axis=1) + taken, axis=1)
    return law


def clipped(x: Array, ends: Array) -> Array:
    """Return (nearly) the distribution of each box at which <v, x> + H(v) is largest."""
    low, high = ends[..., 0], ends[..., 1]
    least = (x - np.log(np.maximum(high, LEAST_WEIGHT))).min(axis=1)
    most = (x - np.log(np.maximum(low, LEAST_WEIGHT))).max(axis=1)
    for _ in range(HALVINGS):
        middle = 0.5 * (least + most)
        v = np.clip(np.exp(np.minimum(x - middle[:, None], 1.0)), low, high)
        above = v.sum(axis=1) > 1
        least, most = np.where(above, middle, least), np.where(above, most, middle)
    return np.clip(np.exp(np.minimum(x - most[:, None], 1.0)), low, high)
