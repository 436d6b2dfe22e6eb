"""Designs for several known distributions by a primal-dual interior-point method on the channel.

Newton's method on the optimality conditions, with Mehrotra's predictor and corrector. The Hessian
of sum_k w_k I_k is block diagonal over the outputs, sum_k w_k (diag(p_k/q) - p_k p_k' / r_k); with
the diagonal of the bounds q >= 0 each block is a diagonal matrix plus one of the rank of the
distributions, and its Laplacian form avoids the cancellation along q. So a step costs one n x n
system for the row sums, and never one of n m unknowns.

`cvxleak.design.master` solves the same kind of program for the many adversaries and few rows of a
design against all of them. It factors a matrix of the size of the rows for each output: with 100
inputs and two distributions it takes 20 times as long, and gets stuck at gaps of 1e-3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.design.rate_distortion import Optimum
from cvxleak.iterative.design_terms import DesignTerms, dual_bound
from cvxleak.iterative.newton import to_boundary

__all__ = ["best_for_laws"]

MAX_STEPS = 150

PATIENCE = 25
"""Steps without a smaller gap after which floating point gives no more."""

BLAHUT_STEPS = 30

TO_BOUNDARY = 0.9
"""Share of the way to the boundary. With more, log q changes too much in a step."""

TINY = 1e-300


def best_for_laws(
    laws: Array,
    sources: Array,
    distortion: Array,
    minimize: str,
    number: float,
    tol: float,
    clock: Clock,
) -> Optimum:
    """Return the channel that trades max_k I(X;Y) under distribution k best for max_j E_j d(X,Y).

    The dual bound is that of `cvxleak.iterative.design_terms.dual_bound`. The tangents are taken at
    a few Blahut steps q(y|x) ~ exp( sum_k w_k p_k(x) log r_k(y) - cost ) from the iterate, which
    gives the outputs that die out their right shape.

    Parameters
    ----------
    laws, sources : arrays, shapes (K, n) and (J, n)
        What the adversaries believe, and what the distortion counts under.
    distortion : array, shape (n, m)
    minimize : {"information", "distortion", "sum"}
        The information for a distortion of `number`, which has to leave an interior; the
        distortion for an information of `number` > 0; or information + `number` x distortion.
    tol : float
        Stop when the duality gap is at most this, in the unit of what is minimized.
    """
    scaled = laws / laws.sum(axis=1, keepdims=True), sources / sources.sum(axis=1, keepdims=True)
    terms = DesignTerms(tuple(scaled[0]), scaled[1][:, :, None] * distortion)
    path = _CentralPath(terms, minimize, number)
    best = dual = path.assessed()
    gap, fruitless, steps = math.inf, 0, 0
    while True:
        now = path.assessed()
        # The best channel and the best multipliers need not be from the same iterate.
        if now.lower > dual.lower:
            dual = now
        if now.gap(dual) < best.gap(dual):
            best = now
        fruitless = 0 if best.gap(dual) < gap else fruitless + 1
        gap = min(gap, best.gap(dual))
        if gap <= tol or fruitless == PATIENCE or steps == MAX_STEPS or clock.late:
            break
        try:
            spend(1e6 + distortion.size * (distortion.shape[0] + len(laws) + len(sources)) ** 2)
            path.advance()
        except (LinAlgError, np.linalg.LinAlgError):
            break
        steps += 1
    return dual.point._replace(channel=best.point.channel, iterations=steps)


class _Assessed(NamedTuple):
    """An iterate's value, what it exceeds the budgets by, and what its multipliers prove."""

    objective: float
    excess: Array
    lower: float
    budget_prices: Array
    point: Optimum

    def gap(self, dual: _Assessed) -> float:
        """Return value less bound, the excess counted at ten times the multipliers' prices.

        At the prices themselves points off the budget would pass: the Lagrangian is flat there.
        """
        missed = 10 * float(dual.budget_prices @ np.maximum(self.excess, 0.0))
        return abs(self.objective - dual.lower + missed)


class _Step(NamedTuple):
    """A direction in (q, z), (weights, slacks), and the levels."""

    q: Array
    z: Array
    prices: Array
    slacks: Array
    levels: Array
    rows: Array


