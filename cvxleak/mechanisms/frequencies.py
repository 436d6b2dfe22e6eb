"""Estimates of the frequencies of a channel's inputs from its outputs."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, get_lapack_funcs

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    label_tuple,
    plain_array,
    real_number,
    short,
    whole_number,
)
from cvxleak.core.value import Value, preview
from cvxleak.mechanisms.frequency_intervals import frequency_intervals
from cvxleak.mechanisms.simplex import project_to_simplex
from cvxleak.model import Channel, Prior
from cvxleak.model.channel import as_channel

__all__ = ["FrequencyEstimate", "estimate_frequencies"]


@dataclass(frozen=True, eq=False)
class FrequencyEstimate(Value):
    """Estimated frequencies of the inputs of a channel.

    Attributes
    ----------
    labels : tuple
        The channel's inputs.
    frequencies : float array, shape (k,)
        Unbiased estimate. It sums to 1; single entries can be negative or exceed 1.
    covariance : float array, shape (k, k)
        Unbiased estimate of the covariance of `frequencies`.
    respondents : int
        Number of outputs that were counted.
    lower, upper : float array, shape (k,), or None
        Simultaneous confidence intervals; None if no `confidence` was given. If no frequencies are
        consistent with the counts, each interval is empty: from 1 to 0.
    confidence : float or None

    Raises
    ------
    ValidationError
        Parts that do not match each other or are not numbers.

    Notes
    -----
    Built by `estimate_frequencies`.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric, estimate_frequencies
    >>> estimate = estimate_frequencies(binary_symmetric(0.25), [30, 70])
    >>> estimate.frequencies.round(3), estimate.standard_errors.round(3), estimate.respondents
    (array([0.1, 0.9]), array([0.092, 0.092]), 100)
    """

    labels: tuple[Hashable, ...]
    frequencies: Array
    covariance: Array
    respondents: int
    lower: Array | None = None
    upper: Array | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        frequencies = frozen_array(self.frequencies, "frequencies", 1)
        covariance = frozen_array(self.covariance, "covariance", 2)
        size = len(frequencies)
        if covariance.shape != (size, size) or size == 0:
            raise ValidationError(
                f"covariance: found shape {covariance.shape} with {size} frequencies; "
                "there must be some, and a row and a column for each"
            )
        object.__setattr__(self, "labels", label_tuple(self.labels, size, "labels"))
        object.__setattr__(self, "frequencies", frequencies)
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "respondents", whole_number(self.respondents, "respondents", 1))
        parts = (self.lower, self.upper, self.confidence)
        if any(part is None for part in parts):
            if any(part is not None for part in parts):
                raise ValidationError(
                    "confidence: lower, upper and confidence come together, or none of them"
                )
            return
        for name in ("lower", "upper"):
            ends = frozen_array(getattr(self, name), name, 1)
            if len(ends) != size:
                raise ValidationError(f"{name}: found {len(ends)} ends for {size} frequencies")
            object.__setattr__(self, name, ends)
        object.__setattr__(self, "confidence", read_confidence(self.confidence))

    @property
    def fits(self) -> bool:
        """Whether some frequencies are consistent with the counts; True if no confidence was given.

        If not, the counts are evidence against the assumption that they are independent outputs of
        this channel: if it is true, this happens with a probability below 1 - `confidence`.
        """
        return self.lower is None or self.upper is None or bool((self.lower <= self.upper).all())

    @property
    def standard_errors(self) -> Array:
        """Square roots of the variances, shape (k,)."""
        # The variance of a frequency that the outputs determine can be computed as -1e-17.
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    @property
    def projected(self) -> Prior:
        """The probability distribution nearest to `frequencies` in Euclidean distance.

        It is never farther from the true distribution than the unbiased estimate, but it is biased.
        """
        return Prior(project_to_simplex(self.frequencies), self.labels)

    def _columns(self) -> dict[str, Array]:
        columns = {"frequency": self.frequencies, "standard error": self.standard_errors}
        if self.lower is not None and self.upper is not None:
            columns |= {"lower": self.lower, "upper": self.upper}
        return columns

    @property
    def _heading(self) -> str:
        text = f"{self.respondents} respondents, {len(self.labels)} frequencies"
        if self.confidence is None:
            return text
        sure = f"{100 * self.confidence:g} % confidence"
        if not self.fits:
            return f"{text}; none fit the counts with {sure}"
        return f"{text}; simultaneous {sure} intervals"

    def to_frame(self) -> Any:
        """Return a row for each input, by its label, as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns = {name.replace(" ", "_"): values for name, values in self._columns().items()}
        return pd.DataFrame(columns, index=pd.Index(self.labels, name="label", tupleize_cols=False))

    def __str__(self) -> str:
        columns = self._columns()
        shown = [["", *columns]] + [
            [str(label), f"{estimate:.4f}", f"{error:.4f}", *_outward(*ends)]
            for label, estimate, error, *ends in zip(self.labels, *columns.values(), strict=True)
        ]
        widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
        lines = (
            "  ".join(
                [
                    cells[0].ljust(widths[0]),
                    *(cell.rjust(w) for cell, w in zip(cells[1:], widths[1:], strict=True)),
                ]
            )
            for cells in shown
        )
        return "\n".join([self._heading, *lines])

    def __repr__(self) -> str:
        return f"FrequencyEstimate({self._heading})"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        columns = self._columns()
        rows = zip(self.labels, *columns.values(), strict=True)
        return html_table(self._heading, ("label", *columns), rows)


