"""`NoiseAudit`: the audit of a mechanism whose output is a number with additive noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.search.audit import Audit, Progress, Statement, content_of
from cvxleak.core.clock import Stop
from cvxleak.core.validation import generator
from cvxleak.exact import balls
from cvxleak.exact.packing import pack
from cvxleak.model import AdditiveNoise, Mechanism
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.proofs import record_leakage as prover

__all__ = ["NoiseAudit"]

COARSE = 1e-2
"""Nats that the place within a cell may tell in a first look."""

SHARE = 0.5
"""Share of the gap that is left to the cells, whose number goes with the inverse root of it.

From 0.25 to 0.7 the times differ by a fifth.
"""

ENTRY_SECONDS = 2e-5
"""About how long the masses of the cells take, in balls, for each of them."""


class NoiseAudit:
    """The search of one audit of additive noise: that of its cells, which are made fine enough.

    How fine depends on the leakage, so first there is a quick look at coarse cells.
    """

    def __init__(
        self,
        problem: Statement,
        of: Callable[[Mechanism], Statement],
        rng: int | np.random.Generator | None,
        report: Progress,
    ) -> None:
        self.problem = problem
        self._of, self._rng, self._report = of, generator(rng), report
        self._groups = prover.audited_groups(
            problem.mechanism, problem.size, None if problem.records is None else [problem.records]
        )
        self._begin(COARSE)

    def _begin(self, excess: float, stop: Stop | None = None) -> None:
        """Cut the output into cells in which its place tells no more than so many nats.

        If there is no time for it, the cells stay what they are.
        """
        noise, values = self.problem.mechanism.noise, self.problem.mechanism.query.values
        assert isinstance(noise, AdditiveNoise)
        edges, references = noise.cells(values, excess)
        if stop is not None and stop(ENTRY_SECONDS * len(values) * len(references)):
            return
        self._stored = {
            "edges": pack(edges[1:-1]),
            "references": pack(references),
            "channel": pack(noise.masses(values, edges)),
        }
        with balls.precision():
            self._cells = prover.read_cells(self.problem.mechanism, self._groups, self._stored)
        self._asked = excess
        self._audit = Audit(self._of(self._cells.mechanism), self._rng, self._report)

    @property
    def lost(self) -> float:
        """What the cells may leave out, in nats."""
        return float((self._cells.slack + self._cells.excess).upper())

    @property
    def upper(self) -> float:
        """The upper end as it stands."""
        return min(self._audit.upper + self.lost, float(self._cells.most.upper()))

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far, with these cells."""
        return self._audit.nodes

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed or something ends it."""
        if not self._audit.lower > 0:
            self._audit.advance(Gap(0.5), stop)
            if stop():
                return Stopped.TIME_LIMIT
        allowed = gap.allowed(self._audit.lower)
        if SHARE * allowed < min(self._asked, self.lost):
            self._begin(SHARE * allowed, stop)
            if stop():
                return Stopped.TIME_LIMIT
        left = 1 - self.lost / allowed
        if gap.closed(self._audit.lower, self.upper):
            return Stopped.TOLERANCE
        if left <= 0:
            self._audit.advance(Gap(SHARE * gap.tol), stop)
            return Stopped.TIME_LIMIT if stop() else Stopped.NO_PROGRESS
        return self._audit.advance(Gap(left * gap.tol), stop)

    def proof_seconds(self) -> float:
        """Return about how long the proof will take."""
        return self._audit.proof_seconds()

    def found(self, gap: Gap) -> Found:
        """Return the ends that hold for the real output."""
        problem, found = self.problem, self._audit.found(gap)
        with balls.precision():
            lower, upper = self._cells.widened(found.lower, found.upper)
        worst = found.witness
        _, witness, proof = found.parts
        return replace(
            found,
            lower=lower,
            upper=upper,
            witness=Adversary(problem.mechanism, worst.records, worst.weights, problem.adversaries),
            parts=(
                content_of(problem, self._audit.floor, problem.mechanism.to_dict()),
                witness,
                {**proof, **self._stored},
            ),
            stats={**found.stats, "cells": self._cells.mechanism.channel.shape[1]},
        )
