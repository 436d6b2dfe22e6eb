"""Gradients of a record's information and of the entropy (LEAKAGE Theorems 8 and 9).

A prior on datasets is written p(x) = p(x_i) p(x_{-i}|x_i), and I(X_i;Y) is a function of three
arguments: the marginal p(x_i), the conditionals p(x_{-i}|x_i) and the mechanism q(y|x), through
p(y|x_i) = sum_{x_{-i}} p(x_{-i}|x_i) q(y|x) and p(y) = sum_{x_i} p(x_i) p(y|x_i). The derivatives
are the partial ones: each entry moves alone, and no sum is held at 1, with the functions continued
by the formulas

    I = sum_{x_i} p(x_i) sum_y p(y|x_i) log( p(y|x_i) / p(y) ),    H = -sum_x p(x) log p(x).

Along directions that keep the sums at 1, a constant added to the gradient in p(x), in p(x_i), or
in one row p(.|x_i) makes no difference. At the boundary they are the one-sided derivatives of an
entry that grows from 0; they may be infinite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import Array, instance
from cvxleak.measures._laws import Records, density, law, record_law
from cvxleak.model import Mechanism, Prior, RecordSpace

__all__ = [
    "entropy_gradient",
    "entropy_gradient_conditional",
    "entropy_gradient_marginal",
    "information_gradient_conditional",
    "information_gradient_marginal",
    "information_gradient_mechanism",
]


def information_gradient_mechanism(
    mechanism: Mechanism, prior: Prior | ArrayLike, records: Records
) -> Array:
    """Return dI(X_i;Y)/dq(y|x) = p(x) log( p(y|x_i) / p(y) ).

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        p(x) on the datasets; arrays are in product order.
    records : int or sequence of int
        A record i, or a group that is taken as one.

    Returns
    -------
    array, shape (|X|, outputs)
        In nats. 0 where p(x) = 0; -inf where p(x) > 0 and p(y|x_i) = 0 < p(y); and, by the limit
        of p(y|x_i) / p(y) as q(y|x) grows from 0, -p(x) log p(x_i) where p(y) = 0.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    LEAKAGE Theorem 8, (35).

    Examples
    --------
    >>> from cvxleak.measures import information_gradient_mechanism
    >>> from cvxleak.model import Mechanism, RecordSpace
    >>> mechanism = Mechanism.from_channel(RecordSpace.binary(1), [[0.75, 0.25], [0.25, 0.75]])
    >>> information_gradient_mechanism(mechanism, [0.5, 0.5], 0).round(4)
    array([[ 0.2027, -0.3466],
           [-0.3466,  0.2027]])
    """
    slope = _slope(*record_law(prior, mechanism, records))
    slope = slope[mechanism.space.value_index(records)]
    p = mechanism.space.law(prior)[:, None]
    return np.multiply(p, slope, out=np.zeros(slope.shape), where=p > 0)


def information_gradient_marginal(
    mechanism: Mechanism, prior: Prior | ArrayLike, records: Records
) -> Array:
    """Return dI(X_i;Y)/dp(x_i) = sum_y p(y|x_i) log( p(y|x_i) / p(y) ) - 1.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        p(x) on the datasets; arrays are in product order.
    records : int or sequence of int
        A record i, or a group that is taken as one.

    Returns
    -------
    array, shape (values of X_i,)
        In nats; nan for a value with p(x_i) = 0, for which the prior does not say what
        p(x_{-i}|x_i) is.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    LEAKAGE Theorem 8, (36). The -1 comes from the change of p(y). It belongs to the gradient with
    p(x_i) unconstrained, and makes no difference on the simplex. (In the proof, (39) has the wrong
    sign before its last term.)

    Examples
    --------
    >>> from cvxleak.measures import information_gradient_marginal
    >>> from cvxleak.model import Mechanism, RecordSpace
    >>> mechanism = Mechanism.from_channel(RecordSpace.binary(1), [[0.75, 0.25], [0.25, 0.75]])
    >>> information_gradient_marginal(mechanism, [0.5, 0.5], 0).round(4)
    array([-0.8692, -0.8692])
    """
    p, rows = record_law(prior, mechanism, records)
    slope = _slope(p, rows)
    terms = np.multiply(rows, slope, out=np.zeros(rows.shape), where=rows > 0)
    return np.where(p > 0, terms.sum(axis=1) - 1, np.nan)


def information_gradient_conditional(
    mechanism: Mechanism, prior: Prior | ArrayLike, records: Records
) -> Array:
    """Return dI(X_i;Y)/dp(x_{-i}|x_i) = p(x_i) sum_y q(y|x) log( p(y|x_i) / p(y) ).

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        p(x) on the datasets; arrays are in product order.
    records : int or sequence of int
        A record i, or a group that is taken as one.

    Returns
    -------
    array, shape (|X|,)
        In nats, for the datasets x = (x_i, x_{-i}) in product order. 0 where p(x_i) = 0; -inf
        where an output with p(y|x_i) = 0 < p(y) is possible under x; an output with p(y) = 0 that
        is possible under x counts with log 1/p(x_i), the limit of the logarithm.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    LEAKAGE Theorem 8, (37), which is printed with two more terms,
    p(x_i) - p(x_i)^2 sum_y p(y|x_i) q(y|x) / p(y). They are the change of log( p(y|x_i) / p(y) )
    within the row of x_i alone; the other rows change through p(y) too, and with them the terms
    cancel.

    Examples
    --------
    >>> from cvxleak.measures import information_gradient_conditional
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]])
    >>> information_gradient_conditional(mechanism, [0.5, 0.0, 0.5, 0.0], 0).round(4)
    array([ 0.0654, -0.2092,  0.0654, -0.2092])
    """
    p, rows = record_law(prior, mechanism, records)
    outputs = mechanism.channel.matrix
    # Entry (a, v) for x_i = a and f(x) = v.
    table = np.zeros((len(p), len(outputs)))
    for a, slope in enumerate(_slope(p, rows)):
        if p[a] > 0:
            terms = np.multiply(outputs, slope, out=np.zeros(outputs.shape), where=outputs > 0)
            table[a] = p[a] * terms.sum(axis=1)
    return table[mechanism.space.value_index(records), mechanism.query.table().ravel()]


def entropy_gradient(prior: Prior | ArrayLike) -> Array:
    """Return dH(X)/dp(x) = -log p(x) - 1.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        p(x).

    Returns
    -------
    array, shape (k,)
        In nats; inf where p(x) = 0.

    Raises
    ------
    ValidationError
        If the probabilities are not a distribution.

    Notes
    -----
    LEAKAGE Theorem 9, part 1.

    Examples
    --------
    >>> from cvxleak.measures import entropy_gradient
    >>> entropy_gradient([0.5, 0.5, 0.0]).round(4)
    array([-0.3069, -0.3069,     inf])
    """
    p = law(prior)
    with np.errstate(divide="ignore"):
        return -np.log(p) - 1


def entropy_gradient_marginal(
    prior: Prior | ArrayLike, space: RecordSpace, records: Records
) -> Array:
    """Return dH(X)/dp(x_i) = H(X_{-i} | X_i = x_i) - log p(x_i) - 1.

    Parameters
    ----------
    prior : Prior or array_like, shape (|X|,)
        p(x) on the datasets; arrays are in product order.
    space : RecordSpace
        The datasets.
    records : int or sequence of int
        A record i, or a group that is taken as one.

    Returns
    -------
    array, shape (values of X_i,)
        In nats; inf where p(x_i) = 0, whatever p(x_{-i}|x_i) is there.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    LEAKAGE Theorem 9, part 2.

    Examples
    --------
    >>> from cvxleak.measures import entropy_gradient_marginal
    >>> from cvxleak.model import RecordSpace
    >>> entropy_gradient_marginal([0.25, 0.25, 0.5, 0.0], RecordSpace.binary(2), 0).round(4)
    array([ 0.3863, -0.3069])
    """
    p = instance(space, RecordSpace, "space").law(prior)
    place = space.value_index(records)
    marginal = np.bincount(place, weights=p)
    seen = p > 0
    # H(X_{-i} | X_i = a) - log p(a) = -sum_{x of a} p(x|a) log p(x).
    terms = p[seen] / marginal[place[seen]] * np.log(p[seen])
    totals = np.bincount(place[seen], weights=terms, minlength=len(marginal))
    return np.where(marginal > 0, -totals - 1, np.inf)


def entropy_gradient_conditional(
    prior: Prior | ArrayLike, space: RecordSpace, records: Records
) -> Array:
    """Return dH(X)/dp(x_{-i}|x_i) = -p(x_i) ( log( p(x_i) p(x_{-i}|x_i) ) + 1 ).

    Parameters
    ----------
    prior : Prior or array_like, shape (|X|,)
        p(x) on the datasets; arrays are in product order.
    space : RecordSpace
        The datasets.
    records : int or sequence of int
        A record i, or a group that is taken as one.

    Returns
    -------
    array, shape (|X|,)
        In nats, for the datasets x = (x_i, x_{-i}) in product order; inf where
        p(x) = 0 < p(x_i), 0 where p(x_i) = 0.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    LEAKAGE Theorem 9, part 3.

    Examples
    --------
    >>> from cvxleak.measures import entropy_gradient_conditional
    >>> from cvxleak.model import RecordSpace
    >>> entropy_gradient_conditional([0.25, 0.25, 0.5, 0.0], RecordSpace.binary(2), 0).round(4)
    array([ 0.1931,  0.1931, -0.1534,     inf])
    """
    p = instance(space, RecordSpace, "space").law(prior)
    place = space.value_index(records)
    marginal = np.bincount(place, weights=p)[place]
    return np.multiply(marginal, entropy_gradient(p), out=np.zeros(len(p)), where=marginal > 0)


def _slope(p: Array, rows: Array) -> Array:
    """Return log( p(y|a) / p(y) ), with log 1/p(a) where p(y) = 0, and -inf where p(a) = 0."""
    never = ~(rows[p > 0] > 0).any(axis=0)
    with np.errstate(divide="ignore"):
        limit = np.where(p > 0, -np.log(p), -np.inf)
    return np.where(never, limit[:, None], density(p, rows))
