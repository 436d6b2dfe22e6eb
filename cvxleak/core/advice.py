"""What to do about values that are no distributions, for the messages that refuse them.

No number is corrected in silence: a bound is about the rows that were given. Loaded only when there
is something to say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxleak.core.numbers import Array, fraction

__all__ = [
    "advice_on_instance",
    "advice_on_kind",
    "advice_on_order",
    "advice_on_shape",
    "advice_on_sums",
]

MAKERS = {
    "Bound": "; the solve of a problem returns one",
    "Channel": "; Channel(matrix) makes one",
    "ChannelSet": "; ChannelSet.from_printed and ChannelSet(lower, upper) make one",
    "Mechanism": "; Mechanism(query, channel) makes one (capacity takes a channel alone)",
    "Problem": "; a named one is, such as cvxleak.design.DesignForPrior(prior, distortion, budget)",
    "Query": "; cvxleak.queries has the usual ones, such as count(10)",
    "Table": "; Table({'sex': ['f', 'm']}) makes one, and Table.from_published(path) of a file",
    "RecordSpace": "; RecordSpace.binary(n) makes one of n records",
}
"""What makes an object of a class that newcomers have no object of."""

ROUNDING = 1e-6
"""What `Channel.from_solver` takes for rounding in an entry."""

MOST_DIGITS = 12
"""Most decimals that somebody prints; more are those of a computation."""


def advice_on_instance(given: object, kind: str, name: str) -> str:
    """Return what makes an object of a kind, and whether a distribution has taken its place.

    Examples
    --------
    >>> from cvxleak.core.advice import advice_on_instance
    >>> advice_on_instance(3, "Channel", "channel")
    '; Channel(matrix) makes one'
    """
    numbers = isinstance(given, (list, tuple)) and not any(hasattr(x, "__len__") for x in given)
    law = numbers or hasattr(given, "probabilities") or getattr(given, "ndim", 0) == 1
    return MAKERS.get(kind, "") + (advice_on_order(name) if law else "")


def advice_on_order(name: str) -> str:
    """Return which argument comes first, if it is a channel that was found to be something else.

    Examples
    --------
    >>> from cvxleak.core.advice import advice_on_order
    >>> advice_on_order("channel")
    '; the channel comes first, a prior or a query after it (in problems the prior is first)'
    """
    first = name in ("channel", "mechanism")
    but = " (in problems the prior is first)" if name == "channel" else ""
    return f"; the {name} comes first, a prior or a query after it{but}" if first else ""


def advice_on_kind(given: object, error: Exception, name: str) -> str:
    """Return what is wrong with values that are no numbers, and what reads them.

    Examples
    --------
    >>> from cvxleak.core.advice import advice_on_kind
    >>> advice_on_kind("q.csv", ValueError("'q.csv' is not a number"), "channel")
    '; from_csv reads a file'
    """
    if isinstance(given, os.PathLike) or (isinstance(given, str) and "." in given):
        return "; from_csv reads a file"
    if isinstance(given, Mapping):
        return f"; pass its values as a list, and its keys as labels{advice_on_order(name)}"
    if "inhomogeneous" in str(error):
        return " (its rows are not equally long)"
    if name in ("matrix", "channel") and isinstance(given, np.ndarray) and given.dtype.kind == "O":
        return f" ({error}); names of rows are the index of a DataFrame, which set_index makes"
    return f" ({error}){'' if isinstance(given, (list, str)) else advice_on_order(name)}"


def advice_on_shape(shape: tuple[int, ...], ndim: int, name: str) -> str:
    """Return how to write what came in another shape than that of a matrix or of a vector.

    Examples
    --------
    >>> from cvxleak.core.advice import advice_on_shape
    >>> advice_on_shape((3,), 2, "matrix")
    '; write a single row as [[...]], a single column as [[...], [...]]'
    """
    if ndim == 2 and len(shape) < 2:
        single = "; write a single row as [[...]], a single column as [[...], [...]]"
        return advice_on_order(name) + single
    if ndim == 1 and not shape:
        alone = "; a single distribution is written in a list, [prior]"
        return alone if name.endswith("]") else "; a distribution is a list of numbers"
    return "; .ravel() makes a vector of it" if ndim == 1 and max(shape, default=0) > 1 else ""


def advice_on_sums(array: Array, kind: np.dtype[Any], tolerance: float) -> str:
    """Return what may be the matter with rows that do not sum to 1, and the remedy.

    `kind` is the type that the numbers came in, and `tolerance` what a sum may be off by.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.core.advice import advice_on_sums
    >>> rows = np.array([[0.9, 0.3], [0.1, 0.7]])
    >>> advice_on_sums(rows, rows.dtype, 1e-9)
    '; its columns sum to 1, and rows are needed: pass the transpose (.T)'
    """
    with np.errstate(over="ignore"):
        off = np.abs(np.atleast_1d(array.sum(axis=-1)) - 1)
        columns = np.abs(array.sum(axis=0) - 1)
    if array.ndim == 2 and columns.max() <= ROUNDING * len(array) < off.max():
        return "; its columns sum to 1, and rows are needed: pass the transpose (.T)"
    if array.ndim == 2 and len(array) > 1 and abs(array.sum() - 1) <= ROUNDING:
        return (
            "; all entries together do, as those of a joint distribution: the sums of its rows are "
            "the prior, and the rows divided by their sums the channel"
        )
    said = []
    if array.ndim <= 2 and not np.any(array % 1):
        counts = "Prior.from_counts" if array.ndim == 1 else "cvxleak.samples.channels_from_counts"
        said.append(f"for counts there is {counts}")
    if abs(off.max() - 99) < 1:
        said.append("divide percentages by 100")
    if not said:
        said = _of_rounding(array, off, kind, tolerance)
    return "".join(f"; {text}" for text in said)


def _of_rounding(array: Array, off: Array, kind: np.dtype[Any], tolerance: float) -> list[str]:
    """Return the advice for sums that are off by no more than rounding."""
    size = array.shape[-1]
    short = kind.kind == "f" and kind.itemsize < 8
    if short and off.max() <= np.finfo(kind).eps * size:
        cause = f"{kind} numbers are rounded to about {np.finfo(kind).precision} digits"
        # Half precision is coarser than what a solver leaves.
        tol = "" if np.finfo(kind).eps <= ROUNDING else ", tol=1e-3"
    elif not short and (digits := _printed(array, off, tolerance)):
        remedy = (
            "give more digits, fractions such as '1/3', or divide by the sum"
            if array.ndim == 1
            else f"cvxleak.ChannelSet.from_printed(matrix, {digits}), for files .from_csv, "
            f"in a spec file digits = {digits}, is the set of all channels that are printed like "
            "this; fractions such as '1/3' are exact"
        )
        return [f"the numbers may be rounded to {digits} decimals: {remedy}"]
    elif off.max() <= ROUNDING * size:
        cause, tol = "the sums are off by rounding", ""
    else:
        return []
    if array.ndim == 1:
        return [f"{cause}: divide by the sum, in float64"]
    said = [
        f"{cause}: Channel.from_solver(matrix{tol}) repairs that, and divides each row by its sum"
    ]
    if not short:
        said.append("of printed numbers ChannelSet.from_printed takes the texts, .from_csv a file")
    return said


def _printed(array: Array, off: Array, tolerance: float) -> int:
    """Return the decimals of the numbers, two or more, if rounding explains the sums; else 0."""
    places = 0
    for number in set(array.ravel().tolist()):
        exact = fraction(number)
        while (exact * 10**places).denominator > 1:
            places += 1
            if places > MOST_DIGITS:
                return 0
    half = 0.5 * 10.0**-places
    inexact = np.count_nonzero(array % 1, axis=-1)
    return places if places > 1 and (off <= half * inexact + tolerance).all() else 0
