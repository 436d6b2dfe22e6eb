"""The master of a design in NumPy: a primal-dual interior-point method that knows its structure.

With finitely many adversaries j and sources k the master is

    minimize t  subject to  I_j(Q) <= t,  E_k(Q) <= D,  Q row-stochastic      (least leakage)
    minimize t  subject to  I_j(Q) <= L,  E_k(Q) <= t,  Q row-stochastic      (least distortion)

where I_j(Q) = H(A) + sum_{a,y} s_{a,y} log(s_{a,y} / s_y) for s = W_j Q, and E_k is linear. Both
are sums over the outputs y, so the Hessian of the Lagrangian is block-diagonal, one block of the
size of the rows per output; what couples the outputs has the rank of adversaries, sources and rows
together. One Newton step costs |Y| R^3 + |Y| R^2 (J + K + R) operations, and the iterates near the
central path make good places to ask for new adversaries.

Whatever the iterates, the dual bound is evaluated analytically from their multipliers: with phi
the posteriors at Q, sum_r min_y of the coefficients of a linear minorant of the Lagrangian.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from cvxleak._validation import Array

__all__ = ["Master", "MasterPoint"]

TINY = 1e-300
STEPS = 80


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
    reference : array, shape (R, Y)
        The channel whose posteriors, with the multipliers, prove `lower`.
    """

    channel: Array
    value: float
    lower: float
    theta: Array
    beta: Array
    reference: Array


