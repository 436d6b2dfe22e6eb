r"""Bounds on phi_a over boxes of the masses of blocks of contexts, in floats with an allowance.

`block_bounds` bounds f(v) = D(v R || t) + lam (H(v) + <v, log m>), lam <= 1, over the distributions
v whose masses beta_B = v(B) of the blocks B of a partition of the contexts lie in a box, by the
weights w > 0 that a leaf stores. If all contexts are taken together, rows that share no output give
eta = 1 (`cvxleak.proofs.bounds.tangents`). A block consists of rows that do share outputs, and has
an eta_B of its own. With q = w R and omega_B = w(B),

    D(v R || t) = <v, R log(q / t)> + D(v R || q),
    D(v R || q) <= sum_B beta_B log(beta_B / omega_B) + sum_B beta_B eta_B D(v_B || w_B),

where v_B and w_B are the distributions within a block: relative entropy is jointly convex, and
contracts in each block by eta_B. (w need not sum to one; its sum drops out.) The entropy of v is
that of beta and those within the blocks. With left_B = max(lam - eta_B, 0) these give

    f(v) <= sum_B beta_B (c_B - log omega_B) + (1 - lam) sum_B beta_B log beta_B,
    c_B = max over v_B of <v_B, x> + left_B H(v_B),
    x_g = (R log(q / t))_g + lam log m_g - eta_B log(w_g / omega_B).

H(v_B) <= -<v_B, log(p / S)> for any p > 0 with the sum S, so c_B <= max_g (x_g - left_B log p_g) +
left_B log S. This is sharp at p_g = exp((x_g - max x) / left_B), and valid for whatever floats are
computed for it. (If eta_B > lam, the term that is left out, (lam - eta_B) H(v_B), is not positive.)
beta log beta lies below its chord between the endpoints of beta_B. What remains is linear in beta;
its maximum over the box and the simplex is that of `cvxleak.proofs.bounds.law_boxes`. Chords and
blocks lose little where 1 - lam is small, which is where floors are high.

Rounding. `cvxleak.exact.outward` states the assumptions; u = 2^-53, n contexts, |Y| outputs. q and
omega are off by (n + 2) u of themselves, logarithms by 4 u (1 + |log|) more, the rows and log m and
log t by 2 u, and the inner product with a row by |Y| u of the sizes that it adds up. Endpoints of
boxes are multiples of `law_boxes.GRID`, so their sums and differences are exact, and the lines that
take the place of chords are off by 10 u at both endpoints. So each x, and each part of c, is off by
at most (|Y| + n + 20) u times the sizes of its terms; the rest is a sum of at most n such terms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxleak.exact.outward import Array, logarithm
from cvxleak.proofs.bounds.law_boxes import (
    LEAST_WEIGHT,
    allowed,
    in_chunks,
    linear_maximum,
    x_log_x_chords,
)
from cvxleak.proofs.bounds.tangents import contraction

__all__ = ["block_bounds"]

LOG_LEAST = 70.0
"""More than -log of `law_boxes.LEAST_WEIGHT`: no log p is larger in size."""


def block_bounds(
    rows: Array,
    logs: Array,
    logs_t: Array,
    lam: float,
    blocks: Sequence[Sequence[int]],
    low: Array,
    high: Array,
    leaves: Array,
) -> Array:
    """Return floats above f on each box; -inf where no distribution is in it.

    Parameters
    ----------
    rows, logs, logs_t : arrays of shapes (n, |Y|), (n,) and (|Y|,)
        R, log m and log t, as for `law_boxes.box_bounds`.
    lam : float
        In (0, 1], off by at most 2 u of itself.
    blocks : lists of whole numbers
        A partition of the contexts.
    low, high : arrays, shape (L, number of blocks)
        Boxes, with endpoints that are multiples of `law_boxes.GRID` in [0, 1].
    leaves : array, shape (L, n)
        w in [0, 1]; entries below `law_boxes.LEAST_WEIGHT` are raised to it.
    """
    eta = [contraction(rows[block]) for block in blocks]
    bounds = np.full(len(low), -np.inf)
    for places, lo, hi in in_chunks(low, high, rows.size):
        w = np.maximum(leaves[places], LEAST_WEIGHT)
        with np.errstate(under="ignore", over="ignore"):
            q = w @ rows
            used = q > 0
            log_q = logarithm(np.where(used, q, 1.0))
            s = np.where(used, log_q - logs_t, 0.0)
            log_w = logarithm(w)
            x = s @ rows.T + lam * logs
            most, sizes = np.empty(lo.shape), np.zeros(len(lo))
            for b, block in enumerate(blocks):
                log_omega = logarithm(w[:, block].sum(axis=1))
                within = x[:, block] - eta[b] * (log_w[:, block] - log_omega[:, None])
                most[:, b] = within.max(axis=1) - log_omega
                sizes = np.maximum(sizes, np.abs(within).max(axis=1))
                left = lam - eta[b]
                if left > 0:
                    p = np.exp((within - within.max(axis=1, keepdims=True)) / left)
                    p = np.maximum(p, LEAST_WEIGHT)
                    over = (within - left * logarithm(p)).max(axis=1)
                    most[:, b] = over + left * logarithm(p.sum(axis=1)) - log_omega
            k, offset = x_log_x_chords(lo, hi)
            value, size = linear_maximum(most + (1 - lam) * k, lo, hi)
            value += (1 - lam) * offset
            sizes += size + (np.abs(log_q) + np.abs(logs_t)).max(axis=1) + np.abs(s).max(axis=1)
            many = (
                LOG_LEAST + np.abs(logs).max() + np.abs(log_w).max(axis=1) + np.abs(k).max(axis=1)
            )
            sizes += 4 * len(rows) * many
        bounds[places] = value + allowed(rows, sizes)
    return bounds
