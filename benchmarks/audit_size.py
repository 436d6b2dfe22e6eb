"""The audit at size: thousands of records, many outputs, much noise, and a plain matrix.

Every row has a target: a relative gap, to be reached within a number of seconds. Seconds are of the
processor, all that the audit does in one thread, its proof included; the limit is of the clock, and
where it ends the search the bracket that was reached is printed all the same. "verify" is how long
the independent check of the certificate takes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from cvxleak.audit import RecordLeakage
from cvxleak.mechanisms import generalized_symmetric, random_rounding, truncated_geometric
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.proofs import verify
from cvxleak.queries import count, modular_sum

LIMIT = 120.0


@dataclass(frozen=True)
class Row:
    name: str
    mechanism: Mechanism
    floor: float
    gap: float
    """Relative gap to reach."""
    seconds: float
    """How long that may take."""


def _modular(n: int, m: int) -> Mechanism:
    return Mechanism(modular_sum(n, m), generalized_symmetric(m, 0.2))


def _geometric(n: int, epsilon: float) -> Mechanism:
    return Mechanism(count(n), truncated_geometric(n, epsilon))


def _plain() -> Mechanism:
    rows = np.random.default_rng(12).dirichlet(np.ones(16), size=4096)
    return Mechanism.from_channel(RecordSpace.binary(12), rows)


def rows() -> list[Row]:
    """Return what is audited."""
    n = 10_000
    found = [
        Row(f"{name}, n = {n:,}, b = log|X| - {short:g}", _modular(n, m), floor, 1e-6, 2.0)
        for name, m in (("parity", 2), ("sum mod 4", 4))
        for short in (5.0, 0.5)
        for floor in [n * math.log(2) - short]
    ]
    rounded = Mechanism(count(20), random_rounding(20, 3))
    found += [
        Row(f"rounding to 3, n = 20, b = {b:g}", rounded, b, 1e-4, 2.0)
        for b in (6.0, 12.0, 13.0, 13.5, 13.8)
    ]
    found += [
        Row(f"geometric, n = {n}, epsilon {epsilon:g}, b = {b:g}", _geometric(n, epsilon), b, *goal)
        for n, epsilon, b, goal in [
            (10, 1.0, 5.0, (1e-4, 10.0)),
            (30, 1.0, 15.0, (1e-2, 3.0)),
            (30, 1.0, 19.0, (1e-2, 3.0)),
            (30, 0.1, 15.0, (2e-2, 60.0)),
            (100, 1.0, 50.0, (5e-2, 60.0)),
            (100, 0.1, 50.0, (5e-2, 60.0)),
        ]
    ]
    # As sharp as it gets in the time: no gap is asked for.
    found.append(Row("plain 4096 x 16, b = 6", _plain(), 6.0, 0.0, 120.0))
    return found


def main(limit: float = LIMIT) -> None:
    console = Console()
    table = Table(title="audits at size", title_justify="left")
    for heading in ("", "bracket", "gap", "seconds", "verify", "target", ""):
        table.add_column(heading, justify="right" if heading in {"seconds", "verify"} else "left")
    failures = []
    for row in rows():
        begin = time.process_time()
        problem = RecordLeakage(row.mechanism, row.floor, 0)
        bound = problem.solve(tol=row.gap, time_limit=min(limit, 2 * row.seconds))
        seconds = time.process_time() - begin
        assert bound.certificate is not None
        begin = time.process_time()
        if not verify(bound.certificate).passed:
            failures.append(f"{row.name}: the certificate does not verify")
        checking = time.process_time() - begin
        gap = bound.gap / bound.upper
        met = gap <= row.gap and seconds <= row.seconds
        target = f"{row.gap:g} in {row.seconds:g} s" if row.gap else f"{row.seconds:g} s"
        table.add_row(
            row.name,
            f"{bound.lower:.6f} to {bound.upper:.6f}",
            f"{gap:.2g}",
            f"{seconds:.2f}",
            f"{checking:.2f}",
            target,
            "" if not row.gap else "met" if met else "missed",
        )
    console.print(table)
    if failures:
        raise SystemExit("\n".join(failures))
