"""The least distortion of all, where a finite epsilon may not be enough."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from cvxleak.core.numbers import fraction, smallest
from cvxleak.core.validation import Array
from cvxleak.local_dp.linear import Mixture
from cvxleak.local_dp.proof_candidates import support_mixture, unit_law
from cvxleak.proofs.local_dp import ENDLESS
from cvxleak.sources import SourceSet

__all__ = ["comparisons_to_list", "infinite_epsilon_proof", "tight_mixture"]


def infinite_epsilon_proof(
    sources: SourceSet, distortion: Array, budget: float, delta: float
) -> tuple[dict[str, Any], Mixture] | None:
    """Return the proof, with its mixture, that only an infinite epsilon is enough; None if not so.

    At the least distortion of all only outputs that are cheapest have a probability, for inputs x
    that a tight source has. Whatever epsilon is, privacy then gives the others of x no more than
    delta in any row x'. Where no channel is like that, the multipliers of its rows,
    g(x', x, y) > 0 only for y that is not among x's cheapest, say so.
    """
    mixture = tight_mixture(sources, distortion, budget)
    if mixture is None:
        return None
    k, m = distortion.shape
    law, least = mixture.law, distortion.min(axis=1)
    dear = (law[:, None] > 0) & (distortion > least[:, None])
    first, second = np.nonzero(~np.eye(k, dtype=bool))
    pairs = len(first)
    # Columns g(x', x, y), w(x', x), z(x'): maximize sum z - delta sum w.
    g, w = pairs * m, pairs
    entry = np.arange(g)
    place = np.repeat(np.arange(pairs), m)
    ones = np.ones(g)
    under = sparse.hstack(
        [
            sparse.eye_array(g),
            sparse.csr_array((-ones, (entry, place)), (g, w)),
            sparse.csr_array((g, k)),
        ]
    )
    x, y = np.nonzero(~dear)
    gains = np.zeros((len(x), pairs, m))
    gains[np.arange(len(x)), :, y] = np.equal.outer(x, first)
    above = sparse.hstack(
        [
            sparse.csr_array(-gains.reshape(len(x), g)),
            sparse.csr_array((len(x), w)),
            sparse.csr_array((np.ones(len(x)), (np.arange(len(x)), x)), (len(x), k)),
        ]
    )
    bounds = [(0.0, float(allowed)) for allowed in dear[second].ravel()]
    bounds += [(0.0, 1.0)] * w + [(None, None)] * k
    cost = np.concatenate([np.zeros(g), np.full(w, delta), -np.ones(k)])
    rows = sparse.vstack([under, above])
    answer: Any = linprog(cost, rows, np.zeros(g + len(x)), bounds=bounds, method="highs")
    if answer.status != 0 or answer.fun > -1e-9:
        return None
    multipliers = np.zeros((k, k, m))
    multipliers[first, second] = np.maximum(answer.x[:g], 0.0).reshape(pairs, m)
    # Small enough that the dear outputs stay dear.
    extra = (law[:, None] * (distortion - least[:, None]))[dear]
    shifts = (multipliers.sum(axis=0) + answer.x[g + w :, None])[dear]
    multipliers *= min(1.0, float((extra / (2 * np.maximum(shifts, 1e-300))).min()))
    proof = {
        "mixture": mixture.to_dict(),
        "comparisons": comparisons_to_list(multipliers),
        "level": ENDLESS,
    }
    return proof, mixture


def tight_mixture(sources: SourceSet, distortion: Array, budget: float) -> Mixture | None:
    """Return a mixture of the sources under which the least distortion is the budget, if any is."""
    if budget == 0:
        return support_mixture(sources)
    exact = [fraction(smallest(row)) for row in distortion.tolist()]
    wanted = fraction(budget)
    tight = []
    for i in range(len(sources.points)):
        law = unit_law(sources, i).exact(sources)
        if sum((p * c for p, c in zip(law, exact, strict=True)), Fraction(0)) == wanted:
            tight.append(i)
    if not tight:
        return None
    weights = np.zeros(len(sources.points))
    weights[tight] = 1 / len(tight)
    return Mixture(weights @ sources.points, weights, tuple((0.0, None) for _ in sources.polytopes))


def comparisons_to_list(multipliers: Array) -> list[dict[str, Any]]:
    """Return the multipliers h(x, x', y) as certificates store them."""
    k = len(multipliers)
    return [
        {"first": x, "second": other, "multipliers": multipliers[x, other].tolist()}
        for x in range(k)
        for other in range(k)
        if multipliers[x, other].any()
    ]
