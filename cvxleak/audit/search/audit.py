"""The engine of the audit: local search from below, several bounds from above."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from flint import arb, fmpz

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.old_terms import in_terms
from cvxleak.audit.search.adversary_domain import Domain
from cvxleak.audit.search.audited_group import AuditedGroup
from cvxleak.core.clock import Clock, Progress, Stop, check_progress
from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import content
from cvxleak.core.validation import Array, generator
from cvxleak.exact import balls
from cvxleak.iterative import IterativeResult, meet_entropy_floor
from cvxleak.iterative.joint import climb_jointly
from cvxleak.measures import lumped_information
from cvxleak.model import Lumped, Mechanism
from cvxleak.model.gain_form import GainForm
from cvxleak.model.knowledge import Knowledge
from cvxleak.model.knowledge.binding import exchangeable
from cvxleak.model.restricted import Restricted, restrict
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.proofs.bounds.adversary_class import check_doubt

__all__ = [
    "Audit",
    "Reporter",
    "Statement",
    "above_floor",
    "ascend",
    "classes_of",
    "content_of",
    "floor_of",
    "identity_of",
    "moved",
    "target",
]

T = TypeVar("T")

SINGLE_PRECISION = 1e-6
"""Relative gaps above this are certified with multipliers stored in single precision."""

ENTRY_SECONDS = 2e-7
"""About how long it takes to prove the lower bound and write the certificate, per probability."""

HARD = 64
"""Batches of nodes after which a problem counts as hard: more random starts may find more."""

GAIN = 1e-10
"""Nats per cycle below which the local search ends."""

PROMISING = 0.98
"""Share of the largest leakage found that a local search has to reach soon, to be gone on with."""


def _no_report(lower: float, upper: float, nodes: int) -> None:
    """Report nothing."""


class Statement(Protocol):
    """What a search needs of a `RecordLeakage`."""

    @property
    def mechanism(self) -> Mechanism:
        """Query and noise."""
        ...

    @property
    def entropy_floor(self) -> float:
        """b, in nats."""
        ...

    @property
    def records(self) -> tuple[int, ...] | None:
        """The group that is audited; all groups if None."""
        ...

    @property
    def size(self) -> int:
        """Number of records in a group."""
        ...

    @property
    def adversaries(self) -> tuple[Knowledge, ...]:
        """What is known of the priors."""
        ...

    @property
    def told(self) -> GainForm:
        """The gain, and its form."""
        ...

    def go_on(
        self,
        begin: Callable[[], Any],
        tol: float | None,
        time_limit: float | None,
        work_limit: float | None = None,
        *,
        spent: float = 0.0,
    ) -> Bound:
        """Go on with a search, and return the proved bounds."""
        ...


class Audit:
    """The search of one audit.

    What is done next is decided by counted work, and the clock only ends it: as long as the time
    limit is not reached, the same seed gives the same answer whatever the limit.

    Attributes
    ----------
    problem : Statement
    floor : float
    lower : float
        What the worst adversary so far learns.
    seconds : float
        What the turns of `search` took.
    """

    def __init__(
        self,
        problem: Statement,
        rng: int | np.random.Generator | None,
        report: Progress = _no_report,
    ) -> None:
        self.problem = problem
        self.seconds = 0.0
        self._rng = generator(rng)
        self._report = report
        self._reported: Clock | None = None
        self.floor = floor_of(problem)
        self.lower = -np.inf
        self._best: tuple[AuditedGroup, Array] | None = None
        self._found: Found | None = None
        self._multiplier = 0.0
        # The classes of groups of records; for each the place of its lumped problem in `_groups`,
        # which has each lumped problem once. They are lumped one by one, as time allows.
        self._classes: list[tuple[int, ...]] | None = None
        self._same: list[int] = []
        self._places: dict[Any, int] = {}
        self._groups: list[AuditedGroup] = []
        # Of those that are about adversaries of whom more than a floor is known.
        self._domains: dict[AuditedGroup, Domain] = {}

    @property
    def upper(self) -> float:
        """The upper bound as it stands: no group of records leaks more."""
        known = max((group.upper for group in self._groups), default=0.0)
        return known if self._lumped_all else max(known, float(self._values.log()))

    def closed(self, gap: Gap) -> bool:
        """Whether the gap is closed, as far as is known before the proof."""
        return self.upper <= self._target(gap)

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(group.nodes for group in self._groups)

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed or something ends it."""
        # The caller that asked for the first bounds is told about that search alone.
        self._reported = self._reported or stop.clock
        report = self._report if self._reported is stop.clock else _no_report
        return self._search(gap, stop, report, math.inf) or Stopped.TOLERANCE

    def proof_seconds(self) -> float:
        """Return how long it will take to prove what has been found, and to write it down."""
        proofs = sum(group.proof_seconds() for group in self._groups if group.searches)
        lumped = 0 if self._best is None else self._best[0].lumped.rows.size
        return proofs + ENTRY_SECONDS * (self.problem.mechanism.channel.matrix.size + lumped)

    @property
    def _lumped_all(self) -> bool:
        return self._classes is not None and len(self._same) == len(self._classes)

    @property
    def _values(self) -> arb:
        """The largest number of values of an audited group: it leaks at most the logarithm."""
        problem = self.problem
        shape = problem.mechanism.space.shape
        chosen = problem.records
        sizes = sorted(shape)[-problem.size :] if chosen is None else [shape[i] for i in chosen]
        return arb(fmpz(math.prod(sizes)))

    def reached(self, gap: Gap, time_limit: float | None, work_limit: float | None = None) -> Bound:
        """Go on within the limits, and return the proved bounds."""
        return self.problem.go_on(lambda: self, gap.tol, time_limit, work_limit, spent=self.seconds)

    def search(self, gap: Gap, stop: Stop, report: Progress, turns: float) -> Stopped | None:
        """Work until the gap is closed or something ends it; say what.

        None stands for the turns of the searches, of which there are at most so many.
        """
        spent = Clock()
        try:
            return self._search(gap, stop, report, turns)
        finally:
            self.seconds += spent.seconds

    def _search(self, gap: Gap, stop: Stop, report: Progress, turns: float) -> Stopped | None:
        for group in self._lump(stop):
            if stop() and group is not self._groups[0]:
                return Stopped.at_limit(stop.clock)
            group.prepare(
                lambda weights, group=group: self._offer(group, weights),
                lambda starts, group=group: self._climb(group, starts, stop),
                lambda: self._target(gap),
                stop,
                self._rng,
            )
        while not self.closed(gap):
            if stop():
                return Stopped.at_limit(stop.clock)
            if turns <= 0:
                return None
            turns -= 1
            group = max(self._groups, key=lambda g: g.upper)
            if not self._advance(group, gap, stop, report):
                return Stopped.TOO_LARGE
        return Stopped.TOLERANCE

    def _lump(self, stop: Callable[[], bool]) -> Iterator[AuditedGroup]:
        """Yield the lumped problems, making those that are not there yet: at least one."""
        problem, mechanism = self.problem, self.problem.mechanism
        yield from list(self._groups)
        if self._classes is None:
            self._classes = classes_of(problem)
        for records in self._classes[len(self._same) :]:
            if self._groups and stop():
                return
            named = records[0] if len(records) == 1 else records
            restricted = None
            if problem.adversaries:
                restricted = restrict(mechanism, named, problem.adversaries)
            lumped = mechanism.lumped(named) if restricted is None else restricted.lumped
            constraints = None if restricted is None else restricted.constraints
            key: Any = constraints
            if len(self._classes) > 1:
                key = (identity_of(lumped), constraints)
            new = key not in self._places
            if new:
                group = self._group(records, lumped, restricted)
                if self._best is None:
                    self._offer(group, group.weights)
                self._groups.append(group)
                self._places[key] = len(self._groups) - 1
            self._same.append(self._places[key])
            if new:
                yield self._groups[-1]

    def _group(
        self, records: tuple[int, ...], lumped: Lumped, restricted: Restricted | None
    ) -> AuditedGroup:
        if restricted is None:
            return AuditedGroup(records, lumped, self.floor)
        domain = Domain(restricted, self.floor)
        group = AuditedGroup(records, lumped, self.floor, domain.limits)
        group.weights = domain.center
        self._domains[group] = domain
        return group

    def _target(self, gap: Gap) -> float:
        return target(self.lower, gap)

    def _advance(self, group: AuditedGroup, gap: Gap, stop: Stop, report: Progress) -> bool:
        """Work for a while on the class with the largest upper bound, if anything can be done.

        Progress is counted in nodes, not seconds, so that the same seed gives the same answer.
        """

        def on_weights(weights: Array) -> None:
            group.batches += 1
            report(self.lower, self.upper, self.nodes)
            # Powers of four: the local search takes a vanishing share of the time.
            powers = group.batches & (group.batches - 1) == 0 and group.batches.bit_length() % 2
            if powers and not stop():
                self._climb(group, weights[:8], stop)
                if group.batches >= HARD:
                    self._climb(group, group.starts, stop)

        resolution = self._target(gap) - self.lower
        return group.advance(lambda: self._target(gap), resolution, stop, on_weights)

    def _climb(self, group: AuditedGroup, starts: int | Array, stop: Stop) -> None:
        if group in self._domains:
            self._climb_within(group, self._domains[group], starts)
            return
        late = stop()
        steps = max(group.few_steps, 1) if late else group.steps
        run = self._ascend(group, starts, steps, (lambda: False) if late else stop)
        if not late and run.iterations == group.steps and run.value > PROMISING * self.lower:
            run = self._ascend(group, run.point[None], group.most_steps, stop)
        group.weights, group.multiplier = run.point, float(run.history["multiplier"][-1])
        if self._offer(group, run.point):
            self._multiplier = group.multiplier

    def _ascend(
        self, group: AuditedGroup, starts: int | Array, steps: int, stop: Callable[[], bool]
    ) -> IterativeResult:
        return ascend(group.merged, self.floor, starts, self._rng, steps, stop)

    def _climb_within(self, group: AuditedGroup, domain: Domain, starts: int | Array) -> None:
        found = domain.search(starts, self._rng, group.steps)
        for weights, multiplier in found:
            if self._offer(group, weights):
                self._multiplier = multiplier
        if found:
            group.weights = domain.meet(found[0][0])

    def _offer(self, group: AuditedGroup, weights: Array) -> bool:
        """Take `weights`, made to meet the floor, as the witness if it leaks more."""
        if group in self._domains:
            feasible = self._domains[group].meet(weights)
        else:
            feasible = meet_entropy_floor(weights, group.merged, self.floor)
        value = lumped_information(feasible, group.merged)
        if value > self.lower:
            self._best, self._multiplier = (group, feasible), 0.0
            self.lower = value
            return True
        return False

    def found(self, gap: Gap) -> Found:
        """Return the worst adversary so far, with what proves both bounds."""
        found, known = in_terms(self.entries()), self._found
        if known is not None and known.upper < found.upper:
            # Near log|X| a sharper bound may prove less: its multipliers are larger.
            parts = (*found.parts[:2], known.parts[2])
            found = replace(found, upper=known.upper, parts=parts)
        self._found = found
        return found

    def entries(self) -> Found:
        """Return the same with an entry for each group in place of the kernel's terms."""
        problem, mechanism = self.problem, self.problem.mechanism
        first = next(self._lump(lambda: True))
        group, weights = self._best or (first, first.weights)
        with balls.precision():
            weights, written = self._allowed(group, weights)
        # By what was reached, so that a refined audit that is asked for less says the same.
        dtype = "<f4" if self.upper - self.lower > SINGLE_PRECISION * self.upper else "<f8"
        entries = [known.entry(dtype) for known in self._groups]
        places: dict[int, int] = {}
        proof: list[dict[str, Any]] = []
        for place, known in enumerate(self._same):
            proof.append({"same_as": places[known]} if known in places else entries[known])
            places.setdefault(known, place)
        classes = self._classes or []
        proof += [{"records": list(records)} for records in classes[len(self._same) :]]
        return Found(
            self.lower,
            self.upper,
            Adversary(mechanism, group.records, weights, problem.adversaries),
            (
                content_of(problem, self.floor, mechanism.to_dict()),
                {"records": list(group.records), "weights": written},
                {"groups": proof},
            ),
            {"entropy_floor": -self._multiplier},
            {"method": _method(proof), "nodes": self.nodes},
        )

    def _allowed(
        self, group: AuditedGroup, weights: Array
    ) -> tuple[Array, list[float] | list[str]]:
        """Return a witness who is proved to be allowed, and how a certificate holds it."""
        domain = self._domains.get(group)
        if domain is not None:
            return moved(weights, domain.center, domain.allowed)
        found = above_floor(group.lumped, self.floor, weights)
        return found, found.tolist()


