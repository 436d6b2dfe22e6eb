"""Bounds on phi_a over boxes of a value's distribution v of contexts, in floats with an allowance.

`box_bounds` bounds f(v) = D(v R || t) + lam (H(v) + <v, log m>) over the distributions v of a box
lo <= v <= hi, from numbers that a leaf stores, eta >= 0 and w. The following is valid for every w >
0, whatever its sum S; the bound is good for a distribution near the largest f.

**eta = 0.** Each r_y = (v R)_y lies between its least and its largest value over the box and the
simplex, l_y and u_y. h_y(r) = r log(r / t_y) is convex, so its chord, of slope s_y, is above it;
and H(v) <= -<v, log w> + S - 1, since log x <= x - 1. So

    f(v) <= <v, R s + lam (log m - log w)> + lam (S - 1) + sum_y [h_y(l_y) - s_y l_y].

**eta > 0** (raised to lam if it is less). With r0 = w R, h = max(hi, w) and q = min(l, r0), let

    eta I + TAU sqrt(h) sqrt(h)^T - B B^T be positive semidefinite, B_gy = sqrt(h_g / q_y) R_gy.

Then sum_y (d R)_y^2 / r_y <= eta sum_g d_g^2 / v_g + TAU (sum_g d_g)^2 for every d and every v on a
segment from w to a distribution of the box. Integrated twice along it,

    sum_y [r_y log(r_y / r0_y) - r_y + r0_y]
        <= eta sum_g [v_g log(v_g / w_g) - v_g + w_g] + TAU (1 - S)^2 / 2.

So, with the slopes k_g of the chords of v log v between the endpoints of v_g,

    f(v) <= <v, R log(r0 / t) - eta log w + lam log m + (eta - lam) k>
            + (eta - lam) sum_g [lo_g log lo_g - k_g lo_g] + (1 - S) (1 - eta) + TAU (1 - S)^2 / 2.

If f is concave on the box, eta = lam is valid, and this is the tangent at w.

Both are linear in v, and <v, x> <= mu + sum_g max((x_g - mu) lo_g, (x_g - mu) hi_g) for any mu.

Rounding. `cvxleak.exact.outward` states the assumptions; u = 2^-53, n groups, |Y| outputs.
Endpoints of boxes are multiples of `GRID`, so their sums and differences are exact, and so are the
shares with which the bounds l and u of r are mixed from the rows. The rows are off by 2 u of
themselves or exactly 0, so that l and u are off by (n + 4) u of themselves, and are moved outwards
by twice that. All else is a sum of at most |Y| + 2 n products of such numbers, logarithms (4 u (1 +
|log|)), w and mu, whose floats are exact by definition, and s and k. A line that is steeper than
the chord by 3 u is above it but for 3 u times its slope and the width. So each term is off by at
most (n + 20) u times the sizes that are added up with it, and their sums by |Y| + 2 n more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cvxleak.exact.outward import UNIT_ROUNDOFF, Array, logarithm

__all__ = [
    "GRID",
    "LEAST_ENTRY",
    "LEAST_WEIGHT",
    "TAU",
    "allowed",
    "box_bounds",
    "in_chunks",
    "linear_maximum",
    "x_log_x_chords",
]

GRID = 2.0**-40
"""Cuts are multiples of this."""

LEAST_ENTRY = 2.0**-900
"""Least positive entry of the rows, so that no product underflows."""

LEAST_WEIGHT = 2.0**-100

TAU = 100.0
"""Weight of the penalty that keeps the sum of d near 0."""

CHUNK = 1 << 19
"""Approximate size of the largest arrays that are worked on at once."""


def box_bounds(
    rows: Array, logs: Array, logs_t: Array, lam: float, low: Array, high: Array, leaves: Array
) -> Array:
    """Return floats above f on each box; -inf for an empty box, nan if nothing is proved.

    Parameters
    ----------
    rows, logs, logs_t : arrays of shapes (n, |Y|), (n,) and (|Y|,)
        R, log m and log t: each off by at most 2 u of itself. Entries of R are 0 or not below
        `LEAST_ENTRY`.
    lam : float
        Positive, off by at most 2 u of itself.
    low, high : arrays, shape (L, n)
        Boxes, with endpoints that are multiples of `GRID` in [0, 1].
    leaves : array, shape (L, 1 + n)
        eta >= 0, and w >= 0; entries of w below `LEAST_WEIGHT` are raised to it.
    """
    order = np.argsort(rows, axis=0)
    sorted_rows = np.take_along_axis(rows, order, axis=0)
    bounds = np.full(len(low), -np.inf)
    for places, lo, hi in in_chunks(low, high, rows.size):
        leaf = leaves[places]
        w = np.maximum(leaf[:, 1:], LEAST_WEIGHT)
        ends = _ends(rows, order, sorted_rows, lo, hi)
        with np.errstate(all="ignore"):
            by_chords = leaf[:, 0] == 0
            found = np.empty(len(places))
            for kind, bound in ((by_chords, _by_chords), (~by_chords, _by_curvature)):
                box = lo[kind], hi[kind], ends[0][kind], ends[1][kind]
                found[kind] = bound(rows, logs, logs_t, lam, *box, leaf[kind, 0], w[kind])
        bounds[places] = np.where(np.isfinite(found), found, np.nan)
    return bounds


def in_chunks(
    low: Array, high: Array, size: int
) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
    """Yield chunks of the boxes that are not empty: their places, and narrowed boxes.

    A box is narrowed to the part of each interval that the others leave. Arrays hold `size` numbers
    a box.
    """
    low, high = (
        np.maximum(low, 1 - (high.sum(axis=1, keepdims=True) - high)),
        np.minimum(high, 1 - (low.sum(axis=1, keepdims=True) - low)),
    )
    # If one interval is empty, all are.
    some = np.flatnonzero(low[:, 0] <= high[:, 0])
    step = max(1, CHUNK // size)
    for start in range(0, len(some), step):
        places = some[start : start + step]
        yield places, low[places], high[places]


def _ends(
    rows: Array, order: NDArray[np.intp], sorted_rows: Array, lo: Array, hi: Array
) -> tuple[Array, Array]:
    """Return l and u, rounded outward: what lo leaves goes to the least or the largest entries."""
    outward = 2 * (len(rows) + 4) * UNIT_ROUNDOFF
    left = 1 - lo.sum(axis=1)[:, None, None]
    room = (hi - lo)[:, order]
    base = lo @ rows
    found = []
    for step in (1, -1):
        ordered = room[:, ::step]
        taken = np.clip(left - (np.cumsum(ordered, axis=1) - ordered), 0, ordered)
        found.append(base + (taken * sorted_rows[::step]).sum(axis=1))
    return found[0] * (1 - outward), found[1] * (1 + outward)


def _by_chords(
    rows: Array,
    logs: Array,
    logs_t: Array,
    lam: float,
    lo: Array,
    hi: Array,
    least: Array,
    most: Array,
    _: Array,
    w: Array,
) -> Array:
    heights, sizes = [], np.zeros(len(lo))
    for r in (least, most):
        log = _log(r)
        heights.append(r * (log - logs_t))
        sizes += (r * (1 + np.abs(log) + np.abs(logs_t))).sum(axis=1)
    width = most - least
    s = (heights[1] - heights[0]) / np.where(width > 0, width, 1)
    log_w = _log(w)
    x = s @ rows.T + lam * (logs - log_w)
    value, size = linear_maximum(x, lo, hi)
    value += lam * (w.sum(axis=1) - 1)
    value += (heights[0] - s * least).sum(axis=1)
    sizes += size + lam * w.sum(axis=1) + (np.abs(s) * (1 + least + most)).sum(axis=1)
    return value + allowed(rows, sizes + lam * _most(logs, log_w))


def _by_curvature(
    rows: Array,
    logs: Array,
    logs_t: Array,
    lam: float,
    lo: Array,
    hi: Array,
    least: Array,
    _: Array,
    eta: Array,
    w: Array,
) -> Array:
    eta = np.maximum(eta, lam * (1 + 8 * UNIT_ROUNDOFF))[:, None]
    r = w @ rows
    contracts = _contracts(rows, np.maximum(hi, w), np.minimum(least, r), eta[:, 0])
    log_r, log_w = _log(r), _log(w)
    s = np.where(r > 0, log_r - logs_t, 0.0)
    k, offset = x_log_x_chords(lo, hi)
    x = s @ rows.T + lam * logs - eta * log_w + (eta - lam) * k
    value, sizes = linear_maximum(x, lo, hi)
    total = w.sum(axis=1)
    value += (eta[:, 0] - lam) * offset
    value += (1 - total) * (1 - eta[:, 0]) + TAU * (1 - total) ** 2 / 2
    sizes += (1 + eta[:, 0] + TAU * np.abs(1 - total)) * (1 + total)
    sizes += (np.abs(log_r) + np.abs(logs_t)).max(axis=1) + np.abs(s).max(axis=1)
    sizes += (eta[:, 0] + lam) * (_most(logs, log_w) + len(rows) * (1 + np.abs(k).max(axis=1)))
    return np.where(contracts, value + allowed(rows, sizes), np.nan)


def _contracts(rows: Array, h: Array, q: Array, eta: Array) -> NDArray[np.bool_]:
    """Whether the matrix of eta is positive semidefinite: a smaller one has an LDL^T factorization.

    K = B B^T has positive entries, each off by (|Y| + n + 20) u of itself, so K is off by that
    times its trace, in norm; forming the matrix M adds 8 u (eta + TAU sum h + tr K); and a
    factorization with positive pivots is that of M + E, |E| <= 2 (n + 2) u tr M (Higham, theorem
    10.3).
    """
    n, outputs = rows.shape
    b = np.sqrt(h)[:, :, None] * np.where(rows > 0, rows / np.sqrt(q)[:, None], 0.0)
    matrix = -np.matmul(b, b.swapaxes(1, 2))
    trace = -np.trace(matrix, axis1=1, axis2=2)
    roots = np.sqrt(h)
    matrix += TAU * roots[:, :, None] * roots[:, None, :]
    less = 2 * UNIT_ROUNDOFF * (outputs + 4 * n + 40) * (n * eta + TAU * h.sum(axis=1) + trace)
    matrix[:, np.arange(n), np.arange(n)] += (eta - less)[:, None]
    positive = np.isfinite(trace)
    for i in range(n):
        pivot, column = matrix[:, i, i], matrix[:, i + 1 :, i]
        positive &= pivot > 0
        matrix[:, i + 1 :, i + 1 :] -= (
            column[:, :, None] * column[:, None, :] / pivot[:, None, None]
        )
    return positive


def x_log_x_chords(lo: Array, hi: Array) -> tuple[Array, Array]:
    """Return the slopes of the chords of x log x, and the sum over a box of their values at 0."""
    ends = [v * _log(v) for v in (lo, hi)]
    width = hi - lo
    k = (ends[1] - ends[0]) / np.where(width > 0, width, 1)
    return k, (ends[0] - k * lo).sum(axis=1)


def linear_maximum(x: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Return mu + sum_g max((x_g - mu) lo_g, (x_g - mu) hi_g) for the best mu, and its size."""
    order = np.argsort(-x, axis=1)
    ordered = np.take_along_axis(hi - lo, order, axis=1)
    full = np.cumsum(ordered, axis=1) < 1 - lo.sum(axis=1, keepdims=True)
    place = full.sum(axis=1, keepdims=True)
    mu = np.take_along_axis(x, np.take_along_axis(order, place, axis=1), axis=1)
    over = x - mu
    value = mu[:, 0] + np.maximum(over * lo, over * hi).sum(axis=1)
    return value, np.abs(mu[:, 0]) + (np.abs(over) * hi).sum(axis=1)


def _log(x: Array) -> Array:
    """Return log x, and 0 for x = 0, where it is multiplied by x."""
    return logarithm(np.where(x > 0, x, 1.0))


def _most(logs: Array, log_w: Array) -> Array:
    return len(logs) * (1 + np.abs(logs).max() + np.abs(log_w).max(axis=1))


def allowed(rows: Array, sizes: Array) -> Array:
    """Return the allowance for rounding of numbers of these sizes."""
    n, outputs = rows.shape
    return 2 * (outputs + 3 * n + 60) * UNIT_ROUNDOFF * (1 + sizes)
