"""The bound by the whole dataset: I(A;Y) is at most I(X;Y), and at most H(A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, rel_entr, softmax

from cvxleak.audit.search.cell_dual import never
from cvxleak.audit.search.means import entropy_surplus, log_mean_exp, log_mean_exp_by_value
from cvxleak.audit.search.slab_dual import SlabDual
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.model import Limits, Lumped

__all__ = [
    "WholeDataset",
    "bound_by_dataset",
    "bound_by_output_law",
    "by_newton",
    "knows_most",
]

NEWTON_LIMIT = 300
"""Most outputs for which Newton's method finds t; past it, the guess at the maximizer gives it."""

GROUP_LIMIT = 4000
"""The same for groups of contexts."""

DATASET_WORK = 3 * 10**7
"""About how many numbers the search for the dataset's capacity may touch."""

BLOCK = 1 << 20
"""About how many probabilities are looked at together."""


@dataclass(frozen=True)
class WholeDataset:
    """Multipliers (lam, q, t, kappa) and the bound that they prove, for every adversary.

    For a distribution t on the outputs, D_{a,g} = D(R_{a,g} || t), lam >= 0 and q in [0, 1],

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
    root of the slabs' tree). Past it t is the output distribution under `weights`, and lam fits
    that.
    """
    limits = Limits.none(lumped) if limits is None else limits
    if by_newton(lumped):
        dual = SlabDual(lumped, entropy_floor, np.zeros(len(lumped.rows)), limits)
        found = dual.solve(dual.whole(), dual.start(weights), -np.inf, accuracy=accuracy, stop=stop)
        t = np.exp(found.tau / found.q)
        return bound_by_output_law(
            lumped, entropy_floor, limits, found.lam, found.q, t, found.kappa
        )
    t = np.maximum(weights @ lumped.rows, 1e-30)
    t = np.maximum(t / t.sum(), 1e-200)
    kappa = np.zeros(len(limits.bounds))

    divergences = _divergences(lumped, t)

    def with_multiplier(lam: float) -> WholeDataset:
        return _bounded(lumped, entropy_floor, limits, lam, 1.0, t, kappa, divergences)

    fitted: Any = minimize_scalar(
        lambda log_lam: with_multiplier(float(np.exp(log_lam))).upper,
        bounds=(-16.0, 16.0),
        method="bounded",
        options={"xatol": 1e-3},
    )
    candidates = [with_multiplier(lam) for lam in (0.0, float(np.exp(fitted.x)))]
    return min(candidates, key=lambda found: found.upper)


def knows_most(
    lumped: Lumped, entropy_floor: float, weights: Array, stop: Callable[[], bool]
) -> Array:
    """Return an adversary for whom I(X;Y) is large, from one with weights on all groups.

    Blahut–Arimoto steps for I(X;Y) + lam F: w' is proportional to
    (w m^lam e^D)^(1 / (1 + lam)), with lam such that F(w') is the floor, or 0.
    """
    log_m = lumped.log_multiplicity
    w = np.maximum(weights, 1e-300)
    before = -np.inf
    for _ in range(int(np.clip(DATASET_WORK // lumped.rows.size, 1, 300))):
        if stop():
            break
        spend(20 * lumped.rows.size + 1e3 * len(w))
        d = _divergences(lumped, np.maximum(w @ lumped.rows, 1e-300))
        value = float(w @ d)
        if value <= before + 1e-7:
            break
        before = value
        low, high = 0.0, 1.0  # of lam / (1 + lam)
        for _ in range(40):
            share = (low + high) / 2
            w_new = softmax((1 - share) * (np.log(w) + d) + share * log_m)
            enough = float(entr(w_new).sum() + w_new @ log_m) >= entropy_floor
            low, high = (low, share) if enough else (share, high)
        w = np.maximum(softmax((1 - high) * (np.log(w) + d) + high * log_m), 1e-300)
    return w


def _divergences(lumped: Lumped, t: Array) -> Array:
    """Return D(R_{a,g} || t), in blocks of rows."""
    result = np.empty(len(lumped.rows))
    step = max(1, BLOCK // lumped.rows.shape[1])
    for start in range(0, len(result), step):
        result[start : start + step] = rel_entr(lumped.rows[start : start + step], t).sum(axis=1)
    return result


def bound_by_output_law(
    lumped: Lumped,
    entropy_floor: float,
    limits: Limits,
    lam: float,
    q: float,
    t: Array,
    kappa: Array,
) -> WholeDataset:
    """Return what multipliers and a distribution t on the outputs prove."""
    t = np.maximum(t / t.sum(), 1e-200)
    divergences = _divergences(lumped, t)
    return _bounded(lumped, entropy_floor, limits, lam, q, t, kappa, divergences)


def _bounded(
    lumped: Lumped,
    entropy_floor: float,
    limits: Limits,
    lam: float,
    q: float,
    t: Array,
    kappa: Array,
    divergences: Array,
) -> WholeDataset:
    log_values = lumped.log_shares[1]
    c = q * divergences - kappa @ limits.coefficients
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
