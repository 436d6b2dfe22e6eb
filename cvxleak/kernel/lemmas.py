r"""What several rules use: DUAL in its smallest case, CHORD in one dimension, CONTRACT.

DUAL. For every number tau, max {<q, x> : q a distribution, l <= q <= h} is at most
tau + sum_i (x_i - tau) l_i + sum_i max(x_i - tau, 0) (h_i - l_i), because <q, x> = tau + sum_i q_i
(x_i - tau) and l_i <= q_i <= h_i.

CHORD. A convex function f is on [l, h] at most n r + max(f(l) - n l, f(h) - n h), for every n.

CONTRACT. Let R be the rows of the groups of one value, w a distribution on them with w > 0.

(a) D(vR || wR) <= eta D(v || w) for all distributions v, with eta = 1 - min_{g,h} (sum_y
    sqrt(R_gy R_hy))^2.
(b) The same holds for all v in a box l <= v <= h, if eta I - B B^T is positive semidefinite on
    sum_g sqrt(H_g) z_g = 0, where H = max(h, w) and B_gy = sqrt(H_g / q_y) R_gy, for some q_y > 0
    that neither (vR)_y for v in the box nor (wR)_y is below.

Proof. Both sides and their first derivatives vanish at v = w. Along v_s = w + s (v - w), 0 <= s <
1, which is positive, with d = v - w and so sum d = 0, the second derivatives are sum_y (dR)_y^2 /
(v_s R)_y and sum_g d_g^2 / v_sg. It is enough to compare these; write v for v_s. (a) x_g = d_g /
v_g has mean 0 under v, so v is a mixture of distributions v^i on at most two groups each under
which x has mean 0. With d^i_g = x_g v^i_g the left side is at most its mean over the pairs (d^i,
v^i), because it is convex in (d, v), and the right side is equal to its mean. So two rows P, Q with
shares p, q and, up to a factor, d = (1, -1) suffice. There p q (P - Q)^2 = (pP + qQ)(qP + pQ) - PQ
makes the left side (1 - sum PQ / (pP + qQ)) times the right one, and sum PQ / (pP + qQ) >= (sum
sqrt(PQ))^2 by Cauchy and Schwarz. (b) With d_g = sqrt(H_g) z_g the condition says sum_y (dR)_y^2 /
q_y <= eta sum_g d_g^2 / H_g whenever sum d = 0; and q <= v_s R, H >= v_s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat

from cvxleak.kernel.many import Balls, Many, stacked
from cvxleak.kernel.numbers import Counted, is_zero, least, need, total, xlogx

__all__ = [
    "certainly",
    "chords",
    "contraction",
    "contracts",
    "divergence",
    "filling",
    "relative",
    "support",
]

NARROW = 1e-20
"""Ranges up to this width have no slope that is worth computing."""


def certainly(x: Any, *, positive: bool = False) -> Any:
    """Return 0 where a number is proved to be >= 0, or > 0.

    Elsewhere a `Many` is infinite, and other numbers are refused. The result is added to the
    conclusion that the condition belongs to.
    """
    if isinstance(x, Many):
        holds = np.isfinite(x.m) & (x.m > x.r if positive else x.m >= x.r)
        return Many(np.zeros(holds.shape), np.where(holds, 0.0, np.inf))
    fits = x > 0 if positive else x >= 0
    need(bool(np.all(fits)), "a number that is not proved to be large enough")
    return x if isinstance(x, Counted) else x * 0


# Of arrays, whose first axis has the coordinates of what is bounded.


def support(lo: Any, hi: Any, x: Any) -> Any:
    """Return a bound above <q, x>, for all distributions q between `lo` and `hi` (DUAL)."""
    tau = _threshold(lo.m, hi.m, x.m)
    away = x - tau
    return away.inner(lo, 0) + away.positive().inner(hi - lo, 0) + tau


def _threshold(lo: Any, hi: Any, x: Any) -> Any:
    """Return where filling the largest x first stops (untrusted)."""
    # Where sizes are the same for all leaves, they are sorted once.
    order, room = np.argsort(-x, axis=0), hi - lo
    axes = np.broadcast_shapes(order.shape, room.shape)
    room, order = np.broadcast_to(room, axes), np.broadcast_to(order, axes)
    filled = np.cumsum(np.take_along_axis(room, order, 0), axis=0)
    at = np.minimum((filled < 1 - lo.sum(0)).sum(0), len(x) - 1)
    place = np.take_along_axis(order, at[None], 0)
    return np.take_along_axis(np.broadcast_to(x, axes), place, 0)[0]


def filling(lo: Any, hi: Any, x: Any) -> tuple[int, float]:
    """Return where filling the largest x first stops, and how far it is filled (untrusted)."""
    order = np.argsort(-x)
    left = 1 - lo.sum() - np.cumsum((hi - lo)[order])
    at = min(int((left > 0).sum()), len(x) - 1)
    return int(order[at]), float(hi[order[at]] + min(left[at], 0.0))


def chords(f: Callable[[Any], Any], lo: Any, hi: Any, slopes: Any = None) -> tuple[Any, Any]:
    """Return slopes, and what a sum of convex f is at most above <slopes, .> (CHORD).

    Without slopes, any number is valid, and about that of the chord is taken.
    """
    low, high = f(lo), f(hi)
    if slopes is None:
        wide, rise = hi.m - lo.m, high.m - low.m
        slopes = np.where(wide > NARROW, rise / np.maximum(wide, NARROW), 0.0)
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        slopes = Many(slopes) if isinstance(lo, Many) else Balls.of(slopes)
    return slopes, (low - lo * slopes).max(high - hi * slopes).inner(1.0, 0)


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


def contracts(rows: Any, lo: Any, hi: Any, w: Any, eta: Any) -> Any:
    """Return 0 where CONTRACT (b) is proved, as `certainly` does.

    Adding 100 sqrt(H) sqrt(H)^T changes nothing on sum_g sqrt(H_g) z_g = 0. Elimination then shows
    that the matrix is positive definite everywhere.
    """
    high, size = hi.max(w), range(rows.shape[0])
    below = (-support(lo[:, None], hi[:, None], -rows)).min(w[:, None].inner(rows, 0))
    doubt = certainly(below, positive=True).inner(1.0, 0)
    scaled, roots = (high[:, None] / below).sqrt() * rows, high.sqrt()
    rest = stacked([roots * roots[i] * 100.0 - scaled[i].inner(scaled, 1) for i in size])
    for _ in size:
        # eta on the diagonal stays there when a row and a column are eliminated.
        pivot = rest[0, 0] + eta
        doubt = doubt + certainly(pivot, positive=True)
        rest = rest[1:, 1:] - rest[1:, :1] * (rest[:1, 1:] / pivot)
    return doubt
