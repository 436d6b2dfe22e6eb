"""Designs with fixed priors by a primal-dual interior-point method on the channel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError

from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import real_number, whole_number
from cvxleak.iterative.design_terms import DesignTerms, dual_bound
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult

__all__ = ["DesignPoint", "design_interior_point"]

PATIENCE = 25
BLAHUT_STEPS = 30
CENTERING_STEPS = 40
DYING = 1e-3
"""Outputs less likely than this for every input may be on their way out."""

TO_BOUNDARY = {True: 0.9, False: 0.6}
"""Share of the way to the boundary, for laws of X and for tables.

With more, log q changes too much in a step, and outputs that die out lose their shape.
"""

TINY = 1e-300


class DesignPoint(NamedTuple):
    """What `design_interior_point` returns as its point.

    Attributes
    ----------
    channel : array, shape (n, m)
        q(y|x).
    reference : array, shape (n, m)
        Where the tangents of the dual bound are taken; only its columns' shapes matter.
    weights : array, shape (K,)
        w_k >= 0 of the secrets.
    prices : array, shape (J,)
        mu_j >= 0 of the sources' distortions.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import DesignPoint
    >>> half = np.full((2, 2), 0.5)
    >>> DesignPoint(half, half, weights=np.ones(1), prices=np.ones(1)).channel.shape
    (2, 2)
    """

    channel: Array
    reference: Array
    weights: Array
    prices: Array


def design_interior_point(
    secrets: Iterable[ArrayLike],
    sources: Iterable[ArrayLike],
    distortion: ArrayLike,
    *,
    distortion_budget: float | None = None,
    information_budget: float | None = None,
    slope: float | None = None,
    tol: float = 1e-9,
    max_iterations: int = 150,
    time_limit: float | None = None,
) -> IterativeResult:
    r"""Trade max_k I(A_k;Y) for max_j E_j d(X,Y) with fixed priors: one convex program.

    Exactly one of the three numbers is given:

    - `distortion_budget` D: minimize max_k I_k subject to E_j d <= D for all j,
    - `information_budget` R: minimize max_j E_j d subject to I_k <= R for all k,
    - `slope` s: minimize max_k I_k + s max_j E_j d.

    Parameters
    ----------
    secrets : iterable of array_like, each of shape (n,), or each of shape (A_k, n)
        Laws of the input X, for I_k = I(X;Y) under the k-th law; or joint laws P_k(a, x) of a
        secret (a record's value) and the input.
    sources : iterable of array_like, each of shape (n,)
        The laws p_j of the input under which the distortion counts.
    distortion : array_like, shape (n, m)
        d(x, y) >= 0.
    distortion_budget, information_budget, slope : float
        The budgets must leave an interior: D above the least possible, R > 0.
    tol : float
        Stop when the duality gap is at most this: in nats, or for R in the unit of d.
    max_iterations : int
        Most Newton steps.
    time_limit : float, optional
        Seconds after which the best point so far is returned.

    Returns
    -------
    IterativeResult
        `value`: the objective at the `point`, a `DesignPoint`; the budget is met up to the gap.
        `history`: ``objective``, ``lower`` (the dual bound), ``distortion``, ``gap`` per iterate,
        ``step`` per update.

    Raises
    ------
    ValidationError
        Arguments that do not fit, or not exactly one of the three numbers.

    Notes
    -----
    Newton's method on the optimality conditions, with Mehrotra's predictor and corrector. The
    Hessian of sum_k w_k I_k is block diagonal over the outputs; each block is a diagonal matrix
    (that of the bounds q >= 0) plus a matrix of the rank of the secrets, for a table
    P' D^{-1/2} (1 - u u') D^{-1/2} P with D = diag s(.,y) and u = sqrt(s(.,y) / r(y)). So a step
    costs one n x n system for the row sums, and never one of n m unknowns. For laws of X the
    Laplacian form of sum_k w_k (diag(p_k/q) - p_k p_k' / r_k) avoids the cancellation along q.

    The dual bound is that of `cvxleak.iterative.design_terms.dual_bound`. For laws of X the
    tangents are taken at a few Blahut steps q(y|x) ~ exp( sum_k w_k p_k(x) log r_k(y) - cost )
    from the iterate, which gives the outputs that die out their right shape.

    Examples
    --------
    A fair bit: log 2 - h(0.1).

    >>> from cvxleak.iterative import design_interior_point
    >>> hamming = [[0.0, 1.0], [1.0, 0.0]]
    >>> fair = [0.5, 0.5]
    >>> run = design_interior_point([fair], [fair], hamming, distortion_budget=0.1)
    >>> round(run.value, 8)
    0.36806421
    """
    given = {
        "distortion_budget": distortion_budget,
        "information_budget": information_budget,
        "slope": slope,
    }
    goals = [(name, value) for name, value in given.items() if value is not None]
    if len(goals) != 1:
        raise ValidationError(
            f"distortion_budget: found {len(goals)} of distortion_budget, information_budget and "
            "slope; exactly one is needed"
        )
    goal, number = goals[0]
    target = real_number(number, goal, 0.0, open_high=True)
    enough = real_number(tol, "tol", 0.0)
    cap = whole_number(max_iterations, "max_iterations", 0)
    clock = Clock(time_limit)
    terms = DesignTerms.checked(secrets, sources, distortion)
    path = _CentralPath(terms, goal, target)
    history: dict[str, list[float]] = {
        name: [] for name in ("objective", "lower", "distortion", "gap", "step")
    }
    best = dual = path.assessed()
    gap, fruitless, singular = math.inf, 0, False
    while True:
        now = path.assessed()
        for name, number in zip(
            ("objective", "lower", "distortion", "gap"),
            (now.objective, now.lower, now.distortion, now.gap(now)),
            strict=True,
        ):
            history[name].append(number)
        # The best channel and the best multipliers need not be from the same iterate.
        if now.lower > dual.lower:
            dual = now
        if now.gap(dual) < best.gap(dual):
            best = now
        fruitless = 0 if best.gap(dual) < gap else fruitless + 1
        gap = min(gap, best.gap(dual))
        if gap <= enough:
            stopped = "the gap is within tol"
        elif len(history["step"]) == cap:
            stopped = "max_iterations reached"
        elif clock.late:
            stopped = "time_limit reached"
        elif fruitless == PATIENCE or singular:
            stopped = "the gap no longer falls: limit of floating-point arithmetic"
        else:
            try:
                history["step"].append(path.advance())
            except (LinAlgError, np.linalg.LinAlgError):
                history["step"].append(0.0)
                singular = True
            continue
        arrays = {name: np.array(values) for name, values in history.items()}
        point = dual.point._replace(channel=best.point.channel)
        return IterativeResult(best.objective, point, len(history["step"]), stopped, arrays)


class _Assessed(NamedTuple):
    """An iterate's value, what it exceeds the budgets by, and what its multipliers prove."""

    objective: float
    excess: Array
    distortion: float
    lower: float
    budget_prices: Array
    point: DesignPoint

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

    def __init__(self, terms: DesignTerms, goal: str, target: float) -> None:
        self.scale = float(terms.costs.max()) or 1.0
        self.terms = DesignTerms(terms.secrets, terms.costs / self.scale)
        self.goal = goal
        k, j = len(terms.secrets), len(terms.costs)
        self.k = k
        n, m = terms.shape
        self.limits = np.zeros(k + j)
        prices = []
        if goal != "information_budget":
            prices.append((slice(0, k), 1.0))
        else:
            self.limits[:k] = target
        if goal == "information_budget":
            prices.append((slice(k, k + j), 1.0))
        elif goal == "slope":
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
        if goal == "slope":
            self.prices[k:] = prices[1][1] / j
            self.z *= max(1.0, prices[1][1])

    def assessed(self) -> _Assessed:
        """Return what the iterate is worth."""
        w, mu = self.prices[: self.k].copy(), self.prices[self.k :].copy()
        if self.goal == "information_budget":
            w, mu = w / mu.sum(), mu / mu.sum()
        else:
            w, mu = w / w.sum(), mu / w.sum()
        if self.goal == "slope":
            mu *= self.cost[1] / mu.sum() if mu.sum() > 0 else 0.0
        reference, slopes = self.q, self.gradients
        if self.terms.total:
            reference = _blahut(self.terms, self.q, w, mu)
            slopes = self.terms.slopes(reference)
        lower = dual_bound(self.terms, slopes, w, mu)
        if not self.terms.total and self.q.min() < DYING:
            rows = self.rows * (w.sum() / self.prices[: self.k].sum())
            reference = _centered(self.terms, self.q, w, mu, rows)
            slopes = self.terms.slopes(reference)
            lower = max(lower, dual_bound(self.terms, slopes, w, mu))
        leak, spent = float(self.values.max()), float(self.spent.max())
        unit = self.scale if self.goal == "information_budget" else 1.0
        excess, priced = np.zeros(1), np.zeros(1)
        if self.goal == "distortion_budget":
            lower -= float(mu.sum() * self.limits[-1])
            objective, excess, priced = leak, self.spent - self.limits[-1], mu
        elif self.goal == "information_budget":
            lower -= float(w.sum() * self.limits[0])
            objective, excess, priced = spent, self.values - self.limits[0], w
        else:
            objective = leak + float(self.cost[1]) * spent
        channel = self.q / self.q.sum(axis=1, keepdims=True)
        point = DesignPoint(channel, reference, w * unit, mu * unit / self.scale)
        return _Assessed(
            objective * unit, excess, spent * self.scale, lower * unit, priced * unit, point
        )

    def advance(self) -> float:
        """Do a Newton step and return its length."""
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
        length = min(self._lengths(step, TO_BOUNDARY[self.terms.total]))
        self.q = np.maximum(self.q + length * step.q, TINY)
        self.z = np.maximum(self.z + length * step.z, TINY)
        self.slacks = self.slacks + length * step.slacks
        self.prices = self.prices + length * step.prices
        self.levels = self.levels + length * step.levels
        self.rows = self.rows + length * step.rows
        self._evaluate()
        return length

    def _evaluate(self) -> None:
        self.gradients = self.terms.slopes(self.q)
        self.values = self.terms.information(self.q, self.gradients)
        self.spent = self.terms.distortions(self.q)

    def _values(self) -> Array:
        return np.concatenate([self.values, self.spent])

    def _lengths(self, step: _Step, share: float) -> tuple[float, float]:
        primal = min(_to_boundary(self.q, step.q), _to_boundary(self.slacks, step.slacks))
        dual = min(_to_boundary(self.z, step.z), _to_boundary(self.prices, step.prices))
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
        if self.terms.total:
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
        diagonal = (self.q / self.z).T
        factors = _factors(self.terms, self.q, w)
        left = factors * diagonal[:, None, :]
        core = np.eye(factors.shape[1]) + left @ factors.transpose(0, 2, 1)
        return diagonal, left, np.asarray(np.linalg.solve(core, left), dtype=float)


def _factors(terms: DesignTerms, channel: Array, w: Array) -> Array:
    """Return F with Hessian of sum_k w_k I_k = F_y' F_y for output y, shape (m, rank, n)."""
    blocks = []
    for table, weight in zip(terms.secrets, w, strict=True):
        joint = np.maximum(table @ channel, TINY).T
        u = np.sqrt(joint / joint.sum(axis=1, keepdims=True))
        half = (np.eye(len(table)) - u[:, :, None] * u[:, None, :]) / np.sqrt(joint)[:, None, :]
        blocks.append(math.sqrt(weight) * half @ table)
    return np.concatenate(blocks, axis=1)


def _centered(terms: DesignTerms, channel: Array, w: Array, mu: Array, rows: Array) -> Array:
    """Return a reference whose tangents leave room at the outputs that die out, if any can.

    With f_y(q) = sum_k w_k I_k + <cost - rows, q> for the column q of output y alone, homogeneous
    of degree one, the minimizer of f_y(q) - sum_x log q_x has the gradient 1/q > 0. It is found by
    damped Newton steps, for all columns at once that have a negative entry in their gradient.
    """
    cost = np.tensordot(mu, terms.costs, 1) - rows[:, None]
    room = np.tensordot(w, terms.slopes(channel), 1) + cost
    bad = np.flatnonzero((room < 0).any(axis=0) & (channel.max(axis=0) < DYING))
    if not len(bad):
        return channel
    columns = DesignTerms(terms.secrets, terms.costs[:, :, bad])
    q = np.ones((len(channel), len(bad)))
    for _ in range(CENTERING_STEPS):
        gradient = np.tensordot(w, columns.slopes(q), 1) + cost[:, bad] - 1 / q
        factors, inverse = _factors(columns, q, w), (q**2).T
        left = factors * inverse[:, None, :]
        core = np.eye(factors.shape[1]) + left @ factors.transpose(0, 2, 1)
        stack = gradient.T[:, :, None]
        step = inverse[:, :, None] * stack
        step -= left.transpose(0, 2, 1) @ np.linalg.solve(core, left @ stack)
        decrement = np.sqrt(np.maximum((step * stack).sum(axis=(1, 2)), 0.0))
        q = q - (step[:, :, 0] / (1 + decrement)[:, None]).T
        if (decrement < 0.1).all():
            break
    reference = channel.copy()
    reference[:, bad] = q / q.max(axis=0)
    return reference


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


def _to_boundary(values: Array, change: Array) -> float:
    """Return the largest step in [0, 1] that keeps values + step * change >= 0."""
    return 1 / max(1.0, float((-change / values).max()))
