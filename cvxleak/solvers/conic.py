"""CVXPY's solvers: supported cones, options for accuracy and time limits; one function to run them.

What a solver returns is never trusted: a family repairs its point, and proves the ends from its
multipliers. So a coarse solver costs sharpness and no validity.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import short
from cvxleak.core.work import spend
from cvxleak.solvers.highs import withhold_banner

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["SOLVERS", "Solver", "as_options", "attempt", "check_solver"]


@dataclass(frozen=True)
class Solver:
    """A solver that is tested with every program here.

    Attributes
    ----------
    takes : str
        The programs it can be given.
    sharp : mapping
        Options that make it as accurate as it gets; where it stops short of them, it says so and
        its point is still used.
    accuracy : float
        What its value is off by at most with these options, on the small programs of the tests;
        relative to the value where that is above 1.
    as_it_comes : float
        The same with its own tolerances.
    time_limit : str or None
        What it calls the seconds that it may take; None if it has no such option.
    absent : str
        Why it may not be installed.
    """

    takes: str
    sharp: Mapping[str, Any]
    accuracy: float
    as_it_comes: float
    time_limit: str | None
    absent: str = ""


SOLVERS: Mapping[str, Solver] = MappingProxyType(
    {
        "CLARABEL": Solver(
            "every convex program: linear, second-order, exponential, power and semidefinite cones",
            {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11},
            1e-9,
            1e-7,
            "time_limit",
        ),
        "ECOS": Solver(
            "linear, second-order and exponential cones",
            {"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11},
            1e-9,
            1e-7,
            None,
            "it has no wheels for Python 3.13 and later",
        ),
        "SCS": Solver(
            "every convex program, as CLARABEL",
            {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000},
            1e-7,
            1e-4,
            "time_limit_secs",
        ),
        "HIGHS": Solver(
            "linear and quadratic programs",
            {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
            1e-9,
            1e-7,
            "time_limit",
        ),
    }
)
"""The solvers that every program of this library is tested with, to the accuracies stated here.

Each accuracy is the tolerance that the solver works to, with a digit or two to spare: the programs'
values are near 1 and so are their multipliers, which say what a missed constraint is worth.
Interior-point methods (CLARABEL, ECOS) come to where rounding stops them, a first-order method
(SCS) pays for each digit with iterations, and HiGHS ends at a vertex, right up to rounding.
"""

PROGRAM = 3e7
"""Work of stating a program to a solver, in multiplications."""

ENTRY = 100.0
"""Work of a solver's iteration for each number of the program's data."""

LEAST_SECONDS = 1e-3
"""SCS reads a limit of zero as no limit."""


def check_solver(solver: str | None) -> str | None:
    """Return the name of a solver that CVXPY can call here, or None for the choice of `attempt`.

    Raises
    ------
    ValidationError
        A solver that is not installed, or not known.

    Examples
    --------
    >>> from cvxleak.solvers.conic import check_solver
    >>> check_solver("CLARABEL")
    'CLARABEL'
    >>> check_solver("NOPE")
    Traceback (most recent call last):
    ...
    cvxleak.core.errors.ValidationError: solver: found 'NOPE'; installed: ['CLARABEL', ...]
    """
    import cvxpy as cp

    known = cp.installed_solvers()
    if solver is not None and solver not in known:
        tested = SOLVERS.get(solver) if isinstance(solver, str) else None
        why = f", and {tested.absent}" if tested is not None and tested.absent else ""
        raise ValidationError(f"solver: found {short(solver)}{why}; installed: {sorted(known)}")
    return solver


def as_options(solver_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the argument `solver_options` of a solve as a dictionary.

    Raises
    ------
    ValidationError
        It is no mapping.

    Examples
    --------
    >>> from cvxleak.solvers.conic import as_options
    >>> as_options(None), as_options({"max_iter": 50})
    ({}, {'max_iter': 50})
    """
    if solver_options is None:
        return {}
    if not isinstance(solver_options, Mapping):
        raise ValidationError(
            f"solver_options: found {short(solver_options)}; a mapping of names to values is needed"
        )
    return dict(solver_options)


def attempt(
    problem: cp.Problem,
    solver: str | None = None,
    options: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> str:
    """Solve, and return the status or the solver's complaint; without an answer no values are left.

    Accuracy is not taken on trust: whoever calls evaluates what is found. With neither a solver nor
    options HiGHS gets linear programs and CLARABEL the others, with sharp tolerances; options alone
    are CLARABEL's. Solvers with a time limit of their own (`SOLVERS`) get what a clock has left.

    Raises
    ------
    ValidationError
        A solver that is not installed or cannot take the program's cones, or options that it does
        not have.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.solvers.conic import attempt
    >>> x = cp.Variable()
    >>> attempt(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0]))
    'infeasible'
    >>> x.value is None
    True
    >>> attempt(cp.Problem(cp.Minimize(cp.exp(x))), "HIGHS")
    Traceback (most recent call last):
    ...
    cvxleak.core.errors.ValidationError: solver: found 'HIGHS', which cannot take ...
    """
    import cvxpy as cp

    for v in problem.variables():
        v.save_value(None)
    given, name = dict(options or {}), check_solver(solver)
    if name is None:
        name = "HIGHS" if not given and problem.is_lp() else "CLARABEL"
        given = given or dict(SOLVERS[name].sharp)
    limit = SOLVERS[name].time_limit if name in SOLVERS else None
    if clock is not None and clock.limit is not None and limit is not None:
        given = {limit: max(clock.left, LEAST_SECONDS)} | given
    if name == "HIGHS":
        withhold_banner()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            problem.solve(solver=name, **given)
    except cp.SolverError as error:
        if not _takes(name, problem):
            others = [other for other in SOLVERS if _takes(other, problem)]
            raise ValidationError(
                f"solver: found {name!r}, which cannot take this program's cones; of those "
                f"installed {others} can"
            ) from error
        return str(error)
    except (TypeError, ValueError, AttributeError) as error:
        if not options:
            raise
        raise ValidationError(f"solver_options: {name} refuses them: {error}") from error
    finally:
        spend(_work_of(problem))
    return str(problem.status)


def _work_of(problem: cp.Problem) -> float:
    """Return about how many multiplications a solver took, from its iterations and the sizes."""
    size = problem.size_metrics
    stats = problem.solver_stats
    steps = (stats.num_iters if stats is not None else None) or 1
    return PROGRAM + steps * ENTRY * size.num_scalar_data


def _takes(solver: str, problem: cp.Problem) -> bool:
    import cvxpy as cp

    try:
        problem.get_problem_data(solver)
    except cp.SolverError:
        return False
    return True
