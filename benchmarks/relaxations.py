"""The convex relaxations of the audit: how far above the leakage they are.

``python -m benchmarks relaxations`` prints the comparison; ``python -m benchmarks.relaxations``
writes it into docs/relaxations.md. The bounds are `Relaxation.upper`, not what a solver calls the
value. Seconds are of the processor, with building and compiling, for the finest slabs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from benchmarks._audit_cases import CASES, Case
from benchmarks._pages import replace_section, table
from cvxleak.audit import RecordLeakage
from cvxleak.relaxations.audit import (
    DatasetCapacityRelaxation,
    PosteriorCellRelaxation,
    TimeSharingRelaxation,
)

LIMIT = 60.0
PIECES = (4, 16, 64)


def comparison(cases: Sequence[Case], limit: float) -> str:
    headings = ["record 0", "leakage", "root cells", "capacity"]
    headings += [f"{pieces} slabs" for pieces in PIECES] + ["seconds"]
    rows = []
    for case in cases:
        leakage = RecordLeakage(case.mechanism, case.floor, 0).solve(time_limit=limit)
        uppers = [
            PosteriorCellRelaxation(case.lumped, case.floor).solve(),
            DatasetCapacityRelaxation(case.lumped, case.floor).solve(),
        ]
        seconds = 0.0
        for pieces in PIECES:
            begin = time.process_time()
            uppers.append(TimeSharingRelaxation(case.lumped, case.floor, pieces).solve())
            seconds = time.process_time() - begin
        cells = [f"{math.ceil(upper * 1e4) / 1e4:.4f}" for upper in uppers]
        rows.append([case.name, f"{leakage.lower:.4f}", *cells, f"{seconds:.2f}"])
    return table(headings, rows)


def main(limit: float = LIMIT) -> None:
    print(comparison(CASES, limit))


if __name__ == "__main__":
    replace_section("relaxations.md", "comparison", comparison(CASES, LIMIT))
