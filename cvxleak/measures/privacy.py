"""Differential privacy of a channel (local) and of a mechanism (neighboring datasets)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import Array, instance, real_number
from cvxleak.model import Channel, Mechanism, as_channel

__all__ = [
    "dp_failure_probability",
    "local_dp_epsilon",
    "privacy_profile",
    "product_max_information",
    "record_dp_epsilon",
    "record_dp_failure_probability",
    "record_privacy_profile",
]

TIE = 1e-12
"""A privacy loss that exceeds epsilon by no more than this many nats is taken to equal it."""


def local_dp_epsilon(channel: Channel | ArrayLike) -> float:
    """Return the least epsilon for which the channel is locally differentially private, in nats.

    max over inputs x, x' and outputs y of log( q(y|x) / q(y|x') ). It is inf if an output is
    possible for one input and impossible for another. Outputs that are impossible for all inputs do
    not count.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).

    Raises
    ------
    ValidationError
        If the channel is not stochastic.

    Notes
    -----
    ENVELOPE Definition 1.

    Examples
    --------
    >>> from cvxleak.measures import local_dp_epsilon
    >>> round(local_dp_epsilon([[0.75, 0.25], [0.25, 0.75]]), 6)  # log 3
    1.098612
    >>> local_dp_epsilon([[1.0, 0.0], [0.5, 0.5]])
    inf
    """
    rows = as_channel(channel).matrix
    return max(0.0, float(_loss(rows.max(axis=0), rows.min(axis=0)).max()))


def record_dp_epsilon(mechanism: Mechanism) -> float:
    """Return the least epsilon for which the mechanism is differentially private, in nats.

    max over outputs y and neighboring datasets x, x' (they differ in the value of one record) of
    log( q(y|x) / q(y|x') ). It is inf if an output is possible for one of two neighbors only.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism. Only the pairs of query values that neighbors can have are compared, so an
        `AdditiveQuery` with thousands of records is fast.

    Notes
    -----
    DALENIUS Definition 9, with "differ in one record" in place of its norm, which is equivalent
    only for binary records.

    Examples
    --------
    >>> from cvxleak.measures import record_dp_epsilon
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(10_000), [(0, 1)] * 10_000, modulus=2)
    >>> round(record_dp_epsilon(Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]])), 6)
    1.098612
    """
    worst = 0.0
    for row, others in _neighbors(mechanism):
        worst = max(worst, float(_loss(row, others).max()))
    return worst


def product_max_information(mechanism: Mechanism) -> float:
    """Return the supremum over records i and product priors of I_inf(X_i;Y), in nats.

    It equals `record_dp_epsilon` (DALENIUS Theorem 1). Unless it is 0, no prior attains it:

    - At most epsilon. Under a product prior all values a of X_i see the same distribution of the
      other records z, so p(y|a) / p(y|b) = sum_z p(z) q(y|a,z) / sum_z p(z) q(y|b,z), which is at
      most the largest q(y|a,z) / q(y|b,z); and p(y) is an average of the p(y|b).
    - Arbitrarily close to epsilon. Let the other records be known, with the context z of the worst
      pair, and X_i be a with probability t and b otherwise: then p(y|a) / p(y) = q(y|a,z) / (t
      q(y|a,z) + (1 - t) q(y|b,z)), which tends to q(y|a,z) / q(y|b,z) as t falls to 0, and to inf,
      as 1/t, if q(y|b,z) = 0. At t = 0 itself the value a does not occur, and the information is 0.

    Both steps need independence: with correlated records I_inf(X_i;Y) can exceed epsilon.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).

    See Also
    --------
    record_max_information : The same under one prior.

    Notes
    -----
    DALENIUS Definition 8 and Theorem 1. The paper writes a maximum; it is one if Definition 7 is
    read literally, as by ``max_information(..., every_input=True)``: where X_i is surely b.

    Examples
    --------
    >>> from cvxleak.measures import product_max_information
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> round(product_max_information(Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]])), 6)
    1.098612
    """
    return record_dp_epsilon(mechanism)


def privacy_profile(channel: Channel | ArrayLike, epsilon: float) -> float:
    """Return delta*(epsilon): the least delta for which (epsilon, delta)-local DP holds.

    max over inputs x, x' of sum_y max(0, q(y|x) - e^epsilon q(y|x')).

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    epsilon : float
        Finite and not negative, in nats. At 0 the profile is the largest total variation distance.

    Raises
    ------
    ValidationError
        If the channel is not stochastic or epsilon is out of range.

    Notes
    -----
    ENVELOPE Definition 2 and (3).

    Examples
    --------
    >>> from cvxleak.measures import privacy_profile
    >>> privacy_profile([[0.75, 0.25], [0.25, 0.75]], 0.0)
    0.5
    """
    eps = real_number(epsilon, "epsilon", 0.0, open_high=True)
    return max(_excess(row, others, eps) for row, others in _inputs(channel))


def record_privacy_profile(mechanism: Mechanism, epsilon: float) -> float:
    """Return delta*(epsilon): the least delta for which (epsilon, delta)-DP holds for records.

    max over neighboring datasets x, x' of sum_y max(0, q(y|x) - e^epsilon q(y|x')).

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    epsilon : float
        Finite and not negative, in nats.

    Raises
    ------
    ValidationError
        If epsilon is out of range.

    Notes
    -----
    ENVELOPE Definition 2 and (3), with neighboring datasets in place of all pairs.

    Examples
    --------
    >>> from cvxleak.measures import record_privacy_profile
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> record_privacy_profile(Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]]), 0.0)
    0.5
    """
    eps = real_number(epsilon, "epsilon", 0.0, open_high=True)
    return max((_excess(row, others, eps) for row, others in _neighbors(mechanism)), default=0.0)


def dp_failure_probability(channel: Channel | ArrayLike, epsilon: float) -> float:
    """Return the largest probability that the privacy loss exceeds epsilon.

    max over inputs x, x' of P( L(Y) > epsilon | x ), L(y) = log( q(y|x) / q(y|x') ): the least
    delta for which (epsilon, delta)-probabilistic DP holds. It is at least
    ``privacy_profile(channel, epsilon)``, and post-processing can raise it.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    epsilon : float
        Finite and not negative, in nats. The inequality is strict, so the value jumps where epsilon
        equals a loss. Losses within 1e-12 nats of epsilon count as equal to it, so that rounding
        does not give an epsilon-private channel a positive failure probability.

    Raises
    ------
    ValidationError
        If the channel is not stochastic or epsilon is out of range.

    Notes
    -----
    ENVELOPE Definition 3.

    Examples
    --------
    >>> from math import log
    >>> from cvxleak.measures import dp_failure_probability
    >>> noisy = [[0.75, 0.25], [0.25, 0.75]]
    >>> dp_failure_probability(noisy, 1.0), dp_failure_probability(noisy, log(3))
    (0.75, 0.0)
    """
    eps = real_number(epsilon, "epsilon", 0.0, open_high=True)
    return max(_failure(row, others, eps) for row, others in _inputs(channel))


def record_dp_failure_probability(mechanism: Mechanism, epsilon: float) -> float:
    """Return the largest probability that the privacy loss between neighbors exceeds epsilon.

    max over neighboring datasets x, x' of P( log( q(Y|x) / q(Y|x') ) > epsilon | x ).

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    epsilon : float
        Finite and not negative, in nats; ties as in `dp_failure_probability`.

    Raises
    ------
    ValidationError
        If epsilon is out of range.

    Notes
    -----
    ENVELOPE Definition 3, with neighboring datasets in place of all pairs.

    Examples
    --------
    >>> from cvxleak.measures import record_dp_failure_probability
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> record_dp_failure_probability(Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]]), 1.0)
    0.75
    """
    eps = real_number(epsilon, "epsilon", 0.0, open_high=True)
    return max((_failure(row, others, eps) for row, others in _neighbors(mechanism)), default=0.0)


def _inputs(channel: Channel | ArrayLike) -> Iterator[tuple[Array, Array]]:
    """Yield each row of a channel with all rows."""
    rows = as_channel(channel).matrix
    for row in rows:
        yield row, rows


def _neighbors(mechanism: Mechanism) -> Iterator[tuple[Array, Array]]:
    """Yield the output distribution of each query value, with those of its neighbors' values."""
    rows = instance(mechanism, Mechanism, "mechanism").channel.matrix
    near: dict[int, list[int]] = defaultdict(list)
    for u, v in mechanism.query.neighbor_pairs():
        near[u].append(v)
        near[v].append(u)
    for u, others in near.items():
        yield rows[u], rows[others]


def _loss(row: Array, others: Array) -> Array:
    """Return log(row / others), broadcast; -inf where `row` is 0, inf where only `others` is."""
    row, others = np.broadcast_arrays(row, others)
    with np.errstate(divide="ignore"):
        return np.subtract(
            np.log(row), np.log(others), out=np.full(row.shape, -np.inf), where=row > 0
        )


def _scaled(others: Array, epsilon: float) -> Array:
    """Return e^epsilon times `others`; 0 stays 0, and what is too large becomes inf."""
    # In two halves, so that a large epsilon meets a subnormal probability as it should. Past 1400
    # nothing changes any more: every positive float is scaled to more than 1.
    half = math.exp(min(epsilon, 1400.0) / 2)
    with np.errstate(over="ignore"):
        return half * (half * others)


def _excess(row: Array, others: Array, epsilon: float) -> float:
    return float(np.maximum(0.0, row - _scaled(others, epsilon)).sum(axis=1).max())


def _failure(row: Array, others: Array, epsilon: float) -> float:
    return float(np.where(row > _scaled(others, epsilon + TIE), row, 0.0).sum(axis=1).max())
