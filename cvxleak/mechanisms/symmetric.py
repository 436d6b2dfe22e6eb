"""Symmetric channels: the input with a given probability, any other value with equal ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import entr

from cvxleak.core.validation import (
    SIZE_LIMIT,
    check_cells,
    privacy_level,
    real_number,
    whole_number,
)
from cvxleak.mechanisms._inward import inward
from cvxleak.mechanisms._search import smallest, wanted_leakage
from cvxleak.model import Channel

__all__ = [
    "binary_symmetric",
    "flip_for_leakage",
    "generalized_symmetric",
    "randomized_response",
    "symmetric_capacity",
]


def randomized_response(k: int, epsilon: float | str) -> Channel:
    """Return k-ary randomized response (k-RR).

    ``q(y|x) = e^epsilon / (e^epsilon + k - 1)`` if y = x, ``1 / (e^epsilon + k - 1)`` otherwise:
    the symmetric channel (`generalized_symmetric`) with flip (k - 1) / (e^epsilon + k - 1).
    For k = 2 it is Warner's randomized response.

    Guarantee: local differential privacy with this epsilon and, for k > 1, no smaller one but for
    the rounding of floats, which is towards privacy: `cvxleak.check_claim` proves it. For an
    epsilon like ``"log(3)"`` the probabilities are exact fractions. Its capacity is
    ``symmetric_capacity(k, flip)``.

    Parameters
    ----------
    k : int
        Number of inputs and of outputs, at least 1.
    epsilon : float or str
        Privacy parameter in nats, at least 0, or the text "log(r)"; inf gives the input as it is.

    Returns
    -------
    Channel
        Its inputs and its outputs are 0, ..., k - 1.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    ENVELOPE eq. (15). S. L. Warner, Randomized response, JASA 60 (1965). P. Kairouz, S. Oh and
    P. Viswanath, Extremal mechanisms for local differential privacy, JMLR 17 (2016).

    Examples
    --------
    >>> import math
    >>> from cvxleak.mechanisms import randomized_response
    >>> randomized_response(3, math.log(2)).matrix
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    >>> randomized_response(2, "log(2)").matrix.tolist()
    [[2/3, 1/3], [1/3, 2/3]]
    """
    size = whole_number(k, "k", 1, SIZE_LIMIT)
    level, exact = privacy_level(epsilon, "epsilon")
    odds = math.exp(-inward(level, level)) if exact is None else 1 / exact
    total = 1 + (size - 1) * odds
    return _symmetric(size, 1 / total, odds / total)


def binary_symmetric(flip: float) -> Channel:
    """Return the binary symmetric channel, which flips a bit with probability `flip`.

    Guarantee: local differential privacy with epsilon = ``|log((1 - flip) / flip)|``. After any
    non-constant query with values 0 and 1 the individual channel capacity C_1 is
    ``log 2 - h(flip)`` with the binary entropy h (DALENIUS Corollary 1), ``symmetric_capacity(2,
    flip)``.

    Parameters
    ----------
    flip : float
        Probability of the wrong output, from 0 to 1.

    Returns
    -------
    Channel
        Its inputs and its outputs are 0 and 1.

    Raises
    ------
    ValidationError
        `flip` is not in [0, 1].

    References
    ----------
    DALENIUS eq. (26), (44) and (48); LEAKAGE eq. (34) and (43).

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> binary_symmetric(0.25).matrix
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return generalized_symmetric(2, flip)


