r"""Covers: trees whose leaves cover all adversaries, each with a bound of its own.

A tree is in levels: the root, its children, theirs, ...; a node names what is cut and has a cut; -1
stands for a leaf. A simplex is the union of the two that a point on an edge makes of it: in each,
the point takes the place of one end. So the larger of two bounds holds on what is cut in two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flint import arb

from cvxleak.kernel.budget import charge, few
from cvxleak.kernel.many import Balls, Many
from cvxleak.kernel.numbers import Counted, ball, need
from cvxleak.kernel.terms import Leaf, Rule, Shape, packed, term
from cvxleak.kernel.view import View

__all__ = ["Cells", "PosteriorCells", "largest_bound", "replay"]

AT_ONCE = 1 << 22
"""About how many float operations are done at once, on many leaves."""

ALLOWANCE = 1e-11
"""Radius up to which a leaf's float ball is taken; otherwise the leaf is evaluated in balls."""

MOST_NUMBERS = 1 << 27
"""Most numbers of all parts of a tree, and of all points."""

Part = Any
"""What a node is about, as an array; those of many nodes have one axis more, in front."""

# Trees -------------------------------------------------------------------------------------------


def replay(root: Part, nodes: Any, cuts: Any, split: Callable[[Part, Any, Any], Part]) -> Part:
    """Return what the leaves of a tree are about, in order.

    `split` makes of parts, their nodes and their cuts twice as many parts.
    """
    nodes, cuts, parts, found = nodes.astype(int), cuts.astype(float), root[None], []
    # So each level has as many nodes as the one before has children.
    cut = int((nodes[:, 0] >= 0).sum())
    need(len(nodes) == 2 * cut + 1 and len(cuts) == cut, "no tree with a cut for each inner node")
    few(root.size * len(nodes), MOST_NUMBERS, "numbers of a tree's parts")
    while len(parts):
        charge("float operations", parts.size + 1000)
        own, nodes = nodes[: len(parts)], nodes[len(parts) :]
        inner = own[:, 0] >= 0
        found.append(parts[~inner])
        at, cuts = cuts[: inner.sum()], cuts[inner.sum() :]
        parts = split(parts[inner], own[inner], at) if len(at) else parts[:0]
    need(not len(nodes), "a tree that ends before its last node")
    return np.concatenate(found)


def largest_bound(
    chosen: Any, step: int, size: int, floats: Callable[[Any], Many], balls: Callable[[int], arb]
) -> arb:
    """Return the largest bound of some leaves, each of which takes `size` operations.

    Float balls are computed of `step` leaves at once. Where one is wide, the leaf's bound is
    computed in balls, unless another leaf's is at least as large as the float ball's end.
    """
    charge("float operations", size * len(chosen))
    found = []
    for start in range(0, len(chosen), step):
        with np.errstate(all="ignore"):
            own = chosen[start : start + step]
            many = floats(own)
            uppers = np.where(many.certain(), many.upper(), np.inf)
            narrow = many.certain() & (many.r < ALLOWANCE)
        found.append(np.broadcast_arrays(uppers, narrow, own)[:2])
    uppers, narrow = np.concatenate(found, axis=1)
    most = arb("-inf")
    for i in np.argsort(-uppers).tolist():
        if most >= uppers[i]:
            break
        charge("ball operations", 0 if narrow[i] else size)
        most = most.max(arb(uppers[i]) if narrow[i] else balls(int(chosen[i])))
        need(most.is_finite(), "a leaf that bounds nothing")
    return most


