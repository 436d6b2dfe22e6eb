r"""The tangent's bound on phi_a (`time_sharing`), in floats with a proved allowance.

D(v R || t) + lam (H(v) + <v, log m>) lies below its tangent at a distribution v0 if relative
entropy contracts by eta <= lam: D(v R || v0 R) <= eta D(v || v0) for all distributions v. With q =
v0 R,

    D(v R || t) <= <v, R log(q / t)> + eta D(v || v0).

**eta** = 1 - min (sum_y sqrt(P_y Q_y))^2 over pairs of rows P, Q of R. Along the segment from v0 to
v, with r = v R, the contraction is an inequality of second derivatives: for all d with sum 0,

    sum_y (d R)_y^2 / r_y <= eta sum_g d_g^2 / v_g.

The ratios d_g / v_g have mean 0 under v. Such a v is a mixture of distributions on two points under
which they also have mean 0. The right side is the sum over these parts, and the left side, convex
and homogeneous in (d, v), is at most the sum. So it is enough to consider two rows P, Q, with
shares p + q = 1 and d = (1, -1). Then p q (P - Q)^2 = (p P + q Q)(q P + p Q) - P Q, so the left
side is the right side times 1 - sum_y P_y Q_y / (p P_y + q Q_y). By the Cauchy-Schwarz inequality
that sum is at least (sum_y sqrt(P_y Q_y))^2. Both facts are known: the bound for two rows is in Y.
Polyanskiy and Y. Wu, Strong data-processing inequalities for channels and Bayesian networks (2015);
that two rows are the worst case is shown by O. Ordentlich and Y. Polyanskiy, Strong data processing
constant is achieved by binary inputs.

**Rounding.** `cvxleak.exact.outward` states the assumptions; u = 2^-53, n groups, |Y| outputs.
The rows, divided by their sums, are off by (|Y| + 4) u of themselves. So q is off by
(n + |Y| + 8) u of itself, sums of sqrt(P_y Q_y) by (2 |Y| + 9) u, and log q - log t by
(n + |Y| + 18) u (2 + |log q| + |log t|), to which the inner product with a row adds (2 |Y| + 6) u
of the same sizes. The allowance exceeds the sum of these by more than its own rounding and what
underflows.
"""

from __future__ import annotations

import numpy as np

from cvxleak.core.errors import CertificateError
from cvxleak.exact.outward import SMALLEST, UNIT_ROUNDOFF, Array, logarithm

__all__ = ["PAIRS_LIMIT", "contraction", "heights"]

PAIRS_LIMIT = 10**5
"""Most pairs of rows of a value that are compared; above it eta = 1."""


def contraction(rows: Array) -> float:
    """Return a float above eta, at most 1.

    Examples
    --------
    A binary symmetric channel brings distributions together by (1 - 2 p)^2:

    >>> import numpy as np
    >>> from cvxleak.proofs.bounds.tangents import contraction
    >>> round(contraction(np.array([[0.9, 0.1], [0.1, 0.9]])), 12)
    0.64
    """
    if len(rows) ** 2 > PAIRS_LIMIT:
        return 1.0
    roots = np.sqrt(rows)
    least = float((roots @ roots.T).min())
    least *= 1 - 4 * (rows.shape[1] + 8) * UNIT_ROUNDOFF
    return min(1 - least**2 + 4 * UNIT_ROUNDOFF, 1.0)


def heights(rows: Array, t: Array, weights: Array) -> Array:
    """Return floats above R log(q / t), q = weights R, for each row.

    Neither the weights nor t has to sum to one.

    Raises
    ------
    CertificateError
        Weights or t outside (0, 1], or a q or t so small that its logarithm is not known.
    """
    if not ((weights > 0) & (weights <= 1)).all() or not (t <= 1).all():
        raise CertificateError(
            "a distribution of a value's contexts does not fit the lumped problem"
        )
    q = weights @ rows
    # An output that no row of the value has does not count.
    used = (rows > 0).any(axis=0)
    if not (np.minimum(q, t)[used] >= SMALLEST).all():
        raise CertificateError(
            "a distribution of a value's contexts has a probability that is too small"
        )
    log_q, log_t = (logarithm(np.where(used, x, 1.0)) for x in (q, t))
    sizes = 2 + np.abs(log_q) + np.abs(log_t)
    found = rows @ np.column_stack([log_q - log_t, sizes])
    n, outputs = rows.shape
    allowed = 2 * (n + 2 * outputs + 64) * UNIT_ROUNDOFF * found[:, 1]
    return found[:, 0] + allowed
