"""Probabilities that floats cannot hold."""

from __future__ import annotations

import numpy as np

from cvxleak.core.validation import Array

__all__ = ["LEAST", "not_vanishing"]

LEAST = 1e-300
"""Smaller probabilities are stored as this one. A row's sum does not change by that."""


def not_vanishing(matrix: Array) -> Array:
    """Return a matrix without zeros for probabilities that are positive but too small for floats.

    A zero beside a positive number would be a level of differential privacy of infinity. This
    change never raises a level: max(a, t) / max(b, t) is at most max(a / b, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.mechanisms._vanishing import not_vanishing
    >>> not_vanishing(np.exp([[0.0, -800.0]]))
    array([[1.e+000, 1.e-300]])
    """
    return np.maximum(matrix, LEAST)
