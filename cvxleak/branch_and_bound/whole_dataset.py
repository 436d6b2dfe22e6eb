"""The bound by the whole dataset: I(A;Y) is at most I(X;Y), and at most H(A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from cvxleak._validation import Array
from cvxleak.branch_and_bound.law_dual import LawDual
from cvxleak.branch_and_bound.means import entropy_surplus, log_mean_exp, log_mean_exp_by_value
from cvxleak.branch_and_bound.node_dual import never
from cvxleak.model import Limits, Lumped

__all__ = ["WholeDataset", "bound_by_dataset", "by_newton"]

NEWTON_LIMIT = 300
"""Most outputs for which Newton's method finds t; past it, the guess at the maximizer gives it."""

GROUP_LIMIT = 4000
"""The same for groups of contexts."""


@dataclass(frozen=True)
class WholeDataset:
    """Multipliers (lam, q, t, kappa) and the bound that they prove, for every adversary.

    For a law t on the outputs, D_{a,g} = D(R_{a,g} || t), lam >= 0 and q in [0, 1],

        I(A;Y) <= (1 - q) H(A) + q I(X;Y) <= (1 - q) H(A) + q <w, D> + lam (F(w) - b),

    whose maximum over w is

        (1 - q + lam) log sum_a exp(phi_a / (1 - q + lam)) - lam b,
        phi_a = lam log sum_g m_{a,g} exp(q D_{a,g} / lam).

    (Where a scale is 0 the sum is a maximum.) Limits <C_j, w> <= d_j + t_j F(w) take
    sum_j kappa_j C_{j,a,g} from q D_{a,g} and add <kappa, d>, and lam + <kappa, t> takes the place
    of lam (but for lam b).
    """

    lam: float
    q: float
    output: Array
    kappa: Array
    upper: float

    def with_output(self, output: Array) -> WholeDataset:
        """Return the bound with t written in another, equally informative, set of outputs."""
        return replace(self, output=output)


def by_newton(lumped: Lumped) -> bool:
    """Whether a problem is small enough for Newton's method, which squares groups and outputs."""
    groups, outputs = lumped.rows.shape
    return groups <= GROUP_LIMIT and outputs <= NEWTON_LIMIT


def bound_by_dataset(
    lumped: Lumped,
    entropy_floor: float,
    weights: Array,
    limits: Limits | None = None,
    *,
    accuracy: float = 1e-9,
    stop: Callable[[], bool] = never,
) -> WholeDataset:
    """Return a good bound of this kind; `weights` is an adversary for whom I(X;Y) is large.

    Up to `NEWTON_LIMIT` outputs it is the least one, by Newton's method on all multipliers (the
    root of the slabs' tree). Past it t is the output law under `weights`, and lam fits that.
    """
    limits = Limits.none(lumped) if limits is None else limits
    if by_newton(lumped):
        dual = LawDual(lumped, entropy_floor, np.zeros(len(lumped.rows)), limits)
        found = dual.solve(dual.whole(), dual.start(weights), -np.inf, accuracy=accuracy, stop=stop)
        t = np.exp(found.tau / found.q)
        return _evaluated(lumped, entropy_floor, limits, found.lam, found.q, t, found.kappa)
    t = np.maximum(weights @ lumped.rows, 1e-30)
    kappa = np.zeros(len(limits.bounds))

    def upper(log_lam: float) -> float:
        found = _evaluated(lumped, entropy_floor, limits, np.exp(log_lam), 1.0, t, kappa)
        return found.upper

    fitted = minimize_scalar(upper, bounds=(-16.0, 16.0), method="bounded", options={"xatol": 1e-3})
    candidates = [
        _evaluated(lumped, entropy_floor, limits, lam, 1.0, t, kappa)
        for lam in (0.0, float(np.exp(fitted.x)))
    ]
    return min(candidates, key=lambda found: found.upper)


def _evaluated(
    lumped: Lumped,
    entropy_floor: float,
    limits: Limits,
    lam: float,
    q: float,
    t: Array,
    kappa: Array,
) -> WholeDataset:
    t = np.maximum(t / t.sum(), 1e-200)
    log_values = lumped.log_shares[1]
    c = q * rel_entr(lumped.rows, t).sum(axis=1) - kappa @ limits.coefficients
    doubt = lam + float(kappa @ limits.shares)
    if doubt == 0:
        phi = np.maximum.reduceat(c, lumped.starts)
    else:
        phi = doubt * log_mean_exp_by_value(c / doubt, lumped)
    scale = 1 - q + doubt
    x = phi - (1 - q) * log_values
    smooth = x.max() if scale == 0 else scale * log_mean_exp(x / scale, log_values)
    surplus = entropy_surplus(lumped, entropy_floor) if doubt else 0.0
    sides = limits.bounds + limits.shares * entropy_floor
    upper = float(smooth + doubt * surplus + kappa @ sides)
    return WholeDataset(lam, q, t, kappa, upper)
