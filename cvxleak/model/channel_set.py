"""`ChannelSet`: a channel whose probabilities are only known within intervals."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json
from cvxleak.core.numbers import ExactArray, fraction, to_json
from cvxleak.core.validation import Array, frozen_array, label_tuple, read_only, whole_number
from cvxleak.core.value import Stored, check_keys, preview
from cvxleak.core.wording import counted
from cvxleak.model.channel import Channel
from cvxleak.model.lumping import Lumped

__all__ = ["ChannelSet", "LumpedSet"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ChannelSet(Stored):
    """The channels whose rows lie between two matrices: l(y|x) <= q(y|x) <= u(y|x).

    Each row of a member is an arbitrary distribution within its box, independently of the other
    rows. Every result for a set holds for each of its members.

    Parameters
    ----------
    lower, upper : array_like, shape (inputs, outputs)
        Lower and upper bounds on the probabilities, from 0 to 1, as written.
    inputs, outputs : iterable of hashable, optional
        Distinct labels; 0, 1, ... if left out.

    Raises
    ------
    ValidationError
        Wrong shapes, numbers outside [0, 1], a lower bound above the upper one, a row that no
        distribution fits (the lower bounds sum to more than 1, or the upper ones to less), bad
        labels.

    Examples
    --------
    A table printed with two digits, and a channel of which it may be the rounding:

    >>> from cvxleak.model import Channel, ChannelSet
    >>> printed = ChannelSet.from_printed([[0.67, 0.33], [0.25, 0.75]], digits=2)
    >>> printed
    ChannelSet(2 inputs [0, 1] -> 2 outputs [0, 1], intervals up to 0.01 wide)
    >>> Channel([[2 / 3, 1 / 3], [0.25, 0.75]]) in printed
    True
    >>> printed.center.matrix.round(12)
    array([[0.67, 0.33],
           [0.25, 0.75]])
    """

    lower: Array
    upper: Array
    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> None:
        low, high = _probabilities(lower, "lower", 0.0), _probabilities(upper, "upper", 1.0)
        if low.shape != high.shape:
            raise ValidationError(f"upper: found shape {high.shape}; lower has {low.shape}")
        rows = label_tuple(inputs, low.shape[0], "inputs")
        columns = label_tuple(outputs, low.shape[1], "outputs")
        if (low > high).any():
            x, y = (int(i) for i in np.argwhere(low > high)[0])
            raise ValidationError(
                f"lower: found {low[x, y]!r} at input {rows[x]!r}, output {columns[y]!r}, above "
                f"the upper bound {high[x, y]!r}"
            )
        for bound, name, wrong in (
            (low, "lower", low.sum(axis=1) > 1 + 1e-12),
            (high, "upper", high.sum(axis=1) < 1 - 1e-12),
        ):
            if wrong.any():
                x = int(np.argmax(wrong))
                raise ValidationError(
                    f"{name}: the bounds of input {rows[x]!r} sum to {float(bound[x].sum())!r}; "
                    "no distribution lies within; wider bounds, or fewer digits, are needed"
                )
        self._hold(lower=low, upper=high, inputs=rows, outputs=columns)

    @classmethod
    def from_printed(
        cls,
        matrix: ArrayLike,
        digits: int | None = None,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> Self:
        """Return the set of channels that give a printed matrix when they are rounded.

        Each probability may be off by half a unit of its last decimal.

        Parameters
        ----------
        matrix : array_like of str, shape (inputs, outputs)
            The numbers as they are printed: ``".333"`` may be off by 0.0005 and ``".3330"`` by
            0.00005; a `Decimal` is taken like its text. Whole numbers, ``"0"`` and ``"1"`` or
            ``"1."``, may be off as much as the number with the fewest decimals. Fractions such as
            ``"1/3"`` are exact.
        digits : int, optional
            The number of decimals of all entries, from 1 to 15, whatever is printed. Needed if
            they are floats, which do not hold it.
        inputs, outputs : iterable of hashable, optional
            Distinct labels; 0, 1, ... if left out.

        Raises
        ------
        ValidationError
            Numbers outside [0, 1], unknown or impossible digits, or rows that no distribution
            rounds to.

        Examples
        --------
        >>> from cvxleak.model import ChannelSet
        >>> printed = ChannelSet.from_printed([[".333", ".6670"], ["1", "0"]])
        >>> printed.lower
        array([[0.3325 , 0.66695],
               [0.9995 , 0.     ]])
        >>> printed == ChannelSet.from_printed([[0.333, 0.667], [1, 0]], digits=3)
        False
        """
        from cvxleak.model._printed import half_units

        if digits is not None:
            whole_number(digits, "digits", 1, 15)
        printed = _probabilities(matrix, "matrix", None)
        half = half_units(matrix, digits)
        exact = np.array([[fraction(x) for x in row] for row in printed.tolist()], dtype=object)
        low, high = exact - half, exact + half
        low[low < 0], high[high > 1] = Fraction(0), Fraction(1)
        return cls(low, high, inputs, outputs)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], digits: int | None = None) -> Self:
        """Read a file of rounded probabilities: `from_printed` for what `Channel.from_csv` reads.

        Files of R's ``print``, say. Its ``write.table`` and ``write.csv`` round to 15 digits: take
        `Channel.from_csv`. They leave out zeros at the end, so if the numbers were rounded before,
        give `digits`: without, ``.3`` beside ``.333`` may be off by 0.05. That is safe, and wide.

        Raises
        ------
        ValidationError
            The file cannot be read, or as for `from_printed`.
        """
        from cvxleak.core.tables import read_cells

        cells, inputs, outputs = read_cells(path, cls.from_printed)
        return cls.from_printed(cells, digits, inputs, outputs)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs and of outputs."""
        return self.lower.shape[0], self.lower.shape[1]

    @cached_property
    def center(self) -> Channel:
        """The member that divides each interval of a row in the same ratio: l + s (u - l)."""
        return Channel(_center(self.lower, self.upper), self.inputs, self.outputs)

    def select(self, inputs: Iterable[Hashable], name: str = "channel") -> Self:
        """Return the set with these inputs, in this order.

        Raises
        ------
        ValidationError
            A label that the set lacks, or one that appears twice.
        """
        rows = Channel(self.center.matrix, self.inputs, self.outputs).select(inputs, name=name)
        places = [self.inputs.index(label) for label in rows.inputs]
        return type(self)(self.lower[places], self.upper[places], rows.inputs, self.outputs)

    def __contains__(self, channel: object) -> bool:
        """Whether a channel with the same labels is a member, up to rounding (1e-12)."""
        if not isinstance(channel, Channel):
            return False
        if (channel.inputs, channel.outputs) != (self.inputs, self.outputs):
            return False
        q = channel.matrix
        return bool((q >= self.lower - 1e-12).all() and (q <= self.upper + 1e-12).all())

    def to_dict(self) -> dict[str, Any]:
        """Return bounds and labels as plain lists, ready for JSON."""
        return {
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "lower": to_json(self.lower),
            "upper": to_json(self.upper),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the set that `to_dict` wrote; the labels may be left out.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        check_keys(data, {"lower", "upper"}, {"inputs", "outputs"})
        inputs, outputs = (labels_from_json(data.get(key)) for key in ("inputs", "outputs"))
        return cls(data["lower"], data["upper"], inputs, outputs)

    def __repr__(self) -> str:
        widest = float((self.upper - self.lower).max())
        return (
            f"ChannelSet({counted(len(self.inputs), 'input')} {preview(self.inputs)} -> "
            f"{counted(len(self.outputs), 'output')} {preview(self.outputs)}, "
            f"intervals up to {widest:.3g} wide)"
        )


@dataclass(frozen=True, eq=False)
class LumpedSet:
    """The lumped form of a mechanism whose channel lies in a set.

    Contexts are grouped by the box of their row; two of them may still have different rows.

    Attributes
    ----------
    center : Lumped
        The lumped form of the set's center.
    lower, upper : array, shape (N, outputs)
        The box of each group's rows.
    counts : tuple of dict
        For each group, how many of its contexts have which value of the query, by number: contexts
        with the same value have the same row, whatever the value of the record.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, ChannelSet, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> printed = ChannelSet.from_printed([[0.9, 0.1], [0.1, 0.9]], digits=1)
    >>> Mechanism(parity, printed).lumped_set(0).upper[0]
    array([0.15, 0.95])
    """

    center: Lumped
    lower: Array
    upper: Array
    counts: tuple[Mapping[int, int], ...]


def _probabilities(values: ArrayLike, name: str, outward: float | None) -> Array:
    """Return a matrix of probabilities, as floats next to those that are none, or as written."""
    array = frozen_array(values, name, 2)
    if isinstance(array, ExactArray) and outward is not None:
        array = read_only(np.nextafter(np.array(array, dtype=float, subok=False), outward))
    if array.size == 0:
        raise ValidationError(f"{name}: found shape {array.shape}; it must not be empty")
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValidationError(
            f"{name}: found {float(array[place])!r} at index {place}; probabilities are in [0, 1]"
        )
    return array


def _center(lower: Array, upper: Array) -> Array:
    least, most = lower.sum(axis=1, keepdims=True), upper.sum(axis=1, keepdims=True)
    room = most - least
    share = np.where(room > 0, (1 - least) / np.where(room > 0, room, 1.0), 0.0)
    rows = lower + np.clip(share, 0.0, 1.0) * (upper - lower)
    return read_only(rows / rows.sum(axis=1, keepdims=True))
