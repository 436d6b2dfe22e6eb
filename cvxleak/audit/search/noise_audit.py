"""`NoiseAudit`: the audit of a mechanism whose output is a real number, with noise say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.old_terms import in_terms
from cvxleak.audit.search.audit import Audit, Statement, content_of
from cvxleak.core.clock import Progress, Stop
from cvxleak.core.validation import generator
from cvxleak.exact import balls
from cvxleak.exact.packing import pack
from cvxleak.model import Mechanism
from cvxleak.model.noise.real_output import Cells, most_cells
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.proofs import record_leakage as prover

__all__ = ["NoiseAudit"]

COARSE = 1e-2
"""Nats that the position within a cell may leak in a first look."""

COARSE_GAP = 0.5
"""Relative gap that is closed in a first look."""

FINER = 300
"""By what factor less it may leak in the next look, at most. This takes under 18 times the cells,
and the result of the look before is kept if there is no time for it."""

SHARE = 0.5
"""Share of the gap that is left to the cells, whose number goes with the inverse root of it.

From 0.25 to 0.7 the times differ by a fifth.
"""

FIRST = 1 << 15
"""Most probabilities of cells in the first look, which no time limit interrupts."""

ENTRY_SECONDS = 8e-6
"""About how long the masses of the cells take, in balls, for each of them."""


@dataclass(frozen=True)
class _Look:
    """The audit of the cell that the output is in."""

    stored: dict[str, Any]
    cells: prover.Cells
    audit: Audit

    @property
    def lost(self) -> float:
        """What the cells may leave out, in nats."""
        return float((self.cells.slack + self.cells.excess).upper())

    @property
    def upper(self) -> float:
        """The upper bound as it stands."""
        return min(self.audit.upper + self.lost, float(self.cells.most.upper()))


class NoiseAudit:
    """The search of one audit of a real output: that of its cells, which are made fine enough.

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
        self._cut, values = problem.mechanism.standard, len(problem.mechanism.query.values)
        self._most = most_cells(problem.mechanism.query.values)
        first = min(max(2, FIRST // values), self._most)
        self._look = self._last = self._of_cells(self._cut.cells(COARSE, first))

    def _of_cells(self, cells: Cells) -> _Look:
        stored = {"channel": pack(cells.masses)}
        if cells.edges is not None and cells.references is not None:
            stored |= {"edges": pack(cells.edges[1:-1]), "references": pack(cells.references)}
        with balls.precision():
            read = prover.read_cells(self.problem.mechanism, self._groups, stored)
        return _Look(stored, read, Audit(self._of(read.mechanism), self._rng, self._report))

    @property
    def upper(self) -> float:
        """The upper bound as it stands."""
        return min(self._look.upper, self._last.upper)

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far, with these cells."""
        return self._look.audit.nodes

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed or something ends it."""
        while True:
            look, audit = self._look, self._look.audit
            audit.advance(Gap(COARSE_GAP), stop)
            allowed = gap.allowed(audit.lower)
            if stop() or gap.closed(audit.lower, look.upper) or look.lost <= SHARE * allowed:
                break
            steps = math.ceil(math.log(look.lost / (SHARE * allowed)) / math.log(FINER))
            if steps > 1:
                # There may be no time for the last look, so bounds for these cells are needed.
                audit.advance(Gap(min(look.lost / look.upper, COARSE_GAP)), stop)
            if not self._finer((SHARE * allowed / look.lost) ** (1 / steps), stop):
                break
        if gap.closed(audit.lower, look.upper):
            return Stopped.TOLERANCE
        if stop():
            return Stopped.at_limit(stop.clock)
        left = 1 - look.lost / allowed
        if left <= 0:
            audit.advance(Gap(SHARE * gap.tol), stop)
            return Stopped.at_limit(stop.clock) if stop() else Stopped.NO_PROGRESS
        return audit.advance(Gap(left * gap.tol), stop)

    def _finer(self, share: float, stop: Stop) -> bool:
        """Go on with cells that lose such a share of what these do, if there is time for them."""
        lost = self._look.lost
        cells = self._cut.cells(lost * share, self._most)
        if stop(ENTRY_SECONDS * cells.masses.size):
            return False
        finer = self._of_cells(cells)
        if finer.lost >= lost:
            return False
        self._look, self._last = finer, self._look
        return True

    def proof_seconds(self) -> float:
        """Return about how long the proof will take."""
        return self._look.audit.proof_seconds()

    def found(self, gap: Gap) -> Found:
        """Return the bounds that hold for the real output."""
        # Where time ran out, finer cells may not have got as far as those before them.
        look = min(self._look, self._last, key=lambda one: one.upper - one.audit.lower)
        problem, found = self.problem, look.audit.entries(gap)
        with balls.precision():
            lower, upper = look.cells.widened(found.lower, found.upper)
        worst = found.witness
        assert found.parts is not None  # Shannon's gain has a certificate
        _, witness, proof = found.parts
        found = replace(
            found,
            lower=lower,
            upper=upper,
            witness=Adversary(problem.mechanism, worst.records, worst.weights, problem.adversaries),
            parts=(
                content_of(problem, look.audit.floor, problem.mechanism.to_dict()),
                witness,
                {**proof, **look.stored},
            ),
            stats={
                **found.stats,
                "method": f"the output cut into cells, because it is a real number; for these "
                f"{found.stats['method']}",
                "cells": look.cells.mechanism.channel.shape[1],
            },
        )
        return in_terms(found)
