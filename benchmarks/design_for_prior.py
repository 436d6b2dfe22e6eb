"""The rate-distortion function: cvxleak against textbook CVXPY, its dual form, and Blahut.

Every program minimizes I(X;Y) + s E d(X,Y) for the same distribution of X, distortion and slope s,
so that no budget has to be repaired: the distribution is Dirichlet(1), the distortions are uniform
on [0, 1], and s is the slope half-way along the curve. Times run from the arrays to a channel;
cvxleak's include the proof. The gap is the value of the channel that was returned, its rows made
stochastic, less the lower bound that cvxleak proved. "Dual form" is max sum_x p_x log lambda_x
subject to sum_x lambda_x e^{-s d(x,y)} <= 1 for every y, n logarithms in place of n m relative
entropies; its multipliers are the output distribution. Times are the least of up to five runs;
"solver" is the time that the solver itself reports, without CVXPY's. A program that runs out of
time is left out of the larger cases.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from cvxleak.design.fixed_prior import DesignForPrior, design_for_prior
from cvxleak.iterative import blahut_rate_distortion, mirror_prox
from cvxleak.measures import expected_distortion, mutual_information

Array = NDArray[np.float64]

GAP = 1e-8
LIMIT = 30.0


@dataclass(frozen=True)
class Case:
    p: Array
    d: Array
    slope: float
    lower: float

    @classmethod
    def of(cls, n: int) -> Case:
        rng = np.random.default_rng(n)
        p, d = rng.dirichlet(np.ones(n)), rng.random((n, n))
        budget = float(0.5 * (p @ d.min(axis=1)) + 0.5 * (p @ d).min())
        slope = -design_for_prior(p, d, budget).shadow_prices["budget"]
        return cls(p, d, slope, design_for_prior(p, d, slope=slope, tol=1e-11).lower)

    def gap(self, channel: Array) -> float:
        q = np.maximum(channel, 0.0)
        q /= q.sum(axis=1, keepdims=True)
        spent = expected_distortion(q, self.p, self.d)
        return mutual_information(q, self.p) + self.slope * spent - self.lower


@dataclass(frozen=True)
class Answer:
    channel: Array | None
    solver_seconds: float | None = None


@dataclass(frozen=True)
class Measurement:
    name: str
    seconds: float
    gap: float
    solver_seconds: float | None = None
    note: str = ""


def ours(case: Case) -> Answer:
    return Answer(design_for_prior(case.p, case.d, slope=case.slope).witness.matrix)


def textbook(solver: str, **options: float) -> Callable[[Case], Answer]:
    """I(X;Y) as the divergence of the joint distribution from the product of its marginals."""

    def method(case: Case) -> Answer:
        q = cp.Variable(case.d.shape, nonneg=True)
        joint = cp.multiply(case.p[:, None], q)
        product = cp.outer(case.p, cp.sum(joint, axis=0))
        cost = cp.sum(cp.multiply(case.d, joint))
        objective = cp.sum(cp.rel_entr(joint, product)) + case.slope * cost
        problem = cp.Problem(cp.Minimize(objective), [cp.sum(q, axis=1) == 1])
        problem.solve(solver=solver, **options)
        return Answer(q.value, problem.solver_stats.solve_time)

    return method


def stated(solver: str, **options: float) -> Callable[[Case], Answer]:
    """What `DesignForPrior.to_cvxpy` states: H(X) - H(X|Y), one explicit cone per entry."""

    def method(case: Case) -> Answer:
        problem = DesignForPrior(case.p, case.d, slope=case.slope).to_cvxpy()
        problem.solve(solver=solver, **options)
        return Answer(problem.var_dict["channel"].value, problem.solver_stats.solve_time)

    return method


def dual_form(solver: str, **options: float) -> Callable[[Case], Answer]:
    def method(case: Case) -> Answer:
        tilt = np.exp(-case.slope * case.d)
        scaled = cp.Variable(len(case.p))
        columns = [(case.p[:, None] * tilt).T @ scaled <= 1]
        problem = cp.Problem(cp.Maximize(case.p @ cp.log(scaled)), columns)
        problem.solve(solver=solver, **options)
        if columns[0].dual_value is None:
            return Answer(None)
        output = np.maximum(columns[0].dual_value, 0.0)
        return Answer(output * tilt, problem.solver_stats.solve_time)

    return method


def plain_blahut(case: Case) -> Answer:
    run = blahut_rate_distortion(case.p, case.d, case.slope, tol=GAP, max_iterations=10**6)
    return Answer(run.point.channel)


def extragradient(case: Case) -> Answer:
    run = mirror_prox([case.p], [case.p], case.d, case.slope, tol=GAP, time_limit=LIMIT)
    return Answer(run.point.channel)


ECOS = {"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}
CLARABEL = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
SCS = {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}

METHODS: dict[str, Callable[[Case], Answer]] = {
    "cvxleak": ours,
    "ECOS, dual form": dual_form("ECOS"),
    "ECOS, dual form, tol 1e-11": dual_form("ECOS", **ECOS),
    "CLARABEL, dual form": dual_form("CLARABEL"),
    "CLARABEL, dual form, tol 1e-11": dual_form("CLARABEL", **CLARABEL),
    "SCS, dual form": dual_form("SCS", **SCS),
    "Blahut": plain_blahut,
    "mirror-prox": extragradient,
    "ECOS, textbook": textbook("ECOS"),
    "CLARABEL, textbook": textbook("CLARABEL"),
    "SCS, textbook": textbook("SCS"),
    "CLARABEL, to_cvxpy": stated("CLARABEL"),
}


def measure(name: str, case: Case) -> Measurement:
    times: list[float] = []
    answer = Answer(None)
    while len(times) < 5 and sum(times) < 1.0:
        begin = time.perf_counter()
        with warnings.catch_warnings():
            # What a program has to say about its own accuracy is measured instead.
            warnings.simplefilter("ignore")
            try:
                answer = METHODS[name](case)
            except cp.SolverError:
                return Measurement(name, time.perf_counter() - begin, np.inf, None, "solver failed")
        times.append(time.perf_counter() - begin)
    if answer.channel is None or not np.isfinite(answer.channel).all():
        return Measurement(name, min(times), np.inf, None, "no point")
    return Measurement(name, min(times), case.gap(answer.channel), answer.solver_seconds)


def with_limit(name: str, case: Case, limit: float) -> Measurement:
    with closing(multiprocessing.get_context("spawn").Pool(1)) as pool:
        # Importing is nobody's running time.
        pool.apply(len, ((),))
        try:
            return pool.apply_async(measure, (name, case)).get(limit + 10)
        except multiprocessing.TimeoutError:
            pool.terminate()
            return Measurement(name, limit + 10, np.inf, None, "out of time")


def report(n: int, rows: list[Measurement], console: Console) -> None:
    reference = rows[0].seconds
    table = Table(title=f"{n} x {n}", title_justify="left")
    for heading in ("", "seconds", "solver", "gap, nats", "x ours", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.seconds:.4f}",
            "" if row.solver_seconds is None else f"{row.solver_seconds:.4f}",
            f"{row.gap:.1e}",
            f"{row.seconds / reference:.1f}",
            row.note or ("" if row.gap <= GAP else "gap too wide"),
        )
    console.print(table)
    close = [row for row in rows[1:] if row.gap <= GAP]
    if close:
        best = min(close, key=lambda row: row.seconds)
        alone = (
            ""
            if best.solver_seconds is None
            else (f", {best.solver_seconds / reference:.1f} times as fast as its solver alone")
        )
        console.print(
            f"at a gap of {GAP:g}: cvxleak is {best.seconds / reference:.1f} times as fast as the "
            f"best of the others ({best.name}){alone}\n"
        )
    else:
        console.print(f"nobody else came to {GAP:g}\n")


def main(limit: float) -> None:
    console = Console()
    names = [
        name
        for name in METHODS
        if name.split(",")[0] not in ("ECOS", "CLARABEL", "SCS")
        or name.split(",")[0] in cp.installed_solvers()
    ]
    for n in (20, 50, 100, 200):
        case = Case.of(n)
        rows = [with_limit(name, case, limit) for name in names]
        report(n, rows, console)
        names = [row.name for row in rows if row.seconds <= limit and row.note != "solver failed"]
