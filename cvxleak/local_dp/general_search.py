"""Any distortion, delta = 0: where to look for the least epsilon and its proof.

By Newton's steps over linear programs (`dinkelbach`). At the distortion of the best constant output
the least epsilon jumps to 0. Just below it (3 * 0.35 is less than 1.05 in floats) the optimum for a
slightly smaller budget is all but optimal; and with a mixture p under which the output y costs more
than the budget, exactly, the potentials p_x d(x, y) prove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.numbers import fraction, smallest
from cvxleak.core.validation import Array
from cvxleak.local_dp import dinkelbach
from cvxleak.local_dp.general import Optimum, RowProgram, least_distortion_rows
from cvxleak.local_dp.infinite_epsilon import tight_mixture
from cvxleak.local_dp.linear import Mixture
from cvxleak.local_dp.proof_candidates import (
    STEPS,
    Attempt,
    constant,
    flat_channels,
    summing_to,
    unit_law,
)
from cvxleak.solvers.linear import LinearSolver
from cvxleak.sources import SourceSet

__all__ = ["NUDGES", "constant_outputs", "dearest_law", "general_attempts"]

DEFICIT = (0.0, 1e-12, 1e-10)
"""Relative deficits of the budgets that are aimed at, in turn.

The optimum for the budget itself may exceed it by a rounding: next to a jump, and for any budget if
the source set has no interior (a row of a polytope that holds with equality). Of 32 random such
polytopes 25 are certified without a deficit, 30 with the first, and all with both.
"""

NUDGES = (0.0, *(2.0**-k for k in range(52, 10, -6)))
"""Steps of a mixture towards the source that an output costs most."""


def constant_outputs(
    sources: SourceSet, distortion: Array, budget: float, meets: Callable[[Array], bool]
) -> Iterator[Attempt]:
    """Yield the output that alone meets the budget, if one does: at an epsilon of 0."""
    size, outputs = distortion.shape
    costs = np.array([sources.worst(column)[0] for column in distortion.T])
    for y in np.argsort(costs, kind="stable"):
        certain = np.tile(np.eye(outputs)[y], (size, 1))
        if costs[y] <= budget * (1 + 1e-12) and meets(certain):
            yield constant([certain])
            return


def general_attempts(
    sources: SourceSet,
    distortion: Array,
    budget: float,
    tol: float,
    solver: LinearSolver,
    meets: Callable[[Array], bool],
) -> Iterator[Attempt]:
    """Yield attempts until the caller has enough; `meets` judges a channel by the exact budget."""
    size = len(distortion)
    program = RowProgram(sources, distortion, solver=solver)
    rough = least_distortion_rows(distortion)
    try:
        flat = program.at(1.0)
    except SolverError:
        if not solver.clock.late:
            raise
        yield Attempt([rough], programs=0)
        return
    rows = [c for c in flat_channels(flat.least / flat.least.sum(), size) if meets(c)]
    if rows:
        yield constant(rows, flat.mixture)
        return
    mixture = tight_mixture(sources, distortion, budget)
    if mixture is not None:
        # The budget is the least distortion itself: only an infinite epsilon may be enough.
        cheapest = [fraction(smallest(row)) for row in distortion.tolist()]
        v = [str(p * c) for p, c in zip(mixture.exact(sources), cheapest, strict=True)]
        proof = {"mixture": mixture.to_dict(), "potentials": v}
        yield Attempt([rough], [proof], mixture, -math.inf)
    for less in DEFICIT:
        aim = budget * (1 - less)
        yield _in_floats(program, sources, distortion, budget, aim, tol, flat, solver.clock)
    yield Attempt([rough], programs=0)


def _in_floats(
    program: RowProgram,
    sources: SourceSet,
    distortion: Array,
    budget: float,
    aim: float,
    tol: float,
    flat: Optimum,
    clock: Clock,
) -> Attempt:
    """Return where Newton's steps to the budget `aim` end; nothing if a linear program fails."""
    try:
        bracket = dinkelbach.least_ratio_for_budget(
            program, distortion, aim, tol / 4, clock, start=flat
        )
    except SolverError:
        return Attempt(programs=0)

    def channels() -> Iterator[Array]:
        if bracket.least is not None and bracket.upper < dinkelbach.ENDLESS:
            for step in STEPS[:6]:
                # A larger ratio leaves more room above the least entries, or below the largest.
                wider = 1 + step
                yield program.channel(bracket.least, bracket.upper * wider)
                yield program.channel(bracket.least / wider, bracket.upper * wider)

    def proofs() -> Iterator[dict[str, Any]]:
        v = summing_to(bracket.potentials, budget)
        yield {"mixture": bracket.mixture.to_dict(), "potentials": v}
        yield from _outputs_beyond(sources, distortion, budget, bracket.mixture)

    price = 1 / (bracket.slope * bracket.upper) if bracket.slope < 0 else -math.inf
    return Attempt(channels(), proofs(), bracket.mixture, price, bracket.iterations)


def _outputs_beyond(
    sources: SourceSet, distortion: Array, budget: float, mixture: Mixture
) -> Iterator[dict[str, Any]]:
    for column in distortion.T:
        proof = _output_beyond(sources, column, budget, mixture)
        if proof is not None:
            yield proof


def _output_beyond(
    sources: SourceSet, costs: Array, budget: float, mixture: Mixture
) -> dict[str, Any] | None:
    """Return the potentials p_x d(x, y) with p next to a mixture, if they exceed the budget."""
    exact, wanted = [fraction(c) for c in costs.tolist()], fraction(budget)
    if float(mixture.law @ costs) < budget * (1 - 1e-6):
        return None
    towards = dearest_law(sources, costs)
    for step in NUDGES:
        near = mixture.towards(towards, step) if step else mixture
        potentials = [p * c for p, c in zip(near.exact(sources), exact, strict=True)]
        if sum(potentials, Fraction(0)) > wanted:
            return {"mixture": near.to_dict(), "potentials": [str(v) for v in potentials]}
    return None


def dearest_law(sources: SourceSet, costs: Array) -> Mixture:
    """Return the distribution of the set that has the largest cost, as a mixture."""
    most, best = -math.inf, None
    if len(sources.points):
        place = int(np.argmax(sources.points @ costs))
        most, best = float(sources.points[place] @ costs), unit_law(sources, place)
    for b, body in enumerate(sources.polytopes):
        found = body.support(costs)
        if best is None or found.value > most:
            member = body.member(found.point)
            members: list[tuple[float, Any]] = [(0.0, None) for _ in sources.polytopes]
            members[b] = (1.0, member)
            law = np.array([float(p) for p in member])
            most = found.value
            best = Mixture(law, np.zeros(len(sources.points)), tuple(members))
    if best is None:
        raise SolverError("the source set has no distributions")  # it has at least one
    return best
