"""The balance function: what dropping the entropy floor adds to the maximal leakage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from cvxleak.audit.record_leakage import TOLERANCE, RecordLeakage
from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import instance, short
from cvxleak.model import Mechanism
from cvxleak.model.knowledge import Knowledge
from cvxleak.problem import Bound, Gap, Status, Stopped
from cvxleak.proofs import Certificate

__all__ = ["balance", "balance_of"]


def balance(
    mechanism: Mechanism,
    entropy_floor: float,
    *,
    adversaries: Knowledge | Iterable[Knowledge] | None = None,
    tol: float = TOLERANCE,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    **options: Any,
) -> Bound:
    """Bound the balance function g(b) = C_1 - C_1^b (DALENIUS Definition 10).

    g(b) is the extra leakage if the entropy floor is dropped. Its lower bound is the lower bound on
    C_1 minus the upper bound on C_1^b; its upper bound is the upper bound on C_1 minus the lower
    bound on C_1^b. The witness is the pair of adversaries that attain the lower bounds on C_1 and
    C_1^b. Both capacities are bounded as tightly as the tolerance on the difference requires,
    within one time limit.

    Parameters
    ----------
    mechanism : Mechanism
    entropy_floor : float
        b, in nats.
    adversaries : Knowledge or iterable of Knowledge, optional
        Further constraints on the adversaries' priors, at both floors.
    tol, time_limit, work_limit
        As for `Problem.solve`; `time_limit` covers both audits together, and so does twice the
        `work_limit`.
    **options
        As for `RecordLeakage`.

    Examples
    --------
    >>> from cvxleak.audit import balance
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> print(balance(Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]), entropy_floor=1.0))
    balance: 0 to ... nats (CERTIFIED)
    """
    problems = [RecordLeakage(mechanism, b, adversaries=adversaries) for b in (0.0, entropy_floor)]
    solve = [partial(problem.solve, tol=tol, **options) for problem in problems]
    clock = Clock(time_limit, work_limit, searches=2)
    return _sharpened(_in_turn(solve, clock, tol), clock, tol)


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
        As for `Problem.solve`; both refinements together may do twice as much.

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
    clock = Clock(time_limit, work_limit, searches=2)
    whole = _certificate(free, "free").problem
    if whole != {**_certificate(bound, "bound").problem, "entropy_floor": 0.0}:
        raise ValidationError(
            f"free: found an audit at a floor of {short(whole['entropy_floor'])}; an audit at a "
            "floor of 0 is needed, of the same mechanism and records as `bound`"
        )
    return _sharpened((free, bound), clock, Gap(tol).tol)


def _sharpened(parts: Sequence[Bound], clock: Clock, tol: float) -> Bound:
    """Refine the audits whose gap is too wide, and return their difference."""
    free, bound = parts
    wanted = 0.4 * tol * (free.lower - bound.upper)

    def refined(part: Bound, **limits: Any) -> Bound:
        ended = part.status is Status.CERTIFIED and part.stats.get("stopped") is Stopped.TOLERANCE
        wide = ended and 0 < wanted < part.gap
        return part.refine(wanted / part.upper, **limits) if wide else part

    return _difference(_in_turn([partial(refined, part) for part in parts], clock, tol), tol)


def _in_turn(steps: Sequence[Callable[..., Bound]], clock: Clock, tol: float) -> list[Bound]:
    """Take both steps, each in an even part of the time and work that is left.

    After Ctrl-C the second one has no time; then what is known of the difference is raised.
    """
    found: list[Bound] = []
    interrupted = False
    for parts, step in zip((2, 1), steps, strict=True):
        limits = {name: x if x is None else x / parts for name, x in clock.limits.items()}
        try:
            found.append(step(**limits))
        except SolveInterrupted as error:
            found.append(error.bound)
            interrupted, clock = True, Clock(0.0)
    if interrupted:
        raise SolveInterrupted(_difference(found, tol))
    return found


def _difference(parts: Sequence[Bound], tol: float) -> Bound:
    """Return the bounds on the difference that the bounds of two audits prove."""
    free, bound = parts
    # g >= 0 because L is non-increasing (DALENIUS Lemma 1).
    lower = max(math.nextafter(free.lower - bound.upper, -math.inf), 0.0)
    upper = math.nextafter(free.upper - bound.lower, math.inf)
    capacity, leakage = _certificate(free, "free"), _certificate(bound, "bound")
    sides = (capacity.witness, leakage.proof), (capacity.proof, leakage.witness)
    below, above = (
        {"rule": "difference", "capacity": dict(of_free), "leakage": dict(of_bound)}
        for of_free, of_bound in sides
    )
    reasons = [part.stats.get("stopped", Stopped.TOLERANCE) for part in parts]
    return Bound.proved(
        "balance",
        lower,
        upper,
        tol=tol,
        witness=(free.witness, bound.witness),
        certificate=Certificate("balance", leakage.problem, lower, upper, below, above),
        stats={
            "method": "two audits, with and without the entropy floor, because the balance is "
            "their difference",
            "seconds": sum(part.stats.get("seconds", 0.0) for part in parts),
            "nodes": sum(part.stats.get("nodes", 0) for part in parts),
            "stopped": next((x for x in reasons if x is not Stopped.TOLERANCE), reasons[0]),
        },
    )


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