def _outward(lower: float | None = None, upper: float | None = None) -> list[str]:
    """Return the ends of an interval with four decimals, none of them inside it."""
    if lower is None or upper is None:
        return []
    if lower > upper:
        return ["none", "none"]
    return [f"{math.floor(lower * 1e4) / 1e4:.4f}", f"{math.ceil(upper * 1e4) / 1e4:.4f}"]


def estimate_frequencies(
    channel: Channel | ArrayLike, counts: Any, confidence: float | None = None
) -> FrequencyEstimate:
    """Estimate the frequencies of the inputs from counts of the outputs of a known channel.

    n respondents are drawn independently from a population with frequencies p; each releases one
    output of the channel Q. The relative frequencies c of the outputs then have the mean Q^T p,
    so B c is unbiased for every B with B Q^T = I. If Q is square, B is the inverse of Q^T.
    Otherwise ``B = (Q S Q^T)^(-1) Q S`` with S = diag(1 / s) and s(y) = sum over x of q(y|x). This
    B has the smallest variance if p is uniform, and the estimate does not change if an output is
    split at random. ``B (diag(c) - c c^T) B^T / (n - 1)`` is an unbiased estimate of its
    covariance. If the respondents are the whole population, only the channel is random and the
    standard errors are too large.

    With a `confidence`, the estimate has an interval for each frequency too. The intervals are
    simultaneous: for every p and every number of respondents, all of them contain the true
    frequencies with at least this probability. They use no normal approximation (see the notes).

    Parameters
    ----------
    channel : Channel or array_like, shape (k, outputs)
        With linearly independent rows.
    counts : mapping, pandas.Series or array_like of int
        How often each output was released: by label (outputs left out have the count 0), or in the
        order of the channel's outputs. At least two in total.
    confidence : float, optional
        Joint confidence level of all intervals, strictly between 0 and 1.

    Returns
    -------
    FrequencyEstimate

    Raises
    ------
    ValidationError
        Rows that are linearly dependent, counts that are not whole numbers, an unknown output, an
        output that was released but that no input can have, fewer than two respondents, a
        confidence out of range.

    Notes
    -----
    The intervals are the least and largest frequencies in the set of all p for which the
    probability of each of certain events is in its Clopper-Pearson interval, with a tail
    probability of (1 - `confidence`) / T, where T is the number of one-sided bounds. The events are
    the outputs and, where the channel has more outputs than inputs, for each input also the set of
    outputs that are more probable under it than on average over the inputs; the two families then
    share the tail equally. Both ends of an interval are proved in ball arithmetic;
    `cvxleak.mechanisms.frequency_intervals` derives them.

    If the respondents are the whole population, their outputs are independent, but not identically
    distributed. The intervals then hold for the frequencies among the respondents if the confidence
    is at least 1/2 and each event has, for every input, a probability above 1/n and below 1 - 1/n.
    Proof: let q be an event's average probability. For d >= n q + 1, its count is at least d with a
    probability not above that of a binomial count (Hoeffding). A binomial count is at least n q
    with a probability above 1/4 (Greenberg and Mohri), so every d with a tail probability of at
    most 1/4 is at least n q + 1. The lower tail is analogous.

    References
    ----------
    S. L. Warner, Randomized response, JASA 60 (1965). A. Chaudhuri and R. Mukerjee, Randomized
    Response: Theory and Techniques (1988). C. J. Clopper and E. S. Pearson, Biometrika 26 (1934).
    W. Hoeffding, On the distribution of the number of successes in independent trials, Annals of
    Mathematical Statistics 27 (1956), Theorem 4. S. Greenberg and M. Mohri, Tight lower bound on
    the probability of a binomial exceeding its expectation, Statistics & Probability Letters 86
    (2014).

    Examples
    --------
    1,000 people answer with 3-ary randomized response:

    >>> import math
    >>> from cvxleak.mechanisms import estimate_frequencies, randomized_response
    >>> channel = randomized_response(3, math.log(2))
    >>> estimate = estimate_frequencies(channel, {0: 400, 1: 370, 2: 230})
    >>> estimate.frequencies.round(3), estimate.standard_errors.round(3)
    (array([ 0.6 ,  0.48, -0.08]), array([0.062, 0.061, 0.053]))
    >>> estimate.projected.probabilities.round(3)
    array([0.56, 0.44, 0.  ])
    >>> print(estimate_frequencies(channel, {0: 400, 1: 370, 2: 230}, confidence=0.95))
    1000 respondents, 3 frequencies; simultaneous 95 % confidence intervals
       frequency  standard error   lower   upper
    0     0.6000          0.0620  0.4515  0.6658
    1     0.4800          0.0611  0.3342  0.5485
    2    -0.0800          0.0533  0.0000  0.0539
    """
    given = as_channel(channel)
    numbers = _counts(counts, given)
    total = sum(numbers)
    if total < 2:
        raise ValidationError(f"counts: found {total} respondents; at least 2 are needed")
    matrix = given.matrix
    weight = matrix.sum(axis=0)
    possible = weight > 0
    if any(number for number, can in zip(numbers, possible, strict=True) if not can):
        raise ValidationError("counts: found an output that no input of the channel can have")
    scaled = matrix[:, possible] / weight[possible]
    inverse = _unbiased(scaled @ matrix[:, possible].T, scaled)
    observed = np.array(numbers, dtype=float)[possible] / total
    frequencies = inverse @ observed
    spread = (inverse * observed) @ inverse.T - np.outer(frequencies, frequencies)
    estimate = FrequencyEstimate(given.inputs, frequencies, spread / (total - 1), total)
    if confidence is None:
        return estimate
    level = read_confidence(confidence)
    lower, upper = frequency_intervals(given, numbers, level)
    return replace(estimate, lower=lower, upper=upper, confidence=level)


