"""`NoiseAudit`: the audit of a mechanism whose output is a real number, with noise say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.old_terms import in_terms, lost_in_cells
from cvxleak.audit.search.audit import Audit, Statement, content_of, floor_of
from cvxleak.core.clock import Progress, Stop
from cvxleak.core.validation import generator
from cvxleak.exact.packing import pack
from cvxleak.model import Channel, Mechanism
from cvxleak.model.noise.real_output import Cells, most_cells
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found

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
    lost: float
    audit: Audit

    @property
    def upper(self) -> float:
        """The upper bound as it stands."""
        return self.audit.upper + self.lost


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
        self._content = content_of(problem, floor_of(problem), problem.mechanism.to_dict())
        self._cut, values = problem.mechanism.standard, len(problem.mechanism.query.values)
        self._most = most_cells(problem.mechanism.query.values)
        first = min(max(2, FIRST // values), self._most)
        self._look = self._last = self._of_cells(self._cut.cells(COARSE, first))

    def _of_cells(self, cells: Cells) -> _Look:
        stored = {}
        if cells.edges is not None and cells.references is not None:
            stored = {"edges": pack(cells.edges[1:-1]), "references": pack(cells.references)}
        query = self.problem.mechanism.query
        near = self._of(Mechanism(query, Channel(cells.masses, query.values)))
        lost = lost_in_cells(self._content, stored)
        return _Look(stored, lost, Audit(near, self._rng, self._report))

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
        problem, found = self.problem, look.audit.entries()
        worst = found.witness
        _, witness, proof = found.parts
        found = replace(
            found,
            witness=Adversary(problem.mechanism, worst.records, worst.weights, problem.adversaries),
            parts=(self._content, witness, {**proof, **look.stored}),
            stats={
                **found.stats,
                "method": f"the output cut into cells, because it is a real number; for these "
                f"{found.stats['method']}",
                "cells": look.audit.problem.mechanism.channel.shape[1],
            },
        )
        return in_terms(found)
