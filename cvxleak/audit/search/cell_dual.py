"""The bound of a node: dual of the leakage problem with the posteriors confined to cells.

For an adversary w (lumped, see `cvxleak.model.Lumped`) write s_{a,y} = sum_g w_{a,g} R_{a,g}(y) and
rho_y for the posterior of A given y. Then I(w) = H(A) - sum_y s_y H(rho_y), and s_y (-H(rho_y)) is
convex and homogeneous in s_{.,y}. Where rho_y lies in a simplex with vertices V_y (rows), it is at
most the interpolation of -H on the rays through the vertices, so the node's problem

    maximize H(A) - sum_{y,j} theta_{y,j} H(V_{y,j})
    subject to s_{.,y}(w) = sum_j theta_{y,j} V_{y,j}, theta >= 0, F(w) >= b, w in the simplex

bounds the leakage of every adversary whose posteriors are in the cells. Its Lagrange dual is in
closed form: for any lam >= 0 and mu >= 0, with nu_y = V_y^{-1} (mu_y - H(V_y)) and
c_{a,g} = sum_y R_{a,g}(y) nu_{y,a},

    U(lam, mu) = (1 + lam) log sum_a exp(phi_a / (1 + lam)) - lam b,
    phi_a = lam log sum_g m_{a,g} exp(c_{a,g} / lam)      (max_g c_{a,g} at lam = 0).

Limits <C_j, w> <= d_j + t_j F(w) on the adversary add multipliers kappa >= 0: sum_j kappa_j
C_{j,a,g} is taken from c_{a,g}, <kappa, d> added to U, and lam + <kappa, t> takes the place of lam
(but for lam b). A price <e, w>, to be added to the leakage (`cvxleak.audit.search.coarse`), is
added to c.

**Other gains** (`cvxleak.audit.search.objective`). Nothing but convexity of -H was used: with G in
its place V_y^{-1} (mu_y + G(V_y)) is the nu of the largest posterior gain sum_y s_y G(rho_y), and
without H(A) lam takes the place of 1 + lam. With -t G(pi) instead, pi the distribution of A, take
tangents r_w of G, <r_w, pi> <= G(pi): for any theta >= 0 with sum t, sum_w theta_w r_{w,a} may be
taken from c_{a,g}. These are multipliers like kappa, of which the sum is known.

Any multipliers give a valid bound, so nothing here has to converge for the search to be right.
`CellDual` minimizes U for many nodes at once with a primal-dual interior-point method.

In floating point U is computed from means instead of sums. With s_{a,g} = m_{a,g} / |X| the uniform
prior and s_a its marginal,

    U = (1 + lam) log E_a exp((phi_a - log s_a) / (1 + lam)) + lam (log|X| - b),
    phi_a = lam log E_{g|a} exp(c_{a,g} / lam),

where no large numbers cancel, whatever lam: near b = log|X| it has no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.search.means import entropy_surplus, log_mean_exp, tilted
from cvxleak.audit.search.objective import INFORMATION, Objective
from cvxleak.audit.search.systems import longest, opposites, solved, without_shared
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.model import Limits, Lumped
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["CellDual", "CellSolution", "Cells"]


LARGEST_LAM = 1e9
LARGEST_MU = 1e5
"""Multipliers stay below these. Those of a facet that nothing touches, or of a cell that no
posterior reaches, would grow without limit and spoil the precision of the bound."""

SQUARES_LIMIT = 1 << 22
"""Most numbers that the table of all products of two columns may have; past it they are computed
for each node, which is slower."""

LEFT, LEFT_OF_LAM = 0.005, 0.3
"""Least share of a multiplier, and of lam, that a step leaves: with lam the Hessian changes fast,
and a lam that is too small too soon is slow to recover (where no limit's multiplier counts)."""

CENTERED = 100.0
"""Most by which a product of a multiplier and its slack is off the one that a step aims at."""

RESTART, FRESH = 30, 1e-3
"""After how many steps nodes under limits start again, and where: multipliers inherited for limits,
equations above all, may be far from any that serve a small cell."""

ITERATIONS = 60
"""Most Newton steps of a node."""

ROUNDS = 12
"""Most rounds in which tangents of a gain are moved."""

BATCH_BYTES = 1 << 28
"""About how much memory the arrays of one batch may take."""


def never() -> bool:
    """Do not stop."""
    return False


@dataclass(frozen=True)
class Cells:
    """The cells of a batch of nodes: `vertices[b, y, j, a]`, and what follows from them.

    `inverse[b, y, a, j]` is V_y^{-1}; `heights[b, y, j]` is G(V_{y,j}), which is -H for Shannon's
    gain, and `offset[b, y, a]` is V_y^{-1} G(V_y). `tangents[b, w, a]` are those of each node, if
    a gain of the prior is taken off.
    """

    vertices: Array
    inverse: Array
    heights: Array
    offset: Array
    tangents: Array

    @classmethod
    def of(
        cls,
        vertices: Array,
        objective: Objective = INFORMATION,
        points: Array | None = None,
    ) -> Cells:
        """Return the cells with the given vertices, shape (B, |Y|, k, k).

        `points`, of shape (B, W, k), says where the gain has its tangents, where that is open.

        Where splits have made a cell as narrow as rounding, its inverse is not a number: no
        multipliers prove anything, and what its parent proved stands.
        """
        if vertices.shape[-1] == 2:
            (p, q), (r, s) = np.moveaxis(vertices, (-2, -1), (0, 1))
            adjugate = np.stack([np.stack([s, -q], -1), np.stack([-r, p], -1)], -2)
            size = (p * s - q * r)[..., None, None]
            inverse = adjugate / np.where(size == 0, np.nan, size)
        else:
            flat = (np.linalg.det(vertices) == 0)[..., None, None]
            inverse = np.linalg.inv(np.where(flat, np.eye(vertices.shape[-1]), vertices))
            inverse = np.where(flat, np.nan, inverse)
        heights = objective.heights(vertices)
        offset = np.einsum("byaj,byj->bya", inverse, heights)
        tangents = objective.tangents(len(vertices), vertices.shape[-1], points)
        return cls(vertices, inverse.astype(np.float64, copy=False), heights, offset, tangents)

    def take(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Cells:
        """Return the cells of some of the nodes."""
        return Cells(
            self.vertices[chosen],
            self.inverse[chosen],
            self.heights[chosen],
            self.offset[chosen],
            self.tangents[chosen],
        )


@dataclass(frozen=True)
class Task:
    """What stays the same while the multipliers of a batch are improved, per node."""

    cells: Cells
    surplus: Array
    least: Array  # of lam

    def take(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Task:
        return Task(self.cells.take(chosen), self.surplus[chosen], self.least[chosen])


@dataclass
class CellSolution:
    """What `CellDual.solve` found for each node of a batch.

    Attributes
    ----------
    bound : array, shape (B,)
        U at the stored multipliers, with an allowance for the rounding of c: a valid upper bound.
    lam : array, shape (B,)
    mu : array, shape (B, |Y|, k)
    kappa : array, shape (B, J)
    joint : array, shape (B, k, |Y|)
        s_{a,y} of the maximizing w, where the next split is chosen.
    weights : array, shape (B, N)
        The maximizing w itself (only nearly feasible), a start for the local search.
    iterations : int
        Newton steps taken by the batch.
    """

    bound: Array
    lam: Array
    mu: Array
    kappa: Array
    joint: Array
    weights: Array
    iterations: int


@dataclass
class _Point:
    """U and its derivatives at the multipliers of a batch."""

    value: Array
    gradient: Array
    hessian: Array
    joint: Array
    weights: Array


class CellDual:
    """Minimizes U for batches of nodes of one lumped problem, perhaps under linear limits."""

    def __init__(
        self,
        lumped: Lumped,
        entropy_floor: float,
        limits: Limits | None = None,
        price: Array | None = None,
        boxes: tuple[Array, Array] | None = None,
        objective: Objective = INFORMATION,
    ) -> None:
        self.values = len(lumped.values)
        self.outputs = lumped.rows.shape[1]
        self.objective = objective
        self.limits = Limits.none(lumped) if limits is None else limits
        self._opposites = opposites(self.limits)
        # The multipliers of the tangents come last, after those of limits, and add up to `times`.
        self._limits = slice(None, len(self.limits.bounds))
        self._tangents = slice(1 + self.outputs * self.values + len(self.limits.bounds), None)
        self.surplus = entropy_surplus(lumped, entropy_floor)
        # With lam + <kappa, t> for lam throughout, lam b too, a limit's side is d + t b.
        self._sides = self.limits.bounds + self.limits.shares * entropy_floor
        counts = np.bincount(lumped.value_index, minlength=self.values)
        slot = np.arange(len(lumped.value_index)) - lumped.starts[lumped.value_index]
        self._place = (lumped.value_index, slot)
        shape = (self.values, int(counts.max()))
        # One column per output, and one per limit.
        columns = np.concatenate([lumped.rows, -self.limits.coefficients.T], axis=1)

        def by_value(rows: Array) -> Array:
            # Values with fewer groups than others are filled up with copies without weight.
            filled = np.repeat(rows[lumped.starts][:, None], shape[1], axis=1)
            filled[self._place] = rows
            return filled

        self.columns = by_value(columns)
        self._boxes = None if boxes is None else (by_value(boxes[0]), by_value(boxes[1]))
        self._price = np.zeros(shape)
        if price is not None:
            self._price += price[lumped.starts][:, None]
            self._price[self._place] = price
        self._columns_t = np.ascontiguousarray(self.columns.swapaxes(1, 2))
        log_shares, log_values = lumped.log_shares
        self._log_values = log_values[:, None]
        self.log_shares = np.full(shape, -np.inf)
        self.log_shares[self._place] = log_shares
        self._largest_log = float(-log_shares.min() - log_values.min())
        tangents = objective.number(self.values)
        self.width = 1 + self.outputs * self.values + len(self.limits.bounds) + tangents
        products = self.columns.size * columns.shape[1]
        self._squares = None
        if products <= SQUARES_LIMIT:
            squares = self.columns[..., :, None] * self.columns[..., None, :]
            self._squares = squares.reshape(*shape, -1)

    @property
    def batch(self) -> int:
        """Number of nodes whose arrays fit into memory together."""
        per_node = 6 * self.width**2 + 2 * self.values * self.columns.shape[2] ** 2
        return max(1, BATCH_BYTES // (8 * (per_node + 8 * self.log_shares.size)))

    def value(
        self,
        cells: Cells,
        lam: Array,
        mu: Array,
        kappa: Array | None = None,
        surplus: Array | None = None,
    ) -> Array:
        """Return U(lam, mu, kappa) for each node; entries of `lam` may be zero.

        The multipliers of tangents follow those of limits in kappa.

        An allowance for the rounding of c is added. `surplus` is log|X| - b per node, if they are
        not all about the same floor b.
        """
        if kappa is None:
            kappa = np.zeros((len(lam), len(self.limits.bounds)))
        c = self._coefficients(cells, mu, kappa)[0]
        limits = kappa[:, self._limits]
        lam = lam + limits @ self.limits.shares
        positive = lam > 0
        safe = np.where(positive, lam, 1.0)[None, :, None]
        smooth = safe[..., 0] * log_mean_exp(c / safe, self.log_shares[:, None, :])
        phi = np.where(positive, smooth, c.max(axis=2))
        share = self.objective.share
        scale = np.where(share + lam > 0, share + lam, 1.0)
        x = (phi - share * self._log_values) / scale
        left = self.surplus if surplus is None else surplus
        value = scale * log_mean_exp(x.T, self._log_values.T) + lam * left
        value = np.where(share + lam > 0, value, phi.max(axis=0))
        value = value + limits @ self._sides + self._allowance(cells, lam, mu, kappa)
        return np.where(np.isnan(value), np.inf, value)

    def solve(
        self,
        cells: Cells,
        lam: Array,
        mu: Array,
        threshold: float | Array,
        *,
        accuracy: float | Array,
        kappa: Array | None = None,
        surplus: Array | None = None,
        stop: Callable[[], bool] = never,
        max_iterations: int = ITERATIONS,
    ) -> CellSolution:
        """Minimize U from the given multipliers, all nodes at once.

        A node stops when U is at most `threshold` (it is pruned), when U minus the duality gap is
        certainly above it (it has to be split anyway), or when the duality gap is at most
        `accuracy`; the two are numbers, or one for each node. `stop()` ends all. `surplus` is as
        for `value`.
        """
        size = len(lam)
        threshold = np.broadcast_to(threshold, size)
        accuracy = np.broadcast_to(accuracy, size)
        if kappa is None:
            kappa = np.zeros((size, len(self.limits.bounds)))
        best = CellSolution(
            bound=np.full(size, np.inf),
            lam=lam.copy(),
            mu=mu.copy(),
            kappa=kappa.copy(),
            joint=np.zeros((size, self.values, self.outputs)),
            weights=np.zeros((size, len(self._place[0]))),
            iterations=0,
        )
        active = np.arange(size)
        # U is not smooth at lam = 0. Keeping lam above its least costs at most accuracy / 4, since
        # dU/dlam = F - b is at most log|X| - b; `_try_zero` then wins it back.
        left = np.full(size, self.surplus) if surplus is None else surplus
        task = Task(cells, left, accuracy / (4 * np.maximum(left, 1e-3)))
        shifted = np.maximum(lam - task.least, task.least)
        z = np.concatenate([shifted[:, None], mu.reshape(size, -1), kappa], axis=1)
        z = self._balanced(np.maximum(z, 1e-9))
        point, slack = self._started(task, z, threshold, accuracy)
        for iteration in range(max_iterations):
            self._record(best, active, z, task, point)
            gap = (z * slack).sum(axis=1)
            miss = np.abs(self._net(z, point.gradient - slack)) @ np.ones(z.shape[1])
            done = point.value <= threshold
            settled = miss <= 1e-2
            done |= settled & (point.value - 4 * gap - miss > threshold) & (iteration >= 2)
            done |= settled & (gap <= accuracy)
            if done.all() or stop():
                break
            keep = ~done
            if done.any():
                active, z, slack = active[keep], z[keep], slack[keep]
                threshold, accuracy = threshold[keep], accuracy[keep]
                task = task.take(keep)
                point = self._take(point, keep)
            best.iterations = iteration + 1
            if iteration == RESTART and len(self.limits.bounds):
                z = self._balanced(np.full_like(z, FRESH))
                point, slack = self._started(task, z, threshold, accuracy)
            spend(1e6 + len(z) * self._node_work)
            z, slack, point = self._step(task, z, slack, point)
            if len(self._opposites):
                own = slice(1 + self.outputs * self.values, self._tangents.start)
                z[:, own] = without_shared(z[:, own], self._opposites)
        doubt = best.lam + best.kappa[:, self._limits] @ self.limits.shares
        best.bound += self._allowance(cells, doubt, best.mu, best.kappa)
        self._try_zero(best, active, task)
        lost = np.isnan(best.bound)
        best.bound[lost], best.joint[lost] = np.inf, 0.0
        best.weights[lost] = 1 / best.weights.shape[1]
        return best

    @property
    def _node_work(self) -> float:
        """The multiplications of a Newton step for one node."""
        return 3e4 + (self.outputs * self.values) ** 3 + len(self._place[0]) * self.outputs**2

    def solve_with_tangents(
        self,
        vertices: Array,
        points: Array,
        lam: Array,
        mu: Array,
        threshold: float,
        *,
        accuracy: Array,
        kappa: Array,
        stop: Callable[[], bool] = never,
        max_iterations: int = ITERATIONS,
    ) -> tuple[CellSolution, Array]:
        """Minimize U, also over where tangents touch the gain; return it and these points.

        A tangent goes to where the solution has the distribution of A, in the place of the one with
        the least multiplier, as long as that makes a difference.
        """
        points = points.copy()
        best = self.solve(
            Cells.of(vertices, self.objective, points),
            lam,
            mu,
            threshold,
            accuracy=accuracy,
            kappa=kappa,
            stop=stop,
            max_iterations=max_iterations,
        )
        first = len(self.limits.bounds)
        for _ in range(ROUNDS):
            laws = best.joint.sum(axis=2)
            mass = laws.sum(axis=1, keepdims=True)
            laws = np.where(mass > 0, laws / np.where(mass > 0, mass, 1.0), 1 / laws.shape[1])
            tangents = self.objective.tangents(len(laws), self.values, points)
            lacking = best.bound > threshold
            lacking &= self.objective.missing(laws, tangents) > accuracy / 2
            again = np.flatnonzero(lacking)
            if not len(again) or stop():
                break
            slot = best.kappa[again][:, first:].argmin(axis=1)
            moved = points[again]
            moved[np.arange(len(again)), slot] = laws[again]
            found = self.solve(
                Cells.of(vertices[again], self.objective, moved),
                best.lam[again],
                np.maximum(best.mu[again], 1e-6),
                threshold,
                accuracy=accuracy[again],
                kappa=np.maximum(best.kappa[again], 1e-6),
                stop=stop,
                max_iterations=max_iterations,
            )
            better = found.bound < best.bound[again]
            if not better.any():
                break
            where = again[better]
            points[where] = moved[better]
            for name in ("bound", "lam", "mu", "kappa", "joint", "weights"):
                getattr(best, name)[where] = getattr(found, name)[better]
        return best, points

    def _started(
        self, task: Task, z: Array, threshold: Array, accuracy: Array
    ) -> tuple[_Point, Array]:
        """Return the point at z, and slacks to start from there."""
        point = self._point(task, z)
        tau = np.maximum(1e-3 * np.clip(point.value - threshold, 0.0, 1.0), accuracy)[:, None]
        slack = point.gradient.copy()
        if self.objective.times:
            slack[:, self._tangents] -= slack[:, self._tangents].min(axis=1, keepdims=True)
        return point, np.maximum(np.maximum(slack, 0.0), tau / z.shape[1] / z)

    def _balanced(self, z: Array) -> Array:
        """Return multipliers of which those of tangents have the sum that they need."""
        if self.objective.times:
            own = z[:, self._tangents]
            z[:, self._tangents] = own * (self.objective.times / own.sum(axis=1, keepdims=True))
        return z

    def _net(self, z: Array, gradient: Array) -> Array:
        """Return a gradient less the multiplier of the sum that tangents' multipliers have."""
        if self.objective.times:
            own = z[:, self._tangents]
            price = (own * gradient[:, self._tangents]).sum(axis=1) / self.objective.times
            gradient[:, self._tangents] -= price[:, None]
        return gradient

    def _allowance(self, cells: Cells, lam: Array, mu: Array, kappa: Array) -> Array:
        """Return how far rounding can put U off: by what it puts c off, and log m in units of lam.

        The latter matters only where the exponents c / lam differ.
        """
        sizes = np.einsum("byaj,byj->bya", np.abs(cells.inverse), mu + np.abs(cells.heights))
        limits = np.abs(self.limits.coefficients).max(axis=1, initial=0.0)
        c = sizes.max(axis=(1, 2)) + kappa[:, self._limits] @ (limits + np.abs(self._sides)) + 1
        if cells.tangents.size:
            c = c + self.objective.times * np.abs(cells.tangents).max(axis=(1, 2))
        return 8 * np.finfo(float).eps * (c + np.minimum(lam, c) * self._largest_log)

    def _step(
        self, task: Task, z: Array, slack: Array, point: _Point
    ) -> tuple[Array, Array, _Point]:
        size = z.shape[1]
        tau = 0.15 * (z * slack).mean(axis=1, keepdims=True)
        matrix = point.hessian.copy()
        diagonal = np.arange(size)
        matrix[:, diagonal, diagonal] += slack / z
        # Symmetric scaling by z makes the system well conditioned whatever the multipliers' sizes.
        matrix *= z[:, :, None] * z[:, None, :]
        largest = matrix[:, diagonal, diagonal].max(axis=1, keepdims=True)
        matrix[:, diagonal, diagonal] += 1e-13 * largest + 1e-300
        right = tau - z * point.gradient
        dz = self._direction(matrix, right, z) * z
        dslack = (tau - slack * dz) / z - slack
        step = longest(z, dz, LEFT)
        free = len(self.limits.bounds) == 0
        if free:
            step = np.minimum(step, longest(z[:, :1], dz[:, :1], LEFT_OF_LAM))
        trial = self._balanced(_capped(z + step * dz))
        new = self._point(task, trial)
        # A step that the local model did not foresee (the Hessian changes fast in lam) is cut.
        merit = point.value - (tau * np.log(z)).sum(axis=1)
        for _ in range(6):
            bad = new.value - (tau * np.log(trial)).sum(axis=1) > merit + 1e-12 + 1e-3 * tau[:, 0]
            bad |= ~np.isfinite(new.value)
            if not bad.any():
                break
            step[bad] *= 0.25
            trial[bad] = self._balanced(_capped(z[bad] + step[bad] * dz[bad]))
            self._put(new, bad, self._point(task.take(bad), trial[bad]))
        slack = slack + longest(slack, dslack, LEFT) * dslack
        if free:
            slack = np.clip(slack, tau / (CENTERED * trial), CENTERED * tau / trial)
        return trial, slack, new

    def _direction(self, matrix: Array, right: Array, z: Array) -> Array:
        """Return the Newton step in units of z, along which the tangents' multipliers keep sum."""
        step = solved(matrix, right[..., None])
        if not self.objective.times:
            return step
        normal = np.zeros_like(z)
        normal[:, self._tangents] = z[:, self._tangents]
        against = solved(matrix, normal[..., None])
        price = (normal * step).sum(axis=1) / (normal * against).sum(axis=1)
        return step - price[:, None] * against

    def _try_zero(self, best: CellSolution, active: NDArray[np.intp], task: Task) -> None:
        """Use lam = 0 where it is better: the floor does not bind there."""
        if len(active) == 0:
            return
        zero = np.zeros(len(active))
        value = self.value(task.cells, zero, best.mu[active], best.kappa[active])
        better = value < best.bound[active]
        best.bound[active[better]] = value[better]
        best.lam[active[better]] = 0.0

    def _record(
        self,
        best: CellSolution,
        active: NDArray[np.intp],
        z: Array,
        task: Task,
        point: _Point,
    ) -> None:
        better = point.value < best.bound[active]
        where = active[better]
        pairs = self.outputs * self.values
        best.bound[where] = point.value[better]
        best.lam[where] = z[better, 0] + task.least[better]
        best.mu[where] = z[better, 1 : 1 + pairs].reshape(-1, self.outputs, self.values)
        best.kappa[where] = z[better, 1 + pairs :]
        best.joint[active] = point.joint
        best.weights[active] = point.weights

    def _coefficients(self, cells: Cells, mu: Array, kappa: Array) -> tuple[Array, Array]:
        """Return c[a, b, g] = sum_y R_{a,g}(y) nu[b,y,a] - sum_j kappa[b,j] C_{j,a,g} + e_{a,g}.

        Less the mixture of tangents, sum_w theta[b,w] r_{b,w,a}, if there are any.

        And the columns that it is made of: those of the problem, or, where rows are only known to
        lie in boxes, for each node the rows in them for which c is largest, [a, b, g, y].
        """
        nu = cells.offset + np.einsum("byaj,byj->bya", cells.inverse, mu)
        price = self._price[:, None, :]
        if cells.tangents.size:
            theta = kappa[:, len(self.limits.bounds) :]
            price = price - np.einsum("bw,bwa->ab", theta, cells.tangents)[..., None]
        kappa = kappa[:, self._limits]
        if self._boxes is not None:
            rows = largest_rows(*self._boxes, nu.transpose(2, 0, 1))
            c = np.einsum("abgy,bya->abg", rows, nu)
            if len(self.limits.bounds):
                own = self.columns[:, None, :, self.outputs :]
                c = c + np.einsum("agj,bj->abg", own[:, 0], kappa)
                own = np.broadcast_to(own, (*rows.shape[:3], own.shape[3]))
                rows = np.concatenate([rows, own], axis=3)
            return c + price, rows
        nu = np.concatenate([nu, np.repeat(kappa[..., None], self.values, axis=2)], axis=1)
        c = np.matmul(np.ascontiguousarray(nu.transpose(2, 0, 1)), self._columns_t)
        return c + price, self.columns

    def _moments(self, v: Array, columns: Array) -> Array:
        """Return E_v[column_i column_j], shape (k, B, columns, columns), for v[a, b, g]."""
        if columns is not self.columns:
            return (columns * v[..., None]).swapaxes(2, 3) @ columns
        k, size, _ = v.shape
        width = self.columns.shape[2]
        if self._squares is not None:
            return np.matmul(v, self._squares).reshape(k, size, width, width)
        result = np.empty((k, size, width, width))
        for a in range(k):
            for b in range(size):
                result[a, b] = (self._columns_t[a] * v[a, b]) @ self.columns[a]
        return result

    def _point(self, task: Task, z: Array) -> _Point:
        cells = task.cells
        size = len(z)
        k, outputs = self.values, self.outputs
        pairs = outputs * k
        kappa = z[:, 1 + pairs :]
        limits = kappa[:, self._limits]
        lam = z[:, 0] + task.least + limits @ self.limits.shares
        mu = z[:, 1 : 1 + pairs].reshape(size, outputs, k)
        c, columns = self._coefficients(cells, mu, kappa)
        scaled = c / lam[:, None]
        # v = s_{g|a} exp(c / lam) / E exp(c / lam), and log_v is relative to s_{g|a}.
        log_total, v = tilted(scaled, self.log_shares[:, None, :])
        log_v = scaled - log_total[..., None]
        share = self.objective.share
        x = (lam * log_total - share * self._log_values) / (share + lam)
        log_norm, pi = tilted(x.T, self._log_values.T)
        log_pi, pi = x - log_norm, pi.T
        value = (share + lam) * log_norm + lam * task.surplus + limits @ self._sides
        # f = -log w + log s: the gradient of F up to a constant.
        f = -log_v - log_pi[..., None]
        mean_f = (v * f).sum(axis=2)
        centered_f = f - mean_f[..., None]
        means = _means(v, columns)
        cov = self._moments(v, columns) - means[..., :, None] * means[..., None, :]
        cov_f = _means(v * centered_f, columns)
        cov_ff = (v * centered_f**2).sum(axis=2)
        mean_r = means[..., :outputs]
        joint = pi[..., None] * mean_r
        inverse = cells.inverse.transpose(2, 0, 1, 3)  # (a, b, y, j)
        # First derivatives: F - b, theta_{y,j}, and d_j - <C_j, w>.
        gradient = np.empty_like(z)
        gradient[:, 0] = (pi * mean_f).sum(axis=0) + task.surplus
        gradient[:, 1 : 1 + pairs] = (inverse * joint[..., None]).sum(axis=0).reshape(size, -1)
        own = slice(1 + pairs, self._tangents.start)
        gradient[:, own] = self._sides + (pi[..., None] * means[..., outputs:]).sum(axis=0)
        # A tangent is a feature of the value alone: nothing varies within one.
        of_tangents = -cells.tangents.transpose(2, 0, 1)
        gradient[:, self._tangents] = (pi[..., None] * of_tangents).sum(axis=0)
        # Second derivatives.
        width = z.shape[1]
        hessian = np.zeros((size, width, width))
        features = np.empty((k, size, width))
        features[..., 0] = mean_f
        features[..., 1 : 1 + pairs] = (inverse * mean_r[..., None]).reshape(k, size, -1)
        features[..., own] = means[..., outputs:]
        features[..., self._tangents] = of_tangents
        part = pi / lam
        hessian[:, 0, 0] = (part * cov_ff).sum(axis=0)
        weighted_f = part[..., None] * cov_f
        cross = (weighted_f[..., :outputs, None] * inverse).sum(axis=0).reshape(size, -1)
        hessian[:, 0, 1 : 1 + pairs] = hessian[:, 1 : 1 + pairs, 0] = cross
        block = np.zeros((size, outputs, k, outputs, k))
        for a in range(k):
            weighted = part[a][:, None, None] * cov[a, :, :outputs, :outputs]
            block += (
                inverse[a][:, :, :, None, None]
                * weighted[:, :, None, :, None]
                * inverse[a][:, None, None, :, :]
            )
        hessian[:, 1 : 1 + pairs, 1 : 1 + pairs] = block.reshape(size, pairs, pairs)
        if len(self.limits.bounds):
            of_limits = (part[..., None, None] * cov[..., outputs:]).transpose(0, 1, 3, 2)
            cross = weighted_f[..., outputs:].sum(axis=0)
            hessian[:, 0, own] = hessian[:, own, 0] = cross
            both = np.einsum("ably,abyj->blyj", of_limits[..., :outputs], inverse)
            both = both.reshape(size, -1, pairs)
            hessian[:, own, 1 : 1 + pairs] = both
            hessian[:, 1 : 1 + pairs, own] = both.swapaxes(1, 2)
            hessian[:, own, own] = of_limits[..., outputs:].sum(axis=0)
        center = (pi[..., None] * features).sum(axis=0)
        spread = features - center
        hessian += np.einsum("abi,abj->bij", (pi / (share + lam))[..., None] * spread, spread)
        shares = self.limits.shares
        if shares.any():
            # Where t > 0 a limit's multiplier counts for lam as well.
            gradient[:, own] += shares * gradient[:, :1]
            hessian[:, :, own] += hessian[:, :, :1] * shares
            hessian[:, own] += shares[:, None] * hessian[:, :1]
        weights = (pi[..., None] * v).transpose(1, 0, 2)[:, self._place[0], self._place[1]]
        return _Point(value, gradient, hessian, joint.transpose(1, 0, 2), weights)

    @staticmethod
    def _take(point: _Point, keep: NDArray[np.bool_]) -> _Point:
        return _Point(
            point.value[keep],
            point.gradient[keep],
            point.hessian[keep],
            point.joint[keep],
            point.weights[keep],
        )

    @staticmethod
    def _put(point: _Point, where: NDArray[np.bool_], new: _Point) -> None:
        point.value[where] = new.value
        point.gradient[where] = new.gradient
        point.hessian[where] = new.hessian
        point.joint[where] = new.joint
        point.weights[where] = new.weights


def _means(v: Array, columns: Array) -> Array:
    """Return sum_g v[a, b, g] columns[a, g], or columns[a, b, g] where each node has its own."""
    if columns.ndim == 3:
        return np.matmul(v, columns)
    return np.matmul(v[..., None, :], columns)[..., 0, :]


def _capped(z: Array) -> Array:
    z[:, 0] = np.minimum(z[:, 0], LARGEST_LAM)
    z[:, 1:] = np.minimum(z[:, 1:], LARGEST_MU)
    return z
