"""Bounds on the PML envelope in closed form; `cvxleak.envelope` computes it exactly.

Every upper bound here is safe under post-processing, and rests on maximal leakage or on the largest
leakage of an outcome.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import SIZE_LIMIT, Array, in_order, whole_number
from cvxleak.core.wording import counted
from cvxleak.measures._laws import aligned
from cvxleak.measures.events import binary_envelope
from cvxleak.measures.leakage import conditional_maximal_leakage, max_information, maximal_leakage
from cvxleak.measures.pointwise import pml_right_quantile, probabilities_in
from cvxleak.model import Channel, Prior, as_channel

__all__ = [
    "adaptive_composition",
    "adaptive_composition_bound",
    "composition_bound",
    "envelope_lower_bound",
    "envelope_upper_bound",
    "output_count_bound",
    "tail_average_bound",
]


def envelope_upper_bound(
    prior: Prior | ArrayLike, channel: Channel | ArrayLike, delta: ArrayLike
) -> Array:
    """Return min( L(X -> Y) + log 1/delta, max_y l(y) ), an upper bound on eps_c(delta), in nats.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    delta : float or array_like
        In [0, 1].

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or delta is out of range.

    See Also
    --------
    tail_average_bound : Never larger, at the same cost.

    Notes
    -----
    ENVELOPE Theorem 3.

    Examples
    --------
    >>> from cvxleak.envelope import envelope_upper_bound
    >>> envelope_upper_bound([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [0.1, 1.0]).round(6)  # log 1.8
    array([0.587787, 0.587787])
    """
    level = probabilities_in(delta, "delta")
    most = max_information(channel, prior)
    return np.minimum(_over(maximal_leakage(channel, prior), level), most)[()]


def output_count_bound(outputs: int, delta: ArrayLike) -> Array:
    """Return log(|Y| / delta), an upper bound on eps_c(delta) for any prior and mechanism, in nats.

    Parameters
    ----------
    outputs : int
        Number of outputs |Y|, at least 1.
    delta : float or array_like
        In [0, 1]; inf at 0.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If a number is out of range.

    Notes
    -----
    ENVELOPE section VII: maximal leakage is at most log |Y|.

    Examples
    --------
    >>> from cvxleak.envelope import output_count_bound
    >>> round(float(output_count_bound(4, 0.5)), 6)  # log 8
    2.079442
    """
    level = probabilities_in(delta, "delta")
    return _over(float(np.log(whole_number(outputs, "outputs", 1, SIZE_LIMIT))), level)[()]


def tail_average_bound(
    prior: Prior | ArrayLike, channel: Channel | ArrayLike, delta: ArrayLike
) -> Array:
    """Return the log of the mean of e^l(Y) over the worst outcomes, of total mass delta, in nats.

    An upper bound on eps_c(delta), never above `envelope_upper_bound`: the mean is at most the
    largest e^l and at most E[e^l] / delta. The last of these outcomes counts only with the mass
    that is missing to delta.

    Parameters
    ----------
    prior, channel, delta
        As in `envelope_upper_bound`.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or delta is out of range.

    Notes
    -----
    Not in the paper. Consider a post-processing with P(z|y) = w_zy, and let its symbols z that leak
    eps or more have total mass delta. Each has e^eps P(z) <= max_x P(z|x) <= sum_y w_zy P(y)
    e^l(y), and the sum over these symbols is at most the integral of e^l over the worst outcomes of
    mass delta.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.envelope import envelope_upper_bound, tail_average_bound
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> np.exp(tail_average_bound([0.25] * 4, mechanism, [0.1, 0.2, 1.0])).round(4)
    array([4.    , 2.5556, 1.4   ])
    >>> np.exp(envelope_upper_bound([0.25] * 4, mechanism, [0.1, 0.2, 1.0])).round(4)
    array([4. , 4. , 1.4])
    """
    level = probabilities_in(delta, "delta")
    p, rows = aligned(prior, channel)
    rows = rows[p > 0]
    output = p[p > 0] @ rows
    top, mass = rows.max(axis=0)[output > 0], output[output > 0]
    order = np.argsort(-top / mass, kind="stable")
    reach = np.concatenate([[0.0], np.cumsum(mass[order])])
    gain = np.concatenate([[0.0], np.cumsum(top[order])])
    largest = float((top / mass).max())
    safe = np.where(level > 0, level, 1.0)
    mean = np.where(level > 0, np.interp(safe, reach, gain) / safe, largest)
    return np.log(np.clip(mean, 1.0, largest))[()]


def envelope_lower_bound(
    prior: Prior | ArrayLike, channel: Channel | ArrayLike, delta: ArrayLike
) -> Array:
    """Return the larger of the PML delta-quantile of Y and the binary envelope, in nats.

    A lower bound on eps_c(delta).

    Parameters
    ----------
    prior, channel, delta
        As in `envelope_upper_bound`.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or delta is out of range.

    Notes
    -----
    ENVELOPE (14).

    Examples
    --------
    >>> from cvxleak.envelope import envelope_lower_bound
    >>> envelope_lower_bound([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [0.1, 1.0]).round(6)
    array([0.587787, 0.587787])
    """
    quantile = pml_right_quantile(channel, prior, delta)
    return np.maximum(quantile, binary_envelope(channel, prior, delta))[()]


def composition_bound(
    prior: Prior | ArrayLike, channels: Sequence[Channel | ArrayLike], delta: ArrayLike
) -> Array:
    """Return sum_i L(X -> Y_i) + log 1/delta, for independent releases, in nats.

    An upper bound on the envelope of all outputs together.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    channels : sequence of Channels or arrays, each of k rows
        The releases, independent of one another given X.
    delta : float or array_like
        In [0, 1]; inf at 0.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the prior and a channel do not match, there is no channel, or delta is out of range.

    See Also
    --------
    cvxleak.envelope.repeated_releases : The exact envelope of equal releases.

    Notes
    -----
    ENVELOPE section IV-A, after Theorem 3.

    Examples
    --------
    >>> from cvxleak.envelope import composition_bound
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(float(composition_bound([0.5, 0.5], [noisy, noisy], 0.5)), 6)  # log(1.8^2 / 0.5)
    1.868721
    """
    level = probabilities_in(delta, "delta")
    releases = in_order(channels, "channels")
    if not releases:
        raise ValidationError("channels: found none; at least one release is needed")
    return _over(sum(maximal_leakage(channel, prior) for channel in releases), level)[()]


def adaptive_composition(releases: Sequence[Any]) -> Channel:
    """Return the channel to all outputs of releases that may depend on the outputs before.

    Parameters
    ----------
    releases : sequence
        First a channel from the input, P(y1|x). Then, for each further release, a sequence of
        channels from the input, one for each history of outputs, in lexicographic order.

    Returns
    -------
    Channel
        To the tuples (y1, ..., yn), in lexicographic order.

    Raises
    ------
    ValidationError
        If there is no release, or the channels do not match.

    See Also
    --------
    pml_envelope : Its exact envelope.

    Examples
    --------
    A second answer only where the first one tells nothing:

    >>> from cvxleak.envelope import adaptive_composition
    >>> erasure, noisy = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]], [[0.75, 0.25], [0.25, 0.75]]
    >>> silent = [[1.0], [1.0]]
    >>> both = adaptive_composition([erasure, [silent, silent, noisy]])
    >>> both.outputs, both.matrix[0]
    (((0, 0), (1, 0), (2, 0), (2, 1)), array([0.5  , 0.   , 0.375, 0.125]))
    """
    steps = in_order(releases, "releases")
    if not steps:
        raise ValidationError("releases: found none; at least one is needed")
    first = as_channel(steps[0], "releases[0]")
    past: list[tuple[Hashable, ...]] = [(y,) for y in first.outputs]
    joint = Channel(first.matrix, first.inputs, past)
    for i, step in enumerate(steps[1:], start=1):
        plan = in_order(step, f"releases[{i}]")
        if len(plan) != len(past):
            raise ValidationError(
                f"releases[{i}]: found {counted(len(plan), 'channel')}; one is needed for each of "
                f"the {len(past)} histories of outputs"
            )
        then = [as_channel(channel, f"releases[{i}][{h}]") for h, channel in enumerate(plan)]
        for h, channel in enumerate(then):
            if channel.shape[0] != joint.shape[0]:
                raise ValidationError(
                    f"releases[{i}][{h}]: found {counted(channel.shape[0], 'row')}; the first "
                    f"release has {joint.shape[0]}"
                )
        columns = [joint.matrix[:, [h]] * channel.matrix for h, channel in enumerate(then)]
        past = [(*h, y) for h, q in zip(past, then, strict=True) for y in q.outputs]
        joint = Channel(np.hstack(columns), joint.inputs, past)
    return joint


def adaptive_composition_bound(
    prior: Prior | ArrayLike, releases: Sequence[Any], delta: ArrayLike
) -> Array:
    """Return sum_i L(X -> Y_i | Y_1, ..., Y_(i-1)) + log 1/delta, in nats.

    An upper bound on the envelope of all outputs together, where a release may depend on the
    outputs before it.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    releases : sequence
        As in `adaptive_composition`.
    delta : float or array_like
        In [0, 1]; inf at 0.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the arguments do not match, or delta is out of range.

    See Also
    --------
    cvxleak.measures.conditional_maximal_leakage : One term of the sum.

    Notes
    -----
    ENVELOPE section IV-A, after Theorem 3, for any number of releases.

    Examples
    --------
    >>> from cvxleak.envelope import adaptive_composition_bound
    >>> erasure = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    >>> noisy, silent = [[0.9, 0.1], [0.1, 0.9]], [[1.0, 0.0], [1.0, 0.0]]
    >>> plan = [noisy, noisy, silent]  # ask again only where the answer is known
    >>> round(float(adaptive_composition_bound([0.5, 0.5], [erasure, plan], 1.0)), 6)  # log 1.5
    0.405465
    """
    level = probabilities_in(delta, "delta")
    steps = in_order(releases, "releases")
    leakage = maximal_leakage(adaptive_composition(steps[:1]), prior)
    for i in range(1, len(steps)):
        past = adaptive_composition(steps[:i])
        plan = in_order(steps[i], f"releases[{i}]")
        leakage += conditional_maximal_leakage(past, plan, prior)
    return _over(leakage, level)[()]


def _over(leakage: float, delta: Array) -> Array:
    """Return leakage + log 1/delta; inf at 0."""
    with np.errstate(divide="ignore"):
        return leakage - np.log(delta)
