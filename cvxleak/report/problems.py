"""The report on any problem: its lower and upper bound, and what they mean."""

from __future__ import annotations

import inspect
from typing import Any

from cvxleak.core.clock import WORK_LIMIT
from cvxleak.core.validation import instance
from cvxleak.model import Channel
from cvxleak.problem import Problem
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report

__all__ = ["problem_report"]


def problem_report(
    problem: Problem,
    *,
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the lower and upper bound of a problem as a report.

    Parameters
    ----------
    problem : Problem
    unit : {"nats", "bits"}
        Of information.
    tol, time_limit, work_limit : float
        As for `Problem.solve`.
    progress : Progress, optional
        Is told about progress.

    Returns
    -------
    Report
        Its only quantity has the problem's name; its `channel` is the witness, if that is one.

    Raises
    ------
    ValidationError, InfeasibleError, SolverError
        As `Problem.solve`.

    Examples
    --------
    >>> from cvxleak.capacities import RenyiCapacity
    >>> from cvxleak.report import problem_report
    >>> (found,) = problem_report(RenyiCapacity([[0.9, 0.1], [0.1, 0.9]], 2)).quantities
    >>> found.name, round(found.upper, 4), found.status
    ('Rényi capacity', 0.4947, 'CERTIFIED')
    """
    progress = as_progress(progress)
    instance(problem, Problem, "problem")
    options: dict[str, Any] = {"tol": tol, "time_limit": time_limit, "work_limit": work_limit}
    if "progress" in inspect.signature(problem._search).parameters:
        options["progress"] = progress.update
    bound = solved(progress, problem.name, problem.solve, unit=problem.unit, **options)
    quantity = Quantity.of_bound(problem.name, bound, unit, problem.meaning)
    channel = bound.witness if isinstance(bound.witness, Channel) else None
    return Report(unit, (quantity,), {"kind": problem.kind}, progress.interrupted, channel)
