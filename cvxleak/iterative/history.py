"""`IterativeResult`: what every iterative method returns, with the history of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance, number_or_nan, read_only, short, whole_number

__all__ = ["IterativeResult"]


@dataclass(frozen=True, eq=False)
class IterativeResult:
    """The result of an iterative method: final iterate, reason for stopping, and history.

    Nothing here is proved: `value` is the objective at `point`, as computed in floating point.

    Parameters
    ----------
    value : float
        Objective at `point`, in nats unless the method says otherwise.
    point : object
        Final iterate.
    iterations : int
        Number of updates done.
    stopped : str
        Why the method stopped, in words.
    history : mapping of str to array_like
        One sequence per recorded quantity. Position j belongs to the iterate after j updates, so
        quantities of iterates have ``iterations + 1`` entries; quantities of updates (step sizes)
        have ``iterations``, position j for the update from iterate j. Stored as read-only arrays.

    Examples
    --------
    >>> from cvxleak.iterative import IterativeResult
    >>> run = IterativeResult(0.5, [1.0], 1, "gap within tol", {"objective": [0.1, 0.5]})
    >>> run.history["objective"]
    array([0.1, 0.5])
    >>> print(run)
    0.5 after 1 iteration: gap within tol
    """

    value: float
    point: Any
    iterations: int
    stopped: str
    history: Mapping[str, Array] = field(repr=False)

    def __post_init__(self) -> None:
        number_or_nan(self.value, "value")
        whole_number(self.iterations, "iterations", 0)
        instance(self.stopped, str, "stopped")
        if not isinstance(self.history, Mapping):
            raise ValidationError(f"history: expected a mapping, found {short(self.history)}")
        arrays = {name: _column(values, name) for name, values in self.history.items()}
        object.__setattr__(self, "history", MappingProxyType(arrays))

    def __reduce__(self) -> tuple[Any, ...]:
        # A MappingProxyType cannot be pickled, and arrays forget that they are read-only.
        return type(self), (
            self.value,
            self.point,
            self.iterations,
            self.stopped,
            dict(self.history),
        )

    def __str__(self) -> str:
        plural = "" if self.iterations == 1 else "s"
        return f"{self.value:.7g} after {self.iterations} iteration{plural}: {self.stopped}"


def _column(values: Any, name: str) -> Array:
    """Return a read-only copy; a method that went astray may have met NaN."""
    try:
        return read_only(np.array(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"history[{short(name)}]: expected an array of numbers, found {short(values)}"
        ) from error
