"""`Lumped`: a mechanism as seen from one record (or group), with equal rows merged."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    in_order,
    label_tuple,
    plain_array,
    probability_rows,
    read_only,
    whole_number,
)
from cvxleak.core.value import Value
from cvxleak.core.wording import counted

__all__ = ["Limits", "Lumped"]


@dataclass(frozen=True, eq=False, repr=False)
class Lumped(Value):
    """The lumped form of a mechanism, seen from one record or group of records A.

    For each value a of A, the contexts (assignments of values to the other records) with identical
    output distributions form one group g, with the row R_g(y) and the exact number m_g of contexts.
    An adversary is then a distribution w on the groups: given the mass of a group, the entropy of
    the dataset is largest if the mass is spread evenly within the group, and I(A;Y) does not depend
    on how it is spread. So the constraint H(X) >= b becomes F(w) = H(w) + sum_g w_g log m_g >= b.

    Attributes
    ----------
    values : tuple
        The values a of A (the record's alphabet, or tuples for a group of records).
    outputs : tuple
        Output labels.
    value_index : int array, shape (N,)
        Which value of A each group belongs to, non-decreasing; every value has a group.
    rows : float array, shape (N, |Y|)
        Output distribution of each group.
    multiplicities : tuple of int
        Number of contexts in each group, exactly.
    contexts : tuple of tuples
        The query values that each group stands for.

    Raises
    ------
    ValidationError
        Parts of inconsistent shapes, rows that are not distributions, multiplicities that are not
        positive.

    Notes
    -----
    Built by `Mechanism.lumped`.

    Examples
    --------
    A parity shows two rows to each value of a record; half of the 2^9 contexts lead to each:

    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(10), [(0, 1)] * 10, modulus=2)
    >>> lumped = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]).lumped(0)
    >>> lumped.value_index, lumped.multiplicities
    (array([0, 0, 1, 1]), (256, 256, 256, 256))
    >>> lumped.rows
    array([[0.1, 0.9],
           [0.9, 0.1],
           [0.1, 0.9],
           [0.9, 0.1]])
    """

    values: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    value_index: NDArray[np.intp]
    rows: Array
    multiplicities: tuple[int, ...]
    contexts: tuple[tuple[Hashable, ...], ...]

    def __init__(
        self,
        values: Iterable[Hashable],
        outputs: Iterable[Hashable],
        value_index: ArrayLike,
        rows: ArrayLike,
        multiplicities: Iterable[int],
        contexts: Iterable[Iterable[Hashable]],
    ) -> None:
        table = probability_rows(rows, "rows", 2)
        names = in_order(values, "values")
        index = plain_array(value_index, "value_index")
        if (
            index.shape != (len(table),)
            or index.dtype.kind not in "iu"
            or index[0] != 0
            or index[-1] != len(names) - 1
            or not np.isin(np.diff(index), (0, 1)).all()
        ):
            raise ValidationError(
                f"value_index: found an array of {index.dtype} with shape {index.shape}; "
                f"{len(table)} non-decreasing integers that take each of "
                f"0 to {len(names) - 1} are needed"
            )
        counts = tuple(
            whole_number(m, "multiplicities", 1) for m in in_order(multiplicities, "multiplicities")
        )
        groups = tuple(in_order(group, "contexts") for group in in_order(contexts, "contexts"))
        if len(counts) != len(table) or len(groups) != len(table):
            raise ValidationError(
                f"multiplicities, contexts: found {len(counts)} and {len(groups)}; "
                f"{len(table)} are needed, one per row"
            )
        object.__setattr__(self, "values", label_tuple(names, len(names), "values"))
        object.__setattr__(self, "outputs", label_tuple(outputs, table.shape[1], "outputs"))
        object.__setattr__(self, "value_index", read_only(index.astype(np.intp)))
        object.__setattr__(self, "rows", table)
        object.__setattr__(self, "multiplicities", counts)
        object.__setattr__(self, "contexts", groups)

    @cached_property
    def log_multiplicity(self) -> Array:
        """Natural logarithm of the multiplicities, shape (N,)."""
        return read_only(np.array([math.log(m) for m in self.multiplicities]))

    @cached_property
    def log_shares(self) -> tuple[Array, Array]:
        """Logarithms of the uniform prior: of a group given its value, and of the values."""
        totals = [0] * len(self.values)
        for a, m in zip(self.value_index, self.multiplicities, strict=True):
            totals[int(a)] += m
        groups = [
            _log_ratio(m, totals[int(a)])
            for a, m in zip(self.value_index, self.multiplicities, strict=True)
        ]
        values = [_log_ratio(total, self.size) for total in totals]
        return read_only(np.array(groups)), read_only(np.array(values))

    @cached_property
    def size(self) -> int:
        """Number |X| of datasets, exactly."""
        return sum(self.multiplicities)

    @property
    def max_entropy(self) -> float:
        """Logarithm of |X|, in nats."""
        return math.log(self.size)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First group of each value, for `numpy.add.reduceat`."""
        return read_only(np.searchsorted(self.value_index, np.arange(len(self.values))))

    def uniform(self) -> Array:
        """Return the lumped uniform prior, w_g = m_g / |X|."""
        return np.array([m / self.size for m in self.multiplicities])

    def __repr__(self) -> str:
        return (
            f"Lumped({counted(len(self.values), 'value')}, "
            f"{counted(len(self.multiplicities), 'group')}, "
            f"{counted(len(self.outputs), 'output')}, log|X| = {self.max_entropy:.6g})"
        )


@dataclass(frozen=True, eq=False)
class Limits(Value):
    """Limits on a lumped adversary: <C_j, w> <= d_j + t_j F(w) for each j.

    They are linear where t_j = 0. With t_j = 1 and C_j = -log p0 it is the relative-entropy ball
    D(p || p0) <= d_j, since D(p || p0) = -F(w) - <w, log p0>.

    Attributes
    ----------
    coefficients : array, shape (J, N)
        C_j, a number for each group of the lumped problem.
    bounds : array, shape (J,)
        d_j.
    shares : array, shape (J,), optional
        t_j >= 0; all 0 if left out.

    Raises
    ------
    ValidationError
        Arrays that do not fit each other, or a negative t_j.

    Examples
    --------
    >>> from cvxleak.model import Limits
    >>> Limits([[1.0, 0.0, 1.0]], [0.5]).bounds
    array([0.5])
    """

    coefficients: Array
    bounds: Array
    shares: Array = None  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        coefficients = frozen_array(self.coefficients, "coefficients", 2)
        bounds = frozen_array(self.bounds, "bounds", 1)
        given: ArrayLike = np.zeros(len(bounds)) if self.shares is None else self.shares
        shares = frozen_array(given, "shares", 1)
        if len(shares) != len(bounds) or (shares < 0).any():
            raise ValidationError(f"shares: found {shares}; {len(bounds)} numbers >= 0 are needed")
        if len(coefficients) != len(bounds):
            raise ValidationError(
                f"bounds: found {len(bounds)}; one is needed for each of the "
                f"{counted(len(coefficients), 'row')} of coefficients"
            )
        self._hold(coefficients=coefficients, bounds=bounds, shares=shares)

    @classmethod
    def none(cls, lumped: Lumped) -> Limits:
        """Return no limits at all."""
        return cls(np.zeros((0, len(lumped.rows))), np.zeros(0))


def _log_ratio(part: int, whole: int) -> float:
    """Return log(part / whole) for whole numbers of any size."""
    if part.bit_length() + 1000 > whole.bit_length():
        return math.log(part / whole)
    return math.log(part) - math.log(whole)
