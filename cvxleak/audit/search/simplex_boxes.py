"""Boxes of laws: what is left of them in the simplex, and what is largest there."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxleak.core.validation import Array

__all__ = ["LEAST_WEIGHT", "clipped", "left_by_others", "linear_maximizers"]

HALVINGS = 45
"""Halvings of an interval for the multiplier of sum v = 1; any v near the maximizer will do."""

LEAST_WEIGHT = 1e-30
"""Laws at which tangents touch are not below this."""


def left_by_others(boxes: Array) -> tuple[Array, Any]:
    """Return the part of each box that the other intervals leave, and where there is none."""
    low, high = boxes[..., 0], boxes[..., 1]
    narrow = np.stack(
        [
            np.maximum(low, 1 - (high.sum(axis=-1, keepdims=True) - high)),
            np.minimum(high, 1 - (low.sum(axis=-1, keepdims=True) - low)),
        ],
        axis=-1,
    )
    return narrow, (narrow[..., 0] > narrow[..., 1]).any(axis=-1)


def linear_maximizers(x: Array, ends: Array) -> Array:
    """Return the law of each box at which <v, x> is largest."""
    low, room = ends[..., 0], ends[..., 1] - ends[..., 0]
    order = np.argsort(-x, axis=1)
    ordered = np.take_along_axis(room, order, axis=1)
    left = 1 - low.sum(axis=1, keepdims=True)
    taken = np.clip(left - (np.cumsum(ordered, axis=1) - ordered), 0, ordered)
    law = low.copy()
    np.put_along_axis(law, order, np.take_along_axis(low, order, axis=1) + taken, axis=1)
    return law


def clipped(x: Array, ends: Array) -> Array:
    """Return (nearly) the law of each box at which <v, x> + H(v) is largest."""
    low, high = ends[..., 0], ends[..., 1]
    least = (x - np.log(np.maximum(high, LEAST_WEIGHT))).min(axis=1)
    most = (x - np.log(np.maximum(low, LEAST_WEIGHT))).max(axis=1)
    for _ in range(HALVINGS):
        middle = 0.5 * (least + most)
        v = np.clip(np.exp(np.minimum(x - middle[:, None], 1.0)), low, high)
        above = v.sum(axis=1) > 1
        least, most = np.where(above, middle, least), np.where(above, most, middle)
    return np.clip(np.exp(np.minimum(x - most[:, None], 1.0)), low, high)
