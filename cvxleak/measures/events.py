"""Event leakage, and the envelopes over events and over binary post-processings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array, plain_array
from cvxleak.core.wording import are, counted
from cvxleak.measures._laws import aligned
from cvxleak.measures.pointwise import probabilities_in
from cvxleak.model import Channel, Prior

__all__ = ["binary_envelope", "event_envelope", "event_leakage"]

_STEPS = 100
_BATCH = 1 << 22


def event_leakage(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, event: ArrayLike
) -> float:
    """Return l(X -> E) = log max_x P(E|x) / P(E), over inputs of positive probability, in nats.

    The leakage of learning that the event has occurred. The event may be randomized: given the
    output y it occurs with probability `event[y]`.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    event : array_like, shape (m,)
        For each output, the probability in [0, 1] that it belongs to the event; True and False for
        a set of outputs.

    Returns
    -------
    float
        In [0, log 1/P(E)]; 0 for the sure event. -inf for an event that cannot happen, as for an
        outcome that cannot occur.

    Raises
    ------
    ValidationError
        If the prior, the channel and the event do not match, or a probability is out of range.

    Notes
    -----
    ENVELOPE (23), (24) and Lemma 3. The union of two disjoint events leaks at most as much as the
    one that leaks more; it can leak less than both, and a subset can leak more or less (Examples
    3 and 4).

    Examples
    --------
    >>> from cvxleak.measures import event_leakage
    >>> erasure = [[0.9, 0.0, 0.1], [0.0, 0.9, 0.1]]
    >>> round(event_leakage(erasure, [0.5, 0.5], [1, 0, 0]), 6)  # log 2, ENVELOPE Example 3
    0.693147
    >>> event_leakage(erasure, [0.5, 0.5], [True, True, False])
    0.0
    """
    p, rows = aligned(prior, channel)
    share = frozen_array(plain_array(event, "event"), "event", 1)
    if len(share) != rows.shape[1]:
        raise ValidationError(
            f"event: found {counted(len(share), 'weight')}; "
            f"{rows.shape[1]} {are(rows.shape[1])} needed"
        )
    if not ((share >= 0) & (share <= 1)).all():
        raise ValidationError("event: found a weight outside [0, 1]")
    happens = rows @ share
    total = float(p @ happens)
    if total == 0:
        return -np.inf
    # An average is at most the largest term; rounding must not say otherwise.
    return max(0.0, float(np.log(happens[p > 0].max() / total)))


def event_envelope(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, delta: ArrayLike
) -> Array:
    """Return the most that an event of probability delta or more leaks, in nats.

    sup { l(X -> E) : P(E) >= delta } over randomized events, which is also the most that an outcome
    of probability delta or more of a post-processing leaks. For each input x the best event takes
    the outputs in the order of q(y|x) / p(y), with a randomized last one:
    log max_x (1/delta) max { P(E|x) : P(E) = delta }.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    delta : float or array_like
        In [0, 1]; at 0 the limit, the largest leakage of an outcome.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or delta is out of range.

    See Also
    --------
    binary_envelope : Also covers post-processings both of whose outcomes leak.

    Notes
    -----
    ENVELOPE (26) to (28), computed by Algorithm 1. The paper identifies it with the binary envelope
    (13), which can be larger.

    Examples
    --------
    >>> from cvxleak.measures import event_envelope
    >>> event_envelope([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], [0.0, 0.5, 0.9]).round(4)
    array([0.6931, 0.6931, 0.1054])
    """
    level = probabilities_in(delta, "delta")
    p, rows = aligned(prior, channel)
    rows = rows[p > 0]
    output = p[p > 0] @ rows
    rows, output = rows[:, output > 0], output[output > 0]
    ratios = rows / output
    points = np.atleast_1d(level).ravel()
    best = np.full(points.shape, float(ratios.max()))
    positive = points > 0
    most = np.zeros(int(positive.sum()))
    order = np.argsort(-ratios, axis=1, kind="stable")
    for row, by_ratio in zip(rows, order, strict=True):
        reach = np.concatenate([[0.0], np.cumsum(output[by_ratio])])
        gain = np.concatenate([[0.0], np.cumsum(row[by_ratio])])
        most = np.maximum(most, np.interp(points[positive], reach, gain))
    # Below the smallest outcome the quotient is that outcome's ratio, up to rounding.
    best[positive] = np.clip(most / points[positive], 1.0, ratios.max())
    return np.log(best).reshape(level.shape)[()]


def binary_envelope(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, delta: ArrayLike
) -> Array:
    """Return sup over binary post-processings Z of the PML delta-quantile of Z, in nats.

    The quantile of a binary Z is the leakage of an outcome whose probability is at least delta, or
    the smaller of the leakages of its two outcomes. So the binary envelope is the maximum of
    `event_envelope` and a number that does not depend on delta, the largest value of the smaller
    leakage:

        max over inputs x, x' and w in [0,1]^m of min( P(E|x) / P(E), P(E^c|x') / P(E^c) ),

    where, given the output y, the event E occurs with probability w_y.

    Parameters
    ----------
    channel, prior, delta
        As in `event_envelope`.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or delta is out of range.

    Notes
    -----
    ENVELOPE (13). The number is computed by linear programming duality, for each pair of inputs, as
    min over lam in [0, 1] of the t at which

        sum_y max( lam (q(y|x) - t p(y)), (1 - lam) (q(y|x') - t p(y)) )

    vanishes; at lam = 1/2 this is 1 + TV(x, x'), an upper bound that rules out most pairs.

    Examples
    --------
    A fair bit that is released without noise:

    >>> from cvxleak.measures import binary_envelope
    >>> binary_envelope([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], [0.5, 0.9]).round(6)
    array([0.693147, 0.693147])
    """
    return np.maximum(event_envelope(channel, prior, delta), _both_outcomes(prior, channel))[()]


def _both_outcomes(prior: Prior | ArrayLike, channel: Channel | ArrayLike) -> float:
    """Return the log of the largest t that both outcomes of a binary post-processing reach."""
    p, rows = aligned(prior, channel)
    rows = rows[p > 0]
    output = p[p > 0] @ rows
    first, second = np.triu_indices(len(rows), 1)
    if not len(first):
        return 0.0
    size = max(1, _BATCH // rows.shape[1])
    cap = np.concatenate(
        [
            np.maximum(rows[first[i : i + size]], rows[second[i : i + size]]).sum(axis=1)
            for i in range(0, len(first), size)
        ]
    )
    order = np.argsort(-cap, kind="stable")
    best, done, batch = 1.0, 0, 64
    while done < len(order) and cap[order[done]] > best * (1 + 1e-15):
        pairs = order[done : done + batch]
        pairs = pairs[cap[pairs] > best]
        best = max(best, float(_pair_levels(rows[first[pairs]], rows[second[pairs]], output).max()))
        done, batch = done + batch, min(2 * batch, size)
    return float(np.log(best))


def _pair_levels(one: Array, other: Array, output: Array) -> Array:
    """Return for each pair of rows min over lam of the root t, by golden-section search.

    For fixed t the function is convex in lam, so the root is quasi-convex, without a plateau above
    its minimum. Whatever lam the search ends at, its root is an upper bound.
    """

    def root(lam: Array) -> Array:
        # sum_y max(lam a - t lam q, (1 - lam) b - t (1 - lam) q) falls in t and is convex:
        # Newton's method from the left is monotone and ends after finitely many steps.
        a, b = lam[:, None] * one, (1 - lam)[:, None] * other
        c, d = lam[:, None] * output, (1 - lam)[:, None] * output
        t = np.ones(len(lam))
        for _ in range(_STEPS):
            left = a - t[:, None] * c >= b - t[:, None] * d
            new = np.where(left, a, b).sum(axis=1) / np.where(left, c, d).sum(axis=1)
            if (new <= t * (1 + 1e-16)).all():
                break
            t = np.maximum(t, new)
        return t

    low, high = np.zeros(len(one)), np.ones(len(one))
    ratio = (np.sqrt(5) - 1) / 2
    inner, outer = high - ratio * (high - low), low + ratio * (high - low)
    at_inner, at_outer = root(inner), root(outer)
    for _ in range(_STEPS):
        lower = at_inner <= at_outer
        high, low = np.where(lower, outer, high), np.where(lower, low, inner)
        new = np.where(lower, high - ratio * (high - low), low + ratio * (high - low))
        value = root(new)
        inner, outer = np.where(lower, new, outer), np.where(lower, inner, new)
        at_inner, at_outer = np.where(lower, value, at_outer), np.where(lower, at_inner, value)
        if (high - low).max() < 1e-15:
            break
    return np.minimum(at_inner, at_outer)
