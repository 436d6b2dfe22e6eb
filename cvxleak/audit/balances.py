"""The balance function: what dropping the entropy floor adds to the maximal leakage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cvxleak.audit.record_leakage import TOLERANCE, RecordLeakage
from cvxleak.audit.search.audit import Audit, Reporter
from cvxleak.audit.search.turns import audit_in_turns
from cvxleak.core.clock import WORK_LIMIT, Clock, Progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import instance, real_number, short
from cvxleak.model import Mechanism, RealOutput
from cvxleak.model.knowledge import Knowledge
from cvxleak.problem import Bound, Gap, Status, Stopped
from cvxleak.proofs import Certificate

__all__ = ["balance", "balance_of"]


def balance(
    mechanism: Mechanism,
    entropy_floor: float,
    *,
    adversaries: Knowledge | Iterable[Knowledge] | None = None,
    **options: Any,
) -> Bound:
    """Bound the balance function g(b) = C_1 - C_1^b (DALENIUS Definition 10).

    g(b) is the extra leakage if the entropy floor is dropped. Its lower bound is the lower bound on
    C_1 minus the upper bound on C_1^b; its upper bound is the upper bound on C_1 minus the lower
    bound on C_1^b. The witness is the pair of adversaries that attain the lower bounds on C_1 and
    C_1^b. Both capacities are bounded as tightly as the tolerance on the difference requires,
    alternately, within one time limit.

    Parameters
    ----------
    mechanism : Mechanism
    entropy_floor : float
        b, in nats.
    adversaries : Knowledge or iterable of Knowledge, optional
        Further constraints on the adversaries' priors, at both floors.
    **options
        As for `RecordLeakage`; `time_limit` covers both audits together, `work_limit` is for each.

    Examples
    --------
    >>> from cvxleak.audit import balance
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> print(balance(Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]), entropy_floor=1.0))
    balance: 0 to ... nats (CERTIFIED)
    """
    problems = [RecordLeakage(mechanism, b, adversaries=adversaries) for b in (0.0, entropy_floor)]
    return _balance(problems, **options)


def _balance(
    problems: Sequence[RecordLeakage],
    *,
    tol: float = TOLERANCE,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    rng: int | np.random.Generator | None = 0,
    verbose: bool = False,
    progress: Progress | None = None,
) -> Bound:
    gap, report = Gap(tol), Reporter(verbose, progress)
    clock = Clock(time_limit, work_limit, searches=len(problems))
    if isinstance(problems[0].mechanism.noise, RealOutput):
        free, bound = _one_by_one(
            problems, gap, clock, work_limit=work_limit, rng=rng, progress=report
        )
    else:
        audits = [Audit(problem, rng) for problem in problems]
        free, bound = audit_in_turns(audits, gap, clock, report)
    found = balance_of(free, bound, tol=tol, **clock.limits)
    if found.stats["stopped"] is Stopped.INTERRUPTED:
        raise SolveInterrupted(found)
    return found


def _one_by_one(
    problems: Sequence[RecordLeakage], gap: Gap, clock: Clock, **options: Any
) -> list[Bound]:
    """Solve problems, each in an even part of the time that is left; after Ctrl-C, in none."""
    bounds: list[Bound] = []
    try:
        for left, problem in zip(range(len(problems), 0, -1), problems, strict=True):
            bounds.append(problem.solve(tol=gap.tol, time_limit=clock.share(left), **options))
    except SolveInterrupted as error:
        bounds.append(error.bound)
        rest = problems[len(bounds) :]
        bounds += [problem.solve(tol=gap.tol, time_limit=0.0) for problem in rest]
    return bounds


def balance_of(
    free: Bound,
    bound: Bound,
    *,
    tol: float = TOLERANCE,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
) -> Bound:
    """Bound the balance function from solved audits of one mechanism at b = 0 and at b.

    A small difference of large leakages needs tighter bounds than the leakages themselves: audits
    whose gap is too wide for `tol` are refined, both within one time limit.

    Parameters
    ----------
    free, bound : Bound
        The results of `record_leakage` or `group_leakage` for a floor of 0 and for b.
    tol : float
        Relative gap to reach.
    time_limit : float, optional
        Seconds for both refinements together; no limit if None.
    work_limit : float or None
        As for `Problem.solve`, for each refinement.

    Raises
    ------
    ValidationError
        Anything but two such bounds, in nats, on the same records; or an option out of range.

    Examples
    --------
    >>> from cvxleak.audit import balance_of, record_leakage
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]])
    >>> free, bound = (record_leakage(mechanism, b) for b in (0.0, 2.0))
    >>> print(balance_of(free, bound, tol=1e-2))
    balance: 0.3177... to 0.3177... nats (CERTIFIED)
    """
    allowed = real_number(tol, "tol", 0.0, open_low=True, open_high=True)
    clock = Clock(time_limit)
    whole = _certificate(free, "free").problem
    if whole != {**_certificate(bound, "bound").problem, "entropy_floor": 0.0}:
        raise ValidationError(
            f"free: found an audit at a floor of {short(whole['entropy_floor'])}; an audit at a "
            "floor of 0 is needed, of the same mechanism and records as `bound`"
        )
    wanted = 0.4 * allowed * (free.lower - bound.upper)
    cut, refined = False, []
    for part in (free, bound):
        if not cut and _sharp(part) and 0 < wanted < part.gap:
            try:
                part = part.refine(wanted / part.upper, clock.limit, work_limit)
            except SolveInterrupted as error:
                part, cut = error.bound, True
        refined.append(part)
    free, bound = refined
    # g >= 0 because L is non-increasing (DALENIUS Lemma 1).
    lower = max(math.nextafter(free.lower - bound.upper, -math.inf), 0.0)
    upper = math.nextafter(free.upper - bound.lower, math.inf)
    parts = {"capacity": _certificate(free, "free"), "leakage": _certificate(bound, "bound")}
    certificate = Certificate(
        "balance",
        parts["leakage"].problem,
        lower,
        upper,
        _difference(parts["capacity"].witness, parts["leakage"].proof),
        _difference(parts["capacity"].proof, parts["leakage"].witness),
    )
    found = Bound.proved(
        "balance",
        lower,
        upper,
        tol=allowed,
        witness=(free.witness, bound.witness),
        certificate=certificate,
        stats=_together(free.stats, bound.stats),
    )
    if cut:
        raise SolveInterrupted(found)
    return found


def _difference(capacity: Mapping[str, Any], leakage: Mapping[str, Any]) -> dict[str, Any]:
    return {"rule": "difference", "capacity": dict(capacity), "leakage": dict(leakage)}


def _sharp(bound: Bound) -> bool:
    """Whether an audit reached its tolerance, so that it can be continued with a smaller one."""
    interrupted = bound.stats.get("stopped") is Stopped.INTERRUPTED
    return bound.status is Status.CERTIFIED and not interrupted


def _together(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics of audits taken together; the first that had to stop says why."""
    reasons = [part["stopped"] for part in parts if "stopped" in part]
    early = (reason for reason in reasons if reason is not Stopped.TOLERANCE)
    return {
        "method": "two audits, with and without the entropy floor, because the balance is their "
        "difference",
        "seconds": sum(part.get("seconds", 0.0) for part in parts),
        "nodes": sum(part.get("nodes", 0) for part in parts),
        "stopped": next(early, Stopped.TOLERANCE),
    }


def _certificate(bound: Bound, name: str) -> Certificate:
    """Return the certificate of an audit's bound in nats, or say that it is no such bound."""
    certificate = instance(bound, Bound, name).certificate
    if certificate is None or certificate.kind != "record-leakage" or bound.unit != "nats":
        kind = "none" if certificate is None else repr(certificate.kind)
        raise ValidationError(
            f"{name}: found a bound in {bound.unit} with certificate {kind}; an audit in nats "
            "with its certificate is needed"
        )
    return certificate
