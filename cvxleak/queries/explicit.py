"""Queries that are written out: one value for every dataset of a small record space."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import instance, plain_label, short
from cvxleak.model import RecordSpace, TableQuery
from cvxleak.model.space import check_table_size

__all__ = ["from_function", "from_table"]


def from_function(
    space: RecordSpace, function: Callable[[tuple[Any, ...]], Hashable]
) -> TableQuery:
    """Return the query that a Python function of the dataset computes.

    The function is called once for every dataset.

    Parameters
    ----------
    space : RecordSpace
        The datasets, at most 2^22.
    function : callable
        Takes a dataset, a tuple with one value per record, and returns a hashable value.

    Returns
    -------
    TableQuery
        Its values are in increasing order if they are all numbers, otherwise in the order in
        which the datasets (last record fastest) first take them.

    Raises
    ------
    ValidationError
        A space that is too large, a function that is not callable or fails (the message names the
        dataset on which it does), a value that is not hashable or does not equal itself (NaN).

    Examples
    --------
    The query of DALENIUS Example 1, eq. (11): whether two records are equal, where one has three
    possible values and the other has two:

    >>> from cvxleak.model import RecordSpace
    >>> from cvxleak.queries import from_function
    >>> space = RecordSpace([(0, 1, 2), (0, 1)])
    >>> equal = from_function(space, lambda x: int(x[0] == x[1]))
    >>> equal((1, 1)), equal((2, 1)), equal.sensitivity
    (1, 0, 1)

    The value 2 of the first record equals no value of the second, so f is 0 in both contexts.

    >>> equal.fibers([0])
    [{0: 1, 1: 1}, {0: 1, 1: 1}, {0: 2}]
    """
    check_table_size(instance(space, RecordSpace, "space"))
    if not callable(function):
        raise ValidationError(f"function: expected a callable, found {short(function)}")
    return _query(space, _results(space, function), "function")


def from_table(space: RecordSpace, table: Mapping[Any, Hashable] | ArrayLike) -> TableQuery:
    """Return the query with the given value for every dataset.

    Parameters
    ----------
    space : RecordSpace
        The datasets, at most 2^22.
    table : mapping, pandas.Series or array_like
        A mapping (or a Series) from every dataset, as a tuple, to its value; or an array of
        values (not tuples) in product order (last record fastest), flat or shaped like the space.

    Returns
    -------
    TableQuery
        Its values are in increasing order if they are all numbers, otherwise in the order in
        which the datasets (last record fastest) first take them.

    Raises
    ------
    ValidationError
        A space that is too large, a dataset without a value, an unknown dataset, an array of
        another shape, a value that is not hashable or does not equal itself (NaN).

    Examples
    --------
    The parity of DALENIUS Example 5, eq. (43), for two records:

    >>> from cvxleak.model import RecordSpace
    >>> from cvxleak.queries import from_table, parity
    >>> space = RecordSpace.binary(2)
    >>> query = from_table(space, [[0, 1], [1, 0]])
    >>> query((1, 0)), query.fibers([0]) == parity(2).fibers([0])
    (1, True)
    >>> from_table(space, {(0, 0): "no", (0, 1): "no", (1, 0): "no", (1, 1): "yes"}).values
    ('no', 'yes')
    """
    check_table_size(instance(space, RecordSpace, "space"))
    given: Any = table
    if hasattr(given, "items"):
        return _query(space, _in_product_order(space, list(given.items())), "table")
    try:
        # As objects: NumPy would turn the 0 of [0, "no"] into a string.
        array = np.array(table, dtype=object)
    except ValueError as error:
        raise ValidationError(f"table: found rows of different lengths ({error})") from error
    if array.shape not in {(space.size,), space.shape}:
        raise ValidationError(
            f"table: found shape {array.shape}; ({space.size},) or {space.shape} is needed, "
            "or a mapping from datasets"
        )
    return _query(space, array.ravel(), "table")


def _results(space: RecordSpace, function: Callable[[Any], Any]) -> Iterator[Any]:
    for dataset in space.datasets():
        try:
            result = function(dataset)
        except Exception as error:
            raise ValidationError(
                f"function: it failed on the dataset {short(dataset)}: "
                f"{type(error).__name__}: {error}"
            ) from error
        yield result


def _in_product_order(space: RecordSpace, items: list[tuple[Any, Hashable]]) -> list[Hashable]:
    given = dict(items)
    if len(given) < len(items):
        raise ValidationError("table: a dataset appears twice; each has one value")
    result = []
    for dataset in space.datasets():
        # The index of a Series about one record has that record's values, not tuples of them.
        key = dataset if dataset in given or space.records > 1 else dataset[0]
        if key not in given:
            raise ValidationError(f"table: the dataset {short(dataset)} has no value")
        result.append(given.pop(key))
    if given:
        raise ValidationError(f"table: {short(next(iter(given)))} is not a dataset of the space")
    return result


def _query(space: RecordSpace, results: Iterable[Any], name: str) -> TableQuery:
    first_seen: dict[Hashable, int] = {}
    places = []
    for result in results:
        value = plain_label(result, name)
        places.append(first_seen.setdefault(value, len(first_seen)))
    values = list(first_seen)
    if all(isinstance(value, (int, float)) for value in values):
        values.sort()  # pyright: ignore[reportCallIssue, reportArgumentType]
    rank = {value: place for place, value in enumerate(values)}
    order = np.array([rank[value] for value in first_seen])
    return TableQuery(space, order[places], values)
