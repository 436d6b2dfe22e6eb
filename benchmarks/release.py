"""Releases under collusion: certified against plain CVXPY, Blahut–Arimoto against plain loops.

Processor seconds, which other work on the machine does not lengthen. The gap of cvxleak is proved
in ball arithmetic, and its time includes the proof; what a solver is off by is its value against
that, and the most by which its kernel misses a constraint.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from cvxleak import verify
from cvxleak.iterative import distortion_blahut_arimoto
from cvxleak.problem.bound import Bound
from cvxleak.release import ReleaseProblem, release_problem, release_surface

Array = NDArray[np.float64]

LIMIT = 60.0

TABLE_1 = np.array([[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]])


def information(table: Array) -> float:
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float((table * np.log(table / independent)).sum())


def large() -> Array:
    """Return a joint distribution of 4 requests, 64 histories and 16 datasets."""
    return np.random.default_rng(6).dirichlet(np.ones(4096)).reshape(4, 64, 16)


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    result = run()
    return result, time.process_time() - begin


def plain_loops(joint: Array, mu_1: float, mu_2: float, updates: int) -> Array:
    """Algorithm 1 with loops over z, x and r̂, as one would write it down."""
    R, Z, X = joint.shape
    law = joint.sum(axis=0)
    kernel = np.full((Z, X, R), 1 / R)
    for _ in range(updates):
        q1, q3 = np.zeros(R), np.zeros((R, Z))
        totals = np.zeros((R, X))
        for y in range(R):
            for z in range(Z):
                for x in range(X):
                    mass = kernel[z, x, y] * law[z, x]
                    q1[y] += mass
                    q3[y, z] += mass / law[z].sum()
                    totals[y, x] += mass
        new = np.zeros_like(kernel)
        for z in range(Z):
            for x in range(X):
                for y in range(R):
                    q2 = kernel[z, x, y] * law[z, x] / totals[y, x]
                    mean = 1 - joint[y, z, x] / law[z, x]
                    weight = q1[y] ** mu_1 * q2**mu_1 * q3[y, z] ** mu_2 * math.exp(-mean)
                    new[z, x, y] = weight ** (1 / (mu_1 + mu_2))
                new[z, x] /= new[z, x].sum()
        kernel = new
    return kernel


def conic(problem: ReleaseProblem, bound: Bound, solver: str) -> tuple[float, float]:
    """Return the value of a solver and the most by which its kernel misses a constraint."""
    program = problem.to_cvxpy()
    with warnings.catch_warnings():
        # What a solver has to say about its own accuracy is measured instead.
        warnings.simplefilter("ignore")
        program.solve(solver=solver)
    kernel: Any = program.var_dict["kernel"].value
    check = problem.check(problem.to_kernel(kernel), bound=bound)
    value: Any = program.value
    return float(value), max(check.violations.values())


def solvers(console: Console, limit: float) -> None:
    joint = large()
    problem = release_problem(joint, 0.05, information(joint.sum(axis=0)) + 0.1)
    bound, seconds = timed(lambda: problem.solve(time_limit=limit))
    answer, checking = timed(lambda: verify(bound.certificate))
    table = Table(title="|X| = 16, |Z| = 64, |R| = 4", title_justify="left")
    for heading in ("", "seconds", "gap, or off by", "constraint missed by"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("cvxleak, certified", f"{seconds:.2f}", f"{bound.gap:.1e}", "0 (proved)")
    table.add_row(f"its checker: {answer.reason}", f"{checking:.2f}", "", "")
    for solver in ("CLARABEL", "SCS"):
        try:
            (value, missed), seconds = timed(lambda solver=solver: conic(problem, bound, solver))
            off = f"{abs(value - bound.upper):.1e}"
            table.add_row(f"CVXPY, {solver}", f"{seconds:.2f}", off, f"{missed:.1e}")
        except cp.SolverError:
            table.add_row(f"CVXPY, {solver}", "", "failed", "")
    console.print(table)


def loops(console: Console) -> None:
    joint, updates = large(), 5
    mu = (0.1, 0.4)
    expected, slow = timed(lambda: plain_loops(joint, *mu, updates))
    run, fast = timed(
        lambda: distortion_blahut_arimoto(
            joint,
            *mu,
            start=np.full((64, 16, 4), 0.25),
            tol=0.0,
            max_iterations=20 * updates,
        )
    )
    same = distortion_blahut_arimoto(
        joint, *mu, start=np.full((64, 16, 4), 0.25), tol=0.0, max_iterations=updates
    ).point
    ratio = (slow / updates) / (fast / run.iterations)
    console.print(
        f"Blahut–Arimoto, one update: loops {slow / updates:.4f} s, cvxleak "
        f"{fast / run.iterations:.5f} s, {ratio:.0f} times as fast; the kernels after {updates} "
        f"updates differ by {np.abs(same - expected).max():.0e}\n"
    )


def surface(console: Console) -> None:
    budgets = np.linspace(0.0, math.log(2), 20)
    rows, seconds = timed(
        lambda: release_surface(TABLE_1, budgets, budgets + information(TABLE_1.sum(axis=0)))
    )
    bounds = [bound for row in rows for bound in row if bound is not None]
    widest = max(bound.gap for bound in bounds)
    console.print(
        f"D(epsilon, delta) of Table I, 20 x 20: {seconds:.1f} s for {len(bounds)} certified "
        f"points with epsilon <= delta, widest gap {widest:.1e}"
    )


def main(limit: float) -> None:
    console = Console()
    solvers(console, limit)
    loops(console)
    surface(console)
