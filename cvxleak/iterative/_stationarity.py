"""How far a prior is from block-wise stationary (LEAKAGE Definition 3.1)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import entr, softmax

from cvxleak.core.validation import Array
from cvxleak.iterative._record import RecordView

__all__ = ["best_conditional", "block_gaps"]


def block_gaps(view: RecordView, b: float) -> tuple[float, float]:
    """Return the first-order gains that the marginal alone and the conditionals alone still offer.

    Each is the maximum of the linearized I(X_i;Y) over its block under H(X) >= b, less I. Both are
    0 exactly at points that are first-order stationary in each block. The marginal's is an upper
    bound of what can be gained there (I is concave in it), the conditionals' a lower one (convex).
    """
    scores = view.scores
    floor = min(b, view.entropy)
    means = (view.conditional * scores).sum(axis=1)
    value = float(view.marginal @ means)
    marginal = float(means @ linear_maximum(np.ones(1), means[None], view.row_entropies, floor)[0])
    conditional = float(view.marginal @ (best_conditional(view, b) * scores).sum(axis=1))
    return max(marginal - value, 0.0), max(conditional - value, 0.0)


def best_conditional(view: RecordView, b: float) -> Array:
    """Return the conditionals under the floor that maximize the linearized I(X_i;Y)."""
    rest = min(b, view.entropy) - float(entr(view.marginal).sum())
    return linear_maximum(view.marginal, view.scores, np.zeros_like(view.scores), rest)


def linear_maximum(masses: Array, scores: Array, log_m: Array, floor: float) -> Array:
    """Maximize sum_a mass_a <v_a, d_a> with sum_a mass_a (H(v_a) + <v_a, log m_a>) >= floor.

    The maximizer is v_a proportional to m_a exp(d_a / lam), with lam the root of the constraint;
    or, if that meets the floor, m_a on the largest d_a. A floor that only rounding puts out of
    reach gives v_a proportional to m_a.
    """

    def at(log_lam: float) -> Array:
        return softmax(scores / np.exp(log_lam) + log_m, axis=1)

    def excess(log_lam: float) -> float:
        return reached(at(log_lam)) - floor

    def reached(v: Array) -> float:
        return float(masses @ (entr(v) + v * log_m).sum(axis=1))

    tied = scores == scores.max(axis=1, keepdims=True)
    best = softmax(np.where(tied, log_m, -np.inf), axis=1)
    if reached(best) < floor:
        low, high = -80.0, 45.0
        if excess(high) <= 0:
            best = at(high)
        elif excess(low) < 0:
            best = at(root_scalar(excess, bracket=(low, high), method="brentq").root)
    return best
