"""`randomize`: applies a channel to each entry of a column independently."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import generator, in_order, is_missing, one_of, short
from cvxleak.core.value import preview
from cvxleak.model import Channel
from cvxleak.model.channel import as_channel

__all__ = ["randomize"]

PLAIN = (bool, int, float, str)
"""Labels of one of these types make an array of that type."""


def randomize(
    column: Any,
    channel: Channel | ArrayLike,
    rng: int | np.random.Generator | None = None,
    *,
    missing: str = "refuse",
) -> Any:
    """Replace each entry of a column by a random output of the channel.

    The draws are independent and exactly distributed as the stored rows, as in `Channel.sample`.
    `estimate_frequencies` estimates the frequencies of the inputs from the counts of the result.

    Parameters
    ----------
    column : list, array of one dimension, pandas.Series or other iterable
        Inputs of the channel.
    channel : Channel or array_like, shape (k, outputs)
    rng : int or numpy.random.Generator, optional
        Seed or generator for a reproducible draw; the system's entropy if left out. Anyone who
        knows the seed can often infer the entries from the outputs, so leave it out for real
        answers.
    missing : {"refuse", "keep"}
        What to do with missing entries (None, NaN, pandas.NA) that are not inputs of the channel.
        Kept entries reveal who did not answer; to hide that, make None an input.

    Returns
    -------
    list, array or Series
        Of the kind of `column`, with its index and name; a list for other iterables. For a
        categorical Series the categories are the channel's outputs.

    Raises
    ------
    ValidationError
        An entry that is missing or not an input of the channel (the message gives its position); a
        table in place of a column; an `rng` that is neither a seed nor a generator.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric, randomize
    >>> randomize([0, 1, 1, None, 0], binary_symmetric(0.25), rng=0, missing="keep")
    [0, 0, 1, None, 1]
    """
    given = as_channel(channel)
    one_of(missing, ("refuse", "keep"), "missing")
    places: dict[Hashable, list[int]] = {label: [] for label in given.inputs}
    drawn = _entries(column)
    for place, entry in enumerate(drawn):
        if _known(entry, places):
            places[entry].append(place)
        elif not is_missing(entry):
            raise ValidationError(
                f"column: entry {place} is {short(entry)}; the channel's inputs are "
                f"{preview(given.inputs)}"
            )
        elif missing == "refuse":
            raise ValidationError(
                f"column: entry {place} is missing; use missing='keep' to leave it missing, or "
                "make None an input of the channel"
            )
    source = None if rng is None else generator(rng)
    for label, its in places.items():
        for place, output in zip(its, given.sample(label, len(its), source), strict=True):
            drawn[place] = output
    return _like(column, drawn, given)


def _known(entry: Any, labels: dict[Hashable, list[int]]) -> bool:
    try:
        return entry in labels
    except TypeError:  # not hashable
        return False


def _entries(column: Any) -> list[Any]:
    """Return a column's entries as plain values."""
    if hasattr(column, "columns") or getattr(column, "ndim", 1) != 1:
        raise ValidationError("column: found a table; a column of one dimension is needed")
    if isinstance(column, str) or (hasattr(column, "items") and not hasattr(column, "iloc")):
        raise ValidationError(
            f"column: expected a list, an array or a Series, found {short(column)}"
        )
    return column.tolist() if hasattr(column, "tolist") else list(in_order(column, "column"))


def _like(column: Any, entries: list[Any], channel: Channel) -> Any:
    """Return the entries as a column of the same kind."""
    if hasattr(column, "iloc"):
        import pandas as pd

        found = pd.Series(entries, index=column.index, name=column.name)
        if isinstance(column.dtype, pd.CategoricalDtype):
            found = found.astype(pd.CategoricalDtype(channel.outputs))
        return found
    if isinstance(column, np.ndarray):
        return _array(entries)
    return tuple(entries) if type(column) is tuple else entries


def _array(entries: Sequence[Any]) -> np.ndarray[Any, Any]:
    kinds = {type(entry) for entry in entries}
    if len(kinds) == 1 and kinds.issubset(PLAIN):
        return np.array(entries)
    found = np.empty(len(entries), dtype=object)
    found[:] = entries
    return found
