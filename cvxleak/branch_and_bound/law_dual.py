"""The second node bound: dual of the problem with the conditional laws confined to slabs.

For an adversary w let v_a be its law on the contexts given the value a, and r_a = v_a R_a that of
the output. Then I(w) = H(Y) - sum_a pi_a H(r_a), where -H(r_a) is convex in v_a. Where v_a lies in
a polytope with vertices P_j, any nu with <P_j, nu_a> >= -H(P_j R_a) at every vertex gives
-H(r_a) <= <v_a, nu_a>. Also I(w) <= H(A), so for any q in [0, 1] the leakage is at most the
maximum of the concave

    (1 - q) H(A) + q (H(Y) + <w, nu>)    subject to F(w) >= b, w in the simplex.

With -s log s <= -s tau + e^tau - s at each output its Lagrange dual is in closed form: for any
lam >= 0, q in (0, 1], tau, and nu (both scaled by q) with

    <P_j, nu_a> >= -q H(P_j R_a) at every vertex,                                        (vertices)

    U = (1 - q + lam) log sum_a exp(phi_a / (1 - q + lam)) + q (sum_y e^{tau_y / q} - 1) - lam b,
    phi_a = lam log sum_g m_{a,g} exp((nu_{a,g} - <R_{a,g}, tau>) / lam)

bounds it (maxima in place of the sums where their scale is zero). With no slab cut and q = 1 it is
the capacity of the whole dataset's channel under the floor; the bound is sharp where many noisy
outputs make posterior cells weak.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cvxleak.branch_and_bound.slabs import Slab, slab_vertices
from cvxleak.model import Lumped

__all__ = ["LawDual", "LawSolution"]

Array = NDArray[Any]
SMALLEST_Q, LARGEST_Q = 1e-3, 1 - 1e-9
"""q stays between these, so that neither tau / q nor 1 / (1 - q + lam) blows up."""

Ends = NDArray[Any]
"""Low and high end of the slab of each value, shape (k, 2)."""


@dataclass(frozen=True)
class LawSolution:
    """Multipliers, the bound U that they prove, and the relaxed maximizer w."""

    bound: float
    lam: float
    q: float
    tau: Array
    nu: Array
    weights: Array


@dataclass(frozen=True)
class _Smooth:
    """U and its derivatives in (lam, q, tau, nu of the free groups)."""

    value: float
    gradient: Array
    hessian: Array
    weights: Array


@dataclass(frozen=True)
class _Vertices:
    """Vertices of the cut slabs: share of group `first`, the rest of `second`; -H of their laws.

    `free` holds the groups of the values whose slab is cut; for the others nu is at its least.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    share: Array
    negentropy: Array
    free: NDArray[np.intp]

    def mix(self, nu: Array) -> Array:
        """Return <P_j, nu> at every vertex."""
        return self.share * nu[self.first] + (1 - self.share) * nu[self.second]

    def spread(self, values: Array, size: int) -> Array:
        """Return the sum over the vertices of values_j P_j, for all groups."""
        return np.bincount(self.first, self.share * values, size) + np.bincount(
            self.second, (1 - self.share) * values, size
        )


