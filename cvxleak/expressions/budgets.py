"""Checks of budgets: numbers, or CVXPY expressions that keep the set convex."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import cvxpy as cp

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import real_number
from cvxleak.expressions.arguments import is_fixed, is_known, value

Budget = float | cp.Expression
"""A number, or a scalar CVXPY expression such as a `cp.Parameter`."""

LARGEST_LOG = 700.0
"""Largest budget of which the exponential is taken: e^700 is about the largest float."""


def ceiling(given: Budget, name: str, most: float = math.inf) -> Budget:
    """Return a budget, up to `most`, that bounds a convex expression from above."""
    return _budget(given, name, "concave", most)


def floor(given: Budget, name: str) -> Budget:
    """Return a budget that bounds a concave expression from below."""
    return _budget(given, name, "convex", math.inf)


def exponential(given: Budget, name: str, times: float = 1.0, most: float = math.inf) -> Budget:
    """Return min(e^(times budget), most), as a number or as a Parameter that follows the given one.

    Solvers fail at coefficients such as e^50, so builders stop where nothing is left to constrain.
    """
    if not isinstance(given, cp.Expression):
        log = times * real_number(given, name, 0.0, LARGEST_LOG / max(times, 1.0))
        return min(math.exp(log), most)
    _check_scalar(given, name)
    if not is_fixed(given):
        raise ValidationError(
            f"{name}: found variables; the set is not convex in it, so it must be a number or a "
            "Parameter"
        )
    if is_known(given):
        return exponential(value(given).item(), name, times, most)
    if given.value is not None:
        exponential(value(given).item(), name, times, most)
    # e^Parameter is not DPP, but a Parameter that is computed from it is.
    return cp.CallbackParam(partial(_follow, given, name, times, most))


def is_number(given: Budget, number: float) -> bool:
    """Whether the budget is this very number, and not an expression."""
    return not isinstance(given, cp.Expression) and given == number


def _budget(given: Budget, name: str, curvature: str, most: float) -> Budget:
    if not isinstance(given, cp.Expression):
        return real_number(given, name, 0.0, most, open_high=most == math.inf)
    _check_scalar(given, name)
    if is_fixed(given) and given.value is not None:  # a Parameter's may change, and the sign stays
        number = _budget(value(given).item(), name, curvature, most)
        if is_known(given):
            return number
    if not (given.is_concave() if curvature == "concave" else given.is_convex()):
        raise ValidationError(f"{name}: found an expression that is not {curvature}")
    return given


def _check_scalar(given: cp.Expression, name: str) -> None:
    if not given.is_scalar() or not given.is_real():
        raise ValidationError(
            f"{name}: expected a real scalar, found an expression of shape {given.shape}"
        )
    if given.is_nonpos() and not is_known(given):
        raise ValidationError(
            f"{name}: found an expression that is never positive; a budget must be non-negative"
        )


def _follow(source: cp.Expression, name: str, times: float, most: float) -> Any:
    if source.value is None:
        return None
    return exponential(value(source).item(), name, times, most)
