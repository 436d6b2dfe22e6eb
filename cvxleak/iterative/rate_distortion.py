"""The rate-distortion function of one law by a primal-dual interior-point method."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.special import entr

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.core.validation import real_number, whole_number
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult
from cvxleak.model import Distortion, Prior, as_prior

__all__ = ["RatePoint", "blahut_rate_distortion", "rate_distortion_interior_point"]

PATIENCE = 20
"""Updates without a smaller gap after which the method gives up."""

STEEPEST = 700.0
"""Largest slope times smallest positive distortion: e^-700 is about the smallest number."""

TINY = 1e-300


class RatePoint(NamedTuple):
    """What `rate_distortion_interior_point` returns as its point.

    Attributes
    ----------
    channel : array, shape (n, m)
        q(y|x), proportional to r(y) e^{-s d(x,y)} in y.
    output : array, shape (m,)
        r, a law on the outputs.
    slope : float
        s, the information that a unit of distortion saves: -dR/dD.

    Examples
    --------
    >>> from cvxleak.iterative import rate_distortion_interior_point
    >>> run = rate_distortion_interior_point([0.5, 0.5], [[0, 1], [1, 0]], distortion_budget=0.25)
    >>> run.point.channel.round(3)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """

    channel: Array
    output: Array
    slope: float


def rate_distortion_interior_point(
    prior: Prior | ArrayLike,
    distortion: Distortion | ArrayLike,
    *,
    distortion_budget: float | None = None,
    information_budget: float | None = None,
    slope: float | None = None,
    tol: float = 1e-9,
    max_iterations: int = 500,
    time_limit: float | None = None,
) -> IterativeResult:
    r"""Trade I(X;Y) for E d(X,Y) with a fixed law of X: the rate-distortion function.

    Exactly one of the three numbers is given:

    - `distortion_budget` D: minimize I(X;Y) subject to E d <= D,
    - `information_budget` R: minimize E d subject to I(X;Y) <= R,
    - `slope` s: minimize I(X;Y) + s E d.

    Parameters
    ----------
    prior : Prior or array_like, shape (n,)
        The law p of X. Inputs of probability 0 are given rows, but have no say.
    distortion : Distortion or array_like, shape (n, m)
        d(x, y) >= 0.
    distortion_budget : float
        D, strictly between the least possible distortion, sum_x p(x) min_y d(x,y), and the least
        that needs no information, min_y sum_x p(x) d(x,y).
    information_budget : float
        R > 0, in nats, below what the least distortion needs.
    slope : float
        s >= 0, nats per unit of d.
    tol : float
        Stop when the duality gap is at most this: in nats, or for R in the unit of d.
    max_iterations : int
        Most Newton steps.
    time_limit : float, optional
        Seconds after which the best point so far is returned.

    Returns
    -------
    IterativeResult
        `value`: the objective at the `point`, a `RatePoint`. The budget is met up to rounding only.
        `history`: ``objective``, ``distortion``, ``slope`` and ``gap`` per iterate, ``step`` per
        update.

    Raises
    ------
    ValidationError
        Arguments that do not fit, or not exactly one of the three numbers.
    SolverError
        The Newton system cannot be factorized.

    Notes
    -----
    Eliminating q leaves a function of the output law r alone (Blahut 1972),

    .. math:: \phi(r, s) = -\sum_x p_x \log c_x + \sum_y r_y - 1, \quad
              c_x = \sum_y r_y e^{-s d_{xy}},

    convex in r >= 0 and concave in s; its minimum over r is min I + s E d. So m + 1 unknowns do,
    not n m. A Newton step solves the conditions 1 - g_y = z_y, r_y z_y = mu, with
    g_y = sum_x p_x e^{-s d_xy} / c_x, together with E d = D, in r, z and s at once: one
    Cholesky factorization of an m x m matrix, used for Mehrotra's predictor and corrector. For any
    r and s, alpha_x = 1 / (c_x max_y g_y) is feasible in the dual problem max sum_x p_x log alpha_x
    - s D, sum_x p_x alpha_x e^{-s d_xy} <= 1 (Csiszár 1974), which gives the gap. For R, Newton's
    method finds the D with R(D) = R: R(D) is convex and -s is its derivative.

    Examples
    --------
    A fair bit: R(D) = log 2 - h(D).

    >>> from cvxleak.iterative import rate_distortion_interior_point
    >>> hamming = [[0.0, 1.0], [1.0, 0.0]]
    >>> run = rate_distortion_interior_point([0.5, 0.5], hamming, distortion_budget=0.1)
    >>> round(run.value, 9), round(run.point.slope, 6)
    (0.368064207, 2.197225)
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
    run = _Run(whole_number(max_iterations, "max_iterations", 0), Clock(time_limit))
    p, d = _law_and_costs(prior, distortion)
    if goal == "information_budget":
        return _least_distortion(p, d, target, enough, run)
    return run.solve(_CentralPath(p, d, goal, target), enough)


