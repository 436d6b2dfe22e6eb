"""`AdditiveQuery`: a query of a sum of one contribution per record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json
from cvxleak.core.validation import (
    in_order,
    instance,
    label_tuple,
    plain_label,
    short,
    whole_number,
)
from cvxleak.core.value import check_keys
from cvxleak.core.wording import counted
from cvxleak.model._counting import Total, count_totals
from cvxleak.model.query import Query, runs_to_list
from cvxleak.model.space import RecordSpace, check_table_size

__all__ = ["AdditiveQuery"]


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveQuery(Query):
    """A query of a sum of one contribution per record: f(x) = value(sum_i c_i(x_i) [mod m]).

    Parameters
    ----------
    space : RecordSpace
        The datasets.
    contributions : sequence
        For each record a sequence with one contribution per value of its alphabet: non-negative
        integers, or tuples of them (all of one length) for several sums at once.
    value : mapping or callable, optional
        The query's value at each total (a tuple if the contributions are tuples); the total itself
        if left out. A mapping must hold every total that can occur.
    modulus : int, optional
        Totals are reduced modulo this.

    Raises
    ------
    ValidationError
        Contributions that do not fit the space or are not non-negative integers, a total without
        a value, a function that fails (the message says on which total), a value that is not
        hashable, more totals than can be counted.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    >>> count((1, 0, 1)), count.values
    (2, (0, 1, 2, 3))
    >>> count.fibers([0])
    [{0: 1, 1: 2, 2: 1}, {1: 1, 2: 2, 3: 1}]
    """

    kind: ClassVar[str] = "additive"

    space: RecordSpace
    contributions: tuple[tuple[Total, ...], ...]
    value_of_total: tuple[tuple[Total, Hashable], ...]
    modulus: int | None
    values: tuple[Hashable, ...] = field(init=False)
    _index: dict[Total, int] = field(init=False)

    def __init__(
        self,
        space: RecordSpace,
        contributions: Iterable[Iterable[int | tuple[int, ...]]],
        value: Mapping[Any, Hashable] | Callable[[Any], Hashable] | None = None,
        modulus: int | None = None,
    ) -> None:
        m = None if modulus is None else whole_number(modulus, "modulus", 1)
        checked, scalar = _contributions(instance(space, RecordSpace, "space"), contributions, m)
        self._hold(space=space, contributions=checked, modulus=m)
        valued = [
            (total, plain_label(_value(value, total, scalar), "value"))
            for total in sorted(self._counts(()))
        ]
        names = tuple(dict.fromkeys(name for _, name in valued))
        places = {name: place for place, name in enumerate(names)}
        object.__setattr__(self, "value_of_total", tuple(valued))
        object.__setattr__(self, "values", label_tuple(names, len(names), "value"))
        object.__setattr__(self, "_index", {total: places[name] for total, name in valued})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments of the constructor."""
        values = dict(self.value_of_total)
        return type(self), (self.space, self.contributions, values, self.modulus)

    def __call__(self, dataset: Sequence[Hashable]) -> Hashable:
        """Return f(dataset)."""
        places = self.space.indices(dataset)
        parts = [self.contributions[i][place] for i, place in enumerate(places)]
        return self.value_at(self._add(parts))

    def value_at(self, total: Total) -> Hashable:
        """Return the query's value at a total that can occur (a tuple, reduced)."""
        return self.values[self._index[total]]

    def fibers(self, records: int | Sequence[int]) -> list[dict[int, int]]:
        """Count the contexts of each joint value by query value (see `Query.fibers`)."""
        group = self.space.group(records)
        self.check_fibers(group)
        others = self._counts(group)
        by_shift: dict[Total, dict[int, int]] = {}
        result = []
        for joint in product(*(self.contributions[i] for i in group)):
            shift = self._add(joint)
            if shift not in by_shift:
                counts: dict[int, int] = {}
                for total, count in others.items():
                    place = self._index[self._add((total, shift))]
                    counts[place] = counts.get(place, 0) + count
                by_shift[shift] = dict(sorted(counts.items()))
            result.append(dict(by_shift[shift]))
        return result

    def lines(self, record: int) -> list[tuple[int, ...]]:
        """Return the distinct tuples of values over a record (see `Query.lines`)."""
        (i,) = self.space.group(record)
        return sorted(
            {
                tuple(self._index[self._add((rest, part))] for part in self.contributions[i])
                for rest in self._counts((i,))
            }
        )

    def exchangeable(self) -> list[list[int]]:
        """Partition the records by alphabet and contributions (see `Query.exchangeable`)."""
        parts: dict[Any, list[int]] = {}
        for i, key in enumerate(zip(self.space.alphabets, self.contributions, strict=True)):
            parts.setdefault(key, []).append(i)
        return list(parts.values())

    def table(self) -> NDArray[np.intp]:
        """Return the index of f(x) for every dataset x, shaped like the space."""
        check_table_size(self.space)
        totals: list[Total] = [(0,) * self._width]
        table = np.zeros((), dtype=np.intp)
        for record in self.contributions:
            sums = [[self._add((total, part)) for part in record] for total in totals]
            place = {total: k for k, total in enumerate({t for row in sums for t in row})}
            table = np.array([[place[total] for total in row] for row in sums])[table]
            totals = list(place)
        return np.array([self._index[total] for total in totals], dtype=np.intp)[table]

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain lists, ready for JSON."""
        runs = [(record, len(list(run))) for record, run in groupby(self.contributions)]
        return {
            "kind": self.kind,
            "space": self.space.to_dict(),
            "contributions": [[[list(part) for part in record], count] for record, count in runs],
            "totals": [list(total) for total, _ in self.value_of_total],
            "values": [value for _, value in self.value_of_total],
            "modulus": self.modulus,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the query that `to_dict` wrote."""
        check_keys(data, {"kind", "space", "contributions", "totals", "values", "modulus"})
        space = RecordSpace.from_dict(data["space"])
        contributions = labels_from_json(data["contributions"])  # each run once, not each record
        runs = runs_to_list(contributions, "contributions", space.records)
        totals = in_order(labels_from_json(data["totals"]), "totals")
        values = in_order(labels_from_json(data["values"]), "values")
        if len(totals) != len(values):
            raise ValidationError(
                f"totals: found {len(totals)}; there are {counted(len(values), 'value')}"
            )
        return cls(
            space,
            runs,
            dict(zip(label_tuple(totals, len(totals), "totals"), values, strict=True)),
            data["modulus"],
        )

    @property
    def _width(self) -> int:
        return len(self.contributions[0][0])

    def _add(self, parts: Iterable[Total]) -> Total:
        sums = map(sum, zip(*parts, strict=True))
        if self.modulus is None:
            return tuple(sums)
        return tuple(part % self.modulus for part in sums)

    def _counts(self, left_out: tuple[int, ...]) -> dict[Total, int]:
        """Count the assignments of all records but `left_out` by the total they add up to."""
        skip = set(left_out)
        kinds = Counter(part for i, part in enumerate(self.contributions) if i not in skip)
        return count_totals(kinds, self._width, self.modulus)


