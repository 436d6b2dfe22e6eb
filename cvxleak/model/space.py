"""`RecordSpace`: the set of possible datasets, a product of one finite alphabet per record."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from typing import Any, Self

from cvxleak._files import labels_from_json
from cvxleak._validation import in_order, label_tuple, short, whole_number
from cvxleak._value import Stored, check_keys, preview
from cvxleak.errors import ValidationError

__all__ = ["RecordSpace"]

RECORD_LIMIT = 1 << 24
"""Most records of one kind that a file may ask for."""


@dataclass(frozen=True, eq=False, repr=False)
class RecordSpace(Stored):
    """The universe of datasets X = X_1 x ... x X_n.

    Parameters
    ----------
    alphabets : iterable of iterables of hashable
        The alphabet of each record: at least one record, each with at least one value.

    Raises
    ------
    ValidationError
        No records, an empty alphabet, a value that appears twice in one.

    Examples
    --------
    >>> from cvxleak.model import RecordSpace
    >>> space = RecordSpace([(0, 1, 2), ("no", "yes")])
    >>> space.size, space.shape
    (6, (3, 2))
    >>> RecordSpace.binary(3)
    RecordSpace(3 records with 2 values [0, 1])
    """

    alphabets: tuple[tuple[Hashable, ...], ...]

    def __init__(self, alphabets: Iterable[Iterable[Hashable]]) -> None:
        checked: dict[tuple[Hashable, ...], tuple[Hashable, ...]] = {}
        result = []
        for record, given in enumerate(in_order(alphabets, "alphabets")):
            name = f"alphabets[{record}]"
            alphabet = in_order(given, name)
            try:
                known = alphabet in checked
            except TypeError as error:
                raise ValidationError(f"{name}: a value is not hashable: {error}") from error
            if not known:
                if not alphabet:
                    raise ValidationError(f"{name}: found an empty alphabet")
                checked[alphabet] = label_tuple(alphabet, len(alphabet), name)
            result.append(checked[alphabet])
        if not result:
            raise ValidationError("alphabets: found none; at least one record is needed")
        object.__setattr__(self, "alphabets", tuple(result))

    @classmethod
    def binary(cls, n: int) -> Self:
        """Return {0, 1}^n."""
        return cls([(0, 1)] * whole_number(n, "n", 1))

    @property
    def records(self) -> int:
        """Number n of records."""
        return len(self.alphabets)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Alphabet size of each record."""
        return tuple(len(alphabet) for alphabet in self.alphabets)

    @cached_property
    def size(self) -> int:
        """Number |X| of datasets, exactly."""
        return math.prod(self.shape)

    @property
    def max_entropy(self) -> float:
        """Return log |X|: the largest entropy of an adversary's prior, in nats."""
        return math.log(self.size)

    def datasets(self) -> Iterator[tuple[Hashable, ...]]:
        """Iterate over all datasets, the last record varying fastest."""
        return product(*self.alphabets)

    def indices(self, dataset: Sequence[Hashable]) -> tuple[int, ...]:
        """Return the position of each record's value in its alphabet.

        Raises
        ------
        ValidationError
            Another number of records, or a value that is not in its alphabet.
        """
        given = in_order(dataset, "dataset")
        if len(given) != self.records:
            raise ValidationError(
                f"dataset: found {len(given)} records; the space has {self.records}"
            )
        result = []
        for record, (value, places) in enumerate(zip(given, self._places, strict=True)):
            try:
                result.append(places[value])
            except (KeyError, TypeError):
                raise ValidationError(
                    f"dataset[{record}]: found {short(value)}; "
                    f"its alphabet is {preview(self.alphabets[record])}"
                ) from None
        return tuple(result)

    def group(self, records: int | Sequence[int]) -> tuple[int, ...]:
        """Return a record's index, or the distinct indices of a group of records, as a tuple.

        Raises
        ------
        ValidationError
            No index, one that appears twice, or one that is not from 0 to n - 1.
        """
        given = in_order(records, "records") if isinstance(records, Iterable) else (records,)
        checked = tuple(whole_number(i, "records", 0, self.records - 1) for i in given)
        if not checked or len(set(checked)) != len(checked):
            raise ValidationError(f"records: found {short(checked)}; distinct indices are needed")
        return checked

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain lists, runs of equal alphabets counted."""
        runs = [[list(key), len(list(run))] for key, run in groupby(self.alphabets)]
        return {"alphabets": runs}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the space that `to_dict` wrote.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        check_keys(data, {"alphabets"})
        alphabets: list[Any] = []
        for run in in_order(data["alphabets"], "alphabets"):
            if not isinstance(run, Sequence) or len(run) != 2:
                raise ValidationError(
                    f"alphabets: found {short(run)}; pairs (alphabet, number of records) are needed"
                )
            count = whole_number(run[1], "alphabets", 1, RECORD_LIMIT)
            alphabets += [labels_from_json(run[0])] * count
        return cls(alphabets)

    @cached_property
    def _places(self) -> tuple[dict[Hashable, int], ...]:
        known = {
            alphabet: {value: place for place, value in enumerate(alphabet)}
            for alphabet in set(self.alphabets)
        }
        return tuple(known[alphabet] for alphabet in self.alphabets)

    def __repr__(self) -> str:
        count = f"{self.records} record" + ("s" if self.records > 1 else "")
        if len(set(self.alphabets)) == 1:
            alphabet = self.alphabets[0]
            return f"RecordSpace({count} with {len(alphabet)} values {preview(alphabet)})"
        return f"RecordSpace({count} with {preview(self.shape)} values)"
