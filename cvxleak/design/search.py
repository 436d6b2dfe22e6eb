"""A design, for one budget after the other: what is learned for one serves the next."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.design.adversary_oracle import Opponents
from cvxleak.design.audits import Told
from cvxleak.design.cuts import Cuts
from cvxleak.design.goal import Goal
from cvxleak.design.run import Options, Run
from cvxleak.design.search_without_floor import WithoutFloor
from cvxleak.design.statement import DesignData
from cvxleak.design.work import Work
from cvxleak.problem.bound import Bound

__all__ = ["Options", "Search"]


class Search:
    """The state of a design: it can be run for one budget after the other, and run on."""

    def __init__(
        self,
        problem: DesignData,
        goal: Goal,
        rng: int | np.random.Generator | None,
        opponents: Opponents | None = None,
        work: Work | None = None,
    ) -> None:
        self.problem, self.goal = problem, goal
        self.opponents = problem.opponents(rng) if opponents is None else opponents
        self.costs = problem.costs
        self.work = work or Work()
        self.audited: list[Told] = []
        self.known = Cuts(self.opponents.known)

    def run(self, budget: float, options: Options) -> Bound:
        """Return the proved bracket for one budget; cuts of earlier budgets are kept."""
        return Run(self, budget, options, Clock(options.time_limit)).go()

    @cached_property
    def without_floor(self) -> Search | None:
        """The same search against adversaries without a floor, if it is exact."""
        opponents = self.opponents
        exact = opponents.priors is None and opponents.floor > 0 and opponents.enumerable
        if not exact:
            return None
        return Search(self.problem, self.goal, None, opponents.without_floor(), self.work)

    def aside(self, budget: float, options: Options, clock: Clock) -> WithoutFloor:
        """Return this search, which is one without a floor, ready to look for a channel."""
        return WithoutFloor(self, budget, options, clock)

    def least_leakage(self, options: Options) -> Bound:
        """Return the bracket of the least leakage whatever it costs."""
        return Search(self.problem, Goal.LEAKAGE, 0, work=self.work).run(math.inf, options)
