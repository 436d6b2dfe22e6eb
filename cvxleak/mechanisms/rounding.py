"""Random rounding, as statistical offices use it for published counts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import SIZE_LIMIT, check_cells, in_order, real_number, whole_number
from cvxleak.model import Channel

__all__ = ["random_rounding"]


def random_rounding(n: int, base: int, up: Sequence[float] | None = None) -> Channel:
    """Return random rounding of a count to a multiple of `base`, unbiased by default.

    With r = v mod base, the count v becomes v - r + base with probability u(r) and v - r otherwise;
    by default u(r) = r / base, exactly. So multiples of the base do not change, and by default E[Y
    | v] = v. Statistics New Zealand uses base 3 in its published tables: a count that is not a
    multiple of 3 is rounded to the nearest multiple with probability 2/3, and to the other
    neighboring one with probability 1/3.

    Guarantee: none against all adversaries. An output can be possible for one count and impossible
    for the next, so the levels of differential privacy, central and local, are infinite, and an
    adversary who knows enough other records learns a record completely. An audit computes the
    leakage to adversaries with a given uncertainty.

    Parameters
    ----------
    n : int
        Largest count, at least 1.
    base : int
        At least 1.
    up : sequence of float, optional
        u(1), ..., u(base - 1): the probabilities of rounding up, if not r / base.

    Returns
    -------
    Channel
        From 0, ..., n to 0, base, 2 base, ... up to the first multiple that is not below n.

    Raises
    ------
    ValidationError
        `n` or `base` is not a positive integer, or `up` does not hold base - 1 probabilities.

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
    >>> random_rounding(2, 3, up=["1/4", "3/4"]).matrix
    array([[1.  , 0.  ],
           [0.75, 0.25],
           [0.25, 0.75]])
    """
    size, step = whole_number(n, "n", 1, SIZE_LIMIT), whole_number(base, "base", 1, SIZE_LIMIT)
    outputs = range(0, size + step, step)
    check_cells(size + 1, len(outputs), "n")
    law = _laws(step, min(size, step - 1), up)
    counts = np.arange(size + 1)
    below, rest = np.divmod(counts, step)
    matrix = np.full((size + 1, len(outputs)), 0.0, dtype=law.dtype)
    matrix[counts, below] = law[rest, 0]
    moved = rest > 0
    matrix[counts[moved], below[moved] + 1] = law[rest[moved], 1]
    return Channel(matrix, outputs=outputs)


def _laws(base: int, largest: int, up: Sequence[float] | None) -> np.ndarray:
    """Return for the rests 0, ..., `largest` the probabilities of going down and up.

    They are floats where these stand for the exact numbers, as thirds and decimals do.
    """
    if up is None:
        shares = [Fraction(rest, base) for rest in range(largest + 1)]
    else:
        given = in_order(up, "up")
        if len(given) != base - 1:
            raise ValidationError(
                f"up: found {len(given)} probabilities; {base - 1} are needed, one for each "
                "remainder from 1 to base - 1"
            )
        shares = [
            fraction(real_number(value, f"up[{i}]", 0.0, 1.0)) for i, value in enumerate(given)
        ]
        shares = [Fraction(0), *shares[:largest]]
    laws = [(1 - share, share) for share in shares]
    floats = np.array(laws, dtype=float)
    if all(exact_law(row) == law for row, law in zip(floats.tolist(), laws, strict=True)):
        return floats
    return np.array(laws, dtype=object)
