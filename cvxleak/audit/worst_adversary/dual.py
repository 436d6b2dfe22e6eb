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
`CellDual` minimizes U for many nodes at once with a primal-dual interior-point method.

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
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.worst_adversary.objective import INFORMATION, MOST_TANGENTS, Objective
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.model import Limits, Lumped
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["CellDual", "Solution"]

LARGEST = 1e5
"""Multipliers of cells and limits stay below: those of a cell that no posterior reaches would grow
without limit."""

LARGEST_LAM = 1e9

SMALLEST = 1e-6
"""Least multiplier to start from."""

STARTING_LAM = 1e-3
"""Least lam to start from: U has to be smooth enough to go far from a parent's multipliers."""

LEFT, LEFT_OF_LAM = 0.005, 0.3
"""Least share of a multiplier or a slack, and of lam, that a step leaves: with lam the Hessian
changes fast, and a lam that is too small too soon hardly recovers. With 0.005 for both, a count of
8 with geometric noise at half of log|X| is open by 12 % after as many nodes as close it."""

STIFF = 1e3
"""How much a change of the sum of tangents' multipliers counts in a step, which keeps it."""

ITERATIONS = 60
"""Most Newton steps of a node."""


BATCH_BYTES = 1 << 28
"""About how much memory the arrays of one batch may take."""

Chosen = NDArray[np.intp] | NDArray[np.bool_]


def never() -> bool:
    """Do not stop."""
    return False


class Batch:
    """Arrays about the nodes of a batch, along the first axis."""

    def take(self, chosen: Chosen) -> Self:
        """Return those of some nodes."""
        return type(self)(**{name: own[chosen] for name, own in vars(self).items()})

    def put(self, chosen: Chosen, other: Self) -> None:
        """Take over another's for some nodes."""
        for name, own in vars(self).items():
            own[chosen] = getattr(other, name)


@dataclass
class Nodes(Batch):
    """What stays the same while the multipliers of a batch are improved.

    `inverse[b, y, a, j]` is V_y^{-1}, and `offset[b, y, a]` V_y^{-1} G(V_y); `factor[b, a, i]` is
    what multiplier i has beside its column.
    """

    inverse: Array
    offset: Array
    factor: Array
    least: Array
    threshold: Array
    accuracy: Array


@dataclass
class Solution(Batch):
    """What `CellDual.solve` found for each node.

    Attributes
    ----------
    bound : array, shape (B,)
        U: what the multipliers prove, up to rounding.
    numbers : array, shape (B, columns)
        lam, nu by output and value, kappa, theta.
    joint : array, shape (B, k, |Y|)
        s_{a,y} of the maximizing w, where the next split is chosen.
    weights : array, shape (B, N)
        The maximizing w itself (only nearly feasible), a start for the local search.
    """

    bound: Array
    numbers: Array
    joint: Array
    weights: Array


@dataclass
class Point(Batch):
    """U and its derivatives at the multipliers of a batch, and the maximizing w."""

    value: Array
    gradient: Array
    hessian: Array
    pi: Array
    v: Array
    joint: Array