def blahut_rate_distortion(
    prior: Prior | ArrayLike,
    distortion: Distortion | ArrayLike,
    slope: float,
    *,
    tol: float = 1e-9,
    max_iterations: int = 100_000,
) -> IterativeResult:
    """Minimize I(X;Y) + s E d(X,Y) by Blahut's iteration: r_y <- r_y g_y.

    g_y = sum_x p_x e^{-s d_xy} / c_x with c_x = sum_y r_y e^{-s d_xy}. The plain method, kept for
    comparison: `rate_distortion_interior_point` needs ten steps where this one may need 10^5.

    Parameters
    ----------
    prior, distortion, slope
        As in `rate_distortion_interior_point`.
    tol : float
        Stop when log max_y g_y, a bound of the gap in nats, is at most this.
    max_iterations : int
        Most updates.

    Returns
    -------
    IterativeResult
        `point` is a `RatePoint`; `history` has ``objective`` and ``gap`` per iterate and ``step``
        sum_y |change of r_y| per update.

    Raises
    ------
    ValidationError
        Arguments that do not fit.

    Notes
    -----
    Blahut, IEEE Trans. Inf. Theory 18 (1972), 460.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import blahut_rate_distortion
    >>> run = blahut_rate_distortion([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], np.log(9))
    >>> run.point.channel.round(6)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    s = real_number(slope, "slope", 0.0, open_high=True)
    enough = real_number(tol, "tol", 0.0)
    cap = whole_number(max_iterations, "max_iterations", 0)
    p, d = _law_and_costs(prior, distortion)
    least = d.min(axis=1)
    tilt = np.exp(-s * (d - least[:, None]))
    r = np.full(d.shape[1], 1 / d.shape[1])
    history: dict[str, list[float]] = {"objective": [], "gap": [], "step": []}
    while True:
        c = tilt @ r
        g = (p / c) @ tilt
        objective, gap = float(s * (p @ least) - p @ np.log(c)), math.log(g.max())
        history["objective"].append(objective)
        history["gap"].append(gap)
        if gap <= enough or len(history["step"]) == cap:
            break
        history["step"].append(float(np.abs(r * g - r).sum()))
        r = r * g
    stopped = "the gap is within tol" if gap <= enough else "max_iterations reached"
    point = RatePoint(tilt * r / c[:, None], r, s)
    arrays = {name: np.array(values) for name, values in history.items()}
    return IterativeResult(objective, point, len(history["step"]), stopped, arrays)


def _law_and_costs(
    prior: Prior | ArrayLike, distortion: Distortion | ArrayLike
) -> tuple[Array, Array]:
    labels = distortion.inputs if isinstance(distortion, Distortion) else None
    costs = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
    law = as_prior(prior, len(costs.inputs), "prior", labels)
    d = costs.matrix
    return law.probabilities / law.probabilities.sum(), d


def _least_distortion(p: Array, d: Array, budget: float, tol: float, run: _Run) -> IterativeResult:
    """Find D with R(D) = budget: Newton's method, which convexity keeps on the safe side."""
    low, high = float(p @ d.min(axis=1)), float((p @ d).min())
    share = min(budget / max(float(entr(p).sum()), TINY), 0.95)
    guess = high - share * (high - low)
    while True:
        # The slope at a budget turns nats into the unit of d.
        found = run.solve(_CentralPath(p, d, "distortion_budget", guess), 0.0, tol)
        spent, s = run.history["distortion"][-1], found.point.slope
        off = (found.value - budget) / s
        if abs(off) <= tol or run.ended:
            break
        # Where R is above the budget Newton's step does not pass the root.
        ahead = guess + off
        if ahead <= low:
            ahead = low + (guess - low) / 1000
        elif ahead >= high:
            ahead = (high + guess) / 2
        if ahead == guess:
            break
        guess = ahead
    return IterativeResult(spent, found.point, found.iterations, found.stopped, found.history)


