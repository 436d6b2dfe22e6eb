"""The solvers under CVXPY on the problems' own programs: what each takes, how fast, how near.

``python -m benchmarks solvers`` prints the tables; ``python -m benchmarks.solvers`` writes them
into docs/solvers.md. Every solver gets the program of `to_cvxpy` with its sharp options; seconds
are of the processor, with stating and compiling, the least of three runs. What a value is off by is
taken from the bracket that `solve` proves.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from benchmarks._pages import replace_section, table
from cvxleak.capacities import Capacity
from cvxleak.design import DesignForPrior
from cvxleak.envelope import FailureProbability, PMLMechanism
from cvxleak.local_dp import MinDistortionLocalDP, MinInformation
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
    "least information, 3 laws of 8": lambda: MinInformation(rows(8)[:3], 0.3),
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
    headings = ["solver", "takes", "off by at most, as it comes", "sharp", "sharp is", "time limit"]
    return table(headings, found)


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


def main(limit: float = LIMIT) -> None:
    print(stated(), measured(), sep="\n\n")


if __name__ == "__main__":
    replace_section("solvers.md", "stated", stated())
    replace_section("solvers.md", "measured", measured())
