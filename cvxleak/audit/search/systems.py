"""Steps of interior-point methods: linear systems, lengths, and multipliers kept from growing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.validation import Array
from cvxleak.model import Limits

__all__ = ["longest", "opposites", "solved", "without_shared"]


def solved(matrix: Array, right: Array) -> Array:
    """Return a solution of each system; some direction where a matrix is singular."""
    try:
        found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        # One matrix is enough to come here. With half its size added the rest is a descent still.
        usable = np.isfinite(matrix).all(axis=-1).all(axis=-1)
        matrix = np.where(np.asarray(usable)[..., None, None], matrix, 0.0)
        spectra = np.linalg.eigvalsh(matrix)
        weak = spectra[..., 0] <= 1e-14 * spectra[..., -1]
        shift = np.where(weak, 0.5 * np.abs(spectra[..., -1]) + 1e-300, 0.0)
        found = np.linalg.solve(matrix + shift[..., None, None] * np.eye(len(matrix[0])), right)
    return found[..., 0].astype(np.float64, copy=False)


def longest(values: Array, steps: Array, left: float = 0.01) -> Array:
    """Return the step along the last axis, at most 1, that leaves this share of every value."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(steps < 0, -values / steps, np.inf)
    return np.minimum(1.0, (1 - left) * ratio.min(axis=-1, keepdims=True))


def opposites(limits: Limits) -> NDArray[np.intp]:
    """Return pairs of neighboring limits that are (nearly) an equation together, shape (P, 2)."""
    pairs: list[tuple[int, int]] = []
    for j in range(len(limits.bounds) - 1):
        # None overlap: the same equation may be there twice.
        taken = bool(pairs) and pairs[-1][1] == j
        if (
            not taken
            and np.array_equal(limits.coefficients[j], -limits.coefficients[j + 1])
            and np.isclose(limits.bounds[j], -limits.bounds[j + 1], rtol=1e-6, atol=1e-9)
            and not limits.shares[j : j + 2].any()
        ):
            pairs.append((j, j + 1))
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def without_shared(kappa: Array, pairs: NDArray[np.intp]) -> Array:
    """Return multipliers, shape (..., J), with what the two of an equation share past 1 taken off.

    Only their difference matters, and nothing else keeps the two from growing without end.
    """
    first, second = pairs.T
    shared = np.maximum(np.minimum(kappa[..., first], kappa[..., second]) - 1.0, 0.0)
    result = kappa.copy()
    result[..., first] -= shared
    result[..., second] -= shared
    return result