def generalized_symmetric(k: int, flip: float) -> Channel:
    """Return the k-ary symmetric channel (LEAKAGE writes m for k).

    ``q(y|x) = 1 - flip`` if y = x, ``flip / (k - 1)`` otherwise.

    Guarantee: local differential privacy with epsilon = ``|log((1 - flip) (k - 1) / flip)|``; C_1
    is at most ``symmetric_capacity(k, flip)``.

    Parameters
    ----------
    k : int
        Number of inputs and of outputs, at least 2.
    flip : float
        Probability of a wrong output, from 0 to 1. (LEAKAGE stays below 1/2; at (k - 1) / k the
        output is independent of the input, and beyond it the input becomes the least likely.)

    Returns
    -------
    Channel
        Its inputs and its outputs are 0, ..., k - 1.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    LEAKAGE eq. (33).

    Examples
    --------
    >>> from cvxleak.mechanisms import generalized_symmetric
    >>> generalized_symmetric(3, 0.5).row(1)
    array([0.25, 0.5 , 0.25])
    """
    size = whole_number(k, "k", 2, SIZE_LIMIT)
    wrong = real_number(flip, "flip", 0, 1)
    return _symmetric(size, 1 - wrong, wrong / (size - 1))


def symmetric_capacity(k: int, flip: float) -> float:
    """Return the Shannon capacity of the k-ary symmetric channel.

    ``C = log k - h(flip) - flip log(k - 1)`` with the binary entropy h.

    It bounds the individual channel capacity C_1 of any query followed by
    ``generalized_symmetric(k, flip)`` (DALENIUS Corollary 2). For k = 2 it is equal to C_1 whenever
    the query is not constant (Corollary 1): two datasets that differ in one record only then have
    different values, whatever the alphabets. For k > 2 it is equal to C_1 if one record determines
    which of all k values the query takes, for suitable contexts (the values of the other records)
    given each value of the record. For a binary record that is impossible, since only two of the k
    rows are reached.

    Parameters
    ----------
    k : int
        Number of outputs, at least 2.
    flip : float
        Probability of a wrong output, from 0 to 1.

    Returns
    -------
    float
        In nats, from 0 to log k.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS Corollaries 1 and 2, eq. (27) and (49); LEAKAGE eq. (44).

    Examples
    --------
    >>> from cvxleak.mechanisms import symmetric_capacity
    >>> round(symmetric_capacity(2, 0.3), 6)
    0.082283
    """
    size = whole_number(k, "k", 2, SIZE_LIMIT)
    wrong = real_number(flip, "flip", 0, 1)
    lost = float(entr(1 - wrong) + entr(wrong)) + wrong * math.log(size - 1)
    return max(0.0, math.log(size) - lost)


def flip_for_leakage(k: int, leakage: float) -> float:
    """Return the smallest flip with which the k-ary symmetric channel leaks at most `leakage`.

    The solution in [0, (k - 1) / k] of ``log k - h(p) - p log(k - 1) = leakage``, rounded up. For
    k = 2 it is p* of DALENIUS Corollary 1: flips from p* to 1 - p* give epsilon-information
    privacy.

    Parameters
    ----------
    k : int
        Number of outputs, at least 2.
    leakage : float
        Required bound on C_1 in nats (epsilon in DALENIUS), from 0 to log k, the largest possible
        value.

    Returns
    -------
    float
        The flip; ``symmetric_capacity(k, flip)`` does not exceed `leakage`.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS Corollary 1 (k = 2) and Corollary 2.

    Examples
    --------
    >>> from cvxleak.mechanisms import flip_for_leakage, symmetric_capacity
    >>> flip = flip_for_leakage(2, 0.1)
    >>> round(flip, 6), round(symmetric_capacity(2, flip), 12)
    (0.280205, 0.1)
    """
    size = whole_number(k, "k", 2, SIZE_LIMIT)
    budget = wanted_leakage(leakage, size)
    if symmetric_capacity(size, 0.0) <= budget:
        return 0.0
    return smallest(lambda flip: symmetric_capacity(size, flip) <= budget, 0.0, 1 - 1 / size)


def _symmetric(size: int, right: float | Fraction, wrong: float | Fraction) -> Channel:
    check_cells(size, size, "k")
    matrix = np.full((size, size), wrong, dtype=object if isinstance(wrong, Fraction) else float)
    np.fill_diagonal(matrix, right)
    return Channel(matrix)
