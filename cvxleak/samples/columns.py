"""Columns: what the outputs of a sample are sorted into, fixed before the intervals are made."""

from __future__ import annotations

import math
import numbers
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, label_tuple, real_number, short, whole_number
from cvxleak.core.value import preview

__all__ = ["OTHERS", "Columns", "columns_between", "columns_listed", "columns_seen"]

OTHERS = "any other"
"""Label of the column of all outputs that have none of their own."""

LABELS = 32
"""Most outputs, but numbers, that get a column of their own, if not said otherwise."""

BINS = 10
"""So many intervals of numbers are not too many for any sample, if not said otherwise."""


@dataclass(frozen=True)
class Columns:
    """What outputs are sorted into.

    Attributes
    ----------
    labels : tuple of hashable
        The columns; the last one is `OTHERS`, unless the outputs were listed beforehand.
    place : callable
        output -> number of its column.
    edges : tuple of float
        Ends of the intervals that numbers are sorted into, the first columns; none if each column
        but `OTHERS` is one output.
    """

    labels: tuple[Hashable, ...]
    place: Callable[[Hashable], int]
    edges: tuple[float, ...] = ()


def columns_listed(outputs: Iterable[Hashable]) -> Columns:
    """Return a column for each output of a list; others are refused.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_listed
    >>> columns = columns_listed(["no", "yes"])
    >>> columns.place("yes")
    1
    """
    given = in_order(outputs, "outputs")
    labels = label_tuple(given, len(given), "outputs")
    if not labels:
        raise ValidationError("outputs: found none")
    places = {label: place for place, label in enumerate(labels)}

    def place(output: Hashable) -> int:
        if output not in places:
            raise ValidationError(
                f"outputs: a draw has the output {short(output)}; listed are {preview(labels)}"
            )
        return places[output]

    return Columns(labels, place)


def columns_between(edges: Iterable[float], labels: Sequence[Hashable] = ()) -> Columns:
    """Return the intervals between increasing numbers, and below and above them.

    An interval has its lower end, not its upper one. Of what is no number, `labels` have columns of
    their own.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_between
    >>> columns = columns_between([0.0, 1.5])
    >>> columns.labels
    ('below 0', '0 to 1.5', 'from 1.5', 'any other')
    >>> columns.place(1.5), columns.place("late")
    (2, 3)
    """
    ends = [real_number(edge, "bins") for edge in in_order(edges, "bins")]
    if not ends or any(low >= high for low, high in pairwise(ends)):
        raise ValidationError(f"bins: found {short(ends)}; edges have to increase")
    if not all(map(math.isfinite, ends)):
        raise ValidationError(f"bins: found {short(ends)}; edges have to be finite")
    digits = 3
    while len({f"{end:.{digits}g}" for end in ends}) < len(ends):
        digits += 1
    texts = [f"{end:.{digits}g}" for end in ends]
    middle = [f"{low} to {high}" for low, high in pairwise(texts)]
    intervals = (f"below {texts[0]}", *middle, f"from {texts[-1]}")
    others = [label for label in labels if label not in intervals]
    names = (*intervals, *others, OTHERS)
    places = {label: place for place, label in enumerate(others, len(intervals))}

    def place(output: Any) -> int:
        if _is_number(output):
            return bisect_right(ends, output)
        return places.get(output, len(names) - 1)

    return Columns(names, place, tuple(ends))


def columns_seen(outputs: Sequence[Hashable], bins: int | None, draws: int) -> Columns:
    """Return columns for outputs like these, a part of the draws that serves for nothing else.

    Parameters
    ----------
    outputs : sequence of hashable
        Of the part.
    bins : int, optional
        Most columns, besides the one of others.
    draws : int
        Draws of each input that the columns will be counted for, at least.

    Notes
    -----
    More numbers than bins are sorted into intervals that are equally frequent in the part: at most
    10, or 2 draws^(1/5) if that is more, because an interval costs information like the square of
    its width, and the ends of the probabilities part like the root of bins / draws. Of other
    outputs the `LABELS` most frequent have columns of their own.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_seen
    >>> columns_seen(["b", "a", "b"], None, 1000).labels
    ('a', 'b', 'any other')
    >>> columns_seen([*(k / 100 for k in range(100)), "late"], 4, 1000).labels
    ('below 0.25', '0.25 to 0.5', '0.5 to 0.75', 'from 0.75', 'late', 'any other')
    """
    seen = Counter(outputs)
    del seen[OTHERS]
    values = sorted(x for x in outputs if _is_number(x) and math.isfinite(x))  # type: ignore
    many = max(BINS, round(2 * draws**0.2)) if bins is None else whole_number(bins, "bins", 2)
    edges: list[float] = []
    if len(set(values)) > many:
        edges = sorted({values[len(values) * k // many] for k in range(1, many)} - {values[0]})
        seen = Counter({label: count for label, count in seen.items() if not _is_number(label)})
    most = LABELS if bins is None else many
    kept = sorted((label for label, _ in seen.most_common(most)), key=_order)
    if edges:
        return columns_between(edges, kept)
    places = {label: place for place, label in enumerate(kept)}
    return Columns((*kept, OTHERS), lambda output: places.get(output, len(kept)))


def _is_number(output: Any) -> bool:
    if not isinstance(output, numbers.Real) or isinstance(output, bool):
        return False
    try:
        return not math.isnan(float(output))
    except OverflowError:
        return False


def _order(label: Any) -> tuple[float, str]:
    return (label if _is_number(label) else math.inf, str(label))
