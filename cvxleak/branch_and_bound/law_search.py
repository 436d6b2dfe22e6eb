"""Best-first branch and bound on slabs of the conditional laws of one lumped problem."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cvxleak.branch_and_bound.law_dual import LawDual, LawSolution
from cvxleak.branch_and_bound.slabs import principal_functional
from cvxleak.model import Lumped

__all__ = ["LawSearch", "LawTree"]

Array = NDArray[np.float64]

MARGIN = 0.15
"""A cut keeps at least this share of the slab on each side."""


@dataclass
class LawTree:
    """The cuts made so far (value, where, first child) and the multipliers of every leaf."""

    cuts: dict[int, tuple[int, float, int]] = field(default_factory=dict)
    leaves: dict[int, LawSolution] = field(default_factory=dict)
    size: int = 1

    def preorder(self) -> tuple[list[tuple[int, float] | None], list[LawSolution]]:
        """Return the nodes in preorder (None for a leaf), and the leaves in that order."""
        nodes: list[tuple[int, float] | None] = []
        leaves: list[LawSolution] = []
        stack = [0]
        while stack:
            node = stack.pop()
            if node in self.cuts:
                a, where, child = self.cuts[node]
                nodes.append((a, where))
                stack += [child + 1, child]
            else:
                nodes.append(None)
                leaves.append(self.leaves[node])
        return nodes, leaves


class LawSearch:
    """Upper bounds like those of `CellSearch`, by cutting slabs instead of posterior cells."""

    def __init__(self, lumped: Lumped, entropy_floor: float, weights: Array) -> None:
        self.functional = principal_functional(lumped, weights)
        self._dual = LawDual(lumped, entropy_floor, self.functional)
        self.tree = LawTree()
        self.nodes = 0
        root = self._dual.start(weights)
        self.tree.leaves[0] = root
        self._open: list[tuple[float, int]] = [(-root.bound, 0)]
        self._ends = {0: self._dual.whole()}
        self._closed_upper = -np.inf

    @property
    def upper(self) -> float:
        """The largest bound of a leaf: nothing leaks more."""
        top = -self._open[0][0] if self._open else -np.inf
        return max(top, self._closed_upper)

    @property
    def leaves(self) -> int:
        """Number of leaves that a certificate would hold."""
        return len(self.tree.leaves)

    def run(
        self,
        threshold: Callable[[], float],
        *,
        resolution: float,
        stop: Callable[[], bool],
        on_weights: Callable[[Array], None],
        node_limit: int | None = None,
    ) -> None:
        """Cut and bound until `upper <= threshold()`, `stop()`, or the node limit."""
        if self.nodes == 0:
            self._bound(0, resolution, threshold())
        while self._open and -self._open[0][0] > threshold():
            if stop() or (node_limit is not None and self.nodes >= node_limit):
                return
            node = self._open[0][1]
            where, children = self._cut(node)
            for child in children:
                self._bound(child, resolution, threshold())
            # Only now does the parent go: an interrupt before this leaves it in its place.
            heapq.heappop(self._open)
            first = children[0]
            self.tree.cuts[node] = (*where, first)
            for child in children:
                self._settle(child, threshold())
            del self.tree.leaves[node], self._ends[node]
            on_weights(self.tree.leaves[first].weights[None])

    def _cut(self, node: int) -> tuple[tuple[int, float], tuple[int, int]]:
        ends, solution = self._ends[node], self.tree.leaves[node]
        a = int(np.argmax(self._dual.gaps(ends, solution)))
        low, high = ends[a]
        where = self._dual.mean(a, solution.weights)
        where = float(np.clip(where, low + MARGIN * (high - low), high - MARGIN * (high - low)))
        children = (self.tree.size, self.tree.size + 1)
        for child, part in zip(children, ((low, where), (where, high)), strict=True):
            self._ends[child] = ends.copy()
            self._ends[child][a] = part
            self.tree.leaves[child] = solution
        self.tree.size += 2
        return (a, where), children

    def _bound(self, node: int, resolution: float, threshold: float) -> None:
        start = self.tree.leaves[node]
        accuracy = max(1e-12, 1e-2 * max(start.bound - threshold, resolution))
        self.tree.leaves[node] = self._dual.solve(
            self._ends[node], start, threshold, accuracy=accuracy
        )
        self.nodes += 1
        if node == 0:
            self._open = [(-self.tree.leaves[0].bound, 0)]

    def _settle(self, node: int, threshold: float) -> None:
        bound = self.tree.leaves[node].bound
        if bound <= threshold:
            self._closed_upper = max(self._closed_upper, bound)
            del self._ends[node]
        else:
            heapq.heappush(self._open, (-bound, node))
