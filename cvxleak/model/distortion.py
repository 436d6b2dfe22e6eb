"""`Distortion`: how far a released output is from the true value of the query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.errors import ValidationError
from cvxleak.model._validation import Array, frozen_array, label_tuple
from cvxleak.model._value import Value, preview

__all__ = ["Distortion"]


@dataclass(frozen=True, eq=False, repr=False)
class Distortion(Value):
    """A matrix d(v, y) >= 0: the cost of releasing y when the true value is v.

    Parameters
    ----------
    matrix : array_like, shape (inputs, outputs)
        Finite and non-negative.
    inputs, outputs : iterable of hashable, optional
        Labels of the true values and of the outputs; 0, 1, ... if left out.

    Examples
    --------
    >>> from cvxleak.model import Distortion
    >>> Distortion.absolute([0, 1, 2], [0, 3]).matrix
    array([[0., 3.],
           [1., 2.],
           [2., 1.]])
    """

    matrix: Array
    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def __init__(
        self,
        matrix: ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> None:
        array = frozen_array(matrix, "matrix", 2)
        if array.size == 0 or not np.isfinite(array).all() or (array < 0).any():
            raise ValidationError(
                f"matrix: found shape {array.shape} with entries from "
                f"{array.min(initial=np.inf)} to {array.max(initial=-np.inf)}; "
                "distortions are finite and non-negative"
            )
        object.__setattr__(self, "matrix", array)
        object.__setattr__(self, "inputs", label_tuple(inputs, array.shape[0], "inputs"))
        object.__setattr__(self, "outputs", label_tuple(outputs, array.shape[1], "outputs"))

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> Distortion:
        """Return the distortion of a given matrix."""
        return cls(matrix, inputs, outputs)

    @classmethod
    def hamming(
        cls, inputs: Iterable[Hashable], outputs: Iterable[Hashable] | None = None
    ) -> Distortion:
        """Return d(v, y) = 1 if v != y, 0 otherwise."""
        return cls._from_function(lambda v, y: float(v != y), inputs, outputs)

    @classmethod
    def absolute(
        cls, inputs: Iterable[Hashable], outputs: Iterable[Hashable] | None = None
    ) -> Distortion:
        """Return d(v, y) = |v - y| (LEAKAGE eq. 32)."""
        return cls._from_function(lambda v, y: abs(v - y), inputs, outputs)

    @classmethod
    def squared(
        cls, inputs: Iterable[Hashable], outputs: Iterable[Hashable] | None = None
    ) -> Distortion:
        """Return d(v, y) = (v - y)^2."""
        return cls._from_function(lambda v, y: (v - y) ** 2, inputs, outputs)

    @classmethod
    def _from_function(
        cls,
        distance: Callable[[Any, Any], float],
        inputs: Iterable[Hashable],
        outputs: Iterable[Hashable] | None,
    ) -> Distortion:
        rows = tuple(inputs)
        columns = rows if outputs is None else tuple(outputs)
        try:
            matrix = [[float(distance(v, y)) for y in columns] for v in rows]
        except TypeError as error:
            raise ValidationError(
                f"inputs: this distortion needs labels that are numbers; found {preview(rows)} "
                f"and {preview(columns)}"
            ) from error
        return cls(matrix, rows, columns)

    def __repr__(self) -> str:
        return (
            f"Distortion({len(self.inputs)} values {preview(self.inputs)} x "
            f"{len(self.outputs)} outputs {preview(self.outputs)})"
        )
