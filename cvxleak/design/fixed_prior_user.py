"""The best channel for known priors under constraints of the user's own, by CVXPY.

The solver's channel is made stochastic and evaluated; its tangent gives the lower bound:
information is convex, so with multipliers w and mu no channel of the set has a value below the
least value of the linear function sum_k w_k <G_k, q> + sum_j mu_j E_j d on it. That least value is
bounded by the multipliers of a linear program over half-spaces that stand for the constraints
(`cvxleak.design.outer_approximation`), which the certificate stores.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from scipy.special import entr, softmax

from cvxleak.constraints import local_dp, maximal_leakage, pml
from cvxleak.core.clock import Clock
from cvxleak.core.errors import CertificateError, InfeasibleError, SolverError
from cvxleak.core.validation import Array
from cvxleak.design.conic import Conic
from cvxleak.design.feasible import in_decimals
from cvxleak.design.fixed_prior_native import CORNER, Solution
from cvxleak.design.fixed_prior_statement import INFORMATION, Statement, stochastic
from cvxleak.design.outer_approximation import HalfSpaces
from cvxleak.design.private_utility import (
    privacy_penalty,
    privacy_price,
    privacy_rows,
    private_content,
)
from cvxleak.design.slater_repair import SlaterRepair
from cvxleak.design.user_constraints import Rule, UserConstraints
from cvxleak.kernel.numbers import precision
from cvxleak.proofs.fixed_prior import bracket
from cvxleak.solvers.conic import attempt, check_solver

__all__ = ["Program", "program", "solve_with_user_constraints"]

MARGINS = (1e-8, 1e-7, 1e-6, 1e-5)
"""How much tighter the budget is made for the solver, which misses it by about as much."""

LARGEST = 13.0
"""A larger epsilon is solved as this one: conic solvers want no e^epsilon that is larger."""

DUST = 1e-7
"""Columns below this are a solver's noise."""

LEAST_WEIGHT = 1e-9
TINY = 1e-250


class Program(NamedTuple):
    """A problem in CVXPY and the parts of it that are looked at afterwards."""

    problem: cp.Problem
    channel: cp.Variable
    leaks: list[cp.Constraint]
    costs: list[cp.Constraint]
    cones: list[cp.ExpCone]


def program(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    user: UserConstraints,
    margin: float = 0.0,
) -> Program:
    """Return the problem in CVXPY, with the channel as its variable ``channel``.

    `margin` tightens the budget by so much.
    """
    q = user.channel
    scale = float(statement.distortion.max()) or 1.0
    level, spent = cp.Variable(name="leakage"), cp.Variable(name="distortion")
    costs: list[cp.Constraint] = [
        cp.sum(cp.multiply(law[:, None] * statement.distortion / scale, q)) <= spent / scale
        for law in statement.sources
    ]
    leaks: list[cp.Constraint] = []
    cones: list[cp.ExpCone] = []
    rest: list[Any] = [cp.sum(q, axis=1) == 1]
    if measure == INFORMATION:
        for prior in statement.laws:
            information, cone = _information(prior, q)
            leaks.append(information <= level)
            cones.append(cone)
    else:
        rest += _private(statement, measure, max(number - margin, 0.0), q)
    objective = {"information": level, "distortion": spent, "sum": level + number * spent}[minimize]
    if minimize == "information":
        rest.append(spent <= number - margin * scale)
    elif minimize == "distortion" and leaks:
        rest.append(level <= max(number - margin, 0.0))
    rest += user.constraints
    problem = cp.Problem(cp.Minimize(objective), [*leaks, *cones, *costs, *rest])
    return Program(problem, q, leaks, costs, cones)


def _in_units(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    user: UserConstraints,
    margin: float = 0.0,
) -> tuple[Program, float]:
    """Return the problem for a solver, and its unit of distortion: solvers want numbers near 1."""
    unit = 2.0 ** math.frexp(float(statement.distortion.max()) or 1.0)[1]
    scaled = replace(statement, distortion=statement.distortion / unit)
    number = {"information": number / unit, "sum": number * unit}.get(minimize, number)
    return program(scaled, measure, minimize, number, user, margin), unit


