"""The least e^epsilon for a budget: every linear program gives both bounds and a slope.

At a trial ratio f the program's u attains the budget at some ratio of its own (an upper bound), and
its mixture and potentials, moved to the budget's sum, prove a lower bound. Both differ from the
optimum by a second-order term, so this converges as Newton's method does. It is Dinkelbach's method
for the largest of several ratios (Crouzeix, Ferland and Schaible, J. Optim. Theory Appl. 47, 1985),
with the duals of its programs used as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.local_dp.general import Optimum, RowProgram
from cvxleak.local_dp.linear import Mixture

__all__ = ["Bracket", "least_ratio_for_budget", "potentials_at"]

ITERATIONS = 60
LARGEST = 1e12
"""Ratios beyond this are not tried: the budget is then taken to be the least that there is."""

ENDLESS = 1e300
"""Ratios beyond this are for no float to compute with."""


@dataclass(frozen=True)
class Bracket:
    """Bounds on the least ratio, with what proves the lower and attains the upper one.

    Attributes
    ----------
    lower, upper : float
    mixture : Mixture
    potentials : ndarray
        Of sum at least the budget.
    least : ndarray or None
        u, or None if no feasible ratio was found.
    slope : float
        Derivative of the distortion in the ratio at the last trial.
    iterations : int
    """

    lower: float
    upper: float
    mixture: Mixture
    potentials: Array
    least: Array | None
    slope: float
    iterations: int


def least_ratio_for_budget(
    program: RowProgram,
    distortion: Array,
    budget: float,
    tol: float,
    clock: Clock,
    *,
    start: Optimum,
) -> Bracket:
    """Return bounds on the least e^epsilon, whose logarithms differ by `tol`, if time allows.

    `start` is the optimum at the ratio 1, a constant output, which does not meet the budget.
    """
    best, done = start, 1
    mixture = start.mixture
    lower, potentials = potentials_at(start, distortion, budget)
    upper, least = math.inf, None
    while done < ITERATIONS and lower < math.inf and not clock.late:
        slope = best.slope
        newton = best.ratio + (best.value - budget) / -slope if slope < 0 else math.inf
        trial = _next(best.ratio, newton, lower, upper)
        try:
            best, done = program.at(trial), done + 1
        except SolverError:
            if not clock.late:
                raise
            break
        proved, moved = potentials_at(best, distortion, budget)
        if proved > lower:
            lower, mixture, potentials = proved, best.mixture, moved
        attained = program.least_ratio(best.least, budget, lower)
        if best.value <= budget * (1 + 1e-13) and (attained is None or attained > trial):
            attained = trial  # the budget is met with nothing to spare
        if attained is not None and attained < upper:
            upper, least = attained, best.least
        if upper == math.inf and trial == LARGEST:
            break
        if upper <= lower or (upper < math.inf and math.log(upper / lower) <= tol):
            break
    return Bracket(lower, upper, mixture, potentials, least, best.slope, done)


def potentials_at(best: Optimum, distortion: Array, budget: float) -> tuple[float, Array]:
    """Return the ratio that the multipliers prove at the budget, and their potentials."""
    law = best.mixture.law
    # Those of zero sources keep what they have: only their sum with the others counts.
    moved = best.potentials + (budget - best.potentials.sum()) * law
    gap = law[:, None] * distortion - moved[:, None]
    above, below = np.maximum(gap, 0.0).sum(axis=0), np.maximum(-gap, 0.0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(below > 0, above / below, np.where(above > 0, np.inf, 1.0))
    return max(float(ratios.min()), 1.0), moved


def _next(trial: float, newton: float, lower: float, upper: float) -> float:
    if upper == math.inf:
        # Not feasible yet: at least as far as proved and as the slope says, and twice the epsilon.
        return min(max(lower, newton if newton < math.inf else 0.0, trial**2, 1.5), LARGEST)
    if lower < newton < upper and newton != trial:
        return newton
    return math.sqrt(lower * upper)
