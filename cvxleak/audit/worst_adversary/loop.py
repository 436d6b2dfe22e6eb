"""`GroupSearch`: the search for one group of records, from below and from above.

From below there is an ascent (`ascent`). From above come bounds without a tree, a tree of
log-ratio cells for each value (`log_ratio_cells`), and trees of posterior cells
(`posterior_cells`), each with fewer outputs merged than the one before. Which tree is grown first
is decided by one number that is known before any: S, what time sharing can prove at best
(`time_sharing`). Log-ratio cells close the gap to S and no more, with few nodes; so they are first
if S is within the tolerance, and posterior cells otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxleak.audit.worst_adversary.adversary_class import AdversaryClass
from cvxleak.audit.worst_adversary.ascent import STARTS, Ascent
from cvxleak.audit.worst_adversary.choices import Choices
from cvxleak.audit.worst_adversary.dual import SMALLEST
from cvxleak.audit.worst_adversary.group import Group, Term
from cvxleak.audit.worst_adversary.log_ratio_cells import LogRatioCells, possible
from cvxleak.audit.worst_adversary.merged_outputs import Merged, merge_at_price
from cvxleak.audit.worst_adversary.posterior_cells import PosteriorCells
from cvxleak.audit.worst_adversary.tangent import Tangent
from cvxleak.audit.worst_adversary.time_sharing import TimeSharing
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.core.work import METER
from cvxleak.kernel.reading import pack

__all__ = ["GroupSearch", "Progress"]

FEW_OUTPUTS = 12
"""Up to so many outputs are kept apart in posterior cells; more are merged at a price. With 0 a
count of 8 people with geometric noise stays open at 80 % of log|X|, which closes without. With half
of it gaps of noisy counts are up to 4.9 times as wide at equal work, with twice of it .3 to 3.4
times."""

PRICE = 0.5
"""What merging outputs may cost, and what the cells of a real output, at each stage, as a share of
the gap that closes. Once what merging loses is this share of the gap, a tree is begun whose merging
costs this share of that. With 0.2 to 0.4 the gaps on the way are the same, and with 0.25 to 0.7 for
cells the times differ by a fifth. With 0.7 or 0.85 of the gap lost counts of 14 people have up to
six times the gap."""

LATE = 2e8
"""Work after which posterior cells are begun beside log-ratio cells that were to be enough; from
then on both do as much. Half or twice of it makes no difference to the bank; with 1e9 uniform and
Gaussian noise that log-ratio cells do not close soon have up to six times the gap at that work."""

SHARE = 0.1
"""Share of the gap that is left to a tree of log-ratio cells, that rows without zeros may hide, and
by which a factor may be above the one that a tree is about; of what the bounds differ by at first,
which merging outputs may cost; and of the work of trees, which climbs from their maximizers take.
With climbs after 1, 4, 16, ... batches instead 11 of 47 cases were wider, and a factor of guessing
never found its worst adversary. With 0.05 or 0.2 for merging noisy counts have up to three times
the gap."""


@dataclass(frozen=True)
class Progress:
    """What an audit tells the search of a group: the end to reach, when to stop, whom to tell.

    `target` returns the upper end that closes the gap, and what that is above the lower end.
    """

    target: Callable[[], tuple[float, float]]
    stop: Stop
    report: Callable[[], None]


@dataclass(frozen=True, eq=False)
class Floorless:
    """A bound in closed form, which no floor changes."""

    upper: float
    written: Callable[[], Term]

    @classmethod
    def first(cls, group: Group) -> Floorless | None:
        """Return I(A;Y) <= H(A), or that an output which ignores the data leaks nothing."""
        view = group.view
        # All rows are equal as written, and the gain before the output is taken off.
        equal = all(row.key == view.rows[0].key for row in view.rows)
        if view.times != 0 and view.exact and view.extra is None and equal:
            return cls(float(group.told.form == "factor"), lambda: {"rule": "equal"})
        if not view.information:
            return None
        values = len(group.lumped.values)
        return cls(float(np.log(values)), lambda: group.closed(0.0, {"rule": "alphabet"}))

    @classmethod
    def of_choices(cls, group: Group, found: Choices) -> Floorless:
        """Return the largest capacity of a choice of a row for each value, as without a floor.

        For the place in a cell the most is added.
        """
        term = {"rule": "choices", "inputs": pack(found.inputs, "<f8")}
        return cls(found.upper + float(group.extra.max()), lambda: term)

    def upper_at(self, surplus: Array) -> Array:
        """Return the same."""
        return np.full(np.shape(surplus), self.upper)

    def term(self) -> Term:
        """Return the term."""
        return self.written()


@dataclass
class Growing:
    """A tree that is being grown."""

    tree: Any
    work: float = 0.0
    done: bool = False

    def grow(self, progress: Progress, nodes: int, look: Callable[[Array], None]) -> None:
        """Bound some more nodes."""
        tree, before, spent = self.tree, self.tree.nodes, METER.spent
        tree.run(
            lambda: progress.target()[0],
            resolution=progress.target()[1],
            stop=progress.stop,
            on_weights=look,
            node_limit=before + nodes,
        )
        self.work += METER.spent - spent
        self.done = tree.nodes == before and not progress.stop()


class GroupSearch:
    """The search for one group.

    Attributes
    ----------
    group : Group
    ascent : Ascent
        The worst adversary so far.
    sharing : TimeSharing or None
        S and what attains it, once that was asked for.
    start : array, shape (B, N), optional
        Adversaries who are likely to be near the worst.
    nodes : int
        How many nodes were bounded.
    """

    def __init__(
        self, group: Group, rng: np.random.Generator, like: Sequence[GroupSearch] = ()
    ) -> None:
        """`like` are searches at other floors, or with other cells, from which this one starts."""
        self.group, self.nodes = group, 0
        self.start = np.stack([one.ascent.weights for one in like]) if like else None
        same = [one for one in like if one._cells and one.group.view.rows is group.view.rows]
        self._known = same[0] if same else None
        # S is concave in the floor: it is too large between floors where it is.
        self._between = len(same) > 1 and all(one._by_cells for one in like)
        # With finer cells of an output the worst adversary is about the same, and between floors.
        self._anew = not self._between and all(one.group.floor != group.floor for one in like)
        # There, what needs no tree is no better than before.
        self._treeless = self._anew or any(one._closed_form for one in like)
        self.ascent = Ascent(group, AdversaryClass(group), rng)
        self.sharing: TimeSharing | None = None
        self._begun, self._planted, self._climbed = False, False, 0.0
        self._trees: list[Growing] = []
        self._proofs: list[Any] = []
        # Nothing divided yet, and of a factor about T = 0: what no adversary or channel passes.
        self._proofs.append(Floorless.first(group) or PosteriorCells(group))

    @property
    def _sharpest(self) -> Any:
        return min(self._proofs, key=lambda proof: proof.upper)

    @property
    def upper(self) -> float:
        """The least bound."""
        return self._sharpest.upper

    @property
    def searched(self) -> bool:
        """Whether more than a closed form is needed for the least bound."""
        return not isinstance(self._sharpest, Floorless)

    @property
    def _closed_form(self) -> bool:
        """Whether the least bound is not that of a tree."""
        return all(one.tree is not self._sharpest for one in self._trees)

    @property
    def _by_cells(self) -> bool:
        """Whether the least bound is that of posterior cells."""
        return isinstance(self._sharpest, PosteriorCells)

    def tight(self, gap: float) -> bool:
        """Whether no tree gets far below the bound: J + extra is as large for an adversary."""
        least = self.ascent.value + float(self.group.extra @ self.ascent.weights)
        return self.upper <= least + SHARE * gap

    def upper_at(self, surplus: Array) -> Array:
        """Return what the same proofs give for each other surplus log|X| - b."""
        return np.min([proof.upper_at(surplus) for proof in self._proofs], axis=0)

    @property
    def proof_size(self) -> float:
        """About how many probabilities in balls take as long as the least bound's tree."""
        return getattr(self._sharpest, "proof_size", 0.0)

    def terms(self, surplus: float) -> list[Term]:
        """Return the first bound, which needs no search, and the least one for this log|X| - b."""
        least = min(self._proofs, key=lambda proof: float(proof.upper_at(np.array(surplus))))
        return [proof.term() for proof in dict.fromkeys((self._proofs[0], least))]

    def begin(self, progress: Progress) -> None:
        """Look for the worst adversary, and bound by what takes no tree, once."""
        if self._begun:
            return
        self._begun = True
        group, ascent, stop = self.group, self.ascent, progress.stop
        simple = self._treeless and group.view.information and group.view.exact
        choices = Choices.of(group.lumped, stop) if simple else None
        if choices is not None:
            worst, entropy = choices.witness()
            if not group.view.limits:  # an adversary, or near one
                ascent.climb(worst[None], stop)
            target, resolution = progress.target()
            if entropy >= group.floor and choices.upper > target:
                choices.sharpen(resolution / 1000, stop)
                ascent.climb(choices.witness()[0][None], stop)
            self._proofs.append(Floorless.of_choices(group, choices))
        ascent.enough = self.upper
        if self.upper > progress.target()[0]:
            if self.start is not None:
                ascent.climb(self.start, stop)
            if self._anew:
                ascent.climb(None, stop)
        if simple and not group.view.limits:
            weights, target = ascent.weights, progress.target()[0]
            if self.upper > target:
                self._proofs.append(Tangent.of(group, weights, ascent.multiplier, target, stop))
            if self.upper > target:
                self._proofs.append(Tangent.of_dataset(group, weights, target, stop))

    def advance(self, progress: Progress, nodes: int) -> bool:
        """Grow a tree by some nodes; false if there is none that can be grown."""
        if not self._planted:
            self._planted = True
            self._plant(progress)
        elif self._cells is None and any(x.work > LATE or not self._grows(x) for x in self._trees):
            self._plant_cells(progress.target()[1])
        self._renew(progress)
        if self.upper <= progress.target()[0]:
            return True
        # Work is in proportion to what a tree can still close.
        waiting = [one for one in self._trees if self._grows(one)]
        if not waiting:
            return False
        least = progress.target()[0]
        growing = min(waiting, key=lambda x: x.work / (self.upper - max(x.tree.reach, least)))
        before = growing.tree.nodes
        growing.grow(progress, nodes, lambda weights: self._look(weights, progress))
        self.nodes += growing.tree.nodes - before
        return True

    def _grows(self, one: Growing) -> bool:
        """Whether a tree may still lower the bound: log-ratios prove nothing below S."""
        return not one.done and one.tree.reach < self.upper

    def _look(self, weights: Array, progress: Progress) -> None:
        """Climb from the maximizers of a batch's nodes, for a share of the work of the trees."""
        progress.report()
        if self._climbed < SHARE * sum(growing.work for growing in self._trees):
            before = METER.spent
            self.ascent.climb(weights[:STARTS], progress.stop)
            self._climbed += METER.spent - before

    def _plant(self, progress: Progress) -> None:
        """Begin the trees: the one that S says is to be first, and then the other."""
        group, ascent = self.group, self.ascent
        target, resolution = progress.target()
        if self._between or not (group.view.information and group.view.exact):
            return self._plant_cells(resolution)
        if not possible(group):
            if len(group.lumped.values) == 2:  # cells of posteriors are intervals
                return self._plant_cells(resolution)
            group = group.smoothed(SHARE * resolution)
        multipliers = np.concatenate([[ascent.multiplier], np.zeros(len(group.limits.bounds))])
        self.sharing = TimeSharing.of(group, ascent.weights, multipliers, target, progress.stop)
        reach = self.sharing.bound + SHARE * resolution
        if reach > target:
            self._plant_cells(resolution)
            if self.sharing.bound < target:  # with more nodes it closes the gap by itself
                reach = target
        if reach < self.upper:
            self._grow(LogRatioCells(group, self.sharing, reach))
        return None

    def _plant_cells(self, resolution: float) -> None:
        """Begin a tree of posterior cells, with many outputs merged."""
        group, known = self.group, self._known
        if known is not None and known._cells is not None:
            own, other = self.ascent.multiplier, known.ascent.multiplier
            # Not larger: the multiplier of a floor that binds nobody is 0.
            growth = min(1.0, (own + SMALLEST) / (other + SMALLEST))
            return self._grow(known._cells.tree.at(group, growth))
        if group.view.information and group.view.exact and len(group.parts) > FEW_OUTPUTS:
            return self._merge(max(PRICE * resolution, SHARE * (self.upper - self.ascent.value)))
        return self._grow_cells()

    @property
    def _cells(self) -> Growing | None:
        """The last tree of posterior cells."""
        trees = (one for one in reversed(self._trees) if isinstance(one.tree, PosteriorCells))
        return next(trees, None)

    def _merge(self, budget: float) -> None:
        """Begin a tree on outputs that are merged at such a price."""
        self._grow_cells(merge_at_price(self.group, self.ascent.weights, budget))

    def _grow_cells(self, merged: Merged | None = None) -> None:
        """Begin a tree on merged outputs, or on all."""
        factor = self.ascent.value if self.group.told.form == "factor" else 0.0
        self._grow(PosteriorCells(self.group, merged, factor))

    def _grow(self, tree: LogRatioCells | PosteriorCells) -> None:
        """Begin a tree; one whose Newton steps would take too long is done at once."""
        wide = isinstance(tree, PosteriorCells) and tree.dual.width**3 > LATE
        self._trees.append(Growing(tree, done=wide))
        self._proofs.append(tree)

    def _renew(self, progress: Progress) -> None:
        """Begin another tree with more outputs, or about a larger factor, where that pays."""
        growing, attained, weights = self._cells, self.ascent.value, self.ascent.weights
        if growing is None:
            return
        tree = growing.tree
        if tree.merged is not None:
            price = float(weights @ tree.merged.price)
            tree.reach = price + self.ascent.found(weights, tree.merged.lumped).value
            if tree.reach - attained >= PRICE * (self.upper - attained):
                self._merge(PRICE * price)
        elif self.group.told.form == "factor":
            if attained - tree.factor > SHARE * progress.target()[1]:
                growing.done = True
                self._grow_cells()
