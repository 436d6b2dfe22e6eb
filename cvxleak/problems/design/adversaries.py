"""The adversaries of a design: cuts, the search for new ones, and the certified audit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, fmpq, fmpz

from cvxleak._validation import Array
from cvxleak.certificates.balls import precision, round_down
from cvxleak.certificates.design import attacked_groups, leakage_of_priors, total_above
from cvxleak.certificates.design_rows import Law, Rows
from cvxleak.errors import CertificateError
from cvxleak.iterative import joint_blahut_arimoto, meet_entropy_floor
from cvxleak.model import Channel, Lumped, Mechanism
from cvxleak.model._groups import kinds_of_groups
from cvxleak.problems.leakage import RecordLeakage
from cvxleak.result import Bound

__all__ = ["Audit", "Audited", "Cut", "Opponents"]

STARTS = 3
"""Random starts of one local search; there are `SEARCHES` of them, whose ends become cuts."""

SEARCHES = 3

WARM = 6
"""Earlier adversaries from which a local search starts as well."""

QUICK = 0.9
"""Largest relative tolerance of an audit."""


@dataclass(frozen=True)
class Cut:
    """An adversary: a group of records (none for the whole dataset) and what is believed.

    Attributes
    ----------
    group : tuple of int
    joint : array, shape (values of the group, rows)
        The law of the secret and the row.
    weights : array, shape (cells,)
        The same law on the cells of `Rows.cells`.
    prior : int or None
        Which of the given priors it is.
    """

    group: tuple[int, ...]
    joint: Array = field(repr=False)
    weights: Array = field(repr=False)
    prior: int | None = None

    def like(self, other: Cut) -> bool:
        """Whether two adversaries are the same but for rounding."""
        return self.group == other.group and bool(np.abs(self.weights - other.weights).sum() < 1e-6)


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
    """The audit of one channel, to be run as sharply as needed."""

    def __init__(self, opponents: Opponents, channel: Channel) -> None:
        self._opponents, self._channel = opponents, channel
        self._bound: Bound | None = None
        self._state: Audited | None = None

    @property
    def state(self) -> Audited:
        """What is proved so far."""
        return self.run(1.0, np.inf) if self._state is None else self._state

    def run(self, tol: float, until: float) -> Audited:
        """Return the bracket within a relative `tol`, or as far as it has come by then."""
        opponents, channel = self._opponents, self._channel
        if opponents.priors is not None or opponents.size == 0:
            if self._state is None:
                if opponents.priors is not None:
                    self._state = opponents.audit_priors(channel, opponents.priors)
                else:
                    self._state = opponents.audit_total(channel)
        elif self._state is None or self._state.upper - self._state.value > tol * self._state.upper:
            left = None if until == np.inf else max(until - time.monotonic(), 0.1)
            tol = min(tol, QUICK)
            if self._bound is None:
                mechanism = Mechanism(opponents.rows.query, channel.matrix)
                problem = RecordLeakage(mechanism, opponents.floor, size=opponents.size)
                self._bound = problem.solve(tol=tol, time_limit=left, rng=opponents.rng)
            else:
                self._bound = self._bound.refine(tol, left)
            self._state = opponents.from_audit(self._bound)
        if (channel.matrix == channel.matrix[0]).all():
            self._state = replace(self._state, upper=0.0, value=0.0)
        return self._state


class Opponents:
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
        self.rng = np.random.default_rng(rng)
        self.floor = 0.0
        if entropy_floor is not None:
            # As in an audit: rounding must not make b = log|X| infeasible.
            with precision():
                most = round_down(arb(fmpz(rows.statistic.space.size)).log())
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

    def attack(self, matrix: Array, cuts: Sequence[Cut]) -> list[tuple[float, Cut]]:
        """Return adversaries of a channel with what they learn, found by local searches."""
        found: list[tuple[float, Cut]] = []
        for group in self.groups:
            lumped = self._lumped(group, matrix)
            starts: list[Any] = [STARTS] * SEARCHES
            earlier = [cut.weights for cut in cuts if cut.group == group][-WARM:]
            if earlier:
                starts.append(0.99 * np.array(earlier) + 0.01 * lumped.uniform())
            for start in starts:
                run = joint_blahut_arimoto(
                    lumped, self.floor, starts=start, rng=self.rng, max_iterations=300
                )
                cut = self._cut(group, run.point)
                if not any(cut.like(other) for _, other in found):
                    found.append((run.value, cut))
        return sorted(found, key=lambda pair: -pair[0])

    def audit(self, channel: Channel) -> Audit:
        """Return the audit of a channel, ready to run."""
        return Audit(self, channel)

    def from_audit(self, bound: Bound) -> Audited:
        """Return what an audit's bound says."""
        adversary, certificate = bound.witness, bound.certificate
        if certificate is None:
            raise CertificateError(f"{bound.name}: an audit without a certificate")
        # The audit merges equal rows; the mass of a merged group is spread over its cells.
        place = {value: r for r, value in enumerate(self.rows.query.values)}
        lumped, owner = adversary.lumped, {}
        for g, (a, context) in enumerate(zip(lumped.value_index, lumped.contexts, strict=True)):
            owner |= {(int(a), place[value]): g for value in context}
        weights = []
        for a, r, m in self._cells_of(adversary.records):
            g = owner[a, r]
            weights.append(adversary.weights[g] * (m / lumped.multiplicities[g]))
        proof = {"witness": certificate.witness, "proof": certificate.proof}
        cut = self._cut(adversary.records, np.array(weights))
        return Audited(bound.upper, bound.lower, cut, proof)

    def entropy_price(self, matrix: Array, cut: Cut) -> float:
        """Return lam, minus the derivative of what an adversary learns in the entropy floor.

        At a maximizer of I under F(w) >= b, the gradient of I is a constant plus
        lam log(w_g / m_g): lam is the slope of the regression of one on the other.
        """
        if cut.prior is not None:
            return 0.0
        lumped = self._lumped(cut.group, matrix)
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
        lumped = self._lumped((), channel.matrix)
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

    def _cells_of(self, group: tuple[int, ...]) -> list[tuple[int, int, int]]:
        if group not in self._cells:
            self._cells[group] = self.rows.cells(group)
        return self._cells[group]

    def _cut(self, group: tuple[int, ...], weights: Array) -> Cut:
        cells = self._cells_of(group)
        joint = np.zeros((1 + cells[-1][0], len(self.rows.query.values)))
        law = weights
        if self.priors is None:
            law = meet_entropy_floor(self._lumped(group, None), weights / weights.sum(), self.floor)
        np.add.at(joint, ([a for a, _, _ in cells], [r for _, r, _ in cells]), law)
        return Cut(group, joint, law)

    def _lumped(self, group: tuple[int, ...], matrix: Array | None) -> Lumped:
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
