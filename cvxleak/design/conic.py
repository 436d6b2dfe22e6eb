"""The master of a design in CVXPY: for the user's constraints, and for any solver.

The same program as in `cvxleak.design.interior`, with s = W Q and s_y as variables of
their own, so that the cones are as many as the adversaries' cells (value, output).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.sparse import csr_array, eye_array, kron
from scipy.special import entr, softmax

from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, SolverError
from cvxleak.core.validation import Array
from cvxleak.design.feasible import snapped
from cvxleak.design.goal import Goal
from cvxleak.design.interior import Master, MasterPoint
from cvxleak.design.outer_approximation import HalfSpaces, Implied
from cvxleak.design.slater_repair import SlaterRepair
from cvxleak.design.user_constraints import UserConstraints
from cvxleak.design.work import PROGRAM, STEP
from cvxleak.solvers.conic import SOLVERS, attempt, check_solver

__all__ = ["Conic", "OutOfTimeError"]


ANSWERS = (
    cp.OPTIMAL,
    cp.OPTIMAL_INACCURATE,
    cp.INFEASIBLE,
    cp.INFEASIBLE_INACCURATE,
    cp.UNBOUNDED,
    cp.UNBOUNDED_INACCURATE,
)
"""Statuses that say something; others are a limit, or what a solver that failed says."""

LEAST_WEIGHT = 1e-9
"""Duals of an adversary whose multiplier is less than this part of the largest say nothing."""


class OutOfTimeError(SolverError):
    """The time limit was reached before a solver found a channel."""


class Conic:
    """CVXPY programs over the channels that meet the user's constraints.

    Parameters
    ----------
    shape : (rows, outputs)
    half_spaces : HalfSpaces or None
        The user's constraints, if there are any.
    solver, options
        For CVXPY.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        half_spaces: HalfSpaces | None,
        solver: str | None,
        options: dict[str, Any],
    ) -> None:
        self.shape, self._half_spaces = shape, half_spaces
        self._solver, self._options = check_solver(solver), options
        self._user = UserConstraints(shape, ()) if half_spaces is None else half_spaces.user

    def solve(
        self, master: Master, clock: Clock | None = None
    ) -> tuple[MasterPoint, Implied | None]:
        """Return the master's optimum, and what its lower bound takes from user constraints.

        The lower bound is what linear programming multipliers prove, not what a solver says.
        """
        q, stochastic = self._channel()
        t = cp.Variable()
        many, values, _ = master.joint.shape
        s = cp.Variable((many * values, self.shape[1]))
        output = cp.Variable((many, self.shape[1]))
        fold = kron(eye_array(many), csr_array(np.ones((1, values))), format="csr")
        secret = master.joint.sum(axis=2)
        joint = csr_array(master.joint.reshape(many * values, -1))
        seen = np.flatnonzero(secret.ravel() > 0)  # a cone on what is always zero has no interior
        u = cp.Variable((len(seen), self.shape[1]))
        cone = cp.ExpCone(-u, s[seen], (fold.T @ output)[seen])
        information = fold[:, seen] @ cp.sum(u, axis=1) + entr(secret).sum(axis=1)
        ceiling: Any = t if master.goal is Goal.LEAKAGE else master.budget
        leaks = information <= ceiling
        rules: list[Any] = [*stochastic, s == joint @ q, output == fold @ s, leaks, cone]
        spends = None
        if len(master.cost):
            spent = cp.Constant(master.cost.reshape(len(master.cost), -1)) @ cp.vec(q, order="C")
            spends = spent <= (master.budget if master.goal is Goal.LEAKAGE else t)
            rules.append(spends)
        problem = self._solved(cp.Problem(cp.Minimize(t), rules), clock or Clock())
        if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
            raise InfeasibleError(
                "budget: no channel meets it together with the constraints; raise it, or loosen one"
            )
        matrix = self._settled(q.value)
        theta = _multipliers(leaks)
        beta = np.zeros(len(master.cost))
        if spends is not None:
            beta = _multipliers(spends)
        joint_law, _, informations = master.informations(matrix)
        posteriors = _posteriors(joint_law, secret, theta, cone)
        scale = float((theta if master.goal is Goal.LEAKAGE else beta).sum())
        theta, beta = theta / scale, beta / scale
        objective = informations if master.goal is Goal.LEAKAGE else master.distortions(matrix)
        work = PROGRAM + STEP * (problem.solver_stats.num_iters or 0)
        point = MasterPoint(matrix, float(objective.max()), -np.inf, theta, beta, posteriors, work)
        if self._half_spaces is None:
            return replace(point, lower=master.bound(posteriors, theta, beta)), None
        implied = self._half_spaces.least(master.coefficients(posteriors, theta, beta))
        paid = float((beta if master.goal is Goal.LEAKAGE else theta).sum()) * master.budget
        return replace(point, lower=implied.least - paid), implied

    def least_worst(self, cost: Array) -> Array:
        """Return a channel of least worst-case distortion among those that meet the constraints."""
        q, rules = self._channel()
        return self._least_worst(q, rules, cost)

    def constant(self, cost: Array) -> Array | None:
        """Return the best output distribution common to all rows, or None if no row is allowed."""
        q, rules = self._channel()
        rules.append(q[1:] == q[:-1])
        try:
            found = self._least_worst(q, rules, cost)[0]
        except InfeasibleError:
            return None
        law = snapped(found[None])
        inside = SlaterRepair(self._user.also(lambda q: q[1:] == q[:-1]))
        return snapped(inside.repaired(np.tile(law, (self.shape[0], 1))))[0]

    def _least_worst(self, q: cp.Variable, rules: list[Any], cost: Array) -> Array:
        spent = cp.Constant(cost.reshape(len(cost), -1)) @ cp.vec(q, order="C")
        self._solved(cp.Problem(cp.Minimize(cp.max(spent)), rules), Clock())
        if q.value is None:
            raise InfeasibleError("constraints: no channel meets them; loosen one")
        return self._settled(q.value)

    def _settled(self, value: Any) -> Array:
        """Return what a solver found as a channel that meets user constraints."""
        matrix = _stochastic(value)
        return matrix if self._half_spaces is None else self._half_spaces.inside.repaired(matrix)

    def _channel(self) -> tuple[cp.Variable, list[Any]]:
        q = self._user.channel
        return q, [cp.sum(q, axis=1) == 1, *self._user.constraints]

    def _solved(self, problem: cp.Problem, clock: Clock) -> cp.Problem:
        # Where little leaks the objective is flat, and multipliers are off by the square root of
        # what its value is off by. CVXPY's own choice where there are matrices is SCS, which is
        # too coarse to come first.
        attempts: list[tuple[str, dict[str, Any]]] = [
            ("CLARABEL", {**SOLVERS["CLARABEL"].sharp, **self._options}),
            ("CLARABEL", self._options),
            ("SCS", {}),
        ]
        if self._solver == "CLARABEL":
            attempts = attempts[:2]
        elif self._solver is not None:
            attempts = [(self._solver, self._options)]
        status = ""
        for solver, options in attempts:
            if clock.late:
                raise OutOfTimeError("time_limit: no time is left for the master")
            status = attempt(problem, solver, options, clock)
            if status in ANSWERS:
                return problem
        raise SolverError(
            f"the master failed: {status}; another solver, or its solver_options, may get further"
        )


