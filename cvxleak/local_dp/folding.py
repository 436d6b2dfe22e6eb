"""Class III by folding into one order: HAMMING Theorem 3, Corollary 1, Remark 4 and (51).

For finite sets, which is how the paper uses them: the images of P restricted to an order are then
finite sets too, and intersections and unions are theirs.

In (18) the ratio is D_1's, the first row's. It has to be the largest of all rows, so the least
distortion takes the place of D_1. (The order D_1 <= D_2 <= ..., the right addition to (11), is too
much here: together with D_T(i) = D_i it makes everything between i and T(i) equal.) The
upper bound of Theorem 3 then always holds, and both bounds are exact if intersection and union
agree and the folding permutations form a group, up to relabeling. Otherwise the lower bound is
false in general: for P = {(0.5, 0.3, 0.2), (0.2, 0.5, 0.3)} all three distortions become equal,
which asks for log 2 (1 - D)/D at every D, and the constant distribution (0.4, 0.6, 0) has
distortion 0.62 under both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import Array, real_number
from cvxleak.local_dp.classification import Order, classify
from cvxleak.local_dp.statement import Sources, read_sources
from cvxleak.local_dp.theorems import class_one_leakage, ordered_leakage, worst_tails
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["FoldedSets", "FoldingBounds", "fold", "folding_bounds", "folding_program"]


@dataclass(frozen=True, eq=False)
class FoldedSets:
    """A finite set, folded into the order S_0 of decreasing probabilities.

    Attributes
    ----------
    folding : tuple of tuple of int
        The folding permutations T: outcomes in order of decreasing probability.
    images : tuple of ndarray
        For each T, the distributions of the set that have this order, in its coordinates.
    intersection, union : ndarray, shape (n, k)
        Intersection and union of the images, (15).
    lower_set, upper_set : SourceSet or None
        (51): the intersection and the union, unfolded by every T; None if empty.

    Examples
    --------
    >>> from cvxleak.local_dp import fold
    >>> fold([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]).folding
    ((0, 1, 2), (2, 1, 0))
    """

    folding: tuple[Order, ...]
    images: tuple[Array, ...]
    intersection: Array
    union: Array
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
    """Return the folded sets of a finite source set.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        A finite set.
    cap : int
        Largest number of folding permutations.

    Raises
    ------
    ValidationError
        Not a finite set, or more than `cap` folding permutations; `MinLocalDP` has no such limit.

    Notes
    -----
    HAMMING Definitions 5 and 6, (15) and (51). Outcomes are numbered in the order of the first
    permutation, which is then the identity, as the paper assumes.

    Examples
    --------
    >>> from cvxleak.local_dp.folding import fold
    >>> sets = fold([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]])
    >>> sets.folding, sets.intersection
    (((0, 1, 2), (1, 0, 2)), array([[0.5, 0.3, 0.2]]))
    """
    known = _finite(sources)
    folding = classify(known, cap=cap).folding
    if folding is None:
        raise ValidationError(
            f"sources: found a set with more than {cap} folding permutations; use MinLocalDP, "
            "which does not need them"
        )
    images, members = [], []
    for order in folding:
        points = known.points[:, list(order)]
        inside = (np.diff(points, axis=1) <= 0).all(axis=1)
        images.append(np.unique(points[inside], axis=0))
        members.append({tuple(row) for row in images[-1].tolist()})
    both, any_of = set.intersection(*members), set.union(*members)
    size = known.size
    intersection = np.array(sorted(both)).reshape(-1, size)
    union = np.array(sorted(any_of)).reshape(-1, size)
    lower = _unfolded(intersection, folding) if len(intersection) else None
    return FoldedSets(folding, tuple(images), intersection, union, lower, _unfolded(union, folding))


def folding_bounds(sources: Sources, budget: float, *, cap: int = 1000) -> FoldingBounds:
    """Return the bounds of HAMMING Theorem 3, with (18) corrected, and of Remark 4.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        A finite set.
    budget : float
        D in (0, 1].
    cap : int
        Largest number of folding permutations.

    Raises
    ------
    ValidationError
        Not a finite set, more than `cap` folding permutations, or D out of range.

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
    known = _finite(sources)
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    sets = fold(known, cap=cap)
    groups = _orbits(sets.folding, known.size)
    lower = None
    if len(sets.intersection):
        lower = _folded_leakage(sets.intersection, D, groups)
    upper = _folded_leakage(sets.union, D, groups)
    alone = max(_class_two_value(image, D) for image in sets.images)
    tight = np.array_equal(sets.intersection, sets.union)
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
        Not a finite set, more than `cap` folding permutations, or D out of range.

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

    known = _finite(sources)
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    sets = fold(known, cap=cap)
    groups = _orbits(sets.folding, known.size)
    z, t = cp.Variable(len(groups), name="ratios"), cp.Variable(name="scale")
    place = np.concatenate([np.full(len(group), g) for g, group in enumerate(groups)])
    each = z[place[np.argsort(np.concatenate(groups))]]  # D_i over the least, by outcome
    rules: list[Any] = [sets.union @ each <= D * t, z >= 1, z <= t]
    rules.append(cp.sum(each) <= (known.size - 1) * t)
    return cp.Problem(cp.Minimize(1 + (known.size - 1) * t - cp.sum(each)), rules)


def _folded_leakage(points: Array, D: float, groups: list[list[int]]) -> float:
    """Return (17), with (18) as the module says: l = 0 alone gives the minimum."""
    size = points.shape[1]
    if size * fraction(D) >= size - 1:
        return 0.0
    # A constant output of an outcome that no other one shares its distortion with.
    laws = [exact_law(point) for point in points]
    for (place,) in (group for group in groups if len(group) == 1):
        if all(1 - law[place] <= fraction(D) for law in laws):
            return 0.0
    if points[:, -1].max() > D:
        return class_one_leakage(size, D)
    # One distortion for each group: columns z = D_g / min D and t = 1 / min D.
    member = np.zeros((size, len(groups)))
    for g, group in enumerate(groups):
        member[group, g] = 1.0
    count = member.sum(axis=0)
    rows = np.vstack(
        [
            np.column_stack([points @ member, np.full(len(points), -D)]),
            np.column_stack([np.eye(len(groups)), -np.ones(len(groups))]),
            np.append(count, 1.0 - size)[None],
        ]
    )
    cost = np.append(-count, size - 1.0)
    answer = linprog(cost, rows, np.zeros(len(rows)), bounds=(1, None), method="highs")
    # Unbounded: a constant output meets the budget.
    return math.log1p(max(float(answer.fun), 0.0)) if answer.status == 0 else 0.0


def _class_two_value(points: Array, D: float) -> float:
    known = SourceSet(points)
    if worst_tails(known)[-2] <= fraction(D):
        return 0.0
    value = ordered_leakage(known, D)[0]
    return min(value, class_one_leakage(points.shape[1], D))


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


def _unfolded(points: Array, folding: tuple[Order, ...]) -> SourceSet:
    laws = []
    for order in folding:
        back = np.empty_like(points)
        back[:, list(order)] = points
        laws.append(back)
    return SourceSet(np.unique(np.vstack(laws), axis=0))


def _finite(sources: Sources) -> SourceSet:
    known = read_sources(sources)
    if not known.is_finite:
        raise ValidationError(
            "sources: found convex parts; folding needs a finite set (use MinLocalDP "
            "for other sets)"
        )
    return known
