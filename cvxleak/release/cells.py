"""A tree of simplices over the distributions of the request, with -H interpolated on each."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr

from cvxleak.core.validation import Array

__all__ = ["CellTree"]

LIFT = 1e-13
"""Added to the interpolation, so that rounding does not put it below -H at a vertex."""


class _Node:
    def __init__(self, vertices: Array) -> None:
        self.vertices = vertices
        self.cut: tuple[int, int, float] | None = None
        self.children: tuple[_Node, ...] = ()
        self.slopes: Array = np.linalg.solve(vertices, -entr(vertices).sum(axis=1)) + LIFT


class CellTree:
    """Cells that cover all distributions on `size` values, each with a linear bound on -H."""

    def __init__(self, size: int) -> None:
        self._root = _Node(np.eye(size))

    @property
    def leaves(self) -> list[_Node]:
        """The cells, in preorder."""
        return [node for node in self._nodes() if not node.children]

    @property
    def slopes(self) -> Array:
        """nu_j, shape (cells, size)."""
        return np.array([leaf.slopes for leaf in self.leaves])

    def split(self, leaf: _Node, law: Array) -> bool:
        """Cut a cell near a distribution in it, across its longest edge; False if it is too small.

        Length is measured in square roots of probabilities, in which -H bends about equally
        everywhere.
        """
        roots = np.sqrt(leaf.vertices)
        distances = ((roots[:, None, :] - roots[None, :, :]) ** 2).sum(axis=2)
        i, j = (int(n) for n in np.unravel_index(distances.argmax(), distances.shape))
        if distances[i, j] < 1e-12:
            return False
        shares = np.linalg.solve(leaf.vertices.T, law)
        both = shares[i] + shares[j]
        t = float(np.clip(shares[j] / both if both > 0 else 0.5, 0.3, 0.7))
        new = (1 - t) * leaf.vertices[i] + t * leaf.vertices[j]
        first, second = leaf.vertices.copy(), leaf.vertices.copy()
        first[j], second[i] = new, new
        leaf.cut, leaf.children = (i, j, t), (_Node(first), _Node(second))
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the cells as a certificate holds them."""
        edges, cuts = [], []
        for node in self._nodes():
            edges.append([] if node.cut is None else list(node.cut[:2]))
            if node.cut is not None:
                cuts.append(node.cut[2])
        return {"edges": edges, "cuts": cuts, "slopes": self.slopes.tolist()}

    def _nodes(self) -> list[_Node]:
        waiting, found = [self._root], []
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += reversed(node.children)
        return found
