"""Local methods against the certified bracket: value reached, iterations, time.

``python -m benchmarks local_methods`` prints the comparison; ``python -m benchmarks.local_methods``
writes it, the other computed parts and the figure into docs/local_methods.md.

Each method looks for the worst record at an entropy floor: LEAKAGE's Algorithm 1 (which calls its
Algorithms 2 to 5) from the uniform prior and from random ones, the joint Blahut–Arimoto step from
30 random starts for each record, and the audit. What they end at is judged by `verify_iterates`:
the values are those that it measures, at the worst record, and a point that is not feasible, or is
worth less than its method says, ends the run. Seconds are of the processor, one thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._audit_cases import CASES, Case
from benchmarks._pages import DOCS, replace_section, table
from cvxleak.audit import Adversary, RecordLeakage, leakage_curve, record_leakage
from cvxleak.iterative import IterativeResult, alternating_leakage, joint_blahut_arimoto
from cvxleak.mechanisms import binary_symmetric, exponential, laplace_threshold
from cvxleak.model import Mechanism
from cvxleak.problem import IterateReport, verify_iterates
from cvxleak.problem.bound import Bound
from cvxleak.queries import parity

LIMIT = 60.0
PAGE = "local_methods.md"
FIGURE = DOCS / "figures" / "parity_leakage.svg"
FLIPS = (0.1, 0.2, 0.3, 0.4)

PRINTED = {
    0.0: (0.079, 0.032),
    0.5: (0.062, 0.024),
    1.0: (0.041, 0.015),
    1.5: (0.022, 0.008),
    2.0: (0.009, 0.003),
    2.77: (0.000, 0.000),
}
"""LEAKAGE Table 3: Laplace and exponential mechanism, epsilon = 1, parity of 4 bits."""


@dataclass(frozen=True)
class Reached:
    """What a method reached: reports on its runs, the most iterations of one, all seconds."""

    reports: tuple[IterateReport, ...]
    iterations: int
    seconds: float

    @property
    def values(self) -> list[float]:
        return [report.last.value for report in self.reports]

    @property
    def best(self) -> float:
        return max(self.values)

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @property
    def short(self) -> str:
        """By what part of the proved leakage the best run is short."""
        report = max(self.reports, key=lambda report: report.last.value)
        least = max(report.last.shortfall[0], 0.0) / report.last.bound.lower
        return "0" if report.optimal else f"{least:.1%}"


def judged(
    problem: RecordLeakage, bound: Bound, runs: Callable[[], list[tuple[IterativeResult, Any]]]
) -> Reached:
    """Time some runs, each with its last point, and verify them."""
    begin = time.process_time()
    found = runs()
    seconds = time.process_time() - begin
    reports = tuple(verify_iterates(problem, p, run.value, bound=bound) for run, p in found)
    for (run, _), report in zip(found, reports, strict=True):
        # Algorithm 1 reports the record that it changed last; another may leak more.
        if not report.last.feasible or run.value > report.last.value + 1e-9:
            raise ValueError(
                f"a method says {run.value} of a point of which this is true: {report}"
            )
    return Reached(reports, max(run.iterations for run, _ in found), seconds)


def algorithm_1(
    problem: RecordLeakage, bound: Bound, start: str, starts: Sequence[int] = (0,)
) -> Reached:
    def runs() -> list[tuple[IterativeResult, Any]]:
        mechanism, floor = problem.mechanism, problem.entropy_floor
        found = [alternating_leakage(mechanism, floor, start=start, rng=seed) for seed in starts]
        return [(run, run.point) for run in found]

    return judged(problem, bound, runs)


def joint(problem: RecordLeakage, bound: Bound) -> Reached:
    def runs() -> list[tuple[IterativeResult, Any]]:
        found = []
        for group in problem.mechanism.groups():
            lumped = problem.mechanism.lumped(group)
            run = joint_blahut_arimoto(lumped, problem.entropy_floor)
            found.append((run, Adversary(problem.mechanism, group, run.point)))
        return found

    return judged(problem, bound, runs)


def interval(bound: Bound, digits: int = 5) -> str:
    """Return the bracket, rounded outward."""
    scale = 10**digits
    low = math.floor(bound.lower * scale) / scale
    high = math.ceil(bound.upper * scale) / scale
    return f"{low:.{digits}f} to {high:.{digits}f}"


def comparison(cases: Sequence[Case], starts: int, limit: float) -> tuple[str, str]:
    """Return what each method reaches, and its cost."""
    reached = [
        "worst record",
        "Algorithm 1, uniform",
        "random: median",
        "best",
        "short by",
        "joint step",
        "short by",
        "certified",
    ]
    cost = ["worst record"]
    for unit, methods in (("iterations", 3), ("seconds", 4)):
        names = ("uniform", "random", "joint step", "audit")[:methods]
        cost += [f"{unit}: {names[0]}", *names[1:]]
    values, costs = [], []
    for case in cases:
        problem = RecordLeakage(case.mechanism, case.floor)
        begin = time.process_time()
        bound = problem.solve(time_limit=limit)
        seconds = time.process_time() - begin
        uniform = algorithm_1(problem, bound, "uniform")
        random = algorithm_1(problem, bound, "random", range(starts))
        steps = joint(problem, bound)
        both = max(uniform, random, key=lambda reached: reached.best)
        values.append(
            (
                case.name,
                f"{uniform.best:.5f}",
                f"{random.median:.5f}",
                f"{random.best:.5f}",
                both.short,
                f"{steps.best:.5f}",
                steps.short,
                interval(bound),
            )
        )
        methods = (uniform, random, steps)
        iterations = [str(method.iterations) for method in methods]
        times = [f"{s:.2f}" for s in (*(method.seconds for method in methods), seconds)]
        costs.append((case.name, *iterations, *times))
    return table(reached, values), table(cost, costs)


def printed_table(starts: int) -> str:
    """Return LEAKAGE Table 3 beside Algorithm 1 as it runs here and the certified bracket."""
    mechanisms = (
        Mechanism(parity(4), laplace_threshold(1.0)),
        Mechanism(parity(4), exponential(np.eye(2), 1.0, 1.0)),
    )
    headings = ["b"]
    for name in ("Laplace", "exponential"):
        headings += [f"{name}: printed", "Algorithm 1", "certified"]
    rows = []
    for floor, printed in PRINTED.items():
        b = min(floor, 4 * math.log(2))
        cells = [f"{floor:g}"]
        for mechanism, value in zip(mechanisms, printed, strict=True):
            problem = RecordLeakage(mechanism, b)
            bound = problem.solve()
            uniform = algorithm_1(problem, bound, "uniform")
            best = algorithm_1(problem, bound, "random", range(starts)).best
            cells += [
                f"{value:.3f}",
                f"{uniform.best:.4f}, {best:.4f}",
                interval(bound, 4),
            ]
        rows.append(cells)
    return table(headings, rows)


def worst_prior(floor: float = 2.495, flip: float = 0.3033) -> tuple[Bound, Adversary]:
    bound = record_leakage(Mechanism(parity(4), binary_symmetric(flip)), floor, tol=1e-6)
    return bound, bound.witness


def printed_prior(floor: float = 2.495) -> str:
    """Return the witness at one floor, dataset by dataset."""
    bound, adversary = worst_prior(floor)
    (record,) = adversary.records
    prior = adversary.mechanism.expand(record, adversary.weights)
    # Flipping one bit of another record makes a witness of a witness, and which of the two the
    # audit ends at is a matter of rounding: print the one in which 0...01 is the likelier.
    likely, other = prior.probabilities[1], prior.probabilities[0]
    step = -1 if likely < other else 1
    pairs = prior.probabilities.reshape(-1, 2)[:, ::step].reshape(-1)
    kinds: dict[float, list[str]] = {}
    for dataset, p in zip(prior.labels, pairs, strict=True):
        name = "".join(str(bit) for bit in dataset)  # type: ignore[attr-defined]
        kinds.setdefault(round(float(p), 7), []).append(name)
    rows = [(" ".join(names), f"{p:.7f}") for p, names in sorted(kinds.items(), reverse=True)]
    facts = (
        f"H(X) = {adversary.entropy:.6f} nats, I(X_{record + 1};Y) = {adversary.leakage:.6f} nats; "
        f"proved: {interval(bound, 7)}."
    )
    return table(("datasets", "probability of each"), rows) + "\n\n" + facts


def figure(
    path: Path, sizes: Sequence[int] = (4, 5, 6), points: int = 49, dots: int = 13, starts: int = 5
) -> Any:
    """Draw L(b) of a noisy parity, proved, and where Algorithm 1 ends (LEAKAGE Figure 3)."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "cvxleak", "font.size": 9}):
        drawing = Figure(figsize=(3.4 * len(sizes), 3.6), layout="constrained")
        axes = drawing.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        for axis, n in zip(axes, sizes, strict=True):
            most = n * math.log(2)
            for place, flip in enumerate(FLIPS):
                mechanism = Mechanism(parity(n), binary_symmetric(flip))
                floors = np.linspace(0, most, points)
                curve = leakage_curve(mechanism, floors)
                color = f"C{place}"
                axis.fill_between(floors, curve.lower, curve.upper, color=color)
                axis.plot(floors, curve.upper, color=color, label=f"proved, flip {flip:g}")
                some = np.linspace(0, most, dots)
                problems = [RecordLeakage(mechanism, b) for b in some]
                solved = [(problem, problem.solve()) for problem in problems]
                uniform = [algorithm_1(*pair, "uniform").best for pair in solved]
                random = [algorithm_1(*pair, "random", range(starts)).best for pair in solved]
                axis.plot(some, uniform, "x", color=color, ms=4)
                axis.plot(some, random, "o", color=color, ms=4, mfc="none")
            axis.axvline((n - 1) * math.log(2), color="0.7", lw=0.8, ls=":", zorder=0)
            axis.set(title=f"parity of n = {n} bits", xlabel="entropy floor b, nats")
            axis.set(xlim=(0, most * 1.01), ylim=(-0.005, None))
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("leakage about a record, nats")
        axes[0].plot([], [], "x", color="0.3", ms=4, label="Algorithm 1, uniform start")
        axes[0].plot([], [], "o", color="0.3", ms=4, mfc="none", label=f"best of {starts} starts")
        handles, labels = axes[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        drawing.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return drawing


def write() -> None:
    values, costs = comparison(CASES, 10, LIMIT)
    replace_section(PAGE, "comparison", values)
    replace_section(PAGE, "cost", costs)
    replace_section(PAGE, "table 3", printed_table(10))
    replace_section(PAGE, "prior", printed_prior())
    FIGURE.parent.mkdir(exist_ok=True)
    figure(FIGURE)


def main(limit: float = LIMIT) -> None:
    print(*comparison(CASES, 10, limit), sep="\n\n")


if __name__ == "__main__":
    write()