METHODS = {
    "cells": "branch and bound on cells of posteriors",
    "slabs": "branch and bound on slabs of conditional distributions",
    "sharing": "the time-sharing bound, one small problem for each value",
    "dataset": "a bound by what the output says of the whole dataset",
    "choices": "the capacity without an entropy floor",
}
"""What bounds the leakage from above, by the name that the proof gives it; the last one that a
proof has beside another is not what decided."""


def _method(proof: list[dict[str, Any]]) -> str:
    """Return the sentence that says what was done, and why."""
    used = {next((kind for kind in METHODS if kind in one), "") for one in proof}
    ways = [text for kind, text in METHODS.items() if kind in used]
    return (
        "local search from below, because information is not concave in the prior with an entropy "
        f"floor; from above {' and '.join(ways) or 'the entropy of the record'}, because no other "
        "bound was lower"
    )


def floor_of(problem: Statement) -> float:
    """Return the entropy floor, at most log|X| as floats have it.

    At b = log|X| rounding must not make the floor infeasible; a lower floor is on the safe side,
    since the leakage does not increase with b.
    """
    with balls.precision():
        most = balls.round_down(arb(fmpz(problem.mechanism.space.size)).log())
    return min(problem.entropy_floor, max(most, 0.0))


def target(lower: float, gap: Gap) -> float:
    """Return the upper bound that closes the gap.

    A little inside the tolerance, so that rounding outwards does not undo it.
    """
    return max(lower / (1 - 0.95 * gap.tol), lower + 0.9 * gap.absolute)


