"""Noisy real numbers, released as the nearest of finitely many outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, check_cells, in_order, real_number
from cvxleak.model import Channel

__all__ = ["nearest_output"]


def nearest_output(
    outputs: Iterable[float],
    inputs: Iterable[float] | None,
    mass: Callable[[Array, Array], Array],
) -> Channel:
    """Return the channel that adds noise to an input and releases the output nearest to the sum.

    ``mass(a, b)`` is the probability that the noise falls between a and b, elementwise for a < b
    that can be infinite.
    """
    ends = in_order(outputs, "outputs")
    starts = ends if inputs is None else in_order(inputs, "inputs")
    y, x = _finite(ends, "outputs"), _finite(starts, "inputs")
    if not np.all(np.diff(y) > 0):
        raise ValidationError(
            "outputs: found numbers that do not increase; strictly increasing numbers are needed"
        )
    check_cells(len(starts), len(ends), "outputs")
    edges = np.concatenate([[-math.inf], y[:-1] / 2 + y[1:] / 2, [math.inf]])
    return Channel(mass(edges[:-1] - x[:, None], edges[1:] - x[:, None]), starts, ends)


def _finite(numbers: tuple[float, ...], name: str) -> Array:
    if not numbers:
        raise ValidationError(f"{name}: found none; at least one number is needed")
    bounds = {"open_low": True, "open_high": True}
    return np.array([real_number(x, f"{name}[{i}]", **bounds) for i, x in enumerate(numbers)])
