"""The bound that multipliers (lam, q, t, kappa) give by I(A;Y) <= (1 - q) H(A) + q I(X;Y).

For any distribution t on the outputs I(X;Y) <= <w, D> with D_{a,g} = D(R_{a,g} || t). Adding
lam (F(w) - b) >= 0 and kappa_j (d_j + t_j F(w) - <C_j, w>) >= 0 and maximizing over w gives the
number that is computed here (`cvxleak.audit.search.whole_dataset`). The divergences are computed in
floating point with a proved error bound, since there may be millions of logarithms in them; the
rest is in balls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.core.validation import Array
from cvxleak.exact import balls, reading
from cvxleak.exact.outward import SMALLEST, UNIT_ROUNDOFF, logarithm, x_log_x_sums
from cvxleak.exact.packing import unpack
from cvxleak.model import Limits, Lumped

__all__ = ["dataset_bound"]


def dataset_bound(
    lumped: Lumped, floor: float, proof: Mapping[str, Any], limits: Limits | None = None
) -> float:
    """Return a float above the leakage of a lumped problem under an entropy floor."""
    limits = Limits.none(lumped) if limits is None else limits
    reading.parts(proof, {"multipliers", "output"}, "the bound by the dataset")
    multipliers = unpack(proof["multipliers"], (2 + len(limits.bounds),))
    if not np.isfinite(multipliers).all():
        raise CertificateError("the multipliers do not fit the lumped problem")
    lam, q, kappa = arb(float(multipliers[0])), arb(float(multipliers[1])), multipliers[2:]
    if not (lam >= 0 and 0 <= q <= 1) or (kappa < 0).any():
        raise CertificateError("the multipliers have lam or kappa < 0, or q outside [0, 1]")
    divergences = _divergences(lumped.rows, unpack(proof["output"], (lumped.rows.shape[1],)))
    doubt = lam
    for price, share in zip(kappa, limits.shares, strict=True):
        doubt += arb(float(price)) * arb(float(share))
    c = [[] for _ in lumped.values]
    logs = [[] for _ in lumped.values]
    for g, (a, multiplicity) in enumerate(
        zip(lumped.value_index.tolist(), lumped.multiplicities, strict=True)
    ):
        term = q * arb(float(divergences[g]))
        for price, coefficient in zip(kappa, limits.coefficients[:, g], strict=True):
            term -= arb(float(price)) * arb(float(coefficient))
        c[a].append(term)
        logs[a].append(arb(fmpz(multiplicity)).log() if doubt > 0 else arb(0))
    scale = 1 - q + doubt
    phi = [balls.soft_maximum(x, doubt, m) for x, m in zip(c, logs, strict=True)]
    total = balls.soft_maximum(phi, scale) - lam * balls.number(floor)
    for price, bound in zip(kappa, limits.bounds, strict=True):
        total += arb(float(price)) * arb(float(bound))
    return balls.round_up(total)


def _divergences(rows: Array, t: Array) -> Array:
    """Return floats above D(row || t) for every row, for rows and t as written.

    The error bound is that of `cvxleak.capacities.enclosure`, for the same sums. It needs sums
    within 1e-8 of 1, which is known for the rows and checked for t.
    """
    if not np.isfinite(t).all() or (t < 0).any():
        raise CertificateError("the output distribution does not fit the lumped problem")
    t = t.astype(float)
    total = float(t.sum())
    if not abs(total - 1) <= 1e-9:
        raise CertificateError(f"the output distribution sums to {total!r}")
    used = (rows > 0).any(axis=0)
    if (t[used] < SMALLEST).any():
        raise CertificateError(
            "the output distribution gives probability 0 to an output that can occur"
        )
    log_t = logarithm(np.where(used, t, 1.0))
    sums = rows.sum(axis=1)
    negentropy, size = x_log_x_sums(rows)
    cross = rows @ np.column_stack([log_t, np.abs(log_t)])
    divergence = (negentropy - cross[:, 0]) / sums - logarithm(sums)
    divergence += logarithm(np.array([total]))
    error = 2.25 * UNIT_ROUNDOFF * (rows.shape[1] + 16) * (size + cross[:, 1] + 2)
    return np.nextafter(divergence + error, np.inf)
