"""The geometric mechanism for counts."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.core.validation import check_cells, real_number, whole_number
from cvxleak.mechanisms._vanishing import not_vanishing
from cvxleak.model import Channel

__all__ = ["truncated_geometric"]


def truncated_geometric(n: int, epsilon: float) -> Channel:
    """Return the two-sided geometric mechanism on 0, ..., n, clamped to that range.

    Integer noise z of probability ``(1 - a) / (1 + a) a^|z|``, a = exp(-epsilon), is added, and the
    sum is clamped to 0, ..., n. So ``q(y|v) = a^|v - y| (1 - a) / (1 + a)`` for 0 < y < n, ``a^v /
    (1 + a)`` for y = 0 and ``a^(n - v) / (1 + a)`` for y = n.

    Guarantee: epsilon-differential privacy for every query of sensitivity 1, such as a count. The
    level of any two inputs is exactly ``epsilon |v - v'|``, up to 690 nats: a^|v - y| is stored as
    1e-300 where it is smaller, which leaves the guarantee as it is.

    Parameters
    ----------
    n : int
        Largest count, at least 1.
    epsilon : float
        Privacy parameter in nats, at least 0 and finite.

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
    """
    size = whole_number(n, "n", 1)
    rate = real_number(epsilon, "epsilon", 0, open_high=True)
    check_cells(size + 1, size + 1, "n")
    numbers = np.arange(size + 1.0)
    matrix = not_vanishing(np.exp(-rate * np.abs(numbers[:, None] - numbers)))
    matrix[:, 1:-1] *= -math.expm1(-rate)
    return Channel(matrix / (1 + math.exp(-rate)))
