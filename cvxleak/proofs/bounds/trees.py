"""Binary trees in certificates: nodes in preorder, where they are cut, multipliers at the leaves.

A tree of L leaves has 2 L - 1 nodes and L - 1 cuts. The declared shapes must agree with that before
anything is decompressed, so that a small file cannot ask for more memory than its leaves need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.exact.limits import charge_leaves
from cvxleak.exact.packing import declared_shape, unpack

__all__ = ["DEPTH_LIMIT", "replayed", "unpack_tree"]

Part = TypeVar("Part")

DEPTH_LIMIT = 10_000
"""Most open branches of a tree; one more than the cuts above its deepest leaf."""


def unpack_tree(
    parts: Mapping[str, Any], nodes: str, node: tuple[int, ...], width: int, entries: int = 1
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the nodes (under the key `nodes`, an array of shape `node` each), cuts and leaves.

    A node whose (first) entry is negative is a leaf; `width` is the number of multipliers of one,
    `entries` the number of probabilities that a leaf is about.

    Raises
    ------
    CertificateError
        Shapes that do not go together, other types than they should have, numbers that are not
        finite, or more leaves than the file's length accounts for (`limits`).

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.exact.packing import pack
    >>> from cvxleak.proofs.bounds.trees import unpack_tree
    >>> tree = {
    ...     "nodes": pack(np.array([0, -1, -1]), "<i4"),
    ...     "cuts": pack(np.array([0.5])),
    ...     "leaves": pack(np.ones((2, 3))),
    ... }
    >>> [part.shape for part in unpack_tree(tree, "nodes", (), 3)]
    [(3,), (1,), (2, 3)]
    """
    shape = declared_shape(parts["leaves"])
    size = shape[0] if len(shape) == 2 else 0
    if size < 1:
        raise CertificateError("a tree has no leaves")
    charge_leaves(parts["leaves"], size, width, entries)
    leaves = unpack(parts["leaves"], (size, width))
    places = unpack(parts[nodes], (2 * size - 1, *node))
    cuts = unpack(parts["cuts"], (size - 1,))
    if places.dtype != np.dtype("<i4") or cuts.dtype != np.dtype("<f8"):
        raise CertificateError("a tree's nodes must be whole numbers, and its cuts floats")
    if not (np.isfinite(leaves).all() and np.isfinite(cuts).all()):
        raise CertificateError("a tree has multipliers or cuts that are not finite")
    if int((places.reshape(len(places), -1)[:, 0] >= 0).sum()) != len(cuts):
        raise CertificateError("a tree must have one cut for each inner node")
    return places, cuts, leaves


def replayed(
    root: Part,
    tree: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    cut: Callable[[Part, Any, float], tuple[Part, Part]],
) -> Iterator[tuple[Part, list[float]]]:
    """Yield for each leaf of a tree its part of the root, and its multipliers.

    ``cut(part, node, place)`` returns two parts that cover the given one, so the leaves cover the
    root. `unpack_tree` has checked that there is one node more than twice the cuts. So if no node
    comes after the last leaf, no branch is left open.

    Raises
    ------
    CertificateError
        A node after the last leaf, or too many open branches.
    """
    nodes, cuts, leaves = tree
    places, multipliers = iter(cuts.tolist()), iter(leaves.tolist())
    waiting = [root]
    for node in nodes.tolist():
        if not 0 < len(waiting) <= DEPTH_LIMIT:
            raise CertificateError("the tree has nodes after its last leaf, or is too deep")
        part = waiting.pop()
        if (node[0] if isinstance(node, list) else node) < 0:
            yield part, next(multipliers)
        else:
            first, second = cut(part, node, next(places))
            waiting += [second, first]
