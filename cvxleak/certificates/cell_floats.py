"""Leaves of a tree of posterior cells, many at once in floats, with an allowance for rounding.

The fast twin of `cvxleak.certificates.posterior_cells`, where U is derived. Only operations that
IEEE 754 defines are used, one number at a time (no BLAS, no sums in an order that is left open), so
every machine finds the same number. u = 2^-53; all constants below are generous.

**nu** is what elimination makes of V nu = mu - H(V); nothing rests on that. Let delta >= 0 be at
least -H(V_j) - <V_j, nu> for every vertex j of the cells of every output. The entries of a vertex
sum to 1, so nu + delta proves the inequalities of the node's dual, and since the entries of a row
of the channel sum to 1 as well it costs no more than delta in U.

**Vertices** are exact up to a factor 1 +- e in each entry, e <= 4 u (number of splits that made
it, infinite where something might have underflowed). That moves sum_a V log V and <V, nu> by at
most e (sum |V log V| + 1.1 sum V + sum V |nu|) in all, and rounding by as much with (k + 10) u for
e.

**U** is made of a matrix product, of log-sum-exps, and of multiples. With S the largest |nu|, n
outputs, N groups of a value at most, k values, log m <= M:

- c is off by (n + 4) u S, c / lam + log m by that / lam + 3 u (S / lam + M);
- a log-sum-exp of N terms of size s by u (110 + 6 N + 3 s): `exponential` is off by a share of
  100 u + 3 u |x|, where e^x |x| <= 0.4, and the sum is at least 1;
- so phi, at most S + lam (M + log N), by u ((n + 15) S + lam (120 + 8 N + 10 M)), and U + lam b,
  with the second log-sum-exp, by u ((n + 25) S + (1 + lam) (240 + 8 N + 8 k + 20 M)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxleak.certificates.outward import UNIT_ROUNDOFF, Array, logarithm

__all__ = ["exponential", "leaf_bounds"]

_LOG_2 = 0.6931471805599453
_LEAST = -700.0
_TERMS = 14


def exponential(x: Array) -> Array:
    """Return e^x for x in [-700, 0], off by at most (100 + 3 |x|) u e^x; for lower x, e^-700.

    x = n log 2 + r with |r| < 0.35: r is off by 2.2 u |x| + u; fourteen terms of the series leave
    out 1e-18, and Horner's rule is off by 42 u e^0.35, at most 85 u of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.certificates.cell_floats import exponential
    >>> exponential(np.array([0.0, -1.0])).round(12)
    array([1.        , 0.36787944])
    """
    x = np.maximum(x, _LEAST)
    n = np.rint(x / _LOG_2)
    r = x - n * _LOG_2
    series = np.ones_like(r)
    for i in range(_TERMS, 0, -1):
        series = 1 + series * r / i
    return np.ldexp(series, n.astype(int))


def leaf_bounds(
    columns: list[Array],
    logs: list[Array],
    charges: list[Array],
    vertices: Array,
    depths: Array,
    places: NDArray[np.intp],
    multipliers: Array,
) -> tuple[Array, Array]:
    """Return floats above U + lam b for each leaf, and how much of that is an allowance.

    Where the allowance is not finite nothing is proved.

    Parameters
    ----------
    columns, logs, charges : lists of arrays of shapes (N_a, |Y|), (N_a,) and (N_a,)
        For each value the rows, log m and a price, each off by a factor of at most 1 +- 2 u.
    vertices, depths : arrays of shapes (C, k, k) and (C, k)
        Cells, and by how many splits each vertex was made.
    places : array of int, shape (L, |Y|)
        The cell of each output, for each leaf.
    multipliers : array, shape (L, 1 + |Y| k)
        lam and mu.
    """
    with np.errstate(all="ignore"):
        return _bounds(columns, logs, charges, vertices, depths, places, multipliers)


def _bounds(
    columns: list[Array],
    logs: list[Array],
    charges: list[Array],
    vertices: Array,
    depths: Array,
    places: NDArray[np.intp],
    multipliers: Array,
) -> tuple[Array, Array]:
    (leaves, outputs), k = places.shape, vertices.shape[1]
    terms = vertices * logarithm(np.where(vertices > 0, vertices, 1.0))
    heights, sizes = _total(terms), _total(np.abs(terms)) + 1.2 * _total(vertices)
    rounding = (4.0 * depths + k + 10) * UNIT_ROUNDOFF
    lam = multipliers[:, 0]
    nu = np.zeros((leaves, outputs, k))
    delta, largest = np.zeros(leaves), np.zeros(leaves)
    for y in range(outputs):
        cell = places[:, y]
        v, h = vertices[cell], heights[cell]
        nu[:, y] = _solved(v, h + multipliers[:, 1 + y * k : 1 + (y + 1) * k])
        products = v * nu[:, y][:, None, :]
        missing = h - _total(products)
        missing += 2 * rounding[cell] * (sizes[cell] + _total(np.abs(products)))
        delta = np.maximum(delta, missing.max(axis=1))
        largest = np.maximum(largest, np.abs(nu[:, y]).max(axis=1))
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
    largest = 1 + largest + max(float(np.abs(charge).max()) for charge in charges)
    allowance = (outputs + 25) * largest + weight * (240 + 8 * (groups + k) + 20 * logs_most)
    allowance = 2 * UNIT_ROUNDOFF * allowance + np.maximum(delta, 0.0)
    return value + allowance, allowance


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
