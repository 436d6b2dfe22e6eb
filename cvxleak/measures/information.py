"""Mutual information of a channel, a record or a group; conditional information."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, logsumexp

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    instance,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.measures._laws import Records, aligned, density, record_mass
from cvxleak.measures.induced import lumped_channel, record_channel
from cvxleak.model import Channel, Lumped, Mechanism, Prior

__all__ = [
    "arimoto_information",
    "conditional_mutual_information",
    "conditional_record_information",
    "group_information",
    "information_density",
    "lumped_information",
    "mutual_information",
    "record_information",
    "sibson_information",
]


def information_density(channel: Channel | ArrayLike, prior: Prior | ArrayLike) -> Array:
    """Return i(x;y) = log( p(x,y) / (p(x) p(y)) ) = log( q(y|x) / p(y) ), in nats.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.

    Returns
    -------
    array, shape (k, m)
        -inf at every pair of probability zero. Where q(y|x) = 0 that is the logarithm's value.
        Where p(x) = 0 or p(y) = 0 the quotient is undefined; -inf is chosen so that such a pair
        never counts in a maximum or in a tail.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or are not stochastic.

    Notes
    -----
    ENVELOPE section II-C.

    Examples
    --------
    >>> from cvxleak.measures import information_density
    >>> information_density([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5]).round(4)
    array([[ 0.2877,    -inf],
           [-0.4055,  0.6931]])
    """
    return density(*aligned(prior, channel))


def mutual_information(channel: Channel | ArrayLike, prior: Prior | ArrayLike) -> float:
    """Return I(X;Y) = sum_{x,y} p(x) q(y|x) log( q(y|x) / p(y) ), in nats.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input. A `Prior` is matched to the channel's inputs by label, an
        array by position.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or are not stochastic.

    Examples
    --------
    >>> from cvxleak.measures import mutual_information
    >>> round(mutual_information([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]), 6)  # log 2 - h(0.1)
    0.368064
    """
    p, rows = aligned(prior, channel)
    joint = p[:, None] * rows
    seen = joint > 0
    # Rounding can leave a total of -1e-17 where X and Y are independent.
    return max(0.0, float((joint[seen] * density(p, rows)[seen]).sum()))


def sibson_information(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, alpha: float
) -> float:
    """Return Sibson's information I_alpha(X;Y) of order alpha, in nats.

    alpha / (alpha - 1) log sum_y ( sum_x p(x) q(y|x)^alpha )^(1/alpha).

    At alpha = 1 and alpha = inf the formula is read as a limit: the mutual information, and the
    maximal leakage. Sibson's information does not decrease as alpha increases.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input. A `Prior` is matched to the channel's inputs by label, an
        array by position.
    alpha : float
        The order, positive; inf is allowed.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match or are not stochastic, or the order is not
        positive.

    See Also
    --------
    cvxleak.capacities.renyi_capacity : Its maximum over priors.
    arimoto_information : Another information of order alpha, with the same maximum.

    Notes
    -----
    Sibson, Z. Wahrscheinlichkeitstheorie 14 (1969). It is the least Rényi divergence of the joint
    distribution from p(x) r(y), over all distributions r.

    Examples
    --------
    >>> from cvxleak.measures import sibson_information
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> [round(sibson_information(noisy, [0.5, 0.5], a), 6) for a in (1, 2, float("inf"))]
    [0.368064, 0.494696, 0.587787]
    """
    order = real_number(alpha, "alpha", 0.0, open_low=True)
    if order == 1:
        return mutual_information(channel, prior)
    p, rows = aligned(prior, channel)
    p, rows = p[p > 0], rows[p > 0]
    if order == np.inf:
        return max(0.0, float(np.log(rows.max(axis=0).sum())))
    with np.errstate(divide="ignore"):
        terms = np.log(p)[:, None] + order * np.log(rows)
    # On the logarithmic scale, because q^alpha vanishes at high orders.
    norms = np.asarray(logsumexp(terms, axis=0)) / order
    return max(0.0, order / (order - 1) * float(np.asarray(logsumexp(norms))))


def arimoto_information(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, alpha: float
) -> float:
    """Return Arimoto's information of order alpha, which is also called alpha-leakage, in nats.

    H_alpha(X) - H_alpha(X|Y) with Rényi's entropy and Arimoto's conditional one:

        alpha / (alpha - 1) log [ sum_y ( sum_x (p(x) q(y|x))^alpha )^(1/alpha)
                                  / ( sum_x p(x)^alpha )^(1/alpha) ].

    At alpha = 1 and alpha = inf the formula is read as a limit: the mutual information, and the
    min-entropy leakage (the logarithm of the ratio of the probabilities of a correct guess after
    and before the output). For orders in between, it measures how much the output improves an
    adversary's belief under the alpha-loss.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input. A `Prior` is matched to the channel's inputs by label, an
        array by position.
    alpha : float
        The order, positive; inf is allowed.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match or are not stochastic, or the order is not
        positive.

    See Also
    --------
    sibson_information : Equal to it at the prior proportional to p(x)^alpha.
    cvxleak.capacities.maximal_alpha_leakage : Its supremum over all functions of X.

    Notes
    -----
    Arimoto, "Information measures and capacity of order alpha for discrete memoryless channels"
    (1977). Liao, Kosut, Sankar and du Pin Calmon, "Tunable measures for information leakage and
    applications to privacy-utility tradeoffs", IEEE Trans. Inf. Theory 65 (2019), Definition 5 and
    Theorem 1. Unlike Sibson's information, it can decrease as alpha increases.

    Examples
    --------
    >>> from cvxleak.measures import arimoto_information
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> [round(arimoto_information(noisy, [0.8, 0.2], a), 6) for a in (1, 2, float("inf"))]
    [0.247974, 0.212923, 0.117783]
    """
    order = real_number(alpha, "alpha", 0.0, open_low=True)
    if order == 1:
        return mutual_information(channel, prior)
    p, rows = aligned(prior, channel)
    p, rows = p[p > 0], rows[p > 0]
    with np.errstate(divide="ignore"):
        before = np.log(p)
        joint = before[:, None] + np.log(rows)
    if order == np.inf:
        after = np.asarray(logsumexp(joint.max(axis=0)))
        return max(0.0, float(after - before.max()))
    norms = np.asarray(logsumexp(order * joint, axis=0)) / order
    rise = np.asarray(logsumexp(norms)) - np.asarray(logsumexp(order * before)) / order
    return max(0.0, order / (order - 1) * float(rise))


def record_information(mechanism: Mechanism, prior: Prior | ArrayLike, records: Records) -> float:
    """Return I(X_i;Y), the information in the output about a record under one prior, in nats.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        The adversary's knowledge p(x): a distribution on the datasets. A `Prior` labeled by the
        datasets is matched by label, an array is in product order, the last record varying fastest.
        Any correlation is allowed.
    records : int or sequence of int
        A record i, or a group I for I(X_I;Y).

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    See Also
    --------
    lumped_information : The same under lumped weights, for thousands of records.

    Notes
    -----
    The per-record leakage of DALENIUS Definition 4 and LEAKAGE Definition 2.1.

    Examples
    --------
    >>> from cvxleak.measures import record_information
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]])
    >>> record_information(mechanism, [0.25] * 4, 0)
    0.0
    >>> round(record_information(mechanism, [0.5, 0.0, 0.5, 0.0], 0), 6)
    0.368064
    """
    return mutual_information(*record_channel(mechanism, prior, records))


def lumped_information(weights: Prior | ArrayLike, lumped: Lumped) -> float:
    """Return I(A;Y) of a record A whose prior is given by lumped weights, in nats.

    With s_{a,y} = sum over the groups g of a of w_g R_g(y), it is
    sum_{a,y} s_{a,y} log( s_{a,y} / (s_{a,.} s_{.,y}) ).

    Parameters
    ----------
    weights : Prior or array_like, shape (N,)
        Probability of each group of `lumped`.
    lumped : Lumped
        Built by `Mechanism.lumped`.

    Raises
    ------
    ValidationError
        If the weights are not a distribution on the N groups.

    Examples
    --------
    >>> from cvxleak.measures import lumped_information
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(1000), [(0, 1)] * 1000, modulus=2)
    >>> lumped = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]).lumped(0)
    >>> round(lumped_information([0.5, 0.0, 0.0, 0.5], lumped), 6)  # the others' parity is known
    0.368064
    """
    return mutual_information(*lumped_channel(weights, lumped))


def group_information(mechanism: Mechanism, prior: Prior | ArrayLike, size: int) -> float:
    """Return max over groups I of `size` records of I(X_I;Y), under one prior, in nats.

    DALENIUS Definition 15 with the class of adversaries reduced to one. (For all adversaries with
    an entropy floor, see `cvxleak.audit.group_leakage`.)

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        The adversary's knowledge p(x) on the datasets; arrays are in product order.
    size : int
        Size of the groups, from 1 to the number of records.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or size is out of range.

    Examples
    --------
    >>> from cvxleak.measures import group_information
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]])
    >>> [round(group_information(mechanism, [0.25] * 4, size), 6) for size in (1, 2)]
    [0.0, 0.368064]
    """
    n = instance(mechanism, Mechanism, "mechanism").space.records
    size = whole_number(size, "size", 1, n)
    return max(
        record_information(mechanism, prior, group) for group in combinations(range(n), size)
    )


def conditional_mutual_information(joint: ArrayLike) -> float:
    """Return I(A;B|C) of a joint distribution p(a,b,c), in nats.

    I(A;B|C) = H(A,C) + H(B,C) - H(A,B,C) - H(C); conditions c of probability zero do not count.

    Parameters
    ----------
    joint : array_like, shape (|A|, |B|, |C|)
        Non-negative, sum 1 within 1e-9.

    Raises
    ------
    ValidationError
        If `joint` does not have three axes or is not a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.measures import conditional_mutual_information
    >>> a, b, c = np.indices((2, 2, 2))
    >>> parity = (a ^ b == c) / 4  # independent fair bits, tied together by their parity
    >>> round(conditional_mutual_information(parity), 6)
    0.693147
    """
    array = frozen_array(joint, "joint", 3)
    probability_rows(array.ravel(), "joint", 1)
    value = (
        entr(array.sum(axis=1)).sum()
        + entr(array.sum(axis=0)).sum()
        - entr(array).sum()
        - entr(array.sum(axis=(0, 1))).sum()
    )
    return max(0.0, float(value))


def conditional_record_information(
    mechanism: Mechanism, prior: Prior | ArrayLike, records: Records, given: Records
) -> float:
    """Return I(X_I;Y|X_G), the information about records I given that records G are known, in nats.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        The adversary's knowledge p(x) on the datasets; arrays are in product order.
    records, given : int or sequence of int
        The records I in question and the known records G; they must not overlap.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    If G is the set of all other records, it is the conditional information of the literature on
    differential privacy. It is the second term of the chain rule in DALENIUS Lemma 3.

    Examples
    --------
    >>> from cvxleak.measures import conditional_record_information
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]])
    >>> round(conditional_record_information(mechanism, [0.25] * 4, 0, given=1), 6)
    0.368064
    """
    space = instance(mechanism, Mechanism, "mechanism").space
    asked, known = space.group(records), space.group(given)
    if set(asked) & set(known):
        raise ValidationError(f"given: found {given!r}; it must not overlap records {records!r}")
    joint = record_mass(prior, mechanism, asked + known) @ mechanism.channel.matrix
    values = len(space.values(asked))
    return conditional_mutual_information(
        joint.reshape(values, -1, joint.shape[1]).transpose(0, 2, 1)
    )