def solve_with_user_constraints(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    rules: tuple[Rule, ...],
    solver: str | None,
    options: dict[str, Any],
    clock: Clock,
) -> tuple[Solution, dict[str, Any]]:
    """Solve and return what was found, with the certificate's problem.

    When time is up before a solver has a channel, it is one of least distortion, or a constant.
    """
    check_solver(solver)
    user = UserConstraints(statement.distortion.shape, rules)
    half_spaces = HalfSpaces(user)
    conic = Conic(user.shape, half_spaces if user else None, solver, options)
    if minimize == "information":
        blind = _blind(statement, number, conic, half_spaces)
        if blind is not None:
            return blind
    status = "not solved"
    inside = inside_of(statement, measure, minimize, number, rules)
    stated, unit = _in_units(statement, measure, minimize, number, user)
    for margin in (*MARGINS, 0.0):
        if clock.late:
            break
        stated, unit = _in_units(statement, measure, minimize, number, user, margin)
        status = attempt(stated.problem, solver, options, clock)
        channel = stated.channel.value
        if channel is None or not (np.max(channel, axis=1) > 0).all():
            continue
        channel = stochastic(np.asarray(channel))
        if not stated.leaks:
            # The privacy measures look at ratios, and those of dust are anything.
            channel = stochastic(np.where(channel.max(axis=0) > DUST, channel, 0.0))
        channel = inside.repaired(channel)
        found = _ends(
            statement, measure, minimize, number, half_spaces, stated, unit, channel, solver
        )
        if found is not None:
            return _shown(found, half_spaces, solver)
    if clock.late or status not in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        # The budget is the least possible, or nearly: less than that is what solvers are off by.
        least = conic.least_worst(_costs(statement) / unit)
        channels = [least, *in_decimals(least)]
        law = conic.constant(_costs(statement) / unit)
        if law is not None:
            channels.append(np.tile(law, (len(least), 1)))
        for channel in channels:
            found = _ends(
                statement, measure, minimize, number, half_spaces, stated, unit, channel, solver
            )
            if found is not None:
                return _shown(found, half_spaces, solver)
    if status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        raise InfeasibleError(
            _nearest(statement, measure, minimize, number, user, solver, options, clock)
        )
    raise SolverError(
        f"no feasible channel was found; the solver says: {status}; another solver, or its "
        "solver_options, may get further"
    )


def _shown(
    found: tuple[Solution, dict[str, Any]],
    half_spaces: HalfSpaces,
    solver: str | None = None,
) -> tuple[Solution, dict[str, Any]]:
    """Return what was found together with how well its channel meets user constraints."""
    result, content = found
    if not half_spaces.user:
        return found
    violated = half_spaces.user.violations(result.channel, solver)
    stats = result.stats | {"user_violation": max(violated.values(), default=0.0)}
    shown = half_spaces.shown(result.channel, content["own"])
    return result._replace(stats=stats, shown=shown), content


def _blind(
    statement: Statement, number: float, conic: Conic, half_spaces: HalfSpaces
) -> tuple[Solution, dict[str, Any]] | None:
    """Return the best output that does not look at the input, if it is within the budget."""
    law = conic.constant(_costs(statement))
    if law is None:
        return None
    n, m = statement.distortion.shape
    channel = np.tile(law, (n, 1))
    implied = half_spaces.stated()
    priors = [_posteriors_of_nothing(prior, m) for prior in statement.laws]
    proof: dict[str, Any] = {
        "weights": [1.0] * len(priors),
        "prices": [0.0] * len(statement.sources),
        "posteriors": priors,
    } | implied.proof()
    content = statement.content("information", "budget", number) | {"own": implied.half_spaces}
    try:
        with precision():
            ends = bracket(content, {"channel": channel.tolist()}, proof)
    except CertificateError:
        return None
    stats = {"method": CORNER}
    return _shown((Solution(channel, proof, *ends, 0.0, stats), content), half_spaces)


