r"""Covers: trees whose leaves cover a region, each with a bound of its own.

A tree is in levels: the root, its children, theirs, ...; a node names what is cut and has a cut; -1
stands for a leaf. The larger of two bounds holds on what is cut in two, because

- a simplex is the union of the two that a point on an edge makes of it: in each, the point takes
  the place of one end;
- the line is the union of the numbers up to a cut and from it on.

If pi_a = 0 (or s_y = 0), v_a (rho_y) may be any distribution, so leaves in which no adversary is
may be dropped. The first number of a leaf is the number of its template in `of`; -1 - i says that
symmetry i makes it superfluous.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from flint import arb, fmpz

from cvxleak.kernel.budget import charge
from cvxleak.kernel.many import Balls, Many, unstacked
from cvxleak.kernel.numbers import (
    Counted,
    ball,
    largest,
    least,
    lower,
    need,
    proved,
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

__all__ = [
    "Cells",
    "Cover",
    "Leaves",
    "MassRanges",
    "OutputRanges",
    "PosteriorCells",
    "Ranges",
    "Slabs",
    "check_tree",
    "largest_bound",
    "replay",
]

AT_ONCE = 1 << 20
"""About how many float operations are done at once, on many leaves."""

ALLOWANCE = 1e-11
"""Radius up to which a leaf's float ball is taken; otherwise the leaf is evaluated in balls."""

GRAIN = 2.0**-40
"""Ends of ranges of numbers that sum to 1 are multiples of it, so that sums of floats are exact."""

MOST_NUMBERS = 1 << 27
"""Most numbers of all parts in a level of a tree."""

Part = Any
"""What a node is about, as an array; those of many nodes have one axis more, in front."""

# Trees -------------------------------------------------------------------------------------------


def check_tree(nodes: Any, cuts: Any, name: str) -> None:
    """Refuse what is no tree with a cut for each node that is no leaf."""
    inner = int((nodes >= 0).sum())
    need(len(nodes) == 2 * inner + 1 and len(cuts) == inner, f"{name}: no tree")


def replay(root: Part, nodes: Any, cuts: Any, split: Callable[[Part, Any, Any], Part]) -> Part:
    """Return what the leaves of a tree are about, in order.

    `split` makes of parts, their nodes and their cuts twice as many parts.
    """
    nodes, cuts, parts, found = nodes.astype(int), cuts.astype(float), root[None], []
    while len(parts):
        need(parts.size <= MOST_NUMBERS, "a tree with too many leaves")
        charge("float operations", parts.size + 1000)
        own, nodes = nodes[: len(parts)], nodes[len(parts) :]
        need(len(own) == len(parts), "no tree")
        inner = own[:, 0] >= 0
        found.append(parts[~inner])
        at, cuts = cuts[: inner.sum()], cuts[inner.sum() :]
        parts = split(parts[inner], own[inner], at) if len(at) else parts[:0]
    need(not len(nodes), "no tree")
    return np.concatenate(found)


def largest_bound(
    chosen: Any, step: int, in_floats: Callable[[Any], Many], in_balls: Callable[[int], arb]
) -> arb:
    """Return the largest bound of some leaves: `step` at once in floats, the rest in balls."""
    found, left = [], [] if step else [chosen]
    for start in range(0, len(chosen), step) if step else ():
        own = chosen[start : start + step]
        with np.errstate(all="ignore"):
            many = in_floats(own)
            good = np.broadcast_to(many.certain() & (many.r < ALLOWANCE), len(own))
            bounds = np.broadcast_to(many.upper(), len(own))[good]
        found += [arb(float(bounds.max()))] if len(bounds) else []
        left.append(own[~good])
    for i in np.concatenate(left).tolist():
        found.append(in_balls(i))
        need(found[-1].is_finite(), "a leaf that bounds nothing")
    return largest(found)


