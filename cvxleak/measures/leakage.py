"""Worst-case leakage: maximal leakage, pointwise maximal leakage, max-information."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, in_order, instance
from cvxleak.core.wording import counted
from cvxleak.measures._laws import Records, aligned, density
from cvxleak.measures.induced import record_channel
from cvxleak.model import Channel, Mechanism, Prior, as_channel

__all__ = [
    "conditional_maximal_leakage",
    "max_information",
    "maximal_leakage",
    "pml",
    "record_max_information",
]


def pml(channel: Channel | ArrayLike, prior: Prior | ArrayLike) -> Array:
    """Return the pointwise maximal leakage l(y) of every outcome, in nats.

    l(y) = log max_x p(x|y) / p(x) = log max_x q(y|x) / p(y) = max_x i(x;y), over the inputs x of
    positive probability. For any non-negative gain, the outcome y raises an adversary's expected
    gain at most by the factor e^l(y). 0 <= l(y) <= log 1/min p(x) for every outcome that can occur.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.

    Returns
    -------
    array, shape (m,)
        -inf for an outcome that never occurs, so that it does not count in a maximum or a tail.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or are not stochastic.

    Notes
    -----
    ENVELOPE Definition 4, the equation after (5), and (6).

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.measures import pml
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> np.exp(pml(mechanism, [0.25] * 4)).round(4)  # ENVELOPE Example 1: 4, 4, 10/9, 10/9
    array([4.    , 4.    , 1.1111, 1.1111])
    """
    return density(*aligned(prior, channel)).max(axis=0)


def max_information(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, *, every_input: bool = False
) -> float:
    """Return I_inf(X;Y) = max log( q(y|x) / p(y) ) over pairs that can occur, in nats.

    It is the largest pointwise maximal leakage of an outcome.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    every_input : bool
        True for the maximum over all inputs, those of probability zero included; it is inf if one
        of them has an output that the others do not have.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or are not stochastic.

    Notes
    -----
    DALENIUS Definition 7 (max-mutual information), literally with ``every_input=True``. Otherwise
    only inputs of positive probability count: where x is a record's value, p(y|x) is undefined for
    the others unless the records are independent.

    Examples
    --------
    >>> from cvxleak.measures import max_information
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(max_information(noisy, [0.5, 0.5]), 6)  # log 0.9/0.5
    0.587787
    >>> [round(max_information(noisy, [1.0, 0.0], every_input=all_of_them), 6)
    ...  for all_of_them in (False, True)]  # log 9
    [0.0, 2.197225]
    """
    if not instance(every_input, bool, "every_input"):
        return float(pml(channel, prior).max())
    p, rows = aligned(prior, channel)
    with np.errstate(divide="ignore"):
        seen = rows > 0
        return float((np.log(rows[seen]) - np.log((p @ rows)[np.nonzero(seen)[1]])).max())


def record_max_information(
    mechanism: Mechanism, prior: Prior | ArrayLike, records: Records
) -> float:
    """Return I_inf(X_i;Y) of a record, under a prior on datasets, in nats.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        The adversary's knowledge p(x) on the datasets; arrays are in product order.
    records : int or sequence of int
        A record i, or a group I for I_inf(X_I;Y).

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    See Also
    --------
    product_max_information : Its supremum over product priors.

    Notes
    -----
    DALENIUS Definition 7 applied to X_i. Under a product prior it is at most the record-level
    differential privacy epsilon; under a correlated prior it can be more.

    Examples
    --------
    >>> from cvxleak.measures import record_max_information
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]])
    >>> round(record_max_information(mechanism, [0.5, 0.0, 0.5, 0.0], 0), 6)
    0.587787
    """
    return max_information(*record_channel(mechanism, prior, records))


def maximal_leakage(channel: Channel | ArrayLike, prior: Prior | ArrayLike) -> float:
    """Return L(X -> Y) = log sum_y max_x q(y|x), over inputs x of positive probability, in nats.

    It depends on the prior only through its support: if all inputs can occur, use any prior of full
    support, such as `Prior.uniform`. It is the logarithm of `multiplicative_bayes_capacity` of the
    rows in the support.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or are not stochastic.

    Notes
    -----
    ENVELOPE section IV-A.

    Examples
    --------
    >>> from cvxleak.measures import maximal_leakage
    >>> round(maximal_leakage([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]), 6)  # log 1.8
    0.587787
    >>> maximal_leakage([[0.9, 0.1], [0.1, 0.9]], [1.0, 0.0])
    0.0
    """
    p, rows = aligned(prior, channel)
    return _log_sum_of_maxima(rows[p > 0])


def conditional_maximal_leakage(
    first: Channel | ArrayLike, second: Sequence[Channel | ArrayLike], prior: Prior | ArrayLike
) -> float:
    """Return L(X -> Y2 | Y1), the leakage of a second output after the first is seen, in nats.

    max over y1 that can occur of log sum_{y2} max_x q2(y2|x, y1), the inner maximum over the
    inputs x with p(x|y1) > 0.

    Parameters
    ----------
    first : Channel or array_like, shape (k, m1)
        The first release, q1(y1|x).
    second : sequence of m1 Channels or arrays, each of shape (k, m2)
        The second release, one channel for each output of the first. If the second release does not
        depend on the first output, repeat the same channel m1 times.
    prior : Prior or array_like, shape (k,)
        The distribution of X.

    Raises
    ------
    ValidationError
        If the prior and the channels do not match, or there is not one second channel per output of
        the first.

    Notes
    -----
    ENVELOPE section IV-A, after Theorem 3. L(X -> Y1, Y2) <= L(X -> Y1) + L(X -> Y2 | Y1).

    Examples
    --------
    >>> from cvxleak.measures import conditional_maximal_leakage
    >>> erasure = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(conditional_maximal_leakage(erasure, [noisy] * 3, [0.5, 0.5]), 6)
    0.587787
    >>> tell_only_who_knows = [noisy, noisy, [[1.0, 0.0], [1.0, 0.0]]]
    >>> conditional_maximal_leakage(erasure, tell_only_who_knows, [0.5, 0.5])
    0.0
    """
    p, rows = aligned(prior, first)
    second = in_order(second, "second")
    if len(second) != rows.shape[1]:
        raise ValidationError(
            f"second: found {counted(len(second), 'channel')}; "
            f"the first has {counted(rows.shape[1], 'output')}"
        )
    worst = 0.0
    for y, channel in enumerate(second):
        then = as_channel(channel, f"second[{y}]")
        if then.shape[0] != len(p):
            raise ValidationError(
                f"second[{y}]: found {counted(then.shape[0], 'row')}; "
                f"the prior has {counted(len(p), 'outcome')}"
            )
        possible = (p > 0) & (rows[:, y] > 0)
        if possible.any():
            worst = max(worst, _log_sum_of_maxima(then.matrix[possible]))
    return worst


def _log_sum_of_maxima(rows: Array) -> float:
    # A row that sums to 1 - 1e-16 by rounding must not make the leakage negative.
    return max(0.0, float(np.log(rows.max(axis=0).sum())))
