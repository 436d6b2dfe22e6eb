r"""`LawBlocks`: the inner maximum of the time-sharing bound, by boxes of the masses of blocks.

Where rows share no output, as those of counts that a rounding keeps apart, the contraction of a
value's rows is 1, and tangents need lam >= 1. Blocks of contexts whose rows share outputs have a
smaller one, and there are fewer of them than contexts or outputs. A region is a box of the masses
of the blocks; a leaf is the distribution w at which a tangent touches within the blocks (derived in
`cvxleak.kernel.values`). What it misses f by goes with (1 - lam) sum_B beta_B
log(beta_B / omega_B), and f falls faster than that on the way from its maximizer wherever lam is
well above the contraction there. So few boxes are needed if lam is near 1, and all the more the
nearer lam is to the floor's own multiplier: the caller chooses it in between.

The blocks are looked for by a greedy search from random orders, for the least sum of the roots of
their masses: few blocks, and most of the mass in few of them. The blocks of least mass, together
`TAIL`, are one block, whatever its contraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from cvxleak.audit.search.intervals import Cut
from cvxleak.audit.search.law_boxes import GRID
from cvxleak.audit.search.simplex_boxes import (
    LEAST_WEIGHT,
    BoxLeaf,
    BoxTree,
    chords,
    clipped,
    linear_maximizers,
)
from cvxleak.audit.search.value_tree import ValueTree, contracts_by
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.exact.packing import pack
from cvxleak.solvers.best_first import Bounded

__all__ = ["LawBlocks", "blocks_of", "matched"]

Places = NDArray[np.intp]

# Measured on two cells and the total of 5 people in three categories, rounded to base 3, at 95 % of
# log|X| and a tolerance of 1 %, which takes 1664 nodes (`tests/audit/search/test_law_blocks.py`).

BATCH_SIZE = 1 << 20
"""About how many numbers the largest array of a batch may have."""

ORDERS = 200
"""Orders of the contexts from which blocks are made: 20 of them lead to 1696 nodes."""

TAIL = 3e-3
"""Mass of the contexts that are one block without a contraction: with a tenth of it as many nodes,
with ten times as much the gap stays open after 500,000."""

STEPS = 3
"""Steps towards the maximizer of f in a box: 1718 nodes with 1, 1702 with 6."""

SETTLING = 3
"""Steps to the best distributions within the last block, whose mass is kept. With 5 people, 0 and 6
steps lead to as many nodes; 12 people at 97 % close after 47,000 nodes with 3 steps, and are open
after 147,000 with 1 and after 260,000 with 0."""

PLACE = 0.3
"""A mass is cut at this share of the way from omega_B to where the bound is largest: 1910 nodes at
0.6, 9121 at 1, and at 0.1 the gap stays open after 440,000."""

MARGIN = 0.1
"""A cut keeps at least this share of the interval on each side."""

ROUNDING = 1e-9
"""Numbers as far apart as this may be taken to be equal: a wrong match costs time, no more."""

BLOCK_STEPS = 10.0
"""About how often a node goes through the rows. Two cells and the total of 12 people take 0.1 ms a
node, of 78 rows and 59 outputs: a turn is 2 s."""


def blocks_of(rows: Array, law: Array, most: float) -> list[list[int]]:
    """Return a partition of the contexts into blocks that contract by `most`, but for the last."""
    roots = np.sqrt(rows)
    near = roots @ roots.T
    together = 1 - near**2 <= most
    order = np.argsort(-near, axis=1)
    rng = np.random.default_rng(0)
    best: tuple[float, list[list[int]]] = (np.inf, [])
    for _ in range(ORDERS):
        blocks, taken = [], np.zeros(len(rows), dtype=bool)
        for g in np.argsort(-law * np.exp(rng.normal(size=len(rows)))).tolist():
            if taken[g]:
                continue
            block, fits = [g], together[g] & ~taken
            for other in order[g].tolist():
                if fits[other] and other != g:
                    block.append(other)
                    fits &= together[other]
            taken[block] = True
            blocks.append(block)
        masses = np.array([law[block].sum() for block in blocks])
        spread = float(np.sqrt(masses).sum())
        if spread < best[0]:
            best = spread, [blocks[b] for b in np.argsort(-masses)]
    blocks = best[1]
    masses = np.array([law[block].sum() for block in blocks])
    kept = int((np.cumsum(masses[::-1])[::-1] > TAIL).sum())
    tail = sorted(g for block in blocks[kept:] for g in block)
    return blocks[:kept] + ([tail] if tail else [])


def matched(own: tuple[Array, Array], other: tuple[Array, Array]) -> Places | None:
    """Return for each context one of another value with the same invariants, if all have one."""
    (mine, near), (theirs, theirs_near) = own, other
    if mine.shape != theirs.shape:
        return None
    alike = np.abs(mine[:, None] - theirs).max(axis=2) <= ROUNDING
    match = np.zeros(0, dtype=np.intp)
    for g in range(len(mine)):
        fits = alike[g] & (np.abs(near[g, :g] - theirs_near[:, match]) <= ROUNDING).all(axis=1)
        fits[match] = False
        if not fits.any():
            return None
        match = np.append(match, fits.argmax())
    return match


class LawBlocks(BoxTree):
    """Upper bounds on max_v D(v R || t) - lam D(v || s), for one value of the record and lam <= 1.

    A region has one interval per block.
    """

    def _root(self) -> tuple[Array, BoxLeaf]:
        self._fit(BATCH_SIZE)
        law = self._law(self.law)
        self._part(blocks_of(self._rows, law, self._lam))
        box = np.tile([0.0, 1.0], (len(self._blocks), 1))
        bounds, _ = self._values(box[None], law[None])
        return box, BoxLeaf(float(bounds[0]), law)

    def _part(self, blocks: list[list[int]]) -> None:
        """Set the blocks, and what the bounds need of them."""
        self._blocks = blocks
        sizes = [len(block) for block in self._blocks]
        self._in_order = np.concatenate(self._blocks)
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._block = np.empty(len(self._rows), dtype=int)
        self._block[self._in_order] = np.repeat(np.arange(len(sizes)), sizes)
        eta = np.array([contracts_by(self._rows[block]) for block in self._blocks])
        self._eta = eta[self._block]
        # Zero would be divided by.
        self._left = np.where(self._lam > eta, self._lam - eta, -1.0)

    def image(self, other: ValueTree[Any]) -> LawBlocks | None:
        """Return the tree of another value as one of this, if a symmetry matches their contexts.

        Only the blocks, the cuts and the distributions are taken over; bounds are computed anew.
        """
        if not isinstance(other, LawBlocks):
            return None
        match = matched(self._invariants, other._invariants)
        if match is None:
            return None
        back = np.argsort(match)
        tree = copy(self)
        tree._part([back[block].tolist() for block in other._blocks])

        def renewed(regions: list[Array], leaves: list[BoxLeaf]) -> list[BoxLeaf]:
            moved = [BoxLeaf(leaf.bound, leaf.law[match]) for leaf in leaves]
            return tree._renewed(regions, moved)

        tree.adopt(other, renewed)
        return tree

    @cached_property
    def _invariants(self) -> tuple[Array, Array]:
        """What a symmetry of the release keeps of each context, and of each pair of them."""
        roots = np.sqrt(self._rows)
        heights = self._rows @ np.log(self._t)
        return np.stack([self._log_shares, heights], axis=1), roots @ roots.T

    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the tree as `cvxleak.audit.old_terms` reads it."""
        tree, leaves = self._cuts_and_nodes()
        laws = np.array([leaf.law for leaf in leaves])
        return {"blocks": self._blocks} | tree | {"leaves": pack(laws, dtype)}

    def _renewed(self, regions: list[Array], leaves: list[BoxLeaf]) -> list[BoxLeaf]:
        renewed = []
        for start in range(0, len(leaves), self.batch):
            part = leaves[start : start + self.batch]
            ends = np.stack(regions[start : start + self.batch])
            bounds, _ = self._values(ends, np.stack([leaf.law for leaf in part]))
            renewed += [
                # No distribution is in a box that is empty.
                leaf if leaf.bound == -np.inf else BoxLeaf(float(bound), leaf.law)
                for leaf, bound in zip(part, bounds, strict=True)
            ]
        return renewed

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[BoxLeaf],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[BoxLeaf, Cut]]:
        spend(2e6 + BLOCK_STEPS * len(regions) * self._rows.size)
        ends, laws = np.stack(regions), np.stack([leaf.law for leaf in leaves])
        for _ in range(STEPS):
            laws = self._maximizers(ends, laws)
        for _ in range(SETTLING):
            laws = self._settled(laws)
        bounds, worst = self._values(ends, laws)
        splits = self._branch(ends, self._masses(laws), worst)
        return [
            Bounded(BoxLeaf(float(bound), law), split, law)
            for bound, law, split in zip(bounds, laws, splits, strict=True)
        ]

    def _branch(self, ends: Array, omega: Array, beta: Array) -> list[Cut]:
        """Return the branching rule: the block that adds most to D(beta || omega), where."""
        low, width = ends[..., 0], ends[..., 1] - ends[..., 0]
        gain = np.where(width > 4 * GRID, rel_entr(beta, omega) - beta + omega, -1.0)
        b = gain.argmax(axis=1)
        n = np.arange(len(ends))
        low, width = low[n, b], width[n, b]
        where = omega[n, b] + PLACE * (beta[n, b] - omega[n, b])
        where = np.clip(where, low + MARGIN * width, low + (1 - MARGIN) * width)
        where = np.rint(where / GRID) * GRID
        return list(zip(b.tolist(), where.tolist(), strict=True))

    def _maximizers(self, ends: Array, laws: Array) -> Array:
        """Return the distribution in each box where the tangent minus lam D(v || s) is largest."""
        x = self._slopes(laws) @ self._rows.T / self._lam + self._log_shares
        totals = self._totals(x)
        return self._within(x, totals, clipped(totals, ends))

    def _settled(self, laws: Array) -> Array:
        """Return distributions with the same masses, nearer the best one in blocks of no use."""
        x = self._slopes(laws) @ self._rows.T + self._lam * self._log_shares
        settled = self._within(x, self._totals(x), self._masses(laws))
        return np.where(self._left[self._block] > 0, laws, settled)

    def _largest(self, x: Array) -> Array:
        return np.maximum.reduceat(x[:, self._in_order], self._starts, axis=1)

    def _totals(self, x: Array) -> Array:
        """Return the logarithms of the sums of exp(x) over the blocks."""
        most = self._largest(x)
        parts = np.exp(x - most[:, self._block])[:, self._in_order]
        return most + np.log(np.add.reduceat(parts, self._starts, axis=1))

    def _within(self, x: Array, totals: Array, masses: Array) -> Array:
        """Return distributions with these masses, proportional to exp(x) within each block."""
        shares = np.exp(x - totals[:, self._block])
        return self._law(np.maximum(masses, LEAST_WEIGHT)[:, self._block] * shares)

    def _values(self, ends: Array, laws: Array) -> tuple[Array, Array]:
        """Return the bounds, and the masses at which they are attained."""
        log_omega = np.log(self._masses(laws))
        x = self._slopes(laws) @ self._rows.T + self._lam * self._log_shares
        x -= self._eta * (np.log(laws) - log_omega[:, self._block])
        size = np.abs(x).max(axis=1)
        x = np.where(
            self._left > 0,
            np.abs(self._left) * self._totals(x / np.abs(self._left)[self._block]),
            self._largest(x),
        )
        rise, offset = chords(ends)
        x += (1 - self._lam) * rise - log_omega
        masses = linear_maximizers(x, ends)
        bounds = (x * masses).sum(axis=1) + (1 - self._lam) * offset.sum(axis=1)
        return bounds + self._rounding * (1 + size), masses

    def _masses(self, laws: Array) -> Array:
        return np.add.reduceat(laws[:, self._in_order], self._starts, axis=1)
