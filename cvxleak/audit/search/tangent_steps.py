"""`TangentSteps`: a local search for adversaries who gain much, for any convex gain.

At an adversary w the posterior gain is above its tangent, which is linear in w and equal there:

    sum_y s_y G(rho_y) >= sum_{a,y} s_{a,y} r_{y,a},  r_y a tangent of G at s_{.,y}.

So a step to the largest of the tangent less t G(pi), which is concave, never loses. That is a node
of `cvxleak.audit.search.cell_dual` with the tangent as its price. For a gain with few
actions a tangent is a strategy, one action for each output, and the search ends after finitely many
steps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvxleak.audit.search.adversary_domain import Domain
from cvxleak.audit.search.cell_dual import CellDual
from cvxleak.audit.search.means import first_multiplier
from cvxleak.audit.search.objective import Objective
from cvxleak.audit.search.witnesses import joint_law
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.iterative import meet_entropy_floor
from cvxleak.model import Lumped
from cvxleak.model.gain_form import GainForm

__all__ = ["TangentSteps"]

STEPS = 8
"""Most steps: a tree's relaxed maximizers lead further, for a gain with a curvature."""

PROGRESS = 1e-9
"""A step that gains less, in parts of the value or of 1, is the last."""

ACCURACY = 1e-5
"""To what a step is solved."""

NEWTON = 10
"""Most Newton steps of a step: it ends after 5 or so, or not at all where the floor costs next to
nothing, and then what these lead to is as good as what 60 do."""

STEEPEST = -700.0
"""Slopes of -H at distributions that exclude a value are raised to this."""


class TangentSteps:
    """Steps to better adversaries of one lumped problem."""

    def __init__(
        self, lumped: Lumped, floor: float, told: GainForm, domain: Domain | None = None
    ) -> None:
        self._lumped, self._floor, self._told, self._domain = lumped, floor, told, domain
        # One output, which tells nothing.
        self._plain = replace(lumped, rows=np.ones((len(lumped.rows), 1)), outputs=(0,))

    def climb(self, starts: Array, stop: Stop) -> tuple[Array, float]:
        """Return the adversary that steps from the best start lead to, and what it comes to."""
        allowed = [self._allowed(one / one.sum()) for one in starts]
        best = max(allowed, key=self.value)
        value = self.value(best)
        for _ in range(STEPS):
            found = self._allowed(self._step(best, value))
            before, new = value, self.value(found)
            if new > value:
                best, value = found, new
            if not new > before + PROGRESS * max(1.0, abs(before)) or stop():
                break
        return best, value

    def value(self, weights: Array) -> float:
        """Return the gain in its form, for an adversary."""
        joint = joint_law(weights, self._lumped)
        gain, form = self._told.gain, self._told.form
        posterior = float(gain.value(joint.T).sum())
        if form == "posterior":
            return posterior
        prior = float(gain.value(joint.sum(axis=1)))
        return posterior - prior if form == "rise" else posterior / prior

    def _allowed(self, weights: Array) -> Array:
        if self._domain is not None:
            return self._domain.meet(weights)
        return meet_entropy_floor(weights, self._lumped, self._floor)

    def _step(self, weights: Array, value: float) -> Array:
        """Return the (nearly feasible) adversary with the largest tangent less t G(pi)."""
        lumped, told = self._lumped, self._told
        joint = joint_law(weights, lumped)
        slopes = np.maximum(told.gain.tangent(joint.T), STEEPEST)
        earned = lumped.rows @ slopes
        price = earned[np.arange(len(earned)), lumped.value_index]
        k = len(lumped.values)
        # What the one output of `_plain` adds for a value that is known.
        price = price - told.gain.value(np.eye(k))[lumped.value_index]
        objective = Objective.of(told, k, value)
        limits = None if self._domain is None else self._domain.limits
        dual = CellDual(self._plain, self._floor, limits, price, None, objective)
        points = objective.points(k)[None]
        if objective.open_tangents:
            points[:, 0] = joint.sum(axis=1)
        solution, _ = dual.solve_with_tangents(
            np.eye(k)[None, None],
            points,
            np.array([first_multiplier(dual.surplus)]),
            np.full((1, 1, k), 1e-3),
            -np.inf,
            accuracy=np.array([ACCURACY]),
            kappa=np.full((1, len(dual.limits.bounds) + objective.number(k)), 1e-3),
            max_iterations=NEWTON,
        )
        found = np.maximum(solution.weights[0], 0.0)
        return found / found.sum()
