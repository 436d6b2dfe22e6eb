"""Quantitative information flow: cvxleak against qif, measure by measure, in one run.

Both get the same channel, in floats, but for refinement, whose entries are fractions: cvxleak
decides it in rational numbers, and qif does either. Times are seconds of the processor, the least
of up to five runs, and "x ours" is qif's time over cvxleak's. qif takes arrays as they are, cvxleak
checks that each is a distribution. cvxleak's numbers of a fixed channel are floats as qif's are;
its refinement and gap have two proved bounds.

Not compared, because qif 1.6 has no such function: the deficiency, Le Cam's distance, the additive
Bayes capacity over priors, Rényi capacities, and whatever has an entropy floor.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks._pages import replace_section, table
from cvxleak import measures
from cvxleak.refinement import refinement_gap, refines

LIMIT = 20.0
SIZES = (8, 64, 512)
RATIONAL_SIZES = (4, 8, 16)

Run = Callable[[], Any]


class Pair(NamedTuple):
    """One measure of one case by both programs."""

    name: str
    size: int
    ours: Run
    theirs: Run


def dirichlet_case(n: int) -> tuple[Any, Any, Any]:
    """Return a prior, a channel and a gain matrix, all of n."""
    rng = np.random.default_rng(n)
    return rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), size=n), rng.random((n, n))


def sixteenths(n: int) -> tuple[Any, Any, Any]:
    """Return three channels of n inputs and n outputs with entries that are sixteenths."""
    drawn = np.random.default_rng(n).multinomial(16, np.ones(n) / n, size=(3, n))
    first, second, third = np.vectorize(lambda k: Fraction(int(k), 16), otypes=[object])(drawn)
    return first, second, third


def floats(n: int) -> list[Pair]:
    """Return the measures of a channel and a prior that both have."""
    import qif

    theirs = qif.measure
    prior, channel, gain = dirichlet_case(n)
    span, bounded = (
        (
            partial(measures.additive_gain_capacity, channel, prior, kind),
            partial(theirs.g_vuln.add_capacity, prior, channel, kind == "span"),
        )
        for kind in ("span", "bounded")
    )
    known = (prior, channel)
    runs: dict[str, tuple[Run, Run]] = {
        "posterior Bayes vulnerability": (
            partial(measures.posterior_bayes_vulnerability, channel, prior),
            partial(theirs.bayes_vuln.posterior, *known),
        ),
        "posterior g-vulnerability, n actions": (
            partial(measures.posterior_gain_vulnerability, channel, prior, gain),
            partial(theirs.g_vuln.posterior, gain, *known),
        ),
        "posterior guessing entropy": (
            partial(measures.posterior_guessing_entropy, channel, prior),
            partial(theirs.guessing.posterior, *known),
        ),
        "min-entropy leakage": (
            lambda: measures.min_entropy_leakage(channel, prior) / np.log(2),
            partial(theirs.bayes_vuln.min_entropy_leakage, *known),
        ),
        "multiplicative capacity": (
            partial(measures.multiplicative_bayes_capacity, channel),
            partial(theirs.bayes_vuln.mult_capacity, channel),
        ),
        "additive capacity, span": span,
        "additive capacity, bounded": bounded,
    }
    return [Pair(name, n, *pair) for name, pair in runs.items()]


def rationals(n: int) -> list[Pair]:
    """Return refinement and its gap for channels of sixteenths."""
    import qif

    first, kernel, other = sixteenths(n)
    made, prior = first @ kernel, np.full(n, Fraction(1, n), dtype=object)
    near = [table.astype(float) for table in (first, made, other, prior)]
    pairs = [
        ("it refines", lambda: bool(refines(first, made)), first, made, near[0], near[1]),
        ("it does not", lambda: bool(refines(first, other)), first, other, near[0], near[2]),
    ]
    found = [
        Pair(f"{name}: qif {kind}", n, ours, partial(qif.refinement.refined_by, *given))
        for name, ours, a, b, x, y in pairs
        for kind, given in (("exact", (a, b)), ("in floats", (x, y)))
    ]

    def gap() -> float:
        return float(refinement_gap(prior, first, other).upper)

    for kind, given in (("exact", (prior, first, other)), ("in floats", (near[3], *near[::2]))):
        found.append(Pair(f"refinement gap: qif {kind}", n, gap, partial(metric, *given)))
    return found


def metric(*given: Any) -> float:
    import qif

    return float(qif.refinement.add_metric(*given)[0])


def seconds(run: Run) -> tuple[float, float]:
    """Return the least time of a run, and its value."""
    times: list[float] = []
    value: Any = None
    while len(times) < 5 and sum(times) < 0.5:
        begin = time.process_time()
        value = run()
        times.append(time.process_time() - begin)
    return min(times), float(value)


def rows(pairs: list[Pair]) -> list[tuple[str, int, float, float, float]]:
    """Return name, size, cvxleak's seconds, qif's over these, and qif's value less cvxleak's."""
    found = []
    for pair in pairs:
        (mine, value), (time_of_it, other) = seconds(pair.ours), seconds(pair.theirs)
        found.append((pair.name, pair.size, mine, time_of_it / mine, other - value))
    return found


def main(limit: float) -> None:
    """Print the table and put it into the page; what took longer than `limit` ends a column."""
    console = Console()
    if importlib.util.find_spec("qif") is None:
        console.print("qif is not installed: pip install 'cvxleak[bench]'")
        return
    content = comparison(limit)
    replace_section("benchmarks.md", "qif", content)
    console.print(content, markup=False)


def comparison(
    limit: float,
    sizes: tuple[int, ...] = SIZES,
    rational_sizes: tuple[int, ...] = RATIONAL_SIZES,
) -> str:
    """Return a table for each kind of measures, in Markdown: a row each, a column for each size."""
    parts = []
    for chosen, make in ((sizes, floats), (rational_sizes, rationals)):
        cells: dict[str, list[str]] = {}
        largest: dict[str, float] = {}
        columns = []
        for n in chosen:
            begin = time.process_time()
            columns.append(f"n = {n}")
            for name, _, mine, ratio, off in rows(make(n)):
                cells.setdefault(name, []).append(f"{mine:.2g} s, {ratio:.2g}×")
                largest[name] = max(largest.get(name, 0.0), abs(off))
            if time.process_time() - begin > limit:
                break
        lines = [[name, *found, f"{largest[name]:.0e}"] for name, found in cells.items()]
        parts.append(table(["measure", *columns, "values differ by"], lines))
    return "\n\n".join(parts)
