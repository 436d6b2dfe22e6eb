r"""What several rules use: DUAL in its smallest case, CHORD in one dimension, CONTRACT.

DUAL. For every number tau, max {<q, x> : q a distribution, l <= q <= h} is at most
tau + sum_i (x_i - tau) l_i + sum_i max(x_i - tau, 0) (h_i - l_i), because <q, x> = tau + sum_i q_i
(x_i - tau) and l_i <= q_i <= h_i.

CHORD. A convex function f is on [l, h] at most n r + max(f(l) - n l, f(h) - n h), for every n.

CONTRACT. Let R be the rows of the groups of one value, and w > 0 a distribution on these. For all
distributions v, D(vR || wR) <= eta D(v || w) with eta = 1 - min_{g,h} (sum_y sqrt(R_gy R_hy))^2.

Proof. Both sides and their first derivatives vanish at v = w. Along v_s = w + s (v - w), 0 <= s <
1, which is positive, with d = v - w and so sum d = 0, the second derivatives are sum_y (dR)_y^2 /
(v_s R)_y and sum_g d_g^2 / v_sg. It is enough to compare these; write v for v_s. x_g = d_g / v_g
has mean 0 under v, so v is a mixture of distributions v^i on at most two groups each under which x
has mean 0. With d^i_g = x_g v^i_g the left side is at most its mean over the pairs (d^i, v^i),
because it is convex in (d, v), and the right side is equal to its mean. So two rows P, Q with
shares p, q and, up to a factor, d = (1, -1) suffice. There p q (P - Q)^2 = (pP + qQ)(qP + pQ) - PQ
makes the left side (1 - sum PQ / (pP + qQ)) times the right one, and sum PQ / (pP + qQ) >= (sum
sqrt(PQ))^2 by Cauchy and Schwarz.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat

from cvxleak.kernel.budget import charge
from cvxleak.kernel.many import Balls
from cvxleak.kernel.numbers import least, total, xlogx

__all__ = ["MOST_PAIRS", "chords", "contraction", "divergence", "filling", "support"]

MOST_PAIRS = 1 << 20
"""Most pairs of rows that are compared, by searches, too."""

NARROW = 1e-20
"""Ranges up to this width have no slope that is worth computing."""


def support(lo: Any, hi: Any, x: Any) -> Any:
    """Return a bound above <q, x>, for all distributions q between `lo` and `hi` (DUAL).

    The first axis of the arrays has the coordinates.
    """
    place, _ = filling(lo.m, hi.m, x.m)
    tau = np.take_along_axis(x.m, place, 0)[0]
    away = x - tau
    return away.inner(lo, 0) + away.max(0.0).inner(hi - lo, 0) + tau


def filling(lo: Any, hi: Any, x: Any) -> tuple[Any, Any]:
    """Return where filling the largest x first stops, and what it then lacks (untrusted)."""
    order, room = np.argsort(-x, axis=0), np.broadcast_to(hi - lo, x.shape)
    left = 1 - lo.sum(0) - np.cumsum(np.take_along_axis(room, order, 0), axis=0)
    at = np.minimum((left > 0).sum(0), len(x) - 1)[None]
    return np.take_along_axis(order, at, 0), np.take_along_axis(left, at, 0)


def chords(lo: Any, hi: Any, log_t: Any) -> tuple[Any, Any]:
    """Return slopes n, and what sum_y r_y log(r_y / t_y) is at most above <n, r> (CHORD).

    Here lo <= r <= hi. Any slopes are valid; about those of the chords are taken.
    """
    low, high = (x.xlogx() - x * log_t for x in (lo, hi))
    wide = hi.m - lo.m
    rise = (high.m - low.m) / np.maximum(wide, NARROW)
    slopes = Balls.of(np.where((wide > NARROW) & np.isfinite(rise), rise, 0.0))
    return slopes, (low - lo * slopes).max(high - hi * slopes).inner(1.0)


def divergence(row: Sequence[Any], log_t: Sequence[Any]) -> Any:
    """Return D(R || t) = sum_y R_y log(R_y / t_y); entries that are exactly 0 need no t_y."""
    pairs = zip(row, log_t, strict=True)
    return total(xlogx(p) - p * g for p, g in pairs if not p.is_zero())


def contraction(rows: Sequence[Sequence[arb]]) -> arb:
    """Return eta of CONTRACT, or 1, which it is at most, of very many pairs of rows."""
    if len(rows) ** 2 > MOST_PAIRS:
        return arb(1)
    charge("float operations", len(rows) ** 2 * len(rows[0]))
    roots = arb_mat([[_root(x) for x in row] for row in rows])
    eta = 1 - least((roots * roots.transpose()).entries()) ** 2
    return eta.min(arb(1)).max(arb(0))


def _root(x: arb) -> arb:
    """Return the square root of a number >= 0, whose ball may touch 0."""
    return x.sqrt() if x >= 0 else arb(0).union(x.upper().sqrt())
