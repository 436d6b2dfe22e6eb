"""The best channel for known priors under constraints of the user's own, by CVXPY.

The solver's channel is made stochastic and evaluated; its tangent gives the lower end: information
is convex, so with multipliers w and mu no channel of the set has a value below the least value of
the linear function sum_k w_k <G_k, q> + sum_j mu_j E_j d on it. That least value is a linear (or
conic) program again, and how the user's own constraints enter it is known to the solver alone: the
certificate stores it as the half-space that they are taken to imply.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from scipy.special import entr

from cvxleak._validation import Array
from cvxleak.certificates.balls import precision
from cvxleak.certificates.fixed_prior import prove_distortion, prove_leakage
from cvxleak.constraints import local_dp, maximal_leakage, pml
from cvxleak.errors import CertificateError, InfeasibleError, SolverError
from cvxleak.iterative.design_terms import DesignTerms
from cvxleak.problems.design.fixed_prior_native import Found
from cvxleak.problems.design.fixed_prior_statement import Statement, stochastic
from cvxleak.problems.design.own_constraints import Rule, own_constraints, relaxed
from cvxleak.problems.design.private_utility import private_content

__all__ = ["Program", "program", "solve_with_own"]

MARGINS = (1e-8, 1e-7, 1e-6, 1e-5)
"""How much tighter inequalities are made for the solver, which misses them by about as much."""

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
"""CLARABEL's options unless the user has others: where it stops short, it says so and goes on."""

DOUBT = 1e-8
"""What is taken off a solver's optimal value of the tangent program, relative to its size."""

FLOOR = 1e-12
"""Smallest entry of the tangent's reference: below it a solver's point is noise."""

DYING = 1e-5
"""Outputs less likely than this for every input are taken to be noise altogether."""

DUST = 1e-7
REFERENCES = 60
"""Most tangents that are tried."""


class Program(NamedTuple):
    """A problem in CVXPY and the parts of it that are looked at afterwards."""

    problem: cp.Problem
    channel: cp.Variable
    leaks: list[cp.Constraint]
    costs: list[cp.Constraint]


def program(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    rules: tuple[Rule, ...],
    margin: float = 0.0,
) -> Program:
    """Return the problem in CVXPY, with the channel as its variable ``channel``.

    `margin` tightens the budget and the user's inequalities by so much.
    """
    n, m = statement.distortion.shape
    q = cp.Variable((n, m), nonneg=True, name="channel")
    scale = float(statement.distortion.max()) or 1.0
    level, spent = cp.Variable(name="leakage"), cp.Variable(name="distortion")
    costs: list[cp.Constraint] = [
        cp.sum(cp.multiply(law[:, None] * statement.distortion / scale, q)) <= spent / scale
        for law in statement.sources
    ]
    leaks: list[cp.Constraint] = []
    rest: list[Any] = [cp.sum(q, axis=1) == 1]
    if measure in ("total", "record"):
        leaks = [_information(table, q) <= level for table in statement.secrets]
    elif measure == "local_dp":
        rest += local_dp(q, max(number - margin, 0.0))
    elif measure == "pml":
        rest += pml(statement.laws[0], q, max(number - margin, 0.0))
    else:
        rest += maximal_leakage(statement.laws[0], q, max(number - margin, 0.0))
    objective = {"information": level, "distortion": spent, "sum": level + number * spent}[minimize]
    if minimize == "information":
        rest.append(spent <= number - margin * scale)
    elif minimize == "distortion" and leaks:
        rest.append(level <= number - margin)
    for constraint in own_constraints(rules, q):
        rest += relaxed(constraint, -margin) if margin else [constraint]
    return Program(cp.Problem(cp.Minimize(objective), [*leaks, *costs, *rest]), q, leaks, costs)


