"""Steps of interior-point methods: their linear systems and their lengths, many at once."""

from __future__ import annotations

import numpy as np

from cvxleak.core.validation import Array

__all__ = ["longest", "solved"]


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
