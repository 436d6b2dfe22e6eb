"""Logarithms of means of exponentials, without the cancellation that sums would bring."""

from __future__ import annotations

import numpy as np
from flint import arb, fmpz

from cvxleak.core.validation import Array
from cvxleak.exact.balls import precision
from cvxleak.model import Lumped

__all__ = [
    "entropy_surplus",
    "first_multiplier",
    "log_mean_exp",
    "log_mean_exp_by_value",
    "tilted",
]

NEAR = 1.0
"""Exponents that differ by less than this are averaged by way of expm1."""


def entropy_surplus(lumped: Lumped, entropy_floor: float) -> float:
    """Return log|X| - b, correctly rounded even where little is left of it."""
    with precision():
        return float(arb(fmpz(lumped.size)).log() - arb(entropy_floor))


def first_multiplier(surplus: float) -> float:
    """Return a guess at the floor's multiplier lam.

    Tilted by c / lam, a distribution loses about Var(c) / (2 lam^2) of entropy; near log|X| that
    has to be all there is.
    """
    return float(np.clip(0.5 / np.sqrt(2 * max(surplus, 1e-30)), 0.1, 1e7))


def log_mean_exp(x: Array, log_weights: Array) -> Array:
    """Return log sum_i p_i e^{x_i} along the last axis, for p = exp(log_weights) with sum 1.

    Off by a few rounding errors of x and of the result; where the x_i are all small, or nearly
    equal, that is much less than the rounding error of the sum.
    """
    return tilted(x, log_weights)[0]


def tilted(x: Array, log_weights: Array) -> tuple[Array, Array]:
    """Return `log_mean_exp` and the distribution proportional to p_i e^{x_i}.

    Where p_i = 0, x_i has to lie between the smallest and the largest of the others.
    """
    logits = x + log_weights
    # The largest x may have a weight below the smallest float, so shift by the largest logit.
    peak = logits.max(axis=-1)
    law = np.exp(logits - peak[..., None])
    total = law.sum(axis=-1)
    law /= total[..., None]
    result = np.array(peak + np.log(total))
    top = x.max(axis=-1)
    near = top - x.min(axis=-1) < NEAR
    if near.any():
        weights = np.broadcast_to(np.exp(log_weights), x.shape)[near]
        shifted = x[near] - top[near][..., None]
        result[near] = top[near] + np.log1p((weights * np.expm1(shifted)).sum(axis=-1))
    return result, law


def log_mean_exp_by_value(x: Array, lumped: Lumped) -> Array:
    """Return, for each value, `log_mean_exp` of x over its groups under the uniform prior."""
    log_weights, starts, of = lumped.log_shares[0], lumped.starts, lumped.value_index
    top = np.maximum.reduceat(x, starts)
    shifted = x - top[of]
    logits = shifted + log_weights
    peak = np.maximum.reduceat(logits, starts)
    result = peak + np.log(np.add.reduceat(np.exp(logits - peak[of]), starts))
    near = np.minimum.reduceat(shifted, starts) > -NEAR
    if near.any():
        terms = np.exp(log_weights) * np.expm1(shifted)
        result[near] = np.log1p(np.add.reduceat(terms, starts)[near])
    return top + result