# Cells of posteriors -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorCells(Rule, rule="cells", gives="B", when=["no cover around"]):
    """J <= the largest bound of a leaf; each has a cell for every output's posterior of A.

    A node is an output, two vertices i, j of its cell and t: the cut is at (1 - t) V_i + t V_j. If
    s_y = 0, rho_y may be any distribution.
    """

    nodes: Any = packed("i", "3")
    cuts: Any = packed("f")
    leaves: Any = packed("f", "0")
    of: Any = term("B")

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape of templates, once the leaves are read."""
        if "leaves" not in found:
            return shape
        return replace(shape, columns=found["leaves"].shape[1], covered=True)

    def check(self, shape: Shape) -> None:
        """Need numbers for each leaf."""
        need(len(self.nodes) == len(self.cuts) + len(self.leaves), "cells: no tree")

    def evaluate(self, subject: View, leaf: Leaf) -> arb:
        """Return the largest bound of a leaf."""
        return Cells(self, subject).largest()


class Cells:
    """The cells of all leaves, and their bounds.

    A part of the tree has, for each output, the numbers of its cell's vertices among all points.
    Points are float balls; those of a leaf that is evaluated in balls are computed once more.
    """

    def __init__(self, cover: PosteriorCells, subject: View) -> None:
        self.cover, self.subject, self.floats = cover, subject, subject.lifted(Many.of)
        k, n, size = subject.k, subject.n, subject.k + len(cover.cuts)
        charge("bytes of numbers", 64 * (k * k * n + cover.leaves.shape[1]))
        need(k * size <= MOST_NUMBERS, "cells: too many cuts")
        self.points = Many(np.eye(k, size), np.zeros((k, size)))
        self.exact: dict[int, Any] = {i: Balls.of(own) for i, own in enumerate(np.eye(k))}
        self.made: list[tuple[int, int, float]] = [(0, 0, 0.0)] * k
        root = np.tile(np.arange(k), (n, 1))
        self.leaves = replay(root, cover.nodes, cover.cuts, self.split)

    def split(self, parts: Part, nodes: Any, cuts: Any) -> Part:
        """Return the cells with either end of an edge moved to the cut."""
        (y, i, j), (_, n, k), each = nodes.T, parts.shape, np.arange(len(parts))
        fits = (y < n) & (0 <= i) & (i < k) & (0 <= j) & (j < k) & (i != j)
        need(bool(fits.all()), "cells: no such edge")
        need(bool(((0 < cuts) & (cuts < 1)).all()), "cells: a cut outside of its edge")
        one, other = parts[each, y, i], parts[each, y, j]
        new, t = len(self.made) + each, Many(cuts)
        point = (1.0 - t) * self.points[:, one] + t * self.points[:, other]
        self.points.m[:, new], self.points.r[:, new] = point.m, point.r
        self.made += zip(one.tolist(), other.tolist(), cuts.tolist(), strict=True)
        both = np.stack([parts, parts], 1)
        both[each, 0, y, j] = both[each, 1, y, i] = new
        return both.reshape(-1, n, k)

    def largest(self) -> arb:
        """Return the largest bound of a leaf."""
        leaves, size = np.arange(len(self.leaves)), self.operations()
        return largest_bound(leaves, max(1, AT_ONCE // size), size, self.in_floats, self.in_balls)

    def operations(self) -> int:
        """Return how many operations a leaf takes."""
        counter = Counted()
        (n, k), columns = self.leaves.shape[1:], self.cover.leaves.shape[1]
        numbers, vertices = (Balls.of(np.full(shape, counter)) for shape in (columns, (k, k, n)))
        subject = self.subject.lifted(lambda _: counter)
        self.cover.of.evaluate(subject, Leaf(lambda _: counter, numbers, vertices))
        return counter.operations + 1

    def in_floats(self, chosen: Any) -> Many:
        """Return the bounds of many leaves in float balls."""
        leaf = Leaf(Many.of, Many(self.row(chosen)), self.points[:, self.leaves[chosen].T])
        return Many.of(self.cover.of.evaluate(self.floats, leaf))

    def in_balls(self, i: int) -> arb:
        """Return the bound of a leaf in balls."""
        leaf = Leaf(ball, Balls.of(self.row(i)), self.vertices(i))
        return self.cover.of.evaluate(self.subject, leaf)

    def row(self, chosen: Any) -> Any:
        """Return the numbers of leaves, with a row for each column."""
        return np.ascontiguousarray(self.cover.leaves[chosen].T, dtype=float)

    def vertices(self, i: int) -> Any:
        """Return the vertices of a leaf's cells in balls: by value, vertex and output."""
        places = self.leaves[i].T
        made = [self._exactly(point) for point in places.ravel().tolist()]
        return np.stack(made, 1).reshape(-1, *places.shape).view(Balls)

    def _exactly(self, point: int) -> Any:
        """Return a point in balls."""
        waiting = [point]
        while waiting:
            i, j, cut = self.made[waiting[-1]]
            missing = [x for x in (i, j) if x not in self.exact]
            if missing:
                waiting += missing
                continue
            t = arb(cut)
            self.exact.setdefault(waiting.pop(), self.exact[i] * (1 - t) + self.exact[j] * t)
        return self.exact[point]
