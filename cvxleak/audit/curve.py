"""`leakage_curve`: maximal leakage over a grid of entropy floors, with proved monotone bounds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cvxleak.audit.record_leakage import SHANNON, TOLERANCE, RecordLeakage
from cvxleak.audit.search.audit import Audit, Reporter
from cvxleak.audit.search.audited_floors import AuditedFloors
from cvxleak.audit.search.turns import in_turns
from cvxleak.core.clock import WORK_LIMIT, Clock, Progress, Stop, check_progress
from cvxleak.core.errors import CertificateError, SolveInterrupted, ValidationError
from cvxleak.core.validation import Array, generator, in_order, real_number
from cvxleak.model import ChannelSet, Gain, Mechanism, RealOutput
from cvxleak.model.gain import Form
from cvxleak.model.knowledge import Knowledge
from cvxleak.problem import Bound, Gap, Status, Stopped
from cvxleak.problem.bound import BOUND_HEAD, bound_row
from cvxleak.problem.interrupts import Interrupts
from cvxleak.problem.problem import SHARPER
from cvxleak.problem.threads import one_thread
from cvxleak.proofs import Certificate
from cvxleak.proofs.bundle import save_certificates

__all__ = ["LeakageCurve", "leakage_curve"]


@dataclass(frozen=True)
class LeakageCurve:
    """Lower and upper bounds on L(b) for increasing entropy floors b; both are non-increasing.

    Attributes
    ----------
    entropy_floors : tuple of float
        b, in nats, strictly increasing.
    bounds : tuple of Bound
        One for each floor. The witness meets the floor and the certificate proves the bound. Either
        may come from the audit of a neighboring floor, since L(b) does not increase with b.
    solved : tuple of bool
        Whether the floor needed a search of its own; False if its neighbors or a closed form settle
        it.
    seconds : float
        Time for the whole curve.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.audit import leakage_curve
    >>> from cvxleak.queries import parity
    >>> floors = [0.0, 0.6, 1.2, 1.6, 2.0]
    >>> curve = leakage_curve(Mechanism(parity(3), binary_symmetric(0.1)), floors)
    >>> curve.lower.round(3)
    array([0.368, 0.368, 0.368, 0.281, 0.05 ])
    >>> curve.solved
    (False, False, False, True, True)
    """

    entropy_floors: tuple[float, ...]
    bounds: tuple[Bound, ...]
    solved: tuple[bool, ...]
    seconds: float

    @property
    def lower(self) -> Array:
        """The attained lower bounds, one for each floor."""
        return np.array([bound.lower for bound in self.bounds])

    @property
    def upper(self) -> Array:
        """The proved upper bounds, one for each floor."""
        return np.array([bound.upper for bound in self.bounds])

    def to(self, unit: str) -> LeakageCurve:
        """Return the same curve in ``"nats"`` or ``"bits"``; the floors stay in nats."""
        return replace(self, bounds=tuple(bound.to(unit) for bound in self.bounds))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each floor (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(
            {
                "entropy_floor": self.entropy_floors,
                "lower": self.lower,
                "upper": self.upper,
                "unit": [bound.unit for bound in self.bounds],
                "status": [bound.status.name for bound in self.bounds],
                "solved": self.solved,
            }
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificates of all floors to one file, which `verify` reads.

        Raises
        ------
        CertificateError
            A bound has no certificate.
        ValidationError
            The file cannot be written.
        """
        save_certificates([_certificate(bound) for bound in self.bounds], path)

    def __repr__(self) -> str:
        floors = self.entropy_floors
        ends = f", from {floors[0]:.6g} to {floors[-1]:.6g}" if floors else ""
        return f"LeakageCurve({len(floors)} entropy floors{ends})"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        pairs = zip(self.entropy_floors, self.bounds, strict=True)
        rows = ((floor, *bound_row(bound)) for floor, bound in pairs)
        return html_table("", ("entropy floor (nats)", *BOUND_HEAD), rows)

    def __str__(self) -> str:
        rows = [
            f"{b:.6g}: {bound.lower:.7g} to {bound.upper:.7g} {bound.unit} ({bound.verdict})"
            for b, bound in zip(self.entropy_floors, self.bounds, strict=True)
        ]
        name = next((one.name for one in self.bounds if one.name != "record leakage"), "leakage")
        return "\n".join([f"{name} by entropy floor", *rows])


