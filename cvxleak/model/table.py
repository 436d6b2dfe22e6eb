"""`TableQuery`: a query given by its value at every dataset."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json
from cvxleak.core.validation import in_order, instance, label_tuple, read_only, short
from cvxleak.core.value import check_keys
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace, check_table_size

__all__ = ["TableQuery"]


@dataclass(frozen=True, eq=False, repr=False)
class TableQuery(Query):
    """A query given by its value at every dataset.

    Parameters
    ----------
    space : RecordSpace
        The datasets, at most 2^22.
    places : array_like of int, shape (|X|,) or the shape of the space
        For each dataset (product order, last record fastest) the index of its value in `values`.
    values : iterable of hashable
        The distinct values; each must occur.

    Raises
    ------
    ValidationError
        Too large a space, places of another shape or that are not integers, a value that does not
        occur, duplicate values.

    Examples
    --------
    >>> from cvxleak.model import RecordSpace, TableQuery
    >>> equal = TableQuery(RecordSpace([(0, 1, 2), (0, 1)]), [1, 0, 0, 1, 0, 0], ("no", "yes"))
    >>> equal((1, 1))
    'yes'
    >>> equal.fibers([0])
    [{0: 1, 1: 1}, {0: 1, 1: 1}, {0: 2}]
    """

    kind: ClassVar[str] = "table"

    space: RecordSpace
    places: NDArray[np.intp]
    values: tuple[Hashable, ...]

    def __init__(self, space: RecordSpace, places: ArrayLike, values: Iterable[Hashable]) -> None:
        check_table_size(instance(space, RecordSpace, "space"))
        try:
            array = np.array(places)
        except ValueError as error:
            raise ValidationError(f"places: found {short(places)}: {error}") from error
        if array.dtype.kind not in "iu" or array.shape not in ((space.size,), space.shape):
            raise ValidationError(
                f"places: found an array of {array.dtype} with shape {array.shape}; "
                f"{space.size} integers are needed, one per dataset"
            )
        names = in_order(values, "values")
        names = label_tuple(names, len(names), "values")
        if not np.array_equal(np.unique(array), np.arange(len(names))):
            raise ValidationError(
                f"places: found indices from {array.min()} to {array.max()}; all of the "
                f"{len(names)} values, 0 to {len(names) - 1}, must occur and no other"
            )
        table = read_only(np.ascontiguousarray(array, dtype=np.intp).reshape(space.shape))
        self._hold(space=space, places=table, values=names)

    def __call__(self, dataset: Sequence[Hashable]) -> Hashable:
        """Return f(dataset)."""
        return self.values[int(self.places[self.space.indices(dataset)])]

    def fibers(self, records: int | Sequence[int]) -> list[dict[int, int]]:
        """Count the contexts of each joint value by query value (see `Query.fibers`)."""
        group = self.space.group(records)
        self.check_fibers(group)
        moved = np.moveaxis(self.places, group, range(len(group)))
        size = math.prod(self.space.shape[i] for i in group)
        result = []
        for row in moved.reshape(size, -1):
            places, counts = np.unique(row, return_counts=True)
            result.append(dict(zip(places.tolist(), counts.tolist(), strict=True)))
        return result

    def lines(self, record: int) -> list[tuple[int, ...]]:
        """Return the distinct tuples of values over a record (see `Query.lines`)."""
        (i,) = self.space.group(record)
        columns = np.moveaxis(self.places, i, -1).reshape(-1, self.space.shape[i])
        return [tuple(line) for line in np.unique(columns, axis=0).tolist()]

    def exchangeable(self) -> list[list[int]]:
        """Partition the records by which of them can be swapped (see `Query.exchangeable`)."""
        parts: list[list[int]] = []
        for i, alphabet in enumerate(self.space.alphabets):
            for part in parts:
                first = part[0]
                if self.space.alphabets[first] == alphabet and np.array_equal(
                    self.places, self.places.swapaxes(first, i)
                ):
                    part.append(i)
                    break
            else:
                parts.append([i])
        return parts

    def table(self) -> NDArray[np.intp]:
        """Return the index of f(x) for every dataset x, shaped like the space."""
        return self.places

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain lists, ready for JSON."""
        return {
            "kind": self.kind,
            "space": self.space.to_dict(),
            "table": self.places.ravel().tolist(),
            "values": list(self.values),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the query that `to_dict` wrote."""
        check_keys(data, {"kind", "space", "table", "values"})
        space = RecordSpace.from_dict(data["space"])
        return cls(space, data["table"], labels_from_json(data["values"]))
