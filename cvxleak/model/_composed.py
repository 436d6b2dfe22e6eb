"""Channels made of channels: in floats, or exactly where a part has numbers that no float is."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from cvxleak.core.numbers import Array, ExactFloat, carries, exact_array, fraction, integer_law
from cvxleak.core.validation import composed_rows

__all__ = ["cascade", "composed"]


def cascade(first: Array, second: Array) -> Array:
    """Return the rows of a channel followed by another."""
    if not (carries(first) or carries(second)):
        return composed_rows(first @ second)
    found = fmpq_mat(_laws(first).tolist()) * fmpq_mat(_laws(second).tolist())
    return _rows(np.array(found.table(), dtype=object))


def composed(
    first: Array, second: Array, combine: Callable[[Any, Any, Any], Any], share: float = 1.0
) -> Array:
    """Return the rows that `combine` makes of those of two channels, and of a chance."""
    if carries(first) or carries(second) or isinstance(share, ExactFloat):
        exact = fraction(share)
        return _rows(combine(_laws(first), _laws(second), fmpq(exact.numerator, exact.denominator)))
    return composed_rows(combine(first, second, share))


def _laws(matrix: Array) -> NDArray[np.object_]:
    """Return the probabilities that rows stand for."""
    laws = np.empty(matrix.shape, dtype=object)
    for x, row in enumerate(matrix):
        weights = integer_law(row)
        total = sum(weights)
        laws[x] = [fmpq(weight, total) for weight in weights]
    return laws


def _rows(laws: NDArray[np.object_]) -> Array:
    flat = [Fraction(int(q.p), int(q.q)) for q in laws.ravel().tolist()]
    numbers = np.empty(laws.shape, dtype=object)
    numbers.ravel()[:] = flat
    return exact_array(numbers)
