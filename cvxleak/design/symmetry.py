"""Finding symmetries of a design problem, so that datasets can share a row of the channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.validation import one_of
from cvxleak.model import Query, RecordSpace, TableQuery
from cvxleak.proofs.bounds.design_rows import Generator, Law, Rows, image, orbits, types_query

__all__ = ["FORMS", "find_rows"]

FORMS = ("auto", "orbits", "datasets", "query")

STATED = 1 << 16
"""Spaces up to this size are searched for symmetries dataset by dataset."""

WORK = 1 << 28
"""Most datasets that are moved by candidates for symmetries."""


def find_rows(query: Query, laws: Sequence[Law], form: str, total: bool) -> Rows:
    """Return the rows of a channel: as few as the symmetries that are found allow, or as asked.

    "orbits": the candidates are exchanges of two records (as they are, and with their values
    reversed), relabelings of one or two records by a transposition or a cyclic shift, and the
    reversal of all records at once. Those that leave f and the distributions alone generate the
    group. "datasets": one row per dataset. "query": one row per value of f.

    Raises
    ------
    ValidationError
        An unknown form, or a space that is too large for what is asked.
    """
    if one_of(form, FORMS, "rows") == "query":
        return Rows(query, query, "query")
    space, stated = query.space, any(law.on == "datasets" for law in laws)
    if form == "datasets":
        return _stated(query, np.arange(space.size), ())
    if total:
        return _classes(query, laws) if stated else Rows(query, query, "classes")
    if space.size > STATED and not stated:
        return Rows(query, types_query(query), "types")
    kept = tuple(_symmetries(query, laws))
    return _stated(query, orbits(space, kept), kept)


def _stated(query: Query, labels: NDArray[np.intp], generators: tuple[Generator, ...]) -> Rows:
    """Return rows that are written out; the query itself where it tells the same datasets apart."""
    first = np.unique(labels, return_index=True)[1]
    if len(first) == len(query.values):
        return Rows(query, query, "orbits", generators)
    # Numbered in the order of their first datasets, which name them.
    order = np.argsort(first)
    number = np.empty(len(first), dtype=np.intp)
    number[order] = np.arange(len(first))
    alphabets = query.space.alphabets
    names = [
        tuple(alphabet[i] for alphabet, i in zip(alphabets, places, strict=True))
        for places in np.transpose(np.unravel_index(np.sort(first), query.space.shape)).tolist()
    ]
    return Rows(query, TableQuery(query.space, number[labels], names), "orbits", generators)


def _classes(query: Query, laws: Sequence[Law]) -> Rows:
    columns = [query.table().ravel()]
    columns += [law.levels for law in laws if law.on == "datasets"]
    labels = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].ravel()
    rows = _stated(query, labels.astype(np.intp), ())
    return Rows(query, rows.query, "classes")


def _symmetries(query: Query, laws: Sequence[Law]) -> Iterator[Generator]:
    kept = [query.table().ravel()]
    kept += [law.levels for law in laws if law.on == "datasets"]
    work = 0
    for generator in _candidates(query.space):
        work += query.space.size
        if work > WORK:
            return
        moved = image(query.space, generator)
        if all(np.array_equal(values, values[moved]) for values in kept):
            yield generator


def _candidates(space: RecordSpace) -> Iterator[Generator]:
    n, shape = space.records, space.shape
    still = tuple(range(n))
    same = [tuple(range(k)) for k in shape]
    for i, j in combinations(range(n), 2):
        if shape[i] == shape[j]:
            places = list(still)
            places[i], places[j] = j, i
            yield tuple(places), tuple(same)
            flipped = [r[::-1] if k in (i, j) else r for k, r in enumerate(same)]
            yield tuple(places), tuple(flipped)
    moves = [_moves(k) for k in shape]
    for i in range(n):
        for one in moves[i]:
            yield still, tuple(one if k == i else r for k, r in enumerate(same))
    yield still, tuple(r[::-1] for r in same)
    for i, j in combinations(range(n), 2):
        for one in moves[i]:
            for other in moves[j]:
                changed = {i: one, j: other}
                yield still, tuple(changed.get(k, r) for k, r in enumerate(same))


def _moves(size: int) -> list[tuple[int, ...]]:
    """Return the transpositions and the cyclic shifts of a record's values, but for doing nothing.

    Examples
    --------
    >>> from cvxleak.design.symmetry import _moves
    >>> _moves(2), len(_moves(3))
    ([(1, 0)], 5)
    """
    found: dict[tuple[int, ...], None] = {}
    for i, j in combinations(range(size), 2):
        swapped = list(range(size))
        swapped[i], swapped[j] = j, i
        found[tuple(swapped)] = None
    for shift in range(1, size):
        found[tuple((a + shift) % size for a in range(size))] = None
    return list(found)
