"""Bounds on a channel's capacity in floating point, with a proved bound on the rounding errors."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.exact.outward import SMALLEST, UNIT_ROUNDOFF, logarithm, x_log_x_sums
from cvxleak.model import Channel, Prior

__all__ = ["Enclosure"]


class Enclosure:
    """Proved ends of a channel's capacity for any (p, t), in floating point.

    Parameters
    ----------
    channel : Channel
        n inputs and m outputs, both at most 2^30.

    Notes
    -----
    Let r be a row of the matrix with sum s, T the sum of t, and u the unit roundoff. With rows
    and distributions that sum to 1 within 1e-8 (`Channel` and `Prior` see to that),

        D_x = (sum r log r - sum r log t) / s - log s + log T

    is computed with an error below 2.25 u (m + 16) (A + C + 2), A = sum |r log r| and C = sum |r
    log t|: adding m terms costs m u times their size, twice, and so do s (in the quotient) and s
    and T (in the logarithms); a logarithm is off by 4 u (1 + |log|). What these terms come to, (2 m
    + 13)(A + C) + 4.1 m + 26 in units of u, leaves a margin that covers the terms in u^2, the
    rounding of A and C, entries below 2^-900, which are left out, and what a distribution as
    written differs from the floats divided by their sum: each entry by 2 u of itself, which moves
    D_x by 2 u (A + C + 2).

    The upper end is the largest D_x with its error added. For the lower end let t' be the output
    distribution of p. Then I(p) = sum_x p_x D_x - D(t' || t), where D(t' || t / T) <= T sum (t' -
    t)^2 / t, by log z <= z - 1 and sum t'^2 / t = 2 - T + sum (t' - t)^2 / t. So no digits are lost
    when t is the floating-point image of t', whose relative error is below (2 n + m + 5) u; the
    weighted mean of the D_x costs (2 n + 4) u times the mean of |D_x|.

    Examples
    --------
    >>> from cvxleak.capacities.enclosure import Enclosure
    >>> from cvxleak.model import Channel, Prior
    >>> fair = Prior([0.5, 0.5])
    >>> lower, upper = Enclosure(Channel([[0.75, 0.25], [0.25, 0.75]])).ends(fair, fair)
    >>> lower < 0.13081203594113697 < upper < lower + 1e-12
    True
    """

    def __init__(self, channel: Channel) -> None:
        self._matrix = channel.matrix
        self._sums = self._matrix.sum(axis=1)
        self._log_sums = logarithm(self._sums)
        self._negentropy, self._size = x_log_x_sums(self._matrix)
        self._columns = (self._matrix > 0).any(axis=0)

    def ends(self, inputs: Prior, output: Prior) -> tuple[float, float]:
        """Return I(p) rounded down and max_x D(row x || t) rounded up, in nats.

        `inputs` is p, `output` is t. Where t is below 2^-900 at an output that some input can
        cause, the ends are 0 and infinity.
        """
        p, t = inputs.probabilities, output.probabilities
        if (t[self._columns] < SMALLEST).any():
            return 0.0, math.inf
        n, m = self._matrix.shape
        log_t = logarithm(np.where(self._columns, t, 1.0))
        cross = self._matrix @ np.column_stack([log_t, np.abs(log_t)])
        total = float(t.sum())
        log_total = logarithm(np.array([total]))
        divergence = (self._negentropy - cross[:, 0]) / self._sums - self._log_sums + log_total
        error = 2.25 * UNIT_ROUNDOFF * (m + 16) * (self._size + cross[:, 1] + 2)
        upper = max(math.nextafter(float((divergence + error).max()), math.inf), 0.0)

        share = p / self._sums / p.sum()
        image = share @ self._matrix
        distance = np.abs(image - t) + 1.25 * UNIT_ROUNDOFF * (2 * n + m + 16) * image + 2.0**-990
        shift = (distance / np.where(t > 0, t, 1.0) * distance).sum()
        below = divergence - error
        mean, size = (p @ np.column_stack([below, np.abs(below)]) / p.sum()).tolist()
        # The last term covers products that underflow.
        lost = 2.25 * UNIT_ROUNDOFF * (n + 16) * size + 1.01 * float(shift) + 2.0**-800
        return max(math.nextafter(mean - lost, -math.inf), 0.0), upper
