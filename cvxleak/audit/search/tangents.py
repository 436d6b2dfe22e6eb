"""Time sharing at a multiplier for which tangents are enough: one concave maximum, and no tree.

Let eta be the largest contraction of a value's rows (`cvxleak.proofs.bounds.tangents`). For
lam >= eta each phi_a of the time-sharing bound is the maximum of a concave function, which its
tangent at the maximizer proves, and the least bound with this lam is

    U(lam) = max_w I(w) + lam (F(w) - b).

If the floor's own multiplier is at least eta, U is the leakage. Otherwise lam = eta is the best
choice. U is convex and smooth in lam, so it exceeds the leakage by an amount of the order of the
square of the difference. With outputs in the hundreds, where no tree gets anywhere, that is often
all there is.
"""

from __future__ import annotations

import numpy as np

from cvxleak.audit.search.sharing import SharingSearch
from cvxleak.audit.search.value_tree import contracts_by
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.iterative.joint_update import Relaxed, ascend
from cvxleak.model import Lumped

__all__ = ["by_tangents", "largest_contraction"]

GAIN = 1e-12
"""Nats per cycle below which the search for the maximizer ends."""


def largest_contraction(lumped: Lumped) -> float:
    """Return the largest contraction of the rows of a value."""
    rows = lumped.rows / lumped.rows.sum(axis=1, keepdims=True)
    return max(contracts_by(part) for part in np.split(rows, lumped.starts[1:]))


def by_tangents(
    lumped: Lumped, entropy_floor: float, weights: Array, lam: float, steps: int, stop: Stop
) -> SharingSearch:
    """Return the time-sharing bound at lam, looking for the maximizer from `weights`."""
    updater = Relaxed(lumped, lam)
    # Nowhere zero: what has no mass stays without.
    start = 0.9 * weights + 0.1 * lumped.uniform()
    one = np.ones(1)
    current = updater.update(updater.joint(start[None]), one, one)
    ascend(updater, current, None, max_updates=steps, least_gain=GAIN, stop=stop)
    return SharingSearch(lumped, entropy_floor, current.weights[0], lam)
