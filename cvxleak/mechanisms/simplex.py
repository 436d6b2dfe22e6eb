"""Euclidean projection onto the probability simplex (LEAKAGE Algorithm 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array

__all__ = ["project_to_simplex"]


def project_to_simplex(vector: ArrayLike) -> Array:
    """Return the point of the probability simplex that is nearest to `vector`.

    It is max(v - theta, 0) with the theta that makes the sum 1: the mean excess of the largest k
    entries, (u_1 + ... + u_k - 1) / k in descending order, for the last k whose u_k is above it.

    Parameters
    ----------
    vector : array_like, shape (n,)
        Finite numbers, n >= 1.

    Returns
    -------
    array, shape (n,)

    Raises
    ------
    ValidationError
        A vector that is empty, not one-dimensional or not finite.

    Notes
    -----
    LEAKAGE Algorithm 4 (section 3.1.2).

    Examples
    --------
    >>> from cvxleak.iterative import project_to_simplex
    >>> project_to_simplex([0.5, 1.0, -2.0])
    array([0.25, 0.75, 0.  ])
    """
    v = frozen_array(vector, "vector", 1)
    if v.size == 0 or not np.isfinite(v).all():
        raise ValidationError(f"vector: found {v}; at least one entry, all finite, is needed")
    # The projection does not see a constant added to all entries; far from 0 the sums would.
    shifted = v - v.max()
    u = np.sort(shifted)[::-1]
    thresholds = (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
    kept = np.flatnonzero(u > thresholds)[-1]
    return np.maximum(shifted - thresholds[kept], 0)
