"""Reading a candidate that another method found."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, short
from cvxleak.core.value import Value
from cvxleak.model import Prior, as_prior
from cvxleak.model.prior import named_law

__all__ = [
    "candidate_array",
    "candidate_weights",
    "law_violations",
    "plain",
    "positive_part",
    "read_rows",
    "real_numbers",
]


def plain(value: Any) -> Any:
    """Return a copy of an array of any library as NumPy's; what has labels as it is.

    A mapping from labels to probabilities is a `Prior`; weights that are off go into an array.
    """
    if isinstance(value, Mapping):
        return named_law(value)
    if isinstance(value, Value) or hasattr(value, "iloc"):
        return value
    if hasattr(value, "detach"):  # PyTorch
        if str(value.dtype) == "torch.bfloat16":  # NumPy has no such numbers
            value = value.float()
        value = value.numpy(force=True)
    if np.ma.is_masked(value):
        raise ValidationError("candidate: found masked entries; every number is needed")
    if hasattr(value, "__array__"):
        return np.array(value)
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    return value


def candidate_array(candidate: ArrayLike, shapes: Collection[tuple[int, ...]]) -> Array:
    """Return a candidate as an array of one of some shapes.

    Raises
    ------
    ValidationError
        What is no array of numbers, or has another shape or numbers that are not finite.
    """
    found = real_numbers(candidate)
    if found.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in sorted(shapes))
        raise ValidationError(
            f"candidate: found shape {found.shape}; finite numbers of shape {allowed} are needed"
        )
    if not np.isfinite(found).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(found))[0])
        raise ValidationError(
            f"candidate: found {found[place]} at index {place}; every number must be finite"
        )
    return found


def candidate_weights(
    candidate: Prior | ArrayLike, size: int, labels: tuple[Hashable, ...] | None, one_per: str
) -> Array:
    """Return a candidate's weights in the order of `labels`; they need not be a distribution.

    A `Prior` or a Series is matched by its labels, anything else by position.

    Raises
    ------
    ValidationError
        Another number of weights than `size`, weights that are not finite, or none positive.
    """
    if isinstance(candidate, Prior):
        return as_prior(candidate, size, "candidate", labels).probabilities
    values: Any = candidate
    if hasattr(values, "reindex") and labels is not None and set(values.index) == set(labels):
        values = values.reindex(list(labels))
    weights = real_numbers(values)
    if weights.shape != (size,):
        raise ValidationError(
            f"candidate: found shape {weights.shape}; "
            f"{short(size)} finite weights are needed, one per {one_per}"
        )
    if not np.isfinite(weights).all():
        place = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValidationError(
            f"candidate: found {weights[place]} at index {place}; every weight must be finite"
        )
    if not weights.max() > 0:
        raise ValidationError("candidate: found no positive weight; at least one is needed")
    return weights


def real_numbers(candidate: Any) -> Array:
    """Return a candidate as an array of real numbers, of any shape."""
    try:
        if np.iscomplexobj(candidate):
            raise TypeError
        return np.asarray(candidate, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValidationError(
            f"candidate: expected an array of real numbers, found {short(candidate)}"
        ) from error


def law_violations(weights: Array) -> dict[str, float]:
    """Return how far weights are from being a distribution, by constraint."""
    return {
        "weights are non-negative": max(0.0, -float(weights.min())),
        "weights sum to 1": abs(float(weights.sum()) - 1.0),
    }


def positive_part(weights: Array) -> Array:
    """Return the positive part of the weights, divided by its sum."""
    positive = np.maximum(weights, 0.0)
    return positive / positive.sum()


def read_rows(rows: Array) -> tuple[Array, dict[str, float]]:
    """Return the positive part of a candidate's rows, each divided by its sum, and violations.

    The violations are how far the rows, as they were given, are from being distributions.

    Raises
    ------
    ValidationError
        A row without a positive entry.
    """
    positive = np.maximum(rows, 0.0)
    sums = positive.sum(axis=1, keepdims=True)
    if not (sums > 0).all():
        row = int(np.argmin(sums))
        raise ValidationError(f"candidate: row {row} has no positive entry; one is needed")
    violations = {
        "entries are non-negative": max(0.0, -float(rows.min())),
        "rows sum to 1": float(np.abs(rows.sum(axis=1) - 1).max()),
    }
    return positive / sums, violations
