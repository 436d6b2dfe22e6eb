"""`Objective`: what a search maximizes over the adversaries, for any gain and form.

With pi the distribution of A and rho_y its posterior given y, which is seen with probability s_y,

    share H(A) + sum_y s_y G(rho_y) - times G(pi),

G convex (`cvxleak.model.Gain`). The leakage has G = -H, share 1 and times 0; posterior gains have
share 0 and times 0; their rise times 1; and a factor is the largest t for which the maximum with
times = t is not negative (Dinkelbach).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import entr

from cvxleak.core.validation import Array
from cvxleak.model import Shannon
from cvxleak.model.gain_form import LEAKAGE, GainForm

__all__ = ["HAIR", "INFORMATION", "MOST_TANGENTS", "Objective"]

MOST_TANGENTS = 64
"""Most tangents of a gain that are in use at once. The bank's need fewer; each takes time."""

HAIR = 1e-9
"""Where floats differ by less than this, in parts, it may be rounding. With 1e-12 the bank's ends
are the same."""


@dataclass(frozen=True, eq=False)
class Objective:
    """What a search maximizes.

    Attributes
    ----------
    told : GainForm
        The gain and its form.
    times : float
    actions : array of shape (W, k), optional
        Those of a gain that is the largest of so many linear functions.
    """

    told: GainForm
    times: float
    actions: Array | None = None

    @classmethod
    def of(cls, told: GainForm, k: int, factor: float) -> Objective:
        """Return the objective about k values; `factor` is the t of a factor."""
        if told.is_leakage:
            return INFORMATION
        times = {"posterior": 0.0, "rise": 1.0, "factor": factor}[told.form]
        return cls(told, times, told.gain.rows(k))

    @property
    def share(self) -> float:
        """How often H(A) counts."""
        return float(self.told.is_leakage)

    def heights(self, laws: Array) -> Array:
        """Return the gain of some distributions."""
        if isinstance(self.told.gain, Shannon):
            return -entr(laws).sum(axis=-1)
        return self.told.gain.value(laws)

    def named(self, k: int) -> Array:
        """Return what names the tangents to begin with, shape (W, k); there are none if times = 0.

        A tangent is named by the distribution where it touches the gain. If the gain is a maximum
        of actions, these are its tangents, and name themselves.
        """
        if self.times == 0:
            return np.zeros((0, k))
        if self.actions is not None and len(self.actions) <= MOST_TANGENTS // 2:
            return self.actions
        return self.touching(np.vstack([0.8 * np.eye(k) + 0.2 / k, np.full(k, 1 / k)]))

    def touching(self, laws: Array) -> Array:
        """Return what names the tangents at some distributions."""
        return laws if self.actions is None else self.told.gain.tangent(laws)

    def tangents(self, names: Array) -> Array:
        """Return the tangents with these names, shape (W, k)."""
        return names if self.actions is not None else self.told.gain.tangent(names)

    def missing(self, laws: Array, names: Array) -> Array:
        """Return how far -times G is below some tangents, at each of some distributions."""
        if self.times == 0:
            return np.zeros(len(laws))
        highest = (laws @ self.tangents(names).T).max(axis=1)
        return self.times * (self.heights(laws) - highest)

    def ceiling(self, k: int) -> tuple[float, Array]:
        """Return a bound for all adversaries and channels, and the weights of tangents for it."""
        if self.told.is_leakage:
            return float(np.log(k)), np.zeros(0)
        return _least_excess(self.heights(np.eye(k)), self.times * self.tangents(self.named(k)))

    def least(self, k: int) -> tuple[float, Array]:
        """Return a number that G never falls below, and the weights of actions that show it.

        A gain without actions ignores the order of the values. So its tangent at the uniform
        distribution is constant, and it alone shows it.
        """
        if self.actions is None:
            return float(self.heights(np.full(k, 1 / k))), np.ones(1)
        most, theta = _least_excess(np.zeros(k), self.actions)
        return -most, theta

    def ties(self, vertices: Array, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
        """Return where on the edges of cells two actions earn the same, shape (B, |Y|, edges).

        The actions are the best ones at the edge's vertices. Not a number where there is no tie.
        """
        if self.actions is None:
            return np.full((*vertices.shape[:2], len(first)), np.nan)
        earned = vertices @ self.actions.T
        best = earned.argmax(axis=-1)
        # What the best action of the last axis's vertex earns at the vertex before it.
        own = np.take_along_axis(earned, best[..., None, :], axis=-1)
        lead = own[..., first] - own[..., second]
        edge = np.arange(len(first))
        here, there = lead[..., first, edge], lead[..., second, edge]
        real = (np.minimum(np.abs(here), np.abs(there)) > HAIR) & ((here > 0) != (there > 0))
        return np.where(real, here / np.where(real, here - there, 1.0), np.nan)


def _least_excess(heights: Array, rows: Array) -> tuple[float, Array]:
    """Return the least max_a (h_a - sum_w theta_w r_{w,a}) over distributions theta, and theta."""
    if not len(rows):
        return float(heights.max()), np.zeros(0)
    # The least v with h_a - sum_w theta_w r_{w,a} <= v for all a, in units that a solver reads.
    unit = max(np.abs(heights).max(), np.abs(rows).max()) or 1.0
    answer = linprog(
        np.append(np.zeros(len(rows)), 1.0),
        A_ub=np.column_stack([-rows.T / unit, -np.ones(len(heights))]),
        b_ub=-heights / unit,
        A_eq=np.append(np.ones(len(rows)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * len(rows) + [(None, None)],
    )
    theta = np.maximum(answer.x[:-1], 0.0)
    theta /= theta.sum()
    return float((heights - theta @ rows).max()), theta


INFORMATION = Objective(LEAKAGE, 0.0)
"""The mutual information I(A;Y)."""
