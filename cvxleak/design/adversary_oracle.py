"""The adversaries of a design: cuts, the search for new ones, and the certified audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, fmpq, fmpz

from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.audit.worst_adversary.audit import Audit as Engine
from cvxleak.audit.worst_adversary.choices import enumerable
from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolveInterrupted
from cvxleak.core.validation import Array, generator
from cvxleak.core.value import Value
from cvxleak.core.work import METER
from cvxleak.design.choices import worst_choices
from cvxleak.design.work import STEP, Work, work_of_updates
from cvxleak.iterative import joint_blahut_arimoto, meet_entropy_floor
from cvxleak.iterative.joint_update import Iterates, Updater, ascend
from cvxleak.kernel.numbers import lower, precision
from cvxleak.model import Channel, Lumped, Mechanism
from cvxleak.model._groups import kinds_of_groups
from cvxleak.problem import Bound, Stopped
from cvxleak.problem.curve import certificate_of
from cvxleak.proofs.bounds.design_rows import Law, Rows
from cvxleak.proofs.design import attacked_groups, forces_constants, leakage_of_priors, total_above

__all__ = ["AdversaryOracle", "Audit", "Audited", "Cut"]

STARTS = 3
"""Random starts of the local search, whose best result becomes a cut: three such searches, each
with three starts, took a quarter more time for the same bounds."""

GAIN = 1e-9
"""Nats per cycle below which a local search ends."""

APART = 1e-3
"""Adversaries of one channel that are nearer to one another count as one."""

WARM = 40
"""Most of the master's adversaries from which local searches start as well."""

ASCENT = 60
"""Updates of a local search that starts from an adversary of the master."""

CHOICES = 100
"""Most adversaries of one channel who know the context given each value: all that a floor of 0
needs."""

FEW = 20
"""Most of them where there is a floor."""

QUICK = 0.9
"""Largest relative tolerance of an audit."""


@dataclass(frozen=True, eq=False)
class Cut(Value):
    """An adversary: a group of records (none for the whole dataset) and what is believed.

    Attributes
    ----------
    group : tuple of int
    joint : array, shape (values of the group, rows)
        The distribution of the secret and the row.
    weights : array, shape (cells,)
        The same distribution on the cells of `Rows.cells`.
    prior : int or None
        Which of the given priors it is.
    """

    group: tuple[int, ...]
    joint: Array = field(repr=False)
    weights: Array = field(repr=False)
    prior: int | None = None

    def like(self, other: Cut, apart: float = 1e-6) -> bool:
        """Whether two adversaries are the same but for rounding, or a given distance."""
        return self.group == other.group and bool(
            np.abs(self.weights - other.weights).sum() < apart
        )


@dataclass(frozen=True)
class Audited:
    """What an audit of one channel proved.

    Attributes
    ----------
    upper : float
        No adversary learns more.
    value : float
        What the worst adversary that was found learns.
    cut : Cut
        It.
    proof : dict
        What a certificate stores.
    """

    upper: float
    value: float
    cut: Cut
    proof: dict[str, Any] = field(repr=False)


