"""The best distributions in boxes: fractional knapsacks, filled greedily."""

from __future__ import annotations

import numpy as np

from cvxleak.core.validation import Array

__all__ = ["largest_rows"]


def largest_rows(lower: Array, upper: Array, nu: Array) -> Array:
    """Return the distributions q between `lower` and `upper` for which <q, nu> is largest.

    Parameters
    ----------
    lower, upper : arrays, shape (k, N, m)
        N boxes for each of k values; the lower ends sum to 1 at most, the upper ones to 1 at least.
    nu : array, shape (k, B, m)

    Returns
    -------
    array, shape (k, B, N, m)

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.solvers.knapsack import largest_rows
    >>> box = np.array([[[0.2, 0.1, 0.1]]]), np.array([[[0.5, 0.6, 0.9]]])
    >>> largest_rows(*box, np.array([[[3.0, 2.0, 1.0]]])).round(12)
    array([[[[0.5, 0.4, 0.1]]]])
    """
    order = np.argsort(-nu, axis=2)[:, :, None, :]
    low = np.take_along_axis(lower[:, None], order, axis=3)
    room = np.take_along_axis((upper - lower)[:, None], order, axis=3)
    used = np.cumsum(room, axis=3) - room
    left = (1 - lower.sum(axis=2))[:, None, :, None] - used
    rows = np.empty_like(low)
    np.put_along_axis(
        rows, np.broadcast_to(order, low.shape), low + np.clip(left, 0.0, room), axis=3
    )
    return rows
