"""Queries whose value is a whole table of counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import product

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, label_tuple, whole_number
from cvxleak.model import AdditiveQuery, RecordSpace
from cvxleak.model.space import RECORD_LIMIT

__all__ = ["crosstab", "histogram"]

CATEGORY_LIMIT = 1 << 12
"""Most categories that are made from their number."""


def histogram(
    n: int, categories: int | Iterable[Hashable], *, others: Iterable[Hashable] = ()
) -> AdditiveQuery:
    """Return how many of n records have each category, as a tuple of counts.

    Changing one record lowers one count by 1 and raises another by 1.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    categories : int or iterable of hashable
        The values of a record that are counted, or their number (0, 1, ...).
    others : iterable of hashable
        Values of a record that are not counted.

    Returns
    -------
    AdditiveQuery
        Its values are the tuples of counts.

    Raises
    ------
    ValidationError
        `n` or `categories` is not a positive integer, a repeated category, or too many tuples.

    Examples
    --------
    >>> from cvxleak.queries import histogram
    >>> query = histogram(2, ["yes", "no"], others=["no answer"])
    >>> query(("yes", "no answer")), query.values
    ((1, 0), ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)))
    """
    counted = _listed(categories, "categories")
    rest = in_order(others, "others")
    alphabet = label_tuple((*counted, *rest), len(counted) + len(rest), "others")
    places = range(len(counted))
    units = [tuple(int(i == place) for i in places) for place in range(len(alphabet))]
    records = whole_number(n, "n", 1, RECORD_LIMIT)
    space = RecordSpace([alphabet] * records)
    return AdditiveQuery(space, [units] * records)


def crosstab(
    n: int, rows: int | Iterable[Hashable], columns: int | Iterable[Hashable]
) -> AdditiveQuery:
    """Return how many of n records have each pair of a row and a column, as a tuple of counts.

    It is the `histogram` of the pairs, row by row. Sums of rows and columns are functions of it;
    `cvxleak.tables.Table` says which are published, and with which noise.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    rows, columns : int or iterable of hashable
        The categories of the two variables, or their numbers (0, 1, ...).

    Raises
    ------
    ValidationError
        As `histogram`.

    Examples
    --------
    >>> from cvxleak.queries import crosstab
    >>> query = crosstab(3, ["f", "m"], ["no", "yes"])
    >>> query((("f", "yes"), ("m", "no"), ("f", "yes")))
    (0, 2, 1, 0)
    """
    return histogram(n, list(product(_listed(rows, "rows"), _listed(columns, "columns"))))


def _listed(given: int | Iterable[Hashable], name: str) -> tuple[Hashable, ...]:
    """Return categories, or as many as a number says."""
    if not isinstance(given, Iterable):
        return tuple(range(whole_number(given, name, 1, CATEGORY_LIMIT)))
    listed = in_order(given, name)
    if not listed:
        raise ValidationError(f"{name}: found none; at least one is needed")
    return label_tuple(listed, len(listed), name)