def ascend(
    lumped: Lumped,
    floor: float,
    starts: int | Array,
    rng: np.random.Generator,
    steps: int,
    stop: Callable[[], bool],
) -> IterativeResult:
    """Search for a worst adversary from some starts, or from so many random ones."""
    return climb_jointly(
        lumped, floor, starts=starts, rng=rng, max_iterations=steps, tol=GAIN, stop=stop
    )


def classes_of(problem: Statement) -> list[tuple[int, ...]]:
    """Return a group of records for each class of exchangeable ones that is audited."""
    if problem.records is not None:
        return [problem.records]
    parts = exchangeable(problem.mechanism.query, problem.adversaries)
    return problem.mechanism.groups(problem.size, parts)


def content_of(problem: Statement, floor: float, mechanism: dict[str, Any]) -> dict[str, Any]:
    """Return what a certificate holds of the problem."""
    stored: dict[str, Any] = {
        "mechanism": mechanism,
        "entropy_floor": floor,
        "size": problem.size,
        "records": None if problem.records is None else [list(problem.records)],
    }
    stored |= problem.told.to_dict()
    if problem.adversaries:
        stored["adversaries"] = [one.to_dict() for one in problem.adversaries]
    return stored


def identity_of(lumped: Lumped) -> tuple[Any, ...]:
    """Return what lumped problems with the same bounds have in common: a key for a dictionary."""
    return lumped.multiplicities, lumped.value_index.tobytes(), content(lumped.rows)


