"""Kernels p(rhat | c, x) as whole numbers over `GRID`, exact for drawing and for summing.

Rounding to the grid costs a kernel about 1e-6 of its utility, and has two advantages. Probabilities
below half a step become zero, so that a copy is exactly a copy. And outcomes that are equal by
symmetry have exactly equal posteriors, so that their histories are merged.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from cvxleak.core.validation import Array
from cvxleak.desk.history import Vector
from cvxleak.kernel.numbers import dot, upper
from cvxleak.proofs.exact import normalized_rows, rational

__all__ = ["GRID", "Kernel", "copied", "draw", "expected_cost", "mixed", "on_grid"]

GRID = 1 << 20

Kernel = NDArray[np.int64]
"""Shape (classes, |X|, outputs); each row sums to GRID."""


def on_grid(rows: Array) -> Kernel:
    """Return probability vectors as multiples of 1 / GRID, by largest remainders.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.desk.kernels import GRID, on_grid
    >>> on_grid(np.array([[[1 / 3, 2 / 3]]])).tolist() == [[[349525, 699051]]], GRID
    (True, 1048576)
    """
    scaled = np.maximum(rows, 0.0)
    scaled = scaled / scaled.sum(axis=-1, keepdims=True) * GRID
    # What rounds to zero stays zero: a remainder must not raise it.
    kept = np.where(scaled < 0.5, 0.0, scaled)
    kept = kept / kept.sum(axis=-1, keepdims=True) * GRID
    whole = np.floor(kept)
    missing = (GRID - whole.sum(axis=-1, keepdims=True)).astype(np.int64)
    remainder = np.where(kept > 0, kept - whole, -1.0)
    # Remainders that are equal up to noise keep the order of the outputs.
    order = np.argsort(-np.round(remainder, 3), axis=-1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(rows.shape[-1])[None, None, :], axis=-1)
    return whole.astype(np.int64) + (rank < missing)


def copied(outputs: Sequence[int], shape: tuple[int, int, int]) -> Kernel:
    """Return the kernel that releases a given output for each class of histories."""
    kernel = np.zeros(shape, dtype=np.int64)
    for c, output in enumerate(outputs):
        kernel[c, :, output] = GRID
    return kernel


def mixed(kernel: Kernel, other: Kernel, share: float) -> Kernel:
    """Return the kernel that follows `other` with probability `share`, on the grid."""
    return on_grid(((1 - share) * kernel + share * other) / GRID)


def expected_cost(joint: Sequence[Vector], kernel: Kernel, cost: Sequence[Sequence[fmpq]]) -> float:
    """Return E d(R, Rhat), rounded up; `cost` holds E[d(R, rhat) | x] for each x and rhat."""
    total = fmpq(0)
    for mass, part in zip(joint, kernel.tolist(), strict=True):
        for p, row, costs in zip(mass, part, cost, strict=True):
            if p != 0:
                total += p * sum((w * d for w, d in zip(row, costs, strict=True) if w), fmpq(0))
    return upper(total / GRID)


def mean_cost(request: Array, distortion: Array) -> list[list[fmpq]]:
    """Return E[d(R, rhat) | x] exactly, for the rows of p(r|x)."""
    columns = [[rational(d) for d in column] for column in distortion.T.tolist()]
    laws = normalized_rows(request.tolist())
    return [[dot(law, column) for column in columns] for law in laws]


def draw(row: Sequence[int]) -> int:
    """Draw from a row of a kernel, with the system's secure source and whole numbers only."""
    return bisect_right(list(accumulate(row)), secrets.randbelow(GRID))
