"""Algorithm 3 of SEQUENTIAL: a grid of multipliers, a search among them, and time-sharing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, generator, in_order, one_of, real_number
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.release_data import ReleaseData, information_loss
from cvxleak.iterative.release_fixed import distortion_blahut_arimoto, information_blahut_arimoto
from cvxleak.model import Distortion

__all__ = ["MultiplierPoint", "Utility", "multiplier_grid", "release_search"]

Utility = Literal["distortion", "information"]

TRACED = ("mu_1", "mu_2", "value", "epsilon", "delta")
"""What the history has of each run."""
COARSE = (0.0, 0.01, 0.1, 1.0)
"""Multipliers of the grid that the search begins with, in units of the range of the costs."""


@dataclass(frozen=True)
class MultiplierPoint:
    """A point of the curve D(epsilon, delta) or I(epsilon, delta), and the kernel that attains it.

    Attributes
    ----------
    mu_1, mu_2 : float
        The multipliers, per nat.
    value : float
        E d(R̂,R), or I(R̂;R) in nats.
    epsilon, delta : float
        I(R̂;X) and I(R̂,Z;X), in nats.
    kernel : array, shape (Z, X, outputs)
    dual : float
        For a distortion, what bounds every kernel's d + mu_1 I(R̂;X) + mu_2 I(R̂,Z;X) from below.

    Examples
    --------
    >>> from cvxleak.iterative import multiplier_grid
    >>> (point,) = multiplier_grid([[[0.45, 0.05]], [[0.05, 0.45]]], [0.5], [0.0])
    >>> round(point.value, 3), round(point.epsilon, 3)
    (0.234, 0.24)
    """

    mu_1: float
    mu_2: float
    value: float
    epsilon: float
    delta: float
    kernel: Array
    dual: float


class _Curve:
    """Runs Blahut–Arimoto for pairs of multipliers and measures the kernels."""

    def __init__(
        self,
        joint: ArrayLike,
        utility: Utility,
        distortion: Distortion | ArrayLike | None,
        outputs: int | None,
        rng: np.random.Generator,
    ) -> None:
        one_of(utility, ("distortion", "information"), "utility")
        if utility == "information" and distortion is not None:
            raise ValidationError("distortion: found one; utility 'information' has none")
        self.data = ReleaseData.of(joint, distortion, outputs)
        self.convex = utility == "distortion"
        self.sign = 1 if self.convex else -1
        self._rng = rng
        self._matrix = distortion
        self._outputs = self.data.cost.shape[1]
        law = np.zeros(self.data.terms.shape)
        law[self.data.terms.z, self.data.terms.x] = self.data.terms.weights
        independent = np.outer(law.sum(axis=1), law.sum(axis=0))
        positive = law > 0
        self.earlier = float(law[positive] @ np.log(law[positive] / independent[positive]))

    @property
    def scale(self) -> float:
        return (float(np.ptp(self.data.cost, axis=1).max()) or 1.0) if self.convex else 1.0

    def point(
        self,
        mu: tuple[float, float],
        start: Array | None,
        restarts: int,
        tol: float,
        max_iterations: int,
        seconds: float | None = None,
    ) -> MultiplierPoint:
        options = {
            "outputs": self._outputs,
            "start": start,
            "tol": tol,
            "max_iterations": max_iterations,
            "time_limit": seconds,
        }
        joint = self.data.joint
        if self.convex:
            run = distortion_blahut_arimoto(joint, *mu, distortion=self._matrix, **options)
            return self.measured(mu, run.point, run.value - float(run.history["gap"][-1]))
        run = information_blahut_arimoto(joint, *mu, restarts=restarts, rng=self._rng, **options)
        return self.measured(mu, run.point)

    def measured(
        self, mu: tuple[float, float], kernel: Array, dual: float = -math.inf
    ) -> MultiplierPoint:
        terms = self.data.terms
        rows = terms.rows(kernel)
        epsilon, more = terms.information(rows)
        if self.convex:
            value = float(terms.weights @ (rows * self.data.cost).sum(axis=1))
        else:
            with np.errstate(divide="ignore"):
                loss = information_loss(self.data, np.log(rows))
            value = -float(terms.weights @ np.where(rows > 0, rows * loss, 0.0).sum(axis=1))
        return MultiplierPoint(
            *mu, value, max(float(epsilon), 0.0), self.earlier + max(float(more), 0.0), kernel, dual
        )

    def constant(self) -> MultiplierPoint:
        """Return the best release that says nothing."""
        best = int((self.data.terms.weights @ self.data.cost).argmin())
        kernel = np.zeros((*self.data.terms.shape, self._outputs))
        kernel[..., best] = 1.0
        return self.measured((math.inf, math.inf), kernel)


def multiplier_grid(
    joint: ArrayLike,
    mu_1: Sequence[float],
    mu_2: Sequence[float],
    *,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    outputs: int | None = None,
    restarts: int = 3,
    tol: float = 1e-9,
    max_iterations: int = 5_000,
    rng: int | np.random.Generator | None = 0,
) -> tuple[MultiplierPoint, ...]:
    """Return points of the curve D(epsilon, delta), or points below I(epsilon, delta).

    One for each pair of multipliers, by Algorithm 1 (each run starts near the previous one's
    kernel) or Algorithm 2.

    Parameters
    ----------
    joint : array_like, shape (R, Z, X)
        The distribution p(r,z,x).
    mu_1, mu_2 : sequence of float
        Multipliers >= 0 per nat: the grid is all pairs.
    utility : {"distortion", "information"}
    distortion, outputs
        As in `distortion_blahut_arimoto`.
    tol, max_iterations
        Of each run.
    restarts : int
        Random starts of Algorithm 2.
    rng : int, numpy.random.Generator or None
        For the random starts of Algorithm 2.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Notes
    -----
    SEQUENTIAL Algorithm 3, lines 4 to 9, and Figs. 3 and 5.

    Examples
    --------
    >>> from cvxleak.iterative import multiplier_grid
    >>> joint = [[[0.45, 0.05]], [[0.05, 0.45]]]
    >>> [round(point.value, 3) for point in multiplier_grid(joint, [0.0, 0.1, 1.0], [0.0])]
    [0.1, 0.1, 0.348]
    """
    curve = _Curve(joint, utility, distortion, outputs, generator(rng))
    points: list[MultiplierPoint] = []
    rows, columns = in_order(mu_1, "mu_1"), in_order(mu_2, "mu_2")
    for one in rows:
        start = None
        for two in columns:
            point = curve.point((one, two), start, restarts, tol, max_iterations)
            points.append(point)
            if curve.convex:
                start = 0.9 * point.kernel + 0.1 / point.kernel.shape[2]
    return tuple(points)


def release_search(
    joint: ArrayLike,
    epsilon: float,
    delta: float,
    *,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    outputs: int | None = None,
    mu_1: Sequence[float] | None = None,
    mu_2: Sequence[float] | None = None,
    restarts: int = 3,
    tol: float = 1e-6,
    max_rounds: int = 100,
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = 0,
) -> IterativeResult:
    """Choose a release under budgets by a search over multipliers.

    Minimize E d(R̂,R), or look for a large I(R̂;R), subject to I(R̂;X) <= epsilon and
    I(R̂,Z;X) <= delta.

    Parameters
    ----------
    joint : array_like, shape (R, Z, X)
        The distribution p(r,z,x).
    epsilon, delta : float
        Budgets, in nats, epsilon <= delta. Without room, at epsilon = 0 or delta = I(Z;X), no
        multiplier is the right one: the search goes to larger and larger ones and is slow.
        `cvxleak.release.release_problem` has no such trouble.
    utility : {"distortion", "information"}
    distortion, outputs
        As in `distortion_blahut_arimoto`.
    mu_1, mu_2 : sequence of float, optional
        Multipliers of the grid that the search begins with: all pairs. If left out, 0, 0.01, 0.1
        and 1 times the range of the costs.
    restarts : int
        Random starts of Algorithm 2 at each pair of the grid.
    tol : float
        Stop when the gap is at most this share of the range of the costs; for an information when
        a round gains at most so many nats.
    max_rounds : int
        Most Blahut–Arimoto runs after the grid.
    time_limit : float, optional
        In seconds; one point of the grid is always finished.
    rng : int, numpy.random.Generator or None
        For the random starts of Algorithm 2.

    Returns
    -------
    IterativeResult
        `point` is a kernel, shape (Z, X, outputs), that meets the budgets up to rounding, and
        `value` its utility. `history` has ``objective``, the best value so far; for a distortion
        also ``lower``, the best bound so far that a dual value gives; and for each run, the grid
        first, ``mu_1``, ``mu_2``, ``value``, ``epsilon`` and ``delta``, as in `MultiplierPoint`.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or epsilon > delta.
    InfeasibleError
        delta below I(Z;X), which the earlier outputs have already revealed.

    Notes
    -----
    SEQUENTIAL Algorithm 3, with its line 10 made precise. The triples (utility, epsilon, delta) of
    all runs so far are time-shared as well as they can be: a linear program over their weights,
    at most three of which are not zero. Its own multipliers are the next pair to try, a run that
    starts near the mixture or one of its kernels: with one multiplier this is a bisection that
    uses slopes. By convexity the mixture of the kernels meets the budgets, which are inequalities
    and need not be used up.

    For a distortion dual(mu) - mu_1 epsilon - mu_2 delta at each pair bounds D(epsilon, delta) from
    below, so the search knows when it has arrived. For an information the mixture of kernels has
    less utility and leaks less than the program counts on, so in the end its weights are adjusted
    until a budget is used up; and a run may end in a local optimum. What comes out is a feasible
    release, and a lower bound on I(epsilon, delta); `cvxleak.release.release_problem` proves an
    upper bound.

    Examples
    --------
    >>> from cvxleak.iterative import release_search
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> round(release_search(joint, 0.05, 0.104).value, 5)
    0.36873
    """
    real_number(epsilon, "epsilon", 0.0, open_high=True)
    real_number(delta, "delta", 0.0, open_high=True)
    if epsilon > delta:
        raise ValidationError(f"epsilon: found {epsilon!r}; it must be at most delta, {delta!r}")
    real_number(tol, "tol", 0.0)
    clock = Clock(time_limit)
    curve = _Curve(joint, utility, distortion, outputs, generator(rng))
    if delta < curve.earlier:
        raise InfeasibleError(
            f"delta: found {delta!r}; the earlier outputs tell I(Z;X) = {curve.earlier!r} nats "
            "already, so it must be at least that"
        )
    scale = curve.scale
    coarse = [scale * multiplier for multiplier in COARSE]
    rows = coarse if mu_1 is None else in_order(mu_1, "mu_1")
    columns = coarse if mu_2 is None else in_order(mu_2, "mu_2")
    # An information's run need not end to be of use, and the last steps are the slow ones.
    accuracy, most = (1e-3, 20_000) if curve.convex else (0.1, 500)
    points = [curve.constant()]
    for mu in itertools.product(rows, columns):
        points.append(curve.point(mu, None, restarts, accuracy * tol * scale, 500, clock.limit))
        if clock.late:
            break
    best = points[0]
    objective: list[float] = []
    lower: list[float] = []
    while True:
        weights, mu, value = _time_share(
            points, [curve.sign * point.value for point in points], (epsilon, delta)
        )
        shared = [(w, point) for w, point in zip(weights, points, strict=True) if w > 0]
        mixture = curve.measured(mu, np.sum([w * point.kernel for w, point in shared], axis=0))
        inside = [p for p in points if p.epsilon <= epsilon and p.delta <= delta]
        best = min([best, mixture, *inside], key=lambda point: curve.sign * point.value)
        objective.append(best.value)
        lower.append(max(p.dual - p.mu_1 * epsilon - p.mu_2 * delta for p in points[1:]))
        if value - lower[-1] <= tol * scale:
            stopped = "the gap is within tol"
        elif len(objective) > max_rounds:
            stopped = "max_rounds reached"
        elif clock.late:
            stopped = "time_limit reached"
        else:
            near = mixture
            if not curve.convex and mixture.value < -0.9 * value:
                # The kernels use the same outputs for different things: near their mixture is none.
                _, near = max(shared, key=lambda part: part[0] * part[1].value)
            start = 0.999 * near.kernel + 0.001 / near.kernel.shape[2]
            points.append(curve.point(mu, start, 1, 0.1 * tol * scale, most, clock.limit))
            new = points[-1]
            over = mu[0] * (new.epsilon - epsilon) + mu[1] * (new.delta - delta)
            if curve.convex or value - curve.sign * new.value - over > tol:
                continue
            stopped = "a round gains at most tol"
        if not curve.convex:
            ends = [
                _stretched(curve, p, q, (epsilon, delta))
                for p in (mixture, best)
                for _, q in shared
            ]
            best = max([best, *ends], key=lambda point: point.value)
        history = {"objective": np.array(objective)}
        history |= {"lower": np.array(lower)} if curve.convex else {}
        history |= {name: np.array([getattr(p, name) for p in points[1:]]) for name in TRACED}
        return IterativeResult(best.value, best.kernel, len(points) - 1, stopped, history)


def _stretched(
    curve: _Curve, inner: MultiplierPoint, outer: MultiplierPoint, budgets: tuple[float, float]
) -> MultiplierPoint:
    """Return the mixture of two that is as near to the outer one as the budgets allow.

    Utility is convex in the share, as the leakages are: it is largest at an end.
    """
    low, high, best = 0.0, 1.0, inner
    for _ in range(40):
        share = (low + high) / 2
        kernel = share * outer.kernel + (1 - share) * inner.kernel
        point = curve.measured((math.nan, math.nan), kernel)
        if point.epsilon <= budgets[0] and point.delta <= budgets[1]:
            low, best = share, point
        else:
            high = share
    return best


def _time_share(
    points: Sequence[MultiplierPoint], costs: Sequence[float], budgets: tuple[float, float]
) -> tuple[Array, tuple[float, float], float]:
    """Return the weights of the best mixture of points, the budgets' multipliers, and its value."""
    leaks = np.array([[p.epsilon for p in points], [p.delta for p in points]])
    program = linprog(
        costs,
        A_ub=leaks,
        b_ub=budgets,
        A_eq=np.ones((1, len(points))),
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    weights = np.maximum(program.x, 0.0)
    # The constant release, first of the points, takes what rounding has put over a budget.
    weights[1:] *= min(1.0, 1 / weights.sum())
    weights[0] = max(0.0, 1 - weights[1:].sum())
    mu_1, mu_2 = np.maximum(-program.ineqlin.marginals, 0.0)
    return weights, (float(mu_1), float(mu_2)), float(weights @ costs)
