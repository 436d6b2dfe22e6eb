"""Any distortion, just above the least one: epsilon grows without end, but keeps its shape.

Let m(x) = min_y d(x, y), and let a source P have room D - P . m. Where e^epsilon = f is large and
u = v / f are the least entries of the columns, rows that put the rest of their mass on their
cheapest outputs, sum over those of v_y >= 1, cost P . m + sum_y v_y P . (d(., y) - m) / f. So

    minimize f  subject to  sum_y v_y P . (d(., y) - m) <= f (D - P . m) for every source P,
    sum over y with d(x, y) = m(x) of v_y >= 1 for every x

has channels for its f, and is short of the least ratio by a share of about 1 / f. Its multipliers,
w_x of the inputs and those of the sources, give the potentials p_x m(x) + w_x. It is solved in
rationals, because rooms are of very different sizes; and for laws only, whose room is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from cvxleak._clock import Clock
from cvxleak._numbers import fraction
from cvxleak._validation import Array
from cvxleak.certificates.rationals import float_above
from cvxleak.model import SourceSet
from cvxleak.problems.local_dp.attempts import STEPS, Attempt, unit_law
from cvxleak.problems.local_dp.exact import LARGEST, maximize
from cvxleak.problems.local_dp.general import RowProgram
from cvxleak.problems.local_dp.linear import Mixture

__all__ = ["near_least_attempt"]

SMALLEST = 1e-280
"""Rooms below this share of the costs leave no float for e^epsilon."""


def near_least_attempt(
    program: RowProgram, sources: SourceSet, distortion: Array, budget: float, clock: Clock
) -> Attempt:
    """Return the optimum for f towards infinity, with the potentials that prove it."""
    if sources.polytopes:
        return Attempt(programs=0)
    least = distortion.min(axis=1)
    laws = [unit_law(sources, i).exact(sources) for i in range(len(sources.points))]
    room = [fraction(budget) - _dot(law, least) for law in laws]
    tight = [i for i, r in enumerate(room) if r <= 0]
    if tight:
        # The budget is the least distortion itself: no finite ratio, or another method's.
        weights = np.zeros(len(laws))
        weights[tight] = 1.0
        mixture = _mixture(sources, weights)
        v = [p * fraction(d) for p, d in zip(mixture.exact(sources), least.tolist(), strict=True)]
        return Attempt((), [_proof(mixture, v)], mixture, -np.inf, 0)
    extra = distortion - least[:, None]
    dearest = fraction(float(extra.max()))
    if min(room) < fraction(SMALLEST) * max(fraction(budget), dearest):
        return Attempt(programs=0)
    k, m = distortion.shape
    if (k + len(laws)) * (m + 1) > LARGEST:
        return Attempt(programs=0)
    # The dual: maximize sum w over w and weights mu >= 0 of the sources, with sum mu room <= 1 and
    # the w of the inputs for which an output is cheapest at most what it costs under mu.
    rows = [
        [*(fmpq(int(e == 0)) for e in column), *(-_rational(_dot(law, column)) for law in laws)]
        for column in extra.T
    ]
    rows.append([fmpq(0)] * k + [_rational(r) for r in room])
    sides = [fmpq(0)] * m + [fmpq(1)]
    cost = [fmpq(1)] * k + [fmpq(0)] * len(laws)
    found = maximize(cost, rows, sides, clock)
    if found is None or found[0] <= 0:
        return Attempt()
    ratio, best, prices = found
    goal = float_above(ratio)
    v = np.array([float_above(price) for price in prices[:m]])

    def channels() -> Iterator[Array]:
        for step in (*STEPS[1:], 1e-4, 1e-2):
            # Smaller least entries, and a ratio that still fills the cheapest outputs alone.
            yield program.channel(v / (goal * (1 + step)), goal * (1 + 2 * step))

    spent = sum(best[k:], fmpq(0))
    shares = [_fraction(mu / spent) for mu in best[k:]]
    mixed = [
        sum((w * law[x] for w, law in zip(shares, laws, strict=True)), Fraction(0))
        for x in range(k)
    ]
    potentials = [
        p * fraction(d) + _fraction(w / spent / ratio)
        for p, d, w in zip(mixed, least.tolist(), best[:k], strict=True)
    ]
    weights = [str(share) for share in shares]
    proof = {
        "mixture": {"weights": weights, "members": []},
        "potentials": [str(v) for v in potentials],
    }
    mixture = Mixture(np.array([float(p) for p in mixed]), np.array([float(w) for w in shares]))
    return Attempt(channels(), [proof], mixture, -float_above(spent))


def _rational(number: Fraction) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def _fraction(number: fmpq) -> Fraction:
    return Fraction(int(number.p), int(number.q))


def _mixture(sources: SourceSet, weights: Array) -> Mixture:
    weights = weights / weights.sum()
    return Mixture(weights @ sources.points, weights)


def _proof(mixture: Mixture, potentials: list[Fraction]) -> dict[str, Any]:
    return {"mixture": mixture.to_dict(), "potentials": [str(v) for v in potentials]}


def _dot(law: list[Fraction], costs: Array) -> Fraction:
    return sum((p * fraction(c) for p, c in zip(law, costs.tolist(), strict=True)), Fraction(0))
