"""The adversaries and channels found for one budget, which a design reuses for the next."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cvxleak.design.adversary_oracle import AdversaryOracle
from cvxleak.design.cuts import Cuts
from cvxleak.design.data import DesignData
from cvxleak.design.goal import Goal
from cvxleak.design.work import Work

__all__ = ["Learned"]


class Learned:
    """What the searches for one design problem, at any budget, have in common.

    Nothing is worked out before it is asked for.

    Attributes
    ----------
    known : Cuts
        The adversaries that masters know.
    work : Work
        What all of that took.
    """

    def __init__(
        self,
        data: DesignData,
        goal: Goal,
        rng: int | np.random.Generator | None,
        oracle: AdversaryOracle | None = None,
        work: Work | None = None,
    ) -> None:
        self.data, self.goal = data, goal
        self.work = work or Work()
        self._rng, self._oracle = rng, oracle

    @cached_property
    def oracle(self) -> AdversaryOracle:
        """The adversaries."""
        return self._oracle or self.data.oracle(self._rng)

    @cached_property
    def known(self) -> Cuts:
        """The cuts; at first those of the given priors."""
        return Cuts(self.oracle.known)

    @cached_property
    def without_floor(self) -> Learned | None:
        """The same for adversaries without a floor, if local searches miss none of these."""
        oracle = self.oracle
        exact = oracle.priors is None and oracle.floor > 0 and oracle.enumerable
        if not exact:
            return None
        return Learned(self.data, self.goal, None, oracle.without_floor(), self.work)
