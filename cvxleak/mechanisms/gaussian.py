"""Gaussian noise: the channel rounded to finitely many outputs, and its leakage in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import ndtr

from cvxleak.core.validation import Array, real_number
from cvxleak.mechanisms._nearest import nearest_output
from cvxleak.model import Channel

__all__ = ["discretized_gaussian", "gaussian_bound", "gaussian_variance_for_leakage"]


def discretized_gaussian(
    outputs: Iterable[float], variance: float, inputs: Iterable[float] | None = None
) -> Channel:
    """Return the Gaussian channel with its output rounded to the nearest of given numbers.

    For the input v, the output is the element of `outputs` nearest to v + Z, where Z has the
    distribution N(0, variance). So q(y|v) is the Gaussian mass between the midpoints to the
    neighbors of y; the first and last output take the tails.

    An audit of this channel covers the rounded and clamped output only. For the unrounded output,
    audit `cvxleak.model.Gaussian`; its leakage is never smaller.

    Guarantee: it is a post-processing of the Gaussian privacy channel. With half the distance
    between the smallest and the largest input as the peak, C_1 is at most
    ``gaussian_peak_capacity(peak, variance)``, which is less than
    ``gaussian_bound(peak, variance)``. There is no useful level of pure differential privacy.

    Parameters
    ----------
    outputs : iterable of float
        Strictly increasing.
    variance : float
        Variance N of the noise, positive and finite.
    inputs : iterable of float, optional
        The values of the query; `outputs` if left out.

    Returns
    -------
    Channel
        From the inputs to the outputs.

    Raises
    ------
    ValidationError
        An argument is outside its range, or the outputs do not increase.

    References
    ----------
    DALENIUS Definition 14, eq. (31).

    Examples
    --------
    >>> from cvxleak.mechanisms import discretized_gaussian
    >>> discretized_gaussian([-1, 0, 1], 1.0).row(0).round(4)
    array([0.3085, 0.3829, 0.3085])
    """
    deviation = math.sqrt(real_number(variance, "variance", 0, open_low=True, open_high=True))
    return nearest_output(
        outputs, inputs, lambda a, b: _gaussian_mass(a / deviation, b / deviation)
    )


def gaussian_bound(peak: float, variance: float) -> float:
    """Return ``log(1 + T^2 / N) / 2``, a bound on C_1 of the Gaussian privacy channel.

    This is the capacity of y = f + N(0, N) when E f^2 is at most T^2. A query with |f| <= T
    satisfies this, but only a Gaussian f would attain the capacity, so C_1 is smaller (Corollary 4
    states equality). `gaussian_peak_capacity` computes the capacity under |f| <= T.

    Parameters
    ----------
    peak : float
        T, the largest |f|, positive and finite.
    variance : float
        N, the variance of the noise, positive and finite.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS Corollary 4, eq. (32).

    Examples
    --------
    >>> from cvxleak.mechanisms import gaussian_bound
    >>> round(gaussian_bound(1.0, 1.0), 6)
    0.346574
    """
    ratio = _positive(peak, "peak") / math.sqrt(_positive(variance, "variance"))
    return math.log1p(ratio * ratio) / 2


def gaussian_variance_for_leakage(peak: float, leakage: float) -> float:
    """Return the variance for which `gaussian_bound` equals a given leakage.

    ``N = T^2 / (e^(2 epsilon) - 1)`` for the leakage epsilon and the peak T.

    Every variance of at least this value gives epsilon-information privacy. A slightly smaller
    variance would be enough, since the bound is not attained.

    Parameters
    ----------
    peak : float
        T, the largest |f|, positive and finite.
    leakage : float
        epsilon, the required bound on C_1 in nats, positive and at most 300.

    Returns
    -------
    float
        The variance, rounded up: ``gaussian_bound(peak, variance)`` does not exceed `leakage`.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS Definition 14 and Corollary 4, eq. (31) and (32).

    Examples
    --------
    >>> from cvxleak.mechanisms import gaussian_bound, gaussian_variance_for_leakage
    >>> variance = gaussian_variance_for_leakage(1.0, 0.5)
    >>> round(variance, 6), round(gaussian_bound(1.0, variance), 12)
    (0.581977, 0.5)
    """
    budget = real_number(leakage, "leakage", 0, 300, open_low=True)
    largest = _positive(peak, "peak")
    variance = largest * (largest / math.expm1(2 * budget))
    while gaussian_bound(largest, variance) > budget:
        variance = math.nextafter(variance, math.inf)
    return variance


def _positive(value: float, name: str) -> float:
    return real_number(value, name, 0, open_low=True, open_high=True)


def _gaussian_mass(a: Array, b: Array) -> Array:
    """Return the mass of the standard Gaussian between a < b, with full relative precision."""
    flipped = a > 0
    return ndtr(np.where(flipped, -a, b)) - ndtr(np.where(flipped, -b, a))
