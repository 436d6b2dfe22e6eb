"""Any distortion: the least worst-case distortion at a given e^epsilon, in few variables.

With u_y the least entry of column y, a row of an epsilon-private channel is u plus a distribution
of mass 1 - sum u with at most (f - 1) u_y on output y, f = e^epsilon; so a row that costs least
fills the cheapest outputs first. By duality its cost is

    c_x(u) = max over m of  m + sum_y u_y ( d(x,y) - m - (f - 1) max(0, m - d(x,y)) ),

convex in u, with the maximum at some m among the d(x, .). The program minimizes
max_P sum_x P(x) c_x over u >= 0 with sum u <= 1 <= f sum u; the cuts m are added as they are
needed, and stay for other values of f.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq

from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.local_dp.linear import Mixture, SourceProgram
from cvxleak.solvers.linear import LinearSolver
from cvxleak.sources import SourceSet

__all__ = ["Optimum", "RowProgram", "least_distortion_rows"]

ROUNDS = 500
"""Rounds of cuts; each adds one that was missing, and there are only so many."""


@dataclass(frozen=True)
class Optimum:
    """What is optimal at one e^epsilon.

    Attributes
    ----------
    ratio : float
        e^epsilon.
    value : float
        The least worst-case distortion.
    least : ndarray, shape (m,)
        u, the least entries of the columns.
    mixture : Mixture
        The worst mixture of sources.
    potentials : ndarray, shape (k,)
        Multipliers of the rows, of sum `value`.
    slope : float
        Derivative of `value` in the ratio, not positive.
    """

    ratio: float
    value: float
    least: Array
    mixture: Mixture
    potentials: Array
    slope: float


class RowProgram:
    """The program above for one source set and one distortion d, shape (k, m)."""

    def __init__(
        self, sources: SourceSet, distortion: Array, *, solver: LinearSolver | None = None
    ) -> None:
        self._sources, self._solver = sources, solver
        self._d = distortion
        self._order = np.argsort(distortion, axis=1, kind="stable")
        self._sorted = np.take_along_axis(distortion, self._order, axis=1)
        least, most = distortion.min(axis=1), distortion.max(axis=1)
        self._scale = max(float(distortion.max()), np.finfo(float).tiny)
        self._cuts = {(x, float(m)) for x in range(len(distortion)) for m in (least[x], most[x])}

    def at(self, ratio: float) -> Optimum:
        """Return the optimum at one e^epsilon >= 1.

        Raises
        ------
        SolverError
            The linear program could not be solved.
        """
        k, m = self._d.shape
        # Columns c (k), v = ratio u (m), theta: v is of size 1 whatever the ratio.
        cost = sparse.hstack([sparse.eye_array(k), sparse.csr_array((k, m + 1))])
        ceiling = np.append(np.zeros(k + m), 1.0)
        program = SourceProgram(self._sources, cost, ceiling, solver=self._solver)
        mass = np.concatenate([np.zeros(k), np.ones(m), [0.0]])
        bounds = [(0.0, None)] * (k + m) + [(None, None)]
        objective = np.append(np.zeros(k + m), 1.0)
        for _ in range(ROUNDS):
            cuts = sorted(self._cuts)
            x = np.array([cut[0] for cut in cuts])
            level = np.array([cut[1] for cut in cuts]) / self._scale
            d = self._d[x] / self._scale
            over = np.maximum(level[:, None] - d, 0.0)
            body = (d - level[:, None]) / ratio - (1 - 1 / ratio) * over
            rows = sparse.hstack(
                [
                    sparse.csr_array((-np.ones(len(x)), (np.arange(len(x)), x)), (len(x), k)),
                    body,
                    np.zeros((len(x), 1)),
                ]
            )
            best = program.minimize(
                objective,
                bounds,
                sparse.vstack([rows, mass[None], -mass[None]]),
                np.concatenate([-level, [ratio, -1.0]]),
            )
            if best is None or best.mixture is None:
                raise SolverError("HiGHS: found no optimum where there is one")
            least = np.maximum(best.columns[k : k + m], 0.0) / ratio
            costs, levels = self.row_costs(least, ratio)
            short = costs / self._scale - best.columns[:k] > 1e-10
            new = {(int(i), float(levels[i])) for i in np.flatnonzero(short)} - self._cuts
            if not new:
                break
            self._cuts |= new
        else:
            raise SolverError(f"the rows needed more than {ROUNDS} rounds of cuts")
        weights, full, empty = best.rows[:-2], best.rows[-2], best.rows[-1]
        potentials: Array = np.bincount(x, weights * level, k).astype(float) * self._scale
        # sum u <= 1 and 1 <= ratio sum u are limits of cuts, at levels of minus and plus infinity.
        potentials[0] += (empty - ratio * full) * self._scale
        below = np.maximum(potentials[:, None] - best.mixture.law[:, None] * self._d, 0.0)
        return Optimum(
            ratio,
            best.value * self._scale,
            least,
            best.mixture,
            potentials,
            -float(least @ below.sum(axis=0)),
        )

    def row_costs(self, least: Array, ratio: float) -> tuple[Array, Array]:
        """Return c(u) and, for each row, the level m that attains it."""
        filled, place = self._fill(least, ratio)
        costs = (filled * self._sorted).sum(axis=1)
        return costs, np.take_along_axis(self._sorted, place[:, None], axis=1)[:, 0]

    def channel(self, least: Array, ratio: float) -> Array:
        """Return the channel whose rows cost least, given u and e^epsilon."""
        filled, _ = self._fill(least, ratio)
        matrix = np.empty_like(filled)
        np.put_along_axis(matrix, self._order, filled, axis=1)
        return matrix / matrix.sum(axis=1, keepdims=True)

    def least_ratio(self, least: Array, budget: float, low: float) -> float | None:
        """Return the smallest e^epsilon >= low at which u meets the budget, or None."""

        def excess(logarithm: float) -> float:
            costs, _ = self.row_costs(least, float(np.exp(logarithm)))
            return self._sources.worst(costs)[0] - budget

        # Below 1 / sum u the rows do not add up to 1.
        end, total = 700.0, float(least.sum())
        if min(total, 1 / low) <= math.exp(-end):
            return None
        low = max(low, 1 / total)
        start = math.log(low)
        if excess(start) <= 0:
            return low
        if excess(end) > 0:
            return None
        while end - start > 1.0 and excess((start + end) / 2) > 0:
            start = (start + end) / 2
        root: Any = brentq(excess, start, end, xtol=1e-16, rtol=np.float64(1e-15))
        return float(np.exp(root))

    def _fill(self, least: Array, ratio: float) -> tuple[Array, NDArray[np.intp]]:
        """Return the rows in the order of their costs, and where each was filled last."""
        base = least[self._order]
        room = np.cumsum((ratio - 1) * base, axis=1)
        spare = max(1.0 - float(least.sum()), 0.0)
        poured = np.minimum(room, spare)
        added = np.diff(poured, axis=1, prepend=0.0)
        place = np.minimum((room < spare).sum(axis=1), base.shape[1] - 1)
        return base + added, place


def least_distortion_rows(distortion: Array) -> Array:
    """Return the channel that answers every input with its cheapest output."""
    matrix = np.zeros_like(distortion)
    matrix[np.arange(len(matrix)), distortion.argmin(axis=1)] = 1.0
    return matrix