def above_floor(lumped: Lumped, floor: float, weights: Array) -> Array:
    """Return weights that are proved to meet the floor: moved a little, if need be."""

    def allowed(candidate: Array) -> Array:
        check_doubt(balls.normalized(candidate.tolist()), lumped.multiplicities, floor)
        return candidate

    return moved(weights, lumped.uniform(), allowed)


def moved(weights: Array, center: Array, allowed: Callable[[Array], T]) -> T:
    """Return what the first point that is allowed, from `weights` to `center`, is in a proof."""
    share = 0.0
    while True:
        try:
            return allowed((1 - share) * weights + share * center)
        except CertificateError:
            if share == 1.0:
                raise
            share = min(1.0, max(1e-13, 8 * share))


class Reporter:
    """Hands the state of the search to whoever asked for it, at most once a second in print."""

    def __init__(self, verbose: bool = False, progress: Progress | None = None) -> None:
        check_progress(progress)
        self._clock, self._verbose, self._progress = Clock(), verbose, progress
        self._last = 0.0

    def __call__(self, lower: float, upper: float, nodes: int) -> None:
        """Report the bounds and the number of nodes bounded so far."""
        if self._progress is not None:
            self._progress(lower, upper, nodes)
        now = self._clock.seconds
        if self._verbose and now - self._last >= 1.0:
            self._last = now
            print(f"{now:7.1f} s  {lower:.7g} to {upper:.7g} nats  {nodes} nodes")
