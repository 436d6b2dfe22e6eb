"""Pairs of rows that privacy compares: of all inputs, or of datasets that differ in one record."""

from __future__ import annotations

from itertools import combinations

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cvxleak.core.errors import ValidationError
from cvxleak.core.wording import counted
from cvxleak.expressions.arguments import Rows, matched_query, rows_expression
from cvxleak.model import Query, RecordSpace


def row_pairs(
    channel: Rows, query: Query | RecordSpace | None = None, *, both: bool = True
) -> tuple[cp.Expression, cp.Expression] | None:
    """Return the rows q(.|x) and the rows q(.|x') of all pairs, each of shape (pairs, m).

    With a query f the channel is q(y|f(x)), and the pairs are the values that neighboring datasets
    can have. With a space the channel has a row per dataset, and the pairs are the neighbors. With
    neither, they are all pairs of inputs. Each comes once in each order, or in one order if not
    `both`. None if there is no pair.
    """
    if query is None:
        q = rows_expression(channel)
        pairs = list(combinations(range(q.shape[0]), 2))
    elif isinstance(query, RecordSpace):
        q = rows_expression(channel)
        if q.shape[0] != query.size:
            raise ValidationError(
                f"channel: found {counted(q.shape[0], 'row')}; "
                f"the space has {counted(query.size, 'dataset')}"
            )
        pairs = _dataset_pairs(query)
    else:
        q = matched_query(query, channel)
        pairs = sorted(query.neighbor_pairs())
    if not pairs:
        return None
    u, v = np.array(pairs).T
    if both:
        u, v = np.concatenate([u, v]), np.concatenate([v, u])
    return _rows(q, u), _rows(q, v)


def neighbors_of(query: Query | RecordSpace | None) -> Query | RecordSpace:
    """Refuse None where a function is about neighboring datasets."""
    if query is None:
        raise ValidationError("query: expected a Query or a RecordSpace, found None")
    return query


def _rows(q: cp.Expression, places: NDArray[np.intp]) -> cp.Expression:
    select = csr_array(
        (np.ones(len(places)), (np.arange(len(places)), places)), shape=(len(places), q.shape[0])
    )
    return select @ q


def _dataset_pairs(space: RecordSpace) -> list[tuple[int, int]]:
    index = np.arange(space.size).reshape(space.shape)
    found = []
    for axis, size in enumerate(space.shape):
        lines = np.moveaxis(index, axis, 0).reshape(size, -1)
        for a, b in combinations(range(size), 2):
            found.append(np.stack([lines[a], lines[b]], axis=1))
    return [(int(x), int(y)) for x, y in np.concatenate(found)] if found else []
