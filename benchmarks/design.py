"""Mechanism design: certified brackets, a curve against one point, NumPy's master against CVXPY's.

Seconds are of the processor (run with OPENBLAS_NUM_THREADS=1: the matrices are too small for
threads), time limits are wall-clock, and every bracket's certificate is verified. What is
compared: the same search with its master solved by the method of this project and by CVXPY's
solvers, and a curve of 30 points against one point.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table

from cvxleak.design import MinDistortion, MinLeakage, design_curve
from cvxleak.model import Distortion
from cvxleak.problem.bound import Bound
from cvxleak.proofs import verify
from cvxleak.queries import count, parity


def parity_of(n: int, budget: float, floor: float) -> MinLeakage:
    return MinLeakage(
        parity(n), distortion=Distortion.hamming([0, 1]), budget=budget, entropy_floor=floor
    )


def count_of(n: int, budget: float, floor: float) -> MinLeakage:
    distortion = Distortion.absolute(range(n + 1))
    return MinLeakage(count(n), distortion=distortion, budget=budget, entropy_floor=floor)


def accuracy_of(n: int, budget: float, floor: float) -> MinDistortion:
    distortion = Distortion.absolute(range(n + 1))
    return MinDistortion(count(n), distortion=distortion, budget=budget, entropy_floor=floor)


LIMIT = 60.0
"""Seconds for a point; the larger cases get five times as much."""

CASES: dict[str, tuple[MinLeakage | MinDistortion, float]] = {
    "parity n=6, b=3.5, D=0.1": (parity_of(6, 0.1, 3.5), 1e-3),
    "parity n=6, b=3.5, D=0.3": (parity_of(6, 0.3, 3.5), 1e-3),
    "count n=4, b=1.5, D=0.5": (count_of(4, 0.5, 1.5), 1e-3),
    "parity n=3, b=1.5, L=0": (
        MinDistortion(
            parity(3), distortion=Distortion.hamming([0, 1]), budget=0.0, entropy_floor=1.5
        ),
        1e-4,
    ),
    "count n=4, b=1.5, L=0.2": (accuracy_of(4, 0.2, 1.5), 1e-3),
    "count n=20, b=10, L=0.2": (accuracy_of(20, 0.2, 10.0), 1e-3),
    "count n=50, b=30, D=2": (count_of(50, 2.0, 30.0), 1e-2),
}


def timed(solve: Callable[[], Bound]) -> tuple[Bound, float]:
    begin = time.process_time()
    bound = solve()
    return bound, time.process_time() - begin


def main(limit: float) -> None:
    console = Console(width=140)
    table = Table(title="Certified brackets", title_justify="left")
    for heading in ("", "lower", "upper", "status", "rows", "rounds", "seconds", "verify", "holds"):
        table.add_column(heading)

    def add(name: str, bound: Bound, seconds: float) -> None:
        begin = time.process_time()
        holds = verify(bound.certificate).passed
        checked = time.process_time() - begin
        ends = f"{bound.lower:.7g}", f"{bound.upper:.7g}"
        counts = str(bound.stats["rows"]), str(bound.stats["rounds"])
        times = f"{seconds:.2f}", f"{checked:.2f}"
        table.add_row(name, *ends, bound.status.name, *counts, *times, str(holds))

    total = 0.0
    for floor in (0.0, 0.7, 1.5, 1.9):
        for budget in (0.05, 0.1, 0.2):
            problem = parity_of(3, budget, floor)
            bound, seconds = timed(lambda problem=problem: problem.solve(tol=1e-5))
            total += seconds
            add(f"parity n=3, b={floor}, D={budget}", bound, seconds)
    for name, (problem, tol) in CASES.items():
        solve = lambda p=problem, t=tol: p.solve(tol=t, time_limit=5 * limit)  # noqa: E731
        add(name, *timed(solve))
    problem = parity_of(3, 0.1, 1.5)
    for solver in ("CLARABEL", "ECOS", "SCS"):
        if solver in cp.installed_solvers():
            solve = lambda s=solver: problem.solve(tol=1e-3, solver=s)  # noqa: E731
            add(f"parity n=3, b=1.5, D=0.1, master by {solver}", *timed(solve))
    console.print(table)
    console.print(f"12 points of parity n=3 to 1e-5: {total:.1f} s\n")

    curves: dict[str, tuple[MinLeakage, float, float, float]] = {
        "parity n=3, b=1.5, D=0.01 to 0.45": (problem, 0.01, 0.45, 1e-3),
        "count n=4, b=1.5, D=0.2 to 0.7": (count_of(4, 0.45, 1.5), 0.2, 0.7, 1e-2),
    }
    for name, (problem, low, high, tol) in curves.items():
        _, one = timed(lambda p=problem, t=tol: p.solve(tol=t))
        begin = time.process_time()
        curve = design_curve(problem, np.linspace(low, high, 30), tol=tol, time_limit=10 * limit)
        ratio = (time.process_time() - begin) / one
        closed = sum(bound.status.name == "CERTIFIED" for bound in curve.bounds)
        console.print(
            f"{name}, to {tol:g}: 30 points, {closed} of them certified, take {ratio:.1f} times as "
            f"long as one ({one:.2f} s)"
        )