class _Run:
    """The limits and the history of one call, which may follow several central paths."""

    def __init__(self, cap: int, clock: Clock) -> None:
        self.cap, self.clock = cap, clock
        self.history: dict[str, list[float]] = {
            name: [] for name in ("objective", "distortion", "slope", "gap", "step")
        }
        self.ended = False

    def solve(
        self, path: _CentralPath, tol: float, tol_of_distortion: float = 0.0
    ) -> IterativeResult:
        """Follow a path to a gap of `tol` nats, or of `tol_of_distortion` times the slope."""
        steps = self.history["step"]
        if steps:
            steps.append(0.0)
        best, gap, fruitless = path.snapshot(), math.inf, 0
        while True:
            now = path.gap()
            for name, value in zip(
                ("objective", "distortion", "slope", "gap"),
                (path.objective, path.distortion, path.natural_slope, now),
                strict=True,
            ):
                self.history[name].append(value)
            if now < gap:
                best, gap, fruitless = path.snapshot(), now, 0
            else:
                fruitless += 1
            if gap <= max(tol, 0.1 * tol_of_distortion * path.natural_slope):
                stopped = "the gap is within tol"
            elif len(steps) >= self.cap:
                stopped, self.ended = "max_iterations reached", True
            elif self.clock.late:
                stopped, self.ended = "time_limit reached", True
            elif fruitless == PATIENCE:
                stopped = "the gap no longer falls: limit of floating-point arithmetic"
            else:
                steps.append(path.advance())
                continue
            value, point = best
            arrays = {name: np.array(values) for name, values in self.history.items()}
            return IterativeResult(value, point, len(steps), stopped, arrays)


