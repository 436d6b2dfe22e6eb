"""Leaves of a tree of posterior cells, many at once in floats, with an allowance for rounding.

The fast twin of `cvxleak.proofs.bounds.posterior_cells`, where U is derived. Only operations that
IEEE 754 defines are used (+, -, *, /, max, rounding to a whole number, powers of 2), one number at
a time (no BLAS, no sums in an unspecified order), so every machine finds the same number.
Rounding is to nearest, u = 2^-53. What is derived here is doubled in the code, which covers terms
in u^2 and the rounding of the allowance itself. Nothing depends on how subnormal numbers are
treated: the error from them is below 2^-1000 (S + 1 + lam), S as below, and the allowance is above
2^-50 of that.

**nu** is an approximate solution of V nu = mu - H(V), found by elimination. No proof depends on its
accuracy, since delta is found afterwards: let delta >= 0 be at least -H(V_j) - <V_j, nu> for every
vertex j of the cells of every output. The entries of an exact vertex sum to 1, so nu + delta meets
the inequalities of the node's dual. The exact entries of a row of the channel sum to 1 as well, so
each c and each phi increase by delta, and so does U.

**Vertices** are exact up to a factor 1 +- e in each entry, e <= 4 u (number of splits that made
it). A split computes (1 - t) p + t q: 1 - t, the products and the sum are off by u each, 3 u in
total, in addition to the errors of p and q. Entries are >= 0, so nothing cancels. An entry below
2^-900 that is not 0 throughout makes the depth of its vertex infinite, and so the allowance; in a
larger entry a product that underflowed does not matter. For e < 1/100, x log x changes by at most e
(|x log x| + 1.02 x), and `logarithm` is off by 4 u (1 + |log x|), so -H(V_j) and <V_j, nu> are off
by at most (e + (k + 10) u) (sum |V log V| + 1.1 sum V + sum V |nu|) together, with all sums.

**U** is made of a matrix product, of log-sum-exps, and of multiples. With S the largest |nu| plus
the largest |price| plus 1, n outputs, N groups of a value at most, k values, log m <= M:

- c is off by (n + 4) u S: numbers of the channel are off by 2 u of themselves, a product and n sums
  follow;
- c / lam + log m is off by that / lam + 3 u (S / lam + M);
- a log-sum-exp of N terms of size s by u (110 + 6 N + 3 s): `exponential` is off by a share of 100
  u + 3 u |x|, the difference x from the largest term by u |x|, where e^x |x| <= 0.4; the sum is at
  least 1, and `logarithm` off by 4 u (1 + log N);
- so phi, which is at most S + lam (M + log N), is off by u ((n + 15) S + lam (120 + 7 N + 10 M));
- terms of the second log-sum-exp, phi / (1 + lam), are off by 2 u of themselves in addition, and so
  U + lam b by u ((n + 25) S + (1 + lam) (240 + 8 N + 8 k + 20 M)), where 7 log N <= N + 10 was
  used.

An overflow leads to an allowance or a value that is not finite, because log-sum-exps are NaN unless
all of their terms are finite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxleak.exact.outward import UNIT_ROUNDOFF, Array, logarithm

__all__ = ["exponential", "leaf_bounds"]

_LOG_2 = 0.6931471805599453
_LEAST = -700.0
_TERMS = 14


def exponential(x: Array) -> Array:
    """Return e^x for x in [-700, 0], off by at most (100 + 3 |x|) u e^x; for lower x, e^-700.

    x = n log 2 + r with |r| < 0.35: log 2 is off by 0.3 u of itself, its product with n by u and
    the difference by 0.35 u, so r by 1.3 u |x| + 0.9 u. Fourteen terms of the series leave out
    1e-18. A step of Horner's rule, 1 + s r / i with s < 1.42, adds an error of 2.5 u to 0.35 times
    the error of s: 4 u in total, 6 u relative to the result. The power of 2 is exact, as the result
    is normal.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.proofs.bounds.cell_floats import exponential
    >>> exponential(np.array([0.0, -1.0])).round(12)
    array([1.        , 0.36787944])
    """
    x = np.maximum(x, _LEAST)
    n = np.rint(x / _LOG_2)
    r = x - n * _LOG_2
    series = np.ones_like(r)
    for i in range(_TERMS, 0, -1):
        series = 1 + series * r / i
    return np.ldexp(series, n.astype(np.int32))


def leaf_bounds(
    columns: list[Array],
    logs: list[Array],
    charges: list[Array],
    vertices: Array,
    depths: Array,
    places: NDArray[np.intp],
    multipliers: Array,
) -> tuple[Array, Array]:
    """Return floats above U + lam b for each leaf, and how much of each is an allowance.

    If the allowance is not finite, nothing is proved.

    Parameters
    ----------
    columns, logs, charges : lists of arrays of shapes (N_a, |Y|), (N_a,) and (N_a,)
        For each value the rows, log m and a price. Each is off by at most 2 u of itself, or by
        2^-100 absolutely (prices are sums in which large terms may cancel).
    vertices, depths : arrays of shapes (C, k, k) and (C, k)
        Cells, and by how many splits each vertex was made.
    places : array of int, shape (L, |Y|)
        The cell of each output, for each leaf.
    multipliers : array, shape (L, 1 + |Y| k)
        lam and mu.
    """
    with np.errstate(all="ignore"):
        (leaves, outputs), k = places.shape, vertices.shape[1]
        lam = multipliers[:, 0]
        nu, delta = _inequalities(vertices, depths, places, multipliers[:, 1:])
        weight, positive = 1 + lam, lam > 0
        safe = np.where(positive, lam, 1.0)[:, None]
        x = []
        for a, (rows, log, charge) in enumerate(zip(columns, logs, charges, strict=True)):
            c = np.repeat(charge[None], leaves, axis=0)
            for y in range(outputs):
                c = c + nu[:, y, a][:, None] * rows[:, y]
            smooth = lam * _log_sum_exp(c / safe + log)
            x.append(np.where(positive, smooth, c.max(axis=1)) / weight)
        value = weight * _log_sum_exp(np.stack(x, axis=1))
        groups, logs_most = max(map(len, logs)), max(float(log.max()) for log in logs)
        largest = (
            1 + np.abs(nu).max(axis=(1, 2)) + max(float(np.abs(charge).max()) for charge in charges)
        )
        allowance = (outputs + 25) * largest + weight * (240 + 8 * (groups + k) + 20 * logs_most)
        allowance = 2 * UNIT_ROUNDOFF * allowance + delta
        return value + allowance, allowance


def _inequalities(
    vertices: Array, depths: Array, places: NDArray[np.intp], mu: Array
) -> tuple[Array, Array]:
    """Return nu, of shape (L, |Y|, k), and delta for each leaf."""
    (leaves, outputs), k = places.shape, vertices.shape[1]
    terms = vertices * logarithm(np.where(vertices > 0, vertices, 1.0))
    heights, sizes = _total(terms), _total(np.abs(terms)) + 1.2 * _total(vertices)
    rounding = (4.0 * depths + k + 10) * UNIT_ROUNDOFF
    nu, delta = np.zeros((leaves, outputs, k)), np.zeros(leaves)
    for y in range(outputs):
        cell = places[:, y]
        v, h = vertices[cell], heights[cell]
        nu[:, y] = _solved(v, h + mu[:, y * k : (y + 1) * k])
        products = v * nu[:, y][:, None, :]
        missing = h - _total(products)
        missing += 2 * rounding[cell] * (sizes[cell] + _total(np.abs(products)))
        delta = np.maximum(delta, missing.max(axis=1))
    return nu, delta


def _solved(matrix: Array, right: Array) -> Array:
    """Return a solution of each system by elimination; not a number where a pivot is 0."""
    a = np.concatenate([matrix, right[..., None]], axis=2)
    k = a.shape[1]
    for i in range(k):
        a[:, i] = a[:, i] / a[:, i, i][:, None]
        for j in range(k):
            if j != i:
                a[:, j] = a[:, j] - a[:, j, i][:, None] * a[:, i]
    return a[..., k]


def _log_sum_exp(x: Array) -> Array:
    top = x.max(axis=1)
    below = x - top[:, None]
    finite = np.isfinite(below)
    total = _total(exponential(np.where(finite, below, 0.0)))
    return np.where(finite.all(axis=1), top + logarithm(total), np.nan)


def _total(x: Array) -> Array:
    """Return sums along the last axis, in one order for all machines."""
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        rest = x[..., 2 * half :]
        x = np.concatenate([x[..., :half] + x[..., half : 2 * half], rest], axis=-1)
    return x[..., 0]
