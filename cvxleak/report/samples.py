"""The report on draws of a mechanism: what they say of it, and with what confidence."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cvxleak.core.clock import Clock
from cvxleak.core.validation import real_number
from cvxleak.problem.bound import converted
from cvxleak.report import names
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import BOUND, Quantity, Report

if TYPE_CHECKING:
    from cvxleak.samples import SampleAudit

__all__ = ["samples_report"]


def samples_report(
    samples: Any,
    secret: str = "x",
    output: str = "y",
    entropy_floors: Sequence[float] = (),
    *,
    confidence: float = 0.95,
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = 60.0,
    progress: Progress | None = None,
) -> Report:
    """Return what draws of a mechanism say of it, all of it with one confidence.

    Parameters
    ----------
    samples, secret, output, confidence
        As for `cvxleak.samples.audit_samples`.
    entropy_floors : sequence of float
        Least entropies of the adversary's belief about the secret, in `unit`.
    unit : {"nats", "bits"}
    tol : float, optional
        As for `audit_samples`.
    time_limit : float or None
        Seconds for all searches together.
    progress : Progress, optional
        Is told about progress, and may interrupt.

    Returns
    -------
    Report
        The leakage at each floor, the capacity, and the lower end of local differential privacy,
        whose upper end is infinite: no draws show that a mechanism is private.

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
            confidence=confidence,
            tol=tol,
            time_limit=seconds,
            progress=progress.update,
        )

    floors = sorted({real_number(b, "entropy_floor", 0.0) for b in entropy_floors})
    clock = Clock(time_limit)
    audits: list[tuple[float | None, SampleAudit]] = [
        (floor, audited(floor, clock.share(len(floors) - turn)))
        for turn, floor in enumerate(floors)
    ]
    audits.append((None, audited(None)))
    quantities = [_leakage(audit, floor, unit) for floor, audit in audits]
    found = audits[-1][1]
    violation = found.violation()
    lower = converted(violation.epsilon, "nats", unit)
    meaning = f"{_confident(found)} {violation.why}"
    quantities.append(
        Quantity(names.LOCAL_DP, lower, math.inf, unit, BOUND, meaning, delta=violation.delta)
    )
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


def _leakage(audit: SampleAudit, floor: float | None, unit: str) -> Quantity:
    name, whom = names.CAPACITY, "whatever the secret's law"
    if floor is not None:
        name, whom = names.RECORD_LEAKAGE, f"to anybody with {floor:g} {unit} of doubt about it"
    open_by = converted(audit.upper - audit.lower - audit.search, "nats", unit)
    more = f" (about {audit.more_draws} more would halve it)" if audit.more_draws else ""
    meaning = (
        f"{_confident(audit)} what the output tells about the secret at most, on average, {whom}. "
        f"{audit.about} {open_by:.2g} {unit} are open for want of draws{more}."
    )
    bound = replace(audit.bound, lower=audit.lower, upper=audit.upper, attained=None)
    return Quantity.of_bound(name, bound, unit, meaning, entropy_floor=floor)


def _confident(audit: SampleAudit) -> str:
    return f"With {100 * audit.confidence:g} % confidence:"
