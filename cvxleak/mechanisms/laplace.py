"""The Laplace mechanism, followed by rounding to finitely many outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from cvxleak.core.validation import Array, real_number
from cvxleak.mechanisms._inward import inward
from cvxleak.mechanisms._nearest import nearest_output
from cvxleak.mechanisms._vanishing import LEAST, not_vanishing
from cvxleak.mechanisms.symmetric import binary_symmetric
from cvxleak.model import Channel

__all__ = ["discretized_laplace", "laplace_threshold"]


def laplace_threshold(epsilon: float) -> Channel:
    """Return the Laplace mechanism for a query with values 0 and 1, thresholded at 1/2.

    Y = 1 if f(x) + Laplace(0, 1/epsilon) > 1/2, otherwise 0: the binary symmetric channel with
    flip ``exp(-epsilon / 2) / 2``.

    Guarantee: epsilon-differential privacy for a query of sensitivity 1 (post-processing of the
    Laplace mechanism). The exact level is smaller, ``log(2 exp(epsilon / 2) - 1)``. C_1 is
    ``symmetric_capacity(2, flip)``.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats, at least 0 and finite.

    Returns
    -------
    Channel
        Its inputs and its outputs are 0 and 1.

    Raises
    ------
    ValidationError
        `epsilon` is outside its range.

    References
    ----------
    LEAKAGE 7.2, eq. (45) and (46).

    Examples
    --------
    >>> from cvxleak.mechanisms import laplace_threshold
    >>> laplace_threshold(1.0).row(0).round(4)
    array([0.6967, 0.3033])
    """
    level = real_number(epsilon, "epsilon", 0, open_high=True)
    return binary_symmetric(math.exp(-inward(level, level) / 2) / 2)


def discretized_laplace(
    outputs: Iterable[float],
    epsilon: float,
    sensitivity: float,
    inputs: Iterable[float] | None = None,
) -> Channel:
    """Return the Laplace mechanism with its output rounded to the nearest of given numbers.

    For the input v, the output is the element of `outputs` nearest to v + Z, where Z has the
    density ``exp(-|z| / s) / (2 s)`` with s = sensitivity / epsilon. So q(y|v) is the Laplace mass
    between the midpoints to the neighbors of y; the first and last output take the tails. An audit
    of this channel covers the rounded and clamped output only. For the unrounded output, audit
    `cvxleak.model.Laplace`; its leakage is never smaller.

    Guarantee: epsilon-differential privacy for every query whose ``sensitivity`` is at most the one
    given (post-processing of the Laplace mechanism). For any two inputs the level is at most
    ``epsilon |v - v'| / sensitivity``. Probabilities below 1e-300 are stored as 1e-300, which
    leaves the guarantee as it is.

    Parameters
    ----------
    outputs : iterable of float
        Strictly increasing.
    epsilon : float
        Privacy parameter in nats, positive and finite.
    sensitivity : float
        The most that one record can change the input, positive and finite.
    inputs : iterable of float, optional
        The values of the query; `outputs` if left out.

    Returns
    -------
    Channel
        From the inputs to the outputs. ``discretized_laplace((0, 1), epsilon, 1)`` is
        ``laplace_threshold(epsilon)``.

    Raises
    ------
    ValidationError
        An argument is outside its range, or the outputs do not increase.

    References
    ----------
    LEAKAGE 4.1.4 and 7.2.

    Examples
    --------
    With noise on the integers, the sum modulo 3 has sensitivity 2, not 1:

    >>> from cvxleak.mechanisms import discretized_laplace
    >>> from cvxleak.queries import modular_sum
    >>> query = modular_sum(4, 3)
    >>> discretized_laplace(query.values, 1.0, query.sensitivity).row(0).round(4)
    array([0.6106, 0.1532, 0.2362])
    """
    level = real_number(epsilon, "epsilon", 0, open_low=True, open_high=True)
    width = real_number(sensitivity, "sensitivity", 0, open_low=True, open_high=True)
    rate = real_number(level / width, "epsilon / sensitivity", 0, open_low=True, open_high=True)

    def mass(a: Array, b: Array) -> Array:
        furthest = float(np.abs(np.where(np.isfinite(b), b, 0)).max())
        # Rounding moves an end of a cell by 2 u of its distance, which is more of its width.
        ends = 2.0**-49 * furthest / float((b - a).min())
        kept = max(inward(level - ends, rate * furthest) / width, LEAST)
        return not_vanishing(_laplace_mass(kept * a, kept * b))

    return nearest_output(outputs, inputs, mass)


def _laplace_mass(a: Array, b: Array) -> Array:
    """Return the standard Laplace probability of a < Z < b, with full relative precision."""
    above = np.exp(-np.maximum(a, 0)) * -np.expm1(a - b)
    below = np.exp(np.minimum(b, 0)) * -np.expm1(a - b)
    around = -np.expm1(np.minimum(a, 0)) - np.expm1(-np.maximum(b, 0))
    return np.where(a >= 0, above, np.where(b <= 0, below, around)) / 2
