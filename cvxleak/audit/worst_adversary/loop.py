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
from cvxleak.audit.worst_adversary.merged_outputs import Merged, merge_at_price
from cvxleak.audit.worst_adversary.posterior_cells import PosteriorCells
from cvxleak.audit.worst_adversary.tangent import Tangent
from cvxleak.audit.worst_adversary.time_sharing import TimeSharing
from cvxleak.audit.worst_adversary.whole_dataset import WholeDataset
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

ROUGH = 0.02
"""What merging may cost at first, as a share of the leakage, where the tolerance allows too little.
"""

OUTGROWN = 0.5
"""Share of the gap by which a factor may be above the one that a tree is about."""

SPARE = 0.2
"""Least share of the gap that S has to leave to log-ratio cells."""

@dataclass(frozen=True)
class Progress:
    """What an audit tells the search of a group: the end to reach, when to stop, whom to tell.

    `target` returns the upper end that closes the gap, and what that is above the lower end.
    """

    target: Callable[[], tuple[float, float]]
    stop: Stop
    report: Callable[[], None]


@dataclass(frozen=True, eq=False)
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


@dataclass(frozen=True, eq=False)
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


@dataclass(frozen=True, eq=False)
class Quotient:
    """The bound T + max(u, 0) / g on a factor, of a tree that proves J <= u; g is below the gain."""

    tree: PosteriorCells
    least: float

    @property
    def upper(self) -> float:
        """The bound on the factor."""
        return self.tree.factor + max(self.tree.upper, 0.0) / self.least

    def upper_at(self, surplus: float) -> float:
        """Return the bound at another floor."""
        return self.tree.factor + max(self.tree.upper_at(surplus), 0.0) / self.least

    def term(self) -> Term:
        """Return the term."""
        return self.tree.term()


class GroupSearch:
    """The search for one group.

    Attributes
    ----------
    group : Group
    ascent : Ascent
        The worst adversary so far.
    sharing : TimeSharing or None
        S and what attains it, once that was asked for.
    start : array, shape (N,), optional
        An adversary who is likely to be near the worst.
    """

    def __init__(self, group: Group, rng: np.random.Generator, start: Array | None = None) -> None:
        self.group, self.start = group, start
        self.ascent = Ascent(group, AdversaryClass(group), rng)
        self.sharing: TimeSharing | None = None
        self._begun = False
        k = len(group.lumped.values)
        self._least = group.objective(1.0).least(k)[0] if group.told.form == "factor" else None
        self._proofs: list[Any] = [Alphabet(group)] if group.view.information else []
        self._tree: Any = None
        self._merged: Merged | None = None
        self._climbs = self._nodes = 0
        if not self._proofs:
            self._grow(PosteriorCells(group, None, self.ascent.value if self._least else 0.0))

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
        return self._nodes + (0 if self._tree is None else self._tree.nodes)

    @property
    def leaves(self) -> int:
        """How many leaves a proof has."""
        return 1 if self._tree is None else self._tree.leaves

    def terms(self, surplus: float | None = None) -> list[Term]:
        """Return the first bound, which needs no search, and the least one."""
        at = self.group.surplus if surplus is None else surplus
        least = min(self._proofs, key=lambda proof: proof.upper_at(at))
        return [proof.term() for proof in dict.fromkeys((self._proofs[0], least))]

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
            ascent.climb(None if self.start is None else self.start[None], stop)
        if simple and not group.view.limits and self.upper > progress.target()[0]:
            self._proofs.append(Tangent.of(group, ascent.weights, progress.target()[0], stop))
            if self.upper > progress.target()[0]:
                self._proofs.append(WholeDataset.of(group, ascent.weights, stop))

    def advance(self, progress: Progress, nodes: int) -> bool:
        """Grow a tree by some nodes; false if there is none that can be grown."""
        if self._tree is None:
            self._plant(progress)
        elif self._merged is not None and self._stale():
            self._merge(CHEAPER * self._price())
        elif self._outgrown(progress):
            self._grow(PosteriorCells(self.group, None, self.ascent.value))
        tree = self._tree
        if tree is None:
            return self.upper <= progress.target()[0]

        def goal() -> float:
            target = progress.target()[0]
            return target if self._least is None else (target - tree.factor) * self._least

        before = tree.nodes
        tree.run(
            goal,
            resolution=progress.target()[1],
            stop=progress.stop,
            on_weights=lambda weights: self._look(weights, progress),
            node_limit=before + nodes,
        )
        return tree.nodes > before

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
            multipliers = np.concatenate([[ascent.multiplier], np.zeros(len(group.limits.bounds))])
            self.sharing = TimeSharing.of(group, ascent.weights, multipliers, target)
            if self.sharing.bound <= target - SPARE * resolution:
                return self._grow(LogRatioCells(group, self.sharing))
        if group.view.information and group.view.exact and len(group.parts) > FEW_OUTPUTS:
            self._merge(PRICE * resolution)
        if self._tree is None:
            self._unmerged()
        return None

    def _unmerged(self) -> None:
        """Begin a tree with all outputs, if they are not too many."""
        outputs, k = self.group.lumped.rows.shape[1], len(self.group.lumped.values)
        self._merged = None
        if outputs * k <= MULTIPLIERS:
            self._grow(PosteriorCells(self.group))

    def _merge(self, budget: float) -> None:
        """Begin a tree on outputs that are merged at such a price, or on all."""
        group, weights = self.group, self.ascent.weights
        merged = merge_at_price(group, weights, budget)
        if self._tree is None and (merged is None or 2 * len(merged.parts) > len(group.parts)):
            # For a start a bound that cannot reach the tolerance is better than none.
            merged = merge_at_price(group, weights, max(budget, ROUGH * self.ascent.value))
        if merged is None:
            return self._unmerged()
        self._merged = merged
        return self._grow(PosteriorCells(group, merged))

    def _price(self) -> float:
        assert self._merged is not None
        return float(self.ascent.weights @ self._merged.price)

    def _stale(self) -> bool:
        """Whether the price of merged outputs is most of what keeps the bound up."""
        return self._tree.upper - self.ascent.value <= STALE * self._price()

    def _outgrown(self, progress: Progress) -> bool:
        """Whether a factor was found that is well above the one that the tree is about."""
        tree = self._tree
        if self.group.told.form != "factor":
            return False
        return self.ascent.value - tree.factor > OUTGROWN * progress.target()[1]

    def _grow(self, tree: Any) -> None:
        self._nodes = self.nodes
        self._tree = tree
        self._proofs.append(tree if self._least is None else Quotient(tree, self._least))
