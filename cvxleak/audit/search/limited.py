"""The joint Blahut–Arimoto step for adversaries of whom more is known than their entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cvxleak.audit.search.systems import longest
from cvxleak.core.validation import Array
from cvxleak.iterative.formulas import entropy, information
from cvxleak.iterative.joint_update import Updater
from cvxleak.model import Limits, Lumped

__all__ = ["limited_blahut_arimoto"]

SMOOTHING = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Weights of F(w) that are added to I in turn: the maxima at lam = 0 are not smooth."""

PATH = (1.0, 0.3, 0.1, 0.03, 0.01)
"""The same before the first step: with a lot of F its solution is known, and then followed."""

FIRST = 0.05
"""lam at the start."""

BARRIERS = (1e-3, 1e-9)
"""First and last product of a multiplier and its slack."""

ALLOWED = 1e-6
"""How far a step may miss a constraint. Where F counts for next to nothing Newton's method can stop
far from all of them, and a prior outside may leak more than any inside."""

NEWTON_STEPS = 80
LARGEST = 1e7
LEAST_KAPPA = 2.0**-6


def limited_blahut_arimoto(
    lumped: Lumped,
    entropy_floor: float,
    limits: Limits,
    equations: tuple[Array, Array],
    starts: Array,
    prices: Array,
    *,
    max_iterations: int = 200,
    tol: float = 1e-10,
) -> tuple[Array, Array, Array]:
    r"""Look for max I(A;Y) s.t. F(w) >= b, <C_j, w> <= d_j + t_j F(w) and E w = e.

    The method of `joint_blahut_arimoto`: each step maximizes <d, w'> - kappa D(pi' || pi), a
    concave minorant of I for kappa = 1, over the constraints. With multipliers lam, mu >= 0 and eta
    of any sign, L = lam + <mu, t> and d' = d - C^T mu - E^T eta, its dual function is

    .. math:: (\kappa + L) \log \sum_a e^{(\kappa \log \pi_a + \phi_a) / (\kappa + L)}
              - \lambda b + \langle \mu, d \rangle + \langle \eta, e \rangle, \qquad
              \phi_a = L \log \sum_g m_{a,g} e^{d'_{a,g} / L},

    which a primal-dual Newton method minimizes for all starts at once. To keep it smooth, a little
    of F(w) is added to I, less and less of it.

    Parameters
    ----------
    lumped : Lumped
    entropy_floor : float
        b, in nats.
    limits : Limits
    equations : (array, array), shapes (K, N) and (K,)
        E and e.
    starts : array, shape (S, A, Y)
        Joint distributions of record and output to take the first step from, of priors or not.
    prices : array, shape (J + K,)
        Multipliers (mu, eta) per unit of L at which exp(-C^T mu - E^T eta) m nearly meets the
        constraints, to start from.
    max_iterations : int
        Cap on the steps for each amount of F that is added.
    tol : float
        A start ends when a cycle of relaxations gains at most this many nats.

    Returns
    -------
    weights : array, shape (S, N)
        Where each start ended; the constraints are met to about 1e-8 only.
    values : array, shape (S,)
        I(A;Y) there; -inf where no prior that meets the constraints was found.
    multipliers : array, shape (S,)
        lam there.
    """
    updater = Updater(lumped, entropy_floor)
    problem = _Step(lumped, entropy_floor, limits, equations, prices, updater)
    count, waiting = len(starts), list(SMOOTHING)
    kappa, gained = np.ones(count), np.zeros(count)
    z = problem.first(count)
    weights = np.zeros((count, len(lumped.rows)))
    for smoothing in PATH:
        z = problem.smoothed_by(smoothing, z)
        weights, z = problem.solve(starts, kappa, z)
    joint = updater.joint(weights)
    values = problem.smoothed(joint, weights)
    active = np.arange(count)
    for iteration in range(max_iterations * len(SMOOTHING)):
        if iteration % max_iterations == 0 or not len(active):
            if not waiting:
                break
            z = problem.smoothed_by(waiting.pop(0), z)
            values = problem.smoothed(joint, weights)
            active, kappa[:], gained[:] = np.arange(count), 1.0, 0.0
        new, new_z = problem.solve(joint[active], kappa[active], z[active])
        new_joint = updater.joint(new)
        new_values = problem.smoothed(new_joint, new)
        with np.errstate(invalid="ignore"):  # neither the old nor the new one meets them
            gain = new_values - values[active]
        kept = gain >= 0
        where = active[kept]
        weights[where], joint[where], values[where] = new[kept], new_joint[kept], new_values[kept]
        z[where] = new_z[kept]
        gained[active] += np.where(kept, gain, 0.0)
        ended = ~kept | (kappa[active] <= LEAST_KAPPA)
        kappa[active] = np.where(ended, 1.0, kappa[active] / 2)
        finished = ended & (gained[active] <= tol)
        gained[active[ended]] = 0.0
        active = active[~finished]
    return weights, np.where(np.isfinite(values), information(joint), -np.inf), z[:, 0]


