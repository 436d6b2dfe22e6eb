"""`design_curve`: the trade-off between leakage and distortion over a list of budgets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import in_order, instance, real_number
from cvxleak.design.distortion import MinDistortion
from cvxleak.design.leakage import MinLeakage
from cvxleak.design.learned import Learned
from cvxleak.design.run import Options
from cvxleak.problem import Bound
from cvxleak.problem.curve import Curve
from cvxleak.solvers.conic import as_options

__all__ = ["DesignCurve", "design_curve"]


@dataclass(frozen=True, repr=False)
class DesignCurve(Curve):
    """Lower and upper bounds on a trade-off for increasing budgets.

    Attributes
    ----------
    budgets : tuple of float
        D for `MinLeakage`, L for `MinDistortion`, increasing.
    bounds : tuple of Bound
        One for each budget, with its own witness and certificate.
    seconds : float
        Time for the whole curve.

    Examples
    --------
    >>> from cvxleak.design import DesignCurve
    >>> from cvxleak.problem.bound import Bound
    >>> bounds = [Bound.proved("leakage", low, low, tol=1e-3) for low in (0.4, 0.2)]
    >>> DesignCurve((0.1, 0.2), tuple(bounds), seconds=0.1).upper
    array([0.4, 0.2])
    """

    budgets: tuple[float, ...]
    bounds: tuple[Bound, ...]
    seconds: float

    @property
    def _axis(self) -> tuple[str, tuple[float, ...]]:
        return "budget", self.budgets


def design_curve(
    problem: MinLeakage | MinDistortion,
    budgets: Iterable[float],
    *,
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    solver: str | None = None,
    solver_options: dict[str, Any] | None = None,
    rng: int | np.random.Generator | None = 0,
    verbose: bool = False,
) -> DesignCurve:
    """Solve a design problem for many budgets, reusing the adversaries that were found.

    A cut is an adversary, and an adversary's leakage as a function of the channel does not depend
    on the budget. So each point starts with the cuts of its neighbor and needs only a few rounds.

    Parameters
    ----------
    problem : MinLeakage or MinDistortion
        The problem; its own budget is ignored.
    budgets : iterable of float
        Distinct budgets, in any order.
    tol, solver, solver_options, rng, verbose
        As for `MinLeakage`.
    time_limit : float, optional
        Seconds for the whole curve. Each point gets an equal share of the remaining time; a point
        that uses up its share reports it in ``stats["stopped"]``.
    work_limit : float or None
        As for `MinLeakage.solve`, for each point.

    Raises
    ------
    ValidationError
        Not a design problem, or no budgets.
    InfeasibleError
        A budget that no channel meets.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> from cvxleak.design import MinLeakage, design_curve
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> problem = MinLeakage(parity, distortion=[[0, 1], [1, 0]], budget=0.1, entropy_floor=0.0)
    >>> curve = design_curve(problem, [0.05, 0.1, 0.2, 0.5])
    >>> curve.upper.round(3)
    array([0.495, 0.368, 0.193, 0.   ])
    """
    if not isinstance(problem, MinLeakage | MinDistortion):
        instance(problem, MinLeakage, "problem")
    given = in_order(budgets, "budgets")
    points = sorted({real_number(budget, f"budgets[{k}]", 0.0) for k, budget in enumerate(given)})
    if not points:
        raise ValidationError("budgets: found none; at least one is needed")
    learned = Learned(problem.data, problem.goal, rng)
    clock = Clock(time_limit)
    bounds: dict[float, Bound] = {}
    options = Options(solver=solver, solver_options=as_options(solver_options), verbose=verbose)
    for done, budget in enumerate(points):
        limits = clock.share(len(points) - done), work_limit
        try:
            point = replace(problem, budget=budget)
            bounds[budget] = point.go_on(partial(point.search, learned, options), tol, *limits)
        except SolveInterrupted as error:
            if error.bound is not None:
                bounds[budget] = error.bound
            curve = DesignCurve(tuple(bounds), tuple(bounds.values()), clock.seconds)
            raise SolveInterrupted(curve if bounds else None) from error
    return DesignCurve(tuple(bounds), tuple(bounds.values()), clock.seconds)
