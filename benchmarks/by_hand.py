"""The constraint sets as somebody writes them in plain CVXPY, against the builders.

``python -m benchmarks by_hand`` prints the tables; ``python -m benchmarks.by_hand`` writes them
into docs/solvers.md. Both sides state the same set, minimize the same objective with the same
solver and are timed from the arrays to the value: stating, compiling and solving, in seconds of the
processor, each in a process of its own. A row is a set, its columns the sizes n of an n x n
channel; the distributions are Dirichlet(1) and the distortions uniform on [0, 1].
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from benchmarks._pages import replace_section, table
from cvxleak import constraints
from cvxleak.design import design_for_prior
from cvxleak.measures import expected_distortion
from cvxleak.model import Query
from cvxleak.queries import count

Array = NDArray[np.float64]

LIMIT = 60.0
SIZES = (10, 50, 200)
EPSILON = 1.0
LEAKS = 0.5


@dataclass(frozen=True)
class Case:
    """A distribution, and what confusing two symbols costs."""

    p: Array
    d: Array

    @classmethod
    def of(cls, n: int) -> Case:
        rng = np.random.default_rng(n)
        return cls(rng.dirichlet(np.ones(n)), rng.random((n, n)))

    @property
    def budget(self) -> float:
        """Half-way between the least distortion and that of the best constant output."""
        return float(0.5 * (self.p @ self.d.min(axis=1)) + 0.5 * (self.p @ self.d).min())

    def spent(self, q: Any) -> Any:
        return cp.sum(cp.multiply(self.p[:, None] * self.d, q))


Rules = Callable[[Case, Any], list[Any]]


def product(case: Case, q: Any) -> tuple[Any, Any]:
    joint = cp.multiply(case.p[:, None], q)
    return joint, cp.outer(case.p, case.p @ q)


def information(case: Case, q: Any) -> Any:
    return cp.sum(cp.kl_div(*product(case, q)))


def all_pairs(case: Case, q: Any) -> list[Any]:
    n, factor = len(case.p), np.exp(EPSILON)
    return [q[x] <= factor * q[other] for x in range(n) for other in range(n) if x != other]


def neighbors(case: Case, q: Any) -> list[Any]:
    pairs = [(x, x + 1) for x in range(len(case.p) - 1)]
    factor = np.exp(EPSILON)
    return [q[x] <= factor * q[y] for x, y in pairs] + [q[y] <= factor * q[x] for x, y in pairs]


def scale(case: Case) -> Query:
    """Return the query whose datasets are neighbors like the values of a count."""
    return count(len(case.p) - 1)


def guess(case: Case) -> float:
    return float(0.5 + 0.5 * case.p.max())


def capacity(case: Case, q: Any) -> list[Any]:
    r = cp.Variable(len(case.p))
    return [cp.sum(r) == 1, *(cp.sum(cp.kl_div(row, r)) <= LEAKS for row in q)]


def each_way(case: Case) -> list[tuple[int, int]]:
    ways = [(x, x + 1) for x in range(len(case.p) - 1)]
    return ways + [(y, x) for x, y in ways]


def chi_square(case: Case, q: Any) -> list[Any]:
    columns = range(len(case.p))
    return [
        cp.sum([cp.quad_over_lin(q[x, c] - q[y, c], q[y, c]) for c in columns]) <= LEAKS
        for x, y in each_way(case)
    ]


def renyi(case: Case, q: Any) -> list[Any]:
    # Order 2: E_Q[(P / Q)^2] <= e^epsilon.
    columns, most = range(len(case.p)), np.exp(LEAKS)
    return [
        cp.sum([cp.quad_over_lin(q[x, c], q[y, c]) for c in columns]) <= most
        for x, y in each_way(case)
    ]


SETS: dict[str, tuple[Rules, Rules]] = {
    "local DP: all pairs": (
        lambda case, q: constraints.local_dp(q, EPSILON),
        all_pairs,
    ),
    "DP of a count: all neighbors": (
        lambda case, q: constraints.record_dp(q, count(len(case.p) - 1), EPSILON),
        neighbors,
    ),
    "information budget: `kl_div` of the joint distribution and `p @ Q`": (
        lambda case, q: constraints.mi_budget(q, case.p, LEAKS),
        lambda case, q: [information(case, q) <= LEAKS],
    ),
    "pointwise maximal leakage: `p @ Q` in every row": (
        lambda case, q: constraints.pml(q, case.p, EPSILON),
        lambda case, q: [row <= np.exp(EPSILON) * (case.p @ q) for row in q],
    ),
    "maximal leakage: `sum(max(Q))`": (
        lambda case, q: constraints.maximal_leakage(q, case.p, EPSILON),
        lambda case, q: [cp.sum(cp.max(q, axis=0)) <= np.exp(EPSILON)],
    ),
    "chance of a guess: `sum(max(p * Q))`": (
        lambda case, q: constraints.vulnerability_budget(q, case.p, guess(case)),
        lambda case, q: [cp.sum(cp.max(cp.multiply(case.p[:, None], q), axis=0)) <= guess(case)],
    ),
    "capacity: `kl_div` of each row and a distribution": (
        lambda case, q: constraints.capacity_budget(q, LEAKS),
        capacity,
    ),
    "total variation of neighbors: `norm1`": (
        lambda case, q: constraints.divergence_budget(
            q, "total-variation", LEAKS / 5, query=scale(case)
        ),
        lambda case, q: [
            cp.norm1(q[x] - q[x + 1]) / 2 <= LEAKS / 5 for x in range(len(case.p) - 1)
        ],
    ),
    "relative entropy of neighbors: `kl_div`": (
        lambda case, q: constraints.divergence_budget(
            q, "relative-entropy", LEAKS, query=scale(case)
        ),
        lambda case, q: [cp.sum(cp.kl_div(q[x], q[y])) <= LEAKS for x, y in each_way(case)],
    ),
    "chi-square of neighbors: `quad_over_lin` of each entry": (
        lambda case, q: constraints.divergence_budget(q, "chi-square", LEAKS, query=scale(case)),
        chi_square,
    ),
    "Rényi's divergence of order 2 of neighbors: `quad_over_lin` of each entry": (
        lambda case, q: constraints.renyi_dp(q, 2.0, LEAKS, query=scale(case)),
        renyi,
    ),
}
"""Name -> ours, by hand: least expected distortion within the set, by CLARABEL."""


def with_builder(name: str, case: Case) -> tuple[float, bool]:
    q = cp.Variable(case.d.shape)
    rules = constraints.row_stochastic(q) + SETS[name][0](case, q)
    return value(cp.Problem(cp.Minimize(case.spent(q)), rules))


def by_hand(name: str, case: Case) -> tuple[float, bool]:
    q = cp.Variable(case.d.shape)
    rules = [q >= 0, cp.sum(q, axis=1) == 1, *SETS[name][1](case, q)]
    return value(cp.Problem(cp.Minimize(case.spent(q)), rules))


def value(problem: cp.Problem, solver: str = "CLARABEL") -> tuple[float, bool]:
    """Return the value, and whether the solver calls it optimal."""
    problem.solve(solver=solver)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise RuntimeError(problem.status)
    found: Any = problem.value
    if not np.isfinite(found):  # as the divergence of entries that are a little negative
        raise RuntimeError("no value")
    return float(found), problem.status == cp.OPTIMAL


def rate_distortion(case: Case) -> tuple[float, bool]:
    bound = design_for_prior(case.p, case.d, case.budget)
    assert expected_distortion(bound.witness, case.p, case.d) <= case.budget * (1 + 1e-12)
    return bound.upper, True


def rate_distortion_with_builder(case: Case) -> tuple[float, bool]:
    q, t = cp.Variable(case.d.shape), cp.Variable()
    rules = constraints.row_stochastic(q) + constraints.mi_budget(q, case.p, t)
    return value(cp.Problem(cp.Minimize(t), [*rules, case.spent(q) <= case.budget]))


def rate_distortion_by_hand(solver: str) -> Callable[[Case], tuple[float, bool]]:
    def method(case: Case) -> tuple[float, bool]:
        q = cp.Variable(case.d.shape)
        rules = [q >= 0, cp.sum(q, axis=1) == 1, case.spent(q) <= case.budget]
        return value(cp.Problem(cp.Minimize(information(case, q)), rules), solver)

    return method


CURVE: dict[str, Callable[[Case], tuple[float, bool]]] = {
    "`design_for_prior`, proved": rate_distortion,
    "`mi_budget`, CLARABEL": rate_distortion_with_builder,
    **{f"by hand, {name}": rate_distortion_by_hand(name) for name in ("CLARABEL", "ECOS", "SCS")},
}
"""The least information within a distortion budget."""


def measure(name: str, kind: str, n: int) -> tuple[float, float | None, str]:
    """Return seconds, the value, and why there is none or what is wrong with it."""
    case = Case.of(n)
    solve = {"ours": with_builder, "by hand": by_hand}.get(kind)
    times, found, sure = [], None, True
    while len(times) < 20 and sum(times) < 0.5:
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found, sure = CURVE[name](case) if solve is None else solve(name, case)
            except (cp.SolverError, RuntimeError) as error:
                return time.process_time() - begin, None, f"failed: {error!s:.40}"
        times.append(time.process_time() - begin)
    return min(times), found, "" if sure else "inaccurate"


def with_limit(name: str, kind: str, n: int, limit: float) -> tuple[float, float | None, str]:
    with closing(multiprocessing.get_context("spawn").Pool(1)) as pool:
        # Importing and the first compilation are nobody's running time.
        pool.apply(measure, (name, kind, 3))
        try:
            return pool.apply_async(measure, (name, kind, n)).get(limit)
        except multiprocessing.TimeoutError:
            pool.terminate()
            return limit, None, "out of time"


MARKS = {"": "", "inaccurate": "\\*"}


def ratio(seconds: float, ours: float) -> str:
    x = seconds / ours
    return f"{x:.0f}×" if x >= 99.5 else f"{x:.2g}×"


def sets(limit: float) -> str:
    rows = []
    for name in SETS:
        cells = []
        for n in SIZES:
            ours, mine, why = with_limit(name, "ours", n, limit)
            seconds, theirs, reason = with_limit(name, "by hand", n, limit)
            assert mine is not None, (name, n, why)
            assert theirs is None or abs(mine - theirs) < 1e-5, (name, n, mine, theirs)
            cells.append(f"{ours:.3g} s{MARKS[why]}")
            if theirs is not None:
                cells.append(ratio(seconds, ours) + MARKS[reason])
            else:
                cells.append(f"> {ratio(seconds, ours)}" if reason == "out of time" else "failed")
        rows.append([name, *cells])
        print(rows[-1], flush=True)
    headings = [heading for n in SIZES for heading in (f"n = {n}", "by hand")]
    return table(["set: hand-written form", *headings], rows)


def curve(limit: float) -> str:
    runs = {name: [with_limit(name, "curve", n, limit) for n in SIZES] for name in CURVE}
    ours = runs["`design_for_prior`, proved"]
    rows = []
    for name, found in runs.items():
        cells = []
        for (seconds, value, why), (reference, truth, _) in zip(found, ours, strict=True):
            if value is None or truth is None:
                cells.append(f"> {ratio(seconds, reference)}" if why == "out of time" else "failed")
            elif found is ours:
                cells.append(f"{seconds:.3g} s")
            else:
                cells.append(
                    f"{ratio(seconds, reference)}{MARKS[why]}, off by {value - truth:+.0e}"
                )
        rows.append([name, *cells])
        print(rows[-1], flush=True)
    return table(["least information within a distortion", *(f"n = {n}" for n in SIZES)], rows)


def main(limit: float = LIMIT) -> None:
    print(sets(limit), curve(limit), sep="\n\n")


if __name__ == "__main__":
    replace_section("solvers.md", "sets", sets(LIMIT))
    replace_section("solvers.md", "rate-distortion", curve(LIMIT))
