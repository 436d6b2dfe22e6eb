"""Time sharing at a multiplier for which tangents are enough: one concave maximum, and no tree.

Let eta be the largest contraction of a value's rows (`cvxleak.kernel.lemmas`). For
lam >= eta each phi_a of the time-sharing bound is the maximum of a concave function, which its
tangent at the maximizer proves, and the least bound with this lam is

    U(lam) = max_w I(w) + lam (F(w) - b).

If the floor's own multiplier is at least eta, U is the leakage. Otherwise lam = eta is the best
choice. U is convex and smooth in lam, so it exceeds the leakage by an amount of the order of the
square of the difference. With outputs in the hundreds, where no tree gets anywhere, that is often
all there is.

If that is too far off, `by_blocks` goes below eta, as far as the difference needs, with trees over
the masses of a few blocks of contexts.
"""

from __future__ import annotations

import numpy as np

from cvxleak.audit.search.law_blocks import LawBlocks
from cvxleak.audit.search.sharing import SharingSearch
from cvxleak.audit.search.value_tree import contracts_by
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.iterative.joint_update import Relaxed, ascend
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.model import Lumped

__all__ = ["by_blocks", "by_tangents", "largest_contraction"]

GAIN = 1e-12
"""Nats per cycle below which the search for the maximizer ends."""

SHARE = 0.6
"""Share of what the gap may be that U(lam) takes from the trees over masses of blocks. Measured on
two cells and the total of n people in three categories, rounded to base 3, at a tolerance of 1 %:
n = 5 at 95 % of log|X| takes 1664 nodes (1694 at 0.3), n = 8 at 97 % 372 (474 at 0.3); at 0.8
neither gets there."""

TRIES = 4
"""Most multipliers that are tried for that."""


def largest_contraction(lumped: Lumped) -> float:
    """Return the largest contraction of the rows of a value."""
    rows = lumped.rows / lumped.rows.sum(axis=1, keepdims=True)
    return max(contracts_by(part) for part in np.split(rows, lumped.starts[1:]))


def by_tangents(
    lumped: Lumped, entropy_floor: float, weights: Array, lam: float, steps: int, stop: Stop
) -> SharingSearch:
    """Return the time-sharing bound at lam, looking for the maximizer from `weights`."""
    return SharingSearch(lumped, entropy_floor, _maximizer(lumped, weights, lam, steps, stop), lam)


def by_blocks(
    lumped: Lumped,
    entropy_floor: float,
    weights: Array,
    price: float,
    above: float,
    gap: float,
    steps: int,
    stop: Stop,
) -> SharingSearch:
    """Return a time-sharing bound by masses of blocks, for a multiplier between the price and 1.

    The bound by tangents, at 1, is off by `above`, and may be off by `gap`.
    """
    lower = _bound(lumped, entropy_floor, weights, price)
    lam, found = 1.0, weights
    # U - L goes with the square of lam - price near the price, and with less further off.
    for _ in range(TRIES):
        lam = price + (lam - price) * float(np.sqrt(min(SHARE * gap / above, 1.0)))
        found = _maximizer(lumped, found, lam, steps, stop)
        above = _bound(lumped, entropy_floor, found, lam) - lower
        if above <= SHARE * gap or stop():
            break
    return SharingSearch(lumped, entropy_floor, found, lam, trees=LawBlocks)


def _bound(lumped: Lumped, floor: float, weights: Array, lam: float) -> float:
    """Return I(w) + lam (F(w) - b)."""
    known, doubt = lumped_information(weights, lumped), lumped_entropy(weights, lumped)
    return float(known + lam * (doubt - floor))


def _maximizer(lumped: Lumped, weights: Array, lam: float, steps: int, stop: Stop) -> Array:
    """Return the adversary of U(lam), looking from `weights`."""
    updater = Relaxed(lumped, lam)
    # Nowhere zero: what has no mass stays without.
    start = 0.9 * weights + 0.1 * lumped.uniform()
    one = np.ones(1)
    current = updater.update(updater.joint(start[None]), one, one)
    ascend(updater, current, None, max_updates=steps, least_gain=GAIN, stop=stop)
    return current.weights[0]
