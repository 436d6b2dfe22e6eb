"""`Distortion`: how far a released output is from the true value of the query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, check_cells, frozen_array, in_order, one_of, whole_number
from cvxleak.core.value import preview
from cvxleak.model._matrix import LabeledMatrix

__all__ = ["Distortion", "distortion_entries", "named_distortion"]

Labels = int | Iterable[Hashable]
"""Labels, or how many of them: 0, 1, ..."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Distortion(LabeledMatrix):
    """A matrix d(v, y) >= 0: the cost of releasing y when the true value is v.

    Parameters
    ----------
    matrix : array_like, shape (inputs, outputs)
        Finite and non-negative.
    inputs, outputs : iterable of hashable, optional
        Labels of the true values and of the outputs; 0, 1, ... if left out.

    Raises
    ------
    ValidationError
        Wrong shape, no entries, negative, NaN or infinite entries, bad labels.

    Examples
    --------
    >>> from cvxleak.model import Distortion
    >>> Distortion.absolute([0, 1, 2], [0, 3]).matrix
    array([[0., 3.],
           [1., 2.],
           [2., 1.]])
    """

    @staticmethod
    def _checked(matrix: ArrayLike, inputs: object) -> Array:
        return distortion_entries(matrix, "matrix")

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> Self:
        """Return the distortion of a given matrix."""
        return cls(matrix, inputs, outputs)

    @classmethod
    def hamming(cls, inputs: Labels, outputs: Labels | None = None) -> Self:
        """Return d(v, y) = 1 if v != y, 0 otherwise; the outputs are the inputs if left out.

        A number k, here and in the other two, stands for the labels 0, 1, ..., k - 1.

        Examples
        --------
        >>> from cvxleak.model import Distortion
        >>> Distortion.hamming(["no", "yes"]).matrix
        array([[0., 1.],
               [1., 0.]])
        >>> Distortion.hamming(2).inputs
        (0, 1)
        """
        return cls._from_function(lambda v, y: v != y, inputs, outputs)

    @classmethod
    def absolute(cls, inputs: Labels, outputs: Labels | None = None) -> Self:
        """Return d(v, y) = |v - y| (LEAKAGE eq. 32); the outputs are the inputs if left out."""
        return cls._from_function(lambda v, y: abs(v - y), inputs, outputs)

    @classmethod
    def squared(cls, inputs: Labels, outputs: Labels | None = None) -> Self:
        """Return d(v, y) = (v - y)^2; the outputs are the inputs if left out.

        Examples
        --------
        >>> from cvxleak.model import Distortion
        >>> Distortion.squared([0, 2], [0, 1]).matrix
        array([[0., 1.],
               [4., 1.]])
        """
        return cls._from_function(lambda v, y: (v - y) ** 2, inputs, outputs)

    @classmethod
    def _from_function(
        cls,
        distance: Callable[[Any, Any], float],
        inputs: Labels,
        outputs: Labels | None,
    ) -> Self:
        rows = _labels(inputs, "inputs")
        columns = rows if outputs is None else _labels(outputs, "outputs")
        if not rows or not columns:
            raise ValidationError("inputs: found no labels; at least one is needed on each side")
        check_cells(len(rows), len(columns), "inputs")
        try:
            matrix = [[float(distance(v, y)) for y in columns] for v in rows]
        except (TypeError, OverflowError) as error:
            raise ValidationError(
                f"inputs: this distortion needs labels that are numbers; found {preview(rows)} "
                f"and {preview(columns)} ({error})"
            ) from error
        return cls(matrix, rows, columns)


def named_distortion(
    kind: str, inputs: Iterable[Hashable], outputs: Iterable[Hashable] | None, name: str
) -> Distortion:
    """Return a distortion by its name, between labels, as in a spec."""
    one_of(kind, ("hamming", "absolute", "squared"), name)
    return getattr(Distortion, kind)(inputs, outputs)


def _labels(labels: Labels, name: str) -> tuple[Hashable, ...]:
    if not isinstance(labels, (int, np.integer)):
        return in_order(labels, name)
    size = whole_number(labels, name, 1)
    check_cells(size, size, name)
    return tuple(range(size))


def distortion_entries(matrix: ArrayLike, name: str) -> Array:
    """Return a matrix of distortions as a read-only array, or say what is wrong with it."""
    array = frozen_array(matrix, name, 2)
    if array.size == 0:
        raise ValidationError(f"{name}: found shape {array.shape}; it must not be empty")
    least, most = float(array.min()), float(array.max())
    if least < 0 or most == np.inf:
        raise ValidationError(
            f"{name}: found entries from {least!r} to {most!r}; "
            "distortions are finite and non-negative"
        )
    return array
