"""`Objective`: what an audit maximizes over the adversaries, for any gain and form.

With pi the distribution of A and rho_y its posterior given y, which is seen with probability s_y,

    share H(A) + sum_y s_y G(rho_y) - times G(pi),

G convex (`cvxleak.model.Gain`). The leakage has G = -H, share 1 and times 0; posterior gains have
share 0 and times 0; their rise times 1; and a factor is the largest t for which the maximum with
times = t is not negative (Dinkelbach).

-times G(pi) is concave, and so below any of its tangents. Those of a gain with few actions are the
actions; of another each node has some of its own, at points that are moved to where it needs them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import entr

from cvxleak.core.validation import Array
from cvxleak.model import Arimoto, Guess, GuessInTries, Shannon
from cvxleak.model.gain_form import LEAKAGE, GainForm

__all__ = ["INFORMATION", "Objective"]


@dataclass(frozen=True, eq=False)
class Objective:
    """What an audit maximizes.

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

    @property
    def _few(self) -> Array | None:
        """The actions, if they are few enough to be tangents all at once."""
        few = self.actions is not None and len(self.actions) <= FEW_ACTIONS
        return self.actions if few else None

    @property
    def open_tangents(self) -> bool:
        """Whether tangents are taken where they are needed."""
        return self.times > 0 and self._few is None

    def number(self, k: int) -> int:
        """Return how many tangents a node has."""
        if self.times == 0:
            return 0
        if self.open_tangents:
            return 2 * k + 2
        assert self.actions is not None
        return len(self.actions)

    def points(self, k: int) -> Array:
        """Return where a node has its first tangents, shape (W, k) or (0, k)."""
        if not self.open_tangents:
            return np.zeros((0, k))
        # At the best mixture k of them count; a new one must not take the place of these.
        corners = 0.8 * np.eye(k) + 0.2 / k
        return np.concatenate([corners, np.full((k + 2, k), 1 / k)])

    def tangents(self, size: int, k: int, points: Array | None) -> Array:
        """Return the tangents of `size` nodes, shape (size, W, k)."""
        if self.times == 0:
            return np.zeros((size, 0, k))
        if not self.open_tangents:
            assert self.actions is not None
            return np.broadcast_to(self.actions, (size, *self.actions.shape))
        assert points is not None
        return self.told.gain.tangent(points)

    def missing(self, laws: Array, tangents: Array) -> Array:
        """Return how far -times G is below its tangents, (B,), at distributions of A, (B, k)."""
        if not self.open_tangents:
            return np.zeros(len(laws))
        highest = np.einsum("ba,bwa->bw", laws, tangents).max(axis=1)
        return self.times * (self.heights(laws) - highest)

    def least(self, k: int) -> tuple[float, list[float]]:
        """Return a number that G never falls below, and the mixture of tangents that shows it.

        The tangents are the actions, or that at the uniform distribution.
        """
        rows = self._few
        if rows is None:
            gain, uniform = self.told.gain, np.full(k, 1 / k)
            rows = gain.tangent(uniform)[None]
            if isinstance(gain, Guess | GuessInTries | Arimoto):
                # The mean over all orders of the values, since G ignores their order.
                rows = np.full((1, k), gain.value(uniform))
        most, theta = _least_excess(np.zeros(k), rows)
        return -most, theta.tolist()

    def size(self, k: int) -> float:
        """Return an adversary's largest gain, or loss, knowing the secret, or nothing of it."""
        return float(np.abs(self.heights(np.vstack([np.eye(k), np.full(k, 1 / k)]))).max())

    def ceiling(self, k: int) -> tuple[float, Array]:
        """Return a bound for all adversaries and channels, and the weights of tangents for it.

        U with lam and mu 0: the posteriors are corners.
        """
        if self.told.is_leakage:
            return float(np.log(k)), np.zeros(0)
        heights = self.heights(np.eye(k))
        if self.times == 0:
            return float(heights.max()), np.zeros(0)
        rows = self.times * self.tangents(1, k, self.points(k)[None])[0]
        most, theta = _least_excess(heights, rows)
        return most, self.times * theta

    def ties(self, vertices: Array, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
        """Return where on the edges of cells two actions earn the same, shape (B, |Y|, edges).

        The actions are the best ones at the edge's vertices or, in a cell where no edge has such a
        tie, at any two vertices: the tie nearest to an edge's middle. Not a number where there is
        none. A cell without any tie has one action that is the best one everywhere in it.
        """
        if self.actions is None:
            return np.full((*vertices.shape[:2], len(first)), np.nan)
        earned = vertices @ self.actions.T
        best = earned.argmax(axis=-1)
        # What the best action of the last axis's vertex earns at the vertex before it.
        own = np.take_along_axis(earned, best[..., None, :], axis=-1)
        lead = own[..., first] - own[..., second]
        edge = np.arange(len(first))
        tie = _tie(lead[..., first, edge], lead[..., second, edge])
        bare = np.isnan(tie).all(axis=-1) & (best != best[..., :1]).any(axis=-1)
        every = _tie(lead[bare][:, first], lead[bare][:, second])
        middle = np.where(np.isnan(every), np.inf, np.abs(every - 0.5)).argmin(axis=-1)
        tie[bare] = np.take_along_axis(every, middle[..., None], axis=-1)[..., 0]
        return tie


def _tie(here: Array, there: Array) -> Array:
    """Return where on an edge a lead with these values at its vertices is 0, or not a number."""
    real = (np.minimum(np.abs(here), np.abs(there)) > TIE) & ((here > 0) != (there > 0))
    return np.where(real, here / np.where(real, here - there, 1.0), np.nan)


def _least_excess(heights: Array, rows: Array) -> tuple[float, Array]:
    """Return the least max_a (h_a - sum_w theta_w r_{w,a}) over distributions theta, and theta."""
    # The least v with h_a - sum_w theta_w r_{w,a} <= v for all a.
    answer = linprog(
        np.append(np.zeros(len(rows)), 1.0),
        A_ub=np.column_stack([-rows.T, -np.ones(len(heights))]),
        b_ub=-heights,
        A_eq=np.append(np.ones(len(rows)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * len(rows) + [(None, None)],
    )
    theta = np.maximum(answer.x[:-1], 0.0)
    theta /= theta.sum()
    return float((heights - theta @ rows).max()), theta


FEW_ACTIONS = 64
"""Most actions for which all of them are used as tangents."""

TIE = 1e-9
"""Actions whose gains differ by less than this are as good as one."""

INFORMATION = Objective(LEAKAGE, 0.0)
"""The mutual information I(A;Y)."""
