"""One class of groups of records under audit: its lumped problem, its bounds, their proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cvxleak.audit.search import (
    CellSearch,
    Choices,
    Coarse,
    SharingSearch,
    SlabSearch,
    WholeDataset,
    bound_by_dataset,
    bound_choices,
    coarsen,
    find_symmetries,
)
from cvxleak.audit.search.cell_search import CELLS_LIMIT
from cvxleak.audit.search.means import entropy_surplus
from cvxleak.audit.search.node_work import Search, rule_of, turn_of, work_of
from cvxleak.audit.search.symmetries import Symmetry
from cvxleak.audit.search.tangents import by_blocks, by_tangents, largest_contraction
from cvxleak.audit.search.whole_dataset import by_newton, knows_most
from cvxleak.audit.search.witnesses import (
    FEW_OUTPUTS,
    bound_by_capacity,
    one_group_per_value,
    through_fewer_outputs,
)
from cvxleak.capacities.outputs import merge_outputs
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.exact.packing import pack
from cvxleak.model import Limits, Lumped

__all__ = ["AuditedGroup"]

STARTS = 30
"""Random starts of the local search, per lumped problem; fewer where a step takes long."""

STEPS = 20
"""Steps of the local search from all starts; only the best one is then followed to its end."""

MOST_STEPS = 1000
"""Most steps of the local search after those; fewer where a step takes long."""

WORK = 10**8
"""About how many numbers one go of the local search may touch."""

FIRST_WORK = 2 * 10**7
"""About how many of them its first steps may touch, those from all starts."""

LATE_WORK = 2 * 10**6
"""About how many of them a local search may touch when there is no time left: 0.2 s."""

PASS_SECONDS = 5e-7
"""About how long it takes to merge outputs, or to bound by the dataset, per probability."""

STALE = 0.5
"""Share of their price that merged outputs may stay above what is attained before there are more of
them: a tree on few falls far below the price, and one on more starts high. After 40 s a count of 30
with Gaussian noise of sigma 4 is open by 2.8 % at 2, by 1.5 % at 1, by 0.9 % here."""

SHARING_LIMIT = 100
"""Most outputs for which the time-sharing bound is tried."""

TANGENTS_LIMIT = 10**8
"""Most probabilities for which tangents bound the maxima of time sharing: a step of the search for
the point where they touch takes a second."""

BLOCKS_LIMIT = 1000
"""Most groups whose blocks are looked for."""

UNIFORM_PRICE = 1e-3
"""About lam times what that bound is off by for a large multiplier lam; measured, 4e-4 to 6e-3."""

SLABS_LIMIT = 700
"""Most groups and outputs together for which slabs are tried: a Newton step solves for them all."""

SMALL = 2 * 10**6
"""About how many multiplications a node of cells may take, for cells to go before all else."""

READ_SECONDS, LEAF_SECONDS = 4e-6, 4e-7
"""About how long the proof of a tree takes, per probability: to begin with, and for each leaf."""

MANY_OUTPUTS = 12
"""Least number of outputs for which a tree on fewer, merged at a price, goes first."""

DATASET_ACCURACY = 1e-6
"""Nats to which the bound by the dataset is made as small as it can be."""


class AuditedGroup:
    """One class of groups of records: its local search, its bounds, and what proves them.

    Everything is done on demand, in the order that pays: `prepare` once, then turns of the
    searches. Whatever was done, `upper` is valid: for all adversaries, or with `limits` for those
    that meet them (what `offer` and `climb` do has to meet them too).
    """

    def __init__(
        self,
        records: tuple[int, ...],
        lumped: Lumped,
        floor: float,
        limits: Limits | None = None,
    ) -> None:
        self.records = records
        self.lumped = lumped
        self.floor = floor
        self.limits = limits
        self.weights = lumped.uniform()  # where the local search ended last
        self.multiplier = 0.0  # the floor's, there
        self.batches = 0
        self.searches: list[Search] = []
        self._prepared = 0
        self._climbed = False
        self._merged: tuple[Lumped, list[list[int]]] | None = None
        self._alphabet = float(np.log(len(lumped.values)))
        self._choices: Choices | None = None
        self._dataset: WholeDataset | None = None
        self._by_dataset = False
        self._idle: dict[int, list[int]] = {}
        self._coarse: tuple[CellSearch, Coarse] | None = None
        self._budget = np.inf  # of the price of merging outputs

    @property
    def upper(self) -> float:
        """The least of the bounds."""
        return min(bound for _, bound in self._bounds())

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(search.nodes for search in self.searches)

    @property
    def work(self) -> float:
        """About how many multiplications these nodes took."""
        return float(
            sum(
                search.nodes * work_of(rule_of(search), self.lumped, len(self._outputs(search)))
                for search in self.searches
            )
        )

    @property
    def starts(self) -> int:
        """How many random starts the local search can afford."""
        return int(np.clip(FIRST_WORK / 10 / self.merged.rows.size, 2, STARTS))

    @property
    def steps(self) -> int:
        """How many steps from that many starts the local search takes in one go."""
        return int(np.clip(FIRST_WORK / self.starts / self.merged.rows.size, 3, STEPS))

    @property
    def few_steps(self) -> int:
        """How many steps from two starts it takes when there is no time left."""
        return min(self.steps, LATE_WORK // (2 * self.merged.rows.size))

    @property
    def most_steps(self) -> int:
        """How many steps the local search takes at most to follow the best one to its end."""
        return int(np.clip(10 * WORK / self.starts / self.merged.rows.size, 50, MOST_STEPS))

    @property
    def merged(self) -> Lumped:
        """The problem with proportional outputs merged, which all searches are about."""
        return self._merge()[0]

    def prepare(
        self,
        offer: Callable[[Array], object],
        climb: Callable[[int | Array], object],
        threshold: Callable[[], float],
        stop: Stop,
        rng: np.random.Generator,
    ) -> None:
        """Bound the leakage without a tree, and look for adversaries; each part only once.

        What takes little time goes first, so that an early stop has something to show.
        """
        merged = self.merged
        size = merged.rows.size
        if self._prepared == 0:
            offer(merged.uniform())
            self._prepared = 1
        if self._prepared == 1:
            self._choose(offer, threshold, stop)
            if not stop():
                self._prepared = 2
        if self.upper <= threshold():
            return
        many = self.limits is None and merged.rows.shape[1] > FEW_OUTPUTS
        if not self._climbed and many:
            for found in through_fewer_outputs(merged, self.floor, self.weights, rng):
                if offer(found):
                    self.weights = found
                if stop() or self.upper <= threshold():
                    break
        # Nowhere zero: what has no mass stays without.
        known = (0.9 * self.weights + 0.1 * merged.uniform())[None]
        if not self._climbed and not stop():
            climb(self.starts)
            if many:
                climb(known)
            self._climbed = not stop()
        elif not self._climbed and self.few_steps > 0:
            climb(known)
            # However late it is: without any search the lower bound would be next to useless.
            climb(2)
        if self._prepared == 2 and not stop(PASS_SECONDS * size) and not self.small:
            self._bound_by_dataset(threshold, stop)

    def _choose(
        self,
        offer: Callable[[Array], object],
        threshold: Callable[[], float],
        stop: Stop,
    ) -> None:
        """Look at adversaries who keep to one group per value, and bound the leakage by capacities.

        Without a floor one of these adversaries is the worst.
        """
        merged = self.merged
        if not stop(PASS_SECONDS * merged.rows.size):
            self._choices = bound_choices(merged, stop=stop)
        if self._choices is None:
            found = one_group_per_value(merged, self.floor)
        else:
            found = self._choices.witnesses[0]
        if offer(found) and self.limits is None:
            self.weights = found
        # The capacities of all choices are at most that of all rows.
        if self._choices is None and self.upper > threshold():
            capacity = bound_by_capacity(merged, self.floor, self.limits)
            if capacity is not None:
                self._dataset = self._spread(capacity)

    def _bound_by_dataset(self, threshold: Callable[[], float], stop: Stop) -> None:
        if self._by_dataset or self.upper <= threshold():
            return
        merged = self.merged
        guess = self.weights
        if not by_newton(merged):
            guess = knows_most(merged, self.floor, guess, stop)
        found = bound_by_dataset(
            merged, self.floor, guess, self.limits, accuracy=DATASET_ACCURACY, stop=stop
        )
        self._by_dataset = True
        if self._dataset is None or found.upper < self._dataset.upper:
            self._dataset = self._spread(found)

    def advance(
        self,
        threshold: Callable[[], float],
        resolution: float,
        stop: Stop,
        on_weights: Callable[[Array], None],
    ) -> bool:
        """Give each search a turn, less and less often to those that do not get on.

        Returns false if there is nothing left to be done: no search, because the problem is too
        large for all, or none but one that has got as far as it can.
        """
        if not self.searches:
            self.searches = self._new_searches(threshold, resolution, stop)
            if self.upper <= threshold():
                return True
        elif self.upper > threshold():
            self._bound_by_dataset(threshold, stop)
            self._refine_outputs(threshold() - resolution, resolution)
        best, worked = self.upper, False
        for search in self.searches:
            skip = self._idle.setdefault(id(search), [0, 0])
            if skip[0] > 0:
                skip[0] -= 1
                worked = True
                continue
            if self._waits(search) or self._hopeless(search):
                continue
            before, nodes = search.upper, search.nodes
            search.run(
                threshold,
                resolution=resolution,
                stop=stop,
                on_weights=on_weights,
                node_limit=search.nodes + turn_of(search, self.lumped, len(self._outputs(search))),
            )
            worked = worked or search.nodes > nodes
            if search.upper <= threshold() or stop():
                break
            # Work on a bound that stays behind another one is lost in the end.
            gained = before - search.upper
            if search.upper > best and gained < 0.1 * (search.upper - best):
                skip[1] = 2 * skip[1] + 1
                skip[0] = skip[1]
            else:
                skip[1] = 0
        return worked or self.upper <= threshold() or stop()

    def proof_seconds(self) -> float:
        """Return about how long the proof will take."""
        if not self.searches:
            return 0.0
        search = min(self.searches, key=lambda search: search.upper)
        return self.lumped.rows.size * (READ_SECONDS + LEAF_SECONDS * search.leaves)

    def _bounds(self) -> list[tuple[str, float]]:
        """Return all bounds by name (as `_entry` stores them), the simplest to prove first."""
        bounds = [("alphabet", self._alphabet)]
        if self._choices is not None:
            bounds.append(("choices", self._choices.upper))
        if self._dataset is not None:
            bounds.append(("dataset", self._dataset.upper))
        return bounds + [(search.kind, search.upper) for search in self.searches]

    def entry(self, dtype: str) -> dict[str, Any]:
        """Return what proves the least bound, and the one without a floor if there is one."""
        entry: dict[str, Any] = {"records": list(self.records)}
        if self._choices is not None and self._choices.upper < self._alphabet:
            entry["choices"] = pack(self._choices.inputs)
        least = self.upper
        kind = next(kind for kind, bound in self._bounds() if bound <= least + 1e-15)
        if kind == "dataset" and self._dataset is not None:
            found = self._dataset
            entry[kind] = {
                "multipliers": pack(np.array([found.lam, found.q, *found.kappa])),
                "output": pack(found.output),
            }
        for search in self.searches:
            if search.kind == kind and search.upper <= least + 1e-15:
                entry[kind] = search.encoded(self._outputs(search), dtype)
                break
        return entry

    def _merge(self) -> tuple[Lumped, list[list[int]]]:
        if self._merged is None:
            self._merged = merge_outputs(self.lumped)
        return self._merged

    def _spread(self, found: WholeDataset) -> WholeDataset:
        """Return the bound with each merged output's probability spread over its members."""
        totals = self.lumped.rows.sum(axis=0)
        law = np.zeros(len(totals))
        for share, members in zip(found.output, self._merge()[1], strict=True):
            law[members] = share * totals[members] / max(float(totals[members].sum()), 1e-300)
        law = np.where(totals > 0, np.maximum(law, 1e-200), 0.0)
        return replace(found, output=law / law.sum())

    @property
    def small(self) -> bool:
        """Whether posterior cells take so little time that they go before all that is heavier."""
        return work_of("cells", self.lumped, self.merged.rows.shape[1]) <= SMALL

    def problem_of_cells(self) -> tuple[Lumped, list[Symmetry], list[list[int]]]:
        """Return the problem whose posteriors are cut, its symmetries, and the merged outputs."""
        merged, outputs = self._merge()
        # Symmetries are of the rows as they are stored: that is what a certificate can check.
        whole = all(len(part) == 1 for part in outputs)
        symmetries = find_symmetries(self.lumped) if whole and self.limits is None else []
        return self.lumped if symmetries else merged, symmetries, outputs

    def _new_searches(
        self, threshold: Callable[[], float], resolution: float, stop: Stop
    ) -> list[Search]:
        merged = self.merged
        groups, outputs = merged.rows.shape
        searches: list[Search] = []
        if 1 + outputs * len(merged.values) <= CELLS_LIMIT:
            problem, symmetries, _ = self.problem_of_cells()
            searches.append(CellSearch(problem, self.floor, self.limits, symmetries))
        if np.isinf(self.multiplier) and self.limits is None:
            # At b = log|X| there is one adversary, whom time sharing bounds without any tree.
            if self.lumped.rows.size <= TANGENTS_LIMIT:
                searches.insert(
                    0,
                    SharingSearch(merged, self.floor, merged.uniform(), self._uniform_multiplier()),
                )
        elif self.limits is None and self.multiplier > 0:
            lam = max(self.multiplier, largest_contraction(merged))
            if lam > self.multiplier:
                sharing = SharingSearch(merged, self.floor, self.weights, self.multiplier)
                # Values that are many make many cells, but no deeper trees of their own.
                first = len(merged.values) > 2 or (sharing.by_boxes and not self.small)
                if sharing.by_boxes or outputs <= SHARING_LIMIT:
                    searches.insert(0 if first else 1, sharing)
            if self.lumped.rows.size <= TANGENTS_LIMIT:
                steps = self.most_steps
                searches.insert(0, by_tangents(merged, self.floor, self.weights, lam, steps, stop))
                above = searches[0].upper - threshold() + resolution
                if lam == 1 and above > resolution and not self.small and groups <= BLOCKS_LIMIT:
                    price = self.multiplier
                    known = merged, self.floor, self.weights, price, above, resolution
                    searches.insert(1, by_blocks(*known, steps, stop))
        if groups + outputs <= SLABS_LIMIT:
            searches.append(SlabSearch(merged, self.floor, self.weights, self.limits))
        if self.small:
            # Two values make few cells: their tree may well be done before the others begin.
            late = [s for s in searches[1:] if s.kind == "slabs" or len(merged.values) == 2]
            self._idle = {id(search): [1, 1] for search in late}
        return searches

    def _uniform_multiplier(self) -> float:
        """Return the multiplier for b = log|X|: what it costs balances lam (log|X| - b)."""
        return float(np.sqrt(UNIFORM_PRICE / max(entropy_surplus(self.merged, self.floor), 1e-16)))

    def _waits(self, search: Search) -> bool:
        """Whether a tree of cells has to wait until one with fewer outputs got as far as it can."""
        return (
            self._coarse is not None
            and isinstance(search, CellSearch)
            and search is not self._coarse[0]
        )

    def _hopeless(self, search: Search) -> bool:
        """Whether a search cannot get below what is proved already."""
        return isinstance(search, SharingSearch) and search.attained >= self.upper

    def _outputs(self, search: Search) -> list[list[int]]:
        """Return which outputs are merged in a search."""
        coarse = search.coarse if isinstance(search, CellSearch) else None
        return self._merge()[1] if coarse is None else coarse.partition

    def _refine_outputs(self, attained: float, resolution: float) -> None:
        """Start a tree on few outputs, or on more once the price is most of what keeps it up."""
        outputs = len(self._merge()[1])
        if self._budget == 0.0 or outputs < MANY_OUTPUTS:
            return
        if self._coarse is None:
            budget = 0.4 * resolution
        elif self._coarse[0].upper - attained <= STALE * float(
            self.weights @ self._coarse[1].price
        ):
            budget = 0.3 * self._budget
        else:
            return
        found = coarsen(self.lumped, self.weights, budget)
        if self._coarse is None and (found is None or len(found.partition) > outputs / 2):
            # For a start a bound that cannot reach the tolerance is better than none.
            budget = max(budget, 0.02 * attained)
            found = coarsen(self.lumped, self.weights, budget)
        if found is None or len(found.partition) >= outputs:
            self._budget, self._coarse = 0.0, None
            return
        search = CellSearch(found.lumped, self.floor, self.limits, coarse=found)
        self._budget, self._coarse = budget, (search, found)
        self.searches.insert(0, search)
