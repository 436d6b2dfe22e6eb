"""The PML envelope: cvxleak against the same linear program in CVXPY with HiGHS.

The peer states the program once, with e^epsilon as a parameter, and finds the largest level to 1e-9
nats by bisection, or by Newton's method on its dual values with bisection as a safeguard. A single
solution at the final level is timed too. CPU time of one process, so that other programs on the
machine count little; cvxleak's times include the certificate.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from cvxleak.envelope import envelope_curve, failure_probability, pml_envelope, release_types
from cvxleak.measures import event_envelope, max_information
from cvxleak.proofs import verify

Array = NDArray[np.float64]

DELTA = 0.1

LIMIT = 60.0
"""Seconds; with less than 30 the largest channel is left out."""


def channel(n: int) -> tuple[Array, Array]:
    return np.full(n, 1 / n), np.random.default_rng(4).dirichlet(np.ones(n), size=n)


def timed(function: Callable[[], Any], repeat: int = 1) -> tuple[Any, float]:
    """Return a result and the least CPU time of some runs."""
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        result = function()
        times.append(time.process_time() - begin)
    return result, min(times)


class Peer:
    """The program of one prior and channel, compiled once."""

    def __init__(self, prior: Array, rows: Array, solver: str = "HIGHS") -> None:
        self.solver = solver
        self.output = prior @ rows
        self.level = cp.Parameter(nonneg=True)
        self.weights = cp.Variable(rows.shape, nonneg=True)
        mass = cp.multiply(self.weights, self.output[None, :])
        gain = cp.sum(cp.multiply(self.weights, rows), axis=1)
        self.symbols = gain - self.level * cp.sum(mass, axis=1) >= 0
        self.problem = cp.Problem(
            cp.Maximize(cp.sum(mass)), [cp.sum(self.weights, axis=0) <= 1, self.symbols]
        )
        self.solutions = 0

    def value(self, level: float) -> tuple[float, float]:
        """Return the value at a level, and its slope there."""
        self.level.value = level
        self.problem.solve(solver=self.solver)
        self.solutions += 1
        masses = self.weights.value @ self.output
        slope = -float(np.abs(self.symbols.dual_value) @ masses)
        return float(self.problem.value), slope

    def envelope(self, delta: float, top: float, *, newton: bool) -> float:
        """Return eps_c(delta) to 1e-9 nats."""
        low, high = 1.0, top
        level, slow = (low + high) / 2, 0
        while high > low * (1 + 1e-9):
            value, slope = self.value(level)
            width = high - low
            low, high = (level, high) if value >= delta else (low, level)
            slow = slow + 1 if high - low > width / 2 else 0
            # Aim just past the root, so that the bracket closes from the other side.
            aim = level + (delta - value) / slope if newton and slope else math.nan
            aim += math.copysign(3e-10 * level, value - delta)
            level = aim if low < aim < high and slow < 3 else (low + high) / 2
        return math.log((low + high) / 2)


def compare(n: int, console: Console, *, peer_envelope: bool) -> None:
    prior, rows = channel(n)
    pml_envelope(prior[:2] * n / 2, np.eye(2), 0.5)  # importing is nobody's running time
    ours, seconds = timed(lambda: pml_envelope(prior, rows, DELTA), 5)
    _, checking = timed(lambda: verify(ours.certificate))
    probability, one = timed(lambda: failure_probability(prior, rows, ours.upper, strict=False), 5)
    table = Table(title=f"{n} x {n}, delta {DELTA}", title_justify="left")
    for heading in ("", "CPU seconds", "x ours", "result"):
        table.add_column(heading, justify="left" if heading == "" else "right")

    def row(name: str, took: float, reference: float, result: str) -> None:
        table.add_row(name, f"{took:.4f}", f"{took / reference:.1f}", result)

    row("envelope, cvxleak", seconds, seconds, f"{ours.lower:.10f} (gap {ours.gap:.0e})")
    row("its certificate, checked", checking, seconds, "")
    peer, compiling = timed(lambda: Peer(prior, rows))
    if peer_envelope:
        top = float(np.exp(max_information(rows, prior)))
        for name, newton in (("bisection", False), ("Newton", True)):
            peer.solutions = 0
            found, took = timed(lambda newton=newton: peer.envelope(DELTA, top, newton=newton))
            result = f"{found:.10f} ({peer.solutions} programs)"
            row(f"envelope, CVXPY and HiGHS, {name}", took + compiling, seconds, result)
        curve, took = timed(lambda: envelope_curve(prior, rows))
        result = f"gap {curve.gap:.0e}, {len(curve.levels)} nodes"
        row("whole curve, cvxleak", took, seconds, result)
    row("one probability, cvxleak", one, one, f"{probability.lower:.10f}")
    (value, _), took = timed(lambda: peer.value(float(np.exp(ours.upper))), 5)
    row("one probability, CVXPY and HiGHS", took + compiling, one, f"{value:.10f}")
    console.print(table)


def main(limit: float) -> None:
    console = Console()
    compare(100, console, peer_envelope=True)
    if limit >= 30:
        prior, rows = channel(1000)
        ours, seconds = timed(lambda: pml_envelope(prior, rows, DELTA))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        console.print(
            f"1000 x 1000: {seconds:.2f} s, {memory:.2f} GiB at most in this process, "
            f"{ours.lower:.10f} (gap {ours.gap:.0e})"
        )
        _, seconds = timed(lambda: event_envelope(rows, prior, np.linspace(0.001, 1, 1000)))
        console.print(f"event envelope, 1000 x 1000 at 1000 deltas: {seconds:.2f} s")
    # Ten thousand types: 20 releases of a mechanism with 5 outputs.
    _, rows = np.full(4, 0.25), np.random.default_rng(1).dirichlet(np.ones(5), size=4)
    types = release_types(rows, 20)
    ours, seconds = timed(lambda: pml_envelope([0.25] * 4, types, DELTA))
    console.print(
        f"20 releases, {types.shape[1]} types: {seconds:.2f} s, {ours.lower:.10f} "
        f"(gap {ours.gap:.0e})"
    )