class Audit:
    """The audit of one channel, to be run as sharply as needed.

    `known` is an adversary who is likely to be the worst.
    """

    def __init__(self, oracle: AdversaryOracle, channel: Channel, known: Cut | None = None) -> None:
        self._oracle, self._channel, self._known = oracle, channel, known
        self._engine: Engine | None = None
        self._bound: Bound | None = None
        self._state: Audited | None = None
        self.stopped = Stopped.TOLERANCE  # why the last run ended
        self.work = 0.0  # of all runs, in multiplications

    @property
    def state(self) -> Audited:
        """What is proved so far."""
        return self.run(1.0) if self._state is None else self._state

    def run(self, tol: float, work: float = math.inf, clock: Clock | None = None) -> Audited:
        """Return both bounds within a relative `tol`, or as close as `work` allows."""
        oracle, channel = self._oracle, self._channel
        self.stopped = Stopped.TOLERANCE
        if oracle.priors is not None or oracle.size == 0:
            if self._state is None:
                if oracle.priors is not None:
                    self._state = oracle.audit_priors(channel, oracle.priors)
                else:
                    self._state = oracle.audit_total(channel)
        elif self._state is None or self._state.upper - self._state.value > tol * self._state.upper:
            self._state = oracle.from_audit(self._run(min(tol, QUICK), work, clock or Clock()))
        if (channel.matrix == channel.matrix[0]).all():
            self._state = replace(self._state, upper=0.0, value=0.0)
        return self._state

    def _run(self, tol: float, work: float, clock: Clock) -> Bound:
        """Run the engine."""
        oracle, known, bound = self._oracle, self._known, self._bound
        mechanism = Mechanism(oracle.rows.query, self._channel.matrix)
        problem = RecordLeakage(mechanism, oracle.floor, size=oracle.size)
        engine = self._engine
        if engine is None:
            self._engine = engine = Engine(problem, oracle.rng)
            if known is not None:
                lumped = mechanism.lumped(known.group)
                engine.start(known.group, oracle.lumped_weights(known, lumped))
        if bound is None or bound.gap > tol * bound.upper:
            before = METER.spent
            try:
                bound = problem.go_on(lambda: engine, tol, clock.limit, work)
                self.stopped = bound.stats["stopped"]
            except SolveInterrupted as error:
                bound, self.stopped = error.bound, Stopped.INTERRUPTED
            self.work += METER.spent - before
        self._bound = bound
        return bound


