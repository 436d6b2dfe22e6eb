"""HAMMING on source sets: Theorem 3's bounds and k-RR against the exact least epsilon.

``python -m benchmarks source_sets`` prints the studies; ``python -m benchmarks.source_sets`` writes
them into docs/source_sets.md.

Random Class III sets of three kinds: a distribution and permutations of it that form a group, a
distribution and arbitrary permutations of it, and distributions that are drawn independently.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks._pages import replace_section, table
from cvxleak.local_dp import (
    class_one_leakage,
    class_two_distortions,
    classify,
    folding_bounds,
    min_information,
    min_local_dp,
)

LIMIT = 60.0
PAGE = "source_sets.md"
BUDGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
SIX = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
SLACK = 1e-6

Array = NDArray[np.float64]


def group(rng: np.random.Generator, size: int) -> Array:
    """A distribution and its images under the group of a random cycle of two or three places."""
    law = rng.dirichlet(np.ones(size))
    cycle = rng.permutation(size)[: int(rng.integers(2, min(size, 4)))]
    laws = [law]
    for _ in range(len(cycle) - 1):
        after = laws[-1].copy()
        after[cycle] = laws[-1][np.roll(cycle, 1)]
        laws.append(after)
    return np.array(laws)


def shuffled(rng: np.random.Generator, size: int) -> Array:
    law = rng.dirichlet(np.ones(size))
    return np.array([law, *(law[rng.permutation(size)] for _ in range(int(rng.integers(1, 3))))])


def unrelated(rng: np.random.Generator, size: int) -> Array:
    return rng.dirichlet(np.ones(size), size=int(rng.integers(2, 4)))


KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "a group of permutations": group,
    "any permutations": shuffled,
    "unrelated distributions": unrelated,
}


def theorem_three(sets: int) -> str:
    """Count how often each bound holds, and how far it is from the exact value."""
    rows = []
    for name, draw in KINDS.items():
        rng, cases, empty, false, exact_lower = np.random.default_rng(0), 0, 0, 0, 0
        above, below, remark, most = [], [], [], 0.0
        while cases < sets * len(BUDGETS):
            laws = draw(rng, int(rng.integers(3, 6)))
            if classify(laws, cap=1).kind != "III":
                continue
            for budget in BUDGETS:
                cases += 1
                exact, bounds = min_local_dp(laws, budget).upper, folding_bounds(laws, budget)
                above.append(bounds.upper - exact)
                remark.append(exact - bounds.single_order)
                if bounds.lower is None:
                    empty += 1
                    continue
                gap = exact - bounds.lower
                false, most = false + (gap < -SLACK), max(most, -gap)
                exact_lower += abs(gap) <= SLACK
                below.append(max(gap, 0.0))
        counted = len(below)
        rows.append(
            [
                name,
                str(cases),
                str(empty),
                f"{false} of {counted}",
                f"{most:.3f}" if counted else "-",
                f"{exact_lower} of {counted}",
                f"{abs(float(np.mean(above))):.3f}",
                f"{np.mean(np.array(above) <= SLACK):.0%}",
                f"{np.mean(remark):.3f}",
            ]
        )
    headings = [
        "Class III sets of",
        "cases",
        "intersection empty",
        "lower bound false",
        "by at most",
        "lower bound exact",
        "upper bound above by (mean)",
        "upper bound exact",
        "Remark 4 below by (mean)",
    ]
    return table(headings, rows)


def printed_form() -> str:
    """Theorem 2 with and without the order, beside the exact value, for HAMMING Table I."""
    rows = []
    for budget in (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.29):
        rows.append(
            [
                f"{budget:g}",
                f"{min_local_dp([SIX], budget).upper:.6f}",
                f"{class_two_distortions([SIX], budget)[0]:.6f}",
                f"{class_two_distortions([SIX], budget, ordered=False)[0]:.6f}",
                f"{class_one_leakage(6, budget):.6f}",
                f"{min_information([SIX], budget).upper:.6f}",
            ]
        )
    headings = ["D", "exact", "(11), ordered", "(11), as printed", "k-RR", "information"]
    return table(headings, rows)


def main(limit: float = LIMIT) -> None:
    print(printed_form())
    print(theorem_three(30))


def write() -> None:
    replace_section(PAGE, "table one", printed_form())
    replace_section(PAGE, "theorem three", theorem_three(100))


if __name__ == "__main__":
    write()
