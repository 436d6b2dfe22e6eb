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
    shapes = np.divide(columns, sums, out=np.zeros_like(columns), where=sums > 0)
    # Proportional columns have the same weighted sum, so they stand next to each other.
    keys = shapes @ np.random.default_rng(0).uniform(1.0, 2.0, shapes.shape[1])
    groups: list[list[int]] = []
    for y in np.argsort(keys, kind="stable").tolist():
        first = groups[-1][0] if groups else y
        if groups and np.allclose(shapes[y], shapes[first], rtol=PROPORTIONAL, atol=0.0):
            groups[-1].append(y)
        else:
            groups.append([y])
    partition = sorted(sorted(group) for group in groups)
    rows = np.stack([columns[group].sum(axis=0) for group in partition], axis=1)
    names = tuple(lumped.outputs[group[0]] for group in partition)
    return replace(lumped, rows=rows, outputs=names), partition
