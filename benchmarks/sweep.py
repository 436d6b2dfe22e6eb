"""Fifty points of a program with a Parameter, against fifty programs made and compiled anew.

``python -m benchmarks sweep`` prints the table; ``python -m benchmarks.sweep`` writes it into
docs/solvers.md. Both solve the same fifty points with the same solver; seconds are of the
processor, from the arrays to the last value. Distributions are Dirichlet(1), distortions uniform on
[0, 1].
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from benchmarks._pages import replace_section, table
from cvxleak import constraints
from cvxleak.local_dp import MinLocalDP
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Mechanism
from cvxleak.queries import count
from cvxleak.relaxations import DatasetCapacityRelaxation

LIMIT = 60.0
POINTS = 50
SIZE = 12
RNG = np.random.default_rng(SIZE)
LAW, COST = RNG.dirichlet(np.ones(SIZE)), RNG.random((SIZE, SIZE))
LUMPED = Mechanism(count(6), random_rounding(6, 3)).lumped(0)


@dataclass(frozen=True)
class Sweep:
    """A program of one number, which may be a Parameter; the range that is swept; the solver."""

    make: Callable[[Any], cp.Problem]
    low: float
    high: float
    solver: str


def useful(rules: Callable[[Any], list[Any]]) -> cp.Problem:
    q = cp.Variable(COST.shape)
    spent = cp.sum(cp.multiply(LAW[:, None] * COST, q))
    return cp.Problem(cp.Minimize(spent), constraints.row_stochastic(q) + rules(q))


def relaxation(floor: Any) -> cp.Problem:
    found = DatasetCapacityRelaxation(LUMPED, 1.0)
    if isinstance(floor, float):
        found.entropy_floor.value = floor
    return found.problem


SWEEPS = {
    "`MinLocalDP.to_cvxpy`, epsilon": Sweep(
        lambda epsilon: MinLocalDP([LAW], 0.1, COST).to_cvxpy(epsilon), 0.5, 3.0, "HIGHS"
    ),
    "`pml`, epsilon": Sweep(
        lambda epsilon: useful(lambda q: constraints.pml(q, LAW, epsilon)), 0.2, 2.0, "HIGHS"
    ),
    "`maximal_leakage`, budget": Sweep(
        lambda budget: useful(lambda q: constraints.maximal_leakage(q, LAW, budget)),
        0.2,
        2.0,
        "HIGHS",
    ),
    "`mi_budget`, budget": Sweep(
        lambda budget: useful(lambda q: constraints.mi_budget(q, LAW, budget)),
        0.05,
        1.0,
        "CLARABEL",
    ),
    "`DatasetCapacityRelaxation`, entropy floor": Sweep(relaxation, 1.0, 3.5, "CLARABEL"),
}


def run(problem: cp.Problem, solver: str) -> float:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        value: Any = problem.solve(solver=solver)
    return float(value)


def warm(sweep: Sweep, points: list[float]) -> list[float]:
    """Return the values at all points of one program, whose Parameter is set anew."""
    parameter = cp.Parameter(nonneg=True)
    problem = sweep.make(parameter)
    for own in problem.parameters():
        if own.name() == "entropy_floor":  # a relaxation brings its Parameter
            parameter = own
    found = []
    for parameter.value in points:
        found.append(run(problem, sweep.solver))
    return found


def comparison(limit: float) -> str:
    rows = []
    for name, sweep in SWEEPS.items():
        points = np.linspace(sweep.low, sweep.high, POINTS).tolist()
        assert sweep.make(cp.Parameter(nonneg=True, value=points[0])).is_dpp()
        run(sweep.make(points[0]), sweep.solver)  # loading is nobody's running time
        begin = time.process_time()
        values = warm(sweep, points)
        middle = time.process_time()
        others = [run(sweep.make(point), sweep.solver) for point in points]
        end = time.process_time()
        assert np.allclose(values, others, rtol=0, atol=1e-5), name
        once, anew = middle - begin, end - middle
        rows.append([name, sweep.solver, f"{once:.2f} s", f"{anew / once:.1f}×"])
    return table(["50 points of", "solver", "one program", "50 programs"], rows)


def main(limit: float = LIMIT) -> None:
    print(comparison(limit))


if __name__ == "__main__":
    replace_section("solvers.md", "sweep", comparison(LIMIT))
