"""LEAKAGE's Algorithms 6 to 11 against the proved optimum: where they stop, how often they cycle.

``python -m benchmarks design_methods`` prints the comparison; ``python -m
benchmarks.design_methods`` writes it into docs/local_methods.md.

Algorithm 6 looks for the least leakage, with Algorithms 7 and 8 inside, Algorithm 9 for the least
distortion, with 10 and 11. Both start from the default (the nearest output, mixed with noise) and
from a random mechanism; the line search is the paper's ("norm") or one that asks for what a step
can give ("variance"). What a run ends at is repaired to meet its budget and handed to
`verify_iterates`, which audits it: the numbers of all columns are about mechanisms that exist. The
last row of a problem keeps the
alternation and replaces the penalty method by an exact mechanism step (``strategy="alternate"``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks._pages import replace_section, table
from benchmarks.local_methods import PAGE, interval
from cvxleak.design import MinDistortion, MinLeakage
from cvxleak.iterative import alternating_design
from cvxleak.iterative.exponentiated import DECREASES, GOALS
from cvxleak.model import AdditiveQuery, Distortion, Query, RecordSpace
from cvxleak.problem import Check, verify_iterates
from cvxleak.problem.bound import Bound, Status
from cvxleak.queries import count, parity

LIMIT = 60.0
"""Seconds after which a run of Algorithm 6 or 9 begins no further round."""

ROUNDS = 12
"""Rounds after which it is stopped in any case."""

HEADINGS = (
    "problem",
    "line search",
    "start",
    "rounds",
    "stopped",
    "went back",
    "over budget by",
    "ends at",
    "proved optimum",
    "above it by",
)


@dataclass(frozen=True)
class Case:
    """A design problem: least leakage for a budget, and least distortion for that leakage."""

    name: str
    query: Query
    distortion: NDArray[np.float64]
    budget: float
    floor: float

    @property
    def table(self) -> NDArray[np.intp]:
        return self.query.table()

    def problem(self, goal: str, budget: float) -> MinLeakage | MinDistortion:
        kind = MinLeakage if goal == "leakage" else MinDistortion
        d = Distortion(self.distortion, self.query.values)
        return kind(self.query, distortion=d, budget=budget, entropy_floor=self.floor)

    def start(self, seed: int = 1) -> NDArray[np.float64]:
        """Return a random mechanism, half of it the nearest output."""
        outputs = self.distortion.shape[1]
        law = np.random.default_rng(seed).dirichlet(np.ones(outputs), size=self.table.shape)
        return 0.5 * law + 0.5 * np.eye(outputs)[self.distortion.argmin(axis=1)][self.table]


def absolute(n: int) -> NDArray[np.float64]:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


CASES = (
    Case("parity, n = 3, b = 1.5", parity(3), 1 - np.eye(2), 0.1, 1.5),
    Case("parity, n = 3, b = 1.9", parity(3), 1 - np.eye(2), 0.2, 1.9),
    Case("count, n = 3, b = 1.04", count(3), absolute(4), 0.5, 1.04),
    Case(
        "sum mod 3, n = 3, b = 1.5",
        AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=3),
        absolute(3),
        0.3,
        1.5,
    ),
)


def comparison(cases: tuple[Case, ...], goal: str, limit: float) -> str:
    """Return the table of Algorithm 6 (goal "leakage") or 9 (goal "distortion")."""
    return table(HEADINGS, [row for case in cases for row in rows(case, goal, limit)])


def rows(case: Case, goal: str, limit: float) -> Iterator[list[str]]:
    budget = case.budget
    if goal == "distortion":
        budget = case.problem("leakage", case.budget).solve().upper
    problem = case.problem(goal, budget)
    best = problem.solve()
    for decrease in DECREASES:
        for name, start in (("default", None), ("random", case.start())):
            run = alternating_design(
                np.full(case.table.shape, 1 / case.table.size),
                case.distortion[case.table],
                budget,
                case.floor,
                goal=goal,
                adversary="joint",
                starts=10,
                max_penalties=30,
                decrease=decrease,
                start=start,
                max_iterations=ROUNDS,
                time_limit=limit,
            )
            report = verify_iterates(
                problem, run.point.channel.reshape(case.table.size, -1), bound=best
            )
            # The run's own adversaries are found, not proved: an audit may see a little more.
            if max(report.last.violations.values()) > 1e-3 * budget:
                raise ValueError(f"{case.name}: {report}")
            back = int((run.history["period"] > 0).sum())
            over = max(float(run.history["residual"][-1]), 0.0)
            why = "settled" if run.stopped.startswith("a round changed") else "cap"
            yield described(
                case, decrease, name, run.iterations, why, back, over, report.last, best
            )
    exact = problem.solve(strategy="alternate", time_limit=limit)
    back = int(exact.stats["cycled"])
    why = "came back" if back else "proved" if exact.status is Status.CERTIFIED else "cap"
    rounds = exact.stats["rounds"]
    last = problem.check(exact.witness, bound=best)
    yield described(case, "exact step", "default", rounds, why, back, 0.0, last, best)


def described(
    case: Case,
    search: str,
    start: str,
    rounds: int,
    why: str,
    back: int,
    over: float,
    last: Check,
    best: Bound,
) -> list[str]:
    high = math.ceil(last.value * 1e5) / 1e5
    above = max(last.shortfall[0] / best.upper, 0.0)
    return [
        case.name,
        search,
        start,
        str(rounds),
        why,
        str(back),
        f"{over:.4f}",
        f"{high:.5f}",
        interval(best),
        f"{above:.1%}",
    ]


def main(limit: float = LIMIT) -> None:
    for goal in GOALS:
        print(comparison(CASES, goal, limit) + "\n")


def write() -> None:
    for goal in GOALS:
        replace_section(PAGE, f"least {goal}", comparison(CASES, goal, LIMIT))


if __name__ == "__main__":
    write()
