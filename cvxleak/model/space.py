"""`RecordSpace`: the set of possible datasets, a product of one finite alphabet per record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json
from cvxleak.core.validation import Array, in_order, label_tuple, short, whole_number
from cvxleak.core.value import Stored, check_keys, preview
from cvxleak.core.wording import counted
from cvxleak.model.prior import Prior, as_prior, has_labels

__all__ = ["RecordSpace"]

RECORD_LIMIT = 1 << 24
"""Most records that are ever made from their numbers."""

TABLE_LIMIT = 1 << 22
"""Most datasets, or joint values of a group of records, that are ever written out one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class RecordSpace(Stored):
    """The set of datasets X = X_1 x ... x X_n.

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
        """Return {0, 1}^n, for n up to 2^24.

        Examples
        --------
        >>> from cvxleak.model import RecordSpace
        >>> RecordSpace.binary(3).size
        8
        """
        return cls([(0, 1)] * whole_number(n, "n", 1, RECORD_LIMIT))

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
        # By powers: of a million factors one after the other, each product is a long one.
        return math.prod(k**count for k, count in Counter(self.shape).items())

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
                f"dataset: found {counted(len(given), 'record')}; the space has {self.records}"
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

    def values(self, records: int | Sequence[int]) -> tuple[Hashable, ...]:
        """Return the values of a record, or the joint values of a group of records as tuples.

        Raises
        ------
        ValidationError
            Not distinct indices of records, or a group with more than 2^22 joint values.

        Examples
        --------
        >>> from cvxleak.model import RecordSpace
        >>> space = RecordSpace([("no", "yes"), (0, 1), (0, 1)])
        >>> space.values(0), space.values([0, 2])
        (('no', 'yes'), (('no', 0), ('no', 1), ('yes', 0), ('yes', 1)))
        """
        group = self.group(records)
        if not isinstance(records, Iterable):
            return self.alphabets[group[0]]
        size = math.prod(self.shape[i] for i in group)
        if size > TABLE_LIMIT:
            raise ValidationError(
                f"records: these {len(group)} have {short(size)} joint values; "
                f"at most {TABLE_LIMIT} can be written out one by one"
            )
        return tuple(product(*(self.alphabets[i] for i in group)))

    def value_index(self, records: int | Sequence[int]) -> NDArray[np.intp]:
        """Return where in `values(records)` each dataset has its value, shape (|X|,).

        The datasets are in product order, the last record varying fastest.

        Raises
        ------
        ValidationError
            Not distinct indices of records, or a space of more than 2^22 datasets.

        Examples
        --------
        >>> from cvxleak.model import RecordSpace
        >>> RecordSpace.binary(2).value_index(1)
        array([0, 1, 0, 1])
        """
        group = self.group(records)
        check_table_size(self)
        axes = np.indices(self.shape, sparse=True)
        index = np.ravel_multi_index([axes[i] for i in group], [self.shape[i] for i in group])
        return np.broadcast_to(index, self.shape).ravel()

    def law(self, prior: Prior | ArrayLike, name: str = "prior") -> Array:
        """Return the probabilities of a prior on the datasets in product order, shape (|X|,).

        Parameters
        ----------
        prior : Prior, pandas.Series or array_like
            Matched by label if its labels are the datasets (tuples), in any order; an array, or a
            prior with the default labels 0, 1, ..., is matched by position.
        name : str, optional
            The argument's name in error messages.

        Raises
        ------
        ValidationError
            Not a prior, of another size than the space, or with other labels.

        Examples
        --------
        >>> from cvxleak.model import Prior, RecordSpace
        >>> RecordSpace.binary(1).law(Prior([0.25, 0.75], [(1,), (0,)]))
        array([0.75, 0.25])
        """
        given = as_prior(prior, self.size, name)
        # Only now is it certain that there are no more datasets than the prior has outcomes.
        if has_labels(prior):
            given = as_prior(given, self.size, name, tuple(self.datasets()))
        return given.probabilities

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
        runs = in_order(data["alphabets"], "alphabets")
        for run in runs:
            if not isinstance(run, Sequence) or len(run) != 2:
                raise ValidationError(
                    f"alphabets: found {short(run)}; pairs (alphabet, number of records) are needed"
                )
        total = sum(whole_number(count, "alphabets", 1) for _, count in runs)
        if total > RECORD_LIMIT:
            raise ValidationError(
                f"alphabets: found {short(total)} records in all; at most {RECORD_LIMIT} are made"
            )
        return cls([one for item, count in runs for one in [labels_from_json(item)] * count])

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
            return (
                f"RecordSpace({count} with {counted(len(alphabet), 'value')} {preview(alphabet)})"
            )
        return f"RecordSpace({count} with {preview(self.shape)} values)"


def check_table_size(space: RecordSpace) -> None:
    """Say so if a space is too large to write out."""
    # NumPy's arrays have at most 64 dimensions.
    if space.size > TABLE_LIMIT or space.records > 64:
        raise ValidationError(
            f"space: found {counted(space.size, 'dataset')} of {counted(space.records, 'record')}; "
            f"at most {TABLE_LIMIT} of at most 64 can be written out one by one"
        )
