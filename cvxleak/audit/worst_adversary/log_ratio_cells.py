"""`LogRatioCells`: proofs of a time-sharing bound by trees of the kernel's rule `ratio`.

At the t and the multipliers of a `TimeSharing` bound what is to be proved, for each value of A, is

    phi = max_v D(vR || t) + <v, base> + L H(v).

All maximizers are fixed points v = law(Ru) with u = log(vR / t), if no R_gy is 0. The kernel's rule
bounds them on boxes: ranges of some functionals of u, and of its increments. A box is
narrowed to where fixed points can be, and then cut across the functional that matters most. See
`cvxleak.kernel.ratio`, whose formulas are evaluated here in floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cvxleak.audit.worst_adversary.group import FLOATS, Group, Term
from cvxleak.audit.worst_adversary.log_ratio_boxes import LogRatioBoxes
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.audit.worst_adversary.time_sharing import (
    TimeSharing,
    Value,
    mirrored,
    short,
    values_of,
)
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel.reading import pack
from cvxleak.solvers.best_first import NUMBERS, BestFirst, Bounded

__all__ = ["LogRatioCells", "possible"]

Cut = tuple[int, float]


@dataclass(frozen=True)
class Box:
    """What is known of phi on a box."""

    bound: float


class LogRatioTree(BestFirst[Array, Box, Cut]):
    """A bound of phi for one value. A region is a box of `LogRatioBoxes`."""

    def __init__(self, made: LogRatioBoxes) -> None:
        self._made, self.boxes = made, made.boxes
        self.batch = max(1, NUMBERS // self.boxes.rows.size)
        ends, bounds = self._narrowed(self.boxes.root[None])
        super().__init__(ends[0], Box(bounds[0]))

    @np.errstate(all="ignore")
    def _narrowed(self, ends: Array) -> tuple[Array, list[float]]:
        """Return boxes without what no fixed point is in, and their bounds."""
        spend(len(ends) * self._made.work)
        ends = self.boxes.narrowed(ends)
        bounds = self.boxes.bound(ends).m
        bounds = np.where(np.isnan(bounds), np.inf, bounds)
        slack = HAIR * (1 + np.abs(ends[:, 0]))
        empty = (ends[:, 0] < -ends[:, 1] - slack).any(axis=1)
        return ends, np.where(empty, -np.inf, bounds).tolist()

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[Box],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[Box, Cut]]:
        ends, x = np.stack(regions), self.boxes.x
        v, d = self.boxes.middle(ends)[1].m, x.shape[1]
        # How much z varies, on the average over v, for each range that can be cut.
        spread = np.sqrt(np.maximum(v @ x**2 - (v @ x) ** 2, 1e-12))
        places = (ends[:, :, :d].sum(axis=1) * spread).argmax(axis=1)
        each = np.arange(len(ends))
        cuts = short((ends[each, 0, places] - ends[each, 1, places]) / 2)
        splits = zip(places.tolist(), cuts.tolist(), strict=True)
        return [Bounded(leaf, cut, None) for leaf, cut in zip(leaves, splits, strict=True)]

    def _children(
        self, regions: Sequence[Array], leaves: Sequence[Box], splits: Sequence[Cut]
    ) -> Sequence[Sequence[tuple[Array, Box]]]:
        if not regions:
            return []
        both = np.stack([regions, regions], axis=1)
        for pair, (place, cut) in zip(both, splits, strict=True):
            pair[0, 0, place], pair[1, 1, place] = cut, -cut
        ends, bounds = self._narrowed(both.reshape(-1, *both.shape[2:]))
        parts = [(box, Box(bound)) for box, bound in zip(ends, bounds, strict=True)]
        return list(zip(parts[::2], parts[1::2], strict=True))

    def term(self, reversed_outputs: int = 0) -> Term:
        """Return the term that proves `upper`.

        With a number of outputs it is that of the value that is the image in reverse order.
        """
        splits, _ = self.levels()
        nodes = np.array([-1 if split is None else split[0] for split in splits])
        made, boxes = self._made, self.boxes
        outputs, groups = made.outputs, made.groups
        if reversed_outputs:
            outputs, groups = reversed_outputs - 1 - outputs, len(groups) - 1 - groups
        back = np.argsort(groups)
        return {
            "rule": "ratio",
            "law": pack(made.law[back], "<f4"),
            "order": pack(outputs, "<i4"),
            "groups": pack(groups if boxes.ordered else [], "<i4"),
            "x": pack(boxes.x[back], "<f4"),
            "psi": pack(made.psi, "<f4"),
            "nodes": pack(nodes, "<i4"),
            "cuts": pack([split[1] for split in splits if split is not None], "<f4"),
        }


def possible(group: Group) -> bool:
    """Return whether the rule applies: to exact rows that reach the same outputs."""
    if not (group.view.exact and group.view.information):
        return False
    for own, value in zip(group.view.of, values_of(group), strict=True):
        others = set(range(value.rows.shape[1])) - set(value.used.tolist())
        unused = [group.view.rows[g].lo[y] for g in own for i in others for y in group.parts[i]]
        # What is 0 as a float may be positive.
        if not ((value.rows[:, value.used] > 0).all() and all(x.is_zero() for x in unused)):
            return False
    return True


class LogRatioCells:
    """Trees that prove a time-sharing bound, one for each value with several groups of contexts.

    The second value of a group that is its own mirror image has the tree of the first. They are
    grown until the bound is `reach`, at most.
    """

    def __init__(self, group: Group, sharing: TimeSharing, reach: float = -np.inf) -> None:
        self.group, self.sharing, self.mirrored = group, sharing, mirrored(group)
        self.reach = reach
        values = values_of(group)[: 1 if self.mirrored else None]
        trees = [self._tree(a, value) for a, value in enumerate(values)]
        self.trees = trees * (2 if self.mirrored else 1)

    def _tree(self, a: int, value: Value) -> LogRatioTree | None:
        """Return the tree of a value; none where the bound at the vertices is sharp."""
        if (value.rows == value.rows[0]).all():
            return None
        sharing = self.sharing
        base = value.base(sharing.scale, sharing.multipliers[1:])
        log_t = sharing.log_output
        return LogRatioTree(
            LogRatioBoxes.of(value, base, sharing.scale, log_t, sharing.found[a][0])
        )

    @property
    def upper(self) -> float:
        """The bound as it stands."""
        pairs = zip(self.sharing.phi, self.trees, strict=True)
        found = [phi if tree is None else tree.upper for phi, tree in pairs]
        return self.sharing.total(np.array(found))

    def upper_at(self, surplus: Array) -> Array:
        """Return what the same trees prove for each other surplus log|X| - b."""
        lam = float(self.sharing.multipliers[0]) / (1 - self.group.smoothing)
        return self.upper + lam * (surplus - self.group.surplus)

    @property
    def proof_size(self) -> float:
        """About how many probabilities in balls take as long as the proof.

        These are for the functionals, and floats to narrow boxes and to bound leaves.
        """
        made = [(tree.boxes, tree.leaves) for tree in self.trees if tree is not None]
        return sum(x.rows.size * (x.x.shape[1] + leaves / FLOATS) for x, leaves in made)

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(tree.nodes for tree in {*self.trees} if tree is not None)

    def run(
        self,
        threshold: Callable[[], float],
        *,
        resolution: float,
        stop: Callable[[], bool],
        on_weights: Callable[[Array], None],
        node_limit: int | None = None,
    ) -> None:
        """Bound and split until `upper <= threshold()`, `stop()`, or the node limit."""
        sharing = self.sharing
        for phi, tree in zip(sharing.phi, self.trees, strict=True):
            if tree is None:
                continue

            def target(phi: float = phi) -> float:
                # phi_a + x for all values adds x to the bound.
                spare = max(threshold(), self.reach) - sharing.bound
                return phi + spare * (1 - self.group.smoothing)

            limit = None if node_limit is None else tree.nodes + node_limit - self.nodes
            tree.run(
                target, resolution=resolution, stop=stop, on_weights=on_weights, node_limit=limit
            )

    def term(self) -> Term:
        """Return the term that proves `upper`."""
        sharing, vertices = self.sharing, {"rule": "vertices"}
        image = len(sharing.output) if self.mirrored else 0
        values = [
            vertices if tree is None else tree.term(a * image) for a, tree in enumerate(self.trees)
        ]
        of: Term = {"rule": "share", "t": pack(sharing.output, "<f4"), "values": values}
        lam, *kappa = sharing.multipliers
        return self.group.priced(self.group.closed(float(lam), of, np.array(kappa)))
