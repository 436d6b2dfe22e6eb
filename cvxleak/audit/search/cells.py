"""Splitting cells: which output's posterior to confine further, and where."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from cvxleak.audit.search.node_dual import Cells
from cvxleak.core.validation import Array

__all__ = ["Split", "split_points"]


Split = tuple[int, int, int, float]
"""(y, i, j, t): the cell of output y is cut at the point (1 - t) V_i + t V_j of its edge i-j; the
first child has the new point instead of V_j, the second instead of V_i."""

MARGIN = 0.1
"""A cut keeps at least this share of the edge on each side."""


def split_points(cells: Cells, joint: Array) -> list[Split]:
    """Return for each node the split that removes most of its interpolation gap.

    The gap of output y at the relaxation's solution is s_y (H(rho_y) - interpolation of H). With
    theta the coordinates of s_{.,y} on the rays, cutting the edge i-j at the point that divides it
    as theta_i : theta_j removes (theta_i + theta_j) H(point) - theta_i H(V_i) - theta_j H(V_j) of
    it in both children.

    Parameters
    ----------
    cells : Cells
    joint : array, shape (B, k, |Y|)
        s_{a,y} of the relaxation's solution.
    """
    theta = np.maximum(np.einsum("byaj,bay->byj", cells.inverse, joint), 0.0)
    k = theta.shape[2]
    first, second = np.triu_indices(k, 1)
    pair = theta[..., first] + theta[..., second]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(pair > 0, theta[..., second] / pair, 0.5)
    cut = np.clip(t, MARGIN, 1 - MARGIN)
    left, right = cells.vertices[..., first, :], cells.vertices[..., second, :]
    point = (1 - cut)[..., None] * left + cut[..., None] * right
    # The gain of the clipped cut, at the posterior itself: interpolate on the side it lies on.
    chord = (1 - t) * cells.entropies[..., first] + t * cells.entropies[..., second]
    middle = entr(point).sum(axis=-1)
    inner = np.minimum(t / cut, (1 - t) / (1 - cut))
    ends = np.where(t <= cut, cells.entropies[..., first], cells.entropies[..., second])
    gain = pair * (inner * middle + (1 - inner) * ends - chord)
    # Among equal gains (none at all, say) prefer the longest edge.
    length = np.abs(left - right).sum(axis=-1)
    score = gain + 1e-9 * pair * length + 1e-15 * length
    best = score.reshape(len(score), -1).argmax(axis=1)
    y, edge = np.divmod(best, len(first))
    rows = np.arange(len(score))
    return [
        (int(a), int(first[e]), int(second[e]), float(c))
        for a, e, c in zip(y, edge, cut[rows, y, edge], strict=True)
    ]
