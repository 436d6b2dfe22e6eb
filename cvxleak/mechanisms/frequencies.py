"""How often each input occurred, estimated from the outputs of a known channel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    label_tuple,
    plain_array,
    short,
    whole_number,
)
from cvxleak.core.value import Value, preview
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
        Unbiased estimate; sums to 1, single entries can be negative or exceed 1.
    covariance : float array, shape (k, k)
        Unbiased estimate of the covariance of `frequencies`.
    respondents : int
        Number of outputs that were counted.

    Raises
    ------
    ValidationError
        Parts that do not fit each other or are no numbers.

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

    @property
    def standard_errors(self) -> Array:
        """Square roots of the variances, shape (k,)."""
        # A frequency that the outputs leave no doubt about can get -1e-17 for its variance.
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    @property
    def projected(self) -> Prior:
        """The probability distribution nearest to `frequencies` in Euclidean distance.

        It is never farther from the truth than the unbiased estimate, but it is biased.
        """
        return Prior(project_to_simplex(self.frequencies), self.labels)


def estimate_frequencies(channel: Channel | ArrayLike, counts: Any) -> FrequencyEstimate:
    """Estimate the frequencies of the inputs from counts of the outputs of a known channel.

    n respondents are drawn independently from a population with frequencies p; each releases one
    output of the channel Q. The relative frequencies c of the outputs then have the mean Q^T p,
    so B c is unbiased for every B with B Q^T = I. Where Q is square that is the inverse of Q^T.
    Otherwise, with S = diag(1 / s), s(y) = sum over x of q(y|x), it is ``B = (Q S Q^T)^(-1) Q S``:
    the one with the smallest variance if p is uniform, and one that does not change when an output
    is split at random. ``B (diag(c) - c c^T) B^T / (n - 1)`` is an unbiased estimate of its
    covariance. If the respondents are the whole population, only the channel is random and the
    standard errors are too large.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, outputs)
        With linearly independent rows.
    counts : mapping, pandas.Series or array_like of int
        Number of times that each output was released: by label (outputs left out count 0), or in
        the order of the channel's outputs. At least two in total.

    Returns
    -------
    FrequencyEstimate

    Raises
    ------
    ValidationError
        Rows that are linearly dependent, counts that are not whole numbers, an unknown output, an
        output that was released and cannot occur, fewer than two respondents.

    References
    ----------
    S. L. Warner, Randomized response, JASA 60 (1965). A. Chaudhuri and R. Mukerjee, Randomized
    Response: Theory and Techniques (1988).

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
    normal = scaled @ matrix[:, possible].T
    if np.linalg.cond(normal) > 1e12:
        raise ValidationError(
            "channel: found rows that are linearly dependent; no unbiased estimate exists"
        )
    inverse = np.linalg.solve(normal, scaled)
    observed = np.array(numbers, dtype=float)[possible] / total
    spread = (np.diag(observed) - np.outer(observed, observed)) / (total - 1)
    covariance = inverse @ spread @ inverse.T
    return FrequencyEstimate(given.inputs, inverse @ observed, covariance, total)


def _counts(counts: Any, channel: Channel) -> list[int]:
    """Return the counts in the order of the channel's outputs."""
    if hasattr(counts, "items"):
        by_label = {
            label: whole_number(number, f"counts[{short(label)}]", 0)
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
        )
    return [whole_number(number, f"counts[{i}]", 0) for i, number in enumerate(array)]
