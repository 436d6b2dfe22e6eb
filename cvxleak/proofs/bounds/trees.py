"""Binary trees in certificates: nodes in preorder, where they are cut, multipliers at the leaves.

A tree of L leaves has 2 L - 1 nodes and L - 1 cuts. The declared shapes have to say so before
anything is decompressed, so a small file cannot ask for more memory than its leaves are worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.exact.limits import charge_leaves
from cvxleak.exact.packing import declared_shape, unpack

__all__ = ["DEPTH_LIMIT", "unpack_tree"]

DEPTH_LIMIT = 10_000
"""Most open branches of a tree that are kept; one more than the cuts above its deepest leaf."""


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
        raise CertificateError("a tree has another number of cuts than of nodes that are cut")
    return places, cuts, leaves
