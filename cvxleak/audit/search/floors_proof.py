"""Proofs of many floors out of one tree of posterior cells (`FloorsSearch`).

Each floor needs the least part of the tree that proves its bound. All parts are found together,
level by level, and cells and multipliers that floors share are proved once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from cvxleak.core.validation import Array
from cvxleak.exact.balls import number, round_up
from cvxleak.exact.outward import SMALLEST
from cvxleak.exact.packing import pack
from cvxleak.proofs.bounds.posterior_cells import Cell, CellProof

__all__ = ["FloorsTree", "prove_floors"]

Places = NDArray[np.intp]

MARGIN = 1e-9
"""Leaves whose bound, in floats, is this close to the largest one are compared in balls."""


@dataclass(frozen=True)
class FloorsTree:
    """A tree of splits, and multipliers at its nodes, as arrays.

    Attributes
    ----------
    edges, cuts, child : arrays of shapes (N, 3), (N,) and (N,)
        The split (y, i, j, t) of each node and the first of its two children, -1 if not split. The
        root is node 0.
    superfluous : array, shape (N,)
        The symmetry that makes a node superfluous, or -1.
    nodes, multipliers, rows : arrays of shapes (T,), (T, 1 + |Y| k) and (T, F)
        Nodes, (lam, mu) found for them, and the bound that they prove at each floor. What belongs
        to one node stands together.
    """

    edges: NDArray[np.int32]
    cuts: Array
    child: Places
    superfluous: Places
    nodes: Places
    multipliers: Array
    rows: Array

    @cached_property
    def levels(self) -> list[Places]:
        """The nodes by their depth."""
        found, level = [], np.zeros(1, dtype=np.intp)
        while len(level):
            found.append(level)
            child = self.child[level]
            first = child[child >= 0]
            level = np.concatenate([first, first + 1])
        return found

    def preorder(self) -> Places:
        """Return all nodes in preorder."""
        below = np.ones(len(self.child), dtype=np.intp)
        place = np.zeros(len(self.child), dtype=np.intp)
        for inner, first in self._inner(reverse=True):
            below[inner] += below[first] + below[first + 1]
        for inner, first in self._inner():
            place[first] = place[inner] + 1
            place[first + 1] = place[first] + below[first]
        nodes = np.concatenate(self.levels)
        return nodes[np.argsort(place[nodes])]

    def _inner(self, *, reverse: bool = False) -> Iterator[tuple[Places, Places]]:
        """Yield the split nodes and their first children, level by level."""
        for level in reversed(self.levels) if reverse else self.levels:
            inner = level[self.child[level] >= 0]
            yield inner, self.child[inner]

    def needed(self, floors: Places, targets: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return by node and floor who is part of the least proof, and who is a leaf of it."""
        least = np.full((len(self.child), len(floors)), np.inf)
        starts = np.flatnonzero(np.diff(self.nodes, prepend=-1))
        least[self.nodes[starts]] = np.minimum.reduceat(self.rows[:, floors], starts)
        done = (least <= targets) | ((self.superfluous >= 0) | (self.child < 0))[:, None]
        reached = np.zeros(least.shape, dtype=bool)
        reached[0] = True
        for inner, first in self._inner():
            reached[first] = reached[first + 1] = reached[inner] & ~done[inner]
        return reached, reached & done

    def chosen(self, floors: Places, targets: Array, leaf: NDArray[Any]) -> Places:
        """Return by node and floor the place of multipliers that prove a leaf, -1 where none do.

        Those that prove the most floors go first, so that few are needed.
        """
        proves = (self.rows[:, floors] <= targets) & leaf[self.nodes]
        proves &= self.superfluous[self.nodes, None] < 0
        order = np.lexsort((-proves.sum(axis=1), self.nodes))
        found = np.full(leaf.shape, -1, dtype=np.intp)
        for place in range(len(floors)):
            some = order[proves[order, place]]
            first = np.diff(self.nodes[some], prepend=-1) != 0
            found[self.nodes[some[first]], place] = some[first]
        return found