class _Laws(NamedTuple):
    """L, log v, log pi, kappa + L, and the value of the dual function."""

    lam: Array
    log_v: Array
    log_pi: Array
    blend: Array
    value: Array


@dataclass
class _Point:
    laws: _Laws
    gradient: Array
    hessian: Array
    weights: Array


class _Step:
    """The maximization of one step, for a batch of starts."""

    def __init__(
        self,
        lumped: Lumped,
        floor: float,
        limits: Limits,
        equations: tuple[Array, Array],
        prices: Array,
        updater: Updater,
    ) -> None:
        self.b, self.updater = floor, updater
        self.log_m, self.starts, self.of = (
            lumped.log_multiplicity,
            lumped.starts,
            lumped.value_index,
        )
        self.rows, self.groups = lumped.rows, updater.groups
        # Every row scaled to size 1, so that the multipliers are of comparable sizes.
        size = np.maximum(np.abs(limits.coefficients).max(axis=1, initial=0.0), 1e-300)
        size = np.where(limits.shares > 0, 1.0, size)
        scale = np.maximum(np.abs(equations[0]).max(axis=1, initial=0.0), 1e-300)
        self._prices = prices * np.concatenate([size, scale])
        self.columns = np.concatenate(
            [-limits.coefficients / size[:, None], -equations[0] / scale[:, None]]
        )
        self.sides = np.concatenate([limits.bounds / size, equations[1] / scale])
        self.shares = np.concatenate([limits.shares, np.zeros(len(scale))])
        self.signed = 1 + len(size)
        self.smoothing = PATH[0]

    def first(self, count: int) -> Array:
        """Return multipliers to start from, where hardly anything but F counts."""
        scaled = (self.smoothing + FIRST) * self._prices
        return np.tile(np.concatenate([[FIRST], scaled]), (count, 1))

    def smoothed_by(self, smoothing: float, z: Array) -> Array:
        """Change how much of F is added, and return multipliers that fit that."""
        moved = z.copy()
        moved[:, 1:] += (smoothing - self.smoothing) * self._prices
        self.smoothing = smoothing
        return moved

    def smoothed(self, joint: Array, weights: Array) -> Array:
        """Return I(w), and what is added of F(w); -inf where w misses a constraint."""
        doubt = entropy(weights, self.log_m)
        room = weights @ self.columns.T + doubt[:, None] * self.shares + self.sides
        limits = self.signed - 1
        missed = np.maximum(-room[:, :limits].min(axis=1, initial=np.inf), self.b - doubt)
        missed = np.maximum(missed, np.abs(room[:, limits:]).max(axis=1, initial=0.0))
        value = information(joint) + self.smoothing * doubt
        return np.where(missed <= ALLOWED, value, -np.inf)

    def solve(self, joint: Array, kappa: Array, start: Array) -> tuple[Array, Array]:
        """Return the maximizing weights, and the multipliers."""
        c, log_pi = self._minorant(joint)
        z, first = start.copy(), self.signed
        z[:, :first] = np.maximum(z[:, :first], 1e-6)
        on = np.arange(z.shape[1])
        tau = np.full((len(c), 1), BARRIERS[0])
        slack = tau / z[:, :first]
        point = self._point(self._laws(c, log_pi, kappa, z))
        for _ in range(NEWTON_STEPS):
            positive = z[:, :first]
            off = np.abs(positive * point.gradient[:, :first] - tau).max(axis=1)
            free = np.abs(point.gradient[:, first:]).max(axis=1, initial=0.0)
            centered = (off <= 0.5 * tau[:, 0]) & (free <= np.maximum(tau[:, 0], 1e-9))
            if (centered & (tau[:, 0] <= BARRIERS[1])).all():
                break
            tau = np.where(centered[:, None], np.maximum(0.1 * tau, BARRIERS[1]), tau)
            slack = np.clip(slack, 0.1 * tau / positive, 10 * tau / positive)
            matrix = point.hessian.copy()
            matrix[:, on[:first], on[:first]] += slack / positive
            unit = z.copy()
            unit[:, first:] = 1.0
            matrix *= unit[:, :, None] * unit[:, None, :]
            largest = matrix[:, on, on].max(axis=1, keepdims=True)
            matrix[:, on, on] += 1e-13 * largest + 1e-300
            right = -point.gradient
            right[:, :first] += tau / positive
            try:
                dz = np.linalg.solve(matrix, (right * unit)[..., None])[..., 0] * unit
            except np.linalg.LinAlgError:
                break
            step = longest(positive, dz[:, :first])
            # No exponent moves by too much at a time.
            lam = self.smoothing + z[:, 0] + z[:, 1:] @ self.shares
            moved = np.abs(dz[:, 1:] @ self.columns).max(axis=1, initial=0.0)
            step = np.minimum(step, (10 * lam / np.maximum(moved, 1e-300))[:, None])
            merit = point.laws.value - (tau * np.log(positive)).sum(axis=1)
            trial, laws = z, point.laws
            for _ in range(8):
                trial = np.clip(z + step * dz, -LARGEST, LARGEST)
                laws = self._laws(c, log_pi, kappa, trial)
                reached = laws.value - (tau * np.log(trial[:, :first])).sum(axis=1)
                bad = ~(reached <= merit + 1e-12)
                if not bad.any():
                    break
                step[bad] *= 0.3
            slack = slack + step * ((tau - slack * dz[:, :first]) / positive - slack)
            z = trial
            point = self._point(laws)
        return point.weights, z

    def _minorant(self, joint: Array) -> tuple[Array, Array]:
        pi, output = joint.sum(axis=2), joint.sum(axis=1)
        product = pi[:, :, None] * output[:, None, :]
        with np.errstate(divide="ignore"):
            safe = np.where(product > 0, product, 1)
            log_ratio = np.log(np.where(product > 0, joint / safe, 1))
            log_pi = np.maximum(np.log(pi), -700.0)
        # Not as low as it could be: the constraints may ask for what the last step did without.
        np.maximum(log_ratio, -700.0, out=log_ratio)
        return (
            np.concatenate(
                [log_ratio[:, a] @ self.rows[g].T for a, g in enumerate(self.groups)], axis=1
            ),
            log_pi,
        )

    def _laws(self, c: Array, log_pi: Array, kappa: Array, z: Array) -> _Laws:
        lam = z[:, 0] + self.smoothing + z[:, 1:] @ self.shares
        tilt = (c + z[:, 1:] @ self.columns) / lam[:, None] + self.log_m
        top = np.maximum.reduceat(tilt, self.starts, axis=1)
        parts = np.exp(tilt - top[:, self.of])
        log_sum = top + np.log(np.add.reduceat(parts, self.starts, axis=1))
        blend = kappa + lam
        logits = (kappa[:, None] * log_pi + lam[:, None] * log_sum) / blend[:, None]
        peak = logits.max(axis=1)
        norm = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1))
        value = blend * norm - z[:, 0] * self.b + z[:, 1:] @ self.sides
        return _Laws(lam, tilt - log_sum[:, self.of], logits - norm[:, None], blend, value)

    def _point(self, laws: _Laws) -> _Point:
        lam, log_v, log_p, blend = laws.lam, laws.log_v, laws.log_pi, laws.blend
        pi, v = np.exp(log_p), np.exp(log_v)
        w = pi[:, self.of] * v
        doubt = self.log_m - log_v - log_p[:, self.of]
        features = np.empty((len(w), w.shape[1], 1 + len(self.sides)))
        features[..., 0] = doubt
        features[..., 1:] = self.columns.T + doubt[..., None] * self.shares
        gradient = np.einsum("sg,sgp->sp", w, features)
        constant = np.concatenate([[-self.b], self.sides])
        means = np.add.reduceat(v[..., None] * features, self.starts, axis=1)
        within = features - means[:, self.of]
        hessian = np.matmul((within * w[..., None]).swapaxes(1, 2), within) / lam[:, None, None]
        between = means - gradient[:, None]
        weighted = (between * pi[..., None]).swapaxes(1, 2)
        hessian += np.matmul(weighted, between) / blend[:, None, None]
        return _Point(laws, gradient + constant, hessian, w)
