"""`Query`: a deterministic function of the dataset, with exact counts of its fibers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import Ordering, fmpz_mpoly_ctx
from numpy.typing import ArrayLike, NDArray

from cvxleak.errors import ValidationError
from cvxleak.model._files import labels_from_json
from cvxleak.model._validation import label_tuple, whole_number
from cvxleak.model._value import Value, preview
from cvxleak.model.space import RecordSpace

__all__ = ["AdditiveQuery", "Query", "TableQuery"]

TABLE_LIMIT = 1 << 22
"""Most datasets that are ever written out one by one."""

Total = tuple[int, ...]


class Query(Value, ABC):
    """A deterministic function f of the dataset (DALENIUS Definition 3).

    Two forms exist: `AdditiveQuery`, for values that depend on a sum over the records (its fibers
    are counted by polynomial arithmetic, for thousands of records), and `TableQuery`, one value per
    dataset. `cvxleak.queries` has the usual ones by name.
    """

    space: RecordSpace
    values: tuple[Hashable, ...]

    @abstractmethod
    def __call__(self, dataset: Sequence[Hashable]) -> Hashable:
        """Return f(dataset)."""

    @abstractmethod
    def fibers(self, records: Sequence[int]) -> list[dict[int, int]]:
        """Count, for each joint value of `records`, the contexts that give each query value.

        Element a of the list (joint values in product order, last record fastest) maps the index
        of a query value v to the exact number of assignments of the other records with f = v.
        """

    @abstractmethod
    def exchangeable(self) -> list[list[int]]:
        """Partition the records so that swapping two of one part never changes f."""

    @abstractmethod
    def neighbor_pairs(self) -> set[tuple[int, int]]:
        """Return all pairs of value indices that two datasets differing in one record can have."""

    @abstractmethod
    def table(self) -> NDArray[np.intp]:
        """Return the index of f(x) in `values` for every dataset x, shaped like the space."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain lists, ready for JSON."""

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Query:
        """Return the query that `to_dict` wrote."""
        try:
            space = RecordSpace.from_dict(data["space"])
            values = labels_from_json(data["values"])
            if data["kind"] == "additive":
                runs = [(labels_from_json(run), count) for run, count in data["contributions"]]
                return AdditiveQuery(
                    space,
                    [run for run, count in runs for _ in range(count)],
                    {tuple(total): value for total, value in
                     zip(labels_from_json(data["totals"]), values, strict=True)},
                    data["modulus"],
                )
            if data["kind"] == "table":
                return TableQuery(space, np.array(data["table"], dtype=np.intp), values)
        except (KeyError, TypeError, ValueError) as error:
            raise ValidationError(f"data: not a query: {error}") from error
        raise ValidationError(f"data: found query kind {data['kind']!r}; additive or table")

    @property
    def sensitivity(self) -> float:
        """Largest |f(x) - f(x')| over datasets that differ in one record (LEAKAGE 4.1).

        The values are compared as the numbers that they are: a sum mod m wraps around, so its
        sensitivity is m - 1 whenever there are enough records to wrap, and 1 only on the cycle
        (`cyclic_sensitivity`).

        Raises
        ------
        ValidationError
            If a value of the query is not a number.
        """
        numbers = self._numbers()
        return max((abs(numbers[u] - numbers[v]) for u, v in self.neighbor_pairs()), default=0.0)

    def cyclic_sensitivity(self, modulus: int) -> float:
        """Largest distance of f(x), f(x') around a cycle of length `modulus`, x and x' neighbors."""
        m = whole_number(modulus, "modulus", 1)
        numbers = self._numbers()
        gaps = [(numbers[u] - numbers[v]) % m for u, v in self.neighbor_pairs()]
        return max((min(gap, m - gap) for gap in gaps), default=0.0)

    def _numbers(self) -> list[float]:
        for value in self.values:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValidationError(
                    f"query: its value {value!r} is not a number, so it has no sensitivity"
                )
        return list(self.values)  # pyright: ignore[reportReturnType]

    def _check_size(self) -> None:
        if self.space.size > TABLE_LIMIT:
            raise ValidationError(
                f"query: the space has {self.space.size} datasets; "
                f"at most {TABLE_LIMIT} can be written out one by one"
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.space.records} records -> "
            f"{len(self.values)} values {preview(self.values)})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveQuery(Query):
    """A query of a sum of one contribution per record: f(x) = value(sum_i c_i(x_i) [mod m]).

    Parameters
    ----------
    space : RecordSpace
        The datasets.
    contributions : sequence
        For each record a tuple with one contribution per value of its alphabet: non-negative
        integers, or tuples of them (all of one length) for several sums at once.
    value : mapping or callable, optional
        The query's value at each total (a tuple if the contributions are tuples); the total itself
        if left out. A mapping must hold every total that can occur.
    modulus : int, optional
        Totals are reduced modulo this.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    >>> count((1, 0, 1)), count.values
    (2, (0, 1, 2, 3))
    >>> count.fibers([0])
    [{0: 1, 1: 2, 2: 1}, {1: 1, 2: 2, 3: 1}]
    """

    space: RecordSpace
    contributions: tuple[tuple[Total, ...], ...]
    value_of_total: tuple[tuple[Total, Hashable], ...]
    modulus: int | None

    def __init__(
        self,
        space: RecordSpace,
        contributions: Iterable[Iterable[int | tuple[int, ...]]],
        value: Mapping[Any, Hashable] | Callable[[Any], Hashable] | None = None,
        modulus: int | None = None,
    ) -> None:
        given = [tuple(record) for record in contributions]
        if len(given) != space.records:
            raise ValidationError(
                f"contributions: found {len(given)} records; the space has {space.records}"
            )
        m = None if modulus is None else whole_number(modulus, "modulus", 1)
        scalar = not any(isinstance(part, tuple) for part in given[0])
        rows = {}
        for i, record in enumerate(given):
            key = (record, len(space.alphabets[i]))
            if key not in rows:
                rows[key] = _totals(record, f"contributions[{i}]", key[1], m)
        checked = tuple(rows[record, len(space.alphabets[i])] for i, record in enumerate(given))
        if len({len(part) for record in rows.values() for part in record}) != 1:
            raise ValidationError("contributions: found tuples of different lengths")
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "contributions", checked)
        object.__setattr__(self, "modulus", m)
        reachable = sorted(self._counts(()))
        table = []
        for total in reachable:
            key = total[0] if scalar and len(total) == 1 else total
            if value is None:
                table.append((total, key))
            elif callable(value):
                table.append((total, value(key)))
            elif key in value or total in value:
                table.append((total, value[key] if key in value else value[total]))
            else:
                raise ValidationError(f"value: the total {key!r} can occur and has no value")
        object.__setattr__(self, "value_of_total", tuple(table))
        values = tuple(dict.fromkeys(result for _, result in table))
        object.__setattr__(self, "values", label_tuple(values, len(values), "value"))
        places = {result: place for place, result in enumerate(values)}
        index = {total: places[result] for total, result in table}
        object.__setattr__(self, "_index", index)

    def _state(self) -> tuple[Any, ...]:
        return self.space, self.contributions, self.value_of_total, self.modulus

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            self.space,
            self.contributions,
            dict(self.value_of_total),
            self.modulus,
        )

    def __call__(self, dataset: Sequence[Hashable]) -> Hashable:
        places = self.space.indices(dataset)
        parts = [self.contributions[i][place] for i, place in enumerate(places)]
        return self.values[self._index[self._add(parts)]]

    def fibers(self, records: Sequence[int]) -> list[dict[int, int]]:
        others = self._counts(tuple(records))
        result = []
        for joint in _product([self.contributions[i] for i in records]):
            shift = self._add(joint)
            counts: dict[int, int] = {}
            for total, count in others.items():
                place = self._index[self._add([total, shift])]
                counts[place] = counts.get(place, 0) + count
            result.append(dict(sorted(counts.items())))
        return result

    def exchangeable(self) -> list[list[int]]:
        parts: dict[Any, list[int]] = {}
        for i, key in enumerate(zip(self.space.alphabets, self.contributions, strict=True)):
            parts.setdefault(key, []).append(i)
        return list(parts.values())

    def neighbor_pairs(self) -> set[tuple[int, int]]:
        pairs = set()
        for part in self.exchangeable():
            steps = set(self.contributions[part[0]])
            for rest in self._counts((part[0],)):
                places = {self._index[self._add([rest, step])] for step in steps}
                pairs |= {(u, v) for u in places for v in places if u < v}
        return pairs

    def table(self) -> NDArray[np.intp]:
        self._check_size()
        columns = [np.array(record) for record in self.contributions]
        width = columns[0].shape[1]
        totals = np.zeros((*self.space.shape, width), dtype=np.int64)
        for i, column in enumerate(columns):
            view = [1] * len(columns) + [width]
            view[i] = len(column)
            totals = totals + column.reshape(view)
        if self.modulus is not None:
            totals %= self.modulus
        flat, inverse = np.unique(totals.reshape(-1, width), axis=0, return_inverse=True)
        places = np.array([self._index[tuple(int(t) for t in total)] for total in flat])
        return places[inverse].reshape(self.space.shape)

    def to_dict(self) -> dict[str, Any]:
        runs: list[list[Any]] = []
        for record in self.contributions:
            if runs and runs[-1][0] == record:
                runs[-1][1] += 1
            else:
                runs.append([record, 1])
        return {
            "kind": "additive",
            "space": self.space.to_dict(),
            "contributions": runs,
            "totals": [total for total, _ in self.value_of_total],
            "values": [value for _, value in self.value_of_total],
            "modulus": self.modulus,
        }

    def _add(self, parts: Iterable[Total]) -> Total:
        sums = tuple(map(sum, zip(*parts, strict=True)))
        return sums if self.modulus is None else tuple(part % self.modulus for part in sums)

    def _counts(self, left_out: tuple[int, ...]) -> dict[Total, int]:
        """Count the assignments of all records but `left_out` by the total they add up to.

        The generating function is a product of one polynomial per record; equal records give a
        power, so n = 10,000 costs one exponentiation.
        """
        width = len(self.contributions[0][0])
        context = fmpz_mpoly_ctx.get([f"t{j}" for j in range(width)], Ordering.lex)
        powers: dict[tuple[Total, ...], int] = {}
        for i, record in enumerate(self.contributions):
            if i not in left_out:
                powers[record] = powers.get(record, 0) + 1
        product_ = context.from_dict({(0,) * width: 1})
        for record, power in powers.items():
            counts: dict[Total, int] = {}
            for part in record:
                counts[part] = counts.get(part, 0) + 1
            product_ = self._fold(product_ * self._fold(context.from_dict(counts) ** power))
        return {
            tuple(int(e) for e in total): int(count) for total, count in product_.to_dict().items()
        }

    def _fold(self, polynomial: Any) -> Any:
        if self.modulus is None:
            return polynomial
        folded: dict[Total, Any] = {}
        for total, count in polynomial.to_dict().items():
            key = tuple(int(e) % self.modulus for e in total)
            folded[key] = folded.get(key, 0) + count
        return polynomial.context().from_dict(folded)


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

    Examples
    --------
    >>> from cvxleak.model import RecordSpace, TableQuery
    >>> equal = TableQuery(RecordSpace([(0, 1, 2), (0, 1)]), [1, 0, 0, 1, 0, 0], ("no", "yes"))
    >>> equal((1, 1))
    'yes'
    """

    space: RecordSpace
    places: NDArray[np.intp]
    values: tuple[Hashable, ...]

    def __init__(
        self, space: RecordSpace, places: ArrayLike, values: Iterable[Hashable]
    ) -> None:
        object.__setattr__(self, "space", space)
        self._check_size()
        array = np.array(places)
        if not np.issubdtype(array.dtype, np.integer) or array.size != space.size:
            raise ValidationError(
                f"places: found an array of {array.dtype} with shape {array.shape}; "
                f"{space.size} integers are needed, one per dataset"
            )
        array = array.astype(np.intp).reshape(space.shape)
        names = tuple(values)
        if set(np.unique(array)) != set(range(len(names))):
            raise ValidationError(
                f"places: found indices from {array.min()} to {array.max()}; each of "
                f"0 to {len(names) - 1} must occur and no other"
            )
        array.setflags(write=False)
        object.__setattr__(self, "places", array)
        object.__setattr__(self, "values", label_tuple(names, len(names), "values"))

    def __call__(self, dataset: Sequence[Hashable]) -> Hashable:
        return self.values[int(self.places[self.space.indices(dataset)])]

    def fibers(self, records: Sequence[int]) -> list[dict[int, int]]:
        moved = np.moveaxis(self.places, list(records), range(len(records)))
        rows = moved.reshape(math.prod(self.space.shape[i] for i in records), -1)
        result = []
        for row in rows:
            places, counts = np.unique(row, return_counts=True)
            result.append({int(v): int(c) for v, c in zip(places, counts, strict=True)})
        return result

    def exchangeable(self) -> list[list[int]]:
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

    def neighbor_pairs(self) -> set[tuple[int, int]]:
        pairs: set[tuple[int, int]] = set()
        for i, size in enumerate(self.space.shape):
            lines = np.moveaxis(self.places, i, -1).reshape(-1, size)
            for u in range(size):
                for v in range(u):
                    couples = np.unique(np.sort(lines[:, [u, v]], axis=1), axis=0)
                    pairs |= {(int(x), int(y)) for x, y in couples if x != y}
        return pairs

    def table(self) -> NDArray[np.intp]:
        return self.places

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "table",
            "space": self.space.to_dict(),
            "table": self.places.ravel().tolist(),
            "values": list(self.values),
        }


def _product(parts: Sequence[Sequence[Total]]) -> list[list[Total]]:
    joint: list[list[Total]] = [[]]
    for part in parts:
        joint = [[*head, tail] for head in joint for tail in part]
    return joint


def _totals(
    record: tuple[Any, ...], name: str, size: int, modulus: int | None
) -> tuple[Total, ...]:
    if len(record) != size:
        raise ValidationError(f"{name}: found {len(record)} contributions; {size} are needed")
    totals = tuple(
        tuple(whole_number(c, name, 0) for c in (part if isinstance(part, tuple) else (part,)))
        for part in record
    )
    return totals if modulus is None else tuple(tuple(c % modulus for c in t) for t in totals)
