"""Slabs: sets of conditional distributions of the contexts given a value, and their vertices.

Given a value a of the record, an adversary's distribution v on the context groups of a is in the
slab [low, high] of a functional x (one number per group) if low <= <v, x> <= high. A vertex of a
slab is a single group with x inside, or a mixture of two groups on either side of an endpoint for
which the mean of x is that endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cvxleak.core.validation import Array

__all__ = ["Slab", "slab_vertices"]


@dataclass(frozen=True)
class Slab:
    """The vertices of one slab of one value: share[i] of group first[i], the rest of second[i].

    `negentropy` is -H of the output distribution of each vertex.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    share: Array
    negentropy: Array


def slab_vertices(x: Array, rows: Array, low: float, high: float) -> Slab:
    """Return the vertices of {v : low <= <v, x> <= high} on the groups with the given rows."""
    inside = np.flatnonzero((x >= low) & (x <= high))
    first, second, share = [inside], [inside], [np.ones(len(inside))]
    for end in {low, high}:
        below, above = np.flatnonzero(x < end), np.flatnonzero(x > end)
        i, j = (grid.ravel() for grid in np.meshgrid(below, above, indexing="ij"))
        first.append(i)
        second.append(j)
        share.append((x[j] - end) / (x[j] - x[i]))
    i, j, p = np.concatenate(first), np.concatenate(second), np.concatenate(share)
    law = p[:, None] * rows[i] + (1 - p)[:, None] * rows[j]
    return Slab(i, j, p, xlogy(law, law).sum(axis=1))
