"""Least distortion for a leakage budget (LEAKAGE Problem 3): both bounds proved."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from numpy.typing import ArrayLike

from cvxleak.design.goal import Goal
from cvxleak.design.problem import AnyLaw, AnyLaws, DesignProblem, Objective
from cvxleak.design.user_constraints import UserRules
from cvxleak.model import Distortion, Query
from cvxleak.problem import Bound

__all__ = ["MinDistortion", "min_distortion"]


class MinDistortion(DesignProblem):
    """Minimize E d(f(X), Y) over channels q(y|x) with maximal leakage L(q) <= L.

    LEAKAGE Problem 3. The channels with L(q) <= L form a convex set, because L(q) is a supremum of
    convex functions; so the bounds are on the global optimum.

    Parameters
    ----------
    query, distortion, entropy_floor, source, sources, outputs, constraints, objective, size, priors
        As for `MinLeakage`, and so `rows`. With several sources, the largest of their distortions
        is minimized.
    budget : float
        L >= 0, in nats.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        b above log|X|.

    Notes
    -----
    `upper` is the distortion of the `witness`, a `Design`, whose leakage is proved to be within the
    budget; `lower` holds for all channels. `shadow_prices` has dD/dL ("budget", except for L = 0,
    where only constant channels are feasible) and dD/db ("entropy_floor"). `solve` raises
    `InfeasibleError` if no channel meets the user's constraints, alone or together with the budget.
    Options and candidates are those of `MinLeakage`.

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

    goal = Goal.DISTORTION
    kind = "min-distortion"
    name = "least distortion"
    unit = "distortion"
    information = ("budget", "entropy_floor")

    @property
    def scale(self) -> float:
        """The largest distortion."""
        return float(self.distortion.matrix.max())


def min_distortion(
    query: Query,
    *,
    distortion: Distortion | ArrayLike,
    budget: float,
    entropy_floor: float | None = None,
    source: AnyLaw | None = None,
    sources: AnyLaws | None = None,
    outputs: Iterable[Hashable] | None = None,
    constraints: UserRules = (),
    objective: Objective = "record",
    size: int = 1,
    priors: AnyLaws | None = None,
    rows: str = "auto",
    **options: Any,
) -> Bound:
    """Return the least distortion for a leakage budget: `MinDistortion(...).solve(...)`.

    Parameters
    ----------
    query, distortion, budget, entropy_floor, source, sources, outputs, constraints, objective, size
        As for `MinDistortion`, and so `priors` and `rows`.
    **options
        As for `MinLeakage`.

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
