"""Class III by folding into one order: HAMMING Theorem 3, Corollary 1, Remark 4 and (51).

The images of a set, restricted to its orders, are unions of polytopes, and so are their
intersection and union; all are computed by their corners, exactly.

In (18) the ratio is D_1's, the first row's. It has to be the largest of all rows, so the least
distortion takes the place of D_1. (The order D_1 <= D_2 <= ..., the right addition to (11), is too
much here: together with D_T(i) = D_i it makes everything between i and T(i) equal.) And D_i = 1
holds for the removed outputs, so for those that D_T(i) = D_i ties to them as well. The
upper bound of Theorem 3 then always holds, and both bounds are exact if intersection and union
agree and the folding permutations form a group, up to relabeling. Otherwise the lower bound is
false in general: for P = {(0.5, 0.3, 0.2), (0.2, 0.5, 0.3)} all three distortions become equal,
which asks for log 2 (1 - D)/D at every D, and the constant distribution (0.4, 0.6, 0) has
distortion 0.62 under both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array, in_order, real_number, short, whole_number
from cvxleak.local_dp.classification import Order, classify
from cvxleak.local_dp.corners import Corners, common, in_order_of, part_corners
from cvxleak.local_dp.statement import Sources, read_sources
from cvxleak.local_dp.theorems import (
    class_one_leakage,
    class_two,
    class_two_removed,
    least_ratio,
    ordered_leakage,
    worst_of,
    worst_tails,
)
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "FoldedSets",
    "FoldingBounds",
    "class_three_distortions",
    "class_three_leakage",
    "fold",
    "folding_bounds",
    "folding_program",
]

Pieces = frozenset[Corners]
"""A union of polytopes, each by its corners."""


@dataclass(frozen=True, eq=False)
class FoldedSets:
    """A source set, folded into the order S_0 of decreasing probabilities.

    Attributes
    ----------
    folding : tuple of tuple of int
        The folding permutations T: outcomes in order of decreasing probability.
    images : tuple of SourceSet
        For each T, the distributions of the set that have this order, in its coordinates.
    intersection : SourceSet or None
        Intersection of the images, (15); None if empty.
    union : SourceSet
        Union of the images, (15).
    lower_set : SourceSet or None
        (51): the intersection, unfolded by every T; None if empty.
    upper_set : SourceSet
        (51): the union, unfolded by every T.

    Examples
    --------
    >>> from cvxleak.local_dp import fold
    >>> fold([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]).folding
    ((0, 1, 2), (2, 1, 0))
    """

    folding: tuple[Order, ...]
    images: tuple[SourceSet, ...]
    intersection: SourceSet | None
    union: SourceSet
    lower_set: SourceSet | None
    upper_set: SourceSet


@dataclass(frozen=True)
class FoldingBounds:
    """HAMMING Theorem 3's bounds on the least epsilon, in nats.

    Attributes
    ----------
    lower : float or None
        (17) for the intersection; None if it is empty. It can exceed the least epsilon.
    upper : float
        (17) for the union; never below the least epsilon.
    single_order : float
        Remark 4: the least epsilon for the distributions with one order, maximized over the orders;
        never above the least epsilon.
    tight : bool
        Whether intersection and union are equal (Corollary 1); then `lower` equals `upper`. Both
        are the least epsilon if, in addition, the folding permutations form a group.

    Examples
    --------
    >>> from cvxleak.local_dp import FoldingBounds
    >>> FoldingBounds(lower=0.1, upper=0.2, single_order=0.1, tight=False).tight
    False
    """

    lower: float | None
    upper: float
    single_order: float
    tight: bool


def fold(sources: Sources, *, cap: int = 1000) -> FoldedSets:
    """Return the folded sets of a source set.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        Any set: finite, a hull, a polytope, or a union of such.
    cap : int
        Largest number of folding permutations.

    Raises
    ------
    ValidationError
        More than `cap` folding permutations, or convex parts with more than 2000 corners;
        `MinLocalDP` has no such limit.

    Notes
    -----
    HAMMING Definitions 5 and 6, (15) and (51). Outcomes are numbered in the order of the first
    permutation, which is then the identity, as the paper assumes. A distribution with ties has
    several orders, and each of them is a folding permutation.

    Examples
    --------
    >>> from cvxleak.local_dp.folding import fold
    >>> sets = fold([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]])
    >>> sets.folding, sets.intersection.points
    (((0, 1, 2), (1, 0, 2)), array([[0.5, 0.3, 0.2]]))

    A segment that lies in two orders: what it has in both of them is where they meet.

    >>> from cvxleak.sources import SourceSet
    >>> sets = fold(SourceSet.hull([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1]]))
    >>> [image.points.tolist() for image in sets.images]
    [[[0.45, 0.45, 0.1], [0.6, 0.3, 0.1]], [[0.45, 0.45, 0.1], [0.6, 0.3, 0.1]]]
    """
    known = read_sources(sources)
    folding = classify(known, cap=cap).folding
    if folding is None:
        raise ValidationError(
            f"sources: found a set with more than {cap} folding permutations; use MinLocalDP, "
            "which does not need them"
        )
    parts = [part_corners(part) for part in known.parts]
    images = [_pieces(in_order_of(part, order) for part in parts) for order in folding]
    both = reduce(lambda one, other: _pieces(common(a, b) for a in one for b in other), images)
    whole = _pieces(piece for image in images for piece in image)
    return FoldedSets(
        folding,
        tuple(_source_set(image) for image in images),
        _source_set(both) if both else None,
        _source_set(whole),
        _unfolded(both, folding) if both else None,
        _unfolded(whole, folding),
    )


def class_three_distortions(
    sources: Sources,
    budget: float,
    folding: Iterable[Sequence[int]],
    *,
    removed: int = 0,
    printed: bool = False,
) -> tuple[float, Array]:
    """Return Theorem 3's program (18) for k removed outputs: its epsilon and its D_1, ..., D_M.

    minimize log (1 + (M - 1 - k - sum_{i <= M-k} D_i) / min_i D_i) over D_i in [0, 1] with
    sum P_i D_i <= D for every source, sum_{i <= M-k} D_i <= M - 1 - k, D_i = 1 for i > M - k, and
    D_T(i) = D_i for every folding permutation T.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        A Class II set.
    budget : float
        D in (0, 1].
    folding : iterable of permutations of 0, ..., M - 1
        As in `FoldedSets`: the first one is the order of the set itself, and outcome i of the
        others is what it has at place i.
    removed : int
        k, from 0 to M - 2.
    printed : bool
        True for (18) as printed: with D_1 in place of the least distortion, without D_i = 1 for the
        removed outputs, and with the budget D - D^(k) for all sources. Its value can be too small.

    Returns
    -------
    epsilon : float
        inf if the budget cannot be met with k outputs removed.
    distortions : ndarray, shape (M,)
        In order of decreasing probability of the outcomes; empty if epsilon is inf.

    Raises
    ------
    ValidationError
        Not a Class II set, or an argument out of range.

    See Also
    --------
    class_two_distortions : Without D_T(i) = D_i.

    Examples
    --------
    Table I with its entries 1 and 4 exchanged or not, for which the least epsilon is 1.4202:

    >>> from cvxleak.local_dp import class_three_distortions
    >>> table, swap = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]], [range(6), (3, 1, 2, 0, 4, 5)]
    >>> round(class_three_distortions(table, 0.4, swap)[0], 4)
    1.4202
    >>> round(class_three_distortions(table, 0.4, swap, printed=True)[0], 4)
    1.4118
    """
    known, D, count = class_two_removed(sources, budget, removed)
    orders = _permutations(folding, known.size)
    return _tied(known, D, _orbits(orders, known.size), count, printed)


def class_three_leakage(sources: Sources, budget: float, folding: Iterable[Sequence[int]]) -> float:
    """Return (17): the least epsilon of a Class II set if D_T(i) = D_i for all T in `folding`.

    It is the least epsilon for the set unfolded by all T, if they form a group.

    Parameters
    ----------
    sources, budget, folding
        As for `class_three_distortions`.

    Raises
    ------
    ValidationError
        Not a Class II set, or an argument out of range.

    Notes
    -----
    HAMMING (17), with (18) corrected as in `class_three_distortions`: k = 0 alone gives the
    minimum.

    Examples
    --------
    >>> from cvxleak.local_dp import class_three_leakage
    >>> table, swap = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]], [range(6), (1, 0, 2, 3, 4, 5)]
    >>> round(class_three_leakage(table, 0.3, swap), 5)
    1.54045
    """
    known = class_two(sources)
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    return _tied_leakage(known, D, _orbits(_permutations(folding, known.size), known.size))


def folding_bounds(sources: Sources, budget: float, *, cap: int = 1000) -> FoldingBounds:
    """Return the bounds of HAMMING Theorem 3, with (18) corrected, and of Remark 4.

    A distribution with ties has all its orders, by Definition 5. One order for each distribution is
    enough for the upper bound, and can give a smaller one: see `class_three_leakage`, which takes
    the permutations.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        Any set: finite, a hull, a polytope, or a union of such.
    budget : float
        D in (0, 1].
    cap : int
        Largest number of folding permutations.

    Raises
    ------
    ValidationError
        As for `fold`, or D out of range.

    Examples
    --------
    HAMMING's Class III set a, for which the bounds agree, and a set for which the "lower" bound
    exceeds the least epsilon, which is 0:

    >>> from cvxleak.local_dp.folding import folding_bounds
    >>> table = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
    >>> bounds = folding_bounds([table, [0.15, 0.7, *table[2:]]], 0.3)
    >>> round(bounds.lower, 5), round(bounds.upper, 5), bounds.tight
    (1.54045, 1.54045, True)
    >>> round(folding_bounds([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]], 0.62).lower, 4)
    0.2036
    """
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    sets = fold(sources, cap=cap)
    groups = _orbits(sets.folding, sets.union.size)
    lower = None
    if sets.intersection is not None:
        lower = _tied_leakage(sets.intersection, D, groups)
    upper = _tied_leakage(sets.union, D, groups)
    alone = max(ordered_leakage(image, D) for image in sets.images)
    tight = len({str(image.parts_to_list()) for image in sets.images}) == 1
    return FoldingBounds(lower, upper, alone, tight)


def folding_program(sources: Sources, budget: float, *, cap: int = 1000) -> cp.Problem:
    """Return the linear program of the upper bound of `folding_bounds` in plain CVXPY.

    Its value is e^epsilon if no constant output meets the budget and the smallest probability of an
    outcome does not exceed it. Its variables are ``ratios``, the distortion of each group of
    equivalent outcomes (under the foldings) divided by the least distortion, and ``scale``, 1
    divided by the least distortion.

    Parameters
    ----------
    sources, budget, cap
        As for `folding_bounds`.

    Raises
    ------
    ValidationError
        As for `fold`, or D out of range.

    Notes
    -----
    HAMMING (17) and (18), corrected as in `folding_bounds`.

    Examples
    --------
    >>> import math
    >>> from cvxleak.local_dp.folding import folding_program
    >>> table = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
    >>> program = folding_program([table, [0.15, 0.7, *table[2:]]], 0.3)
    >>> round(math.log(program.solve(solver="HIGHS")), 5)
    1.54045
    """
    # Here, so that everything else works where CVXPY is not installed.
    import cvxpy as cp

    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    sets = fold(sources, cap=cap)
    size = sets.union.size
    groups = _orbits(sets.folding, size)
    z, t = cp.Variable(len(groups), name="ratios"), cp.Variable(name="scale")
    place = np.concatenate([np.full(len(group), g) for g, group in enumerate(groups)])
    each = z[place[np.argsort(np.concatenate(groups))]]  # D_i over the least, by outcome
    rules: list[Any] = [sets.union.points @ each <= D * t, z >= 1, z <= t]
    rules.append(cp.sum(each) <= (size - 1) * t)
    return cp.Problem(cp.Minimize(1 + (size - 1) * t - cp.sum(each)), rules)


def _tied(
    known: SourceSet, D: float, groups: list[list[int]], removed: int, printed: bool = False
) -> tuple[float, Array]:
    """Return (18) for a set in falling order and groups of outcomes with one distortion."""
    kept = known.size - removed
    if printed:
        free = [[i for i in group if i < kept] for group in groups]
    else:
        free = [group for group in groups if max(group) < kept]
    free = [group for group in free if group]
    place = np.full(known.size, len(free))
    for g, group in enumerate(free):
        place[group] = g
    return least_ratio(
        known, D, place, len(free), removed=removed, first=printed, common_tail=printed
    )


def _tied_leakage(known: SourceSet, D: float, groups: list[list[int]]) -> float:
    """Return (17), with (18) as the module says: k = 0 alone gives the minimum."""
    size = known.size
    if size * fraction(D) >= size - 1:
        return 0.0
    if worst_tails(known)[1] > fraction(D):
        return class_one_leakage(size, D)
    # A constant output of an outcome that no other one shares its distortion with.
    for (place,) in (group for group in groups if len(group) == 1):
        if worst_of(known, np.arange(size) != place) <= fraction(D):
            return 0.0
    return _tied(known, D, groups, 0)[0]


def _orbits(folding: tuple[Order, ...], size: int) -> list[list[int]]:
    """Return the groups of places whose distortions D_T(i) = D_i makes equal."""
    place = {outcome: i for i, outcome in enumerate(folding[0])}
    parent = list(range(size))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    for order in folding:
        for i, outcome in enumerate(order):
            parent[root(i)] = root(place[outcome])
    groups: dict[int, list[int]] = {}
    for i in range(size):
        groups.setdefault(root(i), []).append(i)
    return list(groups.values())


def _pieces(corners: Iterable[Corners]) -> Pieces:
    """Return the pieces that are not empty nor, corner by corner, in another one."""
    found = {piece for piece in corners if piece}
    return frozenset(piece for piece in found if not any(piece < other for other in found))


def _source_set(pieces: Pieces) -> SourceSet:
    hulls = sorted(sorted(tuple(map(float, law)) for law in piece) for piece in pieces)
    return reduce(or_, [SourceSet.hull(laws) for laws in hulls])


def _unfolded(pieces: Pieces, folding: tuple[Order, ...]) -> SourceSet:
    back = [np.argsort(order) for order in folding]
    return _source_set(
        frozenset(
            frozenset(tuple(law[i] for i in order) for law in piece)
            for piece in pieces
            for order in back
        )
    )


def _permutations(folding: Iterable[Sequence[int]], size: int) -> tuple[Order, ...]:
    orders: tuple[Order, ...] = tuple(
        tuple(whole_number(i, "folding", 0) for i in in_order(order, "folding"))
        for order in in_order(folding, "folding")
    )
    for order in orders:
        if sorted(order) != list(range(size)):
            raise ValidationError(
                f"folding: found {short(order)}; permutations of 0 to {size - 1} are needed"
            )
    if not orders:
        raise ValidationError("folding: found no permutation; at least one is needed")
    return orders