def _contributions(
    space: RecordSpace, contributions: Any, modulus: int | None
) -> tuple[tuple[tuple[Total, ...], ...], bool]:
    """Return the contributions as tuples of tuples, and whether they were plain integers."""
    given = [
        in_order(record, f"contributions[{i}]")
        for i, record in enumerate(in_order(contributions, "contributions"))
    ]
    if len(given) != space.records:
        raise ValidationError(
            f"contributions: found {counted(len(given), 'record')}; the space has {space.records}"
        )
    known: dict[Any, tuple[Total, ...]] = {}
    widths: set[int | None] = set()
    result = []
    for i, (record, size) in enumerate(zip(given, space.shape, strict=True)):
        name = f"contributions[{i}]"
        if len(record) != size:
            raise ValidationError(f"{name}: found {len(record)}; {size} are needed, one per value")
        if i and record is given[i - 1]:  # a run of a file, or of [c] * n
            result.append(result[-1])
            continue
        record = plain_label(record, name)
        if record not in known:
            widths |= {len(part) if isinstance(part, tuple) else None for part in record}
            known[record] = tuple(_total(part, name, modulus) for part in record)
        result.append(known[record])
    if len(widths) > 1 or 0 in widths:
        raise ValidationError(
            "contributions: expected integers, or tuples of integers of one length; found both, "
            "or tuples of different lengths or of length 0"
        )
    return tuple(result), widths == {None}


def _total(part: Any, name: str, modulus: int | None) -> Total:
    parts = part if isinstance(part, tuple) else (part,)
    total = tuple(whole_number(c, name, 0) for c in parts)
    return total if modulus is None else tuple(c % modulus for c in total)


def _value(value: Any, total: Total, scalar: bool) -> Hashable:
    key = total[0] if scalar else total
    if value is None:
        return key
    if isinstance(value, Mapping):
        if key not in value:
            raise ValidationError(f"value: the total {short(key)} can occur and has no value")
        return value[key]
    if not callable(value):
        raise ValidationError(f"value: expected a mapping or a function, found {short(value)}")
    try:
        return value(key)
    except Exception as error:
        raise ValidationError(
            f"value: it failed on the total {short(key)}: {type(error).__name__}: {error}"
        ) from error
