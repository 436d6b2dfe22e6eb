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
"""Most outputs that are no numbers and get a column of their own, if not said otherwise."""

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
    single : bool
        Whether each column but `OTHERS` is one output.
    """

    labels: tuple[Hashable, ...]
    place: Callable[[Hashable], int]
    single: bool

    @property
    def listed(self) -> bool:
        """Whether each column is one output, and there are no others."""
        return self.single and self.labels[-1] != OTHERS


def columns_listed(outputs: Iterable[Hashable]) -> Columns:
    """Return a column for each output of a list; others are refused.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_listed
    >>> columns = columns_listed(["no", "yes"])
    >>> columns.place("yes"), columns.listed
    (1, True)
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

    return Columns(labels, place, single=True)


def columns_between(edges: Sequence[float]) -> Columns:
    """Return the intervals between increasing numbers, and below and above them.

    An interval has its lower end, not its upper one. What is no number is with the others.

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
    labels = (f"below {texts[0]}", *middle, f"from {texts[-1]}", OTHERS)

    def place(output: Any) -> int:
        return bisect_right(ends, output) if _is_number(output) else len(ends) + 1

    return Columns(labels, place, single=False)


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
    its width, and the intervals of the probabilities widen like the root of bins / draws. Of other
    outputs the `LABELS` most frequent have columns of their own.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_seen
    >>> columns_seen(["b", "a", "b"], None, 1000).labels
    ('a', 'b', 'any other')
    >>> columns_seen([k / 100 for k in range(100)], 4, 1000).labels
    ('below 0.25', '0.25 to 0.5', '0.5 to 0.75', 'from 0.75', 'any other')
    """
    numeric = all(map(_is_number, outputs))
    usual = max(BINS, round(2 * draws**0.2)) if numeric else LABELS
    many = usual if bins is None else whole_number(bins, "bins", 2)
    seen = Counter(outputs)
    if numeric and len(seen) > many:
        values = sorted(x for x in outputs if math.isfinite(x))  # type: ignore[arg-type]
        edges = {values[len(values) * part // many] for part in range(1, many)} - {values[0]}
        return columns_between(sorted(edges))
    del seen[OTHERS]
    kept = sorted((label for label, _ in seen.most_common(many)), key=_order)
    places = {label: place for place, label in enumerate(kept)}
    return Columns((*kept, OTHERS), lambda output: places.get(output, len(kept)), single=True)


def _is_number(output: Any) -> bool:
    if not isinstance(output, numbers.Real) or isinstance(output, bool):
        return False
    try:
        return not math.isnan(float(output))
    except OverflowError:
        return False


def _order(label: Any) -> tuple[float, str]:
    return (label if _is_number(label) else math.inf, str(label))