class LawDual:
    """Minimizes U for one node at a time, by a primal-dual interior-point method."""

    def __init__(self, lumped: Lumped, entropy_floor: float, functional: Array) -> None:
        self.x = functional
        self.entropy_floor = entropy_floor
        self.rows = lumped.rows
        self.negentropy = xlogy(lumped.rows, lumped.rows).sum(axis=1)
        self.groups = [np.flatnonzero(lumped.value_index == a) for a in range(len(lumped.values))]
        self._value = lumped.value_index
        self._starts = lumped.starts
        self._log_multiplicity = lumped.log_multiplicity
        self._slack = max(lumped.max_entropy - entropy_floor, 1e-3)
        self._slabs: dict[tuple[int, float, float], Slab] = {}

    def whole(self) -> Ends:
        """Return the slabs that hold every law."""
        return np.array([[self.x[g].min(), self.x[g].max()] for g in self.groups])

    def start(self, weights: Array) -> LawSolution:
        """Return multipliers that are valid for `whole()`, from a guess at the maximizer."""
        lam, q = 0.1, 0.9
        tau = q * np.log(np.maximum(weights @ self.rows, 1e-12))
        nu = q * self.negentropy + 1e-12
        return LawSolution(self.value(lam, q, tau, nu), lam, q, tau, nu, weights)

    def value(self, lam: float, q: float, tau: Array, nu: Array) -> float:
        """Return U(lam, q, tau, nu) for lam >= 0 and q in (0, 1)."""
        c = nu - self.rows @ tau
        if lam == 0.0:
            phi = np.maximum.reduceat(c, self._starts)
        else:
            logits = c / lam + self._log_multiplicity
            top = np.maximum.reduceat(logits, self._starts)
            sums = np.add.reduceat(np.exp(logits - top[self._value]), self._starts)
            phi = lam * (top + np.log(sums))
        scale = 1 - q + lam
        ratio = phi / scale
        peak = ratio.max()
        smooth = scale * (peak + np.log(np.exp(ratio - peak).sum()))
        return float(smooth + q * (_exp(tau / q).sum() - 1) - lam * self.entropy_floor)

    def gaps(self, ends: Ends, solution: LawSolution) -> Array:
        """Return what each value's envelope adds to the bound: pi_a q (<v, nu / q> + H(r))."""
        result = []
        for a in range(len(ends)):
            w = solution.weights[self.groups[a]]
            mass = w.sum()
            law = w @ self.rows[self.groups[a]] / mass if mass > 0 else np.ones(1)
            above = w @ solution.nu[self.groups[a]] / solution.q - mass * xlogy(law, law).sum()
            result.append(above)
        return np.array(result)

    def mean(self, a: int, weights: Array) -> float:
        """Return the mean of the functional given the value a."""
        w = weights[self.groups[a]]
        return float(w @ self.x[self.groups[a]] / w.sum())

    def solve(
        self,
        ends: Ends,
        start: LawSolution,
        threshold: float,
        *,
        accuracy: float,
        max_iterations: int = 60,
    ) -> LawSolution:
        """Minimize U over the multipliers that are valid for the slabs, from valid ones.

        Stops when U is at most `threshold` or the duality gap at most `accuracy`; where the
        numerics fail the best multipliers so far are returned, which are valid all the same.
        """
        vertices = self._vertices(ends)
        free, size = vertices.free, len(self.rows)
        fixed = np.setdiff1d(np.arange(size), free)
        at_nu = 2 + self.rows.shape[1]
        floor = accuracy / (4 * self._slack)
        q = min(max(start.q, 2 * SMALLEST_Q), 1 - 1e-3)
        # Three kinds of variables have a sign: lam, 1 - q and q; with the vertices' slacks they
        # are the quantities that the barrier keeps positive.
        z = np.concatenate([[max(start.lam - floor, 1e-4), q], start.tau * (q / start.q)])
        nu = start.nu * (q / start.q)

        def full(z: Array, nu: Array) -> Array:
            result = nu.copy()
            result[fixed] = z[1] * self.negentropy[fixed] + 1e-13
            return result

        def signed(z: Array, nu: Array) -> Array:
            slack = vertices.mix(nu) - z[1] * vertices.negentropy
            return np.concatenate([slack, [z[0], z[1] - SMALLEST_Q, LARGEST_Q - z[1]]])

        nu = full(z, nu)
        positive = signed(z, nu)
        lift = max(0.0, 1e-5 - positive[:-3].min(initial=np.inf))
        nu[free] += lift
        positive = signed(z, nu)
        theta = 1e-3 / len(positive) / positive
        best = start
        for _ in range(max_iterations):
            point = self._smooth(z[0] + floor, z[1], z[2:], nu, free, fixed)
            if not np.isfinite(point.value):
                break
            if point.value < best.bound:
                best = LawSolution(point.value, z[0] + floor, z[1], z[2:], nu, point.weights)
            gap = positive @ theta
            residual = point.gradient - self._pull(vertices, theta, size, at_nu)
            if point.value <= threshold or (gap <= accuracy and np.abs(residual).sum() <= 1e-5):
                break
            target = 0.1 * gap / len(positive)
            hessian = point.hessian + self._barrier(vertices, theta / positive, size, at_nu)
            hessian[np.diag_indices(len(hessian))] += 1e-12
            right = self._pull(vertices, target / positive, size, at_nu) - point.gradient
            try:
                step = np.linalg.solve(hessian, right)
            except np.linalg.LinAlgError:
                break
            if not np.isfinite(step).all():
                break
            dz, dnu = step[:at_nu], np.zeros(size)
            dnu[free] = step[at_nu:]
            dnu[fixed] = dz[1] * self.negentropy[fixed]
            dpositive = np.concatenate(
                [vertices.mix(dnu) - dz[1] * vertices.negentropy, [dz[0], dz[1], -dz[1]]]
            )
            length = min(_longest(positive, dpositive), 5.0 / max(float(np.abs(dz[2:]).max()), 5.0))
            merit = point.value - target * np.log(positive).sum()
            for _ in range(12):
                y = z + length * dz
                trial = self.value(y[0] + floor, y[1], y[2:], nu + length * dnu)
                logs = np.log(positive + length * dpositive).sum()
                if np.isfinite(trial) and trial - target * logs <= merit + 1e-10:
                    break
                length *= 0.4
            dtheta = (target - theta * dpositive) / positive - theta
            z, nu = z + length * dz, nu + length * dnu
            positive = positive + length * dpositive
            theta = theta + _longest(theta, dtheta) * dtheta
        zero = self.value(0.0, best.q, best.tau, best.nu)
        return replace(best, bound=zero, lam=0.0) if zero < best.bound else best

    def _pull(self, vertices: _Vertices, theta: Array, size: int, at_nu: int) -> Array:
        """Return the gradient of <theta, positive quantities> in (lam, q, tau, nu of free)."""
        result = np.zeros(at_nu + len(vertices.free))
        slack, (lam, q, rest) = theta[:-3], theta[-3:]
        result[0] = lam
        result[1] = q - rest - slack @ vertices.negentropy
        result[at_nu:] = vertices.spread(slack, size)[vertices.free]
        return result

    def _barrier(self, vertices: _Vertices, weight: Array, size: int, at_nu: int) -> Array:
        """Return the sum of weight_j times the outer square of positive quantity j's gradient."""
        free, i, j = vertices.free, vertices.first, vertices.second
        slack, (lam, q, rest) = weight[:-3], weight[-3:]
        result = np.zeros((at_nu + len(free), at_nu + len(free)))
        result[0, 0] = lam
        result[1, 1] = q + rest + slack @ vertices.negentropy**2
        cross = -vertices.spread(slack * vertices.negentropy, size)[free]
        result[1, at_nu:] = result[at_nu:, 1] = cross
        p, r = vertices.share, 1 - vertices.share
        block = np.bincount(i * size + j, slack * p * r, size * size).reshape(size, size)
        block = block + block.T
        block[np.diag_indices(size)] += np.bincount(i, slack * p**2, size) + np.bincount(
            j, slack * r**2, size
        )
        result[at_nu:, at_nu:] = block[np.ix_(free, free)]
        return result

    def _vertices(self, ends: Ends) -> _Vertices:
        parts = []
        free = []
        whole = self.whole()
        for a, groups in enumerate(self.groups):
            if (ends[a] == whole[a]).all():
                continue
            key = (a, float(ends[a, 0]), float(ends[a, 1]))
            if key not in self._slabs:
                self._slabs[key] = slab_vertices(self.x[groups], self.rows[groups], *key[1:])
            slab = self._slabs[key]
            parts.append((groups[slab.first], groups[slab.second], slab.share, slab.negentropy))
            free.append(groups)
        if not parts:
            none = np.zeros(0, dtype=np.intp)
            return _Vertices(none, none, np.zeros(0), np.zeros(0), none)
        first, second, share, negentropy = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        return _Vertices(first, second, share, negentropy, np.concatenate(free))

    def _smooth(
        self,
        lam: float,
        q: float,
        tau: Array,
        nu: Array,
        free: NDArray[np.intp],
        fixed: NDArray[np.intp],
    ) -> _Smooth:
        outputs = self.rows.shape[1]
        c = nu - self.rows @ tau
        logits = c / lam + self._log_multiplicity
        top = np.maximum.reduceat(logits, self._starts)
        v = np.exp(logits - top[self._value])
        sums = np.add.reduceat(v, self._starts)
        v /= sums[self._value]
        log_sums = top + np.log(sums)
        scale = 1 - q + lam
        ratio = lam * log_sums / scale
        peak = ratio.max()
        pi = np.exp(ratio - peak)
        norm = pi.sum()
        pi /= norm
        log_pi = ratio - peak - np.log(norm)
        exp_tau = _exp(tau / q)
        value = scale * (peak + np.log(norm)) + q * (exp_tau.sum() - 1) - lam * self.entropy_floor
        w = pi[self._value] * v
        # One column of features per variable: what each adds to the Lagrangian per unit of w_g.
        # lam: -log w + log m; q: log pi (and nu where it is fixed to q times its least); tau; nu.
        features = np.zeros((len(w), 2 + outputs + len(free)))
        log_v_ratio = log_sums[self._value] - c / lam  # -log v + log m
        features[:, 0] = log_v_ratio - log_pi[self._value]
        features[:, 1] = log_pi[self._value]
        features[fixed, 1] += self.negentropy[fixed]
        features[:, 2 : 2 + outputs] = -self.rows
        features[free, np.arange(2 + outputs, features.shape[1])] = 1.0
        mean = w @ features
        gradient = mean.copy()
        gradient[0] -= self.entropy_floor
        gradient[1] += (exp_tau * (1 - tau / q)).sum() - 1
        gradient[2 : 2 + outputs] += exp_tau
        means = np.add.reduceat(v[:, None] * features, self._starts)
        within = features - means[self._value]
        hessian = (within * w[:, None]).T @ within / lam
        between = means - mean
        hessian += (between * pi[:, None]).T @ between / scale
        diagonal = np.arange(2, 2 + outputs)
        hessian[diagonal, diagonal] += exp_tau / q
        bend = -exp_tau * tau / q**2
        hessian[1, diagonal] += bend
        hessian[diagonal, 1] += bend
        hessian[1, 1] += (exp_tau * tau**2).sum() / q**3
        return _Smooth(float(value), gradient, hessian, w)


def _exp(x: Array) -> Array:
    """Return e^x, short of overflow: such points are rejected by their value anyway."""
    return np.exp(np.minimum(x, 500.0))


def _longest(values: Array, steps: Array) -> float:
    """Return the step, at most 1, that keeps one percent of every value."""
    falling = steps < 0
    if not falling.any():
        return 1.0
    return min(1.0, 0.99 * float((-values[falling] / steps[falling]).min()))
