"""Two queries of one dataset taken together."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.model.additive import AdditiveQuery
from cvxleak.model.query import Query
from cvxleak.model.table import TableQuery

__all__ = ["joint_query"]


def joint_query(first: Query, second: Query) -> AdditiveQuery | TableQuery:
    """Return the query (f(x), g(x)) of two queries on the same space.

    Two additive queries give an additive one, for any number of records; other pairs are written
    out, dataset by dataset.

    Raises
    ------
    ValidationError
        Too many pairs of totals to count, or too large a space to write out.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> from cvxleak.model.joint import joint_query
    >>> space = RecordSpace.binary(2)
    >>> count = AdditiveQuery(space, [(0, 1)] * 2)
    >>> parity = AdditiveQuery(space, [(0, 1)] * 2, modulus=2)
    >>> joint_query(count, parity).values
    ((0, 0), (1, 1), (2, 0))
    """
    if isinstance(first, AdditiveQuery) and isinstance(second, AdditiveQuery):
        return _joint_sum(first, second)
    width = len(second.values)
    codes = first.table() * width + second.table()
    pairs, places = np.unique(codes, return_inverse=True)
    values = [(first.values[p // width], second.values[p % width]) for p in pairs.tolist()]
    return TableQuery(first.space, places.reshape(codes.shape), values)


def _joint_sum(first: AdditiveQuery, second: AdditiveQuery) -> AdditiveQuery:
    queries = (first, second)
    if first.modulus is None and second.modulus is None:
        modulus, scales = None, (1, 1)
    else:
        # A sum mod m, times M / m, is a sum mod M; a plain sum is one mod anything larger than it.
        moduli = [query.modulus or 1 + _largest_total(query) for query in queries]
        modulus = math.lcm(*moduli)
        scales = (modulus // moduli[0], modulus // moduli[1])
    contributions = [
        [
            (*(c * scales[0] for c in one), *(c * scales[1] for c in two))
            for one, two in zip(*records, strict=True)
        ]
        for records in zip(first.contributions, second.contributions, strict=True)
    ]
    width = len(first.contributions[0][0])

    def value(total: tuple[int, ...]) -> tuple[object, object]:
        one = tuple(c // scales[0] for c in total[:width])
        two = tuple(c // scales[1] for c in total[width:])
        return first.value_at(one), second.value_at(two)

    return AdditiveQuery(first.space, contributions, value, modulus)


def _largest_total(query: AdditiveQuery) -> int:
    return max(c for total, _ in query.value_of_total for c in total)
