"""Another program for what a whole table tells: privacy-loss distributions of dp_accounting.

A person who moves from one cell to another changes the two cells and the margins that hold one of
them, each by one. Every change is a pair of distributions; their privacy losses are composed, and
the worst move counts. The library knows neither tables nor which moves are alike, so the loops are
ours: composed losses are kept by the changes that they belong to.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from cvxleak.tables import RandomRounding, Table, TableRelease

BASE = 5
EPSILON = 0.5


def release(n: int) -> TableRelease:
    """Return an n by n table of counts below 30 with margins, each number rounded at random."""
    counts = np.random.default_rng(n).integers(0, 30, (n, n))
    table = Table({"row": range(n), "column": range(n)}, counts=counts)
    return TableRelease(table, RandomRounding(BASE))


def rounded(count: int) -> dict[int, float]:
    """Return the logarithms of the probabilities of the multiples of the base around a count."""
    down, rest = divmod(count, BASE)
    chances = {down * BASE: (BASE - rest) / BASE, (down + 1) * BASE: rest / BASE}
    return {value: math.log(chance) for value, chance in chances.items() if chance}


def with_dp_accounting(case: TableRelease, limit: float) -> float:
    """Return the largest delta at epsilon over all moves of one person, rounded up."""
    from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions

    table = case.table
    true, incidence = table.true, table.incidence
    loss: dict[tuple[int, int], Any] = {}
    worst: dict[frozenset[tuple[tuple[int, int], int]], float] = {}
    for a in np.flatnonzero(table.in_cells):
        for b in range(len(table.cells)):
            if a == b:
                continue
            steps = incidence[:, b].astype(int) - incidence[:, a].astype(int)
            changes = [(int(true[j]) % BASE, int(steps[j])) for j in np.flatnonzero(steps)]
            key = frozenset(Counter(changes).items())
            if key in worst:
                continue
            for residue, step in changes:
                if (residue, step) not in loss:
                    loss[residue, step] = from_two_probability_mass_functions(
                        rounded(residue + BASE), rounded(residue + BASE + step), symmetric=False
                    )
            composed = loss[changes[0]]
            for change in changes[1:]:
                composed = composed.compose(loss[change])
            worst[key] = composed.get_delta_for_epsilon(EPSILON)
    return max(worst.values())
