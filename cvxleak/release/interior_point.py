"""A primal-dual interior-point method for the distortion problem of a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack
from scipy.sparse.linalg import splu

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.iterative.release_terms import Coalition, Groups, ReleaseTerms

__all__ = ["ReleasePoint", "release_interior_point"]

TOWARDS_BOUNDARY = 0.8
"""Share of the way to the boundary that a step may go.

Longer steps reach the optimal value sooner, but outputs that die out then leave the central path,
and with it the posteriors that the dual bound rests on.
"""
CENTERING = 0.2
MAX_ITERATIONS = 100
DENSE = 300
"""Up to this many unknowns a dense factorization is quicker than a sparse one."""
FULL = 200_000
"""Up to this many coefficients, zeros included, full arrays take less time than sparse ones."""
NEGLIGIBLE = 1e-300
"""A price below this leaves a direction as it is; its inverse might be no float."""


@dataclass(frozen=True)
class ReleasePoint:
    """A kernel, and multipliers that bound every kernel's value from below.

    Attributes
    ----------
    kernel : array, shape (Z, X, outputs)
        Meets the budgets strictly, up to rounding.
    value, lower : float
        Its objective; the bound that multipliers and references give (floating point, no proof).
    multipliers : array, shape (coalitions,)
        mu of each budget; 0 for a coalition without one, or without room.
    references : tuple of arrays, shape (classes, X, outputs)
        For each coalition the log ratios log( w(x|r̂,s) / p(x|s) ) of its reference posteriors w,
        or the free multipliers nu(r̂,s,x) of a coalition without room.
    iterations : int
    """

    kernel: Array
    value: float
    lower: float
    multipliers: Array
    references: tuple[Array, ...]
    iterations: int


def release_interior_point(
    law: Array,
    cost: Array,
    coalitions: Sequence[NDArray[np.integer]],
    rooms: Sequence[float],
    prices: Sequence[float],
    tol: float,
    clock: Clock,
) -> ReleasePoint:
    r"""Minimize E c(R̂;Z,X) + sum_c kappa_c I(R̂;X|S_c) subject to I(R̂;X|S_c) <= rooms[c].

    Over all kernels k(r̂|z,x). With I(S_c;X) + rooms[c] as the budget of coalition c it is the
    distortion problem (2) of SEQUENTIAL for any coalitions; with infinite rooms and
    kappa = (mu_1, mu_2) the inner problem (4).

    Parameters
    ----------
    law : array, shape (Z, X)
        p(z,x).
    cost : array, shape (Z, X, outputs)
        E[ d(R,r̂) | z, x ].
    coalitions : sequence of integer arrays, shape (Z,)
        The class s of every z: all 0 for a party on its own, 0, ..., Z - 1 for all together.
    rooms : sequence of float
        What the release may add to each coalition's knowledge, in nats. 0 means that R̂ and X are
        independent given s; infinity, no budget.
    prices : sequence of float
        kappa >= 0 for each coalition, in units of cost per nat.
    tol : float
        Gap at which to stop, in units of cost.
    clock : Clock
        When to stop in any case.

    Returns
    -------
    ReleasePoint
        Whenever it stops, the kernel is feasible and the lower bound holds, up to rounding.

    Notes
    -----
    For any mu >= 0 and any conditional distributions w_c(x|r̂,s), I(R̂;X|S_c) >= E log( w_c /
    p(x|s) ) (Barber and Agakov's bound; it is the average of a divergence). So no feasible kernel
    costs less than

        sum_{z,x} p(z,x) min_r̂ [ c + sum_c (kappa_c + mu_c) log( w_c(x|r̂,s) / p(x|s) ) ]
            - sum_c mu_c rooms[c],

    and for a coalition without room mu log( w / p ) becomes any nu(r̂,s,x) with
    sum_x p(x|s) nu <= 0. At the optimum w is the posterior of the optimal kernel.

    A Newton step has the unknowns of the kernel in diagonal blocks, one per row, plus a term for
    each (r̂,s,x), (r̂,s) and budget: these few are what is factorized. The references come from the
    step as well, because the posteriors of outputs that die out are exact only to first order.

    Examples
    --------
    A fair bit told with Hamming cost within log 2 - h(0.1) nats is wrong with probability 0.1:

    >>> import numpy as np
    >>> from cvxleak.core.clock import Clock
    >>> from cvxleak.release.interior_point import release_interior_point
    >>> room, cost = np.log(2) + 0.1 * np.log(0.1) + 0.9 * np.log(0.9), 1 - np.eye(2)[None]
    >>> point = release_interior_point(
    ...     np.array([[0.5, 0.5]]), cost, [np.array([0])], [room], [0.0], 1e-10, Clock()
    ... )
    >>> round(point.value, 6), round(point.lower, 6)
    (0.1, 0.1)
    """
    terms = ReleaseTerms(law, coalitions)
    newton = _Newton(terms, terms.rows(cost), np.array(rooms), np.array(prices))
    iterations = 0
    while iterations < MAX_ITERATIONS and not (newton.gap <= tol or newton.exhausted):
        spend(newton.step_work)
        newton.step()
        iterations += 1
        if clock.late:
            break
    return ReleasePoint(
        terms.kernel(newton.kernel),
        newton.value,
        newton.lower,
        newton.multipliers,
        tuple(
            terms.by_class(own, reference)
            for own, reference in zip(coalitions, newton.references, strict=True)
        ),
        iterations,
    )


class _Newton:
    """The iterate, and the best kernel and the best multipliers so far."""

    def __init__(
        self,
        terms: ReleaseTerms,
        cost: Array,
        rooms: Array,
        prices: Array,
    ) -> None:
        self.terms, self.cost, self.rooms = terms, cost, rooms
        n, outputs = cost.shape
        self.weights = terms.weights[:, None]
        self.prices = prices
        self.budgets = np.flatnonzero((rooms > 0) & np.isfinite(rooms))
        # Where s determines x, nothing is left to be independent of.
        spread = np.array([c.pairs.size > c.classes.size for c in terms.coalitions], dtype=bool)
        self.exact = np.flatnonzero((rooms == 0) & spread)
        self.scale = float(np.ptp(cost, axis=1).max() or np.abs(cost).max() or 1.0)
        systems = [_Indicators(coalition, outputs) for coalition in terms.coalitions]
        equalities = [systems[c].independence for c in self.exact]
        cells = np.arange(n * outputs)
        row_sums = csr_array((np.ones(len(cells)), (cells, cells // outputs)))
        parts = [part for one in systems for part in (one.pairs, one.classes)]
        parts += [*equalities, row_sums]
        unknowns = len(rooms) + sum(part.sum(axis=0).size for part in parts)
        # A factorization does ten multiplications in the time of one elsewhere.
        self.step_work = 1e6 + 0.1 * min(unknowns, DENSE) ** 2 * unknowns
        self._full = unknowns <= DENSE and unknowns * len(cells) <= FULL
        self._pairs = [self._stored(one.pairs) for one in systems]
        self._classes = [self._stored(one.classes) for one in systems]
        self._equalities = [self._stored(one) for one in equalities]
        self._row_sums = self._stored(row_sums)
        self._sizes = [terms.coalitions[c].pairs.size * outputs for c in self.exact]
        self._nu = [np.zeros(size) for size in self._sizes]
        self._k = np.full((n, outputs), 1 / outputs)
        self._room = rooms - terms.information(self._k)
        self._zeta = np.full((n, outputs), self.scale)
        self._mu = np.zeros(len(rooms))
        self._mu[self.budgets] = self.scale
        self._centering, self._stalled = CENTERING, 0
        self.exhausted = False
        self.value, self.kernel = math.inf, self._k
        self.lower = -math.inf
        self.multipliers, self.references = self._mu, [np.zeros((n, outputs)) for _ in rooms]

    @property
    def gap(self) -> float:
        return self.value - self.lower

    def _stored(self, columns: csr_array) -> Any:
        """Return the columns as an array with its zeros, if that is quicker."""
        return columns.toarray() if self._full else columns

    def _independent(self, kernel: Array) -> Array:
        """Take back what rounding has added to the knowledge of coalitions without room."""
        for c in self.exact:
            coalition = self.terms.coalitions[c]
            means = [
                (groups.sums(self.weights * kernel) / groups.sums(self.weights))[groups.index]
                for groups in (coalition.pairs, coalition.classes)
            ]
            kernel = kernel - (means[0] - means[1])
        return kernel

    def step(self) -> None:
        before = self.gap
        k, mu, zeta, room = self._k, self._mu, self._zeta, self._room
        budgets = self.budgets
        joint = self.weights * k
        ratios = self.terms.log_ratios(np.log(k))
        slopes = self.prices + mu
        gradient = self.cost + sum(
            slope * ratio for slope, ratio in zip(slopes, ratios, strict=True) if slope > 0
        )
        for equality, nu in zip(self._equalities, self._nu, strict=True):
            gradient = gradient + (equality @ nu).reshape(k.shape)
        value = float((joint * self.cost).sum()) + sum(
            price * float((joint * ratio).sum())
            for price, ratio in zip(self.prices, ratios, strict=True)
            if price > 0
        )
        if value < self.value:
            self.value, self.kernel = value, k

        count = k.shape[1] + len(budgets)
        comp = (float((joint * zeta).sum()) + float(mu[budgets] @ room[budgets])) / count
        tau = self._centering * comp
        shortage = room[budgets] - tau / mu[budgets]
        try:
            direction, lift, multiplied = self._solve(
                joint, slopes, ratios, tau / k - gradient, shortage
            )
        except (np.linalg.LinAlgError, RuntimeError):  # singular: so both libraries say it
            self.exhausted = True
            return

        dzeta = tau / k - zeta - zeta / joint * direction
        dmu = np.zeros(len(mu))
        dmu[budgets] = lift
        nu = [old + new for old, new in zip(self._nu, multiplied, strict=True)]
        self._bound(joint, direction, ratios, np.maximum(mu + dmu, 0.0), nu)

        primal = _length(joint, direction)
        dual = min(_length(zeta, dzeta), _length(mu[budgets], dmu[budgets]))
        while True:
            trial = k + primal * direction / self.weights
            trial = self._independent(trial / trial.sum(axis=1, keepdims=True))
            left = self.rooms - self.terms.information(np.maximum(trial, 0.0))
            if (trial > 0).all() and (left[budgets] > 0.01 * room[budgets]).all():
                break
            primal *= 0.7
            if primal < 1e-10:
                self.exhausted = True
                return
        self._k, self._room = trial, left
        self._zeta, self._mu = zeta + dual * dzeta, mu + dual * dmu
        self._nu = [old + dual * new for old, new in zip(self._nu, multiplied, strict=True)]
        # A step that does not narrow the gap by a fiftieth is no progress.
        self._stalled = 0 if self.gap < 0.98 * before else self._stalled + 1
        self._centering = CENTERING if min(primal, dual) > 0.5 else 2 * CENTERING
        self.exhausted = not comp > 1e-15 * self.scale or self._stalled >= 12

    def _solve(
        self, joint: Array, slopes: Array, ratios: list[Array], target: Array, shortage: Array
    ) -> tuple[Array, Array, list[Array]]:
        """Return the Newton direction, and how the budgets' multipliers and nu change."""
        n, outputs = joint.shape
        diagonal = self._zeta / joint
        columns, inverse = [], []
        for coalition, pairs, classes, slope in zip(
            self.terms.coalitions, self._pairs, self._classes, slopes, strict=True
        ):
            if slope < NEGLIGIBLE:
                continue
            if coalition.separates_rows:
                diagonal = diagonal + slope / joint
            else:
                columns.append(pairs)
                inverse.append(coalition.pairs.sums(joint).ravel() / slope)
            columns.append(classes)
            inverse.append(-coalition.classes.sums(joint).ravel() / slope)
        for c in self.budgets:
            columns.append(ratios[c].reshape(-1, 1))
            inverse.append(np.array([self._room[c] / self._mu[c]]))
        sizes = self._sizes
        columns += self._equalities
        inverse += [np.zeros(size) for size in sizes]
        columns.append(self._row_sums)
        inverse.append(np.zeros(n))

        U: Any = np.hstack(columns) if self._full else hstack(columns, format="csr")
        # Without the rows' multipliers, which would cost all digits near the end.
        target = target - (target / diagonal).sum(axis=1, keepdims=True) / (1 / diagonal).sum(
            axis=1, keepdims=True
        )
        spread = 1 / diagonal.ravel()
        weighted = U * spread[:, None] if self._full else diags_array(spread) @ U
        matrix = U.T @ weighted
        right = U.T @ (spread * target.ravel())
        tail = len(right) - n
        head = tail - sum(sizes)
        right[head - len(shortage) : head] -= shortage
        if sizes:
            # The equalities depend on each other (their sum over r̂ is one of the rows' sums).
            floor = 1e-11 * float(matrix.diagonal()[head:tail].max())
            inverse[-1 - len(sizes) : -1] = [np.full(size, floor) for size in sizes]
            right[head:tail] += np.concatenate([e.T @ joint.ravel() for e in self._equalities])
        found = _solved(matrix, np.concatenate(inverse), right)
        direction = spread * (target.ravel() - U @ found)
        multiplied = np.split(found[head:tail], np.cumsum(sizes)[:-1]) if sizes else []
        return direction.reshape(n, outputs), found[head - len(self.budgets) : head], multiplied

    def _bound(
        self, joint: Array, direction: Array, ratios: list[Array], mu: Array, nu: list[Array]
    ) -> None:
        """Evaluate the dual function where the step points, with the step's posteriors."""
        total, gradient = 0.0, self.cost
        references = [np.zeros_like(joint) for _ in ratios]
        for c, coalition in enumerate(self.terms.coalitions):
            slope = self.prices[c] + mu[c]
            if slope <= 0:
                continue
            change = _relative(coalition.pairs, joint, direction)
            change = change - _relative(coalition.classes, joint, direction)
            references[c] = coalition.normalized(ratios[c] + np.clip(change, -30.0, 30.0))
            gradient = gradient + slope * references[c]
            if mu[c] > 0:
                total -= mu[c] * self.rooms[c]
        for c, equality, free in zip(self.exact, self._equalities, nu, strict=True):
            references[c] = (equality @ free).reshape(joint.shape)
            gradient = gradient + references[c]
        lower = float(total + self.terms.weights @ gradient.min(axis=1))
        if lower > self.lower:
            self.lower, self.multipliers, self.references = lower, mu, references


class _Indicators:
    """The sums over the groups of a coalition as sparse columns, one per group and output."""

    def __init__(self, coalition: Coalition, outputs: int) -> None:
        self._coalition, self._outputs = coalition, outputs
        self.pairs = _columns(coalition.pairs, outputs)
        self.classes = _columns(coalition.classes, outputs)

    @property
    def independence(self) -> csr_array:
        """p(r̂,s,x) - p(x|s) p(r̂,s), which is 0 where R̂ and X are independent given s."""
        coalition, outputs = self._coalition, self._outputs
        first = coalition.pairs.first
        classes = coalition.classes.index[first]
        rows = (classes[:, None] * outputs + np.arange(outputs)).ravel()
        chances = np.repeat(coalition.chance[first, 0], outputs)
        shape = coalition.classes.size * outputs, len(chances)
        spread = csr_array((chances, (rows, np.arange(len(chances)))), shape=shape)
        return csr_array(self.pairs - self.classes @ spread)


def _solved(matrix: Any, added: Array, right: Array) -> Array:
    """Return x with (matrix + diag(added)) x = right."""
    # Pivots are compared in size, so all unknowns get the same.
    size = 1 / np.sqrt(np.abs(matrix.diagonal() + added) + 1e-300)
    if len(right) <= DENSE:
        full = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        full = (full + np.diag(added)) * size[:, None] * size
        return size * np.linalg.solve(full, size * right)
    sizing = diags_array(size)
    factors = splu(
        (sizing @ (matrix + diags_array(added)) @ sizing).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.1,
        options={"SymmetricMode": True},
    )
    return size * factors.solve(size * right)


def _columns(groups: Groups, outputs: int) -> csr_array:
    columns = (groups.index[:, None] * outputs + np.arange(outputs)).ravel()
    shape = (len(columns), groups.size * outputs)
    return csr_array((np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=shape)


def _relative(groups: Groups, joint: Array, direction: Array) -> Array:
    return (groups.sums(direction) / groups.sums(joint))[groups.index]


def _length(values: Array, direction: Array) -> float:
    """Return the longest step up to 1 that keeps positive values clear of 0."""
    falling = direction < 0
    if not falling.any():
        return 1.0
    return min(1.0, TOWARDS_BOUNDARY * float((values[falling] / -direction[falling]).min()))
