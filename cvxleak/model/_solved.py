"""Repairing what a numerical solver returns.

No certificate leaves that open, so the checker does not load this module.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array, real_number


def repaired_rows(matrix: ArrayLike, tol: float) -> Array:
    """Return rows that are clipped, emptied where no row has more than `tol`, and normalized."""
    if matrix is None:
        raise ValidationError(
            "matrix: found None; the solver found no point (see its status): solve again with "
            "other options, another solver or looser constraints"
        )
    if hasattr(matrix, "is_dcp"):
        raise ValidationError("matrix: found a CVXPY expression; its `value` is needed")
    rows = frozen_array(matrix, "matrix", 2)
    if not rows.size:
        raise ValidationError(f"matrix: found shape {rows.shape}; it must not be empty")
    # Below 1 / (2 m), so that every row keeps an output.
    off = real_number(tol, "tol", 0.0, 0.5 / rows.shape[1], open_low=True, open_high=True)
    sums = rows.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1)))
    if rows.min() < -off or not abs(sums[worst] - 1) <= off * rows.shape[1]:
        raise ValidationError(
            f"matrix: found a least entry of {rows.min():.3g} and a sum of row {worst} of "
            f"{sums[worst]:.9g}; entries from -{off:g} on and sums within {off:g} per entry of "
            "1 are rounding (`tol`), and what is further off is no channel"
        )
    used = np.where(rows.max(axis=0) > off, np.maximum(rows, 0.0), 0.0)
    return used / used.sum(axis=1, keepdims=True)
