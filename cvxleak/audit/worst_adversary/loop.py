"""`GroupSearch`: the search for one group of records, from below and from above.

From below there is an ascent (`ascent`). From above come bounds without a tree, a tree of
log-ratio cells for each value (`log_ratio_cells`), and a tree of posterior cells
(`posterior_cells`). Which tree is grown is decided by one number that is known before any: S, what
time sharing can prove at best (`time_sharing`). Log-ratio cells close the gap to S and no more, with
few nodes; so they are grown if S is within the tolerance, and posterior cells otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cvxleak.audit.worst_adversary.adversary_class import AdversaryClass
from cvxleak.audit.worst_adversary.ascent import Ascent
from cvxleak.audit.worst_adversary.choices import Choices, bound_choices
from cvxleak.audit.worst_adversary.group import Group, Term
from cvxleak.audit.worst_adversary.log_ratio_cells import LogRatioCells
from cvxleak.audit.worst_adversary.merged_outputs import coarsen
from cvxleak.audit.worst_adversary.posterior_cells import PosteriorCells
from cvxleak.audit.worst_adversary.tangent import Tangent
from cvxleak.audit.worst_adversary.time_sharing import TimeSharing
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.core.work import METER
from cvxleak.exact.packing import pack
from cvxleak.solvers import BestFirst

__all__ = ["GroupSearch"]

MULTIPLIERS = 2500
"""Most multipliers of a posterior cell: past it a Newton step takes many seconds."""

FEW_OUTPUTS = 12
"""Up to so many outputs a tree of posterior cells keeps them apart; more are merged at a price."""


class Proof(Protocol):
    """A bound, and the term that proves it."""

    @property
    def upper(self) -> float:
        """What it proves, in floats."""
        ...

    def term(self) -> Term:
        """Return the term."""
        ...


@dataclass(frozen=True)
class Alphabet:
    """I(A;Y) <= H(A)."""

    group: Group

    @property
    def upper(self) -> float:
        """The logarithm of the number of values."""
        return float(np.log(len(self.group.lumped.values)))

    def term(self) -> Term:
        """Return the term."""
        return self.group.closed(0.0, {"rule": "alphabet"})


@dataclass(frozen=True)
class WithoutFloor:
    """The leakage without a floor: the largest capacity of a choice of one row for each value."""

    group: Group
    found: Choices

    @property
    def upper(self) -> float:
        """The largest capacity, and the most that is added for the place in a cell."""
        return self.found.upper + float(self.group.extra.max())

    def term(self) -> Term:
        """Return the term."""
        return {"rule": "choices", "inputs": pack(self.found.inputs, "<f8")}


class GroupSearch:
    """The search for one group.

    Attributes
    ----------
    group : Group
    ascent : Ascent
        The worst adversary so far.
    sharing : TimeSharing or None
        S and what attains it, once trees are grown.
    """

    def __init__(self, group: Group, rng: np.random.Generator) -> None:
        self.group = group
        self.ascent = Ascent(group, AdversaryClass(group), rng)
        self.sharing: TimeSharing | None = None
        information = group.view.information
        self._proofs: list[Proof] = [Alphabet(group) if information else PosteriorCells(group)]
        self._trees: list[BestFirst[Any, Any, Any]] = []
        self._begun = False

    @property
    def upper(self) -> float:
        """The least bound."""
        return min(proof.upper for proof in self._all)

    @property
    def nodes(self) -> int:
        """How many nodes were bounded."""
        return sum(tree.nodes for tree in self._trees)

    @property
    def leaves(self) -> int:
        """How many leaves a proof has."""
        return max((tree.leaves for tree in self._trees), default=1)

    @property
    def _all(self) -> list[Any]:
        return [*self._proofs, *self._trees]

    def begin(self, target: Callable[[], float], stop: Stop) -> None:
        """Look for the worst adversary, and bound without a tree; once."""
        if self._begun:
            return
        group, ascent = self.group, self.ascent
        self._begun = True
        if group.view.information and group.view.exact:
            found = bound_choices(group.lumped, stop=stop)
            if found is not None:
                self._proofs.append(WithoutFloor(group, found))
                ascent.climb(found.witnesses[:1], stop)
        if self.upper <= target():
            return
        ascent.climb(None, stop)

    def advance(
        self,
        target: Callable[[], float],
        resolution: float,
        stop: Stop,
        on_weights: Callable[[Array], None],
        nodes: int,
    ) -> bool:
        """Work on the trees for a while; false if there is none that can be grown."""
        if not self._trees:
            self._plant(target, resolution, stop)
        if self.upper <= target() or not self._trees:
            return bool(self._trees) or self.upper <= target()
        tree = self._trees[-1]
        tree.run(
            target,
            resolution=resolution,
            stop=stop,
            on_weights=on_weights,
            node_limit=tree.nodes + nodes,
        )
        return True

    def _plant(self, target: Callable[[], float], resolution: float, stop: Stop) -> None:
        """Begin the trees."""
        group, ascent = self.group, self.ascent
        view = group.view
        if view.information and view.exact:
            if not view.limits:
                self._proofs.append(Tangent.of(group, ascent.weights, ascent.multiplier, 1000, stop))
                if self.upper <= target():
                    return
            sharing = TimeSharing.of(group, ascent.weights, ascent.multiplier, target())
            self.sharing = sharing
            if LogRatioCells.possible(group) and sharing.upper <= target():
                self._trees.append(LogRatioCells(group, sharing, target()))
                return
        merged = self._merged(resolution)
        outputs = group.lumped.rows.shape[1] if merged is None else len(merged.parts)
        if len(group.lumped.values) * outputs <= MULTIPLIERS:
            self._trees.append(PosteriorCells(group, merged))
