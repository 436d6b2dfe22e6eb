"""`LawSearch`: branch and bound on slabs of the conditional laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cvxleak.audit.search.law_dual import LawDual, LawSolution
from cvxleak.audit.search.slabs import principal_functional
from cvxleak.core.validation import Array
from cvxleak.exact.packing import pack
from cvxleak.model import Limits, Lumped
from cvxleak.solvers.best_first import BestFirst, Bounded

__all__ = ["LawSearch"]

Cut = tuple[int, float]
"""(a, where): the slab of value a is cut where the mean of its functional is `where`."""

MARGIN = 0.15
"""A cut keeps at least this share of the slab on each side."""


class LawSearch(BestFirst[Array, LawSolution, Cut]):
    """Upper bounds like those of `CellSearch`, by slabs of the laws of the contexts.

    A region is an array of the ends of one slab per value, shape (k, 2). `weights` is a guess at
    the worst adversary; the functional is chosen where it spreads most.
    """

    kind = "slabs"

    def __init__(
        self,
        lumped: Lumped,
        entropy_floor: float,
        weights: Array,
        limits: Limits | None = None,
    ) -> None:
        self.functional = principal_functional(lumped, weights)
        self._dual = LawDual(lumped, entropy_floor, self.functional, limits)
        super().__init__(self._dual.whole(), self._dual.start(weights))

    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the tree as `cvxleak.proofs.bounds.law_slabs` reads it (always in double)."""
        cuts, leaves = self.preorder()
        # nu a hair above the vertices' entropies, whatever rounding does to them.
        multipliers = [
            [leaf.lam, leaf.q, *leaf.tau, *(leaf.nu + 1e-12), *leaf.kappa] for leaf in leaves
        ]
        return {
            "outputs": [list(group) for group in outputs],
            "functional": pack(self.functional),
            "nodes": pack(np.array([cut[0] if cut else -1 for cut in cuts]), "<i4"),
            "cuts": pack(np.array([cut[1] for cut in cuts if cut], dtype=float)),
            "leaves": pack(np.array(multipliers)),
        }

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[LawSolution],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[LawSolution, Cut]]:
        results = []
        for ends, leaf, accuracy in zip(regions, leaves, accuracies, strict=True):
            found = self._dual.solve(ends, leaf, threshold, accuracy=accuracy, stop=stop)
            results.append(Bounded(found, self._cut(ends, found), found.weights))
        return results

    def _cut(self, ends: Array, solution: LawSolution) -> Cut:
        widths = ends[:, 1] - ends[:, 0]
        a = int(np.argmax(solution.gains + 1e-12 * widths))
        low, high = ends[a]
        margin = MARGIN * (high - low)
        return a, float(np.clip(solution.means[a], low + margin, high - margin))

    def _children(
        self, region: Array, leaf: LawSolution, split: Cut
    ) -> list[tuple[Array, LawSolution]]:
        a, where = split
        children = []
        for side in (1, 0):
            part = region.copy()
            part[a, side] = where
            children.append((part, leaf))
        return children