def _costs(statement: Statement) -> Array:
    """Return p_j(x) d(x,y), shape (J, n, m)."""
    laws = statement.sources / statement.sources.sum(axis=1, keepdims=True)
    return laws[:, :, None] * statement.distortion


def _posteriors_of_nothing(law: Array, outputs: int) -> list[list[float]]:
    return np.tile(law[:, None], (1, outputs)).tolist()


def _ends(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    half_spaces: HalfSpaces,
    stated: Program,
    unit: float,
    channel: Array,
    solver: str | None,
) -> tuple[Solution, dict[str, Any]] | None:
    information = bool(stated.leaks)
    weights = np.array([_dual(leak) for leak in stated.leaks])
    scale = float(statement.distortion.max()) or 1.0
    prices = np.array([_dual(cost) for cost in stated.costs]) / scale
    given = weights  # in the unit of the objective that was solved
    if minimize == "distortion":
        weights = weights * unit
    else:
        weights = weights / weights.sum() if weights.sum() > 0 else weights + 1 / len(weights)
    if minimize != "information":
        total = 1.0 if minimize == "distortion" else number
        prices = prices * (total / prices.sum()) if prices.sum() > 0 else prices + total
    laws = statement.sources / statement.sources.sum(axis=1, keepdims=True)
    matrix = (prices @ laws)[:, None] * statement.distortion
    posteriors = []
    for prior, cone, weight, found in zip(
        statement.laws, stated.cones, weights, given, strict=False
    ):
        phi = _posteriors(prior, cone, found)
        posteriors.append(phi.tolist())
        matrix = matrix + weight * _slope(prior, phi)
    priced = not information and number <= LARGEST
    extra = privacy_rows(statement, measure, number) if priced else None
    implied = half_spaces.least(matrix, extra)
    proof: dict[str, Any] = {"prices": prices.tolist()} | implied.proof()
    spared = 0.0
    if information:
        name = "slope" if minimize == "sum" else "budget"
        content = statement.content(minimize, name, number) | {"own": implied.half_spaces}
        proof |= {"weights": weights.tolist(), "posteriors": posteriors}
    else:
        content = private_content(statement, measure, number) | {"own": implied.half_spaces}
        penalty = privacy_penalty(statement, measure, implied.extra) if priced else 0 * channel
        proof |= {"penalty": penalty.tolist()}
        spared = privacy_price(statement, measure, number, penalty, channel)
    try:
        with precision():
            lower, upper = bracket(content, {"channel": channel.tolist()}, proof)
    except CertificateError:
        return None
    price = (
        spared
        if not information
        else {
            "information": -float(prices.sum()),
            # The first nat saves a distortion at an infinite rate, or nothing.
            "distortion": -float(weights.sum()) if number > 0 else math.nan,
            "sum": float((laws @ (channel * statement.distortion).sum(axis=1)).max()),
        }[minimize]
    )
    why = "constraints of your own" if half_spaces.user else "the argument solver"
    stats: dict[str, Any] = {"method": f"one convex program in CVXPY, because of {why}"}
    if stated.problem.solver_stats is not None:  # None when time was up before
        name = solver or stated.problem.solver_stats.solver_name
        stats |= {"solver": name, "solver_status": stated.problem.status}
    return Solution(channel, proof, lower, upper, price, stats), content


def inside_of(
    statement: Statement, measure: str, minimize: str, number: float, rules: tuple[Rule, ...]
) -> SlaterRepair:
    """Return the channels that meet the user's constraints and the budget, if that is convex."""
    user = UserConstraints(statement.distortion.shape, rules)
    return SlaterRepair(user.also(_budget(statement, measure, minimize, number)))


