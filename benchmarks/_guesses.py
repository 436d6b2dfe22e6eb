"""Other programs for the worst adversary's chance of a right guess about a record.

The posterior vulnerability sum_y max_a s[a, y] is linear in the masses once it is fixed which value
a is guessed at each output y. A convex solver therefore needs one program for each map from outputs
to values; SCIP gets the choice as binary variables.
"""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np

from benchmarks._audit_cases import Case

GAP = 1e-4
LEAST_MASS = 1e-7


def joint_rows(case: Case) -> np.ndarray:
    """Return P(y | g) for the groups g of value a and 0 elsewhere, at [a, g, y]."""
    lumped = case.lumped
    values = np.arange(len(lumped.values))
    return (values[:, None] == lumped.value_index)[:, :, None] * lumped.rows


def with_cvxpy(case: Case, solver: str) -> float:
    """Return the best value over all maps from outputs to guesses, one convex program for each."""
    rows = joint_rows(case)
    values, groups, outputs = rows.shape
    w = cp.Variable(groups, nonneg=True)
    chosen = cp.Parameter(groups, nonneg=True)
    entropy = cp.sum(cp.entr(w)) + case.lumped.log_multiplicity @ w
    problem = cp.Problem(cp.Maximize(chosen @ w), [cp.sum(w) == 1, entropy >= case.floor])
    best = 0.0
    for guesses in itertools.product(range(values), repeat=outputs):
        chosen.value = rows[list(guesses), :, range(outputs)].sum(axis=0)
        best = max(best, float(problem.solve(solver=solver)))
    return best


def with_scip(case: Case, limit: float) -> tuple[float, float]:
    """Return SCIP's bounds, with the guess at each output as a binary choice."""
    from pyscipopt import Model, log, quicksum

    rows = joint_rows(case)
    values, groups, outputs = rows.shape
    model: Any = Model()
    model.hideOutput()
    model.setParam("limits/gap", GAP)
    model.setParam("timing/clocktype", 1)  # of the processor
    model.setParam("limits/time", limit)
    w = [model.addVar(f"w{g}", lb=LEAST_MASS, ub=1) for g in range(groups)]
    model.addCons(quicksum(w) == 1)
    spread = quicksum(float(m) * x for m, x in zip(case.lumped.log_multiplicity, w, strict=True))
    model.addCons(quicksum(-x * log(x) for x in w) + spread >= case.floor)
    right = [model.addVar(f"v{y}", lb=0, ub=1) for y in range(outputs)]
    for y in range(outputs):
        guess = [model.addVar(f"z{a}_{y}", vtype="B") for a in range(values)]
        model.addCons(quicksum(guess) == 1)
        for a in range(values):
            joint = quicksum(float(r) * x for r, x in zip(rows[a, :, y], w, strict=True))
            model.addCons(right[y] <= joint + (1 - guess[a]))
    model.setObjective(quicksum(right), "maximize")
    model.optimize()
    lower, upper = model.getPrimalbound(), model.getDualbound()
    if upper - lower > 1.001 * GAP * upper:
        raise RuntimeError("out of time")
    return lower, upper
