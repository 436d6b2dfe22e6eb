"""`RecordSpace`: the set of possible datasets, a product of one finite alphabet per record."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

from cvxleak.errors import ValidationError
from cvxleak.model._files import labels_from_json
from cvxleak.model._validation import label_tuple, whole_number
from cvxleak.model._value import Value, preview

__all__ = ["RecordSpace"]


@dataclass(frozen=True, eq=False, repr=False)
class RecordSpace(Value):
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
        given = [tuple(alphabet) for alphabet in alphabets]
        if not given:
            raise ValidationError("alphabets: found none; at least one record is needed")
        checked: dict[tuple[Hashable, ...], tuple[Hashable, ...]] = {}
        for record, alphabet in enumerate(given):
            if not alphabet:
                raise ValidationError(f"alphabets[{record}]: found an empty alphabet")
            try:
                known = alphabet in checked
            except TypeError as error:
                raise ValidationError(f"alphabets[{record}]: {error}") from error
            if not known:
                checked[alphabet] = label_tuple(alphabet, len(alphabet), f"alphabets[{record}]")
        object.__setattr__(self, "alphabets", tuple(checked[alphabet] for alphabet in given))

    @classmethod
    def binary(cls, n: int) -> RecordSpace:
        """Return {0, 1}^n."""
        return cls([(0, 1)] * whole_number(n, "n", 1))

    @property
    def records(self) -> int:
        """Number n of records."""
        return len(self.alphabets)

    @property
    def shape(self) -> tuple[int, ...]:
        """Alphabet size of each record."""
        return tuple(len(alphabet) for alphabet in self.alphabets)

    @property
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
        """Return the position of each record's value in its alphabet."""
        if len(dataset) != self.records:
            raise ValidationError(
                f"dataset: found {len(dataset)} records; the space has {self.records}"
            )
        result = []
        for record, (value, alphabet) in enumerate(zip(dataset, self.alphabets, strict=True)):
            if value not in alphabet:
                raise ValidationError(
                    f"dataset[{record}]: found {value!r}; its alphabet is {preview(alphabet)}"
                )
            result.append(alphabet.index(value))
        return tuple(result)

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain lists, runs of equal alphabets counted."""
        runs = [[list(key), len(list(run))] for key, run in groupby(self.alphabets)]
        return {"alphabets": runs}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RecordSpace:
        """Return the space that `to_dict` wrote."""
        try:
            runs = [(labels_from_json(run), whole_number(n, "count", 1)) for run, n in
                    data["alphabets"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ValidationError(f"data: not a record space: {error}") from error
        return cls([alphabet for alphabet, count in runs for _ in range(count)])

    def __repr__(self) -> str:
        if len(set(self.alphabets)) == 1:
            alphabet = self.alphabets[0]
            return f"RecordSpace({self.records} records with {len(alphabet)} values " + (
                f"{preview(alphabet)})"
            )
        return f"RecordSpace({self.records} records with {preview(self.shape)} values)"
