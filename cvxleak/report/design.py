"""`design_report`: the channel of least leakage, or of least distortion, and what it is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.core.clock import WORK_LIMIT
from cvxleak.core.errors import ValidationError
from cvxleak.measures import mutual_information
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.names import BOUND
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report

if TYPE_CHECKING:
    from cvxleak.design import Design, MinDistortion, MinLeakage

__all__ = ["design_report"]


def design_report(
    problem: MinLeakage | MinDistortion,
    *,
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the best channel of a design problem, and what is proved about it.

    Parameters
    ----------
    problem : MinLeakage or MinDistortion
    unit : {"nats", "bits"}
    tol : float, optional
        Relative gap to reach; the problem's own if left out.
    time_limit : float or None
        Seconds; what is not closed then is reported BRACKETED.
    work_limit : float or None
        As for `Problem.solve`.
    progress : Progress, optional
        Is told about progress.

    Returns
    -------
    Report
        Its `channel` is the design; its `facts` say what holds the optimum back.

    Raises
    ------
    ValidationError
        Not a design problem, or an option out of range.
    InfeasibleError
        No channel meets the budget; the message gives the least one.

    Notes
    -----
    LEAKAGE Problems 2 and 3, to a proved global gap, by `cvxleak.design`.

    Examples
    --------
    >>> from cvxleak.design import MinLeakage
    >>> from cvxleak.queries import parity
    >>> from cvxleak.report import design_report
    >>> wrong = [[0, 1], [1, 0]]
    >>> report = design_report(MinLeakage(parity(2), distortion=wrong, budget=0.1, entropy_floor=0))
    >>> [(q.name, round(q.upper, 3)) for q in report.quantities[:3]]
    [('least leakage', 0.368), ('leakage of the design', 0.368), ('distortion of the design', 0.1)]
    """
    from cvxleak.design import MinDistortion, MinLeakage

    if not isinstance(problem, MinLeakage | MinDistortion):
        raise ValidationError(
            f"problem: expected MinLeakage or MinDistortion, found {type(problem).__name__}"
        )
    scale = unit_scale(unit)
    progress = as_progress(progress)
    limits: dict[str, Any] = {"time_limit": time_limit, "work_limit": work_limit}
    bound = solved(progress, "design", problem.solve, tol=tol, **limits)
    design: Design = bound.witness
    leakage = isinstance(problem, MinLeakage)
    name = names.LEAST_LEAKAGE if leakage else names.LEAST_DISTORTION
    found = [
        Quantity.of_bound(name, bound, unit, say.design(leakage, bool(problem.constraints))),
        Quantity(
            names.DESIGN_LEAKAGE,
            min(_attained(design), design.leakage) / scale,
            design.leakage / scale,
            unit,
            BOUND,
            say.DESIGN_LEAKAGE,
            certificate=None,
        ),
        Quantity.computed(
            names.DESIGN_DISTORTION,
            design.distortion,
            names.DISTORTION,
            say.design_distortion(len(problem.sources)),
        ),
    ]
    found += _prices(bound.shadow_prices, leakage, unit)
    floor = problem.entropy_floor
    facts: dict[str, Any] = {
        "records": problem.query.space.records,
        "query_values": len(problem.query.values),
        "rows": design.channel.shape[0],
        "outputs": design.channel.shape[1],
        "minimize": "leakage" if leakage else "distortion",
        "budget": problem.budget if leakage else problem.budget / scale,
        "entropy_floor": None if floor is None else floor / scale,
        "objective": problem.objective,
        "group_size": problem.size if problem.objective == "group" else None,
        "binding": list(design.binding),
        "rounds": len(design.rounds),
        "stopped": bound.stats["stopped"].name,
    }
    return Report(unit, tuple(found), facts, progress.interrupted, design.channel)


def _attained(design: Design) -> float:
    """Return what the worst adversary that was found learns from the design."""
    joint = np.asarray(design.worst.joint)
    law = joint.sum(axis=1)
    joint, law = joint[law > 0], law[law > 0]
    rows = (joint / law[:, None]) @ design.channel.matrix
    return float(mutual_information(rows / rows.sum(axis=1, keepdims=True), law / law.sum()))


def _prices(prices: Any, leakage: bool, unit: str) -> list[Quantity]:
    of = "leakage" if leakage else "distortion"
    amounts = {"leakage": (unit, unit_scale(unit)), "distortion": ("d", 1.0)}
    found = []
    for key, name in (("budget", names.BUDGET_PRICE), ("entropy_floor", names.FLOOR_PRICE)):
        if key in prices:
            top, scale = amounts[of]
            bottom, per = amounts["distortion" if leakage and key == "budget" else "leakage"]
            value = prices[key] / scale * per
            meaning = say.price(of, key)
            found.append(Quantity.computed(name, value, f"{top}/{bottom}", meaning))
    return found
