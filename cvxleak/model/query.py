"""`Query`: a deterministic function of the dataset, with exact counts of its fibers."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, short, whole_number
from cvxleak.core.value import Stored, preview
from cvxleak.core.wording import counted
from cvxleak.model.space import RecordSpace

__all__ = ["Query"]

FIBER_LIMIT = 1 << 20
"""Most counts that `Query.fibers` returns: joint values of the records times query values."""


class Query(Stored, ABC):
    """A deterministic function f of the dataset (DALENIUS Definition 3).

    There are two forms: `AdditiveQuery`, for values that depend on a sum over the records (its
    fibers are counted by polynomial arithmetic, for thousands of records), and `TableQuery`, one
    value per dataset. `cvxleak.queries` defines the usual queries by name.

    Attributes
    ----------
    space : RecordSpace
        The datasets.
    values : tuple of hashable
        The distinct values that f takes.

    Examples
    --------
    >>> from cvxleak.model import Query
    >>> from cvxleak.queries import parity
    >>> query = parity(3)
    >>> isinstance(query, Query), query.values, query((1, 0, 1)), query.sensitivity
    (True, (0, 1), 0, 1)
    """

    kind: ClassVar[str]
    space: RecordSpace
    values: tuple[Hashable, ...]

    @abstractmethod
    def __call__(self, dataset: Sequence[Hashable]) -> Hashable:
        """Return f(dataset).

        Raises
        ------
        ValidationError
            The dataset is not in the space.
        """

    @abstractmethod
    def fibers(self, records: int | Sequence[int]) -> list[dict[int, int]]:
        """Count, for each joint value of `records`, the contexts that give each query value.

        Element a of the list (joint values in product order, last record fastest) maps the index
        of a query value v to the exact number of assignments of the other records with f = v.

        Raises
        ------
        ValidationError
            Records that are not distinct indices, or too many joint values to count one by one.
        """

    @abstractmethod
    def lines(self, record: int) -> list[tuple[int, ...]]:
        """Return, for every context of the other records, the values that one record can make.

        Each distinct tuple (index of f(a, z) for every value a) once, in increasing order.
        """

    @abstractmethod
    def exchangeable(self) -> list[list[int]]:
        """Partition the records so that swapping two of one part never changes f."""

    def neighbor_pairs(self) -> set[tuple[int, int]]:
        """Return the pairs (u, v), u < v, of value indices that neighbors can have.

        Neighbors are two datasets that differ in one record.
        """
        lines = {line for part in self.exchangeable() for line in self.lines(part[0])}
        return {(u, v) for line in lines for u in line for v in line if u < v}

    @abstractmethod
    def table(self) -> NDArray[np.intp]:
        """Return the index of f(x) in `values` for every dataset x, shaped like the space.

        Raises
        ------
        ValidationError
            The space has more than 2^22 datasets.
        """

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the query that `to_dict` wrote, of whichever form it is.

        Raises
        ------
        ValidationError
            An unknown form, a key that is missing or unknown, or a value that is not valid.
        """
        forms = {form.kind: form for form in cls.__subclasses__() if hasattr(form, "kind")}
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if not isinstance(kind, str) or kind not in forms:
            raise ValidationError(
                f"data: found the query kind {short(kind)}; allowed: {sorted(forms)}"
            )
        return forms[kind].from_dict(data)

    @property
    def sensitivity(self) -> float:
        """Largest |f(x) - f(x')| over datasets that differ in one record (LEAKAGE 4.1).

        Values are compared as numbers. A sum mod m wraps around, so its sensitivity is m - 1 if
        there are enough records to wrap; it is 1 only on the cycle (`cyclic_sensitivity`).

        Raises
        ------
        ValidationError
            A value of the query is not a finite number.
        """
        values = self._numbers()
        return max((abs(values[u] - values[v]) for u, v in self.neighbor_pairs()), default=0.0)

    def cyclic_sensitivity(self, modulus: int) -> float:
        """Largest distance of f(x) and f(x') on a cycle of length `modulus`, x and x' neighbors.

        Raises
        ------
        ValidationError
            A value of the query is not a finite number, or the modulus is not positive.
        """
        m = whole_number(modulus, "modulus", 1)
        values = self._numbers()
        gaps = [(values[u] - values[v]) % m for u, v in self.neighbor_pairs()]
        return max((min(gap, m - gap) for gap in gaps), default=0.0)

    def _numbers(self) -> list[Any]:
        values: list[Any] = list(self.values)
        for value in values:
            number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not (number and math.isfinite(value)):
                raise ValidationError(
                    f"query: its value {short(value)} is not a finite number, "
                    "so it has no sensitivity"
                )
        return values

    def check_fibers(self, group: Sequence[int]) -> None:
        """Refuse a group of records whose contexts are too many to count (see `fibers`)."""
        # By powers: of a million records one after the other, each product is a long one.
        sizes = Counter(self.space.shape[i] for i in group)
        values = math.prod(k**count for k, count in sizes.items())
        if values * len(self.values) > FIBER_LIMIT:
            raise ValidationError(
                f"records: {len(group)} of them have {short(values)} joint values, and the query "
                f"{len(self.values)}; at most {FIBER_LIMIT} pairs can be counted"
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.space!r} -> "
            f"{counted(len(self.values), 'value')} {preview(self.values)})"
        )


def runs_to_list(runs: Any, name: str, length: int) -> list[Any]:
    """Return the list of `length` items whose runs (item, count) a file holds."""
    result: list[Any] = []
    for run in in_order(runs, name):
        if not isinstance(run, Sequence) or len(run) != 2:
            raise ValidationError(f"{name}: found {short(run)}; pairs (item, count) are needed")
        result += [run[0]] * whole_number(run[1], name, 1, length - len(result))
    return result
