"""Any distortion, just above the least one: epsilon grows without end, but keeps its shape.

Let m(x) = min_y d(x, y), and let a source P have room D - P . m. Where e^epsilon = f is large and
u = v / f are the least entries of the columns, rows that put the rest of their mass on their
cheapest outputs, sum over those of v_y >= 1, cost P . m + sum_y v_y P . (d(., y) - m) / f. So

    minimize f  subject to  sum_y v_y P . (d(., y) - m) <= f (D - P . m) for every source P,
    sum over y with d(x, y) = m(x) of v_y >= 1 for every x

has channels for its f, and is short of the least ratio by a share of about 1 / f. Its multipliers,
w_x of the inputs and those of the sources, give the potentials p_x m(x) + w_x. For laws only: the
room is computed exactly, which a polytope's linear program would not allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog

from cvxleak._validation import Array
from cvxleak.model import SourceSet
from cvxleak.problems.local_dp.attempts import STEPS, Attempt, unit_law
from cvxleak.problems.local_dp.general import RowProgram
from cvxleak.problems.local_dp.linear import Mixture

__all__ = ["near_least_attempt"]

WIDEST = 1e9
"""Sources with more room than this many times the least one are left out."""

SMALLEST = 1e-280
"""Rooms below this share of the costs leave no float for e^epsilon."""


def near_least_attempt(
    program: RowProgram, sources: SourceSet, distortion: Array, budget: float
) -> Attempt:
    """Return the optimum for f towards infinity, with the potentials that prove it."""
    if sources.polytopes:
        return Attempt(programs=0)
    least = distortion.min(axis=1)
    laws = [unit_law(sources, i).exact(sources) for i in range(len(sources.points))]
    room = [Fraction(budget) - _dot(law, least) for law in laws]
    tight = [i for i, r in enumerate(room) if r <= 0]
    if tight:
        # The budget is the least distortion itself: no finite ratio, or another method's.
        weights = np.zeros(len(laws))
        weights[tight] = 1.0
        mixture = _mixture(sources, weights)
        v = [p * Fraction(d) for p, d in zip(mixture.exact(sources), least.tolist(), strict=True)]
        return Attempt((), [_proof(mixture, v)], mixture, -np.inf, 0)
    smallest = min(room)
    extra = sources.points @ (distortion - least[:, None])
    if smallest < Fraction(SMALLEST) * max(Fraction(budget), Fraction(float(extra.max()))):
        return Attempt(programs=0)
    kept = [i for i, r in enumerate(room) if r <= WIDEST * smallest]
    cheapest = distortion == least[:, None]
    k, m = distortion.shape
    # Columns v and f times the least room.
    rows = np.vstack(
        [
            np.column_stack([extra[kept], [-float(room[i] / smallest) for i in kept]]),
            np.column_stack([-cheapest.astype(float), np.zeros(k)]),
        ]
    )
    sides = np.concatenate([np.zeros(len(kept)), -np.ones(k)])
    answer = linprog(np.append(np.zeros(m), 1.0), rows, sides, method="highs")
    if answer.status != 0 or not answer.fun > 0:
        return Attempt(programs=1)
    v = np.maximum(answer.x[:m], 0.0)
    v = v / min(1.0, float((cheapest @ v).min()))
    goal = max(float(Fraction(float(extra[i] @ v)) / room[i]) for i in kept)
    multipliers = np.maximum(-answer.ineqlin.marginals, 0.0)
    weights = np.zeros(len(laws))
    weights[kept] = multipliers[: len(kept)]
    prices = [Fraction(w) for w in multipliers[len(kept) :].tolist()]
    total = sum(prices, Fraction(0))

    def channels() -> Iterator[Array]:
        for step in (*STEPS[1:], 1e-4, 1e-2):
            # Smaller least entries, and a ratio that still fills the cheapest outputs alone.
            yield program.channel(v / (goal * (1 + step)), goal * (1 + 2 * step))

    if not (weights.any() and total > 0):
        return Attempt(channels(), (), programs=1)
    mixture = _mixture(sources, weights)

    def proofs() -> Iterator[dict[str, Any]]:
        floor = [
            p * Fraction(d) for p, d in zip(mixture.exact(sources), least.tolist(), strict=True)
        ]
        share = (Fraction(budget) - sum(floor, Fraction(0))) / total
        yield _proof(mixture, [a + w * share for a, w in zip(floor, prices, strict=True)])

    return Attempt(channels(), proofs(), mixture, -1 / float(smallest))


def _mixture(sources: SourceSet, weights: Array) -> Mixture:
    weights = weights / weights.sum()
    return Mixture(weights @ sources.points, weights)


def _proof(mixture: Mixture, potentials: list[Fraction]) -> dict[str, Any]:
    return {"mixture": mixture.to_dict(), "potentials": [str(v) for v in potentials]}


def _dot(law: list[Fraction], costs: Array) -> Fraction:
    return sum((p * Fraction(c) for p, c in zip(law, costs.tolist(), strict=True)), Fraction(0))
