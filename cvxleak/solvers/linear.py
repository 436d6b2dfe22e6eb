"""One linear program, solved by SciPy's HiGHS or by any solver of CVXPY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.solvers.conic import SOLVERS, attempt, check_solver

__all__ = ["Answer", "LinearSolver"]


@dataclass(frozen=True)
class Answer:
    """An optimal point of a linear program, its value, and the inequalities' multipliers (>= 0)."""

    value: float
    point: Array
    multipliers: Array


@dataclass(frozen=True)
class LinearSolver:
    """Who solves the linear programs of a search, and until when.

    Parameters
    ----------
    clock : Clock
        When it is late, programs fail.
    name : str, optional
        A solver under CVXPY; HiGHS without CVXPY if left out.
    options : mapping
        Options of that solver.

    Raises
    ------
    ValidationError
        A solver that is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.solvers.linear import LinearSolver
    >>> program = np.ones(2), -np.eye(2), -np.ones(2), None, None, [(0, None)] * 2
    >>> for name in (None, "CLARABEL"):
    ...     found = LinearSolver(name=name).minimize(*program)
    ...     print(round(found.value, 6), found.multipliers.round(6))
    2.0 [1. 1.]
    2.0 [1. 1.]
    """

    clock: Clock = field(default_factory=Clock)
    name: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_solver(self.name)

    def minimize(
        self,
        cost: Array,
        rows: Any,
        sides: Array,
        equations: Any,
        totals: Array | None,
        bounds: Sequence[tuple[float | None, float | None]],
    ) -> Answer | None:
        """Return the optimum under rows @ x <= sides and equations @ x = totals, or None.

        Raises
        ------
        SolverError
            The solver came to no end, or time is up.
        """
        if self.clock.late:
            raise SolverError("linear program: no time is left")
        program = cost, rows, sides, equations, totals, bounds
        if self.name is None:
            return self._by_highs(*program)
        return self._by_cvxpy(self.name, *program)

    def _by_highs(self, *program: Any) -> Answer | None:
        options: dict[str, Any] = dict(SOLVERS["HIGHS"].sharp)
        if self.clock.limit is not None:
            options["time_limit"] = self.clock.left
        answer = linprog(*program, method="highs", options=options)
        spend(3e6 + (1 + answer.nit) * 100 * len(program[0]))
        if answer.status not in (0, 1):
            # Presolving can take programs without much room for ones without any.
            answer = linprog(*program, method="highs", options={**options, "presolve": False})
        if answer.status in (2, 3):
            return None
        if answer.status != 0:
            raise SolverError(f"HiGHS: {answer.message}")
        multipliers = np.maximum(-answer.ineqlin.marginals, 0.0)
        return Answer(float(answer.fun), answer.x, multipliers)

    def _by_cvxpy(
        self,
        name: str,
        cost: Array,
        rows: Any,
        sides: Array,
        equations: Any,
        totals: Array | None,
        bounds: Sequence[tuple[float | None, float | None]],
    ) -> Answer | None:
        import cvxpy as cp

        x = cp.Variable(len(cost))
        low, high = np.array(bounds, dtype=float).T  # None is not a number
        below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        limits: list[Any] = [rows @ x <= sides, x[below] >= low[below], x[above] <= high[above]]
        if equations is not None:
            limits.append(equations @ x == totals)
        sharp = SOLVERS[name].sharp if name in SOLVERS else {}
        problem = cp.Problem(cp.Minimize(cost @ x), limits)
        status = attempt(problem, name, {**sharp, **self.options}, self.clock)
        if status in (cp.INFEASIBLE, cp.UNBOUNDED):
            return None
        if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise SolverError(f"{name}: {status}")
        multipliers = np.maximum(np.asarray(limits[0].dual_value, dtype=float), 0.0)
        point = np.asarray(x.value, dtype=float)
        return Answer(float(cost @ point), point, multipliers)
