"""The rate-distortion function of one distribution by a primal-dual interior-point method.

Eliminating q leaves a function of the output distribution r and the slope s alone (Blahut 1972),

    phi(r, s) = -sum_x p_x log c_x + sum_y r_y - 1,   c_x = sum_y r_y e^(-s d_xy),

convex in r >= 0 and concave in s; its minimum over r is min I + s E d. So m + 1 unknowns do, not
n m. A Newton step solves the conditions 1 - g_y = z_y, r_y z_y = mu, with
g_y = sum_x p_x e^(-s d_xy) / c_x, together with E d = D, in r, z and s at once: one Cholesky
factorization of an m x m matrix, used for Mehrotra's predictor and corrector. For any r and s,
alpha_x = 1 / (c_x max_y g_y) is feasible in the dual problem max sum_x p_x log alpha_x - s D,
sum_x p_x alpha_x e^(-s d_xy) <= 1 (Csiszár 1974), which gives the gap. For an information R,
Newton's method finds the D with R(D) = R: R(D) is convex and -s is its derivative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.iterative.newton import cholesky_solver, to_boundary

__all__ = ["Optimum", "best_for_law"]

MAX_STEPS = 500

PATIENCE = 20
"""Steps without a smaller gap after which floating point gives no more."""

STEEPEST = 700.0
"""Largest slope times smallest positive distortion: e^-700 is about the smallest number."""

TINY = 1e-300


class Optimum(NamedTuple):
    """A channel that is optimal up to rounding, and the multipliers that prove it.

    Attributes
    ----------
    channel : array, shape (n, m)
        q(y|x); it meets the budget up to rounding.
    reference : array, shape (n, m)
        Where the tangents of the dual bound are taken; only its columns' shapes matter.
    weights, prices : arrays, shapes (K,) and (J,)
        Multipliers of the distributions' informations and of the sources' distortions.
    distortion : float
        The largest expected distortion.
    iterations : int
        Newton steps.
    """

    channel: Array
    reference: Array
    weights: Array
    prices: Array
    distortion: float
    iterations: int


class _Point(NamedTuple):
    """An iterate; its objective is the information, or that plus s times the distortion."""

    objective: float
    distortion: float
    channel: Array
    output: Array
    slope: float


def best_for_law(
    law: Array, distortion: Array, minimize: str, number: float, tol: float, clock: Clock
) -> Optimum:
    """Return the channel that trades I(X;Y) for E d(X,Y) best.

    Parameters
    ----------
    law : array, shape (n,)
        Inputs of probability 0 are given rows, but have no say.
    distortion : array, shape (n, m)
    minimize : {"information", "distortion", "sum"}
        The information for a distortion of `number`, strictly between the least possible and the
        least that needs no information; the distortion for an information of `number` > 0, below
        what the least distortion needs; or information + `number` x distortion.
    tol : float
        Stop when the duality gap is at most this, in the unit of what is minimized.

    Raises
    ------
    SolverError
        The Newton system cannot be factorized.
    """
    p = law / law.sum()
    run = _Run(clock)
    if minimize == "distortion":
        found = _least_distortion(p, distortion, number, tol, run)
    else:
        found = run.solve(_CentralPath(p, distortion, minimize, number), tol)
    s = found.slope
    tilt = np.exp(-np.minimum(s * (distortion - distortion.min(axis=1, keepdims=True)), 690.0))
    reference = tilt / (tilt @ found.output)[:, None]
    weights, prices = np.ones(1), np.array([s])
    if minimize == "distortion":
        weights, prices = np.array([1 / max(s, TINY)]), np.ones(1)
    return Optimum(found.channel, reference, weights, prices, found.distortion, run.steps)


def _least_distortion(p: Array, d: Array, budget: float, tol: float, run: _Run) -> _Point:
    """Find D with R(D) = budget: Newton's method, which convexity keeps on the safe side."""
    low, high = float(p @ d.min(axis=1)), float((p @ d).min())
    share = min(budget / max(float(entr(p).sum()), TINY), 0.95)
    guess = high - share * (high - low)
    while True:
        # The slope at a budget turns nats into the unit of d.
        found = run.solve(_CentralPath(p, d, "information", guess), 0.0, tol)
        off = (found.objective - budget) / found.slope
        if abs(off) <= tol or run.ended:
            return found
        # Where R is above the budget Newton's step does not pass the root.
        ahead = guess + off
        if ahead <= low:
            ahead = low + (guess - low) / 1000
        elif ahead >= high:
            ahead = (high + guess) / 2
        if ahead == guess:
            return found
        guess = ahead


