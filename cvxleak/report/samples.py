"""The report on draws of a mechanism: what they say of it, and with what confidence."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.validation import in_order, real_number
from cvxleak.core.wording import rounded
from cvxleak.model import Knowledge, Query
from cvxleak.problem.bound import converted
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.names import BOUND
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report

if TYPE_CHECKING:
    from cvxleak.samples import DPViolation, SampleAudit

__all__ = ["samples_report"]


def samples_report(
    samples: Any,
    secret: str = "x",
    output: str = "y",
    entropy_floors: Sequence[float] = (),
    *,
    query: Query | None = None,
    adversaries: Knowledge | None = None,
    deltas: Sequence[float] = (0.0,),
    confidence: float = 0.95,
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the report of an audit from draws: all its statements hold at one confidence level.

    Parameters
    ----------
    samples, secret, output, query, adversaries, confidence
        As for `cvxleak.samples.audit_samples`.
    entropy_floors : sequence of float
        Least entropies of the adversary's belief about the secret or, with a query, about the
        dataset, in `unit`. With a query or knowledge, the floor 0 is always among them.
    deltas : sequence of float
        For each of these, from 0 to 1, the epsilon of differential privacy that is ruled out: with
        a query, between datasets that differ in one record; without, between any two secrets.
    unit : {"nats", "bits"}
    tol : float, optional
        As for `audit_samples`.
    time_limit : float or None
        Seconds for all searches together.
    work_limit : float or None
        As for `Problem.solve`, for each search.
    progress : Progress, optional
        Is told about progress, and may interrupt.

    Returns
    -------
    Report
        The leakage at each floor, the capacity if there is no query, and lower bounds on
        epsilons, whose upper bound is infinite: no draws show that a mechanism is private.

    Raises
    ------
    ValidationError, InfeasibleError
        As `audit_samples`.

    Examples
    --------
    >>> from cvxleak.report import samples_report
    >>> answers = {"x": [0] * 500 + [1] * 500, "y": [0] * 450 + [1] * 500 + [0] * 50}
    >>> report = samples_report(answers)
    >>> [(q.name, round(q.lower, 2), round(q.upper, 2)) for q in report.quantities]
    [('capacity', 0.28, 0.47), ('local DP epsilon', 1.81, inf)]
    """
    from cvxleak.samples import audit_samples, read_samples

    progress = as_progress(progress)
    drawn = read_samples(samples, secret, output)

    def audited(floor: float | None, seconds: float | None = None) -> SampleAudit:
        # The same draws choose the columns each time, so that all is said of the same intervals.
        return solved(
            progress,
            names.CAPACITY if floor is None else names.RECORD_LEAKAGE,
            functools.partial(audit_samples, drawn),
            entropy_floor=None if floor is None else converted(floor, unit),
            query=query,
            adversaries=None if floor is None else adversaries,
            confidence=confidence,
            tol=tol,
            time_limit=seconds,
            work_limit=work_limit,
            progress=progress.update,
        )

    levels = sorted({real_number(d, "delta", 0.0, 1.0) for d in in_order(deltas, "deltas")})
    given = [*in_order(entropy_floors, "entropy_floors")]
    given += [0.0] if query is not None or adversaries is not None else []
    floors = sorted({real_number(b, "entropy_floor", 0.0) for b in given})
    clock = Clock(time_limit)
    audits: list[tuple[float | None, SampleAudit]] = [
        (floor, audited(floor, clock.share(len(floors) - turn)))
        for turn, floor in enumerate(floors)
    ]
    if query is None:
        audits.append((None, audited(None)))
    whom = "" if adversaries is None else f" {say.of_those_who(adversaries.statement)}"
    quantities = [_leakage(audit, floor, query is not None, unit, whom) for floor, audit in audits]
    found = audits[-1][1]
    name = names.LOCAL_DP if query is None else names.RECORD_DP
    for delta in levels:
        violation = found.violation(delta)
        lower = converted(violation.epsilon, "nats", unit)
        meaning = f"{_confident(found)} {_ruled_out(violation, lower, unit)}"
        quantities.append(Quantity(name, lower, math.inf, unit, BOUND, meaning, delta=delta))
    facts = {
        "secrets": found.counts.shape[0],
        "columns": found.counts.shape[1],
        "draws": found.draws,
        "choosing": found.choosing,
        "more_draws": found.more_draws,
        "confidence": found.confidence,
        "binned": found.binned,
    }
    return Report(unit, tuple(quantities), facts, progress.interrupted)


def _leakage(
    audit: SampleAudit, floor: float | None, of_record: bool, unit: str, known: str
) -> Quantity:
    name, what, whom = names.CAPACITY, "the secret", "for any distribution of the secret"
    if floor is not None:
        name, about = names.RECORD_LEAKAGE, "the dataset" if of_record else "it"
        whom = f"to an adversary with at least {floor:g} {unit} of uncertainty about {about}"
    if of_record:
        what = "one person's record"
    open_by = converted(audit.upper - audit.lower - audit.search, "nats", unit)
    more = f" (about {audit.more_draws} more would halve that)" if audit.more_draws else ""
    meaning = (
        f"{_confident(audit)} the most that the output tells about {what}, on average, {whom}."
        f"{'' if floor is None else known} {audit.about} {open_by:.2g} {unit} of the gap are due "
        f"to the number of draws{more}."
    )
    bound = replace(audit.bound, lower=audit.lower, upper=audit.upper, attained=None)
    return Quantity.of_bound(name, bound, unit, meaning, entropy_floor=floor)


def _ruled_out(violation: DPViolation, epsilon: float, unit: str) -> str:
    if epsilon == 0:
        return f"{violation.why}."
    of = f"(epsilon, delta)-DP with delta {violation.delta:g}: " if violation.delta else ""
    below = f" below {rounded(epsilon)} {unit}" if math.isfinite(epsilon) else ""
    return f"{of}every epsilon{below} is ruled out, because {violation.why}."


def _confident(audit: SampleAudit) -> str:
    return f"With {100 * audit.confidence:g} % confidence:"
