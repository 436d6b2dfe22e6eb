"""Random rounding, as statistical offices publish counts."""

from __future__ import annotations

import numpy as np

from cvxleak.core.validation import SIZE_LIMIT, check_cells, whole_number
from cvxleak.model import Channel

__all__ = ["random_rounding"]


def random_rounding(n: int, base: int) -> Channel:
    """Return unbiased random rounding of a count to a multiple of `base`.

    With r = v mod base, the count v becomes v - r with probability 1 - r / base and
    v - r + base with probability r / base. So multiples of the base stay as they are, and
    E[Y | v] = v. Base 3 is what the published tables of Statistics New Zealand use: a count that
    is no multiple of 3 goes to the nearer one with probability 2/3, to the other with 1/3.

    Guarantee: none that holds for every adversary. Neighboring counts can exclude each other's
    outputs, so the level of differential privacy is infinite (for a base of 2 and more the same
    holds for local differential privacy), and an adversary who knows enough of the others learns a
    record completely. How much doubt that takes is what an audit computes.

    Parameters
    ----------
    n : int
        Largest count, at least 1.
    base : int
        At least 1.

    Returns
    -------
    Channel
        From 0, ..., n to 0, base, 2 base, ... up to the first multiple that is not below n.

    Raises
    ------
    ValidationError
        An argument is not a positive integer.

    References
    ----------
    Statistics New Zealand, confidentiality rules for census tables (random rounding to base 3).

    Examples
    --------
    >>> from cvxleak.mechanisms import random_rounding
    >>> rounding = random_rounding(4, 3)
    >>> rounding.outputs
    (0, 3, 6)
    >>> rounding.matrix.round(3)
    array([[1.   , 0.   , 0.   ],
           [0.667, 0.333, 0.   ],
           [0.333, 0.667, 0.   ],
           [0.   , 1.   , 0.   ],
           [0.   , 0.667, 0.333]])
    """
    size, step = whole_number(n, "n", 1, SIZE_LIMIT), whole_number(base, "base", 1, SIZE_LIMIT)
    outputs = range(0, size + step, step)
    check_cells(size + 1, len(outputs), "n")
    counts = np.arange(size + 1)
    matrix = np.zeros((size + 1, len(outputs)))
    below, rest = np.divmod(counts, step)
    moved = rest > 0
    matrix[counts, below] = (step - rest) / step
    matrix[counts[moved], below[moved] + 1] = rest[moved] / step
    return Channel(matrix, outputs=outputs)
