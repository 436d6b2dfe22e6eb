"""Ends of a measure over the channels of a set, such as those that are printed alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance, short
from cvxleak.measures.information import mutual_information
from cvxleak.measures.leakage import maximal_leakage
from cvxleak.measures.privacy import privacy_profile
from cvxleak.measures.vulnerability import (
    min_entropy_leakage,
    multiplicative_bayes_capacity,
    posterior_bayes_vulnerability,
    posterior_gain_vulnerability,
)
from cvxleak.model import Channel, ChannelSet

__all__ = ["measure_of_set"]

CONVEX = (
    multiplicative_bayes_capacity,
    mutual_information,
    posterior_bayes_vulnerability,
    posterior_gain_vulnerability,
    privacy_profile,
)
"""Measures that are convex in the channel, and that no post-processing raises."""

CONVEX_EXPONENTIALS = (maximal_leakage, min_entropy_leakage)
"""Measures of which the same holds after exp."""


def measure_of_set(
    channel_set: ChannelSet, measure: Callable[..., float], **arguments: Any
) -> tuple[float, float]:
    """Return two numbers between which a measure is for every channel of a set.

    Parameters
    ----------
    channel_set : ChannelSet
        For example a matrix as it is printed: `ChannelSet.from_printed`.
    measure : callable
        `mutual_information`, `maximal_leakage`, `min_entropy_leakage`,
        `multiplicative_bayes_capacity`, `posterior_bayes_vulnerability`,
        `posterior_gain_vulnerability` or `privacy_profile`.
    **arguments
        What the measure takes besides the channel, by name: ``prior=...``.

    Returns
    -------
    lower, upper : float
        For every channel Q of the set, lower <= measure(Q, ...) <= upper, up to rounding in
        floating point. The ends are not attained. For information, k inputs and m outputs whose
        probabilities have d decimals, they are about m 10^-d log k nats apart, a few times as far
        as the values within the set.

    Raises
    ------
    ValidationError
        Another measure, or as for the measure.

    See Also
    --------
    cvxleak.capacity, cvxleak.local_dp.local_dp_epsilon_of_set : Proved for sets, with certificates.

    Notes
    -----
    No such f increases under post-processing, and f (or exp f) is convex in Q.

    *Upper end.* Let U(y|x) = l(y|x) for the lower bounds l of the set, and let U reveal x, by an
    output of its own, with the probability that is left. Every Q of the set is U, followed by
    drawing y from the normalized Q(y|x) - l(y|x) where x is revealed. So f(Q) <= f(U).

    *Lower end.* The center C takes l + s (u - l) in a row, with s in (0, 1) where the row is not
    known exactly. With t = min over these rows of min(s, 1 - s) / max(s, 1 - s), the reflected
    C + t (C - Q) is in the set as well. C is between both, so (1 + t) f(C) <= t f(Q) + f(U). No
    f(Q) is below that of a channel whose output is constant, either.

    Examples
    --------
    >>> from cvxleak.measures import measure_of_set, mutual_information
    >>> from cvxleak.model import ChannelSet
    >>> printed = ChannelSet.from_printed([["0.667", "0.333"], ["0.333", "0.667"]])
    >>> lower, upper = measure_of_set(printed, mutual_information, prior=[0.5, 0.5])
    >>> print(f"{lower:.4f} to {upper:.4f}")
    0.0561 to 0.0576
    """
    known = instance(channel_set, ChannelSet, "channel_set")
    allowed = CONVEX + CONVEX_EXPONENTIALS
    if not any(measure is f for f in allowed):
        named = ", ".join(sorted(f.__name__ for f in allowed))
        raise ValidationError(
            f"measure: found {short(getattr(measure, '__name__', measure))}; allowed: {named}, "
            "from cvxleak.measures. For others take the measure of the set's .center; capacity and "
            "local_dp_epsilon_of_set take a set"
        )
    low, room, ratio = _rows(known)
    constant = Channel(np.ones((len(low), 1)), known.inputs)
    revealing = Channel(np.hstack([low, np.diag(room)]), known.inputs)
    least, center, most = (
        measure(channel, **arguments) for channel in (constant, known.center, revealing)
    )
    if measure in CONVEX_EXPONENTIALS:
        below = np.exp(center) - np.expm1(most - center) * np.exp(center) / ratio
        lower = float(np.log(below)) if below > 0 else least
    else:
        lower = center - (most - center) / ratio
    return max(least, lower), most


def _rows(channels: ChannelSet) -> tuple[Array, Array, float]:
    """Return rows of lower bounds, what is left of each, and how far members can be reflected."""
    low = np.array(channels.lower, dtype=float)
    sums, most = low.sum(axis=1), channels.upper.sum(axis=1)
    # A row that is known exactly has no room.
    fixed = (sums >= 1) | (most <= 1)
    low[fixed] = channels.center.matrix[fixed]
    room = np.where(fixed, 0.0, 1 - sums)
    share = np.where(fixed, 0.5, room / np.where(fixed, 1.0, most - sums))
    return low, room, float((np.minimum(share, 1 - share) / np.maximum(share, 1 - share)).min())