@dataclass(frozen=True)
class Master:
    """The master's data.

    Attributes
    ----------
    joint : array, shape (J, A, R)
        Each adversary's law of the secret and the row.
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
    leakage: bool

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
        own = self.joint.sum(axis=2)
        posterior = np.maximum(s, TINY) / np.maximum(s, TINY).sum(axis=1, keepdims=True)
        logs = np.log(posterior) - np.log(np.maximum(own, TINY))[:, :, None]
        logs = np.where(own[:, :, None] > 0, logs, 0.0)
        slope = np.einsum("j,jar,jay->ry", theta, self.joint, logs, optimize=True)
        return slope + np.tensordot(beta, self.cost, 1)

    def bound(self, s: Array, theta: Array, beta: Array) -> float:
        """Return the dual bound of multipliers that are scaled so that t has the coefficient 1."""
        paid = float((beta if self.leakage else theta).sum()) * self.budget
        return float(self.coefficients(s, theta, beta).min(axis=1).sum()) - paid

    def solve(self, channel: Array, gap: float, deadline: float = np.inf) -> MasterPoint:
        """Return a point whose value is within `gap` of its dual bound.

        The method starts from `channel`, which has positive entries, but for those that are to stay
        zero, and meets the budget with room. The method ends early where it gets no further.
        """
        # Where the room to a constraint underflows, the step is not finite, and the method ends.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return self._follow(channel, gap, deadline)

    def _follow(self, channel: Array, gap: float, deadline: float) -> MasterPoint:
        q = channel
        free = (q > 0).T
        sizes = len(self.joint), len(self.cost)
        s, output, information = self.informations(q)
        spent = self.distortions(q)
        objective = information if self.leakage else spent
        t = float(objective.max()) * 1.05 + 1e-6
        room_i, room_e = self._rooms(information, spent, t)
        mu = 0.1 * (t - float(objective.max()))
        theta, beta, z = mu / room_i, mu / room_e, mu / np.where(q > 0, q, 1.0)
        scale = float((theta if self.leakage else beta).sum())
        theta, beta, z = theta / scale, beta / scale, z / scale
        count = int(free.sum()) + sum(sizes)
        best = MasterPoint(q, float(objective.max()), -np.inf, theta, beta, q)
        steps = (1.0, 1.0)
        for _ in range(STEPS):
            room_i, room_e = self._rooms(information, spent, t)
            scale = float((theta if self.leakage else beta).sum())
            lower = self.bound(s, theta / scale, beta / scale)
            value = float((information if self.leakage else spent).max())
            if lower > best.lower:
                best = MasterPoint(q, value, lower, theta / scale, beta / scale, q)
            else:
                best = MasterPoint(q, value, best.lower, best.theta, best.beta, best.reference)
            if value - best.lower <= gap or time.monotonic() > deadline:
                break
            gathered = theta @ room_i + beta @ room_e + (z * q).sum()
            short = min(steps)
            mu = gathered / count * (0.1 if short > 0.7 else 0.4 if short > 0.3 else 0.9)
            move = self._newton(q, free, s, output, room_i, room_e, theta, beta, z, mu)
            if move is None:
                break
            dq, dt, dtheta, dbeta, dz = move
            dual = min(_longest(theta, dtheta), _longest(beta, dbeta), _longest(z, dz))
            primal = _longest(q, dq)
            while primal > 1e-10:
                after = q + primal * dq
                after = np.where(free.T, after, 0.0)
                after /= after.sum(axis=1, keepdims=True)
                s, output, information = self.informations(after)
                spent = self.distortions(after)
                next_i, next_e = self._rooms(information, spent, t + primal * dt)
                if (next_i > 0.02 * room_i).all() and (next_e > 0.02 * room_e).all():
                    break
                primal *= 0.7
            else:
                break
            q, t = after, t + primal * dt
            theta, beta, z = theta + dual * dtheta, beta + dual * dbeta, z + dual * dz
            steps = (primal, dual)
        return best

    def _rooms(self, information: Array, spent: Array, t: float) -> tuple[Array, Array]:
        if self.leakage:
            return t - information, self.budget - spent
        return self.budget - information, t - spent

    def _newton(
        self,
        q: Array,
        free: NDArray[np.bool_],
        s: Array,
        output: Array,
        room_i: Array,
        room_e: Array,
        theta: Array,
        beta: Array,
        z: Array,
        mu: float,
    ) -> tuple[Array, float, Array, Array, Array] | None:
        """Return the step towards the central path at mu, or None where it is not defined."""
        many, values, rows = self.joint.shape
        flat, marginal = self._flat, self.joint.sum(axis=1)
        safe_s, safe_o = np.maximum(s, TINY), np.maximum(output, TINY)
        slope = np.log(safe_s / safe_o[:, None])
        gradient = np.einsum("jar,jay->yrj", self.joint, slope, optimize=True)
        # Everything is scaled by Q, so that entries near zero cost no digits.
        scaled = q.T
        outer = np.where(s > 0, theta[:, None, None] / safe_s, 0.0).reshape(many * values, -1)
        inner = np.where(output > 0, theta[:, None] / safe_o, 0.0)
        block = np.matmul(flat.T[None] * outer.T[:, None, :], flat)
        block -= np.matmul(marginal.T[None] * inner.T[:, None, :], marginal)
        block *= scaled[:, :, None] * scaled[:, None, :]
        place = np.arange(rows)
        block[:, place, place] += np.where(free, (z * q).T, 1.0)
        weight_i, weight_e = np.sqrt(theta / room_i), np.sqrt(beta / room_e)
        sides = [
            gradient * weight_i,
            (self.cost * weight_e[:, None, None]).transpose(2, 1, 0),
            np.broadcast_to(np.eye(rows), (len(scaled), rows, rows)),
        ]
        side = np.concatenate(sides, axis=2) * scaled[:, :, None]
        pull = (gradient @ (mu / room_i)).T + np.tensordot(mu / room_e, self.cost, 1)
        pull = pull.T * scaled - np.where(free, mu, 0.0)
        try:
            root = np.linalg.cholesky(block)
            solved = np.linalg.solve(root, np.concatenate([side, pull[:, :, None]], axis=2))
            wide = solved[:, :, :-1].reshape(-1, side.shape[2])
            coupled = many + len(beta)
            size = coupled + rows
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = wide.T @ wide
            place = np.arange(coupled)
            system[place, place] += 1.0
            on_t = np.concatenate(
                [weight_i * self.leakage, weight_e * (not self.leakage), np.zeros(rows)]
            )
            system[:size, size] = system[size, :size] = on_t
            held = mu / room_i if self.leakage else mu / room_e
            right = np.append(-wide.T @ solved[:, :, -1].ravel(), 1.0 - held.sum())
            found = np.linalg.solve(system, right)
            through = solved[:, :, -1] + solved[:, :, :-1] @ found[:-1]
            back = np.linalg.solve(root.transpose(0, 2, 1), through[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            return None
        if not (np.isfinite(back).all() and np.isfinite(found).all()):
            return None
        dq = -(back * scaled).T
        part_i, part_e = found[:many], found[many:coupled]
        dtheta = mu / room_i - theta + weight_i * part_i
        dbeta = mu / room_e - beta + weight_e * part_e
        safe_q = np.where(q > 0, q, 1.0)
        dz = np.where(q > 0, mu / safe_q - z - z / safe_q * dq, 0.0)
        return dq, float(found[-1]), dtheta, dbeta, dz


def _longest(x: Array, dx: Array) -> float:
    """Return the longest step, up to 1, that keeps x positive."""
    falling = (dx < 0) & (x > 0)
    return min(1.0, 0.98 * float((-x[falling] / dx[falling]).min())) if falling.any() else 1.0