def solve_with_own(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    rules: tuple[Rule, ...],
    solver: str | None,
    options: dict[str, Any],
) -> tuple[Found, dict[str, Any]]:
    """Solve and return what was found, with the certificate's problem."""
    status = "not solved"
    for margin in (*MARGINS, 0.0):
        stated = program(statement, measure, minimize, number, rules, margin)
        status = _run(stated.problem, solver, options)
        if stated.channel.value is None:
            continue
        channel = stochastic(np.asarray(stated.channel.value))
        if not stated.leaks:
            # The privacy measures look at ratios, and those of dust are anything.
            channel = stochastic(np.where(channel.max(axis=0) > DUST, channel, 0.0))
        found = _ends(statement, measure, minimize, number, rules, stated, channel, solver, options)
        if found is not None:
            return found
    if status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        raise InfeasibleError(
            _nearest(statement, measure, minimize, number, rules, solver, options)
        )
    raise SolverError(f"no feasible channel was found; the solver says: {status}")


def _ends(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    rules: tuple[Rule, ...],
    stated: Program,
    channel: Array,
    solver: str | None,
    options: dict[str, Any],
) -> tuple[Found, dict[str, Any]] | None:
    information = bool(stated.leaks)
    weights = np.array([_dual(leak) for leak in stated.leaks])
    scale = float(statement.distortion.max()) or 1.0
    prices = np.array([_dual(cost) for cost in stated.costs]) / scale
    if minimize == "information" or minimize == "sum":
        weights = weights / weights.sum() if weights.sum() > 0 else weights + 1 / len(weights)
    if minimize != "information":
        total = 1.0 if minimize == "distortion" else number
        prices = prices * (total / prices.sum()) if prices.sum() > 0 else prices + total
    terms = DesignTerms(
        tuple(table / table.sum() for table in statement.secrets),
        (statement.sources / statement.sources.sum(axis=1, keepdims=True))[:, :, None]
        * statement.distortion,
    )
    tangent = _Tangent(statement, measure, number, rules, not information, solver, options)
    linear = np.tensordot(prices, terms.costs, 1)
    reference = np.maximum(channel, FLOOR)
    if information:
        reference, matrix, least = _best_reference(terms, weights, linear, reference, tangent)
    else:
        matrix, least = linear, tangent.least(linear)[0]
    own = [{"matrix": matrix.tolist(), "at_least": least}]
    proof: dict[str, Any] = {"prices": prices.tolist(), "own": [1.0]}
    if information:
        name = "slope" if minimize == "sum" else "budget"
        content = statement.content(minimize, name, number) | {"own": own}
        proof |= {"weights": weights.tolist(), "reference": reference.tolist()}
    else:
        content = private_content(statement, measure, number) | {"own": own}
        proof |= {"penalty": np.zeros_like(channel).tolist()}
    try:
        with precision():
            prove = prove_distortion if minimize == "distortion" else prove_leakage
            lower, upper = prove(content, {"channel": channel.tolist()}, proof)
    except CertificateError:
        return None
    price = {
        "information": -float(prices.sum()),
        "distortion": -float(weights.sum()) if information else np.nan,
        "sum": float(np.max(np.einsum("jxy,xy->j", terms.costs, channel))),
    }[minimize]
    stats = {"solver": solver or stated.problem.solver_stats.solver_name}
    stats |= {"stopped": stated.problem.status}
    return Found(channel, proof, lower, upper, price, stats), content


