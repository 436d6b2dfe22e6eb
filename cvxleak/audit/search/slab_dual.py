"""The second node bound: dual of the problem with the conditional distributions confined to slabs.

For an adversary w let v_a be its distribution on the contexts given the value a, and r_a = v_a R_a
that of the output. Then I(w) = H(Y) - sum_a pi_a H(r_a), where -H(r_a) is convex in v_a. Where v_a
lies in a polytope with vertices P_j, any nu with <P_j, nu_a> >= -H(P_j R_a) at every vertex gives
-H(r_a) <= <v_a, nu_a>. Also I(w) <= H(A), so for any q in [0, 1] the leakage is at most the maximum
of the concave

    (1 - q) H(A) + q (H(Y) + <w, nu>)    subject to F(w) >= b, w in the simplex.

With -s log s <= -s tau + e^tau - s at each output its Lagrange dual is in closed form: for any
lam >= 0, q in (0, 1], tau, and nu (both scaled by q) with

    <P_j, nu_a> >= -q H(P_j R_a) at every vertex,                                        (vertices)

    U = (1 - q + lam) log sum_a exp(phi_a / (1 - q + lam)) + q (sum_y e^{tau_y / q} - 1) - lam b,
    phi_a = lam log sum_g m_{a,g} exp((nu_{a,g} - <R_{a,g}, tau>) / lam)

bounds it (maxima in place of the sums where their scale is zero). Limits <C_j, w> <= d_j + t_j F(w)
on the adversary add multipliers kappa >= 0: sum_j kappa_j C_{j,a,g} is taken from the exponent's
numerator, <kappa, d> added to U, and lam + <kappa, t> takes the place of lam (but for lam b). As in
`cell_dual`, U is computed from means over the uniform prior s = m / |X|, with
phi_a - (1 - q) log s_a in the outer one, so that nothing large cancels.

With no slab cut and q = 1 it is the capacity of the whole dataset's channel under the floor; the
bound is sharp where many noisy outputs make posterior cells weak.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cvxleak.audit.search.cell_dual import never
from cvxleak.audit.search.means import (
    entropy_surplus,
    first_multiplier,
    log_mean_exp,
    log_mean_exp_by_value,
)
from cvxleak.audit.search.slabs import Slab, slab_vertices
from cvxleak.audit.search.systems import longest, opposites, without_shared
from cvxleak.core.work import spend
from cvxleak.model import Limits, Lumped

__all__ = ["SlabDual", "SlabSolution"]

Array = NDArray[Any]
TINY = 1e-150
"""A slack below this is none: its inverse square would overflow."""

SMALLEST_Q, LARGEST_Q = 1e-3, 1 - 1e-9
"""q stays between these, so that neither tau / q nor 1 / (1 - q + lam) blows up."""

Ends = NDArray[Any]
"""Lower and upper endpoint of the slab of each value, shape (k, 2)."""


@dataclass(frozen=True)
class SlabSolution:
    """Multipliers, the bound U that they prove, and the relaxed maximizer w.

    `gains[a]` is what cutting the slab of the value a at `means[a]` takes from the envelope's gap.
    """

    bound: float
    lam: float
    q: float
    tau: Array
    nu: Array
    kappa: Array
    weights: Array
    gains: Array
    means: Array


@dataclass(frozen=True)
class _Smooth:
    """U and its derivatives in (lam, q, tau, kappa, nu of the free groups)."""

    value: float
    gradient: Array
    hessian: Array
    weights: Array


@dataclass(frozen=True)
class _Vertices:
    """Vertices of the cut slabs: share of group `first`, the rest of `second`; -H of their outputs.

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


