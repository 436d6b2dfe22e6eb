"""The corners of convex parts of a source set, cut by an order and with one another, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.local_dp.statement import distance_from_hull
from cvxleak.sources import SourceSet
from cvxleak.sources.parts import Part
from cvxleak.sources.polytope import Polytope

__all__ = ["Corners", "Law", "common", "in_order_of", "part_corners"]

Law = tuple[Fraction, ...]
Corners = frozenset[Law]
"""Distributions of which a polytope is the hull."""

MOST = 2000
"""Parts with more corners than this, at any step, are refused."""


INSIDE = 1e-12
"""A point this near to the hull of others is not a corner."""


class _Corner(NamedTuple):
    point: Law
    tight: frozenset[int]


def part_corners(part: Part) -> Corners:
    """Return distributions whose hull is the part."""
    laws = {exact_law(point) for point in part.points}
    return _corners(laws.union(*(_polytope_corners(body) for body in part.polytopes)))


def in_order_of(corners: Corners, order: Sequence[int]) -> Corners:
    """Return the distributions with p_T(1) >= p_T(2) >= ..., in the coordinates p_T(1), ...

    Points of the hull are mixtures of the corners, and it is their weights that are cut.
    """
    laws = [tuple(law[i] for i in order) for law in corners]
    rows = [[law[high] - law[low] for law in laws] for high, low in pairwise(range(len(order)))]
    return _corners(_mixed(_cut(_units(len(laws)), rows), laws))


def common(one: Corners, other: Corners) -> Corners:
    """Return the corners of the intersection of two hulls."""
    if len(one) == 1 == len(other):
        return one & other
    first, second = list(one), list(other)
    pairs = [a + b for a, b in product(_units(len(first)), _units(len(second)))]
    rows = [
        [*a, *(-x for x in b)]
        for a, b in zip(zip(*first, strict=True), zip(*second, strict=True), strict=True)
    ]
    # An equation is two inequalities.
    both = [row for equation in rows for row in (equation, [-a for a in equation])]
    return _corners(_mixed([point[: len(first)] for point in _cut(pairs, both)], first))


def _corners(laws: Iterable[Law]) -> Corners:
    """Return the laws that are not mixtures of the others."""
    left = set(laws)
    for law in sorted(left) if len(left) > 2 else ():
        others = SourceSet.hull([[float(p) for p in other] for other in left - {law}])
        if distance_from_hull(others, np.array(law, dtype=float))[0] <= INSIDE:
            left.remove(law)
    return frozenset(left)


def _polytope_corners(body: Polytope) -> list[Law]:
    size = len(body)
    units = [[fraction(i == k) for i in range(size)] for k in range(size)]
    rows = [[x - fraction(low) for x in unit] for unit, low in zip(units, body.lower, strict=True)]
    rows += [[fraction(up) - x for x in unit] for unit, up in zip(units, body.upper, strict=True)]
    for row, side in zip(body.matrix, body.bound, strict=True):
        rows.append([fraction(side) - fraction(a) for a in row])
    # Constants count, as the probabilities sum to one.
    return _cut(_units(size), rows)


def _units(size: int) -> list[Law]:
    return [tuple(Fraction(i == k) for i in range(size)) for k in range(size)]


def _cut(points: list[Law], rows: Iterable[Sequence[Fraction]]) -> list[Law]:
    """Return the corners of {z in the hull of the points : row . z >= 0 for all rows}.

    The points are corners of a polytope whose only inequalities are z >= 0. Motzkin's double
    description: an edge joins two corners if no other one is tight wherever both are.
    """
    corners = [_Corner(p, frozenset(i for i, x in enumerate(p) if x == 0)) for p in points]
    for name, row in enumerate(rows, start=len(points[0])):
        values = [
            sum((a * x for a, x in zip(row, c.point, strict=True)), Fraction(0)) for c in corners
        ]
        signed = list(zip(corners, values, strict=True))
        kept = [c if v else _Corner(c.point, c.tight | {name}) for c, v in signed if v >= 0]
        for (inner, above), (outer, below) in product(
            [pair for pair in signed if pair[1] > 0], [pair for pair in signed if pair[1] < 0]
        ):
            both = inner.tight & outer.tight
            if sum(both <= c.tight for c in corners) > 2:
                continue
            share = above / (above - below)
            point = tuple(
                (1 - share) * x + share * y for x, y in zip(inner.point, outer.point, strict=True)
            )
            kept.append(_Corner(point, both | {name}))
        corners = kept
        if len(corners) > MOST:
            raise ValidationError(
                f"sources: found a convex part with more than {MOST} corners; use MinLocalDP, "
                "which does not need them"
            )
    return [c.point for c in corners]


def _mixed(weights: Iterable[Law], laws: Sequence[Law]) -> list[Law]:
    return [
        tuple(
            sum((w * p for w, p in zip(shares, column, strict=True)), Fraction(0))
            for column in zip(*laws, strict=True)
        )
        for shares in weights
    ]