def leakage_curve(
    mechanism: Mechanism,
    entropy_floors: Iterable[float],
    records: int | Sequence[int] | None = None,
    *,
    adversaries: Knowledge | Iterable[Knowledge] | None = None,
    gain: Gain = SHANNON,
    form: Form = "rise",
    tol: float = TOLERANCE,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    rng: int | np.random.Generator | None = 0,
    progress: Progress | None = None,
) -> LeakageCurve:
    """Bound L(b) = max over records and priors with H(X) >= b of I(X_i;Y) for each floor b.

    L does not increase with b (DALENIUS Lemma 1): an adversary who meets a floor meets every lower
    one, and an upper bound at a floor is also one at every higher floor. So each floor gets the
    best lower bound among itself and the floors above it, and the best upper bound among itself and
    those below it.

    Where the bound uses posterior cells, all floors share one local search, in which each floor
    tries what its neighbors found, and one branch-and-bound tree: multipliers (lam, mu) that prove
    U at b prove U - lam (b' - b) at b' (`cvxleak.audit.search.floors_search`). For records of more
    than two values, time sharing is tried first (`cvxleak.audit.search.sharing`). Floors that
    remain open are audited in turns, from the outermost inward, as long as the bounds around them
    differ by more than the tolerance. With `adversaries`, all floors are audited in this way; the
    constraints are the same at every floor, so the curve is non-increasing there, too.

    Parameters
    ----------
    mechanism : Mechanism
        If its channel is only known to lie in a `ChannelSet`, each floor is audited separately.
    entropy_floors : iterable of float
        b, in nats, strictly increasing, from 0 to log|X|.
    records : int or sequence of int, optional
        One record, or one group of records. If left out, the record that leaks most at each floor.
    adversaries : Knowledge or iterable of Knowledge, optional
        Further constraints on the adversaries' priors, at every floor (as for `RecordLeakage`).
    gain, form : Gain, str
        A gain other than Shannon's, and its form, as for `RecordLeakage`.
    tol : float
        Relative gap to reach at every floor: upper - lower <= max(tol * upper, 1e-7), where 1e-7 is
        in nats or in the gain's unit.
    time_limit : float, optional
        Seconds for the whole curve. The searches of the floors alternate, so that each has had its
        share when time runs out.
    rng : int, numpy.random.Generator or None
        Seed or generator of the local search's random starts; the same seed gives the same result.
    progress : callable, optional
        Called as progress(lower, upper, nodes) during the search: the bounds at the floor being
        worked on, or at the one with the largest gap, and the number of nodes bounded so far.

    Returns
    -------
    LeakageCurve

    Raises
    ------
    ValidationError
        No floors, floors that are not strictly increasing, an option out of range, or a gain or
        form that `RecordLeakage` refuses.
    InfeasibleError
        A floor above log|X|, or above the entropy of every prior that `adversaries` allow.

    Notes
    -----
    LEAKAGE draws such curves from local optima (its Figure 3); they are not monotone.

    Examples
    --------
    >>> from cvxleak.mechanisms import random_rounding
    >>> from cvxleak.model import Guess, Mechanism
    >>> from cvxleak.audit import leakage_curve
    >>> from cvxleak.queries import count
    >>> rounded = Mechanism(count(4), random_rounding(4, base=3))
    >>> print(leakage_curve(rounded, [0.0, 1.5, 2.5]))
    leakage by entropy floor
    0: 0.6931472 to 0.6931472 nats (CERTIFIED)
    1.5: 0.67507... to 0.6751... nats (CERTIFIED)
    2.5: 0.26664... to 0.2666... nats (CERTIFIED)

    If every adversary knows that ones are rare:

    >>> from cvxleak.model import KnownMarginals
    >>> rare = KnownMarginals([0.8, 0.2])
    >>> leakage_curve(rounded, [0.0, 0.5, 1.5], adversaries=rare).upper.round(3)
    array([0.5  , 0.5  , 0.323])

    By how much the chance of guessing a record rises:

    >>> leakage_curve(rounded, [0.0, 2.4, 2.7], gain=Guess()).upper.round(3)
    array([0.5  , 0.359, 0.244])
    """
    check_progress(progress)
    floors = tuple(
        real_number(b, "entropy_floors", 0.0) for b in in_order(entropy_floors, "entropy_floors")
    )
    clock = Clock(time_limit, work_limit, searches=len(floors))
    if not floors or any(low >= high for low, high in pairwise(floors)):
        raise ValidationError("entropy_floors: expected strictly increasing numbers, at least one")
    real_number(tol, "tol", 0.0, 1.0, open_high=True)
    known = tuple(adversaries) if isinstance(adversaries, Iterable) else adversaries
    problems = [
        RecordLeakage(mechanism, b, records, adversaries=known, gain=gain, form=form)
        for b in floors
    ]
    apart = isinstance(mechanism.noise, RealOutput | ChannelSet)
    if apart or not problems[0].told.is_leakage:
        options: dict[str, Any] = {
            "work_limit": work_limit,
            "rng": generator(rng),
            "progress": progress,
        }
        return _floor_by_floor(problems, tol, clock, apart=apart, **options)
    search = _Search(problems, tol, generator(rng), Reporter(progress=progress))
    found, stopped = search.run(clock)
    bounds = tuple(
        _said(tightened(found, place, b, tol), stopped) for place, b in enumerate(floors)
    )
    solved = tuple(place in search.searched for place in range(len(floors)))
    curve = LeakageCurve(floors, bounds, solved, clock.seconds)
    if stopped is Stopped.INTERRUPTED:
        raise SolveInterrupted(curve)
    return curve