class SlabDual:
    """Minimizes U for one node at a time, by a primal-dual interior-point method."""

    def __init__(
        self,
        lumped: Lumped,
        entropy_floor: float,
        functional: Array,
        limits: Limits | None = None,
    ) -> None:
        self.x = functional
        self.surplus = entropy_surplus(lumped, entropy_floor)
        self.limits = Limits.none(lumped) if limits is None else limits
        self._opposites = opposites(self.limits)
        # With lam + <kappa, t> for lam throughout, lam b too, a limit's side is d + t b.
        self._sides = self.limits.bounds + self.limits.shares * entropy_floor
        self.rows = lumped.rows
        self._lumped = lumped
        self.negentropy = xlogy(lumped.rows, lumped.rows).sum(axis=1)
        self.groups = [np.flatnonzero(lumped.value_index == a) for a in range(len(lumped.values))]
        self._value = lumped.value_index
        self._starts = lumped.starts
        self._log_values = lumped.log_shares[1]
        self._slabs: dict[tuple[int, float, float], Slab] = {}

    def whole(self) -> Ends:
        """Return the slabs that hold every distribution."""
        return np.array([[self.x[g].min(), self.x[g].max()] for g in self.groups])

    def start(self, weights: Array) -> SlabSolution:
        """Return multipliers that are valid for `whole()`, from a guess at the maximizer."""
        lam, q = first_multiplier(self.surplus), 0.9
        tau = q * np.log(np.maximum(weights @ self.rows, 1e-12))
        nu = q * self.negentropy + 1e-12
        kappa = np.zeros(len(self.limits.bounds))
        bound = self.value(lam, q, tau, nu, kappa)
        none = np.zeros(len(self.groups))
        return SlabSolution(bound, lam, q, tau, nu, kappa, weights, none, none)

    def value(
        self, lam: float, q: float, tau: Array, nu: Array, kappa: Array | None = None
    ) -> float:
        """Return U(lam, q, tau, nu, kappa) for lam >= 0 and q in (0, 1).

        An allowance for the rounding of c, and of tau / q, is added.
        """
        if kappa is None:
            kappa = np.zeros(len(self.limits.bounds))
        c = nu - self.rows @ tau - kappa @ self.limits.coefficients
        lam += float(kappa @ self.limits.shares)
        if lam == 0.0:
            phi = np.maximum.reduceat(c, self._starts)
        else:
            phi = lam * log_mean_exp_by_value(c / lam, self._lumped)
        scale = 1 - q + lam
        smooth = scale * log_mean_exp((phi - (1 - q) * self._log_values) / scale, self._log_values)
        total = smooth + q * (_exp(tau / q).sum() - 1) + lam * self.surplus
        return float(total + kappa @ self._sides + self._allowance(lam, tau, nu, kappa))

    def _allowance(self, lam: float, tau: Array, nu: Array, kappa: Array) -> float:
        limits = np.abs(self.limits.coefficients).max(axis=1, initial=0.0)
        c = np.abs(tau).max() + np.abs(nu).max() + kappa @ (limits + np.abs(self._sides))
        logs = -self._lumped.log_shares[0].min() - self._log_values.min()
        return 8 * np.finfo(float).eps * float(len(tau) + c + min(lam, c) * logs)

    def solve(
        self,
        ends: Ends,
        start: SlabSolution,
        threshold: float,
        *,
        accuracy: float,
        stop: Callable[[], bool] = never,
        max_iterations: int = 60,
    ) -> SlabSolution:
        """Minimize U over the multipliers that are valid for the slabs, from valid ones.

        Stops when U is at most `threshold` or the duality gap at most `accuracy`, or `stop()` says
        so; where the numerics fail the best multipliers so far are returned, which are valid all
        the same.
        """
        vertices = self._vertices(ends)
        free, size = vertices.free, len(self.rows)
        fixed = np.setdiff1d(np.arange(size), free)
        outputs, signs = self.rows.shape[1], 3 + len(self.limits.bounds)
        at_kappa = 2 + outputs
        at_nu = at_kappa + len(self.limits.bounds)
        floor = accuracy / (4 * max(self.surplus, 1e-3))
        q = min(max(start.q, 2 * SMALLEST_Q), 1 - 1e-3)
        # lam, q, 1 - q and kappa have a sign; with the vertices' slacks they are the quantities
        # that the barrier keeps positive.
        z = np.concatenate(
            [
                [max(start.lam - floor, 1e-4), q],
                start.tau * (q / start.q),
                np.maximum(start.kappa, 1e-4),
            ]
        )
        nu = start.nu * (q / start.q)

        def full(z: Array, nu: Array) -> Array:
            result = nu.copy()
            result[fixed] = z[1] * self.negentropy[fixed] + 1e-13
            return result

        def signed(z: Array, nu: Array) -> Array:
            slack = vertices.mix(nu) - z[1] * vertices.negentropy
            return np.concatenate(
                [slack, z[at_kappa:], [z[0], z[1] - SMALLEST_Q, LARGEST_Q - z[1]]]
            )

        nu = full(z, nu)
        positive = signed(z, nu)
        lift = max(0.0, 1e-5 - positive[:-signs].min(initial=np.inf))
        nu[free] += lift
        positive = signed(z, nu)
        theta = 1e-3 / len(positive) / positive
        best, weights = start, start.weights
        for _ in range(max_iterations):
            spend(1e6 + (size + outputs) ** 3 + size * (size + outputs) ** 2)
            point = self._smooth(z[0] + floor, *self._parts(z), nu, free, fixed)
            if not np.isfinite(point.value):
                break
            weights = point.weights
            if point.value < best.bound:
                q, tau, kappa = self._parts(z)
                best = replace(
                    best, bound=point.value, lam=z[0] + floor, q=q, tau=tau, nu=nu, kappa=kappa
                )
            gap = positive @ theta
            residual = point.gradient - self._pull(vertices, theta, size, at_nu)
            solved = gap <= accuracy and np.abs(residual).sum() <= 1e-5
            # A slack that has rounded to nothing leaves no way on.
            if point.value <= threshold or solved or stop() or positive.min() < TINY:
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
                [
                    vertices.mix(dnu) - dz[1] * vertices.negentropy,
                    dz[at_kappa:],
                    [dz[0], dz[1], -dz[1]],
                ]
            )
            largest = max(float(np.abs(dz[2:at_kappa]).max()), 5.0)
            length = min(float(longest(positive, dpositive)[0]), 5.0 / largest)
            merit = point.value - target * np.log(positive).sum()
            for _ in range(12):
                y = z + length * dz
                q, tau, kappa = self._parts(y)
                trial = self.value(y[0] + floor, q, tau, nu + length * dnu, kappa)
                logs = np.log(positive + length * dpositive).sum()
                if np.isfinite(trial) and trial - target * logs <= merit + 1e-10:
                    break
                length *= 0.4
            dtheta = (target - theta * dpositive) / positive - theta
            z, nu = z + length * dz, nu + length * dnu
            positive = positive + length * dpositive
            z[at_kappa:] = without_shared(z[at_kappa:], self._opposites)
            positive[-signs:-3] = z[at_kappa:]
            theta = theta + longest(theta, dtheta) * dtheta
        zero = self.value(0.0, best.q, best.tau, best.nu, best.kappa)
        if zero < best.bound:
            best = replace(best, bound=zero, lam=0.0)
        gains, means = self._gains(ends, vertices, theta[:-signs], weights)
        return replace(best, weights=weights, gains=gains, means=means)

    def _parts(self, z: Array) -> tuple[float, Array, Array]:
        """Return q, tau and kappa."""
        at_kappa = 2 + self.rows.shape[1]
        return float(z[1]), z[2:at_kappa], z[at_kappa:]

    def _gains(
        self, ends: Ends, vertices: _Vertices, theta: Array, weights: Array
    ) -> tuple[Array, Array]:
        """Return what cutting each slab at the mean of its functional would gain, and the means.

        theta, the multipliers of the vertices, is how the relaxed maximizer mixes them. Cut in two,
        the slab's envelope cannot mix those on one side with those on the other: it loses the
        information that the output has about the side.
        """
        size = len(self.rows)
        place = vertices.mix(self.x)
        where, gains = np.zeros(len(ends)), np.zeros(len(ends))
        for a, groups in enumerate(self.groups):
            mass = weights[groups]
            where[a] = mass @ self.x[groups] / max(mass.sum(), 1e-300)
            if (ends[a] == self.whole()[a]).all():
                below = np.where(self.x[groups] < where[a], mass, 0.0)
                sides = [below @ self.rows[groups], (mass - below) @ self.rows[groups]]
            else:
                of_value = np.where(self._value[vertices.first] == a, theta, 0.0)
                below = np.where(place < where[a], of_value, 0.0)
                sides = [
                    vertices.spread(part, size) @ self.rows for part in (below, of_value - below)
                ]
            both = np.add(*sides)
            gains[a] = sum(_negentropy(side) for side in sides) - _negentropy(both)
        return gains, where

    def _pull(self, vertices: _Vertices, theta: Array, size: int, at_nu: int) -> Array:
        """Return the gradient of <theta, positive quantities> in (lam, q, tau, kappa, free nu)."""
        result = np.zeros(at_nu + len(vertices.free))
        signs = 3 + len(self.limits.bounds)
        slack, (lam, q, rest) = theta[:-signs], theta[-3:]
        result[0] = lam
        result[1] = q - rest - slack @ vertices.negentropy
        result[at_nu - signs + 3 : at_nu] = theta[len(slack) : -3]
        result[at_nu:] = vertices.spread(slack, size)[vertices.free]
        return result

    def _barrier(self, vertices: _Vertices, weight: Array, size: int, at_nu: int) -> Array:
        """Return the sum of weight_j times the outer square of positive quantity j's gradient."""
        free, i, j = vertices.free, vertices.first, vertices.second
        signs = 3 + len(self.limits.bounds)
        slack, (lam, q, rest) = weight[:-signs], weight[-3:]
        result = np.zeros((at_nu + len(free), at_nu + len(free)))
        kappa = np.arange(at_nu - signs + 3, at_nu)
        result[kappa, kappa] = weight[len(slack) : -3]
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
        kappa: Array,
        nu: Array,
        free: NDArray[np.intp],
        fixed: NDArray[np.intp],
    ) -> _Smooth:
        outputs, limits = self.rows.shape[1], len(kappa)
        log_shares, log_values = self._lumped.log_shares
        c = nu - self.rows @ tau - kappa @ self.limits.coefficients
        lam = lam + float(kappa @ self.limits.shares)
        log_sums = log_mean_exp_by_value(c / lam, self._lumped)
        log_v = c / lam - log_sums[self._value]  # relative to the uniform prior's
        v = np.exp(log_v + log_shares)
        v /= np.add.reduceat(v, self._starts)[self._value]
        scale = 1 - q + lam
        ratio = (lam * log_sums - (1 - q) * log_values) / scale
        log_norm = float(log_mean_exp(ratio, log_values))
        log_pi = ratio - log_norm
        pi = np.exp(log_pi + log_values)
        pi /= pi.sum()
        exp_tau = _exp(tau / q)
        value = scale * log_norm + q * (exp_tau.sum() - 1) + lam * self.surplus
        value += kappa @ self._sides + self._allowance(lam, tau, nu, kappa)
        w = pi[self._value] * v
        # One column of features per variable: what each adds to the Lagrangian per unit of w_g.
        # lam: -log w + log s; q: log pi (and nu where it is fixed to q times its least); tau;
        # kappa; nu.
        at_nu = 2 + outputs + limits
        features = np.zeros((len(w), at_nu + len(free)))
        features[:, 0] = -log_v - log_pi[self._value]
        features[:, 1] = (log_pi + log_values)[self._value]
        features[fixed, 1] += self.negentropy[fixed]
        features[:, 2 : 2 + outputs] = -self.rows
        features[:, 2 + outputs : at_nu] = -self.limits.coefficients.T
        features[free, np.arange(at_nu, features.shape[1])] = 1.0
        mean = w @ features
        gradient = mean.copy()
        gradient[0] += self.surplus
        gradient[1] += (exp_tau * (1 - tau / q)).sum() - 1
        gradient[2 : 2 + outputs] += exp_tau
        gradient[2 + outputs : at_nu] += self._sides
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
        shares = self.limits.shares
        if shares.any():
            # Where t > 0 a limit's multiplier counts for lam as well.
            gradient[2 + outputs : at_nu] += shares * gradient[0]
            hessian[:, 2 + outputs : at_nu] += hessian[:, :1] * shares
            hessian[2 + outputs : at_nu] += shares[:, None] * hessian[:1]
        return _Smooth(float(value), gradient, hessian, w)


def _negentropy(joint: Array) -> float:
    """Return sum s log s less that of the total: -mass H(distribution)."""
    return float(xlogy(joint, joint).sum() - xlogy(joint.sum(), joint.sum()))


def _exp(x: Array) -> Array:
    """Return e^x, short of overflow: such points are rejected by their value anyway."""
    return np.exp(np.minimum(x, 500.0))
