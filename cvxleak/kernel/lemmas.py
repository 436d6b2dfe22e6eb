r"""What several rules use: DUAL in its smallest case, CHORD in one dimension, CONTRACT.

DUAL. For every number tau, max {<q, x> : q a distribution, l <= q <= h} is at most
tau + sum_i max((x_i - tau) l_i, (x_i - tau) h_i), because <q, x> = tau + sum_i q_i (x_i - tau).

CHORD. A convex function f is on [l, h] at most n r + max(f(l) - n l, f(h) - n h), for every n.

CONTRACT. Let R be the rows of the groups of one value, w a distribution on them with w > 0.

(a) D(vR || wR) <= eta D(v || w) for all distributions v, with eta = 1 - min_{g,h} (sum_y
    sqrt(R_gy R_hy))^2.
(b) The same holds for all v in a box l <= v <= h, if eta I - B B^T is positive semidefinite on
    sum_g sqrt(H_g) z_g = 0, where H = max(h, w) and B_gy = sqrt(H_g / q_y) R_gy, for some q_y > 0
    that neither (vR)_y for v in the box nor (wR)_y is below.

Proof. Both sides and their first derivatives vanish at v = w. Along w + s (v - w), d = v - w, the
second derivatives are sum_y (dR)_y^2 / (v_s R)_y and sum_g d_g^2 / v_sg, and sum d = 0.
(a) d_g / v_g has mean 0 under v, so v is a mixture of distributions on two groups under which it
has mean 0. The left side is convex and homogeneous of degree one in (d, v), so two rows P, Q with
shares p, q and d = (1, -1) suffice. There p q (P - Q)^2 = (pP + qQ)(qP + pQ) - PQ makes the left
side (1 - sum PQ / (pP + qQ)) times the right one, and sum PQ / (pP + qQ) >= (sum sqrt(PQ))^2 by
Cauchy and Schwarz. (b) With d_g = sqrt(H_g) z_g the condition says sum_y (dR)_y^2 / q_y <=
eta sum_g d_g^2 / H_g whenever sum d = 0; and q <= v_s R, H >= v_s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat

from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import (
    Counted,
    dot,
    is_zero,
    least,
    middle,
    need,
    sqrt,
    total,
    xlogx,
)

__all__ = [
    "above_chord",
    "certainly",
    "chords",
    "contraction",
    "contracts",
    "divergence",
    "relative",
    "support",
]


def certainly(x: Any, *, positive: bool = False) -> Any:
    """Return 0 where a number is proved to be >= 0, or > 0.

    Elsewhere a `Many` is infinite, and other numbers are refused. The result is added to the
    conclusion that the condition belongs to.
    """
    if isinstance(x, Many):
        holds = np.isfinite(x.m) & (x.m > x.r if positive else x.m >= x.r)
        return Many(0.0, np.where(holds, 0.0, np.inf))
    need(x > 0 if positive else x >= 0, "a number that is not proved to be large enough")
    return x if isinstance(x, Counted) else x * 0


def support(lo: Sequence[Any], hi: Sequence[Any], x: Sequence[Any]) -> Any:
    """Return a bound above <q, x>, for all distributions q between `lo` and `hi` (DUAL)."""
    tau = _threshold(lo, hi, x)
    rests = [(z - tau, low, high) for z, low, high in zip(x, lo, hi, strict=True)]
    return total((z * low).max(z * high) for z, low, high in rests) + tau


def _threshold(lo: Sequence[Any], hi: Sequence[Any], x: Sequence[Any]) -> Any:
    """Return where filling the largest x first stops (untrusted)."""
    if any(isinstance(z, Counted) for z in (*x, *lo)):
        return x[0]
    if not any(isinstance(z, Many) for z in (*x, *lo)):
        room, at = 1 - sum(map(middle, lo)), 0
        for at in sorted(range(len(x)), key=lambda i: -middle(x[i])):
            room -= middle(hi[at]) - middle(lo[at])
            if room <= 0:
                break
        return x[at]
    sizes, low, high = (
        np.stack(np.broadcast_arrays(*map(middle, zs), np.zeros(1))[:-1]) for zs in (x, lo, hi)
    )
    # Where sizes are the same for all leaves, they are sorted once.
    order = np.argsort(-sizes, axis=0)
    filled = np.cumsum(np.take_along_axis(high - low, order, 0), axis=0)
    at = np.minimum((filled < 1 - low.sum(0)).sum(0), len(x) - 1)
    place = np.take_along_axis(order, at[None], 0)
    return Many(np.take_along_axis(sizes, place, 0)[0])


def _chord_slope(f: Callable[[Any], Any], lo: Any, hi: Any) -> Any:
    """Return the slope of a chord of f (untrusted: any number makes `above_chord` valid)."""
    if isinstance(lo, Counted):
        return (f(hi) - f(lo)) / (hi - lo)
    wide = np.asarray(middle(hi)) - np.asarray(middle(lo))
    rise = np.asarray(middle(f(hi))) - np.asarray(middle(f(lo)))
    found = np.where(wide > 1e-20, rise / np.where(wide > 1e-20, wide, 1.0), 0.0)
    if isinstance(lo, Many) or isinstance(hi, Many):
        return Many(found)
    return arb(float(found)) if np.isfinite(found) else arb(0)


def above_chord(f: Callable[[Any], Any], lo: Any, hi: Any, slope: Any) -> Any:
    """Return what a convex f is at most above the line of this slope, on [lo, hi] (CHORD)."""
    return (f(lo) - slope * lo).max(f(hi) - slope * hi)


def chords(
    functions: Sequence[Callable[[Any], Any]], lo: Sequence[Any], hi: Sequence[Any]
) -> tuple[list[Any], Any]:
    """Return slopes, and what the sum of convex functions is at most above <slopes, .> (CHORD)."""
    ranges = list(zip(functions, lo, hi, strict=True))
    slopes = [_chord_slope(f, low, high) for f, low, high in ranges]
    pairs = zip(ranges, slopes, strict=True)
    return slopes, total(above_chord(f, low, high, slope) for (f, low, high), slope in pairs)


def relative(log_t: Any) -> Callable[[Any], Any]:
    """Return r -> r log(r / t), which is convex."""
    return lambda r: xlogx(r) - r * log_t


def divergence(row: Sequence[Any], log_t: Sequence[Any]) -> Any:
    """Return D(R || t) = sum_y R_y log(R_y / t_y); entries that are exactly 0 need no t_y."""
    pairs = zip(row, log_t, strict=True)
    return total(xlogx(p) - p * g for p, g in pairs if not is_zero(p))


def contraction(rows: Sequence[Sequence[arb]]) -> arb:
    """Return eta of CONTRACT (a)."""
    roots = arb_mat([[_root(x) for x in row] for row in rows])
    eta = 1 - least((roots * roots.transpose()).entries()) ** 2
    return eta.min(arb(1)).max(arb(0))


def _root(x: arb) -> arb:
    """Return the square root of a number >= 0, whose ball may touch 0."""
    return x.sqrt() if x >= 0 else arb(0).union(x.upper().sqrt())


def contracts(
    rows: Sequence[Sequence[Any]], lo: Sequence[Any], hi: Sequence[Any], w: Sequence[Any], eta: Any
) -> Any:
    """Return 0 where CONTRACT (b) is proved, as `certainly` does.

    Adding 100 sqrt(H) sqrt(H)^T changes nothing on sum_g sqrt(H_g) z_g = 0. Elimination then shows
    that the matrix is positive definite everywhere.
    """
    size = range(len(rows))
    high = [b.max(x) for b, x in zip(hi, w, strict=True)]
    below = [
        (-support(lo, hi, [-row[y] for row in rows])).min(dot(w, [row[y] for row in rows]))
        for y in range(len(rows[0]))
    ]
    doubt = total(certainly(q, positive=True) for q in below)
    scaled = [
        [sqrt(h / q) * r for r, q in zip(row, below, strict=True)]
        for row, h in zip(rows, high, strict=True)
    ]
    matrix = [
        [sqrt(high[i] * high[j]) * 100 - dot(scaled[i], scaled[j]) for j in size] for i in size
    ]
    for i in size:
        matrix[i][i] = matrix[i][i] + eta
    for i in size:
        doubt = doubt + certainly(matrix[i][i], positive=True)
        for j in range(i + 1, len(matrix)):
            factor = matrix[j][i] / matrix[i][i]
            matrix[j] = [x - factor * y for x, y in zip(matrix[j], matrix[i], strict=True)]
    return doubt
