"""A tree of simplices that covers all distributions, with a linear upper bound on -H on each."""

from __future__ import annotations

from typing import Any

from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.proofs import reading
from cvxleak.proofs.exact import entropy

__all__ = ["slopes_of_cells"]


def slopes_of_cells(cells: Any, size: int) -> list[list[float]]:
    """Return nu_j for each cell j of a tree; raise unless <nu_j, rho> >= -H(rho) on the cell.

    {"edges", "cuts", "slopes"}: for each node of the tree, in preorder, the two vertices i, j whose
    edge is cut, or an empty list for a leaf; for each cut, the share t of vertex j in the new
    vertex; for each leaf nu. The first part of a cut keeps vertex i, the second vertex j. The root
    is the simplex of all distributions on `size` values, and the parts of a cell cover it, so the
    leaves cover all distributions. Because -H is convex, an inequality at the vertices of a cell is
    valid on all of it.
    """
    reading.parts(cells, {"edges", "cuts", "slopes"}, "the cells")
    edges = reading.groups(cells["edges"], "the edges of the cells")
    cuts = iter(reading.numbers(cells["cuts"], "the cuts of the cells"))
    if not isinstance(cells["slopes"], list):
        raise CertificateError("the slopes of the cells are not a list")
    slopes = [reading.numbers(nu, "the slopes of a cell", size) for nu in cells["slopes"]]
    waiting = [[[arb(int(i == j)) for j in range(size)] for i in range(size)]]
    leaves = 0
    for edge in edges:
        if not waiting:
            raise CertificateError("the cells have more nodes than their tree")
        vertices = waiting.pop()
        if not edge:
            if leaves == len(slopes):
                raise CertificateError("a cell has no slopes")
            for vertex in vertices:
                height = sum(
                    (v * arb(n) for v, n in zip(vertex, slopes[leaves], strict=True)), arb(0)
                )
                if not height + entropy(vertex) >= 0:
                    raise CertificateError("the slopes of a cell do not bound -H on it")
            leaves += 1
            continue
        t = next(cuts, -1.0)
        if len(edge) != 2 or edge[0] == edge[1] or max(edge) >= size or not 0 < t < 1:
            raise CertificateError(f"a cut at {t!r} of the edge {edge!r:.60} covers nothing")
        i, j = edge
        share = arb(t)
        new = [(1 - share) * p + share * q for p, q in zip(vertices[i], vertices[j], strict=True)]
        first, second = list(vertices), list(vertices)
        first[j], second[i] = new, new
        waiting += [second, first]
    if waiting or leaves != len(slopes) or next(cuts, None) is not None:
        raise CertificateError("the cells do not cover all distributions, or parts are left over")
    return slopes
