"""The bound of a node: dual of the leakage problem with the posteriors confined to cells.

For an adversary w (lumped, see `cvxleak.model.Lumped`) write s_{a,y} = sum_g w_{a,g} R_{a,g}(y) and
rho_y for the posterior of A given y. Then I(w) = H(A) - sum_y s_y H(rho_y), and s_y (-H(rho_y)) is
convex and homogeneous in s_{.,y}. Where rho_y lies in a simplex with vertices V_y (rows), it is at
most the interpolation of -H on the rays through the vertices, so the node's problem

    maximize H(A) - sum_{y,j} x_{y,j} H(V_{y,j})
    subject to s_{.,y}(w) = sum_j x_{y,j} V_{y,j}, x >= 0, F(w) >= b, w in the simplex

bounds the leakage of every adversary whose posteriors are in the cells. Its Lagrange dual is in
closed form: for any lam >= 0 and mu >= 0, with nu_y = V_y^{-1} (mu_y - H(V_y)) and
c_{a,g} = sum_y R_{a,g}(y) nu_{y,a},

    U(lam, mu) = (1 + lam) log sum_a exp(phi_a / (1 + lam)) - lam b,
    phi_a = lam log sum_g m_{a,g} exp(c_{a,g} / lam).

Limits <C_j, w> <= d_j + t_j F(w) on the adversary add multipliers kappa >= 0: sum_j kappa_j
C_{j,a,g} is taken from c_{a,g}, <kappa, d> added to U, and lam + <kappa, t> takes the place of lam
(but for lam b). A price <e, w>, to be added to the leakage, is added to c.

**Other gains** (`cvxleak.audit.worst_adversary.objective`). Nothing but convexity of -H was used:
with G in its place V_y^{-1} (mu_y + G(V_y)) is the nu of the largest posterior gain sum_y s_y
G(rho_y), and without H(A) lam takes the place of 1 + lam. With -T G(pi) instead, pi the
distribution of A, take tangents r_i of G, <r_i, pi> <= G(pi): for any theta >= 0 with sum T,
sum_i theta_i r_{i,a} may be taken from c_{a,g}. These are multipliers like kappa, of which the sum
is known.

Any multipliers give a valid bound, so nothing here has to converge for the search to be right.
`CellDual` minimizes U for many nodes at once (`cvxleak.audit.worst_adversary.interior_point`).

In floating point U is computed from means instead of sums. With s_{a,g} = m_{a,g} / |X| the uniform
prior and s_a its marginal,

    U = (1 + lam) log E_a exp((phi_a - log s_a) / (1 + lam)) + lam (log|X| - b),
    phi_a = lam log E_{g|a} exp(c_{a,g} / lam),

where no large numbers cancel, whatever lam: near b = log|X| it has no bound.

Derivatives. Every multiplier acts on phi_a through one column of a table with a row for each g:
mu_{y,j} through R(y), times V_y^{-1}; kappa_j through -C_j + t_j f; theta_i through 1, times
-r_{i,a}; lam through f, the derivative of F. So the gradient of phi_a are means of these columns
under the distribution v_a proportional to m exp(c / lam), and its Hessian is their covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvxleak.audit.worst_adversary.interior_point import Batch, minimize, never
from cvxleak.audit.worst_adversary.objective import HAIR, INFORMATION, MOST_TANGENTS, Objective
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.model import Limits, Lumped
from cvxleak.solvers.best_first import NUMBERS
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["CellDual", "Solution"]

SMALLEST = 1e-3
"""Least multiplier to start from: U has to be smooth enough to go far from a parent's. At equal
work gaps of the bank are 1.3 times as large with ten times it, .9 times with a tenth, and up to 600
times with a thousandth (known marginals)."""


@dataclass
class Solution:
    """What `CellDual.solve` found for each node.

    Attributes
    ----------
    bound : array, shape (B,)
        U: what the multipliers prove, up to rounding.
    numbers : array, shape (B, columns)
        lam, nu by output and value, kappa, theta.
    rays : array, shape (B, |Y|, k)
        x_{y,j} of the maximizing w: where the next split is chosen.
    weights : array, shape (B, N)
        The maximizing w itself (only nearly feasible), a start for the local search.
    """

    bound: Array
    numbers: Array
    rays: Array
    weights: Array


@dataclass
class Maximizer(Batch):
    """U and its derivatives, and the maximizing w: pi_a and v_{a,g}.

    The gradient is less the multiplier of a sum that is known.
    """

    value: Array
    gradient: Array
    hessian: Array
    pi: Array
    v: Array


class CellDual:
    """Minimizes U for batches of nodes of one lumped problem, perhaps under limits.

    `surplus` is log|X| - b, `price` the e of <e, w>; with `boxes`, the ends of rows that are not
    known, each node takes the rows for which c is largest. If `blind`, the output is not seen.
    """

    def __init__(
        self,
        lumped: Lumped,
        surplus: float,
        limits: Limits | None = None,
        price: Array | None = None,
        boxes: tuple[Array, Array] | None = None,
        objective: Objective = INFORMATION,
        blind: bool = False,
    ) -> None:
        self.values, self.outputs = len(lumped.values), 0 if blind else lumped.rows.shape[1]
        self.surplus, self.objective = surplus, objective
        self.tangents = objective.named(self.values)
        limits = Limits.none(lumped) if limits is None else limits
        c, d, size = limits.coefficients, limits.bounds, len(lumped.rows)
        largest = np.abs(c).max(axis=1, initial=0.0)
        self.units = np.where(largest > 0, largest, 1.0)
        self.shares = limits.shares / self.units
        self.sides = (d + limits.shares * (lumped.max_entropy - surplus)) / self.units
        self.limits = slice(1 + self.pairs, 1 + self.pairs + len(d))
        # Two neighbors are often the halves of an equation.
        opposite = (c[1:] == -c[:-1]).all(axis=1) & (d[1:] == -d[:-1])
        self.equations = (1 + self.pairs + np.flatnonzero(opposite)).tolist()
        # Values with fewer groups than others are filled up with copies without weight.
        counts = np.bincount(lumped.value_index, minlength=self.values)
        self.place = (lumped.value_index, np.arange(size) - lumped.starts[lumped.value_index])

        self._first, self._most = lumped.starts, int(counts.max())
        columns = [lumped.rows[:, : self.outputs], -c.T / self.units, np.ones((size, 1))]
        self.columns = self._by_value(np.concatenate(columns, axis=1))
        self.boxes = None if boxes is None else (self._by_value(boxes[0]), self._by_value(boxes[1]))
        self.price = self._by_value(np.zeros(size) if price is None else price)
        log_shares, self.log_values = lumped.log_shares
        self.log_shares = np.full(self.price.shape, -np.inf)
        self.log_shares[self.place] = log_shares

    def _by_value(self, rows: Array) -> Array:
        """Return what belongs to the groups by value and group."""
        filled = np.repeat(rows[self._first][:, None], self._most, axis=1)
        filled[self.place] = rows
        return filled

    @property
    def pairs(self) -> int:
        """How many mu, and nu, there are."""
        return self.outputs * self.values

    @property
    def width(self) -> int:
        """How many multipliers a node has."""
        return self.limits.stop + len(self.tangents)

    @property
    def batch(self) -> int:
        """Number of nodes whose arrays fit into memory together."""
        return max(1, NUMBERS // (6 * self.width**2 + 4 * self.columns.size))

    def first(self) -> Array:
        """Return the numbers to start the whole region from."""
        numbers = np.zeros(self.width)
        # Tilted by c / lam, a distribution loses about Var(c) / (2 lam^2) of entropy; near log|X|
        # that has to be all there is.
        numbers[0] = np.clip(0.5 / np.sqrt(2 * max(self.surplus, 1e-30)), 0.1, 1e7)
        numbers[1 : 1 + self.pairs] = self._corners()
        return numbers

    def ceiling(self) -> tuple[float, Array]:
        """Return a bound for all adversaries and channels, and its numbers: lam = 0 and mu = 0."""
        most, theta = self.objective.ceiling(self.values)
        kappa = np.zeros(len(self.sides))
        numbers = np.concatenate([[0.0], self._corners(), kappa, self.objective.times * theta])
        return most + float(self.price.max()), numbers

    def _corners(self) -> Array:
        """Return the nu of the whole region at mu = 0."""
        return np.tile(self.objective.heights(np.eye(self.values)), self.outputs)

    @np.errstate(all="ignore")  # what overflows proves nothing
    def solve(
        self,
        vertices: Array,
        numbers: Array,
        threshold: float | Array,
        accuracy: Array,
        *,
        stop: Callable[[], bool] = never,
        price: Array | None = None,
        miss: float = np.inf,
    ) -> Solution:
        """Minimize U from the given numbers; see `minimize` for when a node is done.

        A `price` is one for each node, shape (B, N). If a node lacks a tangent of the gain, the
        one that is missed most is added, for the nodes to come.
        """
        threshold = np.broadcast_to(threshold, len(vertices))
        prices = self.price[None] if price is None else self._by_value(price.T).transpose(2, 0, 1)
        prices = np.broadcast_to(prices, (len(vertices), *self.price.shape))
        # U is not smooth at lam = 0. Keeping lam above its least costs at most accuracy / 4, since
        # dU/dlam = F - b is at most log|X| - b.
        nodes = Nodes.of(
            self, vertices, prices, accuracy / (4 * np.maximum(self.surplus, accuracy))
        )
        start = nodes.multipliers(vertices, numbers)
        bound, z, last = minimize(nodes, start, threshold, accuracy, stop, miss)
        weights = (last.pi[..., None] * last.v)[:, self.place[0], self.place[1]]
        rays = np.maximum(last.gradient[:, 1 : 1 + self.pairs], 0.0).reshape(nodes.offset.shape)
        lost = ~np.isfinite(weights).all(axis=1)
        last.pi[lost], weights[lost], rays[lost] = 1 / self.values, 1 / weights.shape[1], 0.0
        solution = Solution(bound, nodes.numbers(z), rays, weights)
        lacking = self.objective.missing(last.pi, self.tangents)
        lacking[(bound <= threshold) | (lacking <= accuracy / 2)] = 0.0
        if lacking.any() and len(self.tangents) < MOST_TANGENTS:
            more = self.objective.touching(last.pi[[lacking.argmax()]])
            self.tangents = np.vstack([self.tangents, more])
        return solution


@dataclass
class Nodes(Batch):
    """U for a batch of nodes, as a function of z = (lam - least, mu, kappa, theta).

    `inverse[b, y, a, j]` is V_y^{-1}, and `offset[b, y, a]` V_y^{-1} G(V_y); `factor[b, a, i]` is
    what multiplier i has beside its column.
    """

    dual: CellDual
    price: Array
    inverse: Array
    offset: Array
    factor: Array
    least: Array

    @classmethod
    def of(cls, dual: CellDual, vertices: Array, price: Array, least: Array) -> Nodes:
        """Return the nodes with these cells.

        Where splits have made a cell as narrow as rounding, its inverse is not a number: no
        multipliers prove anything, and what its parent proved stands.
        """
        shape = (len(vertices), dual.values)
        flat = (np.linalg.det(vertices) == 0)[..., None, None]
        inverse = np.linalg.inv(np.where(flat, np.eye(dual.values), vertices))
        inverse = np.where(flat, np.nan, inverse)
        heights = dual.objective.heights(vertices)
        factor = np.ones((*shape, dual.width))
        factor[..., 1 : 1 + dual.pairs] = inverse.swapaxes(1, 2).reshape(*shape, dual.pairs)
        if len(dual.tangents):
            factor[..., dual.limits.stop :] = -dual.objective.tangents(dual.tangents).T
        return cls(dual, price, inverse, (inverse @ heights[..., None])[..., 0], factor, least)

    @property
    def summed(self) -> slice:
        """The multipliers of tangents have a known sum."""
        return slice(self.dual.limits.stop, None)

    def multipliers(self, vertices: Array, numbers: Array) -> Array:
        """Return the z to start from."""
        dual, z = self.dual, numbers.copy()
        nu = numbers[:, 1 : 1 + dual.pairs].reshape(*self.offset.shape, 1)
        mu = (vertices @ nu)[..., 0] - dual.objective.heights(vertices)
        z[:, 1 : 1 + dual.pairs] = mu.reshape(len(z), dual.pairs)
        z[:, dual.limits] *= dual.units
        z = np.maximum(z, SMALLEST)
        z[:, 0] = np.maximum(z[:, 0] - self.least, self.least)
        return self.normalized(z)

    def numbers(self, z: Array) -> Array:
        """Return lam, nu, kappa and theta."""
        numbers = z.copy()
        numbers[:, 0] += self.least
        numbers[:, 1 : 1 + self.dual.pairs] = self._nu(z).reshape(len(z), self.dual.pairs)
        numbers[:, self.dual.limits] /= self.dual.units
        return numbers

    def normalized(self, z: Array) -> Array:
        """Return multipliers, in place, of which those of tangents have the sum that they need."""
        capped = z[:, 1 : self.dual.limits.stop]
        # Of a cell that no posterior reaches, or of a ball of radius 0, they grow without limit.
        np.minimum(capped, 1 / HAIR, out=capped)
        for j in self.dual.equations:
            # Only their difference matters, and nothing else keeps the two from growing.
            z[:, j : j + 2] -= np.maximum(z[:, j : j + 2].min(axis=1, keepdims=True) - 1.0, 0.0)
        theta = z[:, self.summed]
        theta *= self.dual.objective.times / theta.sum(axis=1, keepdims=True)
        return z

    def at(self, z: Array) -> Maximizer:
        """Return U and its derivatives."""
        dual, share = self.dual, self.dual.objective.share
        spend(len(z) * dual.columns.size * dual.outputs)
        columns, c = self._columns(z)
        lam = z[:, 0] + self.least + z[:, dual.limits] @ dual.shares
        scaled = c / lam[:, None, None]
        log_total, v = tilted(scaled, dual.log_shares)
        x = (lam[:, None] * log_total - share * dual.log_values) / (share + lam)[:, None]
        log_norm, pi = tilted(x, dual.log_values)
        value = (share + lam) * log_norm + lam * dual.surplus + z[:, dual.limits] @ dual.sides
        # The gradient of F up to a constant; a share of F goes into the columns of limits.
        f = (log_total[..., None] - scaled - (x - log_norm[:, None])[..., None])[..., None]
        of_f = np.zeros(columns.shape[3])
        of_f[dual.outputs : -1] = dual.shares
        columns = np.concatenate([columns + f * of_f, f], axis=3)
        means = (v[..., None, :] @ columns)[..., 0, :]
        centered = columns - means[:, :, None]
        covariance = (centered * v[..., None]).swapaxes(2, 3) @ centered
        gradient, hessian = self._derivatives(means, covariance, pi, lam)
        theta, own = z[:, self.summed], gradient[:, self.summed]
        own -= (theta * own).sum(axis=1, keepdims=True) / theta.sum(axis=1, keepdims=True)
        return Maximizer(value, gradient, hessian, pi, v)

    def _nu(self, z: Array) -> Array:
        mu = z[:, 1 : 1 + self.dual.pairs].reshape(*self.offset.shape, 1)
        return self.offset + (self.inverse @ mu)[..., 0]

    def _columns(self, z: Array) -> tuple[Array, Array]:
        """Return the columns of rows, limits and tangents, shape (B or 1, k, g, i), and c."""
        dual, nu, columns = self.dual, self._nu(z).swapaxes(1, 2), self.dual.columns[None]
        if dual.boxes is not None:
            rows = largest_rows(*dual.boxes, nu.swapaxes(0, 1)).swapaxes(0, 1)
            others = columns[..., dual.outputs :]
            others = np.broadcast_to(others, (*rows.shape[:3], others.shape[3]))
            columns = np.concatenate([rows, others], axis=3)
        kappa = np.broadcast_to(z[:, None, dual.limits], (*nu.shape[:2], len(dual.sides)))
        theta = (self.factor[..., self.summed] * z[:, None, self.summed]).sum(axis=2, keepdims=True)
        x = np.concatenate([nu, kappa, theta], axis=2)
        return columns, (columns @ x[..., None])[..., 0] + self.price

    def _derivatives(
        self, means: Array, covariance: Array, pi: Array, lam: Array
    ) -> tuple[Array, Array]:
        """Return the gradient and the Hessian of U from those of phi."""
        dual, factor = self.dual, self.factor
        # Which column each multiplier acts through; the last two are 1 and f.
        of_mu = np.repeat(np.arange(dual.outputs), dual.values)
        of_kappa = dual.outputs + np.arange(len(dual.sides))
        one = dual.outputs + len(dual.sides)
        at = np.concatenate([[one + 1], of_mu, of_kappa, np.full(len(dual.tangents), one)])
        features = factor * means[..., at]
        gradient = (pi[..., None] * features).sum(axis=1)
        spread = features - gradient[:, None]
        gradient[:, 0] += dual.surplus
        gradient[:, dual.limits] += dual.sides + dual.shares * dual.surplus
        hessian = spread.swapaxes(1, 2) @ (
            spread * (pi / (dual.objective.share + lam)[:, None])[..., None]
        )
        for a in range(dual.values):
            block = covariance[:, a].take(at, axis=1).take(at, axis=2)
            block *= factor[:, a, :, None]
            block *= ((pi[:, a] / lam)[:, None] * factor[:, a])[:, None]
            hessian += block
        return gradient, hessian


def tilted(x: Array, log_weights: Array) -> tuple[Array, Array]:
    """Return log sum_i p_i e^{x_i}, p = exp(log_weights), and the law proportional to p_i e^{x_i}.

    The sum of p is 1. Where the x_i are nearly equal, the error is much less than that of the sum.
    Where p_i = 0, x_i has to lie between the smallest and the largest of the others.
    """
    logits = x + log_weights
    # The largest x may have a weight below the smallest float, so shift by the largest logit.
    peak = logits.max(axis=-1)
    law = np.exp(logits - peak[..., None])
    total = law.sum(axis=-1)
    law /= total[..., None]
    top = x.max(axis=-1)
    shifted = x - top[..., None]
    near = np.log1p((np.exp(log_weights) * np.expm1(np.maximum(shifted, -1.0))).sum(axis=-1))
    return np.where(shifted.min(axis=-1) > -1.0, top + near, peak + np.log(total)), law