class _Cells:
    """The cells of a tree's nodes: what `Cell.split` makes of them, many at once."""

    def __init__(self, tree: FloorsTree, used: NDArray[Any], root: Sequence[Cell]) -> None:
        k, outputs = len(root[0].floats), len(root)
        size = 1 + 2 * int((used & (tree.child >= 0)).sum())
        self.vertices, self.depths = np.empty((size, k, k)), np.empty((size, k))
        self.vertices[0], self.depths[0] = root[0].floats, root[0].depths
        self.of = np.zeros((len(used), outputs), dtype=np.intp)  # one cell for each output
        self._origins = np.zeros((size, 4), dtype=np.intp)  # the cell that was split, i, j, side
        self._shares = np.zeros(size)
        self._known = {0: root[0]}
        made = 1
        for level in tree.levels:
            inner = level[used[level] & (tree.child[level] >= 0)]
            (y, i, j), t = tree.edges[inner].T, tree.cuts[inner]
            old = self.of[inner, y]
            p, q = self.vertices[old, i], self.vertices[old, j]
            point = (1 - t)[:, None] * p + t[:, None] * q
            depth = np.maximum(self.depths[old, i], self.depths[old, j]) + 1
            depth[((point < SMALLEST) & ((p > 0) | (q > 0))).any(axis=1)] = np.inf
            for side, replaced in enumerate((j, i)):
                new = np.arange(made, made + len(inner))
                made += len(inner)
                self.vertices[new], self.depths[new] = self.vertices[old], self.depths[old]
                self.vertices[new, replaced], self.depths[new, replaced] = point, depth
                self._origins[new] = np.stack([old, i, j, np.full(len(inner), side)], axis=1)
                self._shares[new] = t
                child = tree.child[inner] + side
                self.of[child] = self.of[inner]
                self.of[child, y] = new

    def at(self, node: int) -> list[Cell]:
        """Return a node's cells, for a proof in balls."""
        return [self._cell(place) for place in self.of[node].tolist()]

    def _cell(self, place: int) -> Cell:
        waiting = []
        while place not in self._known:
            waiting.append(place)
            place = int(self._origins[place, 0])
        cell = self._known[place]
        for place in reversed(waiting):
            _, i, j, side = self._origins[place].tolist()
            cell = cell.split(i, j, float(self._shares[place]))[side]
            self._known[place] = cell
        return cell


def prove_floors(
    tree: FloorsTree,
    floors: Sequence[float],
    prover: CellProof,
    targets: Mapping[int, float],
    dtype: str,
) -> dict[int, tuple[dict[str, Any], float]]:
    """Return for floors by place the tree of a certificate's entry, and the bound that it proves.

    Of each floor's tree only what proves its target is kept.
    """
    places, goals = np.array(list(targets), dtype=np.intp), np.array(list(targets.values()))
    reached, leaf = tree.needed(places, goals)
    chosen = tree.chosen(places, goals, leaf)
    used, inverse = np.unique(chosen[chosen >= 0], return_inverse=True)
    of_used = np.zeros(chosen.shape, dtype=np.intp)
    of_used[chosen >= 0] = inverse
    cells = _Cells(tree, np.asarray(reached.any(axis=1)), prover.root())
    for node in np.flatnonzero(leaf.any(axis=1) & (tree.superfluous >= 0)).tolist():
        prover.check_superfluous(cells.at(node), int(tree.superfluous[node]))
    multipliers = tree.multipliers[used].astype(dtype).astype(float)
    owners = tree.nodes[used]
    values = prover.values_at(
        cells.vertices,
        cells.depths,
        cells.of[owners],
        multipliers,
        lambda place: cells.at(int(owners[place])),
    )
    tops = np.array([float(value.upper()) for value in values])
    preorder = tree.preorder()
    result = {}
    for column, place in enumerate(places.tolist()):
        nodes = preorder[reached[preorder, column]]
        ends = leaf[nodes, column]
        leaves = nodes[ends]
        by_multipliers = tree.superfluous[leaves] < 0
        proofs = of_used[leaves[by_multipliers], column]
        numbers = np.zeros((len(leaves), tree.multipliers.shape[1]))
        numbers[:, 0] = -1.0 - tree.superfluous[leaves]
        numbers[by_multipliers] = multipliers[proofs]
        floor, worst = number(floors[place]), arb.neg_inf()
        # The largest bound is among those that are the largest in floats.
        bounds = tops[proofs] - multipliers[proofs, 0] * floors[place]
        scale = 1 + np.abs(tops[proofs]) + multipliers[proofs, 0] * floors[place]
        close = ~(bounds + MARGIN * scale < np.max(bounds - MARGIN * scale, initial=-np.inf))
        for proof in proofs[close].tolist():
            worst = worst.max(values[proof] - arb(multipliers[proof, 0]) * floor)
        entry = {
            "splits": pack(np.where(ends[:, None], -1, tree.edges[nodes]), "<i4"),
            "cuts": pack(tree.cuts[nodes[~ends]]),
            "leaves": pack(numbers, dtype),
        }
        result[place] = entry, round_up(worst + prover.slack)
    return result
