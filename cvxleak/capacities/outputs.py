"""Merging equivalent outputs: proportional columns of a lumped problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cvxleak.core.validation import Array
from cvxleak.model import Lumped

__all__ = ["merge_outputs", "merged_as", "merged_columns", "proportional_columns"]

PROPORTIONAL = 1e-13
"""Relative spread of the column ratio up to which two columns count as proportional.

What merging them can hide is at most twice this many nats; the certificate proves it."""

NEIGHBORS = 1e-10
"""Relative difference of two ratios up to which rounding may be all that tells them apart."""


def merge_outputs(lumped: Lumped) -> tuple[Lumped, list[list[int]]]:
    """Return the problem with proportional columns merged, and the partition of the outputs.

    The rows are divided by their sums, as a certificate reads them.
    """
    partition = proportional_columns(lumped.rows / lumped.rows.sum(axis=1, keepdims=True))
    return merged_as(lumped, partition), partition


def proportional_columns(rows: Array) -> list[list[int]]:
    """Return the partition of the columns into proportional ones; zeros are one part."""
    # Proportional columns have the same ratio of two weighted sums: only neighbors are compared.
    weights = np.random.default_rng(0).uniform(1.0, 2.0, (2, len(rows)))
    one, other = weights @ rows
    used = np.flatnonzero(one > 0)
    ratio = other[used] / one[used]
    order = np.argsort(ratio)
    used, ratio = used[order], ratio[order]
    joined = np.diff(ratio) <= NEIGHBORS * ratio[:-1]
    if not joined.any() and used.size == rows.shape[1]:
        return [[place] for place in range(used.size)]
    first = np.flatnonzero(joined)
    shapes = (
        rows[:, used[first]] / one[used[first]],
        rows[:, used[first + 1]] / one[used[first + 1]],
    )
    joined[first] = (np.abs(shapes[1] - shapes[0]) <= PROPORTIONAL * shapes[0]).all(axis=0)
    parts = np.split(used, np.flatnonzero(~joined) + 1)
    parts.append(np.setdiff1d(np.arange(rows.shape[1]), used))
    return sorted(sorted(part.tolist()) for part in parts if len(part))


def merged_as(lumped: Lumped, partition: Sequence[Sequence[int]]) -> Lumped:
    """Return the problem with the outputs of each part merged."""
    sums = lumped.rows.sum(axis=1, keepdims=True)
    rows = merged_columns(lumped.rows, partition)
    if rows is lumped.rows and (sums == 1).all():
        return lumped
    names = tuple(lumped.outputs[part[0]] for part in partition)
    return replace(lumped, rows=rows / sums, outputs=names)


def merged_columns(rows: Array, partition: Sequence[Sequence[int]]) -> Array:
    """Return the rows with the columns of each part added up; the rows if there is nothing to do.

    Where no columns are merged the parts have to be in order.
    """
    if len(partition) == rows.shape[1]:
        return rows
    order = np.concatenate([np.asarray(part, dtype=np.intp) for part in partition])
    first = np.cumsum([0, *(len(part) for part in partition[:-1])])
    return np.add.reduceat(rows[:, order], first, axis=1)
