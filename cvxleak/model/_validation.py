"""Checks that every model object and every function runs on its arguments."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.errors import ValidationError

ROW_SUM_TOLERANCE = 1e-9
"""Absolute tolerance on the sum of a probability vector."""

Array = NDArray[np.float64]


def frozen_array(values: ArrayLike, name: str, ndim: int) -> Array:
    """Return a read-only float copy of `values` with `ndim` dimensions and no NaN."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValidationError(f"{name}: expected an array of numbers, found {values!r}") from error
    if array.ndim != ndim:
        raise ValidationError(
            f"{name}: expected {ndim} dimension(s), found shape {array.shape}"
        )
    if np.isnan(array).any():
        where = tuple(int(i) for i in np.argwhere(np.isnan(array))[0])
        raise ValidationError(f"{name}: found NaN at index {where}; every entry must be a number")
    array.setflags(write=False)
    return array


def probability_rows(values: ArrayLike, name: str, ndim: int) -> Array:
    """Return a read-only array whose last axis holds probability vectors, or say what is wrong."""
    array = frozen_array(values, name, ndim)
    if array.size == 0:
        raise ValidationError(f"{name}: found shape {array.shape}; it must not be empty")
    if not np.isfinite(array).all():
        raise ValidationError(f"{name}: found an infinite entry; probabilities are in [0, 1]")
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise ValidationError(
            f"{name}: found {array[where]!r} at index {where}; probabilities are in [0, 1]"
        )
    sums = np.atleast_1d(array.sum(axis=-1))
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE:
        row = f" row {worst}" if ndim > 1 else ""
        raise ValidationError(
            f"{name}:{row} sums to {sums[worst]!r}; "
            f"probabilities must sum to 1 within {ROW_SUM_TOLERANCE}"
        )
    return array


def label_tuple(labels: Iterable[Hashable] | None, size: int, name: str) -> tuple[Hashable, ...]:
    """Return `labels` as a tuple of `size` distinct hashables; None gives 0, 1, ..., size - 1."""
    if labels is None:
        return tuple(range(size))
    result = tuple(_plain(label) for label in labels)
    if len(result) != size:
        raise ValidationError(f"{name}: found {len(result)} labels; {size} are needed")
    seen: set[Hashable] = set()
    for label in result:
        try:
            duplicate = label in seen
        except TypeError as error:
            raise ValidationError(f"{name}: label {label!r} is not hashable") from error
        if duplicate:
            raise ValidationError(f"{name}: label {label!r} appears twice; labels must be distinct")
        seen.add(label)
    return result


def _plain(label: Any) -> Any:
    """Turn NumPy scalars and lists into the plain Python values that survive JSON."""
    if isinstance(label, np.generic):
        return label.item()
    if isinstance(label, (list, tuple)):
        return tuple(_plain(part) for part in label)
    return label


def real_number(
    value: Any,
    name: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `value` as a float in the interval from `low` to `high`, or say what is wrong."""
    interval = f"{'(' if open_low or low == -math.inf else '['}{low:g}, {high:g}" + (
        ")" if open_high or high == math.inf else "]"
    )
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, np.number)):
        raise ValidationError(f"{name}: expected a number in {interval}, found {value!r}")
    number = float(value)
    below = number <= low if open_low else number < low
    above = number >= high if open_high else number > high
    if math.isnan(number) or below or above:
        raise ValidationError(f"{name}: found {value!r}; it must be in {interval}")
    return number


def whole_number(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Return `value` as an int between `low` and `high` (inclusive), or say what is wrong."""
    allowed = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, (numbers.Integral, np.integer)):
        raise ValidationError(f"{name}: expected {allowed}, found {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValidationError(f"{name}: found {number}; it must be {allowed}")
    return number
