"""Logarithms in NumPy with a proved error bound: the fast twin of ball arithmetic.

`numpy.log` comes with no error bound, so nothing rigorous can rest on it. `logarithm` uses only
operations that IEEE 754 defines (additions, multiplications, exact scalings), and so has one. What
is assumed throughout: binary64, rounding to nearest, and sums of products whose terms are added in
any order, fused or not (what every BLAS does short of Strassen's method). Nothing depends on how
subnormal numbers are treated.

Notation: u = 2^-53 is the unit roundoff, and a sum of n rounded terms is off by at most
g_n sum |terms|, g_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms,
2nd edition, section 3.1).
"""

from __future__ import annotations

import numpy as np
from flint import arb
from numpy.typing import NDArray

from cvxleak.exact import balls

__all__ = ["LOG_ERROR", "SMALLEST", "UNIT_ROUNDOFF", "logarithm"]

Array = NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53

LOG_ERROR = 4
"""`logarithm` is off by at most LOG_ERROR * UNIT_ROUNDOFF * (1 + |log x|)."""

SMALLEST = 2.0**-900
"""Positive numbers below this are left out of sums; products of larger ones do not underflow."""

_CELLS = 512


def _table() -> tuple[Array, Array]:
    """Return, for each of 512 cells of [1/2, 1), a number c near 1/x and -log c rounded."""
    inverses = 1 / (0.5 + (np.arange(_CELLS) + 0.5) / (2 * _CELLS))
    with balls.precision():
        logs = [-float(arb(c).log()) for c in inverses.tolist()]
    return inverses, np.array(logs)


_INVERSES, _LOGS = _table()
_LOG_2 = 0.6931471805599453


def logarithm(x: Array) -> Array:
    """Return log x, off by at most 4 u (1 + |log x|), for floats in [2^-1022, 2^1000].

    Write x = m 2^e with m in [1/2, 1) and let c be the tabulated number near 1/m. With f = m c - 1,
    |f| < 2^-9.9,

        log x = e log 2 + (-log c + log(1 + f)),
        log(1 + f) = f - f^2 (1/2 - f/3 + f^2/4 - f^3/5) + r, |r| < f^6 / 5.9 < 2^-61.

    Errors: the product m c is off by at most u and the subtraction of 1 is exact, which is 1.01 u
    in log(1 + f); the table is off by u; r and the polynomial, whose terms past f are below 2^-20,
    by u/64; the inner sum, at most 0.7 in size, by 0.7 u; e log 2 by 0.5 u |e| from the constant
    and 0.7 u |e| from the product; the outer sum by u |log x|, up to terms in u^2. Together they
    stay below 2.8 u + 1.2 u |e| + u |log x|, and |e| <= 1 + |log x| / log 2 gives the claim.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.exact.outward import logarithm
    >>> logarithm(np.array([0.5, 1e-300])).round(12)
    array([  -0.69314718, -690.7755279 ])
    """
    m, e = np.frexp(x)
    cell = (m * (2 * _CELLS)).astype(np.intp) - _CELLS
    f = m * _INVERSES[cell] - 1
    tail = f * f * (0.5 - f * (1 / 3 - f * (0.25 - f * 0.2)))
    return e * _LOG_2 + (_LOGS[cell] + (f - tail))
