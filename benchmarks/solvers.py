"""The solvers under CVXPY on the problems' own programs: what each takes, how fast, how near.

``python -m benchmarks solvers`` prints the tables; ``python -m benchmarks.solvers`` writes them
into docs/solvers.md. Every solver gets the program of `to_cvxpy` with its sharp options; seconds
are of the processor, with stating and compiling, the least of three runs. What a value is off by is
taken from the bracket that `solve` proves. The last table counts channels of random programs that
measure above their budget, before and after `Channel.from_solver`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from benchmarks._pages import replace_section, table
from cvxleak import measures
from cvxleak.capacities import Capacity
from cvxleak.constraints import local_dp, pml, renyi_dp, row_stochastic
from cvxleak.design import DesignForPrior
from cvxleak.envelope import FailureProbability, PMLMechanism
from cvxleak.local_dp import MinDistortionLocalDP, MinInformation
from cvxleak.model import Channel
from cvxleak.release import release_problem
from cvxleak.solvers.conic import SOLVERS

LIMIT = 60.0
RNG = np.random.default_rng(0)


def law(n: int) -> Any:
    return RNG.dirichlet(np.ones(n))


def rows(n: int) -> Any:
    return RNG.dirichlet(np.ones(n), size=n)


PROBLEMS: dict[str, Callable[[], Any]] = {
    "capacity, 80 inputs": lambda: Capacity(rows(80)),
    "design for a prior, 20 symbols": lambda: DesignForPrior(law(20), 1 - np.eye(20), 0.3),
    "least information, 3 distributions on 8": lambda: MinInformation(rows(8)[:3], 0.3),
    "release distortion, 4 × 2 × 3": lambda: release_problem(
        law(24).reshape(4, 2, 3).tolist(), 0.1, 0.2
    ),
    "least distortion at epsilon, 20 symbols": lambda: MinDistortionLocalDP(
        [law(20), law(20)], 1.5, RNG.random((20, 20))
    ),
    "PML mechanism, 20 symbols": lambda: PMLMechanism(law(20), RNG.random((20, 20)), 0.5),
    "failure probability, 40 inputs": lambda: FailureProbability(law(40), rows(40), 1.0),
}


def stated() -> str:
    found = []
    for name, solver in SOLVERS.items():
        limit = f"`{solver.time_limit}`" if solver.time_limit else "none"
        sharp = ", ".join(f"`{key}` {value:g}" for key, value in solver.sharp.items())
        near = [f"{solver.as_it_comes:.0e}", f"{solver.accuracy:.0e}"]
        found.append([name, solver.takes, *near, sharp, limit])
    errors = ["error, default options", "error, sharp options"]
    return table(["solver", "takes", *errors, "sharp options", "time limit"], found)


def cell(problem: Any, bound: Any, solver: str) -> str:
    times, value = [], 0.0
    for _ in range(3):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            try:
                value = problem.to_cvxpy().solve(solver=solver, **SOLVERS[solver].sharp)
            except cp.SolverError:
                return "–"
        times.append(time.process_time() - begin)
    off = max(bound.lower - value, value - bound.upper, 0.0)
    return f"{min(times):.3f} s, {off:.0e}" if off else f"{min(times):.3f} s, 0"


def measured() -> str:
    names = [name for name in SOLVERS if name in cp.installed_solvers()]
    found = []
    for title, make in PROBLEMS.items():
        problem = make()
        problem.solve(tol=1e-9)
        begin = time.process_time()
        bound = problem.solve(tol=1e-9)
        seconds = time.process_time() - begin
        found.append([title, *(cell(problem, bound, name) for name in names), f"{seconds:.3f} s"])
    return table(["program", *names, "`solve`, proved"], found)


RATIOS: dict[str, tuple[Callable[..., Any], Callable[..., float], float]] = {
    "`local_dp`": (
        lambda p, q, epsilon: local_dp(q, epsilon),
        lambda p, q: measures.local_dp_epsilon(q),
        1e-6,
    ),
    "`pml`": (
        lambda p, q, epsilon: pml(q, p, epsilon),
        lambda p, q: float(measures.pml(q, p).max()),
        1e-6,
    ),
    "`renyi_dp`, order 2": (
        lambda p, q, epsilon: renyi_dp(q, 2, epsilon),
        lambda p, q: measures.renyi_dp_epsilon(q, 2),
        1e-4,
    ),
    "`renyi_dp`, order 8": (
        lambda p, q, epsilon: renyi_dp(q, 8, epsilon),
        lambda p, q: measures.renyi_dp_epsilon(q, 8),
        1e-4,
    ),
}
"""Sets that compare ratios: their constraints, their measure, and the `tol` of the repair."""

RUNS = {
    "CLARABEL": ("CLARABEL", {}, 0.0),
    "ECOS": ("ECOS", {}, 0.0),
    "SCS": ("SCS", {}, 1e-4),
    "SCS, sharp": ("SCS", SOLVERS["SCS"].sharp, 0.0),
    "HIGHS": ("HIGHS", {}, 0.0),
}
"""Solver, options, and the least `tol`: that of SCS as it comes."""


def over_budget(title: str, run: str, programs: int = 30) -> tuple[int, int] | None:
    """Count the channels that measure 1 % above epsilon: clipped and divided, and repaired."""
    rules, measure, needed = RATIOS[title]
    solver, options, least = RUNS[run]
    clipped = repaired = 0
    for seed in range(programs):
        rng = np.random.default_rng(seed)
        k, m = rng.integers(2, 5, size=2)
        gain, p, epsilon = rng.random((k, m)), rng.dirichlet(np.ones(k)), (0.05, 0.3, 1)[seed % 3]
        q = cp.Variable((k, m))
        wanted = cp.Maximize(cp.sum(cp.multiply(gain, q)))
        try:
            cp.Problem(wanted, row_stochastic(q) + rules(p, q, epsilon)).solve(solver, **options)
        except cp.SolverError:
            return None
        positive = np.maximum(np.asarray(q.value), 0)
        rows = positive / positive.sum(axis=1, keepdims=True)
        channel = Channel.from_solver(np.asarray(q.value), tol=max(needed, least))
        clipped += measure(p, rows) > 1.01 * epsilon
        repaired += measure(p, channel) > 1.01 * epsilon
    return clipped, repaired


def over_budgets() -> str:
    runs = [run for run, (name, *_) in RUNS.items() if name in cp.installed_solvers()]
    found = []
    for title in RATIOS:
        counts = [over_budget(title, run) for run in runs]
        found.append([title, *("–" if c is None else f"{c[0]}, {c[1]}" for c in counts)])
    return table(["over the budget, of 30", *runs], found)


def main(limit: float = LIMIT) -> None:
    print(stated(), measured(), over_budgets(), sep="\n\n")


if __name__ == "__main__":
    replace_section("solvers.md", "stated", stated())
    replace_section("solvers.md", "measured", measured())
    replace_section("solvers.md", "over budgets", over_budgets())
