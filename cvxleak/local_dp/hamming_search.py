"""Hamming distortion: where to look for the least epsilon and its proof.

By the linear program of `hamming`, which is far smaller than that for any distortion. Where a
constant output just meets the budget, or all but meets it, `general_search` goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cvxleak.core.errors import SolverError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array
from cvxleak.local_dp import hamming
from cvxleak.local_dp.general_search import NUDGES, dearest_law
from cvxleak.local_dp.linear import Mixture
from cvxleak.local_dp.proof_candidates import STEPS, Attempt, summing_to
from cvxleak.solvers.linear import LinearSolver
from cvxleak.sources import SourceSet

__all__ = ["hamming_attempts"]


def hamming_attempts(
    sources: SourceSet, budget: float, solver: LinearSolver | None = None
) -> Iterator[Attempt]:
    """Yield what the program finds for a budget > 0; nothing if a constant output may meet it."""
    size = sources.size
    try:
        found = hamming.distortions_for_budget(sources, budget, solver)
    except SolverError:  # at a border
        return
    if found is None:
        return
    distortions, mixture, slope = found
    if not distortions.min() > 0:
        return
    with np.errstate(over="ignore"):
        ratio = 1 + max(size - 1 - distortions.sum(), 0.0) / distortions.min()

    def channels() -> Iterator[Array]:
        for step in STEPS[3:]:  # the first ones are lost in the rounding of rows
            less = np.where(distortions < 1 - 1e-12, distortions * (1 - step), 1.0)
            yield hamming.channel_of_distortions(less)

    price = float(slope / ratio) if ratio < np.inf else -1 / budget
    yield Attempt(channels(), _proofs(sources, budget, mixture), mixture, price)


def _proofs(sources: SourceSet, budget: float, worst: Mixture) -> Iterator[dict[str, Any]]:
    """Yield the potentials of the worst mixture, and of mixtures next to it.

    The column of an output that just meets the budget under the mixture proves nothing; under a
    mixture next to it on which the output costs more it does.
    """
    rest = 1 - fraction(budget)
    exact = worst.exact(sources)
    near = [worst]
    for y in np.flatnonzero([abs(float(rest - p)) < 1e-10 for p in exact]):
        dearest = dearest_law(sources, 1.0 - np.eye(sources.size)[y])
        near += [worst.towards(dearest, step) for step in NUDGES[1:]]
    for mixture in near:
        room = np.array([float(max(rest - p, 0)) for p in mixture.exact(sources)])
        # A potential of zero claims nothing of its column: right where there is no room.
        for known in (np.where(room < 1e-14, 0.0, room), room):
            v = hamming.potentials_for_budget(mixture.law, known, budget)
            yield {"mixture": mixture.to_dict(), "potentials": summing_to(v, budget)}