def _budget(statement: Statement, measure: str, minimize: str, number: float) -> Rule:
    """Return the budget as a constraint on the channel, but for one on information."""

    def rule(q: cp.Variable) -> list[Any]:
        if measure != INFORMATION:
            return _private(statement, measure, number, q)
        if minimize != "information":
            return []
        scale = float(statement.distortion.max()) or 1.0
        share = statement.distortion / scale
        spent = [cp.sum(cp.multiply(law[:, None] * share, q)) for law in statement.sources]
        return [total <= number / scale for total in spent]

    return rule


def _private(
    statement: Statement, measure: str, number: float, q: cp.Variable
) -> list[cp.Constraint]:
    number = min(number, LARGEST)
    if measure == "local_dp":
        return local_dp(q, number)
    return {"pml": pml, "maximal_leakage": maximal_leakage}[measure](q, statement.laws[0], number)


def _slope(law: Array, phi: Array) -> Array:
    """Return p(x) log( phi(x|y) / p(x) )."""
    law = law / law.sum()
    used = law > 0
    logs = np.zeros_like(phi)
    logs[used] = np.log(phi[used]) - np.log(law[used])[:, None]
    return law[:, None] * logs


def _nearest(
    statement: Statement,
    measure: str,
    minimize: str,
    number: float,
    user: UserConstraints,
    solver: str | None,
    options: dict[str, Any],
    clock: Clock,
) -> str:
    """Return what the least feasible budget is."""
    other = "distortion" if minimize == "information" else "information"
    if minimize == "sum" or measure != INFORMATION:
        return "constraints: no channel meets them"
    scale = float(statement.distortion.max()) or 1.0
    loose = 2 * scale if other == "information" else 1e3
    stated, unit = _in_units(statement, measure, other, loose, user)
    status = attempt(stated.problem, solver, options, clock)
    if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return f"constraints: no channel meets them (the solver says: {status})"
    what = "distortion" if minimize == "information" else "leakage"
    least = float(stated.problem.value)  # pyright: ignore[reportArgumentType]
    return (
        f"budget: found {number!r}; the least feasible {what} under these constraints is about "
        f"{least * (unit if minimize == 'information' else 1.0):.9g}"
    )


def _information(law: Array, q: cp.Variable) -> tuple[Any, cp.ExpCone]:
    """Return H(X) - H(X|Y), and the cones that hold it: their duals are wanted.

    u >= s log(s / r) for the joint distribution s and the output's distribution r is the cone s
    e^(-u/s) <= r.
    """
    cells, seen = _joint(law, q)
    output = cp.outer(np.ones(len(seen)), cp.sum(cells, axis=0))
    u = cp.Variable(cells.shape)
    return cp.sum(u) + float(entr(seen).sum()), cp.ExpCone(-u, cells, output)


def _joint(law: Array, q: cp.Variable) -> tuple[cp.Expression, Array]:
    """Return the joint distribution of possible inputs and outputs, and that of these inputs."""
    seen = _seen(law)
    return cp.multiply(seen[:, None], q[np.flatnonzero(law > 0)]), seen


def _seen(law: Array) -> Array:
    """Return the distribution of the inputs that occur."""
    law = law / law.sum()
    return law[law > 0]


def _posteriors(law: Array, cone: cp.ExpCone, weight: float) -> Array:
    """Return distributions phi(x|y), one column per output, from the dual solution of the cones.

    The dual cone's point (-w, b, c) stands for the tangent w u >= -b s - c r, and the best phi for
    given b is proportional to e^(-b / w). Duals are accurate where the logarithm of a tiny primal
    entry is not.
    """
    duals: Any = cone.dual_value
    if duals is None or weight < LEAST_WEIGHT:
        logs = np.tile(np.log(_seen(law))[:, None], (1, cone.y.shape[1]))
    else:
        logs = -np.reshape(duals[1], cone.y.shape, order="C") / weight
    phi = np.maximum(softmax(logs, axis=0), TINY)
    result = np.zeros((len(law), phi.shape[1]))
    result[law > 0] = phi
    return result


def _dual(constraint: cp.Constraint) -> float:
    value: Any = constraint.dual_value
    return 0.0 if value is None else max(float(np.sum(value)), 0.0)
