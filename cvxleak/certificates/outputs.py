"""The rows of a lumped problem as balls: by value, and with outputs merged at a proved price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb

from cvxleak.certificates import balls
from cvxleak.errors import CertificateError
from cvxleak.model import Lumped

__all__ = ["Ball", "Matrix", "merged_rows", "rows_by_value"]

Ball = Any
Matrix = list[list[Ball]]


def rows_by_value(lumped: Lumped, rows: Matrix) -> list[Matrix]:
    """Return one list of rows for each value of A."""
    parts: list[Matrix] = [[] for _ in lumped.values]
    for a, row in zip(lumped.value_index, rows, strict=True):
        parts[int(a)].append(row)
    return parts


def merged_rows(lumped: Lumped, outputs: Sequence[Sequence[int]]) -> tuple[Matrix, Ball]:
    """Return the rows with outputs merged, and an upper bound on what the merging can hide."""
    members = [[int(y) for y in group] for group in outputs]
    if sorted(y for group in members for y in group) != list(range(lumped.rows.shape[1])):
        raise CertificateError("the merged outputs are not a partition")
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
