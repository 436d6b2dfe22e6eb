"""Bounds of a design for known priors in floating point, moved outward by rounding errors.

What `cvxleak.proofs.fixed_prior` computes in ball arithmetic, some thirty times as
fast; it never claims more than that confirms.

Every quantity is a sum of terms, each a product of data and at most two logarithms. Let N be the
number of inputs, outputs, distributions and sources together, and u the unit roundoff. A sum of at
most N non-negative products of data (an output's probability, the sum of a distribution) has a
relative error below (N + 4) u, so its logarithm is off by at most (N + 4) u + 4 u (1 + |log|), and
a term, with the sums that it is divided by, by at most (3 N + 24) u |coefficient| (1 + |logs|).
Adding at most N terms twice (over y or the distributions, then over x) costs 2 N u times their
size, and the sizes themselves are right within 1%. So 8 (N + 16) u times the sum of |coefficient|
(1 + |logs|) bounds all errors; what is below 2^-900 is left out, which costs less than the last
term.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cvxleak.kernel.many import Many, U

__all__ = ["distortions_above", "dual_below", "information_above"]

Array = NDArray[np.float64]

SMALLEST = 2.0**-900
"""Positive numbers below this are left out of sums; products of larger ones do not underflow."""


def information_above(laws: Array, channel: Array) -> Array:
    """Return I_k(X;Y) of a channel whose rows are divided by their sums, rounded up, shape (K,).

    `laws`, shape (K, n), are divided by their sums.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.design.fixed_prior_bounds import information_above
    >>> fair, noisy = np.array([[0.5, 0.5]]), np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> float(np.abs(information_above(fair, noisy) - 0.13081203594113697)[0]) < 1e-13
    True
    """
    rows = channel / channel.sum(axis=1, keepdims=True)
    rows = np.where(rows >= SMALLEST, rows, 0.0)
    logs = Many(np.where(rows > 0, rows, 1.0)).log().m
    return np.array([_information(law / law.sum(), rows, logs) for law in laws])


def distortions_above(sources: Array, channel: Array, distortion: Array) -> Array:
    """Return E_j d of a channel whose rows are divided by their sums, rounded up, shape (J,)."""
    n, m = channel.shape
    spent = (channel * distortion).sum(axis=1) / channel.sum(axis=1)
    values = sources @ spent / sources.sum(axis=1)
    return values * (1 + 4 * (n + m + 16) * U) + 2.0**-800


def dual_below(
    laws: Array,
    sources: Array,
    distortion: Array,
    reference: Array,
    weights: Array,
    prices: Array,
) -> float:
    """Return sum_x min_y ( sum_k w_k G_k + sum_j mu_j p_j(x) d(x,y) ), rounded down.

    G_k is the gradient of I_k at the reference. -inf where the reference is too small to tell.
    """
    n, m = distortion.shape
    charge = prices @ (sources / sources.sum(axis=1, keepdims=True))
    cost = charge[:, None] * distortion
    size = cost.copy()
    count = n + m + len(sources) + len(laws)
    for weight, law in zip(weights, laws, strict=True):
        shares = law / law.sum()
        used = shares > 0
        output = shares @ reference
        if (reference[used] < SMALLEST).any() or (output < SMALLEST).any():
            return -math.inf
        logs = Many(np.where(used[:, None], reference, 1.0)).log().m
        log_output = Many(output).log().m
        cost += weight * shares[:, None] * (logs - log_output)
        size += weight * shares[:, None] * (1 + np.abs(logs) + np.abs(log_output))
    error = 8 * (count + 16) * U
    below = (cost - error * size).min(axis=1)
    total = float(below.sum())
    return total - error * float(np.abs(below).sum()) - 2.0**-800


def _information(law: Array, rows: Array, logs: Array) -> float:
    joint = law[:, None] * rows
    output = joint.sum(axis=0)
    log_output = Many(np.where(output >= SMALLEST, output, 1.0)).log().m
    extent = joint * (1 + np.abs(logs) + np.abs(log_output))
    value = float((joint * (logs - log_output)).sum())
    error = 8 * (sum(rows.shape) + 16) * U * float(extent.sum())
    return max(math.nextafter(value + error, math.inf), 0.0) + 2.0**-800