# Covers ------------------------------------------------------------------------------------------


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

    def places(self, subject: Any) -> Cells | Ranges:
        """Return how the tree cuts what it is about."""
        raise NotImplementedError

    def check(self, shape: Shape) -> None:
        """Need a template for each leaf."""
        need(self.leaves.shape[1], f"{self.rule}: leaves without the number of their template")
        need(self.nodes.shape[1] == self.node, f"{self.rule}: {self.node} numbers for each node")
        check_tree(self.nodes[:, 0], self.cuts, self.rule)
        need(len(self.nodes) == len(self.cuts) + len(self.leaves), f"{self.rule}: no tree")
        codes = self.leaves[:, 0]
        fits = (codes == np.rint(codes)) & (codes >= -self.skipped()) & (codes < len(self.of))
        need(bool(fits.all()), f"{self.rule}: a leaf without a template")

    def skipped(self) -> int:
        """Return how many ways there are of a leaf to be superfluous."""
        return 0

    def evaluate(self, subject: Any, leaf: Leaf) -> arb:
        """Return the largest bound of a leaf."""
        leaves, codes = Leaves(self, subject), self.leaves[:, 0].astype(int)
        for code in range(self.skipped()):
            self.superfluous(leaves, np.flatnonzero(codes == -1 - code), code)
        kinds = [np.flatnonzero(leaves.reached & (codes == kind)) for kind in range(len(self.of))]
        need(any(map(len, kinds)), f"{self.rule}: no leaf bounds anything")
        pairs = zip(self.of, kinds, strict=True)
        return largest(leaves.largest(term, own) for term, own in pairs if len(own))

    def superfluous(self, leaves: Leaves, chosen: Any, code: int) -> None:
        """Refuse unless the leaves that are left out for one reason are superfluous."""
        raise NotImplementedError


