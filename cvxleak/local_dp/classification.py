"""The class of a source set in the sense of HAMMING, decided by linear programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any, Literal

import numpy as np
from flint import fmpq, fmpq_mat
from scipy import sparse
from scipy.optimize import linprog

from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import Array, real_number, whole_number
from cvxleak.local_dp.hamming import smallest_probability
from cvxleak.local_dp.linear import Mixture
from cvxleak.local_dp.statement import Sources, distance_from_hull, read_sources
from cvxleak.proofs.exact import normalized_rows
from cvxleak.sources import SourceSet
from cvxleak.sources.parts import Part

__all__ = ["Classification", "classify"]

Order = tuple[int, ...]

ROUNDING = 1e-12
"""Weights of no more than this are not needed."""


@dataclass(frozen=True, eq=False)
class Classification:
    """The class of a source set, and the evidence for it.

    Attributes
    ----------
    kind : {"I", "II", "III"}
        I: the convex hull contains the uniform distribution. II: not I, and all distributions rank
        the outcomes in one order. III: all other sets.
    distance : float
        L1 distance of the uniform distribution from the hull, up to rounding.
    mixture : Mixture or None
        Class I: the uniform distribution as a mixture of distributions of the set.
    separator : tuple of float or None
        Classes II and III: weights a with mean(a) > a . P for every distribution P of the set.
    exact : bool
        Whether the class is proved in exact arithmetic: the mixture is uniform, or the separator
        and the order are valid. If not, the set is within `tol` of the boundary between classes,
        and the class with more structure is returned.
    permutation : tuple of int or None
        Class II: outcomes in order of decreasing probability.
    folding : tuple of tuple of int or None
        The orders of the outcomes under the distributions of the set, with ties broken in every
        way; None if there are more than `cap`.

    Examples
    --------
    >>> from cvxleak.local_dp import classify
    >>> found = classify([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])
    >>> found.kind, found.permutation
    ('II', (0, 1, 2))
    """

    kind: Literal["I", "II", "III"]
    distance: float
    mixture: Mixture | None
    separator: tuple[float, ...] | None
    exact: bool
    permutation: Order | None
    folding: tuple[Order, ...] | None


def classify(sources: Sources, *, tol: float = 1e-9, cap: int = 1000) -> Classification:
    """Return the class of a source set: I, II (with its permutation) or III (with its foldings).

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        The set; a finite one need not be convex.
    tol : float
        Tolerance of the tests for the uniform distribution and for a common order.
    cap : int
        Largest number of folding permutations to list. If there are more, `folding` is None;
        `MinLocalDP` does not need them.

    Raises
    ------
    ValidationError
        Arguments that are not valid.

    Notes
    -----
    HAMMING Definitions 1 and 5. No certificate of cvxleak depends on the class.

    Examples
    --------
    >>> from cvxleak.local_dp import classify
    >>> classify([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]).permutation
    (0, 1, 2)
    >>> three = classify([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    >>> three.kind, three.folding
    ('III', ((0, 1, 2), (1, 2, 0)))
    >>> classify([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]).kind
    'I'
    """
    known = read_sources(sources)
    tol = real_number(tol, "tol", 0.0)
    cap = whole_number(cap, "cap", 1)
    size = known.size
    folding = _foldings(known, cap, tol)
    uniform = np.full(size, 1 / size)
    distance, direction = distance_from_hull(known, uniform)
    if distance <= tol:
        _, mixture = smallest_probability(known)
        exact = _is_uniform(mixture, known)
        return Classification("I", distance, mixture, None, exact, None, folding)
    separated = _separates(direction, known)
    order, strict = _common_order(known, tol)
    if order is not None:
        return Classification(
            "II", distance, None, tuple(direction), separated and strict, order, folding
        )
    return Classification("III", distance, None, tuple(direction), separated, None, folding)


def _is_uniform(mixture: Mixture, sources: SourceSet) -> bool:
    """Whether the uniform distribution is a mixture of the mixture's distributions, exactly.

    Weights in floats hardly ever give it exactly, so they are solved for in rationals.
    """
    size = sources.size
    share = Fraction(1, size)
    if any(body.contains((share,) * size) for body in sources.polytopes):
        return True
    used = sources.points[mixture.weights > ROUNDING].tolist()
    laws = normalized_rows(used)
    for weight, law in mixture.members:
        if weight > ROUNDING and law is not None:
            laws.append([fmpq(p.numerator, p.denominator) for p in law])
    columns = fmpq_mat(laws).transpose()
    uniform = fmpq_mat(size, 1, [fmpq(1, size)] * size)
    try:
        weights = (columns.transpose() * columns).solve(columns.transpose() * uniform)
    except ZeroDivisionError:  # distributions that depend on each other
        return False
    return columns * weights == uniform and all(w >= 0 for w in weights.entries())


def _separates(direction: Array, sources: SourceSet) -> bool:
    a = [fraction(v) for v in direction.tolist()]
    level = sum(a, Fraction(0)) / len(a)
    for point in sources.points:
        if sum((v * p for v, p in zip(a, exact_law(point), strict=True)), Fraction(0)) >= level:
            return False
    return all(_exact_support(sources, k, direction) < level for k in range(len(sources.polytopes)))


def _exact_support(sources: SourceSet, k: int, cost: Array) -> Fraction:
    """Return an exact upper bound on cost . p on the k-th polytope."""
    body = sources.polytopes[k]
    answer = body.support(cost)
    y = [fraction(v) for v in answer.multipliers.tolist()]
    level = fraction(answer.level)
    total = level + sum(
        (fraction(b) * v for b, v in zip(body.bound.tolist(), y, strict=True)), Fraction(0)
    )
    for i, c in enumerate(cost.tolist()):
        rest = fraction(c) - level
        rest -= sum(
            (fraction(row[i]) * v for row, v in zip(body.matrix, y, strict=True)),
            Fraction(0),
        )
        total += max(rest * fraction(body.lower[i]), rest * fraction(body.upper[i]))
    return total


def _common_order(sources: SourceSet, tol: float) -> tuple[Order | None, bool]:
    """Return the order common to all distributions, if any, and whether it holds exactly."""
    centers = [body.center for body in sources.polytopes]
    mean = np.vstack([sources.points, *centers]).sum(axis=0)
    order = tuple(int(i) for i in np.argsort(-mean, kind="stable"))
    exact = True
    for one, next_one in pairwise(order):
        cost = np.zeros(sources.size)
        cost[next_one], cost[one] = 1.0, -1.0
        # The entries of a row compare exactly whatever its sum is.
        gap = float((sources.points[:, next_one] - sources.points[:, one]).max(initial=-1.0))
        exact = exact and gap <= 0
        for k in range(len(sources.polytopes)):
            above = _exact_support(sources, k, cost)
            exact, gap = exact and above <= 0, max(gap, float(above))
        if gap > tol:
            return None, False
    return order, exact


def _foldings(sources: SourceSet, cap: int, tol: float) -> tuple[Order, ...] | None:
    found: set[Order] = set()
    for part in sources.parts:
        orders = _orders(part.points[0]) if part.is_point else _part_orders(part, tol)
        for order in orders:
            found.add(order)
            if len(found) > cap:
                return None
    return tuple(sorted(found))


def _orders(law: Array) -> Iterator[Order]:
    """Yield the orders of falling probability of one distribution, ties in every way."""
    law = np.array(law)
    groups = [np.flatnonzero(law == value).tolist() for value in sorted(set(law.tolist()))[::-1]]

    def extend(place: int, prefix: Order) -> Iterator[Order]:
        # One after the other: `itertools.product` would first list all orders of each group.
        if place == len(groups):
            yield prefix
            return
        for choice in permutations(groups[place]):
            yield from extend(place + 1, (*prefix, *choice))

    yield from extend(0, ())


def _part_orders(part: Part, tol: float) -> Iterator[Order]:
    """Yield the orders that some distribution of a convex part has: a tree of linear programs."""
    laws, equations, totals, rows, sides = _lifted(part)
    size = part.points.shape[1]

    def possible(prefix: Order) -> bool:
        others = [i for i in range(size) if i not in prefix]
        pairs = list(pairwise(prefix))
        pairs += [(prefix[-1], i) for i in others]
        if not pairs:
            return True
        order = sparse.vstack([laws[[low]] - laws[[high]] for high, low in pairs])
        answer = linprog(
            np.zeros(laws.shape[1]),
            sparse.vstack([rows, order]),
            np.concatenate([sides, np.full(len(pairs), tol)]),
            equations,
            totals,
            method="highs",
        )
        return answer.status == 0

    def extend(prefix: Order) -> Iterator[Order]:
        if len(prefix) == size:
            yield prefix
            return
        for i in range(size):
            if i not in prefix and possible((*prefix, i)):
                yield from extend((*prefix, i))

    yield from extend(())


def _lifted(part: Part) -> tuple[Any, Any, Array, Any, Array]:
    """Return p = L z, E z = e, G z <= g, z >= 0 for the distributions p of a convex part.

    z has a weight for each point, and for each polytope a weight w and w times a distribution of
    it.
    """
    size, count = part.points.shape[1], len(part.points)
    laws = [sparse.csr_array(part.points.T)]
    whole = [np.ones((1, count))]
    rows: list[Any] = []
    equal: list[Any] = []
    for body in part.polytopes:
        eye = np.eye(size)
        laws.append(sparse.csr_array(np.hstack([np.zeros((size, 1)), eye])))
        whole.append(np.concatenate([[1.0], np.zeros(size)])[None])
        equal.append(sparse.csr_array(np.concatenate([[-1.0], np.ones(size)])[None]))
        matrix = np.vstack([body.matrix, eye, -eye])
        bound = np.concatenate([body.bound, body.upper, -body.lower])
        rows.append(sparse.csr_array(np.hstack([-bound[:, None], matrix])))
    head = sparse.csr_array((0, count))
    total = sparse.csr_array(np.hstack(whole))
    own = sparse.block_diag([head, *equal]) if equal else sparse.csr_array((0, count))
    inner: Any = sparse.block_diag([head, *rows]) if rows else sparse.csr_array((0, count))
    equations = sparse.csr_array(sparse.vstack([total, own]))
    return (
        sparse.csr_array(sparse.hstack(laws)),
        equations,
        np.concatenate([[1.0], np.zeros(len(equal))]),
        sparse.csr_array(inner),
        np.zeros(inner.shape[0]),
    )
