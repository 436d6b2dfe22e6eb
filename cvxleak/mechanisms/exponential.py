"""The exponential mechanism, by scores (McSherry and Talwar) and by ranks (DALENIUS)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import SIZE_LIMIT, frozen_array, real_number, whole_number
from cvxleak.mechanisms._inward import inward
from cvxleak.mechanisms._search import smallest, wanted_leakage
from cvxleak.mechanisms._vanishing import not_vanishing
from cvxleak.model import Channel, Distortion

__all__ = [
    "exponential",
    "rank_exponential",
    "rank_exponential_bound",
    "rank_exponential_entropy",
    "rank_scale_for_leakage",
]

VANISHED = 750.0
"""exp(-750) is zero in floating point; rates are cut here so that nothing overflows."""


def exponential(
    scores: ArrayLike,
    epsilon: float,
    sensitivity: float,
    inputs: Iterable[Hashable] | None = None,
    outputs: Iterable[Hashable] | None = None,
) -> Channel:
    """Return the exponential mechanism.

    ``q(y|x) = exp(epsilon u(x, y) / (2 sensitivity)) / (the same summed over y)`` for the scores u.

    Guarantee: epsilon-differential privacy if no score changes by more than `sensitivity` between
    neighboring inputs; probabilities below 1e-300 are stored as 1e-300, which leaves the guarantee
    as it is. For u(x, y) = 1 if y = x and 0 otherwise, with sensitivity 1, it is the
    symmetric channel with flip ``(k - 1) / (exp(epsilon / 2) + k - 1)``, so its level is only
    epsilon / 2.

    Parameters
    ----------
    scores : array_like, shape (inputs, outputs)
        u(x, y), finite; larger is better. The negative of a distortion's matrix is a usual choice.
    epsilon : float
        Privacy parameter in nats, at least 0 and finite.
    sensitivity : float
        The most that one record can change a score, positive and finite.
    inputs, outputs : iterable of hashable, optional
        Labels; 0, 1, ... if left out.

    Returns
    -------
    Channel
        From the inputs to the outputs.

    Raises
    ------
    ValidationError
        An argument is outside its range, or has the wrong shape.

    References
    ----------
    LEAKAGE 7.2, eq. (47) and (48). F. McSherry and K. Talwar, Mechanism design via differential
    privacy, FOCS 2007.

    Examples
    --------
    >>> from cvxleak.mechanisms import exponential
    >>> exponential([[1, 0], [0, 1]], 1.0, 1.0).row(0).round(4)
    array([0.6225, 0.3775])
    """
    array = frozen_array(scores, "scores", 2)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValidationError(
            f"scores: found shape {array.shape} with {int(np.isinf(array).sum())} infinite "
            "entries; at least one score is needed, and all must be finite"
        )
    level = real_number(epsilon, "epsilon", 0, open_high=True)
    width = real_number(sensitivity, "sensitivity", 0, open_low=True, open_high=True)
    rate = real_number(level / width / 2, "epsilon / sensitivity", 0, open_high=True)
    with np.errstate(over="ignore"):  # to minus infinity, of which the exponential is zero
        furthest = float(array.max(axis=1).max() - array.min())
        rate = inward(level, rate * furthest) / width / 2
        behind = rate * (array - array.max(axis=1, keepdims=True))
    return Channel(not_vanishing(softmax(behind, axis=1)), inputs, outputs)


def rank_exponential(distortion: Distortion | ArrayLike, scale: float) -> Channel:
    """Return the exponential channel of DALENIUS, which depends only on the ranks of the distances.

    ``q(y|x) = exp(-rank_x(y) / N) / alpha`` with ``alpha = sum over i < k of exp(-i / N)``. For
    each input the k outputs have the ranks 0, ..., k - 1, by increasing distance.

    Outputs at equal distance get different ranks, in the order of the outputs. (Definition 13 does
    not say how to break ties. They must not share a rank: formula (30) and Corollary 3 need a
    column-symmetric channel, so every row must be a permutation of the same k numbers.) So the
    order of the outputs matters where distances tie; distances that differ by rounding errors do
    not tie.

    Guarantee: C_1 is at most ``rank_exponential_bound(k, scale)``, and local differential privacy
    with epsilon = (k - 1) / N or less (the largest difference of an output's ranks, over N).

    Parameters
    ----------
    distortion : Distortion or array_like, shape (inputs, outputs)
        d(x, y), finite and non-negative. The labels of a `Distortion` become those of the channel.
    scale : float
        N, positive and finite; larger is more private.

    Returns
    -------
    Channel
        From the inputs to the outputs.

    Raises
    ------
    ValidationError
        An argument is outside its range, or has the wrong shape.

    References
    ----------
    DALENIUS Definition 13, eq. (29).

    Examples
    --------
    >>> import math
    >>> from cvxleak.mechanisms import rank_exponential
    >>> from cvxleak.model import Distortion
    >>> distances = Distortion.absolute([0, 1, 2])
    >>> rank_exponential(distances, 1 / math.log(2)).matrix * 7
    array([[4., 2., 1.],
           [2., 4., 1.],
           [1., 2., 4.]])
    """
    try:
        given = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
    except ValidationError as error:
        raise ValidationError(f"distortion: {error}") from error
    steps = max(given.matrix.shape[1] - 1, 1)
    furthest = steps * _rate(scale)
    rate = inward(furthest, furthest) / steps
    ranks = np.argsort(np.argsort(given.matrix, axis=1, kind="stable"), axis=1, kind="stable")
    law = np.exp(-rate * np.arange(ranks.shape[1]))
    return Channel((law / law.sum())[ranks], given.inputs, given.outputs)


def rank_exponential_entropy(k: int, scale: float) -> float:
    """Return the entropy of each row of the exponential channel of DALENIUS.

    With r = 1 / N,
    ``H(Z) = log((1 - e^(-k r)) / (1 - e^(-r))) + r / (e^r - 1) - k r / (e^(k r) - 1)``.

    Parameters
    ----------
    k : int
        Number of outputs, at least 1.
    scale : float
        N, positive and finite.

    Returns
    -------
    float
        In nats, from 0 to log k, increasing in N.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS eq. (30).

    Examples
    --------
    >>> from cvxleak.mechanisms import rank_exponential_entropy
    >>> round(rank_exponential_entropy(3, 2.0), 6)
    1.020191
    """
    size = whole_number(k, "k", 1, SIZE_LIMIT)
    rate = _rate(scale)
    return math.log(math.expm1(-size * rate) / math.expm1(-rate)) + _mean(rate) - _mean(size * rate)


def rank_exponential_bound(k: int, scale: float) -> float:
    """Return ``log k - H(Z)``, a bound on C_1 of the exponential channel of DALENIUS.

    It is attained if the mechanism is weakly symmetric (`is_weakly_symmetric`).

    Parameters
    ----------
    k : int
        Number of outputs, at least 1.
    scale : float
        N, positive and finite.

    Returns
    -------
    float
        In nats, from 0 to log k, decreasing in N.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS Corollaries 2 and 3.

    Examples
    --------
    >>> from cvxleak.mechanisms import rank_exponential_bound
    >>> round(rank_exponential_bound(3, 2.0), 6)
    0.078421
    """
    return max(
        0.0, math.log(whole_number(k, "k", 1, SIZE_LIMIT)) - rank_exponential_entropy(k, scale)
    )


def rank_scale_for_leakage(k: int, leakage: float) -> float:
    """Return the smallest scale with which the channel of DALENIUS leaks at most `leakage`.

    The solution N of ``log k - H(Z) = leakage`` with H(Z) of eq. (30), rounded up.

    Parameters
    ----------
    k : int
        Number of outputs, at least 2.
    leakage : float
        Required bound on C_1 in nats (epsilon in DALENIUS), positive and less than log k, a bound
        that every scale meets.

    Returns
    -------
    float
        The scale; ``rank_exponential_bound(k, scale)`` does not exceed `leakage`.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS Corollary 3.

    Examples
    --------
    >>> from cvxleak.mechanisms import rank_exponential_bound, rank_scale_for_leakage
    >>> scale = rank_scale_for_leakage(5, 0.1)
    >>> round(scale, 6), round(rank_exponential_bound(5, scale), 12)
    (3.057922, 0.1)
    """
    size = whole_number(k, "k", 2, SIZE_LIMIT)
    budget = wanted_leakage(leakage, size, attained=False)
    # log k - H is the integral of r Var(rank) up to 1/N, and no variance exceeds (k - 1)^2 / 4.
    enough = (size - 1) / math.sqrt(8 * budget)
    return smallest(lambda scale: rank_exponential_bound(size, scale) <= budget, 0.0, enough)


def _rate(scale: float) -> float:
    return min(1 / real_number(scale, "scale", 0, open_low=True, open_high=True), VANISHED)


def _mean(rate: float) -> float:
    """Return rate / (e^rate - 1)."""
    return rate * math.exp(-rate) / -math.expm1(-rate)
