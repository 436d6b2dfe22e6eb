"""`Domain`: the lumped priors of an adversary class, and how to get into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import null_space, qr
from scipy.optimize import linprog, minimize
from scipy.special import entr, logsumexp

from cvxleak.audit.search.limited import limited_blahut_arimoto
from cvxleak.core.errors import CertificateError, InfeasibleError, SolverError
from cvxleak.core.validation import Array
from cvxleak.exact.balls import precision
from cvxleak.exact.rationals import dot, rational
from cvxleak.iterative.formulas import information
from cvxleak.iterative.joint_update import Updater
from cvxleak.model import Limits, Lumped
from cvxleak.model.restricted import Linear, Restricted
from cvxleak.proofs.bounds.adversary_class import check_member, limits_of, reference_weights

__all__ = ["Domain"]

IMPLICIT = 1e-9
"""An inequality that no prior of the class misses by more than this much is an equation."""

TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
SHARES = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 0.0)
MARGIN = 1e-12

USUAL = 16
"""Constraints whose largest coefficient is within this power of two of 1 are used as they are."""

POINT = 1e-10
"""A relative-entropy ball of at most this radius is searched at its reference only."""

NEGLIGIBLE = 1e-30
"""Weights of a witness up to this are left out."""


SEGMENT_SIZE = 10**6
"""Most coefficients of the equations for which it is looked whether they leave a segment."""

GRID, ZOOMS = 201, 8
"""Points of a grid on a segment, and how often it is made finer: 100 times each."""

ON_SEGMENT = 1e-12
"""How far a point of a segment may miss a constraint, by rounding; it is moved inside later."""


class Domain:
    """Priors that meet the floor F(w) >= b and the constraints of a restricted problem.

    Attributes
    ----------
    limits : Limits
        What every prior of the class meets, as the upper bound uses it.
    center : array, shape (N,)
        A prior of the class with large entropy and with slack in the constraints.

    Raises
    ------
    InfeasibleError
        No prior is in the class; the message says by how much it is missed.
    """

    def __init__(self, restricted: Restricted, floor: float) -> None:
        self.restricted, self.floor = restricted, floor
        self.lumped = restricted.lumped
        self.limits = limits_of(restricted)
        self._E, self._e = _arrays(restricted.equations, len(self.lumped.rows))
        self._C, self._d = _arrays(restricted.inequalities, len(self.lumped.rows))
        linear = 2 * len(self._e) + len(self._d)
        self._log_p = -self.limits.coefficients[linear:]
        self._radii = self.limits.bounds[linear:]
        inside = self._relative_center()
        self._separate()
        self._inside = self._onto_equations(np.where(self._possible, inside, 0.0))
        shares = np.repeat([0.0, 1.0], [len(self._d), len(self._radii)])
        self._open = Limits(
            np.vstack([self._C, -self._log_p]), np.concatenate([self._d, self._radii]), shares
        )
        self.center = self._doubtful()
        table = np.vstack([np.ones(len(self._possible)), self._E])[:, self._possible]
        directions = null_space(table) if table.size <= SEGMENT_SIZE else np.zeros((0, 0))
        self._direction: Array | None = None
        if directions.shape[1] == 1:
            self._direction = np.zeros(len(self._possible))
            self._direction[self._possible] = directions[:, 0]
        exact = self.exact(self.center)
        if exact is None:
            raise InfeasibleError(
                "adversaries: no prior was found that meets the equations exactly, although "
                "some meet them up to rounding; if equations are redundant, state each only "
                "once, or use at_least and at_most slightly apart"
            )
        with precision():
            try:
                check_member(restricted, floor, exact)
            except CertificateError as error:
                raise InfeasibleError(
                    "adversaries: no prior was found that provably meets the constraints, "
                    f"although some meet them up to rounding; for the nearest one, {error}"
                ) from error

    def search(
        self,
        starts: int | Array,
        rng: np.random.Generator,
        max_iterations: int,
        lumped: Lumped | None = None,
    ) -> list[tuple[Array, float]]:
        """Look for priors of the class that leak much; return them with the floor's multiplier.

        `lumped` is the problem with other rows, where they are only known to lie in a set.
        """
        lumped = self.lumped if lumped is None else lumped
        if self._room <= MARGIN * (1 + lumped.max_entropy):
            return []  # F is strictly concave: there is no other prior than the center
        if self._direction is not None:
            return [self._best_on_segment(self._direction, lumped)]
        if isinstance(starts, (int, np.integer)):
            # A value's mass goes to random rows, half of the time nearly all of it to one; the
            # groups with equal rows share it as they do at the center.
            weights = np.tile(self.center, (int(starts), 1))
            for a in range(len(lumped.values)):
                own = np.flatnonzero(lumped.value_index == a)
                row_of = np.unique(lumped.rows[own], axis=0, return_inverse=True)[1].ravel()
                total = np.bincount(row_of, weights=self.center[own])
                share = rng.dirichlet(np.full(len(total), 0.3), size=int(starts))
                chosen = rng.integers(len(total), size=(int(starts) + 1) // 2)
                share[::2] = 0.02 * share[::2] + 0.98 * np.eye(len(total))[chosen]
                scale = share * total.sum() / np.maximum(total, 1e-300)
                weights[:, own] *= scale[:, row_of]
        else:
            weights = np.asarray(starts)
        weights = weights / weights.sum(axis=1, keepdims=True)
        weights = 0.98 * weights + 0.02 * self.center
        member = lumped.value_index[None] == np.arange(len(lumped.values))[:, None]
        joints = np.einsum("sg,ag,gy->say", weights, member, lumped.rows)
        if isinstance(starts, (int, np.integer)):
            # A third of them: an unrelated posterior for each output, which no prior need have.
            k, outputs = member.shape[0], lumped.rows.shape[1]
            posteriors = rng.dirichlet(np.ones(k), size=(len(joints[::3]), outputs))
            joints[::3] = posteriors.swapaxes(1, 2) / outputs
        found, values, lams = limited_blahut_arimoto(
            lumped,
            self.floor,
            self._open,
            (self._E, self._e),
            joints,
            self._prices,
            max_iterations=max_iterations,
        )
        order = np.argsort(-values)
        return [(found[i], float(lams[i])) for i in order if np.isfinite(values[i])]

    def _best_on_segment(self, direction: Array, lumped: Lumped) -> tuple[Array, float]:
        """Return the prior that leaks most where the equations leave a segment, and its multiplier.

        On a grid, and again around its best point.
        """
        # The priors are center + t direction with A (center + t direction) <= a.
        A = np.vstack([self._C, -np.eye(len(direction))])
        room = np.concatenate([self._d, np.zeros(len(direction))]) - A @ self.center
        slope = A @ direction
        low = float((room[slope < 0] / slope[slope < 0]).max(initial=-np.inf))
        high = float((room[slope > 0] / slope[slope > 0]).min(initial=np.inf))
        updater = Updater(lumped, self.floor)

        def leakage(t: Array) -> Array:
            return information(updater.joint(self._along(direction, t)))

        ends = low, high
        best = 0.0
        for _ in range(ZOOMS):
            t = np.linspace(low, high, GRID)
            inside = [self._misses(w) <= ON_SEGMENT for w in self._along(direction, t)]
            t = np.append(t[inside], best)
            best = float(t[leakage(t).argmax()])
            step = (high - low) / (GRID - 1)
            low, high = max(ends[0], best - step), min(ends[1], best + step)
        near = best + np.array([0.0, 1e-6, -1e-6]) * (ends[1] - ends[0])
        values, points = leakage(near), self._along(direction, near)
        doubts = entr(points).sum(axis=1) + points @ lumped.log_multiplicity
        multiplier = 0.0
        if doubts[0] <= self.floor * (1 + 1e-6):
            # The leakage rises where the uncertainty falls.
            side = 1 if doubts[1] < doubts[0] else 2
            multiplier = max(
                0.0, float(values[side] - values[0]) / max(doubts[0] - doubts[side], 1e-300)
            )
        return points[0], multiplier

    def _along(self, direction: Array, t: Array) -> Array:
        return np.maximum(self.center + t[:, None] * direction, 0.0)

    def meet(self, weights: Array) -> Array:
        """Return the first prior of the class (up to rounding) on the way to its center."""
        given = np.where(self._possible, np.maximum(weights, 0.0), 0.0)
        for share in (0.0, 1e-9, 1e-6, 1e-3, 0.1, 1.0):
            w = self._onto_equations((1 - share) * given + share * self.center)
            if self._equal(w) and w.min() >= 0:
                break
        if self._misses(w) <= 0:
            return w
        low, high = 0.0, 1.0
        for _ in range(60):
            theta = (low + high) / 2
            if self._misses((1 - theta) * w + theta * self.center) <= 0:
                high = theta
            else:
                low = theta
        return (1 - high) * w + high * self.center

    def allowed(self, weights: Array) -> tuple[Array, list[str]]:
        """Return a prior near `weights` that is proved to be in the class, also in fractions.

        Raises
        ------
        CertificateError
            No prior as near as rounding allows is certainly in the class.
        """
        exact = self.exact(weights)
        if exact is None:
            raise CertificateError("no exact solution of the equations was found")
        check_member(self.restricted, self.floor, exact)
        return np.array([int(x.p) / int(x.q) for x in exact]), list(map(str, exact))

    def exact(self, weights: Array) -> list[fmpq] | None:
        """Return a distribution near `weights` that meets the equations exactly.

        If a ball is too small for rounding, it is the ball's reference, or as near it as possible.
        """
        for ball in self.restricted.references:
            if ball.radius <= POINT:
                reference = reference_weights(self.lumped, ball)
                if self._meets(reference):
                    return reference
                weights = np.array([int(x.p) / int(x.q) for x in reference])
        weights = np.where(weights > NEGLIGIBLE, weights, 0.0)
        w = [rational(float(x)) for x in np.where(self._possible, weights, 0.0)]
        implicit = [self.restricted.inequalities[j] for j in sorted(self._implicit)]
        linear = [*self.restricted.equations, *implicit]
        rows = [[fmpq(1)] * len(w), *(_exact(one) for one in linear)]
        sides = [fmpq(1), *(_side(one) for one in linear)]
        table = np.vstack([np.ones(len(w)), *(one.coefficients for one in linear)])
        scaled = table * weights
        scaled /= np.maximum(np.abs(scaled).max(axis=1, keepdims=True), 1e-300)
        # Some columns of large weight determine the rest. What depends on earlier rows is only
        # checked: an inequality may hold, though as an equation it would be off by rounding.
        kept = _independent(scaled)
        columns = [int(g) for g in _pivoted(scaled[kept])[: len(kept)]]
        matrix = fmpq_mat([[rows[j][g] for g in columns] for j in kept])
        others = [fmpq(0) if g in columns else x for g, x in enumerate(w)]
        right = fmpq_mat([[sides[j] - dot(rows[j], others)] for j in kept])
        try:
            solved = matrix.solve(right)
        except ZeroDivisionError:
            return None
        for place, g in enumerate(columns):
            w[g] = solved[place, 0]
        return w if sum(w, fmpq(0)) == 1 and min(w) >= 0 and self._meets(w) else None

    def _meets(self, w: Sequence[fmpq]) -> bool:
        equal = all(dot(_exact(one), w) == _side(one) for one in self.restricted.equations)
        return equal and all(
            dot(_exact(one), w) <= _side(one)
            for one in (self.restricted.inequalities[j] for j in self._implicit)
        )

    def _equal(self, w: Array) -> bool:
        scale = np.abs(self._E).max(axis=1, initial=1.0)
        off = np.abs(self._E @ w - self._e) / scale
        return bool(off.max(initial=0.0) <= 1e-12 and abs(w.sum() - 1) <= 1e-12)

    def _misses(self, w: Array) -> float:
        """Return a positive number if w misses anything but the equations."""
        doubt = float(entr(w).sum() + w @ self.lumped.log_multiplicity)
        margin = MARGIN * (1 + self.lumped.max_entropy)
        worst = max(-float(w.min()), self.floor + margin - doubt if self.floor > 0 else -1.0)
        if len(self._d):
            scale = 1e-15 * np.abs(self._C).max(axis=1)
            worst = max(worst, float((self._C @ w - self._d + scale).max()))
        for log_p, radius in zip(self._log_p, self._radii, strict=True):
            worst = max(worst, float(-doubt - w @ log_p + margin - radius))
        return worst

    def _onto_equations(self, w: Array) -> Array:
        """Return w with each group's weight changed in proportion, so that the equations hold."""
        w = np.maximum(w, 1e-300 * self._possible)
        table = np.vstack([np.ones((1, len(w))), self._E])
        sides = np.concatenate([[1.0], self._e])
        for _ in range(12):
            missing = sides - table @ w
            gram = (table * w) @ table.T
            change = np.linalg.lstsq(gram, missing, rcond=1e-13)[0] @ table
            # Newton's method for factors exp(x^T E): no weight turns negative.
            w = w * np.exp(np.clip(change, -5.0, 5.0))
        return w

    def _relative_center(self) -> Array:
        """Return a distribution with slack in all constraints that allow any; find the others."""
        size, most = len(self.lumped.rows), len(self._d)
        scale = 1 / np.maximum(np.abs(self._C).max(axis=1, initial=1.0), np.abs(self._d))
        C, d = self._C * scale[:, None], self._d * scale
        # Homogenized: w = q / a. All slacks s <= 1 that can be positive can be 1.
        upper = sparse.bmat(
            [
                [-sparse.eye(size), None, sparse.eye(size), None],
                [sparse.csr_matrix(C), -d[:, None], None, sparse.eye(most)],
            ]
            if most
            else [[-sparse.eye(size), np.zeros((size, 1)), sparse.eye(size)]]
        )
        E = np.vstack([np.ones(size), self._E])
        e = np.concatenate([[1.0], self._e])
        equal = sparse.csr_matrix(np.hstack([E, -e[:, None], np.zeros((len(e), size + most))]))
        gain = np.concatenate([np.zeros(size + 1), -np.ones(size + most)])
        bounds = [(0, None)] * size + [(1, 1 / IMPLICIT)] + [(0, 1)] * (size + most)
        zero = np.zeros(size + most), np.zeros(len(e))
        answer = _solved(gain, upper.tocsr(), zero[0], equal, zero[1], bounds)
        if answer.status == 2:
            raise InfeasibleError(
                "adversaries: no prior meets the constraints; every prior violates one of them "
                f"by at least {self._least_violation():.3g}"
            )
        if answer.status != 0:
            raise SolverError(f"adversaries: {answer.message}")
        slack = answer.x[size + 1 :]
        self._possible: NDArray[np.bool_] = slack[:size] > 0.5
        self._implicit = {int(j) for j in np.flatnonzero(slack[size:] < 0.5)}
        return answer.x[:size] / answer.x[size]

    def _separate(self) -> None:
        """Count as equations what leaves no room, but only what says something new."""
        implicit = sorted(self._implicit)
        table = np.vstack([np.ones((1, len(self._possible))), self._E, self._C[implicit]])
        kept = np.array(_independent(table * self._possible)[1:], dtype=np.intp)
        self._E = table[kept]
        self._e = np.concatenate([self._e, self._d[implicit]])[kept - 1]
        self._C = np.delete(self._C, implicit, axis=0)
        self._d = np.delete(self._d, implicit)

    def _least_violation(self) -> float:
        size = len(self.lumped.rows)
        rows = np.vstack([self._C, self._E, -self._E])
        sides = np.concatenate([self._d, self._e, -self._e])
        answer = _solved(
            np.append(np.zeros(size), 1.0),
            np.hstack([rows, -np.ones((len(rows), 1))]),
            sides,
            np.append(np.ones(size), 0.0)[None],
            [1.0],
            [(0, None)] * size + [(0, None)],
        )
        return float(answer.fun) if answer.status == 0 else np.inf

    def _doubtful(self) -> Array:
        """Return a prior whose least slack in floor and balls is largest, with some room.

        max over w of min(F(w) - b, r_j - D(w || p0_j)) = min over theta in the simplex, kappa >= 0
        and eta of log sum_g m_g exp(<theta, log p0> - C^T kappa - E^T eta) + <theta, (-b, r)>
        + <kappa, d> + <eta, e>, since the coefficients theta of the entropy sum to 1.
        """
        where = np.flatnonzero(self._possible)
        balls, most, equal = len(self._radii), len(self._d), len(self._e)
        scale = np.concatenate(
            [
                np.ones(balls),
                np.maximum(np.abs(self._C).max(axis=1, initial=0.0), 1e-300),
                np.maximum(np.abs(self._E).max(axis=1, initial=0.0), 1e-300),
            ]
        )
        columns = np.concatenate([self._log_p, -self._C, -self._E])[:, where] / scale[:, None]
        sides = np.concatenate([self._radii + self.floor, self._d, self._e]) / scale
        log_m = self.lumped.log_multiplicity[where]

        def dual(z: Array) -> tuple[float, Array]:
            logits = log_m + z @ columns
            total = float(np.asarray(logsumexp(logits)))
            law = np.exp(logits - total)
            return total - self.floor + float(z @ sides), columns @ law + sides

        bounds = [(0.0, 1.0)] * balls + [(0.0, 1e6)] * most + [(-1e6, 1e6)] * equal
        rules = []
        if balls > 1:
            ones = np.concatenate([np.ones(balls), np.zeros(most + equal)])
            rules = [{"type": "ineq", "fun": lambda z: 1 - ones @ z, "jac": lambda z: -ones}]
        z = np.zeros(balls + most + equal)
        z[:balls] = 1 / (1 + balls)
        if len(z):
            method = "SLSQP" if rules else "L-BFGS-B"
            options = {"maxiter": 2000, "ftol": 1e-14}
            found: Any = minimize(
                dual, z, jac=True, bounds=bounds, constraints=rules, method=method, options=options
            )
            z = np.asarray(found.x)
            if rules:
                z[:balls] = np.clip(z[:balls], 0, 1) / max(1.0, np.clip(z[:balls], 0, 1).sum())
        # In the order of the limits: linear ones, balls, equations.
        free = z / scale
        self._prices = np.concatenate([free[balls:][:most], free[:balls], free[balls + most :]])
        value = dual(z)[0]
        self._room = 0.0 if self._radii.min(initial=np.inf) <= POINT else value
        if value < 0:
            raise InfeasibleError(self._why(value))
        logits = log_m + z @ columns
        doubtful = np.zeros(len(self.lumped.rows))
        doubtful[where] = np.exp(logits - np.asarray(logsumexp(logits)))
        doubtful = self._onto_equations(doubtful)
        # Into the linear constraints, with as much room as floor and balls leave.
        for share in SHARES:
            center = (1 - share) * doubtful + share * self._inside
            if self._misses(center) <= 0:
                return center
        low, high = 0.0, 1.0
        for _ in range(60):
            share = (low + high) / 2
            mixed = (1 - share) * doubtful + share * self._inside
            if most and (self._C @ mixed > self._d).any():
                low = share
            else:
                high = share
        center = (1 - high) * doubtful + high * self._inside
        if self._misses(center) > 1e-9:
            raise InfeasibleError(self._why(value))
        return center

    def _why(self, slack: float) -> str:
        if len(self._radii) == 0:
            return (
                f"entropy_floor: found {self.floor!r} nats; no prior that meets the other "
                f"constraints has more than {self.floor + slack!r} nats"
            )
        return (
            "adversaries: no prior meets the entropy floor, the relative-entropy balls and the "
            f"other constraints; each misses one of them by at least {max(-slack, 0.0):.3g} nats"
        )