class Leaves:
    """The leaves of a cover: their parts, and which of them are not empty."""

    def __init__(self, cover: Cover, subject: Any) -> None:
        self.cover, self.subject, self.places = cover, subject, cover.places(subject)
        parts = replay(self.places.root, cover.nodes, cover.cuts, self.places.split)
        self.parts, self.reached = self.places.trimmed(parts)
        self.floats = subject.lifted(Many.of) if cover.in_floats else None

    def largest(self, term: Any, chosen: Any) -> arb:
        """Return the largest bound that a template gives of some leaves."""
        each = self.operations(term, int(chosen[0]))
        step = max(1, AT_ONCE // each) if self.cover.in_floats else 0
        charge("float operations" if step else "ball operations", each * len(chosen))

        def in_balls(i: int) -> arb:
            charge("ball operations", each)
            return self.in_balls(term, i)

        return largest_bound(chosen, step, lambda own: self.in_floats(term, own), in_balls)

    def operations(self, term: Any, i: int) -> int:
        """Return how many operations a leaf takes."""
        counter = Counted()
        columns = Balls.of([counter] * self.cover.leaves.shape[1])
        places = self.places.at(self.parts[i], lambda x: Balls.of(np.full(x.shape, counter)))
        subject = self.subject.lifted(lambda _: counter)
        term.evaluate(subject, Leaf(lambda _: counter, columns, places))
        return counter.operations + 1

    def in_balls(self, term: Any, i: int) -> arb:
        """Return the bound of a leaf in balls."""
        columns, places = Balls.of(self.row(i)), self.places.at(self.parts[i], Balls.of)
        return term.evaluate(self.subject, Leaf(ball, columns, places))

    def in_floats(self, term: Any, chosen: Any) -> Many:
        """Return the bounds of many leaves in float balls."""
        columns, places = Many(self.row(chosen)), self.places.at(self.parts[chosen], Many.of)
        return Many.of(term.evaluate(self.floats, Leaf(Many.of, columns, places)))

    def row(self, chosen: Any) -> Any:
        """Return the numbers of leaves, with a row for each column."""
        return np.ascontiguousarray(self.cover.leaves[chosen].T, dtype=float)


# Cells of posteriors -----------------------------------------------------------------------------


class Cells:
    """A simplex of distributions on A for each output.

    A part is a table of the numbers of its vertices among all points. These are float balls; those
    of a leaf that is evaluated in balls are computed once more.
    """

    def __init__(self, k: int, n: int, cuts: int) -> None:
        self.root = np.tile(np.arange(k), (n, 1))
        self.points = Many(np.eye(k, k + cuts), np.zeros((k, k + cuts)))
        self.exact: dict[int, Any] = {i: Balls.of(own) for i, own in enumerate(np.eye(k))}
        self.made: list[tuple[int, int, float]] = [(0, 0, 0.0)] * k

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

    def trimmed(self, parts: Part) -> tuple[Part, Any]:
        """Return the parts, and which of them are not empty: all."""
        return parts, np.ones(len(parts), dtype=bool)

    def at(self, part: Part, lift: Callable[[Any], Any]) -> Any:
        """Return the coordinates of each output's vertices: by value, vertex, output and leaf."""
        if part.ndim > self.root.ndim:
            return lift(self.points[:, part.T])
        made = [self._exactly(i) for i in part.T.ravel().tolist()]
        return lift(np.stack(made, 1).reshape(-1, *part.T.shape))

    def _exactly(self, point: int) -> Any:
        """Return a point in balls."""
        waiting = [point]
        while waiting:
            i, j, cut = self.made[waiting[-1]]
            missing = [x for x in (i, j) if x not in self.exact]
            if missing and waiting[-1] not in self.exact:
                waiting += missing
                continue
            t = arb(cut)
            self.exact.setdefault(waiting.pop(), self.exact[i] * (1 - t) + self.exact[j] * t)
        return self.exact[point]


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorCells(Cover, rule="cells", gives="B", when=["no cover around"]):
    r"""Cells of the posteriors of A given each part of the outputs.

    A node is an output, two vertices i, j of its cell and t: the cut is at (1 - t) V_i + t V_j.

    A symmetry is (p, s), p a permutation of the values and s one of the outputs, such that each row
    of value a moved by s is a row of p(a). Each group gets the largest multiplicity of its orbit,
    and the largest that is added for the place in a cell. This only admits more adversaries, and
    raises J; class and J are invariant then: the image of an adversary has the posteriors
    rho'_s(y)(p(a)) = rho_y(a). Let tau(rho) = sum_y,a (n - y) a rho_y(a). Among the images of any
    adversary under all products of symmetries one has the largest tau, and no symmetry raises it.
    So a leaf may be left out if sum_y max_j sum_a ((n - y) a - (n - s(y)) p(a)) V_yj(a) < 0, where
    all adversaries are raised.
    """

    parts: tuple[tuple[int, ...], ...] | None = partition("n", optional=True)
    symmetries: Any = packed("i", "k + n", optional=True)
    region: ClassVar[str] = "posteriors"
    node: ClassVar[int] = 3

    @classmethod
    def meaning(cls, shape: Shape, found: Mapping[str, Any]) -> Any:
        """Return the partition of the outputs."""
        return found.get("parts") or shape.view.partition

    def check(self, shape: Shape) -> None:
        """Need symmetries of this very view, if there are any."""
        super().check(shape)
        if self.symmetries is not None:
            view = shape.view
            fits = view.information and view.exact and not view.limits and self.parts is None
            need(fits, "cells: symmetries of what is restricted")

    def skipped(self) -> int:
        """Return the number of symmetries."""
        return 0 if self.symmetries is None else len(self.symmetries)

    def evaluate(self, subject: View, leaf: Leaf) -> arb:
        """Return the largest bound of a leaf."""
        if self.symmetries is not None:
            subject = _symmetric(subject, self.symmetries.tolist())
        return super().evaluate(subject, leaf)

    def places(self, subject: View) -> Cells:
        """Return all distributions, for each part."""
        n = subject.n if self.parts is None else len(self.parts)
        return Cells(subject.k, n, len(self.cuts))

    def superfluous(self, leaves: Leaves, chosen: Any, code: int) -> None:
        """Refuse unless a symmetry raises tau of every adversary in the leaves."""
        n, k = leaves.places.root.shape
        p, s = np.split(self.symmetries[code].astype(float), [k])
        left, values = n - np.arange(n), np.arange(k)[:, None, None]
        weights = left * values - (n - s) * p[:, None, None]

        def rises(own: Any, lift: Any) -> Any:
            vertices = leaves.places.at(leaves.parts[own], lift)
            weighed = lift(weights[..., None] if lift is Many.of else weights)
            return largest(unstacked(vertices.inner(weighed, 0))).inner(1.0, 0)

        bound = functools.partial(
            largest_bound,
            chosen,
            in_floats=lambda own: rises(own, Many.of),
            in_balls=lambda i: rises(i, Balls.of),
        )
        fits = not len(chosen) or bound(AT_ONCE // weights.size) < 0 or bound(0) < 0
        need(fits, "cells: a leaf is missing")


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


class Ranges:
    """lo <= functional <= hi, in floats, for each functional.

    A part is a table of both ends. With `whole`, the functionals are >= 0 and sum to 1. `at`
    returns both ends and what else rules need.
    """

    def __init__(self, lo: Any, hi: Any, *also: Any, whole: bool = False) -> None:
        self.root, self.also, self.whole = np.array([lo, hi], dtype=float), also, whole

    def split(self, parts: Part, nodes: Any, cuts: Any) -> Part:
        """Return the ranges below and above a cut, which is moved into the range."""
        at, each = nodes[:, 0], np.arange(len(parts))
        need(bool((at < parts.shape[2]).all()), "ranges: no such functional")
        need(
            not self.whole or bool((cuts % GRAIN == 0).all()), "ranges: cuts are multiples of 2^-40"
        )
        both = np.stack([parts, parts], 1)
        cut = np.clip(cuts, parts[each, 0, at], parts[each, 1, at])
        both[each, 0, 1, at] = both[each, 1, 0, at] = cut
        return both.reshape(-1, *parts.shape[1:])

    def trimmed(self, parts: Part) -> tuple[Part, Any]:
        """Return the ranges that the sum leaves, and which of them are not empty."""
        if not self.whole:
            return parts, np.ones(len(parts), dtype=bool)
        need(parts.shape[2] <= 1 << 12, "ranges: too many functionals")
        lo, hi = parts[:, 0], parts[:, 1]
        below, above = 1 - lo.sum(1, keepdims=True), hi.sum(1, keepdims=True) - 1
        narrow = np.stack([np.maximum(lo, hi - above), np.minimum(hi, lo + below)], 1)
        return narrow, ((below >= 0) & (above >= 0))[:, 0]

    def at(self, part: Part, lift: Callable[[Any], Any]) -> Any:
        """Return both ends."""
        lo, hi = part[..., 0, :].T, part[..., 1, :].T
        return lift(np.ascontiguousarray(lo)), lift(np.ascontiguousarray(hi)), *self.also


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputRanges(Cover, rule="output-ranges", gives="V", when=["no cover around"]):
    """Ranges of the outputs' probabilities (vR)_y, between the least and largest entry."""

    region: ClassVar[str] = "outputs"

    def places(self, subject: OneValue) -> Ranges:
        """Return the ranges of all distributions."""
        columns = list(zip(*subject.rows, strict=True))
        low = [max(lower(least(column)), 0.0) for column in columns]
        return Ranges(low, [upper(largest(column)) for column in columns])


@dataclass(frozen=True, eq=False, kw_only=True)
class ShareRanges(Cover, rule="share-ranges", gives="V", when=["no cover around"]):
    """Ranges of the probabilities v_g."""

    region: ClassVar[str] = "shares"

    def places(self, subject: OneValue) -> Ranges:
        """Return [0, 1] for each group."""
        size = len(subject.rows)
        return Ranges(np.zeros(size), np.ones(size), whole=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class MassRanges(Cover, rule="mass-ranges", gives="V", when=["no cover around"]):
    """Ranges of the masses of blocks of groups."""

    blocks: tuple[tuple[int, ...], ...] = partition("N_a")
    region: ClassVar[str] = "masses"

    def places(self, subject: OneValue) -> Ranges:
        """Return [0, 1] for each block."""
        size = len(self.blocks)
        return Ranges(np.zeros(size), np.ones(size), self.blocks, whole=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class Slabs(Cover, rule="slabs", gives="B", when=["no cover around", "exact rows"]):
    """Ranges of one functional x of v_a, for each value a; a node is the number of a value."""

    functional: Numbers = numbers("N")
    in_floats: ClassVar[bool] = False

    region: ClassVar[str] = "slab"

    def check(self, shape: Shape) -> None:
        """Need numbers that balls hold exactly, so that each comparison is decided."""
        super().check(shape)
        fits = all(proved(float(x)) == x for x in self.functional.written)
        need(self.functional.columns is None and fits, "slabs: numbers that floats hold are needed")

    def places(self, subject: View) -> Ranges:
        """Return the whole range of the functional for each value."""
        return OfValues([[float(self.functional.written[g]) for g in own] for own in subject.of])


class OfValues(Ranges):
    """Ranges of one functional for each value."""

    def __init__(self, x: Sequence[Sequence[float]]) -> None:
        super().__init__(list(map(min, x)), list(map(max, x)))
        self.x = x

    def at(self, part: Part, lift: Callable[[Any], Any]) -> dict[int, Any]:
        """Return, for each value, the functional and both ends."""
        ends = zip(*map(lift, part), strict=True)
        own = zip(self.x, ends, strict=True)
        return {a: (list(lift(np.array(x))), lo, hi) for a, (x, (lo, hi)) in enumerate(own)}
