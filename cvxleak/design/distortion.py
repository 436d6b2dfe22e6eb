"""Least distortion for a leakage budget (LEAKAGE Problem 3), with both ends proved."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import instance, real_number
from cvxleak.design.designed import Design
from cvxleak.design.goal import Goal
from cvxleak.design.leakage import (
    TIME_LIMIT,
    TOLERANCE,
    Law,
    Laws,
    Objective,
    Strategy,
    judged,
    leakage_of,
    make_options,
    searched,
)
from cvxleak.design.statement import DesignData
from cvxleak.design.user_constraints import OwnConstraints
from cvxleak.model import Channel, Distortion, Mechanism, Query
from cvxleak.problem.bound import Bound
from cvxleak.problem.check import Check

__all__ = ["MinDistortion", "min_distortion"]


@dataclass(frozen=True)
class MinDistortion:
    """The problem min over channels q(y|x) with maximal leakage L(q) <= L of E d(f(X), Y).

    LEAKAGE Problem 3. The channels with L(q) <= L are a convex set, because L(q) is a supremum of
    convex functions, so the bracket that is found is about the global optimum.

    Parameters
    ----------
    query, distortion, entropy_floor, source, sources, outputs, constraints, objective, size, priors
        As for `MinLeakage`, and so `rows`. With several sources the largest distortion counts.
    budget : float
        L >= 0, in nats.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        b above log|X|.

    Examples
    --------
    LEAKAGE Fig. 7: two bits, b = 0. The least flip probability D has log 2 - h(D) = L.

    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> from cvxleak.design import MinDistortion
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> problem = MinDistortion(
    ...     parity, distortion=[[0, 1], [1, 0]], budget=0.3680642, entropy_floor=0.0
    ... )
    >>> bound = problem.solve()
    >>> round(bound.lower, 3), round(bound.upper, 3), bound.unit
    (0.1, 0.1, 'distortion')
    """

    problem: DesignData
    budget: float

    def __init__(
        self,
        query: Query,
        *,
        distortion: Distortion | ArrayLike,
        budget: float,
        entropy_floor: float | None = None,
        source: Law | None = None,
        sources: Laws | None = None,
        outputs: Iterable[Hashable] | None = None,
        constraints: OwnConstraints = (),
        objective: Objective = "record",
        size: int = 1,
        priors: Laws | None = None,
        rows: str = "auto",
    ) -> None:
        problem = DesignData(
            query,
            distortion,
            entropy_floor,
            source,
            sources,
            outputs,
            constraints,
            objective,
            size,
            priors,
            rows,
        )
        object.__setattr__(self, "problem", problem)
        # No leakage is above log|X|, so a larger budget says no more than this one.
        found = real_number(budget, "budget", 0.0)
        object.__setattr__(self, "budget", min(found, 2 * query.space.max_entropy + 1))

    def solve(
        self,
        *,
        tol: float = TOLERANCE,
        time_limit: float | None = TIME_LIMIT,
        strategy: Strategy = "cutting_set",
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        rng: int | np.random.Generator | None = 0,
        verbose: bool = False,
    ) -> Bound:
        """Return the bracket of the least distortion, in the unit of d.

        Parameters
        ----------
        tol, time_limit, strategy, solver, solver_options, rng, verbose
            As for `MinLeakage.solve`.

        Returns
        -------
        Bound
            `upper` is the distortion of the `witness`, a `Design`, whose leakage is proved to be
            within the budget; `lower` holds for all channels. `shadow_prices` has dD/dL ("budget",
            not where L = 0 leaves constants only) and dD/db ("entropy_floor").

        Raises
        ------
        InfeasibleError
            Own constraints that no channel meets, alone or within the budget.
        """
        options = make_options(tol, time_limit, strategy, solver, solver_options, verbose)
        return searched(self.problem, Goal.DISTORTION, self.budget, options, rng)

    def check(
        self,
        candidate: Design | Channel | Mechanism | ArrayLike,
        *,
        bound: Bound | None = None,
        **options: Any,
    ) -> Check:
        """Judge a channel that was found elsewhere against the certified bracket.

        Parameters
        ----------
        candidate, bound, **options
            As for `MinLeakage.check`. The value is the candidate's distortion.
        """
        problem, matrix = self.problem.candidate(candidate)
        repaired, violations = judged(problem, matrix)
        leaks = leakage_of(problem, repaired, options.get("time_limit", TIME_LIMIT))
        violations["leakage is within the budget"] = max(leaks - self.budget, 0.0)
        value = problem.costs.worst(repaired)
        if bound is None:
            bound = self.solve(**options)
        return Check(value, violations, instance(bound, Bound, "bound"), maximize=False)


def min_distortion(
    query: Query,
    *,
    distortion: Distortion | ArrayLike,
    budget: float,
    entropy_floor: float | None = None,
    source: Law | None = None,
    sources: Laws | None = None,
    outputs: Iterable[Hashable] | None = None,
    constraints: OwnConstraints = (),
    objective: Objective = "record",
    size: int = 1,
    priors: Laws | None = None,
    rows: str = "auto",
    **options: Any,
) -> Bound:
    """Return the least distortion for a leakage budget: `MinDistortion(...).solve(...)`.

    Parameters
    ----------
    query, distortion, budget, entropy_floor, source, sources, outputs, constraints, objective, size
        As for `MinDistortion`, and so `priors` and `rows`.
    **options
        As for `MinLeakage.solve`.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> from cvxleak.design import min_distortion
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> bound = min_distortion(parity, distortion=[[0, 1], [1, 0]], budget=1.0, entropy_floor=0.0)
    >>> print(bound)
    least distortion: 0 to 0 distortion (CERTIFIED)
    """
    problem = MinDistortion(
        query,
        distortion=distortion,
        budget=budget,
        entropy_floor=entropy_floor,
        source=source,
        sources=sources,
        outputs=outputs,
        constraints=constraints,
        objective=objective,
        size=size,
        priors=priors,
        rows=rows,
    )
    return problem.solve(**options)