class _Run:
    """The limits of one call, which may follow several central paths."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.steps, self.ended = clock, 0, False

    def solve(self, path: _CentralPath, tol: float, tol_of_distortion: float = 0.0) -> _Point:
        """Follow a path to a gap of `tol` nats, or of `tol_of_distortion` times the slope."""
        best, gap, fruitless = path.point(), math.inf, 0
        while True:
            now = path.gap()
            if now < gap:
                best, gap, fruitless = path.point(), now, 0
            else:
                fruitless += 1
            self.ended = self.steps >= MAX_STEPS or self.clock.late
            close = gap <= max(tol, 0.1 * tol_of_distortion * path.natural_slope)
            if close or self.ended or fruitless == PATIENCE:
                return best
            spend(1e6 + path.p.size * path.d.size)
            path.advance()
            self.steps += 1


class _CentralPath:
    """The iterate (r, z, s) and Newton steps towards the optimum; distortions are scaled."""

    def __init__(self, p: Array, d: Array, minimize: str, target: float) -> None:
        self.p, self.minimize = p, minimize
        self.least = d.min(axis=1)
        excess = d - self.least[:, None]
        self.scale = float(excess.max()) or 1.0
        self.d = excess / self.scale
        self.base = float(p @ self.least)
        self.target = target
        if minimize == "information":
            self.target = max(target - self.base, 0.0) / self.scale
        elif minimize == "sum":
            self.target = target * self.scale
        positive = self.d[self.d > 0]
        self.steepest = STEEPEST / float(positive.min()) if positive.size else STEEPEST
        m = d.shape[1]
        self.r, self.z = np.full(m, 1 / m), np.full(m, 1.0)
        self.s = self._starting_slope()
        self._evaluate()

    @property
    def natural_slope(self) -> float:
        """The slope in nats per unit of the distortion as it was given."""
        return self.s / self.scale

    @property
    def distortion(self) -> float:
        """E d in the unit it was given in."""
        return self.base + self.scale * self.spent

    def point(self) -> _Point:
        """Return what the iterate is."""
        objective = self.information
        if self.minimize == "sum":
            objective += self.natural_slope * self.distortion
        channel = self.tilt * self.r / self.c[:, None]
        channel /= channel.sum(axis=1, keepdims=True)
        output = self.r / self.r.sum()
        return _Point(objective, self.distortion, channel, output, self.natural_slope)

    def gap(self) -> float:
        """Return the duality gap, together with what the budget is missed by."""
        gap = math.log(self.g.max()) + math.log(self.r.sum())
        if self.minimize == "information":
            return gap + self.s * abs(self.spent - self.target)
        return gap

    def advance(self) -> None:
        """Do a Newton step."""
        r, z, s = self.r, self.z, self.s
        weight = self.p / self.c
        tilted = self.tilt * self.d
        b = weight @ tilted - (weight * self.e) @ self.tilt
        second = (tilted * self.d) @ self.r
        variance = max(float(self.p @ (second / self.c - self.e**2)), 0.0)
        scaled = self.tilt * (np.sqrt(self.p) / self.c)[:, None]
        solve = cholesky_solver(scaled.T @ scaled, z / r)
        t = solve(b)
        residual = z - (1 - self.g)
        mu = float(r @ z) / len(r)

        def direction(complementarity: Array) -> tuple[Array, float, Array]:
            u = solve(residual + complementarity / r)
            ds = self._slope_step(u, t, b, variance)
            dr = u - t * ds
            return dr, ds, (complementarity - z * dr) / r

        dr, _, dz = direction(-r * z)
        reached = (r + to_boundary(r, dr) * dr) @ (z + to_boundary(z, dz) * dz) / len(r)
        sigma = (reached / mu) ** 3
        dr, ds, dz = direction(sigma * mu - r * z - dr * dz)
        # s moves by at most its own size upward and half of it downward: all else depends on e^-s.
        limit = min(1.0, (s if ds > 0 else 0.5 * s) / abs(ds)) if ds else 1.0
        primal = min(0.995 * to_boundary(r, dr), limit)
        dual = min(0.995 * to_boundary(z, dz), limit)
        self.r = np.maximum(r + primal * dr, TINY)
        self.z = np.maximum(z + dual * dz, TINY)
        self.s = min(s + primal * ds, self.steepest)
        self._evaluate()

    def _slope_step(self, u: Array, t: Array, b: Array, variance: float) -> float:
        if self.minimize == "sum":
            return 0.0
        return float((b @ u + self.spent - self.target) / (variance + b @ t + TINY))

    def _evaluate(self) -> None:
        self.tilt = np.exp(-self.s * self.d)
        self.c = self.tilt @ self.r
        self.e = ((self.tilt * self.d) @ self.r) / self.c
        self.g = (self.p / self.c) @ self.tilt
        self.spent = float(self.p @ self.e)
        level = -float(self.p @ np.log(self.c))
        self.information = level - self.s * self.spent + math.log(self.r.sum())

    def _starting_slope(self) -> float:
        """Return the slope that is given, or one of the order of the distortions."""
        if self.minimize == "sum":
            return min(self.target, self.steepest)
        return min(1 / (float(self.p @ self.d.mean(axis=1)) or 1.0), self.steepest)
