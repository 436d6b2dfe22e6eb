"""The distribution of pointwise maximal leakage l(Y): tails, quantiles, penalties psi_1 and psi_2.

None of them but psi_2 is safe under post-processing: what a function of the output can do is the
subject of `cvxleak.envelope`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import (
    SIZE_LIMIT,
    Array,
    instance,
    plain_array,
    real_number,
    whole_number,
)
from cvxleak.measures._laws import aligned, law
from cvxleak.measures.leakage import pml
from cvxleak.measures.privacy import TIE
from cvxleak.model import Channel, Prior

__all__ = [
    "dp_tail_bound",
    "pml_failure_probability",
    "pml_left_quantile",
    "pml_limit",
    "pml_right_quantile",
    "probabilities_in",
    "psi_1",
    "psi_2",
]


def pml_limit(prior: Prior | ArrayLike) -> float:
    """Return log 1/min p(x), an upper bound on the leakage of every outcome, in nats.

    The minimum is over inputs of positive probability.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input.

    Raises
    ------
    ValidationError
        If the prior is not a distribution.

    Notes
    -----
    ENVELOPE (6).

    Examples
    --------
    >>> from cvxleak.measures import pml_limit
    >>> round(pml_limit([0.25, 0.75, 0.0]), 6)  # log 4
    1.386294
    """
    p = law(prior)
    return -float(np.log(p[p > 0].min()))


def pml_failure_probability(
    channel: Channel | ArrayLike,
    prior: Prior | ArrayLike,
    epsilon: float,
    *,
    strict: bool = True,
    tie: float = TIE,
) -> float:
    """Return P{l(Y) > epsilon}, or P{l(Y) >= epsilon} if not `strict`.

    The least delta for which (epsilon, delta)-probabilistic PML holds. It is 0 if and only if
    epsilon-PML holds. Post-processing can raise it.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    epsilon : float
        Not negative, in nats.
    strict : bool, optional
        Whether outcomes that leak exactly epsilon are left out.
    tie : float, optional
        A leakage that differs from epsilon by at most this many nats counts as equal to it.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or a number is out of range.

    See Also
    --------
    cvxleak.envelope.failure_probability : Its supremum over post-processings.

    Notes
    -----
    ENVELOPE Definition 5.

    Examples
    --------
    >>> from math import log
    >>> from cvxleak.measures import pml_failure_probability
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> round(pml_failure_probability(mechanism, [0.25] * 4, log(10 / 9)), 12)  # ENVELOPE Example 1
    0.1
    >>> round(pml_failure_probability(mechanism, [0.25] * 4, log(10 / 9), strict=False), 12)
    1.0
    """
    eps = real_number(epsilon, "epsilon", 0.0)
    slack = real_number(tie, "tie", 0.0, open_high=True)
    leakage, mass = _leakage_law(prior, channel)
    fails = leakage > eps + slack if instance(strict, bool, "strict") else leakage >= eps - slack
    return min(float(mass[fails].sum()), 1.0)


def pml_left_quantile(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, delta: ArrayLike
) -> Array:
    """Return inf{t >= 0 : P{l(Y) <= t} >= 1 - delta}, the least t with P{l(Y) > t} <= delta.

    The least epsilon for which (epsilon, delta)-probabilistic PML holds; equivalently, the least
    maximum of l over a set of outcomes of probability at least 1 - delta. Right-continuous in
    delta.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    delta : float or array_like
        In [0, 1]; at 0 and 1 the limit from inside the interval is returned. A delta within a
        relative 1e-12 of the probability of a set of outcomes counts as equal to it.

    Returns
    -------
    array of the shape of `delta` (a number for a number)
        In nats.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or delta is out of range.

    See Also
    --------
    pml_right_quantile : Larger where l(Y) exceeds a level with probability exactly delta.

    Notes
    -----
    ENVELOPE (9), (10) and Lemma 2.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.measures import pml_left_quantile
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> np.exp(pml_left_quantile(mechanism, [0.25] * 4, [0.05, 0.1])).round(6)  # Example 2
    array([4.      , 1.111111])
    """
    level = probabilities_in(delta, "delta")
    leakage, mass = _sorted_law(prior, channel)
    # The mass above the i-th largest leakage is that of the i largest.
    above = np.cumsum(mass)[:-1]
    return leakage[np.searchsorted(above, np.minimum(level, 1 - 2 * TIE) * (1 + TIE), side="right")]


def pml_right_quantile(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, delta: ArrayLike
) -> Array:
    """Return sup{t >= 0 : P{l(Y) <= t} <= 1 - delta}, the PML delta-quantile of Y.

    Equivalently, the largest minimum of l over a set of outcomes of probability at least delta.
    Left-continuous in delta.

    Parameters
    ----------
    channel, prior, delta
        As in `pml_left_quantile`.

    Returns
    -------
    array of the shape of `delta` (a number for a number)
        In nats.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or delta is out of range.

    See Also
    --------
    cvxleak.envelope.pml_envelope : The supremum over post-processings (the same for both
        quantiles).

    Notes
    -----
    ENVELOPE section IV, before Example 2.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.measures import pml_right_quantile
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> np.exp(pml_right_quantile(mechanism, [0.25] * 4, [0.1, 0.2])).round(6)  # Example 2
    array([4.      , 1.111111])
    """
    level = probabilities_in(delta, "delta")
    leakage, mass = _sorted_law(prior, channel)
    reach = np.cumsum(mass)[:-1]
    return leakage[np.searchsorted(reach, level * (1 - TIE), side="left")]


def psi_1(channel: Channel | ArrayLike, prior: Prior | ArrayLike, epsilon: float) -> float:
    """Return E[max(0, 1 - e^(epsilon - l(Y)))], the expected penalty on leakage above epsilon.

    It is at most P{l(Y) > epsilon}. Post-processing can raise it.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    epsilon : float
        Not negative, in nats.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or epsilon is out of range.

    Notes
    -----
    ENVELOPE section III and Theorem 1 (i).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from math import log
    >>> from cvxleak.measures import psi_1
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> value = psi_1(mechanism, [0.25] * 4, log(10 / 9))
    >>> Fraction(value).limit_denominator(1000)
    Fraction(13, 180)
    """
    eps = real_number(epsilon, "epsilon", 0.0)
    leakage, mass = _leakage_law(prior, channel)
    return float(mass @ -np.expm1(np.minimum(eps - leakage, 0.0)))


def psi_2(channel: Channel | ArrayLike, prior: Prior | ArrayLike, epsilon: float) -> float:
    """Return max_x sum_y max(0, q(y|x) - e^epsilon p(y)), over inputs of positive probability.

    The least delta with P(E|x) <= e^epsilon P(E) + delta for all inputs x and events E. It does not
    rise under post-processing; it neither bounds P{l(Y) > epsilon} nor is bounded by it.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    epsilon : float
        Not negative, in nats.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or epsilon is out of range.

    Notes
    -----
    ENVELOPE section III and Theorem 1 (ii).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from math import log
    >>> from cvxleak.measures import psi_2
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> value = psi_2(mechanism, [0.25] * 4, log(10 / 9))
    >>> Fraction(value).limit_denominator(1000)
    Fraction(13, 90)
    """
    eps = real_number(epsilon, "epsilon", 0.0)
    p, rows = aligned(prior, channel)
    # Beyond 1/p(x) no probability is left, whatever overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.nan_to_num(np.exp(np.float64(eps)) * (p @ rows), nan=0.0)
    return float(np.maximum(rows[p > 0] - scaled, 0.0).sum(axis=1).max())


def dp_tail_bound(k: int, epsilon: float, delta: float) -> float:
    """Return delta / (1 - e^(-(k-1) epsilon)), capped at 1.

    Under (epsilon, delta)-DP the privacy loss exceeds k epsilon with at most this probability.

    Parameters
    ----------
    k : int
        At least 2.
    epsilon : float
        Positive, in nats.
    delta : float
        In [0, 1].

    Raises
    ------
    ValidationError
        If a number is out of range.

    See Also
    --------
    dp_failure_probability : The probability itself.

    Notes
    -----
    ENVELOPE (4).

    Examples
    --------
    >>> from math import log
    >>> from cvxleak.measures import dp_tail_bound
    >>> dp_tail_bound(2, log(2), 0.25)
    0.5
    """
    slack = real_number(delta, "delta", 0.0, 1.0)
    eps = real_number(epsilon, "epsilon", 0.0, open_low=True, open_high=True)
    return min(1.0, slack / -float(np.expm1(-(whole_number(k, "k", 2, SIZE_LIMIT) - 1) * eps)))


def probabilities_in(values: ArrayLike, name: str) -> Array:
    """Return numbers in [0, 1] as an array, or say which one is not."""
    array = plain_array(values, name)
    if array.ndim == 0:
        return np.array(real_number(array[()], name, 0.0, 1.0))
    for value in array.ravel().tolist():
        real_number(value, name, 0.0, 1.0)
    return array.astype(float)


def _leakage_law(prior: Prior | ArrayLike, channel: Channel | ArrayLike) -> tuple[Array, Array]:
    """Return l(y) and p(y) of the outcomes that can occur."""
    p, rows = aligned(prior, channel)
    output = p @ rows
    seen = output > 0
    return pml(channel, prior)[seen], output[seen]


def _sorted_law(prior: Prior | ArrayLike, channel: Channel | ArrayLike) -> tuple[Array, Array]:
    """Return the leakages of the possible outcomes, the largest first, and their distribution."""
    leakage, mass = _leakage_law(prior, channel)
    order = np.argsort(-leakage, kind="stable")
    return np.maximum(leakage[order], 0.0), mass[order] / mass.sum()
