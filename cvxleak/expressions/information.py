"""Entropy and mutual information as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance, whole_number
from cvxleak.core.wording import are, counted
from cvxleak.expressions.arguments import (
    Law,
    Rows,
    derived,
    is_fixed,
    law_expression,
    matched,
    raised,
    rational_order,
    support,
)
from cvxleak.expressions.joint import (
    conditional_joint,
    input_joint,
    record_joint,
    stated_joint,
)
from cvxleak.model import Lumped, Query

__all__ = [
    "conditional_entropy",
    "conditional_record_information",
    "entropy",
    "exp_arimoto_information",
    "exp_sibson_information",
    "group_information",
    "joint_information",
    "lumped_entropy",
    "mutual_information",
    "record_information",
]


def entropy(prior: Law) -> cp.Expression:
    """Return H(X) = -sum_x p(x) log p(x), in nats: concave in the prior.

    Parameters
    ----------
    prior : Prior, array_like or cp.Expression, shape (k,)
        The distribution of X.

    Raises
    ------
    ValidationError
        A prior that is neither a distribution nor an affine expression with one axis.

    Notes
    -----
    LEAKAGE Theorem 2(1). The twin of `cvxleak.measures.entropy`.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.expressions import entropy
    >>> p = cp.Variable(3)
    >>> problem = cp.Problem(cp.Maximize(entropy(p)), [cp.sum(p) == 1, p[0] == 0.5])
    >>> value = problem.solve()
    >>> [round(float(x), 3) for x in p.value]
    [0.5, 0.25, 0.25]
    """
    return cp.entr(law_expression(prior)).sum()


def lumped_entropy(weights: Law, lumped: Lumped) -> cp.Expression:
    """Return F(w) = -sum_g w_g log w_g + sum_g w_g log m_g, in nats: concave in the weights.

    It is the largest entropy of a dataset whose lumped weights are w: each group's mass is spread
    evenly over its m_g datasets.

    Parameters
    ----------
    weights : Prior, array_like or cp.Expression, shape (N,)
        Probability of each group.
    lumped : Lumped
        Built by `Mechanism.lumped`.

    Raises
    ------
    ValidationError
        Weights that are not a distribution on the N groups or an affine expression with N entries.

    Notes
    -----
    The twin of `cvxleak.measures.lumped_entropy`.

    Examples
    --------
    >>> from cvxleak.expressions import lumped_entropy
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> count = AdditiveQuery(RecordSpace.binary(20), [(0, 1)] * 20)
    >>> lumped = Mechanism(count, [[1.0]] * 21).lumped(0)
    >>> round(float(lumped_entropy(lumped.uniform(), lumped).value), 6)  # 20 log 2
    13.862944
    """
    size = len(instance(lumped, Lumped, "lumped").multiplicities)
    w = law_expression(weights, "weights")
    if w.shape[0] != size:
        raise ValidationError(
            f"weights: found {counted(w.shape[0], 'outcome')}; {size} {are(size)} needed"
        )
    return cp.entr(w).sum() + w @ lumped.log_multiplicity


def conditional_entropy(channel: Rows, prior: Law) -> cp.Expression:
    """Return H(X|Y) = -sum_{x,y} s(x,y) log( s(x,y) / p(y) ), s = p(x) q(y|x), in nats.

    The remaining uncertainty about the input after the output is seen. Concave in the channel for a
    fixed prior, and concave in the prior for a fixed channel; DPP both ways when what is fixed is a
    Parameter.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression, shape (k,)
        The distribution of the input.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, are not stochastic, or both hold variables.

    Notes
    -----
    In terms of measures it is ``entropy(prior) - mutual_information(channel, prior)``.

    Examples
    --------
    >>> from cvxleak.expressions import conditional_entropy
    >>> round(float(conditional_entropy([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5]).value), 6)
    0.477386
    """
    joint = input_joint(prior, channel)
    return -joint.negative_equivocation(joint.output)


def mutual_information(channel: Rows, prior: Law) -> cp.Expression:
    """Return I(X;Y) = sum_{x,y} p(x) q(y|x) log( q(y|x) / p(y) ), in nats.

    - Convex in the channel for a fixed prior, as H(X) - H(X|Y).
    - Concave in the prior for a fixed channel, as H(Y) - H(Y|X).

    Both are DPP when what is fixed is a Parameter.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression, shape (k,)
        The distribution of the input. Rows whose probability is known to be zero are left out.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, are not stochastic, or both hold variables.

    See Also
    --------
    cvxleak.constraints.mi_budget : A bound on it with an auxiliary variable, for large channels.
    joint_information : For the joint distribution as the variable.

    Notes
    -----
    LEAKAGE Theorem 1(1) and 1(3). The twin of `cvxleak.measures.mutual_information`.

    Examples
    --------
    The rate-distortion function of a fair bit at distortion 0.1, log 2 - h(0.1):

    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel
    >>> from cvxleak.expressions import mutual_information
    >>> Q, rows = channel(2, 2)
    >>> rules = [*rows, (Q[0, 1] + Q[1, 0]) / 2 <= 0.1]
    >>> problem = cp.Problem(cp.Minimize(mutual_information(Q, [0.5, 0.5])), rules)
    >>> round(float(problem.solve()), 4)
    0.3681
    """
    p, q = matched(prior, channel)
    if is_fixed(q):
        noise = derived(q, _row_entropies, (q.shape[0],))
        return cp.entr(p @ q).sum() - p @ noise
    return input_joint(prior, channel).information()


def joint_information(joint: Law, prior: Law) -> cp.Expression:
    """Return I(X;Y) of a joint distribution J with given row sums, in nats: convex in J.

    H(X) + sum_{x,y} J(x,y) log( J(x,y) / sum_x' J(x',y) ). It is the mutual information if sum_y
    J(x,y) = p(x), the constraint that `cvxleak.constraints.joint_law` returns.

    Parameters
    ----------
    joint : array_like or cp.Expression, shape (k, m)
        J(x,y) = p(x) q(y|x).
    prior : Prior, array_like or cp.Expression without variables, shape (k,)
        The distribution of the input. DPP when it is a Parameter.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a prior with variables.

    See Also
    --------
    cvxleak.constraints.mi_budget : Much faster for large channels.

    Examples
    --------
    >>> from cvxleak.expressions import joint_information
    >>> round(float(joint_information([[0.45, 0.05], [0.05, 0.45]], [0.5, 0.5]).value), 6)
    0.368064
    """
    return stated_joint(prior, joint).information()


def record_information(
    channel: Rows, prior: Law, query: Query, records: int | Sequence[int]
) -> cp.Expression:
    """Return I(X_i;Y) of a mechanism, in nats: convex in the noise channel q(y|f(x)).

    With W(a,v) = P(X_i = a, f(X) = v), the joint distribution of the record and the output is the
    linear map s = W Q, and I(X_i;Y) = H(X_i) + sum_{a,y} s(a,y) log( s(a,y) / p(y) ): |X_i| times
    |Y| exponential cones, whatever the number of datasets.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (values of f, outputs)
        One row per value of the query, in the order of `query.values`; a `Channel` is matched by
        label.
    prior : Prior, array_like or cp.Expression without variables
        The adversary's knowledge: of shape (|X|,), a distribution on the datasets in product order;
        or of shape (values of X_i, values of f), the distribution W itself, for spaces too large to
        write out. DPP when it is a Parameter.
    query : Query
        The query f.
    records : int or sequence of int
        A record i, or a group I for I(X_I;Y).

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a prior with variables.

    Notes
    -----
    LEAKAGE Theorem 1(3). The twin of `cvxleak.measures.record_information`.

    Examples
    --------
    >>> from cvxleak.expressions import record_information
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> flip = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(float(record_information(flip, [0.5, 0.0, 0.5, 0.0], parity, 0).value), 6)
    0.368064
    """
    return record_joint(prior, query, channel, records).information()


def conditional_record_information(
    channel: Rows,
    prior: Law,
    query: Query,
    records: int | Sequence[int],
    given: int | Sequence[int],
) -> cp.Expression:
    """Return I(X_I;Y|X_G), in nats: convex in the noise channel q(y|f(x)).

    The information in the output about records I, given that records G are known: H(X_I|X_G) -
    H(X_I|X_G, Y). The joint distributions in it are linear in the channel.

    Parameters
    ----------
    channel, query
        As in `record_information`.
    prior : Prior, array_like or cp.Expression without variables
        As in `record_information`; W is for the records I followed by G, taken as one group.
    records, given : int or sequence of int
        The records I in question and the known records G; they must not overlap.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a prior with variables.

    Notes
    -----
    The twin of `cvxleak.measures.conditional_record_information`. DPP when the prior is a
    Parameter.

    Examples
    --------
    >>> from cvxleak.expressions import conditional_record_information
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> flip = [[0.9, 0.1], [0.1, 0.9]]
    >>> told = conditional_record_information(flip, [0.25] * 4, parity, 0, given=1)
    >>> round(float(told.value), 6)
    0.368064
    """
    return conditional_joint(prior, query, channel, records, given).information()


def group_information(channel: Rows, prior: Law, query: Query, size: int) -> cp.Expression:
    """Return max over groups I of `size` records of I(X_I;Y), in nats: convex in the channel.

    Parameters
    ----------
    channel, query
        As in `record_information`.
    prior : Prior, array_like or cp.Expression without variables, shape (|X|,)
        The adversary's knowledge, on the datasets in product order. DPP when it is a Parameter.
    size : int
        Size of the groups, from 1 to the number of records.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior with variables, or a size that is out of
        range.

    Notes
    -----
    DALENIUS Definition 15 for one adversary. The twin of `cvxleak.measures.group_information`.

    Examples
    --------
    >>> from cvxleak.expressions import group_information
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> round(float(group_information([[0.9, 0.1], [0.1, 0.9]], [0.25] * 4, parity, 2).value), 6)
    0.368064
    """
    n = instance(query, Query, "query").space.records
    groups = combinations(range(n), whole_number(size, "size", 1, n))
    told = [record_information(channel, prior, query, group) for group in groups]
    return cp.max(cp.hstack(told))


def exp_arimoto_information(channel: Rows, prior: Law, alpha: float) -> cp.Expression:
    """Return e^((alpha-1)/alpha I_alpha(X;Y)) of Arimoto's information, for a fixed prior.

    sum_y ( sum_x (p(x) q(y|x))^alpha )^(1/alpha) / ( sum_x p(x)^alpha )^(1/alpha): for alpha > 1
    convex in the channel (a sum of norms), for alpha < 1 concave. It is `exp_sibson_information`
    under the prior proportional to p(x)^alpha.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression without variables, shape (k,)
        The distribution of the input.
    alpha : float
        The order, as in `exp_sibson_information`. For 1 use `mutual_information`. At inf the value
        is `posterior_bayes_vulnerability` divided by `bayes_vulnerability`.

    Raises
    ------
    ValidationError
        Arguments that do not match each other or are not stochastic, a prior with variables, or an
        order that is not allowed.

    Notes
    -----
    In terms of measures it is ``exp((alpha - 1) / alpha * arimoto_information(...))``. DPP when the
    prior is a Parameter. One atom per output.

    Examples
    --------
    >>> from cvxleak.expressions import exp_arimoto_information
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(float(exp_arimoto_information(noisy, [0.8, 0.2], 2).value), 6)
    1.112335
    """
    order = rational_order(alpha)
    p, q = matched(prior, channel)
    if not is_fixed(p):
        raise ValidationError(
            "prior: found variables; the expression is not convex in the prior, which must "
            "be data or a Parameter"
        )
    tilted = derived(p, partial(_tilted, exponent=float(order)), p.shape, nonneg=True)
    return exp_sibson_information(q, tilted, alpha)


def exp_sibson_information(channel: Rows, prior: Law, alpha: float) -> cp.Expression:
    """Return e^((alpha-1)/alpha I_alpha(X;Y)) = sum_y ( sum_x p(x) q(y|x)^alpha )^(1/alpha).

    - For alpha > 1 convex in the channel for a fixed prior (a sum of norms), and concave in the
      prior for a fixed channel.
    - For alpha < 1 concave in the channel, and convex in the prior.

    Sibson's information itself is quasiconvex in the channel. For alpha < 1 it is even convex, and
    ``-alpha / (1 - alpha) * cp.log(exp_sibson_information(...))`` expresses it.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression, shape (k,)
        The distribution of the input.
    alpha : float
        The order: positive, not 1, and a ratio of whole numbers up to 1024 (CVXPY's atoms round
        other powers, so the order would be a different one). For 1 use `mutual_information`, for
        inf `exp_maximal_leakage`.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, are not stochastic, or both hold variables; an order
        that is not allowed.

    See Also
    --------
    cvxleak.constraints.sibson_budget : An upper bound on it, for any order.

    Notes
    -----
    In terms of measures it is ``exp((alpha - 1) / alpha * sibson_information(...))``. DPP both ways
    when what is fixed is a Parameter. One atom per output.

    Examples
    --------
    >>> from cvxleak.expressions import exp_sibson_information
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(float(exp_sibson_information(noisy, [0.5, 0.5], 2).value), 6)  # sqrt(1.64)
    1.280625
    """
    order = rational_order(alpha)
    p, q = matched(prior, channel)
    if is_fixed(q):
        powers = derived(q, partial(raised, exponent=float(order)), q.shape)
        return cp.power(p @ powers, 1 / order).sum()
    seen = support(p)
    roots = derived(p, partial(raised, exponent=float(1 / order)), p.shape)[seen]
    cells = cp.multiply(cp.outer(roots, np.ones(q.shape[1])), q[seen])
    power: Any = float(order)  # CVXPY takes any number, and annotates whole ones
    return cp.hstack([cp.pnorm(cells[:, y], power) for y in range(q.shape[1])]).sum()


def _tilted(law: Array, exponent: float) -> Array:
    """Return the distribution proportional to a power of another."""
    powers = raised(law / law.max(), exponent)
    return powers / powers.sum()


def _row_entropies(rows: Array) -> Array:
    return entr(rows).sum(axis=1)
