"""The master of a design: its functions, and the bound that multipliers prove.

With finitely many adversaries j and sources k the master is

    minimize t  subject to  I_j(Q) <= t,  E_k(Q) <= D,  Q row-stochastic      (least leakage)
    minimize t  subject to  I_j(Q) <= L,  E_k(Q) <= t,  Q row-stochastic      (least distortion)

where I_j(Q) = H(A) + sum_{a,y} s_{a,y} log(s_{a,y} / s_y) for s = W_j Q, and E_k is linear.
`cvxleak.design.master` solves it in NumPy, `cvxleak.design.conic` by CVXPY.

Whatever they return, the dual bound is evaluated analytically from the multipliers: with phi the
posteriors at Q, sum_r min_y of the coefficients of a linear minorant of the Lagrangian.

`cvxleak.iterative.design_terms` has the same functions for a few secrets of any shapes, one after
the other. Here there are up to hundreds of adversaries, padded to one shape and evaluated in one
product, five to ten times as fast; a test holds the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import entr

from cvxleak.core.validation import Array
from cvxleak.design.goal import Goal

__all__ = ["Master", "MasterPoint"]

TINY = 1e-300


@dataclass(frozen=True)
class MasterPoint:
    """Where a master was left, and the bound that its multipliers prove.

    Attributes
    ----------
    channel : array, shape (R, Y)
        Strictly feasible for the master.
    value : float
        Its objective there.
    lower : float
        The dual bound.
    theta, beta : array
        Multipliers of the adversaries (J,) and of the sources (K,).
    posteriors : array, shape (J, A, Y)
        A distribution of each adversary's secret for every output, up to a factor: with the
        multipliers these prove `lower`.
    work : float
        What finding it took (`cvxleak.design.work`).
    """

    channel: Array
    value: float
    lower: float
    theta: Array
    beta: Array
    posteriors: Array
    work: float = 0.0


@dataclass(frozen=True)
class Master:
    """The master's data.

    Attributes
    ----------
    joint : array, shape (J, A, R)
        Each adversary's distribution of the secret and the row.
    cost : array, shape (K, R, Y)
        Each source's P_k(r) d(r, y).
    budget : float
        D or L.
    leakage : bool
        Whether the leakage is minimized (and not the distortion).
    """

    joint: Array
    cost: Array
    budget: float
    goal: Goal

    @cached_property
    def _flat(self) -> Array:
        return self.joint.reshape(-1, self.joint.shape[2])

    @cached_property
    def _entropy(self) -> Array:
        return entr(self.joint.sum(axis=2)).sum(axis=1)

    def informations(self, channel: Array) -> tuple[Array, Array, Array]:
        """Return s (J, A, Y), its sums over a (J, Y), and I_j."""
        s = (self._flat @ channel).reshape(*self.joint.shape[:2], -1)
        output = s.sum(axis=1)
        information = self._entropy - entr(s).sum(axis=(1, 2)) + entr(output).sum(axis=1)
        return s, output, information

    def distortions(self, channel: Array) -> Array:
        """Return E_k."""
        return np.tensordot(self.cost, channel, 2)

    def coefficients(self, s: Array, theta: Array, beta: Array) -> Array:
        """Return the coefficients of the linear minorant of sum theta I + sum beta E, (R, Y)."""
        secret = self.joint.sum(axis=2)
        posterior = np.maximum(s, TINY) / np.maximum(s, TINY).sum(axis=1, keepdims=True)
        logs = np.log(posterior) - np.log(np.maximum(secret, TINY))[:, :, None]
        logs = np.where(secret[:, :, None] > 0, logs, 0.0)
        slope = np.einsum("j,jar,jay->ry", theta, self.joint, logs, optimize=True)
        return slope + np.tensordot(beta, self.cost, 1)

    def bound(self, s: Array, theta: Array, beta: Array) -> float:
        """Return the dual bound of multipliers that are scaled so that t has the coefficient 1."""
        paid = float((beta if self.goal is Goal.LEAKAGE else theta).sum()) * self.budget
        return float(self.coefficients(s, theta, beta).min(axis=1).sum()) - paid