class CellDual:
    """Minimizes U for batches of nodes of one lumped problem, perhaps under limits.

    `surplus` is log|X| - b, `price` the e of <e, w>; with `boxes`, the ends of rows that are not
    known, each node takes the rows for which c is largest.
    """

    def __init__(
        self,
        lumped: Lumped,
        surplus: float,
        limits: Limits | None = None,
        price: Array | None = None,
        boxes: tuple[Array, Array] | None = None,
        objective: Objective = INFORMATION,
    ) -> None:
        self.values, self.outputs = len(lumped.values), lumped.rows.shape[1]
        self.surplus, self.objective = surplus, objective
        self.tangents = objective.named(self.values)
        limits = Limits.none(lumped) if limits is None else limits
        sizes = np.abs(limits.coefficients).max(axis=1, initial=0.0)
        self._units = np.where(sizes > 0, sizes, 1.0)
        self._shares = limits.shares / self._units
        floor = lumped.max_entropy - surplus
        self._sides = (limits.bounds + limits.shares * floor) / self._units
        # Two neighbors are often the halves of an equation.
        c, d = limits.coefficients, limits.bounds
        opposite = (c[1:] == -c[:-1]).all(axis=1) & (d[1:] == -d[:-1])
        self._equations = (1 + self.pairs + np.flatnonzero(opposite)).tolist()
        self._limits = slice(1 + self.pairs, 1 + self.pairs + len(self._sides))
        # Values with fewer groups than others are filled up with copies without weight.
        counts = np.bincount(lumped.value_index, minlength=self.values)
        slot = np.arange(len(lumped.value_index)) - lumped.starts[lumped.value_index]
        self._place = (lumped.value_index, slot)

        def by_value(rows: Array) -> Array:
            filled = np.repeat(rows[lumped.starts][:, None], int(counts.max()), axis=1)
            filled[self._place] = rows
            return filled

        of_limits = -limits.coefficients.T / self._units
        ones = np.ones((len(lumped.rows), 1))
        self._columns = by_value(np.concatenate([lumped.rows, of_limits, ones], axis=1))
        self._boxes = None if boxes is None else (by_value(boxes[0]), by_value(boxes[1]))
        self._price = by_value(np.zeros(len(lumped.rows)) if price is None else price)
        log_shares, self._log_values = lumped.log_shares
        self._log_shares = np.full(self._price.shape, -np.inf)
        self._log_shares[self._place] = log_shares

    @property
    def pairs(self) -> int:
        """How many mu, and nu, there are."""
        return self.outputs * self.values

    @property
    def width(self) -> int:
        """How many multipliers a node has."""
        return 1 + self.pairs + len(self._sides) + len(self.tangents)

    @property
    def batch(self) -> int:
        """Number of nodes whose arrays fit into memory together."""
        per_node = 6 * self.width**2 + 4 * self._columns.size
        return max(1, BATCH_BYTES // (8 * per_node))

    def first(self) -> Array:
        """Return the numbers to start the whole region from."""
        # Tilted by c / lam, a distribution loses about Var(c) / (2 lam^2) of entropy; near log|X|
        # that has to be all there is.
        lam = np.clip(0.5 / np.sqrt(2 * max(self.surplus, 1e-30)), 0.1, 1e7)
        numbers = np.full(self.width, 1e-3)
        numbers[0] = lam
        numbers[1 : 1 + self.pairs] += self._corners()
        return numbers

    def ceiling(self) -> tuple[float, Array]:
        """Return a bound for all adversaries and channels, and its numbers: lam = 0 and mu = 0."""
        most, theta = self.objective.ceiling(self.values)
        kappa = np.zeros(len(self._sides))
        numbers = np.concatenate([[0.0], self._corners(), kappa, self.objective.times * theta])
        return most + float(self._price.max()), numbers

    def _corners(self) -> Array:
        """Return the nu of the whole region at mu = 0."""
        return np.tile(self.objective.heights(np.eye(self.values)), self.outputs)

    @np.errstate(all="ignore")  # what overflows proves nothing, and is cut or passed over
    def solve(
        self,
        vertices: Array,
        numbers: Array,
        threshold: float,
        accuracy: Array,
        *,
        stop: Callable[[], bool] = never,
        iterations: int = ITERATIONS,
        rounds: int = 1,
    ) -> Solution:
        """Minimize U from the given numbers, and find tangents of the gain where it needs more.

        A node stops when U is at most `threshold` (it is pruned), when U minus the duality gap is
        certainly above it (it has to be split anyway), or when the gap is at most `accuracy`.
        At most so many tangents are added as there are rounds.
        """
        numbers = self._padded(numbers)
        best = self._solve(vertices, numbers, threshold, accuracy, stop, iterations)
        for _ in range(rounds):
            laws = best.joint.sum(axis=2)
            mass = laws.sum(axis=1, keepdims=True)
            laws = np.where(mass > 0, laws / np.where(mass > 0, mass, 1.0), 1 / self.values)
            lacking = self.objective.missing(laws, self.tangents)
            lacking[(best.bound <= threshold) | (lacking <= accuracy / 2)] = 0.0
            again = np.flatnonzero(lacking)
            if not len(again) or len(self.tangents) >= MOST_TANGENTS or stop():
                break
            self.tangents = np.vstack(
                [self.tangents, self.objective.touching(laws[[lacking.argmax()]])]
            )
            best.numbers = self._padded(best.numbers)
            found = self._solve(
                vertices[again], best.numbers[again], threshold, accuracy[again], stop, iterations
            )
            better = found.bound < best.bound[again]
            best.put(again[better], found.take(better))
        return best

    def _padded(self, numbers: Array) -> Array:
        """Return numbers with zeros for tangents that there were not."""
        return np.pad(numbers, [(0, 0), (0, self.width - numbers.shape[1])])

    def _solve(
        self,
        vertices: Array,
        numbers: Array,
        threshold: float,
        accuracy: Array,
        stop: Callable[[], bool],
        iterations: int,
    ) -> Solution:
        """Minimize U, all nodes at once."""
        size = len(vertices)
        nodes, z = self._nodes(vertices, numbers, threshold, accuracy)
        best = Solution(
            np.full(size, np.inf),
            numbers.copy(),
            np.zeros((size, self.values, self.outputs)),
            np.full((size, len(self._place[0])), 1 / len(self._place[0])),
        )
        active = np.arange(size)
        point = self._point(nodes, z)
        tau = np.maximum(1e-3 * np.clip(point.value - nodes.threshold, 0.0, 1.0), accuracy)
        slack = np.maximum(point.gradient, tau[:, None] / self.width / z)
        for iteration in range(iterations + 1):
            self._record(best, active, nodes, z, point)
            gap = (z * slack).sum(axis=1)
            miss = np.abs(point.gradient - slack).sum(axis=1)
            done = point.value <= nodes.threshold
            settled = miss <= 1e-2
            done |= settled & (point.value - 4 * gap - miss > nodes.threshold) & (iteration >= 2)
            done |= settled & (gap <= nodes.accuracy)
            if done.all() or iteration == iterations or stop():
                break
            if done.any():
                keep = ~done
                active, z, slack = active[keep], z[keep], slack[keep]
                nodes, point = nodes.take(keep), point.take(keep)
            spend(1e6 + len(z) * (3e4 + self.width**3 + self._columns.size * self.outputs))
            z, slack, point = self._step(nodes, z, slack, point)
        return best

    def _nodes(
        self, vertices: Array, numbers: Array, threshold: float, accuracy: Array
    ) -> tuple[Nodes, Array]:
        """Return what the cells come to, and the multipliers to start from.

        Where splits have made a cell as narrow as rounding, its inverse is not a number: no
        multipliers prove anything, and what its parent proved stands.
        """
        size, k = len(vertices), self.values
        flat = (np.linalg.det(vertices) == 0)[..., None, None]
        inverse = np.linalg.inv(np.where(flat, np.eye(k), vertices))
        inverse = np.where(flat, np.nan, inverse)
        heights = self.objective.heights(vertices)
        pairs = self.pairs
        factor = np.ones((size, k, self.width))
        factor[..., 1 : 1 + pairs] = inverse.transpose(0, 2, 1, 3).reshape(size, k, pairs)
        if len(self.tangents):
            factor[..., self._limits.stop :] = -self.objective.tangents(self.tangents).T
        z = numbers.copy()
        nu = numbers[:, 1 : 1 + pairs].reshape(size, -1, k, 1)
        z[:, 1 : 1 + pairs] = ((vertices @ nu)[..., 0] - heights).reshape(size, -1)
        z[:, self._limits] *= self._units
        # U is not smooth at lam = 0. Keeping lam above its least costs at most accuracy / 4, since
        # dU/dlam = F - b is at most log|X| - b.
        least = accuracy / (4 * max(self.surplus, 1e-3))
        z = np.maximum(z, SMALLEST)
        z[:, 0] = np.maximum(np.maximum(z[:, 0], STARTING_LAM) - least, least)
        offset = (inverse @ heights[..., None])[..., 0]
        nodes = Nodes(inverse, offset, factor, least, np.full(size, threshold), accuracy)
        return nodes, self._balanced(z)

    def _balanced(self, z: Array) -> Array:
        """Return multipliers within their limits, those of tangents with the sum that they need."""
        z[:, 0] = np.minimum(z[:, 0], LARGEST_LAM)
        z[:, 1:] = np.minimum(z[:, 1:], LARGEST)
        for j in self._equations:
            # Only their difference matters, and nothing else keeps the two from growing.
            z[:, j : j + 2] -= np.maximum(z[:, j : j + 2].min(axis=1, keepdims=True) - 1.0, 0.0)
        if len(self.tangents):
            theta = z[:, -len(self.tangents) :]
            theta *= self.objective.times / theta.sum(axis=1, keepdims=True)
        return z

    def _record(
        self, best: Solution, active: NDArray[np.intp], nodes: Nodes, z: Array, point: Point
    ) -> None:
        best.joint[active] = np.where(np.isfinite(point.joint), point.joint, 0.0)
        better = point.value < best.bound[active]
        where, kept, own, numbers = (
            active[better],
            nodes.take(better),
            point.take(better),
            z[better],
        )
        best.bound[where] = own.value
        best.weights[where] = (own.pi[..., None] * own.v)[:, self._place[0], self._place[1]]
        numbers[:, 1 : 1 + self.pairs] = self._nu(kept, numbers).reshape(-1, self.pairs)
        numbers[:, self._limits] /= self._units
        numbers[:, 0] += kept.least
        best.numbers[where] = numbers

    def _nu(self, nodes: Nodes, z: Array) -> Array:
        mu = z[:, 1 : 1 + self.pairs].reshape(*nodes.offset.shape, 1)
        return nodes.offset + (nodes.inverse @ mu)[..., 0]

    def _columns_and_c(self, nodes: Nodes, z: Array) -> tuple[Array, Array]:
        """Return the columns of rows, limits and tangents, shape (B or 1, k, g, i), and c."""
        nu = self._nu(nodes, z).swapaxes(1, 2)
        columns = self._columns[None]
        if self._boxes is not None:
            rows = largest_rows(*self._boxes, nu.swapaxes(0, 1)).swapaxes(0, 1)
            others = columns[..., self.outputs :]
            others = np.broadcast_to(others, (*rows.shape[:3], others.shape[3]))
            columns = np.concatenate([rows, others], axis=3)
        end = self._limits.stop
        kappa = np.broadcast_to(z[:, None, self._limits], (*nu.shape[:2], len(self._sides)))
        of_tangents = (nodes.factor[..., end:] * z[:, None, end:]).sum(axis=2, keepdims=True)
        x = np.concatenate([nu, kappa, of_tangents], axis=2)
        return columns, (columns @ x[..., None])[..., 0] + self._price

    def _point(self, nodes: Nodes, z: Array) -> Point:
        limits, share = self._limits, self.objective.share
        columns, c = self._columns_and_c(nodes, z)
        lam = z[:, 0] + nodes.least + z[:, limits] @ self._shares
        scaled = c / lam[:, None, None]
        log_total, v = tilted(scaled, self._log_shares)
        x = (lam[:, None] * log_total - share * self._log_values) / (share + lam)[:, None]
        log_norm, pi = tilted(x, self._log_values)
        value = (share + lam) * log_norm + lam * self.surplus + z[:, limits] @ self._sides
        f = (log_total[..., None] - scaled - (x - log_norm[:, None])[..., None])[..., None]
        own = np.zeros(columns.shape[3])
        own[self.outputs : -1] = self._shares
        columns = np.concatenate([columns + f * own, f], axis=3)
        means = (v[..., None, :] @ columns)[..., 0, :]
        centered = columns - means[:, :, None]
        cov = (centered * v[..., None]).swapaxes(2, 3) @ centered
        # Which column each multiplier acts through.
        at = np.concatenate(
            [
                [columns.shape[3] - 1],
                np.repeat(np.arange(self.outputs), self.values),
                np.arange(self.outputs, self.outputs + len(self._sides)),
                np.full(len(self.tangents), columns.shape[3] - 2),
            ]
        ).astype(int)
        features = nodes.factor * means[..., at]
        gradient = (pi[..., None] * features).sum(axis=1)
        gradient[:, 0] += self.surplus
        gradient[:, limits] += self._sides + self._shares * self.surplus
        spread = features - (pi[..., None] * features).sum(axis=1, keepdims=True)
        hessian = spread.swapaxes(1, 2) @ (spread * (pi / (share + lam)[:, None])[..., None])
        part = pi / lam[:, None]
        for a in range(self.values):
            factor = nodes.factor[:, a]
            block = cov[:, a][:, at[:, None], at]
            hessian += block * factor[:, :, None] * (part[:, a, None] * factor)[:, None]
        joint = pi[..., None] * means[..., : self.outputs]
        return Point(value, self._net(z, gradient), hessian, pi, v, joint)

    def _net(self, z: Array, gradient: Array) -> Array:
        """Return a gradient less the multiplier of the sum that tangents' multipliers have."""
        if len(self.tangents):
            theta, own = (x[:, -len(self.tangents) :] for x in (z, gradient))
            own -= (theta * own).sum(axis=1, keepdims=True) / self.objective.times
        return gradient

    def _step(
        self, nodes: Nodes, z: Array, slack: Array, point: Point
    ) -> tuple[Array, Array, Point]:
        """Return the multipliers, slacks and point after a Newton step."""
        tau = 0.15 * (z * slack).mean(axis=1, keepdims=True)
        dz = self._direction(point.hessian, slack / z, tau / z - point.gradient)
        dslack = (tau - slack * dz) / z - slack
        step = np.minimum(longest(z, dz), longest(z[:, :1], dz[:, :1], LEFT_OF_LAM))
        trial = self._balanced(z + step * dz)
        new = self._point(nodes, trial)
        # A step that the local model did not foresee (the Hessian changes fast in lam) is cut.
        merit = point.value - (tau * np.log(z)).sum(axis=1)
        for _ in range(6):
            bad = new.value - (tau * np.log(trial)).sum(axis=1) > merit + 1e-12 + 1e-3 * tau[:, 0]
            bad |= ~np.isfinite(new.value)
            if not bad.any():
                break
            step[bad] *= 0.25
            trial[bad] = self._balanced(z[bad] + step[bad] * dz[bad])
            new.put(bad, self._point(nodes.take(bad), trial[bad]))
        return trial, slack + longest(slack, dslack) * dslack, new

    def _direction(self, hessian: Array, diagonal: Array, right: Array) -> Array:
        """Return the Newton step, along which the tangents' multipliers nearly keep their sum."""
        matrix, each = hessian.copy(), np.arange(self.width)
        matrix[:, each, each] += diagonal
        if len(self.tangents):
            own = slice(self.width - len(self.tangents), None)
            sizes = matrix[:, each, each][:, own].max(axis=1)
            matrix[:, own, own] += STIFF * sizes[:, None, None]
        # With a diagonal of ones the system is well conditioned, whatever the multipliers' sizes.
        scale = 1 / np.sqrt(matrix[:, each, each])
        matrix *= scale[:, :, None] * scale[:, None, :]
        matrix[:, each, each] += 1e-13
        usable = np.isfinite(matrix).all(axis=(1, 2), keepdims=True)
        matrix = np.where(usable, matrix, np.eye(self.width))
        return scale * np.linalg.solve(matrix, (scale * right)[..., None])[..., 0]


def longest(values: Array, steps: Array, left: float = LEFT) -> Array:
    """Return the step along the last axis, at most 1, that leaves a share of every value."""
    ratio = np.where(steps < 0, -values / steps, np.inf)
    return np.minimum(1.0, (1 - left) * ratio.min(axis=-1, keepdims=True))


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
