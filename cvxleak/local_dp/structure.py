"""The ratios within a channel's columns: critical pairs, colors, staircases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.validation import real_number
from cvxleak.measures import local_dp_epsilon
from cvxleak.model import Channel, as_channel

__all__ = ["CriticalPair", "colors", "critical_pairs", "is_staircase"]


class CriticalPair(NamedTuple):
    """The positions of two entries of a column whose ratio is e^epsilon.

    Examples
    --------
    >>> from cvxleak.local_dp import CriticalPair
    >>> CriticalPair(output=0, larger=1, smaller=2).larger
    1
    """

    output: int
    larger: int
    smaller: int


def critical_pairs(channel: Channel | ArrayLike, *, tol: float = 1e-9) -> list[CriticalPair]:
    """Return the pairs of entries of one column whose ratio is the channel's largest.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        There are no critical pairs if its epsilon is 0 or infinite.
    tol : float
        Ratios within this relative difference count as equal.

    Raises
    ------
    ValidationError
        Not a channel.

    Notes
    -----
    HAMMING Definition 7.

    Examples
    --------
    >>> from cvxleak.local_dp.structure import critical_pairs
    >>> critical_pairs([[0.75, 0.25], [0.25, 0.75]])
    [CriticalPair(output=0, larger=0, smaller=1), CriticalPair(output=1, larger=1, smaller=0)]
    """
    rows = as_channel(channel).matrix
    tol = real_number(tol, "tol", 0.0)
    epsilon = local_dp_epsilon(rows)
    if not 0 < epsilon < np.inf:
        return []
    found = []
    for y in np.flatnonzero(rows.max(axis=0) > 0):
        ratios = rows[:, y][:, None] / rows[:, y][None, :]
        pairs = np.argwhere(ratios >= np.exp(epsilon) * (1 - tol))
        found += [CriticalPair(int(y), int(x), int(other)) for x, other in pairs]
    return found


def colors(channel: Channel | ArrayLike, *, tol: float = 1e-9) -> NDArray[np.str_]:
    """Return the coloring of HAMMING section V-F: B(lack), R(ed), W(hite), and - in zero columns.

    Black is the larger entry of a critical pair, red the smaller one.

    Raises
    ------
    ValidationError
        Not a channel.

    Examples
    --------
    >>> from cvxleak.local_dp.structure import colors
    >>> print(colors([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]))
    [['B' 'R' '-']
     ['R' 'B' '-']]
    """
    rows = as_channel(channel).matrix
    result = np.where(rows > 0, "W", "-")
    for pair in critical_pairs(rows, tol=tol):
        result[pair.larger, pair.output], result[pair.smaller, pair.output] = "B", "R"
    return result


def is_staircase(channel: Channel | ArrayLike, *, tol: float = 1e-9) -> bool:
    """Whether all ratios within a column are 1, e^epsilon or e^-epsilon, for the channel's epsilon.

    Raises
    ------
    ValidationError
        Not a channel.

    Notes
    -----
    HAMMING section II-D: staircase mechanisms are optimal for sub-linear utilities (Kairouz, Oh and
    Viswanath, JMLR 17, 2016). Minus the worst-case distortion is not sub-linear, and the optimal
    channel of a Class II or III set need not be a staircase.

    Examples
    --------
    >>> from cvxleak.local_dp.structure import is_staircase
    >>> is_staircase([[0.75, 0.25], [0.25, 0.75]])
    True
    >>> is_staircase([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.3, 0.4, 0.3]])
    False
    """
    rows = as_channel(channel).matrix
    tol = real_number(tol, "tol", 0.0)
    epsilon = local_dp_epsilon(rows)
    if epsilon == np.inf:
        return False
    for y in np.flatnonzero(rows.max(axis=0) > 0):
        logs = np.log(rows[:, y])
        gaps = np.abs(logs[:, None] - logs[None, :])
        if (np.minimum(gaps, np.abs(gaps - epsilon)) > tol).any():
            return False
    return True
