"""Channels that are feasible against every adversary, and what is made from them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NoReturn

import numpy as np

from cvxleak.core.errors import InfeasibleError, SolverError
from cvxleak.core.validation import Array
from cvxleak.design.adversary_oracle import Audited
from cvxleak.design.conic import Conic
from cvxleak.design.data import DesignData
from cvxleak.design.feasible import in_decimals, snapped
from cvxleak.design.goal import Goal
from cvxleak.design.interior import Master, MasterPoint
from cvxleak.kernel.numbers import upper
from cvxleak.proofs.exact import rational

__all__ = ["FallbackChannels"]

THIN = 1e-9
"""A budget with less room than this part of the whole range has no interior to speak of."""


class FallbackChannels:
    """The channel of least distortion, one of least leakage, and what is made from them.

    Attributes
    ----------
    least_distortion : array, shape (R, Y)
        A channel of least distortion.
    constant : array or None
        A channel of constant output, of those the one of least distortion; None if user constraints
        rule all of them out.
    fallback_audit : Audited or None
        What is proved of the channel that takes the place of `constant` where that is None.
    tight : bool
        The budget is the least distortion, or so little more that no output that costs more gets a
        share worth the name: all of these are left out, at a price that makes up for it.
    thin : bool
        The budget is hardly more, so that there is no interior.
    """

    def __init__(self, data: DesignData, goal: Goal, budget: float, conic: Conic) -> None:
        self.costs, self.goal, self.budget = data.costs, goal, budget
        self.constrained = data.half_spaces is not None
        self.least_distortion = self.costs.least()
        rows = len(self.least_distortion)
        self.constant: Array | None = np.tile(self.costs.constant()[0], (rows, 1))
        self.fallback_audit: Audited | None = None
        if data.half_spaces is not None:
            # Solvers want numbers near 1.
            unit = float(self.costs.price.max()) or 1.0
            found = conic.least_worst(self.costs.table / unit)
            near = [found, *in_decimals(found)]
            meant = [q for q in near if self.affordable(q) and data.half_spaces.inside.met(q)]
            self.least_distortion = meant[0] if meant else snapped(found)
            violated = data.half_spaces.user.violations(self.constant)
            if max(violated.values(), default=0.0) > 0:
                law = conic.constant(self.costs.table)
                self.constant = None if law is None else np.tile(snapped(law[None])[0], (rows, 1))
        self.tight = self.thin = False
        if self.capped:
            least, given = max(self.costs.exact(self.least_distortion)), rational(budget)
            if given < least:
                self._refuse(data, upper(least))
            room = budget - self.costs.worst(self.least_distortion)
            if len(self.costs.table) == 1 and not self.constrained:
                excess = self.costs.table - self.costs.table.min(axis=2, keepdims=True)
                cheapest = float(excess[excess > 0].min(initial=np.inf))
                self.tight = given == least or room <= THIN * cheapest
            self.thin = not self.tight and room <= THIN * max(budget, float(self.costs.table.max()))

    def _refuse(self, data: DesignData, least: float) -> NoReturn:
        """Say that no channel is within the budget, or that none was found."""
        found = f"budget: found {self.budget!r};"
        if data.half_spaces is None:
            raise InfeasibleError(f"{found} the least distortion of any channel is {least!r}")
        # `least` is that of a channel inside, as near as a solver gets.
        which = "the least distortion of a channel that meets the constraints is"
        proved = max(data.half_spaces.least(table).least for table in self.costs.table)
        if self.budget < proved * (1 - 1e-12):
            raise InfeasibleError(f"{found} {which} about {least!r}")
        raise SolverError(
            f"{found} no channel within it was found; {which} between {proved!r} and {least!r}"
        )

    @property
    def capped(self) -> bool:
        """Whether there is a budget on the distortion."""
        return self.goal is Goal.LEAKAGE and math.isfinite(self.budget)

    @property
    def fallback(self) -> Array:
        """The constant channel, or the channel that takes its place."""
        if self.constant is None:
            raise SolverError("there is no channel of little leakage to mix with")
        return self.constant

    @property
    def fallback_leakage(self) -> float:
        """An upper bound of what that channel leaks."""
        return 0.0 if self.fallback_audit is None else self.fallback_audit.upper

    def affordable(self, matrix: Array) -> bool:
        """Whether a channel meets the budget on the distortion, exactly."""
        if not self.capped:
            return True
        return max(self.costs.exact(matrix)) <= rational(self.budget)

    def first(self) -> Array:
        """Return a channel to start from: between the one of least distortion and a constant."""
        blank = np.full(self.least_distortion.shape, 1 / self.least_distortion.shape[1])
        if self.constrained:
            return self.least_distortion
        if self.tight:
            # Whatever costs more than the least is out of the question.
            price = self.costs.price
            free = price <= price.min(axis=1, keepdims=True)
            free |= (self.costs.table[0] == 0).all(axis=1, keepdims=True)
            return free / free.sum(axis=1, keepdims=True)
        far = 0.9 * self.fallback + 0.1 * blank
        near = self.least_distortion
        if not self.capped:
            return 0.5 * near + 0.5 * far
        least, most = self.costs.worst(near), self.costs.worst(far)
        share = min(0.999, 0.7 * (self.budget - least) / max(most - least, 1e-300))
        return (1 - share) * near + share * far

    def share(self, leaks: float) -> float:
        """Return the share of a channel whose mixture with the fallback keeps the leakage's budget.

        By convexity, of a channel that leaks at most `leaks`.
        """
        if leaks <= self.budget:
            return 1.0
        fallback = self.fallback_leakage
        return max(self.budget - fallback, 0.0) / (leaks - fallback) * (1 - 1e-9)

    def repaired(self, matrix: Array, least: float) -> Array:
        """Return a channel nearby whose rows are exact and whose budget is truly met.

        Entries below `least` become zero.
        """
        # Own constraints may want what looks like dust.
        released = snapped(matrix, 0.0 if self.constrained else least)
        if not self.capped:
            return released
        share = 0.0
        while not self.affordable(released):
            over = self.costs.worst(released) - self.budget
            room = max(self.budget - self.costs.worst(self.least_distortion), 1e-300)
            share = min(1.0, max(4 * share, 1e-15, over / (over + room)))
            mixed = (1 - share) * released + share * self.least_distortion
            released = self.least_distortion if share == 1.0 else snapped(mixed)
        return released

    def priced(self, point: MasterPoint, master: Master) -> MasterPoint:
        """Price the budget that leaves no choice so high that no other output pays."""
        slope = master.coefficients(point.posteriors, point.theta, np.zeros(0))
        table = self.costs.table[0]
        excess = table - table.min(axis=1, keepdims=True)
        out = excess > 0
        least = np.where(out, np.inf, slope).min(axis=1, keepdims=True)
        needed = np.where(out, (least - slope) / np.where(out, excess, 1.0), 0.0)
        beta = max(float(needed.max()), 0.0) * (1 + 1e-9)
        lower = float((slope + beta * table).min(axis=1).sum()) - beta * self.budget
        return replace(point, lower=lower, beta=np.array([beta]))
