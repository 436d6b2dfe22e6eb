"""`BestFirst`: the loop and the tree that every branch and bound here shares."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from cvxleak.core.validation import Array

__all__ = ["NUMBERS", "BestFirst", "Bounded", "Leaf"]


class Leaf(Protocol):
    """Multipliers that prove `bound` for the node that holds them."""

    @property
    def bound(self) -> float:
        """What the multipliers prove."""
        ...


TOGETHER = 32
"""Nodes that are bounded at once, if a batch may be that large, however few are open."""

NUMBERS = 1 << 20
"""About how many numbers the arrays of a batch may have. From a sixteenth to eight times of it the
problems of the bank take as long."""

L = TypeVar("L", bound=Leaf)
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True)
class Bounded(Generic[L, S]):
    """What bounding a node gave: its multipliers, where to split it, a relaxed maximizer.

    There is no maximizer where the node was found to be superfluous.
    """

    leaf: L
    split: S
    weights: Array | None


class BestFirst(ABC, Generic[R, L, S]):
    """Upper bounds on a leakage by splitting regions (R), proved by leaves (L), along splits (S).

    Node 0 is the root; the two children of a split node are stored one after the other. Together
    the leaves cover every adversary, so `upper` is valid at any moment: before, between and after
    runs, while a batch is worked on, and after an interrupt wherever it strikes. For the latter,
    a node counts as split from one assignment on, when its children are in place; the heaps are
    made anew from the tree whenever a batch did not come to its end.
    """

    batch: int = 1
    """Most nodes that are bounded at once."""

    def __init__(self, region: R, leaf: L) -> None:
        self.nodes = 0
        self._splits: dict[int, tuple[S, int]] = {}
        self._regions: dict[int, R] = {0: region}
        self._leaves: dict[int, L] = {0: leaf}
        self._size = 1
        # Heaps of (-bound, node): leaves to be split, and leaves below the last threshold, which
        # a run with a lower one opens again.
        self._open = [(-leaf.bound, 0)]
        self._closed: list[tuple[float, int]] = []
        # The largest bound of the batch that is worked on; finite for as long as the heaps may
        # lack nodes.
        self._in_flight = -np.inf

    @property
    def upper(self) -> float:
        """The largest bound of a leaf: nothing leaks more."""
        tops = [-heap[0][0] for heap in (self._open, self._closed) if heap]
        return max([*tops, self._in_flight])

    @property
    def leaves(self) -> int:
        """Number of leaves that a certificate would hold."""
        return len(self._leaves)

    def run(
        self,
        threshold: Callable[[], float],
        *,
        resolution: float,
        stop: Callable[[], bool],
        on_weights: Callable[[Array], None],
        node_limit: int | None = None,
    ) -> None:
        """Bound and split until `upper <= threshold()`, `stop()`, or the node limit.

        `resolution` is the gap, in nats, that makes a difference to the caller: bounds are computed
        to a hundredth of it. `on_weights` is handed relaxed maximizers, from which the caller may
        find better attained values (and so raise the threshold).
        """
        self.settle()
        while self._closed and -self._closed[0][0] > threshold():
            # Pushed before it is popped: twice in the heaps for a moment, but never lost.
            self._in_flight = -self._closed[0][0]
            heapq.heappush(self._open, self._closed[0])
            heapq.heappop(self._closed)
        self._in_flight = -np.inf
        while self._open and -self._open[0][0] > threshold():
            if stop() or (node_limit is not None and self.nodes >= node_limit):
                return
            self._in_flight = -self._open[0][0]
            limit = min(self.batch, max(TOGETHER, 1 + len(self._open) // 2))
            chosen = []
            while self._open and len(chosen) < limit and -self._open[0][0] > threshold():
                chosen.append(heapq.heappop(self._open)[1])
            self._process(chosen, threshold(), resolution, stop, on_weights)
            self._in_flight = -np.inf

    def settle(self) -> None:
        """After an interrupt inside a batch, make the heaps anew from the tree."""
        if self._in_flight == -np.inf:
            return
        inner = self._splits
        reached = {0} | {child + side for _, child in inner.values() for side in (0, 1)}
        leaves = {node: leaf for node, leaf in self._leaves.items() if node in reached - set(inner)}
        self._regions = {node: self._regions[node] for node in leaves}
        self._leaves = leaves
        self._open_all()
        self._in_flight = -np.inf

    def _open_all(self) -> None:
        """Make the heaps anew, with no leaf closed."""
        self._closed = []
        self._open = [(-leaf.bound, node) for node, leaf in self._leaves.items()]
        heapq.heapify(self._open)

    def adopt(self, other: BestFirst[R, L, S], moved: Callable[[L], L]) -> None:
        """Start from the tree of another search; `moved` returns what its multipliers prove here.

        The regions are the same in both.
        """
        other.settle()
        self._splits, self._size = dict(other._splits), other._size
        self._regions = dict(other._regions)
        self._leaves = {node: moved(leaf) for node, leaf in other._leaves.items()}
        self._open_all()

    def levels(self) -> tuple[list[S | None], list[L]]:
        """Return the nodes level by level (None for a leaf), and the leaves in that order."""
        self.settle()
        nodes: list[S | None] = []
        leaves: list[L] = []
        queue = [0]
        for node in queue:  # it grows on the way
            if node in self._splits:
                split, child = self._splits[node]
                nodes.append(split)
                queue += [child, child + 1]
            else:
                nodes.append(None)
                leaves.append(self._leaves[node])
        return nodes, leaves

    @abstractmethod
    def _bound(
        self,
        regions: Sequence[R],
        leaves: Sequence[L],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> Sequence[Bounded[L, S]]:
        """Bound some nodes, starting from multipliers that are valid for them.

        Once `stop()` says so the best multipliers so far will do.
        """

    @abstractmethod
    def _children(
        self, regions: Sequence[R], leaves: Sequence[L], splits: Sequence[S]
    ) -> Sequence[Sequence[tuple[R, L]]]:
        """Return the two parts of each region, with valid multipliers that bound them no worse."""

    def _process(
        self,
        nodes: list[int],
        threshold: float,
        resolution: float,
        stop: Callable[[], bool],
        on_weights: Callable[[Array], None],
    ) -> None:
        leaves = [self._leaves[node] for node in nodes]
        # Far above the threshold a node is split anyway: it need not be bounded sharply.
        accuracies = [max(1e-12, 1e-2 * max(leaf.bound - threshold, resolution)) for leaf in leaves]
        regions = [self._regions[node] for node in nodes]
        results = self._bound(regions, leaves, threshold, accuracies, stop)
        self.nodes += len(nodes)
        weights = [result.weights for result in results if result.weights is not None]
        if weights:
            on_weights(np.stack(weights))
        divided: list[tuple[int, S]] = []
        for node, result in zip(nodes, results, strict=True):
            leaf = min(self._leaves[node], result.leaf, key=lambda leaf: leaf.bound)
            self._leaves[node] = leaf
            if leaf.bound <= threshold:
                heapq.heappush(self._closed, (-leaf.bound, node))
            else:
                divided.append((node, result.split))
        parts = self._children(
            [self._regions[node] for node, _ in divided],
            [self._leaves[node] for node, _ in divided],
            [split for _, split in divided],
        )
        for (node, split), children in zip(divided, parts, strict=True):
            child = self._size
            self._size += 2
            for place, (region, inherited) in enumerate(children):
                self._regions[child + place] = region
                self._leaves[child + place] = inherited
            self._splits[node] = (split, child)  # from here on the node is split
            del self._leaves[node], self._regions[node]
            for place, (_, inherited) in enumerate(children):
                heapq.heappush(self._open, (-inherited.bound, child + place))