def _floor_by_floor(
    problems: list[RecordLeakage],
    tol: float,
    clock: Clock,
    *,
    apart: bool,
    **options: Any,
) -> LeakageCurve:
    """Return bounds that are found one by one; if not `apart`, those that others leave open."""
    floors = tuple(problem.entropy_floor for problem in problems)
    found: dict[int, Bound] = {}
    stopped = Stopped.TOLERANCE
    while True:
        known = [(place, bound.lower, bound.upper) for place, bound in sorted(found.items())]
        open_ = range(len(problems)) if apart else _open(known, len(problems), Gap(tol))
        if stopped is Stopped.INTERRUPTED and not apart:
            open_ = {0, len(problems) - 1}
        waiting = sorted(set(open_) - set(found))
        if not waiting:
            break
        place = _next(waiting, len(problems))
        share = 0.0 if stopped is Stopped.INTERRUPTED else clock.share(len(waiting))
        try:
            found[place] = problems[place].solve(tol=tol, time_limit=share, **options)
        except SolveInterrupted as error:
            found[place], stopped = error.bound, Stopped.INTERRUPTED
    ends = sorted(found.items())
    bounds = [bound for _, bound in ends]
    if not apart:
        bounds = [
            _said(tightened(ends, place, b, tol), found.get(place, bounds[0]).stats["stopped"])
            for place, b in enumerate(floors)
        ]
    solved = tuple(place in found for place in range(len(floors)))
    curve = LeakageCurve(floors, tuple(bounds), solved, clock.seconds)
    if stopped is Stopped.INTERRUPTED:
        raise SolveInterrupted(curve)
    return curve


def _next(waiting: Sequence[int], size: int) -> int:
    """Return the floor to audit next: the last or first, or else the middle of the widest gap."""
    for end in (size - 1, 0):
        if end in waiting:
            return end
    return _middle(waiting)


