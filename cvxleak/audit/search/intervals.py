"""`IntervalSearch`: branch and bound whose regions are boxes of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from cvxleak.core.validation import Array
from cvxleak.exact.packing import pack
from cvxleak.solvers.best_first import BestFirst, Leaf

__all__ = ["Cut", "IntervalSearch", "kept_apart"]

Cut = tuple[int, float]
"""(i, where): interval i is cut at `where`; the lower part is the first child."""

MARGIN = 0.15
"""A cut keeps at least this share of the interval on each side."""

L = TypeVar("L", bound=Leaf)


def kept_apart(where: Array, low: Array, high: Array) -> Array:
    """Return the places nearest to `where` that keep `MARGIN` from the intervals' endpoints."""
    margin = MARGIN * (high - low)
    return np.clip(where, low + margin, high - margin)


class IntervalSearch(BestFirst[Array, L, Cut]):
    """A search whose regions are arrays of the endpoints of intervals, shape (intervals, 2).

    A leaf's multipliers prove its bound for every part of its region.
    """

    def _cuts_and_nodes(self) -> tuple[dict[str, Any], list[L]]:
        """Return the tree as certificates hold it (-1 for a leaf), and its leaves in preorder."""
        cuts, leaves = self.preorder()
        return {
            "nodes": pack(np.array([cut[0] if cut else -1 for cut in cuts]), "<i4"),
            "cuts": pack(np.array([cut[1] for cut in cuts if cut], dtype=float)),
        }, leaves

    def _children(
        self, regions: Sequence[Array], leaves: Sequence[L], splits: Sequence[Cut]
    ) -> list[list[tuple[Array, L]]]:
        children = []
        for region, leaf, (i, where) in zip(regions, leaves, splits, strict=True):
            lower, upper = region.copy(), region.copy()
            lower[i, 1] = upper[i, 0] = where
            children.append([(lower, leaf), (upper, leaf)])
        return children