def _solved(*program: Any) -> Any:
    """Return what SciPy makes of a linear program."""
    answer: Any = None
    # HiGHS gives up in its presolve where equations agree to the last digit or so.
    for presolve in (True, False):
        options: Any = TOLERANCES | {"presolve": presolve}
        answer = linprog(*program, method="highs", options=options)
        if answer.status != 4:
            break
    return answer


def _independent(rows: Array) -> list[int]:
    """Return the first rows that span all, earlier ones first."""
    basis = np.empty((0, rows.shape[1]))
    kept = []
    for j, row in enumerate(rows):
        rest = row
        for _ in range(2):
            rest = rest - (basis @ rest) @ basis
        length = float(np.linalg.norm(rest))
        if length > 1e-11 * float(np.linalg.norm(row)):
            basis = np.vstack([basis, rest / length])
            kept.append(j)
    return kept


def _pivoted(table: Array) -> NDArray[np.intp]:
    """Return the order of the columns in a pivoted QR decomposition."""
    found: Any = qr(table, mode="r", pivoting=True)
    return found[1]


def _arrays(linear: Sequence[Linear], size: int) -> tuple[Array, Array]:
    """Return coefficients and sides, those of an unusual size divided by a power of two."""
    rows = np.array([one.coefficients for one in linear], dtype=float).reshape(-1, size)
    exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
    exponents = np.where(np.abs(exponents) > USUAL, exponents, 0)
    sides = np.array([float(one.side) for one in linear])
    return np.ldexp(rows, -exponents[:, None]), np.ldexp(sides, -exponents)


def _exact(one: Linear) -> list[fmpq]:
    return [rational(c) for c in one.coefficients]


def _side(one: Linear) -> fmpq:
    return fmpq(one.side.numerator, one.side.denominator)
