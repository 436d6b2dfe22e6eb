"""Capacity by a primal-dual interior-point method on a working set of rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array, real_number, whole_number
from cvxleak.core.work import spend
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.newton import cholesky_solver, to_boundary
from cvxleak.model import Channel, as_channel

__all__ = ["capacity_interior_point"]

FLOOR = 1e-200
"""Probabilities below this count as 0: subnormal numbers are slow and nothing hangs on them."""

_ALL_ROWS = 64
_RANKING_STEPS = 10
_PATIENCE = 10
_FASTER = 20
"""Multiplications of large matrices that take the time of one that is counted."""


def capacity_interior_point(
    channel: Channel | ArrayLike,
    *,
    tol: float = 1e-9,
    max_iterations: int = 100,
    time_limit: float | None = None,
    work_limit: float | None = None,
) -> IterativeResult:
    """Maximize I(p, Q) over the input distribution p by a primal-dual interior-point method.

    Parameters
    ----------
    channel : Channel or array_like, shape (n, m)
        The rows q(y|x), each divided by its sum.
    tol : float
        Stop when max_x D(q(.|x) || output distribution) - I(p, Q) is at most this many nats.
    max_iterations : int
        Largest number of Newton steps.
    time_limit, work_limit : float, optional
        Seconds, and counted multiplications, after which the best p so far is returned.

    Returns
    -------
    IterativeResult
        `point` is p; `history` has ``objective`` I, ``upper`` max_x D, ``rows`` (size of the
        working set) per iterate and ``step`` (primal step length, 0 where only the working set
        changed) per update.

    Raises
    ------
    ValidationError
        Not a channel, or an option out of range.

    Notes
    -----
    With d_x = sum_y q log q, t = Q'p and D_x = d_x - (Q log t)_x, the optimality conditions of
    max sum_x p_x D_x over the simplex are

        D - lam + z = 0,  sum p = 1,  p_x z_x = mu  (p, z > 0)

    as mu -> 0. A Newton step solves (Q diag(1/t) Q' + diag(z/p)) dp + dlam = right-hand side by a
    Cholesky factorization, with Mehrotra's predictor and corrector and separate step lengths.
    Blahut–Arimoto's linear rate depends on a condition number (for closely spaced inputs it takes a
    million iterations). The number of Newton steps does not; usually it is 8 to 15.

    Some optimal p has at most m positive entries, and the cost of a step is cubic in the number of
    rows. So the method uses a working set of rows: at first those with the largest D_x after 10
    Blahut–Arimoto steps; another row is added when its D_x exceeds lam. ``upper`` is the maximum
    over all rows.

    Examples
    --------
    >>> from cvxleak.iterative import capacity_interior_point
    >>> run = capacity_interior_point([[0.9, 0.1], [0.1, 0.9]])
    >>> round(run.value, 9), run.point.round(6).tolist()
    (0.368064207, [0.5, 0.5])
    """
    real_number(tol, "tol", 0.0)
    clock = Clock(time_limit, work_limit)
    whole_number(max_iterations, "max_iterations", 0)
    matrix = as_channel(channel).matrix
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    matrix = np.where(matrix >= FLOOR, matrix, 0.0)
    negentropy = (matrix * np.log(np.maximum(matrix, FLOOR))).sum(axis=1)
    path = _CentralPath(matrix, negentropy, _promising_rows(matrix, negentropy))
    history: dict[str, list[float]] = {"objective": [], "upper": [], "rows": [], "step": []}
    gap, value, law, fruitless = math.inf, 0.0, path.law(), 0
    while True:
        divergences = path.divergences()
        lower, upper = float(path.p @ divergences[path.rows]), float(divergences.max())
        history["objective"].append(lower)
        history["upper"].append(upper)
        history["rows"].append(len(path.rows))
        if upper - lower < gap:
            gap, value, law, fruitless = upper - lower, lower, path.law(), 0
        else:
            fruitless += 1
        if gap <= tol:
            stopped = "the gap is within tol"
        elif len(history["step"]) == max_iterations:
            stopped = "max_iterations reached"
        elif clock.late:
            stopped = "work_limit reached" if clock.worked_out else "time_limit reached"
        elif fruitless < _PATIENCE:
            size = len(path.rows)
            spend(1e5 + size**2 * (size + matrix.shape[1]) / _FASTER + matrix.size)
            history["step"].append(path.advance(divergences))
            continue
        elif path.grown:
            # Rows that join late may leave the iterate too far off the central path.
            path = _CentralPath(matrix, negentropy, path.rows)
            fruitless = 0
            history["step"].append(0.0)
            continue
        else:
            stopped = "the gap no longer decreases: limit of floating-point arithmetic"
        arrays = {name: np.array(values) for name, values in history.items()}
        return IterativeResult(value, law, len(history["step"]), stopped, arrays)


def _promising_rows(matrix: Array, negentropy: Array) -> NDArray[np.intp]:
    n, m = matrix.shape
    size = max(_ALL_ROWS, min(n // 2, 2 * m))
    if n <= size:
        return np.arange(n)
    p = np.full(n, 1 / n)
    divergences = np.zeros(n)
    for _ in range(_RANKING_STEPS):
        divergences = negentropy - matrix @ np.log(np.maximum(p @ matrix, FLOOR))
        p *= np.exp(divergences - divergences.max())
        p /= p.sum()
    return np.argpartition(-divergences, size - 1)[:size]


class _CentralPath:
    """The iterate (p, lam, z) on a set of rows, and Newton steps towards the optimum."""

    def __init__(self, matrix: Array, negentropy: Array, rows: NDArray[np.intp]) -> None:
        self.matrix, self.negentropy, self.rows = matrix, negentropy, rows
        self.grown = False
        self.active = matrix[rows]
        self.p = np.full(len(rows), 1 / len(rows))
        self.output = self._output()
        self._recenter(self.divergences())

    def law(self) -> Array:
        """Return p on all rows."""
        p = np.zeros(len(self.matrix))
        p[self.rows] = np.where(self.p >= FLOOR, self.p, 0.0)
        return p

    def divergences(self) -> Array:
        """Return D_x at the present output distribution, for all rows."""
        return self.negentropy - self.matrix @ np.log(self.output)

    def advance(self, divergences: Array) -> float:
        """Let rows join if any must; otherwise do a Newton step and return its primal length."""
        outside = divergences > self.lam
        outside[self.rows] = False
        if outside.any():
            self._grow(divergences, np.flatnonzero(outside))
            return 0.0
        p, z = self.p, self.z
        scaled = self.active / np.sqrt(self.output)
        solve = cholesky_solver(scaled @ scaled.T, z / p)
        ones = solve(np.ones(len(p)))
        residual = divergences[self.rows] - self.lam + z

        def direction(complementarity: Array) -> tuple[Array, float, Array]:
            dp = solve(residual + complementarity / p)
            dlam = float(dp.sum() / ones.sum())
            dp = dp - dlam * ones
            return dp, dlam, (complementarity - z * dp) / p

        mu = float(p @ z) / len(p)
        dp, _, dz = direction(-p * z)
        reached = (p + to_boundary(p, dp) * dp) @ (z + to_boundary(z, dz) * dz) / len(p)
        target = mu * (reached / mu) ** 3
        dp, dlam, dz = direction(target - p * z - dp * dz)
        primal, dual = 0.995 * to_boundary(p, dp), 0.995 * to_boundary(z, dz)
        self.p = p + primal * dp
        self.p /= self.p.sum()
        self.z = z + dual * dz
        self.lam += dual * dlam
        self.output = self._output()
        return primal

    def _output(self) -> Array:
        return np.maximum(self.p @ self.active, FLOOR)

    def _grow(self, divergences: Array, new: NDArray[np.intp]) -> None:
        """Let rows join, at most as many as there are."""
        self.grown = True
        most = max(_ALL_ROWS, len(self.rows))
        if len(new) > most:
            new = new[np.argpartition(-divergences[new], most - 1)[:most]]
        mu = float(self.p @ self.z) / len(self.p)
        share = min(math.sqrt(mu), 1 / len(self.p))
        self.rows = np.concatenate([self.rows, new])
        self.active = self.matrix[self.rows]
        self.p = np.concatenate([self.p, np.full(len(new), share)])
        self.p /= self.p.sum()
        self.output = self._output()
        self._recenter(self.divergences())

    def _recenter(self, divergences: Array) -> None:
        """Choose (lam, z) so that z is positive and fits the present p without a residual."""
        inside = divergences[self.rows]
        top = float(divergences.max())
        self.lam = top + max(top - float(self.p @ inside), 1e-15)
        self.z = self.lam - inside