def _middle(places: Sequence[int]) -> int:
    """Return the middle of the widest stretch of places."""
    stretches = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    widest = max(stretches, key=len)
    return int(widest[(len(widest) - 1) // 2])


class _Search:
    """The searches at all floors: one for all of them together, and audits of what it leaves."""

    def __init__(
        self,
        problems: list[RecordLeakage],
        tol: float,
        rng: np.random.Generator,
        report: Reporter,
    ) -> None:
        self._problems, self._gap, self._rng = problems, Gap(tol), rng
        self._report = report
        self._together: AuditedFloors | None = None
        if len(problems) > 1 and not problems[0].adversaries:
            together = AuditedFloors(problems, tol, rng)
            self._together = together if together.small else None
        self._audits: dict[int, Audit] = {}
        self._reached: list[tuple[int, Bound]] = []  # by the one for all floors
        self._too_large = False

    @property
    def searched(self) -> set[int]:
        """The floors that took a search."""
        return set(self._audits) | (self._together.searched if self._together else set())

    def run(self, clock: Clock) -> tuple[list[tuple[int, Bound]], Stopped]:
        """Return proved bounds with the places of their floors, and why the search ended."""
        stop = Stop(clock, self._proof_seconds)
        aim, stopped = self._gap, Stopped.TOLERANCE
        with one_thread(), Interrupts() as interrupts:
            while True:
                try:
                    self._search(aim, stop)
                except KeyboardInterrupt:
                    stopped = Stopped.INTERRUPTED
                interrupts.protected = True
                early = stop() or stopped is Stopped.INTERRUPTED
                if self._together is not None and early and self._open(self._gap):
                    self._reached = list(enumerate(self._together.bounds(closed_only=False)))
                for end in (len(self._problems) - 1, 0):
                    if not self._reached:
                        self._audit(end)
                found = self._reached + [
                    (
                        place,
                        audit.problem.go_on(
                            lambda audit=audit: audit, self._gap.tol, 0.0, spent=audit.seconds
                        ),
                    )
                    for place, audit in self._audits.items()
                ]
                if interrupts.seen:
                    stopped = Stopped.INTERRUPTED
                elif stop():
                    stopped = Stopped.at_limit(clock)
                elif self._too_large:
                    stopped = Stopped.TOO_LARGE
                ends = [(place, bound.lower, bound.upper) for place, bound in found]
                is_open = _open(ends, len(self._problems), self._gap)
                if stopped is not Stopped.TOLERANCE or not is_open:
                    return found, stopped
                # The search may have counted on digits that the proofs do not have.
                if aim.tol <= self._gap.tol / 2**SHARPER:
                    return found, Stopped.ROUNDING
                aim = Gap(aim.tol / 2)
                interrupts.protected = False

    def _search(self, gap: Gap, stop: Stop) -> None:
        """Work until no floor is open or the time is up."""
        if self._together is not None and not self._reached:
            self._together.run(stop, self._report)
            if stop():
                return
            self._reached = list(enumerate(self._together.bounds(closed_only=True)))
        last = len(self._problems) - 1

        def search(place: int, turns: int) -> bool:
            why = self._audit(place).search(gap, stop, self._report, turns)
            self._too_large |= why is Stopped.TOO_LARGE
            return why is None

        def first(places: Sequence[int]) -> int:
            # The highest floor first: perhaps no adversary meets it. It and the lowest one may
            # settle all floors between them.
            for end in (last, 0):
                if not self._reached and end in places and end not in self._audits:
                    return end
            # Then the widest stretch: where time runs out, all of the curve has been looked at.
            return _middle(places)

        in_turns(first, lambda: self._open(Gap(0.95 * gap.tol)), search, stop)
        for end in (last, 0):
            if not self._reached and end not in self._audits:
                search(end, 0)

    def _audit(self, place: int) -> Audit:
        if place not in self._audits:
            self._audits[place] = Audit(self._problems[place], self._rng)
        return self._audits[place]

    def _open(self, gap: Gap) -> list[int]:
        """Return the floors that are open, as far as is known before the proofs."""
        proved = [(place, bound.lower, bound.upper) for place, bound in self._reached]
        known = [(place, audit.lower, audit.upper) for place, audit in self._audits.items()]
        return _open(proved + known, len(self._problems), gap)

    def _proof_seconds(self) -> float:
        together = 0.0 if self._together is None else self._together.proof_seconds()
        return together + sum(audit.proof_seconds() for audit in self._audits.values())


def _said(bound: Bound, stopped: Stopped) -> Bound:
    """Return a bound that says why its search ended, for all of the curve."""
    why = Stopped.TOLERANCE if bound.status is Status.CERTIFIED else stopped
    return replace(bound, stats={**bound.stats, "stopped": why})


def _open(found: list[tuple[int, float, float]], size: int, gap: Gap) -> list[int]:
    """Return the floors at which the bounds of the curve are farther apart than the tolerance."""
    upper, lower = np.full(size, np.inf), np.full(size, -np.inf)
    for place, low, high in found:
        upper[place], lower[place] = min(upper[place], high), max(lower[place], low)
    upper = np.minimum.accumulate(upper)
    lower = np.maximum.accumulate(lower[::-1])[::-1]
    ends = zip(lower.tolist(), upper.tolist(), strict=True)
    return [place for place, (low, high) in enumerate(ends) if not gap.closed(low, high)]


def tightened(found: list[tuple[int, Bound]], place: int, floor: float, tol: float) -> Bound:
    """Return the bounds at a floor: the best witness from above, the best proof from below.

    `found` holds (place, bound) pairs in the order of increasing floors, of audits that differ in
    the floor only: an adversary above one floor is above all lower ones. So a witness counts for
    the floors below its own and a proof for those above.
    """
    low = min((p for p in found if p[0] <= place), key=lambda p: (p[1].upper, -p[0]))[1]
    high = max((p for p in found if p[0] >= place), key=lambda p: (p[1].lower, -p[0]))[1]
    if low is high:
        return low
    proof, witness = _certificate(low), _certificate(high)
    here = next((b for i, b in found if i == place), high)
    certificate = Certificate(
        proof.kind,
        {**proof.problem, "entropy_floor": min(floor, witness.problem["entropy_floor"])},
        high.lower,
        low.upper,
        witness.witness,
        proof.proof,
        unit=proof.unit,
    )
    return Bound.proved(
        low.name,
        high.lower,
        low.upper,
        tol=tol,
        unit=low.unit,
        witness=high.witness,
        certificate=certificate,
        shadow_prices=here.shadow_prices,
        stats=here.stats,
        resume=here._resume,
    )


def _certificate(bound: Bound) -> Certificate:
    if bound.certificate is None:
        raise CertificateError(f"{bound.name}: found a bound without a certificate; solve it anew")
    return bound.certificate
