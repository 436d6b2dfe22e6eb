"""Audits where outputs are many: additive noise with a real output, and weak geometric noise.

Of real outputs the gap holds what the place of an output within its cell can tell. Beside it the
upper end of the clamped and rounded output, which people audit for want of another: where it is
below the lower end of the real output, it is wrong as a bound of that. Seconds are of the
processor, proof and certificate included.
"""

from __future__ import annotations

import math
import time

from rich.console import Console
from rich.table import Table

from cvxleak import Mechanism, record_leakage
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import AdditiveNoise, Gaussian, Laplace
from cvxleak.queries import count

CASES = [
    (3, Gaussian(1), 1.4, 1e-3),
    (5, Gaussian(2), 3.0, 1e-3),
    (8, Gaussian(2), 5.0, 1e-3),
    (8, Laplace(2), 5.0, 1e-3),
    (30, Gaussian(4), 0.9 * 30 * math.log(2), 1e-3),
    (30, truncated_geometric(30, 0.1), 15.0, 1e-4),
]
"""People, noise, entropy floor in nats, relative gap."""

LIMIT = 60.0


def main() -> None:
    """Print a line for each case."""
    table = Table(title=f"record leakage, in nats; at most {LIMIT:g} s")
    for head in ("count of", "noise", "floor", "lower", "upper", "gap", "cells", "seconds", "grid"):
        table.add_column(head, justify="right")
    for people, noise, floor, tol in CASES:
        start = time.process_time()
        bound = record_leakage(Mechanism(count(people), noise), floor, tol=tol, time_limit=LIMIT)
        seconds = time.process_time() - start
        grid, name = "", "geometric 0.1"
        if isinstance(noise, AdditiveNoise):
            name = repr(noise)
            channel = noise.channel(range(people + 1), [k + 0.5 for k in range(people)])
            clamped = Mechanism(count(people), channel)
            grid = f"{record_leakage(clamped, floor, tol=tol, time_limit=LIMIT).upper:.5f}"
        table.add_row(
            str(people),
            name,
            f"{floor:.3f}",
            f"{bound.lower:.5f}",
            f"{bound.upper:.5f}",
            f"{bound.upper / bound.lower - 1:.1e}",
            str(bound.stats.get("cells", "")),
            f"{seconds:.1f}",
            grid,
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