def _multipliers(constraint: Any) -> Array:
    return np.maximum(np.atleast_1d(np.asarray(constraint.dual_value, dtype=float)), 0.0)


def _posteriors(joint: Array, secret: Array, theta: Array, cone: cp.ExpCone) -> Array:
    """Return posteriors from the dual solution of the cones, or `joint` where there is none.

    u >= s log(s / r) is the cone s e^(-u/s) <= r. A point (-w, b, c) of the dual cone stands for
    the tangent w u >= -b s - c r; the best posterior for given b is proportional to e^(-b / w).
    Duals are accurate where the logarithm of a tiny primal entry is not.
    """
    duals: Any = cone.dual_value
    if duals is None:
        return joint
    known = secret > 0
    slopes = np.zeros(joint.shape)
    slopes[known] = np.reshape(duals[1], cone.y.shape, order="C")
    result = joint.copy()
    for place in np.flatnonzero(theta > LEAST_WEIGHT * theta.max(initial=0.0)):
        result[place] = 0.0
        result[place, known[place]] = softmax(-slopes[place, known[place]] / theta[place], axis=0)
    return result


def _stochastic(matrix: Any) -> Array:
    q = np.maximum(np.asarray(matrix, dtype=float), 0.0)
    return q / q.sum(axis=1, keepdims=True)
