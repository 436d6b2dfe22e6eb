"""Values of further variables that meet half-spaces exactly, from values that nearly do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray
from scipy.linalg import qr

from cvxleak.proofs.bounds.source_sets import exact_numbers
from cvxleak.proofs.bounds.user_rows import BALANCED, OwnRow, surplus
from cvxleak.proofs.exact import rational

__all__ = ["exactly_met"]


def exactly_met(
    stored: Sequence[OwnRow], channel: Sequence[Sequence[fmpq]], values: Sequence[float]
) -> list[float | str] | None:
    """Return values near the given ones that meet the equations, and rows that were missed.

    The latter are turned into equations, until none is missed any more. What is moved comes out of
    linear equations in rational numbers, and is written as fractions. None if more than `BALANCED`
    values had to be moved, or where the equations have no solution.

    Examples
    --------
    >>> from flint import fmpq
    >>> from cvxleak.proofs.bounds.user_rows import read_own
    >>> from cvxleak.design.exact_values import exactly_met
    >>> third = {"entries": [], "further": [[0, 3.0]], "at_least": 1.0, "equal": True}
    >>> exactly_met(read_own([third], 1, 1), [[fmpq(1)]], [0.33333])
    ['1/3']
    """
    start = exact_numbers(list(values), "further", len(values))
    bound = [row for row in stored if row.further]
    kept = [i for i, row in enumerate(bound) if row.equal]
    while True:
        moves = _moves(bound, kept, channel, start)
        if moves is None:
            return None
        found = [z + moves.get(j, 0) for j, z in enumerate(start)]
        news = []
        for i, row in enumerate(bound):
            left, room = surplus(row, channel, found)
            if i not in kept and -left > room:
                news.append(i)
        if not news:
            return [str(found[j]) if j in moves else v for j, v in enumerate(values)]
        kept += news


def _moves(
    rows: Sequence[OwnRow],
    kept: Sequence[int],
    channel: Sequence[Sequence[fmpq]],
    values: Sequence[fmpq],
) -> dict[int, fmpq] | None:
    """Return by how much to move some values for the kept rows to hold as equations."""
    if not kept:
        return {}
    matrix = np.zeros((len(kept), len(values)))
    for place, i in enumerate(kept):
        for j, b in rows[i].further:
            matrix[place, j] += b
    chosen = [kept[place] for place in _independent(matrix.T)]
    columns = _independent(matrix)
    if len(chosen) > BALANCED or len(columns) != len(chosen):
        return None
    size, places = len(chosen), {j: place for place, j in enumerate(columns)}
    left, right = fmpq_mat(size, size), fmpq_mat(size, 1)
    for line, i in enumerate(chosen):
        right[line, 0] = -surplus(rows[i], channel, values)[0]
        for j, b in rows[i].further:
            if j in places:
                left[line, places[j]] += rational(b)
    try:
        found = left.solve(right)
    except ZeroDivisionError:
        return None
    return {j: found[place, 0] for j, place in places.items() if found[place, 0] != 0}


def _independent(matrix: NDArray[np.float64]) -> list[int]:
    """Return the numbers of columns that are linearly independent, as many as there are."""
    triangle, order = cast(tuple[Any, Any], qr(matrix, mode="r", pivoting=True))
    size = np.abs(np.diag(triangle))
    return order[: int((size > 1e-10 * size[0]).sum())].tolist()