def _unbiased(normal: Array, scaled: Array) -> Array:
    """Return B = (Q S Q^T)^(-1) Q S, or say that the rows of Q are dependent."""
    dependent = ValidationError(
        "channel: found rows that are linearly dependent; no unbiased estimate exists"
    )
    try:
        factor, _ = cho_factor(normal, lower=True)
    except np.linalg.LinAlgError:
        raise dependent from None
    # An estimate of the condition number from the factor: an SVD takes twenty times as long.
    (condition,) = get_lapack_funcs(("pocon",), (factor,))
    if condition(factor, np.abs(normal).sum(axis=0).max(), uplo="L")[0] < 1e-12:
        raise dependent
    return cho_solve((factor, True), scaled)


def read_confidence(confidence: Any) -> float:
    """Return a confidence, or say that it is none."""
    return real_number(confidence, "confidence", 0, 1, open_low=True, open_high=True)


def _counts(counts: Any, channel: Channel) -> list[int]:
    """Return the counts in the order of the channel's outputs."""
    if hasattr(counts, "items"):
        by_label = {
            label: _count(number, f"counts[{short(label)}]", channel)
            for label, number in counts.items()
        }
        unknown = tuple(label for label in by_label if label not in channel.outputs)
        if unknown or len(by_label) < len(counts):
            raise ValidationError(
                f"counts: found {'twice one of' if not unknown else 'unknown'} outputs "
                f"{preview(unknown)}; the channel has {preview(channel.outputs)}, once each"
            )
        return [by_label.get(label, 0) for label in channel.outputs]
    array = plain_array(counts, "counts")
    if array.shape != (channel.shape[1],):
        raise ValidationError(
            f"counts: found shape {array.shape}; ({channel.shape[1]},) is needed, one per output"
            + (_ANSWERS if all(one in channel.outputs for one in array.ravel().tolist()) else "")
        )
    return [_count(number, f"counts[{i}]", channel) for i, number in enumerate(array)]


_ANSWERS = "; of single answers, give the counts: collections.Counter(answers)"


def _count(number: Any, name: str, channel: Channel) -> int:
    """Return a count; say what to do with an answer or with a sum of weights in its place."""
    try:
        return whole_number(number, name, 0)
    except ValidationError as error:
        if isinstance(number, str):
            raise ValidationError(
                f"{error}{_ANSWERS if number in channel.outputs else ''}"
            ) from None
        if isinstance(number, (float, np.floating)) and 0 < number < np.inf:
            raise ValidationError(
                f"{error}; sums of survey weights are no counts: the intervals and standard errors "
                "are those of people who are drawn with equal chances. An estimate alone is linear "
                "in the shares: with weights, solve Q^T p = shares"
            ) from None
        raise
