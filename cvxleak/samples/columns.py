"""Columns into which a sample's outputs are sorted, fixed before intervals are computed."""

from __future__ import annotations

import math
import numbers
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, label_tuple, real_number, short, whole_number
from cvxleak.core.value import preview
from cvxleak.samples.intervals import telling_edges

__all__ = ["OTHERS", "Columns", "columns_between", "columns_listed", "columns_seen"]

Groups = dict[Hashable, list[Hashable]]
"""The outputs of columns, by the columns' labels."""

OTHERS = "any other"
"""Label of the column of all outputs that have none of their own."""

LABELS = 32
"""Default of the largest number of outputs with their own columns, if they are not numbers."""

VALUES = 10
"""So many different numbers have columns of their own, if not said otherwise."""

FINE = 64
"""Most intervals of numbers, if not said otherwise."""


@dataclass(frozen=True)
class Columns:
    """Columns into which outputs are sorted.

    Attributes
    ----------
    labels : tuple of hashable
        The columns.
    places : mapping of hashable to int
        The columns of single outputs.
    edges : tuple of float
        Ends of the intervals that numbers are sorted into, the first columns; none if there are no
        such columns.
    others : bool
        Whether the last column is for all outputs that have no other, `OTHERS`.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_between
    >>> columns = columns_between([0.0, 1.5], {"late": ["late"]})
    >>> columns.labels
    ('below 0', '0 to 1.5', 'from 1.5', 'late', 'any other')
    >>> [columns.place(y) for y in (-3, 1.5, "late", "lost")], columns.merged
    ([0, 2, 3, 4], True)
    """

    labels: tuple[Hashable, ...]
    places: Mapping[Hashable, int]
    edges: tuple[float, ...] = ()
    others: bool = True

    @property
    def merged(self) -> bool:
        """Whether a column but `OTHERS` is for several outputs."""
        return bool(self.edges) or len(self.places) > len(set(self.places.values()))

    def place(self, output: Any) -> int:
        """Return the number of an output's column.

        Raises
        ------
        ValidationError
            The output has no column, and there is none for other outputs.
        """
        if self.edges and _is_number(output):
            return bisect_right(self.edges, output)
        if output in self.places:
            return self.places[output]
        if self.others:
            return len(self.labels) - 1
        raise ValidationError(
            f"outputs: a draw has the output {short(output)}; listed are {preview(self.labels)}"
        )


def columns_listed(outputs: Iterable[Hashable]) -> Columns:
    """Return a column for each output of a list, and none for others.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_listed
    >>> columns_listed(["no", "yes"]).place("yes")
    1
    """
    given = in_order(outputs, "outputs")
    labels = label_tuple(given, len(given), "outputs")
    if not labels:
        raise ValidationError("outputs: found none")
    return Columns(labels, {label: place for place, label in enumerate(labels)}, others=False)


def columns_between(edges: Iterable[float], groups: Groups | None = None) -> Columns:
    """Return the intervals between increasing numbers, and below and above them.

    An interval has its lower end, not its upper one. What is no number has the columns of `groups`,
    by their labels.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_between
    >>> columns_between([0.5]).labels
    ('below 0.5', 'from 0.5', 'any other')
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
    return _columns(groups or {}, intervals, tuple(ends))


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
        Most intervals, and most columns of other outputs.
    draws : float
        Draws of each secret in the rest, about.

    Notes
    -----
    Numbers of more than `VALUES` values (or `bins`), or of which most come once, are sorted into
    intervals (`cvxleak.samples.intervals`). Of other outputs each has a column; if they are more
    than `LABELS` (or `bins`), they are ordered by how much they speak for one secret and against
    another, in the part, and sorted into intervals of that order.

    Examples
    --------
    >>> from cvxleak.samples.columns import columns_seen
    >>> columns_seen(["b", "a", "b"], [0, 0, 1], None, 1000).labels
    ('a', 'b', 'any other')
    >>> outputs, secrets = [*range(100), "late"], [0] * 50 + [1] * 51
    >>> columns_seen(outputs, secrets, None, 1000).labels
    ('below 50', 'from 50', 'late', 'any other')
    >>> columns_seen([f"key {k}" for k in range(100)], secrets[:100], None, 1000).labels
    ("50 outputs like 'key 0'", "50 outputs like 'key 50'", 'any other')
    """
    most = LABELS if bins is None else whole_number(bins, "bins", 2)
    fine = FINE if bins is None else most
    pairs: list[tuple[Any, int]] = list(zip(outputs, secrets, strict=True))
    finite = [(float(y), x) for y, x in pairs if _is_number(y) and math.isfinite(y)]
    edges: list[float] = []
    # Values of which most come once are those of a distribution with a density, however few they
    # are.
    values = len({y for y, _ in finite})
    few = min(VALUES, max(2, len(finite) // 2)) if bins is None else most
    if values > few:
        edges = _edges(finite, fine, draws)
        pairs = [(y, x) for y, x in pairs if not _is_number(y)]
    kept = sorted({y for y, _ in pairs}, key=_order)
    groups: Groups = {label: [label] for label in kept}
    if len(kept) > most:
        scores = _scores(pairs)
        ends = _edges([(scores[y], x) for y, x in pairs], fine, draws)
        parts: list[list[Hashable]] = [[] for _ in range(len(ends) + 1)]
        for label in kept:
            parts[bisect_right(ends, scores[label])].append(label)
        groups = {
            part[0] if len(part) == 1 else f"{len(part)} outputs like {short(part[0])}": part
            for part in parts
        }
    return columns_between(edges, groups) if edges else _columns(groups)


def _edges(pairs: Sequence[tuple[float, int]], fine: int, draws: float) -> list[float]:
    numbers, secrets = [number for number, _ in pairs], [x for _, x in pairs]
    return telling_edges(numbers, secrets, fine, draws) if len(set(numbers)) > 1 else []


def _columns(
    groups: Groups, intervals: tuple[str, ...] = (), edges: tuple[float, ...] = ()
) -> Columns:
    """Return intervals, groups that are called like none of these, and the column of others."""
    named = {label: part for label, part in groups.items() if label not in (*intervals, OTHERS)}
    places = {
        output: place
        for place, part in enumerate(named.values(), len(intervals))
        for output in part
    }
    return Columns((*intervals, *named, OTHERS), places, edges)


def _scores(pairs: Sequence[tuple[Hashable, int]]) -> dict[Hashable, float]:
    """Return for each output how far it speaks for one secret: its posterior's main component."""
    labels = {label: place for place, label in enumerate(dict.fromkeys(y for y, _ in pairs))}
    counts = np.zeros((len(labels), 1 + max(x for _, x in pairs)))
    for y, x in pairs:
        counts[labels[y], x] += 1
    often = counts.sum(axis=1, keepdims=True)
    shares = (counts + 0.5) / (counts.sum(axis=0) + 1.0)
    posterior = shares / shares.sum(axis=1, keepdims=True)
    away = posterior - (often * posterior).sum(axis=0) / often.sum()
    main = np.linalg.svd(np.sqrt(often) * away, full_matrices=False)[2][0]
    return dict(zip(labels, (away @ main).tolist(), strict=True))


def _is_number(output: Any) -> bool:
    if not isinstance(output, numbers.Real) or isinstance(output, bool):
        return False
    try:
        return not math.isnan(float(output))
    except OverflowError:
        return False


def _order(label: Any) -> tuple[float, str]:
    return (label if _is_number(label) else math.inf, str(label))