class _Tangent:
    """The least value of linear functions on the user's set of channels."""

    def __init__(
        self,
        statement: Statement,
        measure: str,
        number: float,
        rules: tuple[Rule, ...],
        private: bool,
        solver: str | None,
        options: dict[str, Any],
    ) -> None:
        shape = statement.distortion.shape
        self.q = cp.Variable(shape, nonneg=True)
        self.slope = cp.Parameter(shape)
        rest: list[Any] = [cp.sum(self.q, axis=1) == 1, *own_constraints(rules, self.q)]
        if private:
            rest += {
                "local_dp": lambda: local_dp(self.q, number),
                "pml": lambda: pml(statement.laws[0], self.q, number),
                "maximal_leakage": lambda: maximal_leakage(statement.laws[0], self.q, number),
            }[measure]()
        self.problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(self.slope, self.q))), rest)
        linear = self.problem.is_lp()
        self.solver, self.options = ("HIGHS", {}) if linear else (solver, options)

    def least(self, matrix: Array) -> tuple[float, Array]:
        """Return the least value less the solver's error, and a channel that attains it."""
        size = float(np.abs(matrix).max()) or 1.0
        self.slope.value = matrix / size
        status = _run(self.problem, self.solver, self.options)
        if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise SolverError(f"the tangent program was not solved: {status}")
        value = float(self.problem.value) * size  # pyright: ignore[reportArgumentType]
        q = np.maximum(np.asarray(self.q.value), 0.0)
        return value - DOUBT * (abs(value) + float(np.abs(matrix * q).sum())), q


def _best_reference(
    terms: DesignTerms, weights: Array, linear: Array, reference: Array, tangent: _Tangent
) -> tuple[Array, Array, float]:
    """Return the reference of the best lower end, its tangent, and the tangent's least value.

    Outputs that die out have columns of noise in the solver's channel. Wherever the tangent's
    minimizer uses such an output, the reference's column is moved towards the minimizer's, which
    raises the tangent there.
    """
    dying = reference.max(axis=0) < DYING
    best = reference, linear, -math.inf
    for attempt in range(REFERENCES):
        matrix = linear + np.tensordot(weights, terms.slopes(reference), 1)
        least, q = tangent.least(matrix)
        if least > best[2]:
            best = reference, matrix, least
        used = np.flatnonzero(dying & (q.max(axis=0) > DYING))
        if not len(used):
            break
        share = 1 / (attempt + 2)
        columns = (1 - share) * reference[:, used] / reference[:, used].sum(axis=0)
        columns += share * q[:, used] / q[:, used].sum(axis=0)
        reference = reference.copy()
        reference[:, used] = columns
    return best


def _nearest(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    rules: tuple[Rule, ...],
    solver: str | None,
    options: dict[str, Any],
) -> str:
    """Return what the least feasible budget is."""
    other = "distortion" if minimize == "information" else "information"
    if minimize == "sum" or measure not in ("total", "record"):
        return "constraints: no channel meets them"
    scale = float(statement.distortion.max()) or 1.0
    loose = 2 * scale if other == "information" else 1e3
    stated = program(statement, measure, other, loose, rules)
    status = _run(stated.problem, solver, options)
    if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return f"constraints: no channel meets them (the solver says: {status})"
    what = "distortion" if minimize == "information" else "leakage"
    return (
        f"budget: found {number!r}; the least feasible {what} under these constraints is about "
        f"{float(stated.problem.value):.9g}"  # pyright: ignore[reportArgumentType]
    )


def _information(table: Array, q: cp.Variable) -> Any:
    """Return H(A) - H(A|Y) of a secret, with the law of the output as a variable of its own."""
    joint = table / table.sum()
    if joint.ndim == 1:
        seen = np.flatnonzero(joint > 0)
        cells = cp.multiply(joint[seen][:, None], q[seen])
        own = joint[seen]
    else:
        joint = joint[joint.sum(axis=1) > 0]
        cells, own = joint @ q, joint.sum(axis=1)
    # A product with ones: broadcasting a row is not in every version's canonical form.
    output = cp.outer(np.ones(len(own)), cp.sum(cells, axis=0))
    return cp.sum(cp.rel_entr(cells, output)) + float(entr(own).sum())


def _dual(constraint: cp.Constraint) -> float:
    value: Any = constraint.dual_value
    return 0.0 if value is None else max(float(np.sum(value)), 0.0)


def _run(problem: cp.Problem, solver: str | None, options: dict[str, Any]) -> str:
    if solver is None and not options:
        solver, options = "CLARABEL", TIGHT
    try:
        problem.solve(solver=solver, **options)
    except cp.SolverError as error:
        return str(error)
    return str(problem.status)
