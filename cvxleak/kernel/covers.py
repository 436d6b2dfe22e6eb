r"""Covers: trees whose leaves cover a region, each with a bound of its own.

A tree is in preorder: a node names what is cut and has a cut; -1 stands for a leaf. The larger of
two bounds holds on what is cut in two, because

- a simplex is the union of the two that a point on an edge makes of it: in each, the point takes
  the place of one end;
- the line is the union of the numbers up to a cut and from it on.

If pi_a = 0 (or s_y = 0), v_a (rho_y) may be any distribution, so leaves in which no adversary is
may be dropped. The first number of a leaf is the number of its template in `of`; -1 - i says that
symmetry i makes it superfluous.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from flint import arb, fmpq, fmpz

from cvxleak.kernel.budget import charge
from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import (
    Counted,
    ball,
    dot,
    largest,
    least,
    lower,
    need,
    proved,
    total,
    upper,
)
from cvxleak.kernel.terms import (
    Leaf,
    Numbers,
    Region,
    Rule,
    Shape,
    numbers,
    packed,
    partition,
    terms,
)
from cvxleak.kernel.values import OneValue
from cvxleak.kernel.view import View

__all__ = ["Cells", "Cover", "MassRanges", "OutputRanges", "PosteriorCells", "Ranges", "Slabs"]

BATCH = 4096
"""Leaves that are evaluated at once in float balls."""

ALLOWANCE = 1e-11
"""Radius up to which a leaf's float ball is taken; otherwise the leaf is evaluated in balls."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cover(Rule):
    """A tree, the numbers of its leaves, and one or more templates that they fill in."""

    nodes: Any = packed("i", "0")
    cuts: Any = packed("f")
    leaves: Any = packed("f", "0")
    of: tuple[Any, ...] = terms()

    region: ClassVar[str]
    node: ClassVar[int] = 1
    in_floats: ClassVar[bool] = True

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape of templates, once the leaves are read."""
        if "leaves" not in found:
            return shape
        region = Region(cls.region, cls.meaning(shape, found))
        return replace(shape, columns=found["leaves"].shape[1], region=region)

    @classmethod
    def meaning(cls, shape: Shape, found: Mapping[str, Any]) -> Any:
        """Return what the places are about, beyond their kind."""
        return None

    def root(self, subject: Any) -> Any:
        """Return what the root is about."""
        raise NotImplementedError

    def split(self, part: Any, node: Sequence[int], cut: float) -> tuple[Any, Any]:
        """Return the two parts that a node makes of one; the first is replayed first."""
        raise NotImplementedError

    def in_balls(self, part: Any) -> Any:
        """Return the places of a leaf in balls."""
        raise NotImplementedError

    def in_many(self, parts: Sequence[Any]) -> Any:
        """Return the places of many leaves at once."""
        raise NotImplementedError

    def trimmed(self, part: Any) -> Any:
        """Return a leaf's part without what no adversary reaches; None if that is all of it."""
        return part

    def check(self, shape: Shape) -> None:
        """Need a template for each leaf."""
        need(self.leaves.shape[1], f"{self.rule}: leaves without the number of their template")
        nodes = self.nodes[:, 0]
        need(self.nodes.shape[1] == self.node, f"{self.rule}: {self.node} numbers for each node")
        inner = int((nodes >= 0).sum())
        whole = len(nodes) == 2 * inner + 1 == len(self.cuts) + len(self.leaves)
        need(whole and len(self.cuts) == inner, f"{self.rule}: no tree")
        codes = self.leaves[:, 0]
        fits = (codes == np.rint(codes)) & (codes >= -self.skipped()) & (codes < len(self.of))
        need(bool(fits.all()), f"{self.rule}: a leaf without a template")

    def skipped(self) -> int:
        """Return how many ways there are of a leaf to be superfluous."""
        return 0

    def superfluous(self, part: Any, code: int) -> None:
        """Refuse unless a leaf that is left out is superfluous."""
        raise NotImplementedError

    def evaluate(self, subject: Any, leaf: Leaf) -> arb:
        """Return the largest bound of a leaf."""
        batch = Batch(self, subject)
        found = False
        for part, row in zip(self.replay(subject), self.leaves, strict=True):
            if row[0] < 0:
                self.superfluous(part, int(-1 - row[0]))
                continue
            part = self.trimmed(part)
            if part is not None:
                batch.add(part, row)
                found = True
        need(found, f"{self.rule}: no leaf bounds anything")
        return batch.largest()

    def replay(self, subject: Any) -> Iterator[Any]:
        """Yield what each leaf is about, in order."""
        stack = [self.root(subject)]
        cuts = iter(self.cuts.tolist())
        for node in self.nodes.tolist():
            need(stack, f"{self.rule}: no tree")
            part = stack.pop()
            if node[0] < 0:
                yield part
            else:
                one, other = self.split(part, node, next(cuts))
                stack += [other, one]
        need(not stack, f"{self.rule}: no tree")


