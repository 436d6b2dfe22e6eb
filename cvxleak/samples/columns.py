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
from cvxleak.samples.intervals import telling_edges

__all__ = ["OTHERS", "Columns", "columns_between", "columns_listed", "columns_seen"]

OTHERS = "any other"
"""Label of the column of all outputs that have none of their own."""

LABELS = 32
"""Most outputs, but numbers, that get a column of their own, if not said otherwise."""

VALUES = 10
"""So many different numbers have columns of their own, if not said otherwise."""

FINE = 64
"""Most intervals of numbers, if not said otherwise."""


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


def columns_seen(
    outputs: Sequence[Hashable], secrets: Sequence[int], bins: int | None, draws: float
) -> Columns:
    """Return columns for outputs like these, a part of the draws that serves for nothing else.

    Parameters
    ----------
    outputs : sequence of hashable
        Of the part.
    secrets : sequence of int
        Their secrets, 0, 1, ...
    bins : int, optional
        Most intervals, and most columns of single outputs.
    draws : float
        Draws of each secret in the rest, about.

    Notes
    -----
    Numbers of more than `VALUES` values (or `bins`) are sorted into intervals
    (`cvxleak.samples.intervals`); of other outputs the `LABELS` most frequent have columns of
    their own.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_seen
    >>> columns_seen(["b", "a", "b"], [0, 0, 1], None, 1000).labels
    ('a', 'b', 'any other')
    >>> outputs, secrets = [*range(100), "late"], [0] * 50 + [1] * 51
    >>> columns_seen(outputs, secrets, None, 1000).labels
    ('below 50', 'from 50', 'late', 'any other')
    """
    most = LABELS if bins is None else whole_number(bins, "bins", 2)
    seen = Counter(outputs)
    del seen[OTHERS]
    finite = [
        (float(y), x)  # type: ignore[arg-type]
        for y, x in zip(outputs, secrets, strict=True)
        if _is_number(y) and math.isfinite(y)  # type: ignore[arg-type]
    ]
    edges: list[float] = []
    if len({y for y, _ in finite}) > (VALUES if bins is None else most):
        values, whose = zip(*finite, strict=True)
        edges = telling_edges(values, whose, FINE if bins is None else most, draws)
        seen = Counter({label: count for label, count in seen.items() if not _is_number(label)})
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
