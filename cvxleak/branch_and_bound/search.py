"""Best-first branch and bound on the posterior cells of one lumped problem."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from cvxleak.branch_and_bound.cells import Split, split_points
from cvxleak.branch_and_bound.node_dual import Cells, NodeDual
from cvxleak.model import Lumped

__all__ = ["CellSearch", "CellTree"]

Array = NDArray[np.float64]


@dataclass
class CellTree:
    """The splits made so far and, for every leaf, multipliers that prove its bound.

    Node 0 is the root (every cell the whole simplex); the children of a split node are stored one
    after the other. Together the leaves cover every adversary.
    """

    splits: dict[int, tuple[Split, int]] = field(default_factory=dict)
    leaves: dict[int, tuple[float, float, Array]] = field(default_factory=dict)
    size: int = 1

    def preorder(self) -> tuple[list[Split | None], list[tuple[float, Array]]]:
        """Return the nodes in preorder (None for a leaf), and (lam, mu) of the leaves in order."""
        nodes: list[Split | None] = []
        leaves: list[tuple[float, Array]] = []
        stack = [0]
        while stack:
            node = stack.pop()
            if node in self.splits:
                split, child = self.splits[node]
                nodes.append(split)
                stack += [child + 1, child]
            else:
                nodes.append(None)
                leaves.append(self.leaves[node][1:])
        return nodes, leaves


class CellSearch:
    """Upper bounds on max I(w) subject to F(w) >= entropy_floor, tightened until told to stop.

    `upper` is valid at any moment. `run` goes on until it is at most the caller's threshold.
    """

    def __init__(self, lumped: Lumped, entropy_floor: float) -> None:
        self._dual = NodeDual(lumped, entropy_floor)
        self.tree = CellTree()
        self.nodes = 0
        k, outputs = len(lumped.values), lumped.rows.shape[1]
        root = np.broadcast_to(np.eye(k), (outputs, k, k))
        mu = np.full((outputs, k), 1e-3)
        bound = float(np.log(k))
        # U(0, 0) = log k at the root.
        self.tree.leaves[0] = (bound, 0.0, np.zeros((outputs, k)))
        self._open: list[tuple[float, int]] = [(-bound, 0)]
        self._state: dict[int, tuple[Array, float, Array]] = {0: (root, 0.1, mu)}
        self._closed_upper = -np.inf
        self._in_flight = -np.inf

    @property
    def upper(self) -> float:
        """The largest bound of a leaf: nothing leaks more."""
        top = -self._open[0][0] if self._open else -np.inf
        return max(top, self._closed_upper, self._in_flight)

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
        batch: int = 128,
        node_limit: int | None = None,
    ) -> None:
        """Split and bound until `upper <= threshold()`, `stop()`, or the node limit.

        `resolution` is the gap, in nats, that makes a difference to the caller: bounds are computed
        to a hundredth of it. `on_weights` is handed relaxed maximizers, from which the caller may
        find better attained values (and so raise the threshold).
        """
        while self._open and -self._open[0][0] > threshold():
            if stop() or (node_limit is not None and self.nodes >= node_limit):
                return
            chosen = []
            limit = min(batch, max(1, 1 + len(self._open) // 2))
            while self._open and len(chosen) < limit and -self._open[0][0] > threshold():
                chosen.append(heapq.heappop(self._open))
            # `upper` stays valid for whoever reads it while the batch is worked on.
            self._in_flight = -chosen[0][0]
            try:
                self._process(chosen, threshold(), resolution, on_weights)
            except BaseException:
                # Ctrl-C inside a batch: nodes not yet replaced go back, so the bound stays valid.
                for entry in chosen:
                    if entry[1] in self._state and entry[1] not in self.tree.splits:
                        heapq.heappush(self._open, entry)
                raise
            finally:
                self._in_flight = -np.inf

    def _process(
        self,
        chosen: list[tuple[float, int]],
        threshold: float,
        resolution: float,
        on_weights: Callable[[Array], None],
    ) -> None:
        names = [node for _, node in chosen]
        states = [self._state[node] for node in names]
        cells = Cells.of(np.stack([state[0] for state in states]))
        lam = np.array([state[1] for state in states])
        mu = np.stack([state[2] for state in states])
        # Far above the threshold a node is split anyway: it need not be bounded sharply.
        accuracy = max(1e-12, 1e-2 * max(-chosen[0][0] - threshold, resolution))
        solution = self._dual.solve(cells, lam, mu, threshold, accuracy=accuracy)
        self.nodes += len(names)
        on_weights(solution.weights)
        splits = split_points(cells, solution.joint)
        for place, (node, split) in enumerate(zip(names, splits, strict=True)):
            inherited = self.tree.leaves[node]
            bound = float(solution.bound[place])
            leaf = (bound, float(solution.lam[place]), solution.mu[place])
            if inherited[0] < bound:
                leaf = inherited
            self.tree.leaves[node] = leaf
            if leaf[0] <= threshold:
                self._closed_upper = max(self._closed_upper, leaf[0])
                del self._state[node]
            else:
                self._split(node, split, leaf, states[place][0], cells.entropies[place])

    def _split(
        self,
        node: int,
        split: Split,
        leaf: tuple[float, float, Array],
        vertices: Array,
        entropies: Array,
    ) -> None:
        y, i, j, t = split
        bound, lam, mu = leaf
        point = (1 - t) * vertices[y, i] + t * vertices[y, j]
        chord = (1 - t) * entropies[y, i] + t * entropies[y, j]
        gain = max(float(entr(point).sum() - chord), 0.0)
        # The parent's nu is feasible for the children, with the same bound.
        multiplier = (1 - t) * mu[y, i] + t * mu[y, j] + gain
        child = self.tree.size
        for replaced in (j, i):
            cell = vertices.copy()
            cell[y, replaced] = point
            multipliers = mu.copy()
            multipliers[y, replaced] = multiplier
            name = self.tree.size
            self.tree.size += 1
            self.tree.leaves[name] = (bound, lam, multipliers)
            self._state[name] = (cell, max(lam, 1e-6), np.maximum(multipliers, 1e-6))
            heapq.heappush(self._open, (-bound, name))
        self.tree.splits[node] = (split, child)
        del self.tree.leaves[node], self._state[node]
