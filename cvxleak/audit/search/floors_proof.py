"""Proofs of many floors out of one tree of posterior cells (`FloorsSearch`).

Each floor needs the least part of the tree that proves its bound. All parts are found together,
level by level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.validation import Array
from cvxleak.exact.packing import pack

__all__ = ["FloorsTree", "trees_of_floors"]

Places = NDArray[np.intp]


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


def trees_of_floors(
    tree: FloorsTree, targets: Mapping[int, float], dtype: str
) -> dict[int, dict[str, Any]]:
    """Return for floors by place the tree of a certificate's entry.

    Of each floor's tree only what proves its target is kept.
    """
    places, goals = np.array(list(targets), dtype=np.intp), np.array(list(targets.values()))
    reached, leaf = tree.needed(places, goals)
    chosen = tree.chosen(places, goals, leaf)
    preorder = tree.preorder()
    result = {}
    for column, place in enumerate(places.tolist()):
        nodes = preorder[reached[preorder, column]]
        ends = leaf[nodes, column]
        leaves = nodes[ends]
        bounded = tree.superfluous[leaves] < 0
        numbers = np.zeros((len(leaves), tree.multipliers.shape[1]))
        numbers[:, 0] = -1.0 - tree.superfluous[leaves]
        numbers[bounded] = tree.multipliers[chosen[leaves[bounded], column]]
        result[place] = {
            "splits": pack(np.where(ends[:, None], -1, tree.edges[nodes]), "<i4"),
            "cuts": pack(tree.cuts[nodes[~ends]]),
            "leaves": pack(numbers, dtype),
        }
    return result
