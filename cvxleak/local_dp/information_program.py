"""Least worst-case information as one convex program in CVXPY, and its multipliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.local_dp.linear import Mixture
from cvxleak.local_dp.statement import Costs, worst_case_rows
from cvxleak.solvers.conic import attempt
from cvxleak.sources import SourceSet
from cvxleak.sources.parts import Part

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["Program", "Saddle", "information_program", "saddle_point"]

SMALLEST = 1e-9
"""Share of the weights below which a multiplier is the solver's rounding."""


@dataclass(frozen=True)
class Program:
    """The problem, the rows of the budget, and rows and output distribution of each part."""

    problem: cp.Problem
    useful: list[Any]
    private: list[list[Any]]
    laws: list[cp.Variable]


@dataclass(frozen=True)
class Saddle:
    """What the solver ended with.

    Attributes
    ----------
    channel : ndarray, shape (k, m)
    outputs : ndarray, shape (parts, m)
        The parts' output distributions.
    laws : list of Mixture
        The worst distribution of each part.
    weights : ndarray
        Of the parts, of sum 1.
    mixture : Mixture
        The sources that the budget is for.
    price : float
        Of the budget.
    """

    channel: Array
    outputs: Array
    laws: list[Mixture]
    weights: Array
    mixture: Mixture
    price: float


def information_program(sources: SourceSet, costs: Costs, budget: float) -> Program:
    """Return the program; its variable is ``channel``."""
    import cvxpy as cp

    from cvxleak.constraints import row_stochastic

    size, outputs = costs.matrix.shape
    Q, ceiling = cp.Variable((size, outputs), name="channel"), cp.Variable()
    useful = worst_case_rows(sources, cp.sum(cp.multiply(costs.matrix, Q), axis=1), budget)
    rows: list[Any] = [*row_stochastic(Q), *useful]
    private: list[list[Any]] = []
    laws: list[cp.Variable] = []
    for part in sources.parts:
        t = cp.Variable(outputs, nonneg=True)
        laws.append(t)
        divergence = cp.sum(cp.rel_entr(Q, cp.outer(np.ones(size), t)), axis=1)
        alone = SourceSet._of([part], sources.labels)
        private.append(worst_case_rows(alone, divergence, ceiling))
        rows += [cp.sum(t) == 1, *private[-1]]
    return Program(cp.Problem(cp.Minimize(ceiling), rows), useful, private, laws)


def saddle_point(
    sources: SourceSet,
    costs: Costs,
    budget: float,
    solver: str,
    options: Mapping[str, Any],
    clock: Clock,
) -> Saddle:
    """Return the solver's optimum with its multipliers.

    Raises
    ------
    SolverError
        The solver came to no end, or time is up.
    """
    program = information_program(sources, costs, budget)
    if clock.late:
        raise SolverError("time_limit: no time is left for the solver; give it more")
    status = attempt(program.problem, solver, options, clock)
    Q = program.problem.var_dict["channel"].value
    # Where time is all but up it ends at its start, which may be zero.
    if Q is None or not np.isfinite(Q).all() or not (Q.max(axis=1) > 0).all():
        raise SolverError(
            f"solver: {solver} ended with {status}; another one, or its solver_options, may get "
            "further"
        )
    outputs = np.array([np.maximum(np.asarray(t.value), 1e-300) for t in program.laws])
    found = [
        _multipliers(part, rows) for part, rows in zip(sources.parts, program.private, strict=True)
    ]
    weights = np.array([weight for weight, _ in found])
    price, mixture = _multipliers(Part(sources.points, sources.polytopes), program.useful)
    shares = weights / max(float(weights.sum()), 1e-300)
    shares = np.where(shares < SMALLEST, 0.0, shares)
    laws = [law for _, law in found]
    return Saddle(np.maximum(Q, 0.0), outputs, laws, shares / shares.sum(), mixture, price)


def _multipliers(part: Part, rows: list[Any]) -> tuple[float, Mixture]:
    """Return the total weight of a part's rows, and the distribution that their multipliers mix."""
    duals = [np.atleast_1d(np.asarray(row.dual_value, dtype=float)) for row in rows]
    weights = np.maximum(duals.pop(0), 0.0) if len(part.points) else np.zeros(0)
    heads, laws = [], []
    for body, mass, head in zip(part.polytopes, duals[::2], duals[1::2], strict=True):
        heads.append(max(float(head[0]), 0.0))
        positive = np.maximum(mass, 0.0)
        laws.append(positive / positive.sum() if positive.sum() > 0 else body.center)
    total = float(weights.sum()) + sum(heads)
    if total <= 0:
        weights, heads = np.ones(len(weights)), [1.0] * len(heads)
    scale = float(weights.sum()) + sum(heads)
    shares = np.concatenate([weights, heads]) / scale
    shares = np.where(shares < SMALLEST, 0.0, shares)
    shares = shares / shares.sum()
    law = shares[: len(weights)] @ part.points
    members = []
    for body, share, near in zip(part.polytopes, shares[len(weights) :], laws, strict=True):
        exact = body.member(near) if share > 0 else None
        members.append((float(share), exact))
        if exact is not None:
            law = law + share * np.array([float(p) for p in exact])
    return total, Mixture(law, shares[: len(weights)], tuple(members))
