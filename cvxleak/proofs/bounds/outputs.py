"""The rows of a lumped problem: by value, and with merged outputs and a bound on what is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.core.validation import Array
from cvxleak.exact import balls, reading
from cvxleak.exact.outward import UNIT_ROUNDOFF
from cvxleak.model import Lumped

__all__ = [
    "Ball",
    "Matrix",
    "capacity_above",
    "coarse_rows",
    "merged_floats",
    "merged_rows",
    "rows_by_value",
]

Ball = Any
Matrix = list[list[Ball]]


def rows_by_value(lumped: Lumped, rows: Matrix) -> list[Matrix]:
    """Return one list of rows for each value of A."""
    parts: list[Matrix] = [[] for _ in lumped.values]
    for a, row in zip(lumped.value_index, rows, strict=True):
        parts[int(a)].append(row)
    return parts


def capacity_above(rows: Matrix, entropies: Sequence[Ball], weights: Any) -> Ball:
    """Return max_a D(row_a || sum_a pi_a row_a), which is at least the capacity of the rows."""
    pi = balls.normalized(weights)
    logs = balls.logarithms([balls.dot(pi, column) for column in zip(*rows, strict=True)])
    most = balls.largest(
        balls.cross_entropy(row, logs) - entropy
        for row, entropy in zip(rows, entropies, strict=True)
    )
    if not most.is_finite():
        raise CertificateError("an input distribution gives probability 0 to an output of its rows")
    return most


def coarse_rows(lumped: Lumped, outputs: Any, output: Sequence[float]) -> tuple[Matrix, list[Ball]]:
    """Return the rows with outputs merged, and for each an upper bound on what the merging hides.

    The bound is D(R || t) - D(R' || t') for the distribution t = `output`, with R' and t' merged.
    Its mean under the adversary is at least I(X;Y|Y'), for any distribution t.
    """
    members = _partition(lumped, outputs)
    t = balls.normalized(output)
    if len(t) != lumped.rows.shape[1]:
        raise CertificateError("the output distribution does not fit the lumped problem")
    merged: Matrix = []
    prices: list[Ball] = []
    for entries in lumped.rows:
        row = balls.normalized(entries)
        sums, price = [], arb(0)
        for group in members:
            total, mass = arb(0), arb(0)
            for y in group:
                total += row[y]
                mass += t[y]
            sums.append(total)
            for y in group if len(group) > 1 else ():
                if not row[y] == 0:
                    if not t[y] > 0:
                        raise CertificateError(
                            "the output distribution gives probability 0 to an output that can "
                            "occur"
                        )
                    price += row[y] * (row[y] * mass / (total * t[y])).log()
        merged.append(sums)
        prices.append(price)
    return merged, prices


def _partition(lumped: Lumped, outputs: Any) -> list[list[int]]:
    members = reading.groups(outputs, "the merged outputs")
    if sorted(y for group in members for y in group) != list(range(lumped.rows.shape[1])):
        raise CertificateError("the merged outputs are not a partition")
    return members


def merged_rows(lumped: Lumped, outputs: Any) -> tuple[Matrix, Ball]:
    """Return the rows with outputs merged, and an upper bound on what the merging hides."""
    members = _partition(lumped, outputs)
    rows = [balls.normalized(row) for row in lumped.rows]
    slack = arb(0)
    merged: Matrix = [[] for _ in rows]
    for group in members:
        sums = [sum((row[y] for y in group), arb(0)) for row in rows]
        for into, total in zip(merged, sums, strict=True):
            into.append(total)
        if len(group) > 1:
            for y in group:
                shares = [
                    row[y] / total for row, total in zip(rows, sums, strict=True) if total > 0
                ]
                if not shares or all(share == 0 for share in shares):
                    continue
                most, least = shares[0], shares[0]
                for share in shares[1:]:
                    most, least = most.max(share), least.min(share)
                if not least > 0:
                    raise CertificateError(f"merged outputs {group} are not proportional")
                slack = slack.max((most / least).log())
    return merged, slack


def merged_floats(lumped: Lumped, outputs: Any) -> tuple[Array, Ball]:
    """Return the same as `merged_rows`, with rows in floats that are off by (|Y| + 4) u each.

    Shares of k merged outputs are off by (k + 4) u of themselves.
    """
    members = _partition(lumped, outputs)
    rows = np.asarray(lumped.rows, dtype=float)
    merged, slack = rows[:, [group[0] for group in members]], arb(0)
    for place, group in enumerate(members):
        if len(group) == 1:
            continue
        merged[:, place] = rows[:, group].sum(axis=1)
        used = merged[:, place] > 0
        for y in group:
            shares = rows[used, y] / merged[used, place]
            if not shares.any():
                continue
            most, least = float(shares.max()), float(shares.min())
            if not least > 0:
                raise CertificateError(f"merged outputs {group} are not proportional")
            doubt = 1 + 4 * (len(group) + 4) * arb(UNIT_ROUNDOFF)
            slack = slack.max((arb(most) / arb(least) * doubt).log())
    return merged / rows.sum(axis=1, keepdims=True), slack
