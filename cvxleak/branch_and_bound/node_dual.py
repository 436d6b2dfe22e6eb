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

Any multipliers give a valid bound, so nothing here has to converge for the search to be right.
`NodeDual` minimizes U for many nodes at once with a primal-dual interior-point method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from cvxleak._validation import Array
from cvxleak.model import Lumped

__all__ = ["Cells", "NodeDual", "NodeSolution"]


LARGEST = 1e7
"""Multipliers stay below this: those of a facet that nothing touches, or of a cell that nobody
reaches, would run off to infinity and take the precision of the bound with them."""


@dataclass(frozen=True)
class Cells:
    """The cells of a batch of nodes: `vertices[b, y, j, a]`, and what follows from them.

    `inverse[b, y, a, j]` is V_y^{-1}; `offset[b, y, a]` is V_y^{-1} (-H(V_y)).
    """

    vertices: Array
    inverse: Array
    entropies: Array
    offset: Array

    @classmethod
    def of(cls, vertices: Array) -> Cells:
        """Return the cells with the given vertices, shape (B, |Y|, k, k)."""
        if vertices.shape[-1] == 2:
            (p, q), (r, s) = np.moveaxis(vertices, (-2, -1), (0, 1))
            adjugate = np.stack([np.stack([s, -q], -1), np.stack([-r, p], -1)], -2)
            inverse = adjugate / (p * s - q * r)[..., None, None]
        else:
            inverse = np.linalg.inv(vertices)
        entropies = entr(vertices).sum(axis=-1)
        offset = -np.einsum("byaj,byj->bya", inverse, entropies)
        return cls(vertices, inverse.astype(np.float64, copy=False), entropies, offset)

    def take(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Cells:
        """Return the cells of some of the nodes."""
        return Cells(
            self.vertices[chosen],
            self.inverse[chosen],
            self.entropies[chosen],
            self.offset[chosen],
        )


@dataclass
class NodeSolution:
    """What `NodeDual.solve` found for each node of a batch.

    Attributes
    ----------
    bound : array, shape (B,)
        U at the stored multipliers: a valid upper bound (up to float rounding).
    lam : array, shape (B,)
    mu : array, shape (B, |Y|, k)
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


class NodeDual:
    """Minimizes U for batches of nodes of one lumped problem."""

    def __init__(self, lumped: Lumped, entropy_floor: float) -> None:
        self.values = len(lumped.values)
        self.outputs = lumped.rows.shape[1]
        self.entropy_floor = entropy_floor
        self._slack = max(lumped.max_entropy - entropy_floor, 1e-3)
        counts = np.bincount(lumped.value_index, minlength=self.values)
        slot = np.arange(len(lumped.value_index)) - lumped.starts[lumped.value_index]
        self._place = (lumped.value_index, slot)
        shape = (self.values, int(counts.max()))
        self.rows = np.zeros((*shape, self.outputs))
        self.rows[self._place] = lumped.rows
        self.log_multiplicity = np.full(shape, -np.inf)
        self.log_multiplicity[self._place] = lumped.log_multiplicity
        self._rows_t = np.ascontiguousarray(self.rows.swapaxes(1, 2))
        self._squares = (self.rows[..., :, None] * self.rows[..., None, :]).reshape(*shape, -1)
        self._empty = np.isneginf(self.log_multiplicity)

    def value(self, cells: Cells, lam: Array, mu: Array) -> Array:
        """Return U(lam, mu) for each node; entries of `lam` may be zero."""
        c = self._coefficients(cells, mu)
        positive = lam > 0
        safe = np.where(positive, lam, 1.0)[None, :, None]
        logits = c / safe + self.log_multiplicity[:, None, :]
        top = logits.max(axis=2)
        smooth = safe[..., 0] * (top + np.log(np.exp(logits - top[..., None]).sum(axis=2)))
        hard = np.where(self._empty[:, None, :], -np.inf, c).max(axis=2)
        phi = np.where(positive, smooth, hard)
        x = phi / (1 + lam)
        peak = x.max(axis=0)
        return (1 + lam) * (peak + np.log(np.exp(x - peak).sum(axis=0))) - lam * self.entropy_floor

    def solve(
        self,
        cells: Cells,
        lam: Array,
        mu: Array,
        threshold: float,
        *,
        accuracy: float,
        max_iterations: int = 60,
    ) -> NodeSolution:
        """Minimize U from the given multipliers, all nodes at once.

        A node stops when U is at most `threshold` (it is pruned), when U minus the duality gap is
        certainly above it (it has to be split anyway), or when the duality gap is at most
        `accuracy`.
        """
        size = len(lam)
        best = NodeSolution(
            bound=np.full(size, np.inf),
            lam=lam.copy(),
            mu=mu.copy(),
            joint=np.zeros((size, self.values, self.outputs)),
            weights=np.zeros((size, len(self._place[0]))),
            iterations=0,
        )
        active = np.arange(size)
        # U is not smooth at lam = 0. Keeping lam above this floor costs at most accuracy / 4, since
        # dU/dlam = F - b is at most log|X| - b; `_try_zero` then wins it back.
        floor = accuracy / (4 * self._slack)
        shifted = np.maximum(lam - floor, floor)
        z = np.concatenate([shifted[:, None], mu.reshape(size, -1)], axis=1)
        z = np.maximum(z, 1e-9)
        point = self._point(cells, z, floor)
        slack = np.maximum(point.gradient, 0.0)
        tau = np.maximum(1e-3 * np.clip(point.value - threshold, 0.0, 1.0), accuracy)[:, None]
        slack = np.maximum(slack, tau / z.shape[1] / z)
        for iteration in range(max_iterations):
            self._record(best, active, z, floor, point)
            gap = (z * slack).sum(axis=1)
            miss = np.abs(point.gradient - slack) @ np.ones(z.shape[1])
            done = point.value <= threshold
            settled = miss <= 1e-2
            done |= settled & (point.value - 4 * gap - miss > threshold) & (iteration >= 2)
            done |= settled & (gap <= accuracy)
            if done.all():
                break
            keep = ~done
            if done.any():
                active, z, slack = active[keep], z[keep], slack[keep]
                cells = cells.take(keep)
                point = self._take(point, keep)
            best.iterations = iteration + 1
            z, slack, point = self._step(cells, z, slack, point, floor)
        self._try_zero(best, active, cells)
        return best

    def _step(
        self, cells: Cells, z: Array, slack: Array, point: _Point, floor: float
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
        right = (tau - z * point.gradient)[..., None]
        dz = np.linalg.solve(matrix, right)[..., 0] * z
        dslack = (tau - slack * dz) / z - slack
        step = _longest(z, dz)
        trial = np.minimum(z + step * dz, LARGEST)
        new = self._point(cells, trial, floor)
        # A step that the local model did not foresee (the Hessian changes fast in lam) is cut.
        merit = point.value - (tau * np.log(z)).sum(axis=1)
        for _ in range(6):
            bad = new.value - (tau * np.log(trial)).sum(axis=1) > merit + 1e-12 + 1e-3 * tau[:, 0]
            bad |= ~np.isfinite(new.value)
            if not bad.any():
                break
            step[bad] *= 0.25
            trial[bad] = np.minimum(z[bad] + step[bad] * dz[bad], LARGEST)
            self._put(new, bad, self._point(cells.take(bad), trial[bad], floor))
        slack = slack + _longest(slack, dslack) * dslack
        return trial, slack, new

    def _try_zero(self, best: NodeSolution, active: NDArray[np.intp], cells: Cells) -> None:
        """Use lam = 0 where it is better: the floor does not bind there."""
        if len(active) == 0:
            return
        zero = np.zeros(len(active))
        value = self.value(cells, zero, best.mu[active])
        better = value < best.bound[active]
        best.bound[active[better]] = value[better]
        best.lam[active[better]] = 0.0

    def _record(
        self,
        best: NodeSolution,
        active: NDArray[np.intp],
        z: Array,
        floor: float,
        point: _Point,
    ) -> None:
        better = point.value < best.bound[active]
        where = active[better]
        best.bound[where] = point.value[better]
        best.lam[where] = z[better, 0] + floor
        best.mu[where] = z[better, 1:].reshape(-1, self.outputs, self.values)
        best.joint[active] = point.joint
        best.weights[active] = point.weights

    def _coefficients(self, cells: Cells, mu: Array) -> Array:
        """Return c[a, b, g] = sum_y R_{a,g}(y) nu[b, y, a]."""
        nu = cells.offset + np.einsum("byaj,byj->bya", cells.inverse, mu)
        return np.matmul(np.ascontiguousarray(nu.transpose(2, 0, 1)), self._rows_t)

    def _point(self, cells: Cells, z: Array, floor: float) -> _Point:
        size = len(z)
        k, outputs = self.values, self.outputs
        lam = z[:, 0] + floor
        c = self._coefficients(cells, z[:, 1:].reshape(size, outputs, k))
        scaled = c / lam[:, None]
        logits = scaled + self.log_multiplicity[:, None, :]
        top = logits.max(axis=2, keepdims=True)
        v = np.exp(logits - top)
        total = v.sum(axis=2, keepdims=True)
        v /= total
        log_total = (top + np.log(total))[..., 0]
        x = lam * log_total / (1 + lam)
        peak = x.max(axis=0)
        pi = np.exp(x - peak)
        norm = pi.sum(axis=0)
        pi /= norm
        value = (1 + lam) * (peak + np.log(norm)) - lam * self.entropy_floor
        log_pi = x - peak - np.log(norm)
        # f = -log w + log m: the gradient of F up to a constant.
        f = log_total[..., None] - scaled - log_pi[..., None]
        f[self._empty[:, None, :] & (v == 0)] = 0.0
        mean_f = (v * f).sum(axis=2)
        mean_r = np.matmul(v, self.rows)
        moment = np.matmul(v, self._squares).reshape(k, size, outputs, outputs)
        cov_rr = moment - mean_r[..., :, None] * mean_r[..., None, :]
        cov_fr = np.matmul(v * f, self.rows) - mean_f[..., None] * mean_r
        cov_ff = (v * f * f).sum(axis=2) - mean_f**2
        joint = pi[..., None] * mean_r
        inverse = cells.inverse.transpose(2, 0, 1, 3)  # (a, b, y, j)
        # First derivatives: F - b, and theta_{y,j}.
        gradient = np.empty_like(z)
        gradient[:, 0] = (pi * mean_f).sum(axis=0) - self.entropy_floor
        gradient[:, 1:] = (inverse * joint[..., None]).sum(axis=0).reshape(size, -1)
        # Second derivatives.
        width = z.shape[1]
        hessian = np.zeros((size, width, width))
        means = np.empty((k, size, width))
        means[..., 0] = mean_f
        means[..., 1:] = (inverse * mean_r[..., None]).reshape(k, size, -1)
        share = pi / lam
        hessian[:, 0, 0] = (share * cov_ff).sum(axis=0)
        cross = ((share[..., None] * cov_fr)[..., None] * inverse).sum(axis=0).reshape(size, -1)
        hessian[:, 0, 1:] = cross
        hessian[:, 1:, 0] = cross
        block = np.zeros((size, outputs, k, outputs, k))
        for a in range(k):
            weighted = share[a][:, None, None] * cov_rr[a]
            block += (
                inverse[a][:, :, :, None, None]
                * weighted[:, :, None, :, None]
                * inverse[a][:, None, None, :, :]
            )
        hessian[:, 1:, 1:] = block.reshape(size, width - 1, width - 1)
        center = (pi[..., None] * means).sum(axis=0)
        spread = means - center
        hessian += np.einsum("abi,abj->bij", (pi / (1 + lam))[..., None] * spread, spread)
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


def _longest(z: Array, dz: Array) -> Array:
    """Return the step per node, at most 1, that keeps 0.5 percent of every variable."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(dz < 0, -z / dz, np.inf)
    return np.minimum(1.0, 0.995 * ratio.min(axis=1, keepdims=True))
