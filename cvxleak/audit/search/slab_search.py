"""`SlabSearch`: branch and bound on slabs of the conditional distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cvxleak.audit.search.intervals import Cut, IntervalSearch, kept_apart
from cvxleak.audit.search.slab_dual import SlabDual, SlabSolution
from cvxleak.audit.search.slabs import principal_functional
from cvxleak.core.validation import Array
from cvxleak.exact.packing import pack
from cvxleak.model import Limits, Lumped
from cvxleak.solvers.best_first import Bounded

__all__ = ["SlabSearch"]


class SlabSearch(IntervalSearch[SlabSolution]):
    """Upper bounds like those of `CellSearch`, by slabs of the distributions of the contexts.

    A region is an array of the endpoints of one slab per value, shape (k, 2). `weights` is a guess
    at the worst adversary; the functional is chosen where it spreads most.
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
        self._dual = SlabDual(lumped, entropy_floor, self.functional, limits)
        super().__init__(self._dual.whole(), self._dual.start(weights))

    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the tree as `cvxleak.audit.old_terms` reads it (always in double)."""
        tree, leaves = self._cuts_and_nodes()
        # nu a hair above the vertices' entropies, whatever rounding does to them.
        multipliers = [
            [leaf.lam, leaf.q, *leaf.tau, *(leaf.nu + 1e-12), *leaf.kappa] for leaf in leaves
        ]
        return {
            "outputs": [list(group) for group in outputs],
            "functional": pack(self.functional),
            **tree,
            "leaves": pack(np.array(multipliers)),
        }

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[SlabSolution],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[SlabSolution, Cut]]:
        results = []
        for ends, leaf, accuracy in zip(regions, leaves, accuracies, strict=True):
            found = self._dual.solve(ends, leaf, threshold, accuracy=accuracy, stop=stop)
            results.append(Bounded(found, self._branch(ends, found), found.weights))
        return results

    def _branch(self, ends: Array, solution: SlabSolution) -> Cut:
        """Return the branching rule: the slab and the place where a cut gains most."""
        low, high = ends.T
        a = int(np.argmax(solution.gains + 1e-12 * (high - low)))
        return a, float(kept_apart(solution.means[a], low[a], high[a]))