class _CentralPath:
    """The iterate and its Newton steps. Distortions are divided by the largest.

    The constraints are I_k <= (level or R) and E_j <= (level or D), their multipliers `prices` and
    slacks `slacks` in this order; the levels are what is minimized.
    """

    def __init__(self, terms: DesignTerms, minimize: str, target: float) -> None:
        self.scale = float(terms.costs.max()) or 1.0
        self.terms = DesignTerms(terms.secrets, terms.costs / self.scale)
        self.minimize = minimize
        k, j = len(terms.secrets), len(terms.costs)
        self.k = k
        n, m = terms.shape
        self.limits = np.zeros(k + j)
        prices = []
        if minimize != "distortion":
            prices.append((slice(0, k), 1.0))
        else:
            self.limits[:k] = target
        if minimize == "distortion":
            prices.append((slice(k, k + j), 1.0))
        elif minimize == "sum":
            prices.append((slice(k, k + j), target * self.scale))
        else:
            self.limits[k:] = target / self.scale
        self.member = np.zeros((k + j, len(prices)))
        for place, (part, _) in enumerate(prices):
            self.member[part, place] = 1.0
        self.cost = np.array([price for _, price in prices])
        self.q, self.z = np.full((n, m), 1 / m), np.full((n, m), 1 / n)
        self.rows = np.zeros(n)
        self._evaluate()
        values = self._values()
        self.levels = np.array(
            [values[self.member[:, f] > 0].max() + 0.5 for f in range(len(prices))]
        )
        room = self.limits + self.member @ self.levels - values
        self.slacks = np.maximum(room, 0.1)
        self.prices = np.concatenate([np.full(k, 1 / k), np.ones(j)])
        if minimize == "sum":
            self.prices[k:] = prices[1][1] / j
            self.z *= max(1.0, prices[1][1])

    def assessed(self) -> _Assessed:
        """Return what the iterate is worth."""
        w, mu = self.prices[: self.k].copy(), self.prices[self.k :].copy()
        if self.minimize == "distortion":
            w, mu = w / mu.sum(), mu / mu.sum()
        else:
            w, mu = w / w.sum(), mu / w.sum()
        if self.minimize == "sum":
            mu *= self.cost[1] / mu.sum() if mu.sum() > 0 else 0.0
        reference = _blahut(self.terms, self.q, w, mu)
        lower = dual_bound(self.terms, self.terms.slopes(reference), w, mu)
        leak, spent = float(self.values.max()), float(self.spent.max())
        unit = self.scale if self.minimize == "distortion" else 1.0
        excess, priced = np.zeros(1), np.zeros(1)
        if self.minimize == "information":
            lower -= float(mu.sum() * self.limits[-1])
            objective, excess, priced = leak, self.spent - self.limits[-1], mu
        elif self.minimize == "distortion":
            lower -= float(w.sum() * self.limits[0])
            objective, excess, priced = spent, self.values - self.limits[0], w
        else:
            objective = leak + float(self.cost[1]) * spent
        channel = self.q / self.q.sum(axis=1, keepdims=True)
        point = Optimum(channel, reference, w * unit, mu * unit / self.scale, spent * self.scale, 0)
        return _Assessed(objective * unit, excess, lower * unit, priced * unit, point)

    def advance(self) -> None:
        """Do a Newton step."""
        solve = self._newton()
        affine = solve(-self.q * self.z, -self.slacks * self.prices)
        primal, dual = self._lengths(affine, 1.0)
        count = self.q.size + len(self.slacks)
        mu = (float((self.q * self.z).sum()) + float(self.slacks @ self.prices)) / count
        ahead = float(((self.q + primal * affine.q) * (self.z + dual * affine.z)).sum())
        ahead += float(
            (self.slacks + primal * affine.slacks) @ (self.prices + dual * affine.prices)
        )
        target = mu * min(max((ahead / count / mu) ** 3, 1e-4), 1.0)
        step = solve(
            target - self.q * self.z - affine.q * affine.z,
            target - self.slacks * self.prices - affine.slacks * affine.prices,
        )
        length = min(self._lengths(step, TO_BOUNDARY))
        self.q = np.maximum(self.q + length * step.q, TINY)
        self.z = np.maximum(self.z + length * step.z, TINY)
        self.slacks = self.slacks + length * step.slacks
        self.prices = self.prices + length * step.prices
        self.levels = self.levels + length * step.levels
        self.rows = self.rows + length * step.rows
        self._evaluate()

    def _evaluate(self) -> None:
        self.gradients = self.terms.slopes(self.q)
        self.values = self.terms.information(self.q, self.gradients)
        self.spent = self.terms.distortions(self.q)

    def _values(self) -> Array:
        return np.concatenate([self.values, self.spent])

    def _lengths(self, step: _Step, share: float) -> tuple[float, float]:
        primal = min(to_boundary(self.q, step.q), to_boundary(self.slacks, step.slacks))
        dual = min(to_boundary(self.z, step.z), to_boundary(self.prices, step.prices))
        return share * primal, share * dual

    def _newton(self) -> Callable[[Array, Array], _Step]:
        """Return a function (complementarity of q, of the slacks) -> direction."""
        n, m = self.q.shape
        rank = len(self.prices)
        diagonal, left, right = self._inverse_parts()
        cells = np.concatenate([self.gradients, self.terms.costs])  # (K + J, n, m)

        def inverse(stack: Array) -> Array:
            """Apply the inverse Hessian to a stack (m, n, c)."""
            correction = left.transpose(0, 2, 1) @ (right @ stack)
            return diagonal[:, :, None] * stack - correction

        border = inverse(np.ascontiguousarray(cells.transpose(2, 1, 0)))  # (m, n, K + J)
        flat = cells.transpose(2, 1, 0).reshape(n * m, rank)
        system = np.zeros((n + rank + len(self.cost),) * 2)
        system[:n, :n] = np.diag(diagonal.sum(axis=0)) - left.reshape(-1, n).T @ right.reshape(
            -1, n
        )
        system[:n, n : n + rank] = -border.sum(axis=0)
        system[n : n + rank, :n] = border.sum(axis=0).T
        system[n : n + rank, n : n + rank] = -flat.T @ border.reshape(n * m, rank)
        system[range(n, n + rank), range(n, n + rank)] -= self.slacks / self.prices
        system[n : n + rank, n + rank :] = -self.member
        system[n + rank :, n : n + rank] = self.member.T
        q_residual = np.tensordot(self.prices, cells, 1) - self.z - self.rows[:, None]
        room = self._values() - self.limits - self.member @ self.levels + self.slacks
        row_residual = 1 - self.q.sum(axis=1)
        level_residual = self.cost - self.member.T @ self.prices

        def solve(cells_target: Array, slack_target: Array) -> _Step:
            start = inverse((cells_target / self.q - q_residual).T[:, :, None])[:, :, 0]
            right_side = np.concatenate(
                [
                    row_residual - start.sum(axis=0),
                    -room - slack_target / self.prices - flat.T @ start.ravel(),
                    level_residual,
                ]
            )
            found = np.asarray(np.linalg.solve(system, right_side), dtype=float)
            rows, prices, levels = found[:n], found[n : n + rank], found[n + rank :]
            move = start - border @ prices
            move += inverse(np.broadcast_to(rows[None, :, None], (m, n, 1)))[:, :, 0]
            dq = np.ascontiguousarray(move.T)
            dz = (cells_target - self.z * dq) / self.q
            slacks = (slack_target - self.slacks * prices) / self.prices
            return _Step(dq, dz, prices, slacks, levels, rows)

        return solve

    def _inverse_parts(self) -> tuple[Array, Array, Array]:
        """Return (d, L, R) with inverse Hessian block y = diag(d_y) - L_y' R_y."""
        w = self.prices[: self.k]
        laws = np.array(self.terms.secrets)
        weighted = w[:, None] * laws
        rho = weighted.sum(axis=0)[:, None]
        share = self.q / (rho + self.z)
        factors = np.sqrt(w)[:, None] * laws
        others = np.array([np.delete(weighted, k, 0).sum(axis=0) for k in range(self.k)])
        core = -np.einsum("kx,lx,xy->ykl", factors, factors, share, optimize=True)
        core[:, range(self.k), range(self.k)] = (
            laws @ (share * self.z) + (laws * others) @ share
        ).T
        left = factors[None] * share.T[:, None, :]
        right = np.asarray(-np.linalg.solve(core, left), dtype=float)
        return share.T, left, right


def _blahut(terms: DesignTerms, channel: Array, w: Array, mu: Array) -> Array:
    """Return the best of a few Blahut steps at fixed multipliers, by the dual bound."""
    laws = np.array(terms.secrets)
    weighted = w[:, None] * laws
    rho = np.maximum(weighted.sum(axis=0), TINY)[:, None]
    cost = np.tensordot(mu, terms.costs, 1)
    log_output = np.log(np.maximum(laws @ channel, TINY))
    best, value = channel, -math.inf
    for _ in range(BLAHUT_STEPS):
        logs = (weighted.T @ log_output - cost) / rho
        top = logs.max(axis=1, keepdims=True)
        level = top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
        # Columns are scaled to a largest entry of 1, so that those that die out keep their shape.
        columns = logs - level
        shift = columns.max(axis=0)
        scaled = np.maximum(np.exp(columns - shift), TINY)
        renewed = np.log(np.maximum(laws @ scaled, TINY)) + shift
        rows = -rho * level + weighted.T @ (log_output - renewed)
        bound = float(rows.min(axis=1).sum())
        if bound > value:
            best, value = scaled, bound
        log_output = renewed
    return best
