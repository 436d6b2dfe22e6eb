"""Merging outputs that say the same: proportional columns of a lumped problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvxleak.model import Lumped

__all__ = ["merge_outputs"]

PROPORTIONAL = 1e-13
"""Relative spread of the column ratio up to which two columns count as proportional.

What merging them can hide is at most twice this many nats; the certificate proves it."""


def merge_outputs(lumped: Lumped) -> tuple[Lumped, list[list[int]]]:
    """Return the problem with proportional columns merged, and the partition of the outputs.

    The rows are divided by their sums, as a certificate reads them.
    """
    columns = (lumped.rows / lumped.rows.sum(axis=1, keepdims=True)).T
    sums = columns.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        shapes = np.where(sums > 0, columns / sums, 0.0)
    partition: list[list[int]] = []
    for y, shape in enumerate(shapes):
        for group in partition:
            if np.allclose(shape, shapes[group[0]], rtol=PROPORTIONAL, atol=0.0):
                group.append(y)
                break
        else:
            partition.append([y])
    rows = np.stack([columns[group].sum(axis=0) for group in partition], axis=1)
    names = tuple(lumped.outputs[group[0]] for group in partition)
    return replace(lumped, rows=rows, outputs=names), partition