class Batch:
    """Leaves on their way to their bounds: many at once in floats, and singly in balls."""

    def __init__(self, cover: Cover, subject: Any) -> None:
        self.cover, self.subject = cover, subject
        self.waiting: list[list[tuple[Any, Any]]] = [[] for _ in cover.of]
        self.counted: list[int | None] = [None] * len(cover.of)
        self.in_floats: Any = None
        self.worst: arb | None = None

    def add(self, part: Any, row: Any) -> None:
        """Take a leaf."""
        kind = int(row[0])
        waiting = self.waiting[kind]
        if self.counted[kind] is None:
            self.counted[kind] = each = self._operations(kind, part, row)
            leaves = int((self.cover.leaves[:, 0] == kind).sum())
            where = "float operations" if self.cover.in_floats else "ball operations"
            charge(where, each * leaves + len(self.cover.nodes))
        waiting.append((part, row))
        if len(waiting) == BATCH:
            self._evaluate(kind)

    def largest(self) -> arb:
        """Return the largest bound of all leaves."""
        for kind in range(len(self.waiting)):
            self._evaluate(kind)
        assert self.worst is not None
        return self.worst

    def _operations(self, kind: int, part: Any, row: Any) -> int:
        """Return how many operations a leaf takes."""
        counter = Counted()
        subject = self.subject.lifted(lambda _: counter)
        places = _replaced(self.cover.in_balls(part), counter)
        leaf = Leaf(lambda _: counter, [counter] * len(row), places)
        self.cover.of[kind].evaluate(subject, leaf)
        return counter.operations

    def _evaluate(self, kind: int) -> None:
        leaves, self.waiting[kind] = self.waiting[kind], []
        if leaves and self.cover.in_floats:
            leaves = self._in_floats(kind, leaves)
        for part, row in leaves:
            charge("ball operations", self.counted[kind] or 0)
            columns = [arb(float(x)) for x in row]
            leaf = Leaf(ball, columns, self.cover.in_balls(part))
            self._take(self.cover.of[kind].evaluate(self.subject, leaf))

    def _in_floats(self, kind: int, leaves: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Return the leaves that float balls do not bound well enough."""
        if self.in_floats is None:
            self.in_floats = self.subject.lifted(Many.of)
        rows = np.array([row for _, row in leaves], dtype=float)
        leaf = Leaf(Many.of, [Many(x) for x in rows.T], self.cover.in_many([p for p, _ in leaves]))
        with np.errstate(all="ignore"):
            found = Many.of(self.cover.of[kind].evaluate(self.in_floats, leaf))
            good = np.broadcast_to(found.certain() & (found.r < ALLOWANCE), len(leaves))
            bounds = np.broadcast_to(found.upper(), len(leaves))
        if good.any():
            self._take(arb(float(bounds[good].max())))
        return [one for one, fine in zip(leaves, good, strict=True) if not fine]

    def _take(self, bound: arb) -> None:
        need(bound.is_finite(), "a leaf that bounds nothing")
        self.worst = bound if self.worst is None else self.worst.max(bound)


def _replaced(places: Any, number: Any) -> Any:
    """Return places with each number replaced by another one."""
    if isinstance(places, arb | fmpq):
        return number
    if isinstance(places, Ranges):
        lo, hi = (_replaced(ends, number) for ends in places.ranges)
        return Ranges(lo, hi, places.meaning)
    if isinstance(places, dict):
        return {a: _replaced(own, number) for a, own in places.items()}
    return [_replaced(one, number) for one in places]


# Cells of posteriors -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """A simplex of distributions on A for each output: the places of its vertices in `points`."""

    points: list[list[arb]]
    cells: list[tuple[int, ...]]

    @property
    def vertices(self) -> list[list[list[arb]]]:
        """The vertices of each cell."""
        return [[self.points[i] for i in cell] for cell in self.cells]


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorCells(Cover, rule="cells", gives="B", when=["no cover around"]):
    r"""Cells of the posteriors of A given each part of the outputs.

    A node is an output, two vertices i, j of its cell and t: the cut is at (1 - t) V_i + t V_j.

    A symmetry is (p, s), p a permutation of the values and s one of the outputs, such that each row
    of value a moved by s is a row of p(a). Each group gets the largest multiplicity of its orbit,
    and the largest that is added for the place in a cell. This only admits more adversaries, and
    raises J; class and J are invariant then. Let tau(rho) = sum_y,a (n - y) a rho_y(a). Among the
    images of an adversary of largest J one has the largest tau, and no symmetry raises it. So a
    leaf may be left out if sum_y max_j sum_a ((n - y) a - (n - s(y)) p(a)) V_yj(a) < 0, where all
    adversaries are raised.
    """

    parts: tuple[tuple[int, ...], ...] | None = partition("n", optional=True)
    symmetries: Any = packed("i", "k + n", optional=True)
    region: ClassVar[str] = "posteriors"
    node: ClassVar[int] = 3

    @classmethod
    def meaning(cls, shape: Shape, found: Mapping[str, Any]) -> Any:
        """Return the partition of the outputs."""
        return found.get("parts") or shape.partition

    def check(self, shape: Shape) -> None:
        """Need symmetries of this very view, if there are any."""
        super().check(shape)
        if self.symmetries is not None:
            fits = shape.information and shape.exact and not shape.limits and self.parts is None
            need(fits, "cells: symmetries of what is restricted")

    def skipped(self) -> int:
        """Return the number of symmetries."""
        return 0 if self.symmetries is None else len(self.symmetries)

    def evaluate(self, subject: View, leaf: Leaf) -> arb:
        """Return the largest bound of a leaf."""
        if self.symmetries is not None:
            subject = _symmetric(subject, self.symmetries.tolist())
        return super().evaluate(subject, leaf)

    def root(self, subject: View) -> Cells:
        """Return all distributions, for each part."""
        k = range(subject.k)
        corners = [[arb(int(i == j)) for j in k] for i in k]
        n = subject.n if self.parts is None else len(self.parts)
        return Cells(corners, [tuple(k)] * n)

    def split(self, part: Cells, node: Sequence[int], cut: float) -> tuple[Any, Any]:
        """Return the cells with either end of an edge moved to the cut."""
        (y, i, j), points, cells = node, part.points, part.cells
        need(y < len(cells), "cells: no such output")
        cell = cells[y]
        need(0 <= i < len(cell) and 0 <= j < len(cell) and i != j, "cells: no such edge")
        need(0 < cut < 1, "cells: a cut outside of its edge")
        t, ends = arb(cut), zip(points[cell[i]], points[cell[j]], strict=True)
        new = len(points)
        points.append([(1 - t) * x + t * z for x, z in ends])
        found = []
        for moved in (j, i):
            own = tuple(new if place == moved else old for place, old in enumerate(cell))
            found.append(Cells(points, [*cells[:y], own, *cells[y + 1 :]]))
        return found[0], found[1]

    def in_balls(self, part: Cells) -> list[list[list[arb]]]:
        """Return the vertices of each cell."""
        return part.vertices

    def in_many(self, parts: Sequence[Cells]) -> list[list[list[Many]]]:
        """Return the vertices of each cell, for many leaves."""
        at = np.array([part.cells for part in parts])
        used, places = np.unique(at, return_inverse=True)
        floats = [[Many.of(x) for x in parts[0].points[i]] for i in used.tolist()]
        columns = np.array([[(x.m, x.r) for x in point] for point in floats]).transpose(1, 2, 0)
        vertices = places.reshape(at.shape).transpose(1, 2, 0)
        return [[[Many(m[own], r[own]) for m, r in columns] for own in cell] for cell in vertices]

    def superfluous(self, part: Cells, code: int) -> None:
        """Refuse unless a symmetry raises tau of every adversary in the leaf."""
        k, n = len(part.points[0]), len(part.cells)
        row = self.symmetries[code].tolist()
        p, s = row[:k], row[k:]
        rises = []
        for y, cell in enumerate(part.vertices):
            weights = [arb(a * (n - y) - p[a] * (n - s[y])) for a in range(k)]
            rises.append(largest(dot(v, weights) for v in cell))
        need(total(rises) < 0, "cells: a leaf is missing")


def _symmetric(view: View, table: list[list[int]]) -> View:
    """Return the view with what all symmetries keep in place of less; refuse what is none."""
    k, n = view.k, view.n
    where = {(a, view.rows[g].key): g for a, own in enumerate(view.of) for g in own}
    need(len(where) == len(view.rows), "cells: symmetries where equal rows are told apart")
    maps = []
    for row in table:
        p, s = row[:k], row[k:]
        need(sorted(p) == list(range(k)) and sorted(s) == list(range(n)), "no permutation")
        back = sorted(range(n), key=lambda y, s=s: s[y])
        moved = {}
        for a, own in enumerate(view.of):
            for g in own:
                key: Any = view.rows[g].key
                need(key is not None, "cells: symmetries of rows that are not written")
                image = (p[a], tuple(key[y] for y in back))
                need(image in where, "cells: no symmetry of the rows")
                moved[g] = where[image]
        maps.append(moved)
    orbit, changed = list(range(len(view.rows))), True
    while changed:
        changed = False
        for g, h in (pair for moved in maps for pair in moved.items()):
            if orbit[g] != orbit[h]:
                orbit[g] = orbit[h] = min(orbit[g], orbit[h])
                changed = True
    alike = [[h for h, own in enumerate(orbit) if own == orbit[g]] for g in range(len(orbit))]
    counts = [max(view.counts[h] for h in own) for own in alike]
    extra = view.extra and [largest(view.extra[h] for h in own) for own in alike]
    logs = [arb(fmpz(m)).log() for m in counts]
    return replace(view, counts=counts, logs=logs, extra=extra, known={})


# Ranges of functionals of the distribution of one value -------------------------------------------


@dataclass(frozen=True)
class Ranges:
    """lo <= functional <= hi, for each functional; `meaning` says which these are."""

    lo: Sequence[Any]
    hi: Sequence[Any]
    meaning: Any = None

    @property
    def ranges(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Both ends."""
        return self.lo, self.hi


@dataclass(frozen=True, eq=False, kw_only=True)
class RangeCover(Cover):
    """A tree of ranges, in floats; a node is the number of a functional."""

    def split(self, part: Ranges, node: Sequence[int], cut: float) -> tuple[Ranges, Ranges]:
        """Return the ranges below and above the cut, kept within the range."""
        (i,) = node
        need(i < len(part.lo), f"{self.rule}: no such functional")
        lo, hi = list(part.lo), list(part.hi)
        lo[i] = hi[i] = min(max(self.cut(cut), lo[i]), hi[i])
        return Ranges(part.lo, hi, part.meaning), Ranges(lo, part.hi, part.meaning)

    def cut(self, cut: float) -> float:
        """Return a cut; refuse one that is not allowed."""
        return cut

    def in_balls(self, part: Ranges) -> Ranges:
        """Return the ranges in balls."""
        return Ranges([arb(x) for x in part.lo], [arb(x) for x in part.hi], part.meaning)

    def in_many(self, parts: Sequence[Ranges]) -> Ranges:
        """Return the ranges of many leaves."""
        lo, hi = (np.array([p.ranges[end] for p in parts], dtype=float).T for end in (0, 1))
        return Ranges([Many(x) for x in lo], [Many(x) for x in hi], parts[0].meaning)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Tight(RangeCover):
    """Ranges of numbers >= 0 that sum to 1; cuts are multiples of 2^-40, so sums are exact."""

    def cut(self, cut: float) -> float:
        """Return a multiple of 2^-40."""
        need(float(cut * 2.0**40).is_integer(), f"{self.rule}: a cut is a multiple of 2^-40")
        return cut

    def trimmed(self, part: Ranges) -> Ranges | None:
        """Return the ranges that the sum leaves; None if they are empty."""
        need(len(part.lo) <= 1 << 12, f"{self.rule}: too many functionals")
        below, above = 1 - sum(part.lo), sum(part.hi) - 1
        if below < 0 or above < 0:
            return None
        ends = list(zip(part.lo, part.hi, strict=True))
        lo, hi = [max(a, b - above) for a, b in ends], [min(b, a + below) for a, b in ends]
        return Ranges(lo, hi, part.meaning)


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputRanges(RangeCover, rule="output-ranges", gives="V", when=["no cover around"]):
    """Ranges of the outputs' probabilities (vR)_y, between the least and largest entry."""

    region: ClassVar[str] = "outputs"

    def root(self, subject: OneValue) -> Ranges:
        """Return the ranges of all distributions."""
        columns = list(zip(*subject.rows, strict=True))
        low = [max(lower(least(column)), 0.0) for column in columns]
        return Ranges(low, [upper(largest(column)) for column in columns])


@dataclass(frozen=True, eq=False, kw_only=True)
class ShareRanges(_Tight, rule="share-ranges", gives="V", when=["no cover around"]):
    """Ranges of the probabilities v_g."""

    region: ClassVar[str] = "shares"

    def root(self, subject: OneValue) -> Ranges:
        """Return [0, 1] for each group."""
        size = len(subject.rows)
        return Ranges([0.0] * size, [1.0] * size)


@dataclass(frozen=True, eq=False, kw_only=True)
class MassRanges(_Tight, rule="mass-ranges", gives="V", when=["no cover around"]):
    """Ranges of the masses of blocks of groups."""

    blocks: tuple[tuple[int, ...], ...] = partition("N_a")
    region: ClassVar[str] = "masses"

    def root(self, subject: OneValue) -> Ranges:
        """Return [0, 1] for each block."""
        size = len(self.blocks)
        return Ranges([0.0] * size, [1.0] * size, self.blocks)


@dataclass(frozen=True, eq=False, kw_only=True)
class Slabs(Cover, rule="slabs", gives="B", when=["no cover around", "exact rows"]):
    """Ranges of one functional x of v_a, for each value a; a node is the number of a value."""

    functional: Numbers = numbers("N")
    in_floats: ClassVar[bool] = False

    region: ClassVar[str] = "slab"

    def root(self, subject: View) -> list[tuple[list[fmpq], fmpq, fmpq]]:
        """Return, for each value, the functional and its whole range, in fractions.

        In balls, whether a group is inside would not be certain where it is at an end.
        """
        own = [[self.functional.written[g] for g in groups] for groups in subject.of]
        return [(x, min(x), max(x)) for x in own]

    def split(self, part: Any, node: Sequence[int], cut: float) -> tuple[Any, Any]:
        """Return the slabs up to the cut, and from it on."""
        (a,) = node
        need(a < len(part), "slabs: no such value")
        x, lo, hi = part[a]
        at = proved(cut)
        sides = [(x, lo, min(hi, at)), (x, max(lo, at), hi)]
        one, other = ([*part[:a], side, *part[a + 1 :]] for side in sides)
        return one, other

    def trimmed(self, part: Any) -> Any:
        """Return the slabs; None if one is empty."""
        return None if any(lo > hi for _, lo, hi in part) else part

    def in_balls(self, part: Any) -> dict[int, Any]:
        """Return the slab of each value, still in fractions."""
        return dict(enumerate(part))
