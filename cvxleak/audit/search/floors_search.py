"""`FloorsSearch`: one tree of posterior cells for many entropy floors."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.search.cell_dual import Cells
from cvxleak.audit.search.cell_search import (
    STARTING_LAM,
    CellSearch,
    Split,
    branch,
    halved,
)
from cvxleak.audit.search.floors_proof import FloorsTree, trees_of_floors
from cvxleak.audit.search.means import entropy_surplus, first_multiplier
from cvxleak.audit.search.symmetries import Symmetry
from cvxleak.core.validation import Array
from cvxleak.model import Lumped

__all__ = ["FloorsSearch"]

BATCH = 2048
"""Most nodes that are bounded at once."""

DEEPER = 0.3
"""Share of its excess over the threshold by which a node's bound is pushed below it: what is
found at one floor then holds at more of its neighbors."""


@dataclass(frozen=True)
class _Tangent:
    """Multipliers that prove row[f] at floor f: U(lam, mu) is linear in the floor, by -lam."""

    lam: float
    mu: Array
    row: Array


@dataclass
class _Open:
    """A node that still has to be bounded, or split, at some floor."""

    region: Array
    lam: float
    mu: Array
    row: Array  # the least known bound at each floor, those of its ancestors included


class FloorsSearch:
    """Upper bounds on max I(w) subject to F(w) >= b, for many floors b, by posterior cells.

    Multipliers (lam, mu) found for a cell at one floor prove U - lam (b' - b) at every other floor
    b', and for every part of the cell. So each node keeps the multipliers that were found for it,
    is bounded at one floor after the other until all are below their thresholds, and is split as
    soon as one cannot be. For a single floor the part of the tree that is needed is a proof like
    that of `CellSearch`.

    Parameters
    ----------
    lumped : Lumped
    entropy_floors : sequence of float
    symmetries : sequence of Symmetry
        As for `CellSearch`.
    """

    def __init__(
        self,
        lumped: Lumped,
        entropy_floors: Sequence[float],
        symmetries: Sequence[Symmetry] = (),
    ) -> None:
        cells = CellSearch(lumped, entropy_floors[0], None, symmetries)
        self.floors = list(entropy_floors)
        self.nodes = 0
        self._cells = cells
        self._batch = min(BATCH, cells.dual.batch)
        self._surplus = np.array([entropy_surplus(cells.problem, b) for b in self.floors])
        k, outputs = len(lumped.values), lumped.rows.shape[1]
        row = np.full(len(self.floors), np.log(k))
        trivial = _Tangent(0.0, np.zeros((outputs, k)), row)
        self._tangents: dict[int, list[_Tangent]] = {0: [trivial]}
        self.tangents = 1
        """Number of multipliers that a proof for all floors would check, at most."""
        self._splits: dict[int, tuple[Split, int]] = {}
        self._superfluous: dict[int, int] = {}
        whole = np.broadcast_to(np.eye(k), (outputs, k, k))
        first = first_multiplier(float(np.median(self._surplus)))
        self._open = {0: _Open(whole, first, np.full((outputs, k), 1e-3), row)}
        self._size = 1

    @property
    def upper(self) -> Array:
        """The bound at each floor: nothing leaks more."""
        values = self._own()
        for node in range(self._size - 1, -1, -1):
            if node in self._superfluous:
                values[node] = -np.inf
            elif node in self._splits:
                child = self._splits[node][1]
                below = np.maximum(values[child], values[child + 1])
                np.minimum(values[node], below, out=values[node])
        return values[0]

    def _own(self) -> Array:
        """Return the least bound that a node's own multipliers prove, by node and floor."""
        least = np.full((self._size, len(self.floors)), np.inf)
        for node, tangents in self._tangents.items():
            for tangent in tangents:
                np.minimum(least[node], tangent.row, out=least[node])
        return least

    def run(
        self,
        thresholds: Callable[[], tuple[Array, Array]],
        *,
        stop: Callable[[], bool],
        on_weights: Callable[[Array, NDArray[np.intp]], None],
        node_limit: int,
    ) -> None:
        """Bound and split until every node is below the threshold at every floor.

        `thresholds` returns them, and the gap at each floor that makes a difference to the caller.
        `on_weights` is handed relaxed maximizers, and the places of the floors they belong to.
        """
        goal, resolution = thresholds()
        rows = np.array([node.row for node in self._open.values()]).reshape(-1, len(goal))
        queue = list(zip((-(rows / goal).max(axis=1)).tolist(), self._open, strict=True))
        heapq.heapify(queue)
        while queue and self.nodes < node_limit and not stop():
            batch = [heapq.heappop(queue)[1] for _ in range(min(len(queue), self._batch))]
            rows = np.stack([self._open[place].row for place in batch])
            batch = [batch[i] for i in np.flatnonzero((rows > goal).any(axis=1))]
            if not batch:
                continue
            weights, at, still_open, excess = self._process(batch, goal, resolution, stop)
            if len(weights):
                on_weights(weights, at)
                goal, resolution = thresholds()
            for place, most in zip(still_open, excess, strict=True):
                heapq.heappush(queue, (-most, place))

    def _process(
        self, batch: list[int], goal: Array, resolution: Array, stop: Callable[[], bool]
    ) -> tuple[Array, NDArray[np.intp], list[int], list[float]]:
        """Bound each node at the floor where it is worst, and split it if that does not do.

        Returned are the relaxed maximizers and the places of their floors, and the nodes that are
        open now, with by what factor the worst of their bounds exceeds its threshold.
        """
        by = self._cells.superfluous(np.stack([self._open[place].region for place in batch]))
        for place, symmetry in zip(batch, by, strict=True):
            if symmetry is not None:
                self._superfluous[place] = symmetry
                del self._open[place]
        places = [place for place, symmetry in zip(batch, by, strict=True) if symmetry is None]
        self.nodes += len(batch)
        if not places:
            return np.zeros((0, 0)), np.zeros(0, dtype=np.intp), [], []
        nodes = [self._open[place] for place in places]
        rows = np.stack([node.row for node in nodes])
        at = (rows / goal).argmax(axis=1)
        order = np.arange(len(nodes))
        here = rows[order, at]
        surplus, gap = self._surplus[at], resolution[at]
        cells = Cells.of(np.stack([node.region for node in nodes]))
        lam = np.array([node.lam for node in nodes])
        mu = np.stack([node.mu for node in nodes])
        found = self._cells.dual.solve(
            cells,
            np.maximum(lam, STARTING_LAM),
            np.maximum(mu, 1e-6),
            goal[at] - np.minimum(DEEPER * (here - goal[at]), 0.1 * goal[at]),
            accuracy=np.maximum(1e-12, 1e-2 * np.maximum(here - goal[at], gap)),
            surplus=surplus,
            stop=stop,
        )
        new_rows = found.bound[:, None] + found.lam[:, None] * (self._surplus - surplus[:, None])
        better = np.atleast_1d((new_rows < rows).any(axis=1))
        rows = np.minimum(rows, new_rows)
        lam = np.where(better, found.lam, lam)
        mu = np.where(better[:, None, None], found.mu, mu)
        for i in np.flatnonzero(better).tolist():
            tangent = _Tangent(float(found.lam[i]), found.mu[i], new_rows[i])
            self._tangents.setdefault(places[i], []).append(tangent)
            self.tangents += 1
        excess = (rows / goal).max(axis=1)
        is_open = (rows > goal).any(axis=1)
        split = is_open & (rows[order, at] > goal[at])
        still_open: list[int] = []
        for i in np.flatnonzero(~is_open).tolist():
            del self._open[places[i]]
        for i in np.flatnonzero(is_open & ~split).tolist():
            self._open[places[i]] = _Open(nodes[i].region, float(lam[i]), mu[i], rows[i])
            still_open.append(places[i])
        factors = excess[is_open & ~split].tolist()
        cuts = branch(cells, found.joint)
        chosen = np.flatnonzero(split)
        regions, multipliers = halved(cells.vertices[chosen], mu[chosen], [cuts[i] for i in chosen])
        for half, i in enumerate(chosen.tolist()):
            child = self._size
            self._size += 2
            self._splits[places[i]] = (cuts[i], child)  # from here on the node is split
            for side in (0, 1):
                self._open[child + side] = _Open(
                    regions[side, half], float(lam[i]), multipliers[side, half], rows[i]
                )
                still_open.append(child + side)
                factors.append(float(excess[i]))
            del self._open[places[i]]
        return found.weights, at, still_open, factors

    def encoded(
        self, outputs: Sequence[Sequence[int]], targets: Mapping[int, float], dtype: str
    ) -> dict[int, dict[str, Any]]:
        """Return what a certificate holds for floors by place.

        Of each floor's tree only what proves its target is kept.
        """
        header = self._cells.header(outputs)
        trees = trees_of_floors(self._tree(), targets, dtype)
        return {place: header | tree for place, tree in trees.items()}

    def _tree(self) -> FloorsTree:
        edges = np.full((self._size, 3), -1, dtype=np.int32)
        cuts, child = np.zeros(self._size), np.full(self._size, -1, dtype=np.intp)
        superfluous = child.copy()
        split = np.fromiter(self._splits, dtype=np.intp)
        if len(split):
            edges[split] = [one[:3] for one, _ in self._splits.values()]
            cuts[split] = [one[3] for one, _ in self._splits.values()]
            child[split] = [first for _, first in self._splits.values()]
        superfluous[list(self._superfluous)] = list(self._superfluous.values())
        tangents = [one for found in self._tangents.values() for one in found]
        return FloorsTree(
            edges,
            cuts,
            child,
            superfluous,
            np.repeat(list(self._tangents), [len(found) for found in self._tangents.values()]),
            np.stack([np.concatenate([[one.lam], one.mu.ravel()]) for one in tangents]),
            np.stack([one.row for one in tangents]),
        )
