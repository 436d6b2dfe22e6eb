"""The geometric mechanism for counts."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.core.validation import check_cells, privacy_level, whole_number
from cvxleak.mechanisms._inward import inward
from cvxleak.mechanisms._vanishing import not_vanishing
from cvxleak.model import Channel

__all__ = ["truncated_geometric"]


def truncated_geometric(n: int, epsilon: float | str) -> Channel:
    """Return the two-sided geometric mechanism on 0, ..., n, clamped to that range.

    Integer noise z of probability ``(1 - a) / (1 + a) a^|z|``, a = exp(-epsilon), is added, and the
    sum is clamped to 0, ..., n. So ``q(y|v) = a^|v - y| (1 - a) / (1 + a)`` for 0 < y < n, ``a^v /
    (1 + a)`` for y = 0 and ``a^(n - v) / (1 + a)`` for y = n.

    Guarantee: epsilon-differential privacy for every query of sensitivity 1, such as a count. The
    level of any two inputs is exactly ``epsilon |v - v'|``, up to 690 nats: a^|v - y| is stored as
    1e-300 where it is smaller, which leaves the guarantee as it is. Floats are rounded towards
    privacy, so that `cvxleak.check_claim` proves it; for an epsilon like ``"log(2)"`` the
    probabilities are exact fractions.

    Parameters
    ----------
    n : int
        Largest count, at least 1.
    epsilon : float or str
        Privacy parameter in nats, at least 0 and finite, or the text "log(r)".

    Returns
    -------
    Channel
        Its inputs and its outputs are 0, ..., n.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, Universally utility-maximizing privacy
    mechanisms, SIAM J. Comput. 41 (2012).

    Examples
    --------
    >>> import math
    >>> from cvxleak.mechanisms import truncated_geometric
    >>> truncated_geometric(2, math.log(2)).matrix * 12
    array([[8., 2., 2.],
           [4., 4., 4.],
           [2., 2., 8.]])
    >>> truncated_geometric(2, "log(2)").row(0).tolist()
    [2/3, 1/6, 1/6]
    """
    size = whole_number(n, "n", 1)
    level, exact = privacy_level(epsilon, "epsilon", open_high=True)
    check_cells(size + 1, size + 1, "n")
    numbers = np.arange(size + 1)
    distances = np.abs(numbers[:, None] - numbers)
    if exact is not None:
        powers = np.array([exact**-i for i in range(size + 1)], dtype=object)[distances]
        powers[:, 1:-1] *= 1 - 1 / exact
        return Channel(powers / (1 + 1 / exact))
    rate = inward(level, size * level)
    matrix = not_vanishing(np.exp(-rate * distances))
    matrix[:, 1:-1] *= -math.expm1(-rate)
    return Channel(matrix / (1 + math.exp(-rate)))
