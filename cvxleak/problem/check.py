"""`Check`: feasibility and value of a candidate that another method found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from cvxleak.core.validation import instance, number_map, number_or_nan, real_number
from cvxleak.problem.bound import Bound

__all__ = ["FEASIBILITY_TOLERANCE", "Check", "feasibility_tolerance"]

FEASIBILITY_TOLERANCE = 1e-9
"""A constraint that is violated by at most this much counts as met."""


@dataclass(frozen=True)
class Check:
    """A candidate's feasibility and value, and the proved bounds on the optimum.

    Parameters
    ----------
    value : float
        Objective at the candidate, in the unit of `bound` (floating point, not a proof).
    violations : mapping of str to float
        For each constraint, in words, the amount by which the candidate violates it: 0 if it is
        met.
    bound : Bound
        The proved bounds on the optimal value.
    maximize : bool
        Whether the problem asks for the largest value (an audit) or the smallest (a design).
    tolerance : float
        Largest violation that still counts as feasible.

    Raises
    ------
    ValidationError
        An argument of the wrong kind.

    Examples
    --------
    >>> from cvxleak.problem import Check
    >>> from cvxleak.problem.bound import Bound, Status
    >>> bound = Bound("capacity", 0.5, 0.5000001, Status.CERTIFIED)
    >>> check = Check(0.25, {"probabilities sum to 1": 0.0}, bound, maximize=True)
    >>> check.feasible
    True
    >>> print(check)
    feasible; value 0.25 nats
    proved optimum: 0.5 to 0.5000001 nats; the candidate falls short by 0.25 to 0.2500001
    """

    value: float
    violations: Mapping[str, float]
    bound: Bound
    maximize: bool
    tolerance: float = FEASIBILITY_TOLERANCE

    def __post_init__(self) -> None:
        number_or_nan(self.value, "value")
        instance(self.bound, Bound, "bound")
        instance(self.maximize, bool, "maximize")
        real_number(self.tolerance, "tolerance", 0.0)
        violations = number_map(self.violations, "violations")
        object.__setattr__(self, "violations", MappingProxyType(violations))

    def __reduce__(self) -> tuple[Any, ...]:
        # A MappingProxyType cannot be pickled.
        fields = (self.value, dict(self.violations), self.bound, self.maximize, self.tolerance)
        return type(self), fields

    @property
    def feasible(self) -> bool:
        """Whether every constraint is met, within `tolerance`."""
        return all(violation <= self.tolerance for violation in self.violations.values())

    @property
    def shortfall(self) -> tuple[float, float]:
        """The least and the largest amount by which the candidate can be worse than the optimum.

        Maximization: (lower - value, upper - value). Minimization: (value - upper, value - lower).
        If the least amount is negative, the candidate may be as good as the optimum (or, if it is
        infeasible, better than every feasible point).
        """
        lower, upper, value = self.bound.lower, self.bound.upper, self.value
        if self.maximize:
            return _difference(lower, value), _difference(upper, value)
        return _difference(value, upper), _difference(value, lower)

    def __repr__(self) -> str:
        return f"Check({str(self).splitlines()[0]})"

    def __str__(self) -> str:
        unit = self.bound.unit
        broken = [
            f"{constraint}: violated by {violation:.3g}"
            for constraint, violation in self.violations.items()
            if not violation <= self.tolerance
        ]
        least, most = self.shortfall
        return "\n".join(
            [
                f"{'feasible' if self.feasible else 'infeasible'}; value {self.value:.7g} {unit}",
                *broken,
                f"proved optimum: {self.bound.lower:.7g} to {self.bound.upper:.7g} {unit}; "
                f"the candidate falls short by {max(least, 0.0):.7g} to {max(most, 0.0):.7g}",
            ]
        )


def feasibility_tolerance(point: Any) -> float:
    """Return by how much a point may miss constraints: what sums of its numbers may be off by."""
    kind = getattr(point, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind == "f":
        return max(FEASIBILITY_TOLERANCE, 10 * float(np.finfo(kind).eps))
    return FEASIBILITY_TOLERANCE


def _difference(a: float, b: float) -> float:
    """Return a - b, with inf - inf = 0: leakage may be infinite."""
    return 0.0 if a == b else a - b
