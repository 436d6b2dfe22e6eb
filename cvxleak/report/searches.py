"""The quantities that are searched for: leakage under entropy floors, guesses, balance."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cvxleak.core.clock import Clock
from cvxleak.model import ChannelSet, Guess, Knowledge, Mechanism, RealOutput
from cvxleak.model.gain_form import GainForm
from cvxleak.problem.bound import Bound, converted
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.guessing import guess_rise
from cvxleak.report.names import BOUND
from cvxleak.report.neighbors import tightened
from cvxleak.report.progress import Progress, solved
from cvxleak.report.quantity import Quantity
from cvxleak.report.targets import Target

if TYPE_CHECKING:
    from cvxleak.audit import RecordLeakage

__all__ = ["Searches"]

MOST_VALUES = 3
"""Most values of a record for which it is: of more, some audits stay open."""

MOST_MULTIPLIERS = 500
"""Most outputs times values for which the chance of a guess is searched for: within seconds."""


class Searches:
    """Searches for the leakage of one mechanism, with common limits.

    Parameters
    ----------
    mechanism : Mechanism
    unit : str
    limits : mapping
        ``tol``, the relative gap that each search aims at, that of `RecordLeakage` if None;
        ``time_limit``, seconds for all of them, of which each may use an even share of what the
        others left; and the ``work_limit`` of each.
    progress : Progress
    adversaries : Knowledge or None
        What else is known of the adversaries' beliefs.
    told : GainForm or None
        Which gain is searched for beside the leakage and the chance of a guess.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        unit: str,
        limits: Mapping[str, Any],
        progress: Progress,
        adversaries: Knowledge | None = None,
        told: GainForm | None = None,
    ) -> None:
        from cvxleak.audit import RecordLeakage

        self.mechanism = mechanism
        self.unit = unit
        tol, self.time_limit = limits["tol"], limits["time_limit"]
        self.tol = RecordLeakage.tolerance if tol is None else tol
        self.options = {"tol": self.tol, "work_limit": limits["work_limit"]}
        self.progress = progress
        self.adversaries = adversaries
        self.told = told

    def run(self, targets: Sequence[Target], floors: Sequence[float]) -> Iterator[Quantity]:
        """Yield leakage, guesses and balance for every target and floor (in the unit)."""
        from cvxleak.audit import RecordLeakage

        most = self.mechanism.space.max_entropy
        known_in_part = isinstance(self.mechanism.noise, ChannelSet)
        work = {
            target: sorted({*floors, 0.0} if target.size == 1 else {*floors}) for target in targets
        }
        waiting = sum(len(row) for row in work.values())
        clock = Clock(self.time_limit)
        for target, row in work.items():
            found: list[Bound] = []
            inside = [min(converted(floor, self.unit), most) for floor in row]
            for place, floor in enumerate(row):
                problem = RecordLeakage(
                    self.mechanism,
                    inside[place],
                    target.record,
                    target.size,
                    adversaries=self.adversaries,
                )
                share = clock.share(waiting)
                waiting -= 1
                what = f"leakage at entropy floor {floor:g} {self.unit}"
                found.append(self._solve(problem, what, share))
            # Where a search was cut short, its neighbors may know more.
            bounds = [tightened(found, place, b, self.tol) for place, b in enumerate(inside)]
            if known_in_part:  # each has two widths of its own
                bounds = found
            for floor, bound in zip(row, bounds, strict=True):
                yield from self._leakage(target, floor, bound, clock, waiting + len(row))
                # Of a set of channels the difference is mostly what the set leaves open.
                if target.size == 1 and floor > 0.0 and not known_in_part:
                    share = clock.share(waiting + len(row))
                    yield self._balance(target, floor, bounds[0], bound, share)

    def _solve(self, problem: RecordLeakage, what: str, seconds: float | None) -> Bound:
        options = self.options | {"time_limit": seconds, "progress": self.progress.update}
        return solved(self.progress, what, problem.solve, unit=problem.unit, **options)

    def _leakage(
        self, target: Target, floor: float, bound: Bound, clock: Clock, searches: int
    ) -> Iterator[Quantity]:
        """Yield the leakage and the guesses; `searches` others may still need time."""
        witness = bound.witness
        records = witness.records
        values = len(witness.lumped.values)
        about: dict[str, Any] = {
            "record": records if len(records) > 1 else records[0],
            "entropy_floor": floor,
        }
        meaning = say.leakage(target.subject, bound.lower, bound.upper, values, self.unit)
        if self.adversaries is not None:
            # Against fewer people less is disclosed.
            meaning = f"{meaning} {say.of_those_who(self.adversaries.statement)}"
        meaning += say.of_set(bound.set_width, self.unit)
        if isinstance(self.mechanism.noise, RealOutput):
            meaning += f" {say.REAL_OUTPUT}"
        yield Quantity.of_bound(
            names.RECORD_LEAKAGE if target.size == 1 else names.GROUP_LEAKAGE,
            bound,
            self.unit,
            meaning,
            **about,
        )
        before, after = witness.guess()
        for name, when, chance in (
            (names.GUESS_BEFORE, "before", before),
            (names.GUESS_AFTER, "after", after),
        ):
            meaning = say.guess(target.subject, when)
            yield Quantity.computed(name, chance, names.PROBABILITY, meaning, **about)
        fano = guess_rise(bound.upper, self._most_values(target)).fano
        attained = min(max(after - before, 0.0), fano)
        rise = Quantity(
            names.RISE,
            attained,
            fano,
            names.PROBABILITY,
            BOUND,
            say.rise_by_fano(target.subject),
            **about,
        )
        wanted: dict[str, GainForm] = {}
        if self._guesses:
            wanted[names.CHANCE] = GainForm(Guess(), "posterior")
            wanted[names.RISE] = GainForm(Guess(), "rise")
        else:
            yield rise
        if self.told is not None and self.told not in wanted.values():
            wanted[names.GAIN] = self.told
        sentences = {names.CHANCE: say.chance, names.RISE: say.rise}
        for name, told in wanted.items():
            share = clock.share(len(wanted) + searches)
            problem, found = self._gain(target, floor, told, share)
            sentence = sentences.get(name)
            meaning = problem.meaning if sentence is None else sentence(target.subject)
            exact = Quantity.of_bound(name, found, self.unit, meaning, **about)
            beaten = name == names.RISE and exact.open and fano < exact.upper
            yield rise if beaten else exact

    @property
    def _guesses(self) -> bool:
        """Whether the largest chance of a guess is searched for too."""
        mechanism, values = self.mechanism, max(self.mechanism.space.shape)
        if isinstance(mechanism.noise, RealOutput) or values > MOST_VALUES:
            return False
        return values * len(mechanism.noise.outputs) <= MOST_MULTIPLIERS

    def _gain(
        self, target: Target, floor: float, told: GainForm, seconds: float | None
    ) -> tuple[RecordLeakage, Bound]:
        from cvxleak.audit import RecordLeakage

        most = self.mechanism.space.max_entropy
        problem = RecordLeakage(
            self.mechanism,
            min(converted(floor, self.unit), most),
            target.record,
            target.size,
            adversaries=self.adversaries,
            gain=told.gain,
            form=told.form,
        )
        what = f"{told.name} at entropy floor {floor:g} {self.unit}"
        return problem, self._solve(problem, what, seconds)

    def _most_values(self, target: Target) -> int:
        """Return the largest number of values of a record, or group, that the bound is for."""
        shape = self.mechanism.space.shape
        if target.record is not None:
            return shape[target.record]
        return max(math.prod(shape[i] for i in g) for g in self.mechanism.groups(target.size))

    def _balance(
        self, target: Target, floor: float, free: Bound, bound: Bound, share: float | None
    ) -> Quantity:
        # g(b) = C_1 - L(b) >= 0, DALENIUS Definition 10.
        from cvxleak.audit import balance_of

        solve = functools.partial(balance_of, free, bound)
        found = solved(self.progress, names.BALANCE, solve, time_limit=share, **self.options)
        return Quantity.of_bound(
            names.BALANCE,
            found,
            self.unit,
            say.balance(target.subject),
            record=target.record,
            entropy_floor=floor,
        )
