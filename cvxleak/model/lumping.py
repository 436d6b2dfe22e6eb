"""`Lumped`: what one record (or group of records) can be seen doing, with equal rows merged."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cvxleak.model._validation import Array
from cvxleak.model._value import Value

__all__ = ["Lumped"]


@dataclass(frozen=True, eq=False, repr=False)
class Lumped(Value):
    """The lumped form of a mechanism, seen from one record or group of records A.

    For each value a of A, the contexts (assignments of the other records) whose output laws are
    identical form one group g, with the row R_g(y) and the exact number m_g of contexts. An
    adversary is then a distribution w on the groups: given the mass of a group, the entropy of the
    dataset is largest when the mass is spread evenly inside it, and I(A;Y) does not depend on how
    it is spread. So H(X) >= b can be replaced by F(w) = H(w) + sum_g w_g log m_g >= b.

    Attributes
    ----------
    values : tuple
        The values a of A (the record's alphabet, or tuples for a group of records).
    outputs : tuple
        Output labels.
    value_index : int array, shape (N,)
        Which value of A each group belongs to, non-decreasing.
    rows : float array, shape (N, |Y|)
        Output law of each group.
    multiplicities : tuple of int
        Number of contexts in each group, exactly.
    contexts : tuple of tuples
        The query values that each group stands for.

    Notes
    -----
    Built by `Mechanism.lumped`.
    """

    values: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    value_index: NDArray[np.intp]
    rows: Array
    multiplicities: tuple[int, ...]
    contexts: tuple[tuple[Hashable, ...], ...]

    def __post_init__(self) -> None:
        for name in ("value_index", "rows"):
            getattr(self, name).setflags(write=False)

    @cached_property
    def log_multiplicity(self) -> Array:
        """Natural logarithm of the multiplicities, shape (N,)."""
        return np.array([math.log(m) for m in self.multiplicities])

    @property
    def size(self) -> int:
        """Number |X| of datasets, exactly."""
        return sum(self.multiplicities)

    @property
    def max_entropy(self) -> float:
        """log |X|, in nats."""
        return math.log(self.size)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First group of each value, for `numpy.add.reduceat`."""
        return np.searchsorted(self.value_index, np.arange(len(self.values)))

    def uniform(self) -> Array:
        """Return the lumped uniform prior, w_g = m_g / |X|."""
        size = self.size
        return np.array([m / size for m in self.multiplicities])

    def __repr__(self) -> str:
        return (
            f"Lumped({len(self.values)} values, {len(self.multiplicities)} groups, "
            f"{len(self.outputs)} outputs, log|X| = {self.max_entropy:.6g})"
        )
