"""`leakage_curve`: maximal leakage over a grid of entropy floors, with proved monotone bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cvxleak.audit.record_leakage import SHANNON, TOLERANCE, RecordLeakage
from cvxleak.audit.worst_adversary.audit import Audit, Reporter
from cvxleak.core.clock import WORK_LIMIT, Clock, Progress, check_progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import Array, generator, in_order, real_number
from cvxleak.model import ChannelSet, Gain, Mechanism
from cvxleak.model.gain import Form
from cvxleak.model.knowledge import Knowledge
from cvxleak.problem import Bound, Gap, Status, Stopped
from cvxleak.problem.curve import Curve, certificate_of

__all__ = ["LeakageCurve", "leakage_curve"]


@dataclass(frozen=True, repr=False)
class LeakageCurve(Curve):
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
    def _axis(self) -> tuple[str, tuple[float, ...]]:
        return "entropy_floor", self.entropy_floors

    def to_frame(self) -> Any:
        """Return one row for each floor as a pandas DataFrame (needs pandas)."""
        return super().to_frame().assign(solved=self.solved)

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

    And a proof with multiplier lam of U at b proves U - lam (b' - b) at every other floor b'. So
    floors are audited from the outermost inward, as long as the bounds that those before give them
    differ by more than the tolerance, and each search starts from what was found next to it. With
    `adversaries`, the constraints are the same at every floor, so the curve is non-increasing
    there, too.

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
        Seconds for the whole curve. Floors whose turn does not come get what their neighbors prove.
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
    search = _Curve(problems, tol, generator(rng), Reporter(progress=progress), work_limit)
    interrupted = search.run(clock)
    curve = LeakageCurve(
        floors,
        tuple(search.bound(place) for place in range(len(floors))),
        tuple(search.searched(place) for place in range(len(floors))),
        clock.seconds,
    )
    if interrupted:
        raise SolveInterrupted(curve)
    return curve


class _Curve:
    """The searches at the floors of a curve, each of which starts from what the others found.

    Attributes
    ----------
    found : dict of Bound
        The bounds of the floors that were searched, by place.
    """

    def __init__(
        self,
        problems: Sequence[RecordLeakage],
        tol: float,
        rng: np.random.Generator,
        report: Reporter,
        work_limit: float | None,
    ) -> None:
        self._work_limit = work_limit
        self._problems, self._gap, self._rng, self._report = problems, Gap(tol), rng, report
        self._audits: dict[int, Audit] = {}
        self._floors = np.array([problem.entropy_floor for problem in problems])
        self._above: dict[int, Array] = {}
        self.found: dict[int, Bound] = {}
        self._stopped = Stopped.TOLERANCE

    def run(self, clock: Clock) -> bool:
        """Search floors until none is open; return whether that was interrupted."""
        interrupted = False
        while waiting := self._waiting(interrupted):
            place = _next(waiting, len(self._problems))
            audit = Audit(self._problems[place], self._rng, self._report, self._next_to(place))
            self._audits[place] = audit
            left = 0.0 if interrupted else clock.limit
            try:
                bound = self._problems[place].go_on(
                    lambda a=audit: a, self._gap.tol, left, self._work_limit
                )
            except SolveInterrupted as error:
                bound, interrupted = error.bound, True
            self.found[place] = bound
            # What is proved at a floor is proved at every higher one.
            above = self._above[place] = audit.upper_at(self._floors)
            np.minimum(above[place:], bound.upper, out=above[place:])
            if bound.status is not Status.CERTIFIED:
                self._stopped = bound.stats["stopped"]
        return interrupted

    def _next_to(self, place: int) -> list[Audit]:
        """Return the audits of the floors next to one, the higher first: its cells are smaller."""
        above = min((i for i in self._audits if i > place), default=None)
        below = max((i for i in self._audits if i < place), default=None)
        return [self._audits[i] for i in (above, below) if i is not None]

    def searched(self, place: int) -> bool:
        """Whether a floor took a search of its own."""
        return place in self._audits and self._audits[place].searched

    def _waiting(self, interrupted: bool) -> list[int]:
        """Return the floors that are to be searched."""
        size = len(self._problems)
        places = range(size)
        if interrupted:
            places = {0, size - 1}
        elif self.found and not isinstance(self._problems[0].mechanism.noise, ChannelSet):
            places = [
                place
                for place in places
                if not self._gap.closed(self._lower(place)[0], self._upper(place)[0])
            ]
        return sorted(set(places) - set(self.found))

    def _lower(self, place: int) -> tuple[float, int]:
        """Return the largest lower end at a floor, and the place where it was found.

        An adversary above one floor is above all lower ones.
        """
        known = [(bound.lower, i) for i, bound in self.found.items() if i >= place]
        return max(known, default=(-math.inf, -1))

    def _upper(self, place: int) -> tuple[float, int]:
        """Return about the least upper end at a floor, and the place where its proof was found.

        The multipliers of a proof at one floor are a proof at every other one.
        """
        known = [(float(uppers[place]), i) for i, uppers in self._above.items()]
        return min(known, default=(math.inf, -1))

    def bound(self, place: int) -> Bound:
        """Return the bounds at a floor: the best witness and the best proof of all."""
        (_, at), (_, source) = self._lower(place), self._upper(place)
        problem, known = self._problems[place], self.found.get(place)
        if at == source == place and known is not None:
            return known
        below, audit = self.found[at], self._audits[source]
        witness = certificate_of(below)
        statement, content = audit.at(problem)
        proof = audit.upper_term(content["entropy_floor"])
        bound = Bound.of_terms(
            below.name,
            witness.kind,
            content,
            witness.witness,
            proof,
            statement=statement,
            tol=self._gap.tol,
            witness=below.witness,
            shadow_prices=(known or below).shadow_prices,
            resume=lambda tol, time, work: problem.solve(tol=tol, time_limit=time, work_limit=work),
        )
        closed = self._gap.closed(bound.lower, bound.upper)
        stopped = Stopped.TOLERANCE if closed else self._stopped
        stats = {**(known or self.found[source]).stats, "stopped": stopped}
        return replace(bound, stats=stats)


def _next(waiting: Sequence[int], size: int) -> int:
    """Return the floor to audit next: the last or first, or else the middle of the widest gap.

    The highest floor first: perhaps no adversary meets it.
    """
    for end in (size - 1, 0):
        if end in waiting:
            return end
    stretches = np.split(waiting, np.flatnonzero(np.diff(waiting) > 1) + 1)
    widest = max(stretches, key=len)
    return int(widest[(len(widest) - 1) // 2])
