"""Which columns of a matrix are proportional to each other."""

from __future__ import annotations

import numpy as np

from cvxleak.core.validation import Array

__all__ = ["proportional"]


def proportional(matrix: Array, tol: float) -> list[list[int]]:
    """Partition the columns that are not zero into classes of proportional ones."""
    sums = matrix.sum(axis=0)
    seen = np.flatnonzero(sums > 0)
    shapes = (matrix[:, seen] / sums[seen]).T
    # Proportional columns have equal keys, up to rounding: only neighbors in the order of the
    # keys have to be compared.
    keys = shapes @ np.sqrt(np.arange(1.0, len(matrix) + 1))
    groups: list[list[int]] = []
    for k in np.argsort(keys, kind="stable"):
        for group in reversed(groups):
            first = group[0]
            if keys[first] < keys[k] * (1 - tol - 1e-9):
                groups.append([k])
                break
            spread = np.abs(shapes[k] - shapes[first])
            if (spread <= tol * np.maximum(shapes[k], shapes[first])).all():
                group.append(k)
                break
        else:
            groups.append([k])
    return sorted(sorted(int(seen[k]) for k in group) for group in groups)
