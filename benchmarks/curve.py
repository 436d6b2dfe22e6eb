"""A curve of 50 floors against its hardest single point: what sharing work between floors saves.

`leakage_curve` over 50 floors from 0 to log|X|, and audits of single floors of the same mechanism,
to the same relative gap of 1e-4; the hardest of those is what the curve is measured by (every
`EVERY`-th floor that takes a search is tried). "sum" is what one audit for each of the 50 floors
would take, estimated from those. Seconds are of the processor. One record is audited; of the record
of three values also the worst record, which time sharing is enough for.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks._audit_cases import three_valued
from cvxleak.audit import RecordLeakage, leakage_curve
from cvxleak.mechanisms import generalized_symmetric, random_rounding, truncated_geometric
from cvxleak.model import Mechanism
from cvxleak.problem.bound import Status
from cvxleak.queries import count, modular_sum, pair_sum

LIMIT = 120.0
FLOORS = 50
EVERY = 3
THREE = "3 values, 4 contexts"
WORST = "3 values, 4 contexts, worst record"


def mechanisms() -> dict[str, Mechanism]:
    """Return what is drawn."""
    pairs = pair_sum(4)
    parities = {
        f"parity, n = {n}, flip 0.3033": Mechanism(
            modular_sum(n, 2), generalized_symmetric(2, 0.3033)
        )
        for n in (4, 5, 6)
    }
    return parities | {
        "sum mod 4, n = 6, flip 0.2": Mechanism(modular_sum(6, 4), generalized_symmetric(4, 0.2)),
        "sum mod 3, n = 6, flip 0.1": Mechanism(modular_sum(6, 3), generalized_symmetric(3, 0.1)),
        "rounding to 3, n = 4": Mechanism(count(4), random_rounding(4, 3)),
        "rounding to 3, n = 6": Mechanism(count(6), random_rounding(6, 3)),
        "geometric, n = 3, epsilon 1": Mechanism(count(3), truncated_geometric(3, 1.0)),
        "geometric, n = 5, epsilon 0.5": Mechanism(count(5), truncated_geometric(5, 0.5)),
        "pair sum, n = 4, flip 0.3": Mechanism(
            pairs, generalized_symmetric(len(pairs.values), 0.3).matrix
        ),
        THREE: three_valued(),
        WORST: three_valued(),
    }


def main(limit: float = LIMIT) -> None:
    console = Console()
    table = Table(title=f"curves of {FLOORS} floors, relative gap 1e-4", title_justify="left")
    for heading in ("", "curve s", "hardest s", "ratio", "sum s", "certified", "searched"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, mechanism in mechanisms().items():
        floors = np.linspace(0.0, mechanism.space.max_entropy, FLOORS)
        records = None if name == WORST else 0
        begin = time.process_time()
        curve = leakage_curve(mechanism, floors, records, time_limit=limit)
        seconds = time.process_time() - begin
        searched = [b for b, solved in zip(floors.tolist(), curve.solved, strict=True) if solved]
        singles = []
        for b in searched[::EVERY]:
            begin = time.process_time()
            RecordLeakage(mechanism, b, records).solve(time_limit=limit)
            singles.append(time.process_time() - begin)
        certified = sum(bound.status is Status.CERTIFIED for bound in curve.bounds)
        table.add_row(
            name,
            f"{seconds:.2f}",
            f"{max(singles):.3f}",
            f"{seconds / max(singles):.1f}",
            f"{float(np.mean(singles)) * len(searched):.1f}",
            f"{certified} of {FLOORS}",
            str(len(searched)),
        )
    console.print(table)