class _CentralPath:
    """The iterate (r, z, s) and Newton steps towards the optimum; distortions are scaled."""

    def __init__(self, p: Array, d: Array, goal: str, target: float) -> None:
        self.p, self.goal = p, goal
        self.least = d.min(axis=1)
        excess = d - self.least[:, None]
        self.scale = float(excess.max()) or 1.0
        self.d = excess / self.scale
        self.base = float(p @ self.least)
        self.target = target
        if goal == "distortion_budget":
            self.target = max(target - self.base, 0.0) / self.scale
        elif goal == "slope":
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

    @property
    def objective(self) -> float:
        if self.goal == "slope":
            return self.information + self.natural_slope * self.distortion
        return self.information

    def snapshot(self) -> tuple[float, RatePoint]:
        """Return the objective and the point."""
        channel = self.tilt * self.r / self.c[:, None]
        channel /= channel.sum(axis=1, keepdims=True)
        return self.objective, RatePoint(channel, self.r / self.r.sum(), self.natural_slope)

    def gap(self) -> float:
        """Return the duality gap, together with what the budget is missed by."""
        gap = math.log(self.g.max()) + math.log(self.r.sum())
        if self.goal == "distortion_budget":
            return gap + self.s * abs(self.spent - self.target)
        return gap

    def advance(self) -> float:
        """Do a Newton step and return its length."""
        r, z, s = self.r, self.z, self.s
        weight = self.p / self.c
        tilted = self.tilt * self.d
        b = weight @ tilted - (weight * self.e) @ self.tilt
        second = (tilted * self.d) @ self.r
        variance = max(float(self.p @ (second / self.c - self.e**2)), 0.0)
        factor = self._factor()
        t = cho_solve(factor, b, check_finite=False)
        residual = z - (1 - self.g)
        mu = float(r @ z) / len(r)

        def direction(complementarity: Array) -> tuple[Array, float, Array]:
            u = cho_solve(factor, residual + complementarity / r, check_finite=False)
            ds = self._slope_step(u, t, b, variance)
            dr = u - t * ds
            return dr, ds, (complementarity - z * dr) / r

        dr, _, dz = direction(-r * z)
        reached = (r + _to_boundary(r, dr) * dr) @ (z + _to_boundary(z, dz) * dz) / len(r)
        sigma = (reached / mu) ** 3
        dr, ds, dz = direction(sigma * mu - r * z - dr * dz)
        # s moves by at most its own size upward and half of it downward: all else depends on e^-s.
        limit = min(1.0, (s if ds > 0 else 0.5 * s) / abs(ds)) if ds else 1.0
        primal = min(0.995 * _to_boundary(r, dr), limit)
        dual = min(0.995 * _to_boundary(z, dz), limit)
        self.r = np.maximum(r + primal * dr, TINY)
        self.z = np.maximum(z + dual * dz, TINY)
        self.s = min(s + primal * ds, self.steepest)
        self._evaluate()
        return primal

    def _slope_step(self, u: Array, t: Array, b: Array, variance: float) -> float:
        if self.goal == "slope":
            return 0.0
        return float((b @ u + self.spent - self.target) / (variance + b @ t + TINY))

    def _factor(self) -> tuple[Array, bool]:
        scaled = self.tilt * (np.sqrt(self.p) / self.c)[:, None]
        hessian = scaled.T @ scaled
        diagonal = hessian.diagonal() + self.z / self.r
        # Equal and nearly equal columns make the matrix singular as mu -> 0.
        for exponent in range(-15, 3, 2):
            np.fill_diagonal(hessian, diagonal * (1 + 10.0**exponent))
            try:
                return cho_factor(hessian, lower=True, check_finite=False)
            except LinAlgError:
                continue
        raise SolverError("the Newton system of the rate-distortion problem cannot be factorized")

    def _evaluate(self) -> None:
        self.tilt = np.exp(-self.s * self.d)
        self.c = self.tilt @ self.r
        self.e = ((self.tilt * self.d) @ self.r) / self.c
        self.g = (self.p / self.c) @ self.tilt
        self.spent = float(self.p @ self.e)
        level = -float(self.p @ np.log(self.c))
        self.information = level - self.s * self.spent + math.log(self.r.sum())

    def _starting_slope(self) -> float:
        """Return the slope that fits a uniform r, if there is one."""
        if self.goal == "slope":
            return min(self.target, self.steepest)
        mean = float(self.p @ self.d.mean(axis=1)) or 1.0

        def excess(log_s: float) -> float:
            tilt = np.exp(-math.exp(log_s) * self.d)
            return float(self.p @ ((tilt * self.d).sum(axis=1) / tilt.sum(axis=1))) - self.target

        low, high = math.log(1e-3 / mean), math.log(self.steepest)
        if excess(low) <= 0:
            return 1 / mean
        if excess(high) >= 0:
            return self.steepest
        return math.exp(float(brentq(excess, low, high, xtol=1e-2)))  # pyright: ignore[reportArgumentType]


def _to_boundary(values: Array, change: Array) -> float:
    """Return the largest step in [0, 1] that keeps values + step * change >= 0."""
    return 1 / max(1.0, float((-change / values).max()))