class AdversaryOracle:
    """All adversaries that a design has to stand up to."""

    def __init__(
        self,
        rows: Rows,
        size: int,
        entropy_floor: float | None,
        priors: Sequence[Law] | None,
        rng: int | np.random.Generator | None,
    ) -> None:
        self.rows, self.size, self.priors = rows, size, priors
        self.rng = generator(rng)
        self.floor = 0.0
        if entropy_floor is not None:
            # As in an audit: rounding must not make b = log|X| infeasible.
            with precision():
                most = lower(arb(fmpz(rows.statistic.space.size)).log())
            self.floor = min(entropy_floor, max(most, 0.0))
        self.groups = kinds_of_groups(rows.query.exchangeable(), size) if size else [()]
        self._cells = {group: rows.cells(group) for group in self.groups}

    @cached_property
    def known(self) -> list[Cut]:
        """The cuts of the given priors: all there are."""
        found = []
        for place, law in enumerate(self.priors or ()):
            for group in attacked_groups(self.rows, self.size, law):
                masses = np.array([_float(mass) for mass in self.rows.masses(law, group)])
                found.append(replace(self._cut(group, masses), prior=place))
        return found

    def attack(
        self,
        matrix: Array,
        cuts: Sequence[Cut],
        work: Work | None = None,
        clock: Clock | None = None,
    ) -> list[tuple[float, Cut]]:
        """Return adversaries of a channel with what they learn, found by local searches.

        What that takes is added to `work`. When `clock` is late, only the first group is attacked.
        """
        found: list[tuple[float, Cut]] = []
        done, clock = work or Work(), clock or Clock()
        for group in self.groups:
            if found and clock.late:
                break
            lumped = self.lumped(group, matrix)
            most = FEW if self.floor > 0 else CHOICES
            choices = worst_choices(lumped, self.floor, most) if self.size else []
            found += [(value, self._cut(group, weights)) for value, weights in choices]
            if choices and self.floor == 0:
                done.done += STEP
                continue
            run = joint_blahut_arimoto(
                lumped, self.floor, starts=STARTS, rng=self.rng, max_iterations=300
            )
            done.done += work_of_updates(run.iterations, STARTS * lumped.rows.size)
            ends = [run.point]
            earlier = [cut.weights for cut in cuts if cut.group == group][:WARM]
            if earlier:
                ends += list(self._climbed(lumped, np.array(earlier), done))
            met = [self._cut(group, end) for end in ends]
            found += [(_information(cut.joint @ matrix), cut) for cut in met]
        apart: list[tuple[float, Cut]] = []
        for value, cut in sorted(found, key=lambda pair: -pair[0]):
            # An ascent that stopped just short of another one's result adds nothing new.
            if not any(cut.like(other, APART) for _, other in apart):
                apart.append((value, cut))
        return apart

    def _climbed(self, lumped: Lumped, weights: Array, work: Work) -> Array:
        """Return where ascents end that start near each of some adversaries."""
        near = 0.99 * weights + 0.01 * lumped.uniform()
        updater = Updater(lumped, self.floor)
        current = updater.first(updater.joint(near))
        cost = work_of_updates(1, near.shape[0] * lumped.rows.size)

        def count(current: Iterates, step: Array) -> None:
            work.done += cost

        ascend(updater, current, None, max_updates=ASCENT, least_gain=GAIN, watch=count)
        return current.weights

    def images(self, cut: Cut, mirrored: bool) -> list[Cut]:
        """Return an adversary and, if wanted and different, its mirror image.

        The image believes of the last value and row what the adversary believes of the first. It
        is an adversary like any other where as many datasets are behind either.
        """
        cells = self._cells_of(cut.group)
        values, rows = cut.joint.shape
        place = {(a, r): (g, m) for g, (a, r, m) in enumerate(cells)}
        order = []
        for a, r, m in cells if mirrored and self.priors is None else ():
            other = place.get((values - 1 - a, rows - 1 - r))
            if other is None or other[1] != m:
                break
            order.append(other[0])
        if len(order) < len(cells):
            return [cut]
        image = Cut(cut.group, cut.joint[::-1, ::-1].copy(), cut.weights[order])
        return [cut] if cut.like(image) else [cut, image]

    @property
    def silenced_by_constants(self) -> bool:
        """Whether they learn something from every channel whose output is not constant."""
        return self.priors is None and forces_constants(self.rows, self.size, self.floor)

    @property
    def enumerable(self) -> bool:
        """Whether all adversaries who know the context given each value can be examined."""
        lumped = [self.lumped(group, None) for group in self.groups]
        outputs = len(self.rows.query.values)
        return self.size > 0 and all(
            enumerable(np.bincount(one.value_index).tolist(), outputs) for one in lumped
        )

    def without_floor(self) -> AdversaryOracle:
        """Return the adversaries without an entropy floor."""
        return AdversaryOracle(self.rows, self.size, 0.0, None, self.rng)

    def moved(self, cut: Cut) -> Cut:
        """Return an adversary without a floor, moved so that it meets the floor."""
        return self._cut(cut.group, cut.weights)

    def learned(self, cut: Cut, matrix: Array) -> float:
        """Return what an adversary learns from a channel."""
        return _information(cut.joint @ matrix)

    def audit(self, channel: Channel, known: Cut | None = None) -> Audit:
        """Return the audit of a channel, ready to run; `known` is likely to be the worst."""
        return Audit(self, channel, known)

    def lumped_weights(self, cut: Cut, lumped: Lumped) -> Array:
        """Return an adversary's prior on the groups of an audit's lumped problem."""
        owner = self._owners(lumped)
        weights = np.zeros(len(lumped.rows))
        cells = self._cells_of(cut.group)
        np.add.at(weights, [owner[a, r] for a, r, _ in cells], cut.weights)
        return weights

    def from_audit(self, bound: Bound) -> Audited:
        """Return what an audit's bound says."""
        adversary, certificate = bound.witness, certificate_of(bound)
        # The audit merges equal rows; the mass of a merged group is spread over its cells.
        lumped, weights = adversary.lumped, []
        owner = self._owners(lumped)
        for a, r, m in self._cells_of(adversary.records):
            g = owner[a, r]
            weights.append(adversary.weights[g] * (m / lumped.multiplicities[g]))
        proof = dict(certificate.proof)
        cut = self._cut(adversary.records, np.array(weights))
        return Audited(bound.upper, bound.lower, cut, proof)

    def entropy_price(self, matrix: Array, cut: Cut) -> float:
        """Return lam, minus the derivative of what an adversary learns in the entropy floor.

        At a maximizer of I under F(w) >= b, the gradient of I is a constant plus
        lam log(w_g / m_g): lam is the slope of the regression of one on the other.
        """
        if cut.prior is not None:
            return 0.0
        lumped = self.lumped(cut.group, matrix)
        joint = cut.joint @ matrix
        alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        ratio = np.log(np.where(joint > 0, joint, 1.0) / np.where(joint > 0, alone, 1.0))
        gradient = (lumped.rows * ratio[lumped.value_index]).sum(axis=1)
        seen = cut.weights > 0
        w = cut.weights[seen]
        depth = np.log(w) - lumped.log_multiplicity[seen]
        depth -= w @ depth
        spread = float(w @ depth**2)
        return max(float(w @ (depth * gradient[seen])) / spread, 0.0) if spread > 1e-6 else 0.0

    def audit_priors(self, channel: Channel, priors: Sequence[Law]) -> Audited:
        """Return what the given priors, those of the cuts that are known, learn."""
        with precision():
            upper = leakage_of_priors(self.rows, priors, self.size, channel)
        learned = [_information(cut.joint @ channel.matrix) for cut in self.known]
        worst = int(np.argmax(learned))
        return Audited(upper, learned[worst], self.known[worst], {})

    def audit_total(self, channel: Channel) -> Audited:
        """Return the leakage about the whole dataset, whose maximum over adversaries is concave."""
        lumped = self.lumped((), channel.matrix)
        run = joint_blahut_arimoto(lumped, self.floor, starts=lumped.uniform()[None])
        output = (run.point @ lumped.rows).tolist()
        found = float(run.history["multiplier"][-1])
        ends = []
        with precision():
            for multiplier in (0.0, found if np.isfinite(found) else 1e6):
                upper = total_above(self.rows.sizes, channel, self.floor, output, multiplier)
                ends.append((upper, multiplier))
        upper, multiplier = min(ends)
        proof = {"output": output, "multiplier": multiplier}
        return Audited(upper, run.value, self._cut((), run.point), proof)

    def _owners(self, lumped: Lumped) -> dict[tuple[int, int], int]:
        """Return the group of an audit's lumped problem that each value and row belongs to."""
        place = {value: r for r, value in enumerate(self.rows.query.values)}
        owner = {}
        for g, (a, context) in enumerate(zip(lumped.value_index, lumped.contexts, strict=True)):
            owner |= {(int(a), place[value]): g for value in context}
        return owner

    def _cells_of(self, group: tuple[int, ...]) -> list[tuple[int, int, int]]:
        if group not in self._cells:
            self._cells[group] = self.rows.cells(group)
        return self._cells[group]

    def _cut(self, group: tuple[int, ...], weights: Array) -> Cut:
        cells = self._cells_of(group)
        joint = np.zeros((1 + cells[-1][0], len(self.rows.query.values)))
        law = weights
        if self.priors is None:
            law = meet_entropy_floor(weights / weights.sum(), self.lumped(group, None), self.floor)
        np.add.at(joint, ([a for a, _, _ in cells], [r for _, r, _ in cells]), law)
        return Cut(group, joint, law)

    def lumped(self, group: tuple[int, ...], matrix: Array | None) -> Lumped:
        """Return the problem about a group of records, for a channel; without one for any."""
        cells = self._cells_of(group)
        count = len(self.rows.query.values)
        table = np.ones((count, 1)) if matrix is None else matrix
        return Lumped(
            values=range(1 + cells[-1][0]),
            outputs=range(table.shape[1]),
            value_index=np.array([a for a, _, _ in cells]),
            rows=table[[r for _, r, _ in cells]],
            multiplicities=[m for _, _, m in cells],
            contexts=[(r,) for _, r, _ in cells],
        )


def _information(joint: Array) -> float:
    table = joint / joint.sum()
    alone = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / alone[seen])).sum())


def _float(number: fmpq) -> float:
    return int(number.p) / int(number.q)
