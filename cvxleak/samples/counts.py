"""`channels_from_counts`: the channels that are compatible with a table of counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import (
    Array,
    frozen_array,
    label_tuple,
    real_number,
    short,
)
from cvxleak.mechanisms.binomial import LARGEST, clopper_pearson
from cvxleak.model import ChannelSet

__all__ = ["channels_from_counts", "read_confidence"]


def channels_from_counts(
    counts: ArrayLike | Any,
    confidence: float = 0.95,
    *,
    inputs: Iterable[Hashable] | None = None,
    outputs: Iterable[Hashable] | None = None,
) -> ChannelSet:
    """Return the channels compatible with a table of counts: an interval for each probability.

    With probability at least `confidence` over the draws, the true channel is in the set. Then all
    statements about the set hold for the true channel simultaneously, including those chosen after
    seeing the counts.

    Parameters
    ----------
    counts : array_like or pandas.DataFrame, shape (inputs, outputs)
        How often each output was drawn for each input; `pandas.crosstab` makes such a table. An
        input without draws may have any row.
    confidence : float
        Strictly between 0 and 1.
    inputs, outputs : iterable of hashable, optional
        Labels; those of the frame, or 0, 1, ..., if left out.

    Raises
    ------
    ValidationError
        Entries that are not whole numbers of at least 0, no draws, or a confidence out of range.

    Notes
    -----
    Clopper-Pearson intervals, each with a tail probability of (1 - `confidence`) / T, where T is
    the number of one-sided bounds (Bonferroni): none for an input without draws or if there is a
    single output; 2 for each input if there are two outputs, since a bound on one probability is a
    bound on the other; otherwise 2 for each input and output. Ball arithmetic proves that the
    intervals are wide enough.

    Assumptions: the draws are independent and, given the input, identically distributed. The number
    of draws of each input does not depend on the outputs drawn, and the list of outputs was fixed
    beforehand: a table of only the outputs that occurred does not bound the probability of others.
    `cvxleak.samples.audit_samples` ensures the latter.

    Examples
    --------
    >>> from cvxleak import capacity
    >>> from cvxleak.samples import channels_from_counts
    >>> channels = channels_from_counts([[900, 100], [120, 880]], confidence=0.95)
    >>> channels.lower[0].round(3), channels.upper[0].round(3)
    (array([0.877, 0.08 ]), array([0.92 , 0.123]))
    >>> print(capacity(channels))
    capacity: 0.2968442 to 0.3936829 nats (CERTIFIED; the set of channels leaves 0.0968 open)
    """
    level = read_confidence(confidence)
    given: Any = counts
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        inputs = list(given.index) if inputs is None else inputs
        outputs = list(given.columns) if outputs is None else outputs
        if given.isna().to_numpy().any():
            raise ValidationError(
                "counts: found an empty cell (NaN); a combination that was not drawn has the count "
                "0, as in counts.fillna(0)"
            )
        given = given.to_numpy()
    table = frozen_array(given, "counts", 2)
    wrong = (table < 0) | (table > LARGEST) | (table != np.floor(table))
    if table.size == 0 or wrong.any():
        found = short(float(table[wrong][0])) if table.size else f"shape {table.shape}"
        raise ValidationError(f"counts: found {found}; whole numbers from 0 to 2^53 are needed")
    if not table.any():
        raise ValidationError("counts: found no draws; they are all 0")
    rows = label_tuple(inputs, table.shape[0], "inputs")
    columns = label_tuple(outputs, table.shape[1], "outputs")
    lower, upper = _box(table, level)
    return ChannelSet(lower, upper, rows, columns)


def _box(table: Array, confidence: float) -> tuple[Array, Array]:
    """Return the lower and upper ends of simultaneous intervals."""
    drawn, outputs = np.flatnonzero(table.sum(axis=1)), table.shape[1]
    lower, upper = np.zeros(table.shape), np.ones(table.shape)
    if outputs == 1:
        return upper, upper
    statements = len(drawn) * (2 if outputs == 2 else 2 * outputs)
    tail: Fraction = (1 - fraction(confidence)) / statements
    for x in drawn:
        row = [int(count) for count in table[x]]
        for y, count in enumerate(row):
            lower[x, y], upper[x, y] = clopper_pearson(count, sum(row), tail)
    return lower, upper


def read_confidence(confidence: float) -> float:
    """Return the confidence, or say that it is none.

    Raises
    ------
    ValidationError
        A number outside of (0, 1).

    Examples
    --------
    >>> from cvxleak.samples.counts import read_confidence
    >>> read_confidence("0.9")
    0.9
    """
    return real_number(confidence, "confidence", 0, 1, open_low=True, open_high=True)
