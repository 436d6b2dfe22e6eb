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
from typing import Any

import numpy as np

from cvxleak.audit.worst_adversary.adversary_class import AdversaryClass
from cvxleak.audit.worst_adversary.ascent import Ascent
from cvxleak.audit.worst_adversary.choices import Choices, bound_choices
from cvxleak.audit.worst_adversary.group import Group, Term
from cvxleak.audit.worst_adversary.log_ratio_cells import LogRatioCells, possible
from cvxleak.audit.worst_adversary.merged_outputs import merge_at_price
from cvxleak.audit.worst_adversary.posterior_cells import PosteriorCells
from cvxleak.audit.worst_adversary.tangent import Tangent
from cvxleak.audit.worst_adversary.time_sharing import TimeSharing
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.kernel.reading import pack

__all__ = ["GroupSearch", "Progress"]

MULTIPLIERS = 2500
"""Most multipliers of a posterior cell: past it a Newton step takes many seconds."""

FEW_OUTPUTS = 12
"""Up to so many outputs are kept apart in posterior cells; more are merged at a price."""

PRICE, CHEAPER = 0.4, 0.3
"""What merging outputs may cost, as a share of the gap that closes; where it has been too dear to
close it, of what it did cost."""

STALE = 0.5
"""Share of their price that merged outputs may stay above what is attained before there are more of
them: a tree on few falls far below the price, and one on more starts high."""

STEPS = 1000
"""Most steps of the ascent to where a tangent touches."""


@dataclass(frozen=True)
class Progress:
    """What an audit tells the search of a group: the end to reach, when to stop, whom to tell.

    `target` returns the upper end that closes the gap, and what that is above the lower end.
    """

    target: Callable[[], tuple[float, float]]
    stop: Stop
    report: Callable[[], None]


@dataclass(frozen=True)
class Alphabet:
    """I(A;Y) <= H(A)."""

    group: Group

    @property
    def upper(self) -> float:
        """The logarithm of the number of values."""
        return float(np.log(len(self.group.lumped.values)))

    def upper_at(self, surplus: float) -> float:
        """Return the same: no floor counts."""
        return self.upper

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

    def upper_at(self, surplus: float) -> float:
        """Return the same: no floor counts."""
        return self.upper

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
        S and what attains it, once that was asked for.
    """

    def __init__(
        self, group: Group, rng: np.random.Generator, like: GroupSearch | None = None
    ) -> None:
        """`like` is a search of the group at another floor, or with other cells of the output."""
        self.group = group
        self.ascent = Ascent(group, AdversaryClass(group), rng)
        self.sharing: TimeSharing | None = None
        self._like, self._begun = like, False
        ceiling = Alphabet(group) if group.view.information else PosteriorCells(group)
        self._proofs: list[Any] = [ceiling]
        self._tree: Any = None
        self._climbs = 0

    @property
    def upper(self) -> float:
        """The least bound."""
        return min(proof.upper for proof in self._proofs)

    def upper_at(self, surplus: float) -> float:
        """Return what the same proofs give for another surplus log|X| - b."""
        return min(proof.upper_at(surplus) for proof in self._proofs)

    @property
    def nodes(self) -> int:
        """How many nodes were bounded."""
        return sum(getattr(proof, "nodes", 0) for proof in self._proofs)

    @property
    def leaves(self) -> int:
        """How many leaves a proof has."""
        return max(getattr(proof, "leaves", 1) for proof in self._proofs)

    def terms(self, surplus: float | None = None) -> list[Term]:
        """Return the first bound, which needs no search, and the least one."""
        at = self.group.surplus if surplus is None else surplus
        least = min(self._proofs, key=lambda proof: proof.upper_at(at))
        first = self._proofs[0]
        return [proof.term() for proof in dict.fromkeys((first, least))]

    def begin(self, progress: Progress) -> None:
        """Look for the worst adversary, and bound by what takes no tree, once."""
        if self._begun:
            return
        self._begun = True
        group, ascent, stop = self.group, self.ascent, progress.stop
        simple = group.view.information and group.view.exact
        if simple and (found := bound_choices(group.lumped, stop=stop)) is not None:
            self._proofs.append(WithoutFloor(group, found))
            ascent.climb(found.witnesses[:1], stop)
        if self.upper > progress.target()[0]:
            ascent.climb(None if self._like is None else self._like.ascent.weights[None], stop)
        if simple and not group.view.limits and self.upper > progress.target()[0]:
            weights, lam = ascent.weights, ascent.multiplier
            self._proofs.append(Tangent.of(group, weights, lam, STEPS, stop))

    def advance(self, progress: Progress, nodes: int) -> bool:
        """Grow a tree by some nodes; false if there is none that can be grown."""
        if self._tree is None:
            self._plant(progress)
        elif self._stale(progress):
            self._merge(progress, CHEAPER * self._price)
        tree = self._tree
        if tree is None:
            return self.upper <= progress.target()[0]
        tree.run(
            lambda: progress.target()[0],
            resolution=progress.target()[1],
            stop=progress.stop,
            on_weights=lambda weights: self._look(weights, progress),
            node_limit=tree.nodes + nodes,
        )
        return True

    def _look(self, weights: Array, progress: Progress) -> None:
        """Climb from the maximizers of a batch's nodes, after 1, 4, 16, ... batches."""
        progress.report()
        self._climbs += 1
        if self._climbs & (self._climbs - 1) == 0 and self._climbs.bit_length() % 2:
            self.ascent.climb(weights[:8], progress.stop)

    def _plant(self, progress: Progress) -> None:
        """Begin the tree that S says to begin."""
        group, ascent = self.group, self.ascent
        target, resolution = progress.target()
        if possible(group):
            self.sharing = TimeSharing.of(group, ascent.weights, ascent.multiplier, target)
            if self.sharing.bound <= target:
                return self._grow(LogRatioCells(group, self.sharing))
        if group.view.information and group.view.exact and len(group.parts) > FEW_OUTPUTS:
            self._merge(progress, PRICE * resolution)
        if self._tree is None:
            self._merged = None
            size = group.lumped.rows.shape[1] * len(group.lumped.values)
            if size <= MULTIPLIERS:
                self._grow(PosteriorCells(group, None, ascent.value))

    def _grow(self, tree: Any) -> None:
        self._proofs.append(tree)
        self._tree = tree
