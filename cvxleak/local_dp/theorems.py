"""HAMMING's own formulas, for comparison with the exact linear programs, and one more.

They are floating-point numbers without a certificate; `MinLocalDP` needs none of them. Corrections
to what is printed: (11) needs the order D_1 <= D_2 <= ... (without it the value is too small); with
it the best number of removed outputs is always found at l = 0, because D_i = 1 removes an output;
(48) is for i, j <= M - k. For a single distribution the program has a closed form,
`one_law_leakage`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import (
    SIZE_LIMIT,
    Array,
    frozen_array,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.local_dp.classification import classify
from cvxleak.local_dp.statement import Sources, read_sources
from cvxleak.model import Prior
from cvxleak.model.prior import named_law
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "class_one_information",
    "class_one_leakage",
    "class_two_distortions",
    "class_two_leakage",
    "class_two_mechanism",
    "class_two_program",
    "distortion_thresholds",
    "one_law_leakage",
    "ordered_leakage",
    "worst_tails",
]

ROUNDING = 1e-12
"""A distortion that a linear program puts outside [0, 1] by no more than this is at the border."""


def class_one_leakage(size: int, budget: float) -> float:
    """Return the least epsilon of a Class I set: log (M - 1)(1 - D)/D, and 0 from (M - 1)/M on.

    Parameters
    ----------
    size : int
        M, the number of outcomes.
    budget : float
        D in [0, 1], the worst-case Hamming distortion.

    Raises
    ------
    ValidationError
        An argument out of range.

    Notes
    -----
    HAMMING Theorem 1, attained by symmetric randomized response.

    Examples
    --------
    >>> from cvxleak.local_dp.theorems import class_one_leakage
    >>> round(class_one_leakage(10, 0.5), 6)  # log 9
    2.197225
    """
    M = whole_number(size, "size", 1, SIZE_LIMIT)
    D = real_number(budget, "budget", 0.0, 1.0)
    if M * fraction(D) >= M - 1:
        return 0.0
    return math.inf if D == 0 else math.log((M - 1) * (1 - D) / D)


def class_one_information(size: int, budget: float) -> float:
    """Return the least worst-case information of a convex Class I set, in nats.

    log M - h(D) - D log(M - 1), and 0 from (M - 1)/M on.

    Raises
    ------
    ValidationError
        An argument out of range.

    Notes
    -----
    HAMMING Lemma 5, for sets that contain the uniform distribution. For a finite set, the
    information can be smaller if only its hull contains it.

    Examples
    --------
    >>> from cvxleak.local_dp.theorems import class_one_information
    >>> round(class_one_information(2, 0.1), 6)
    0.368064
    """
    M = whole_number(size, "size", 1, SIZE_LIMIT)
    D = real_number(budget, "budget", 0.0, 1.0)
    if M * fraction(D) >= M - 1:
        return 0.0
    entropy = -sum(p * math.log(p) for p in (D, 1 - D) if p > 0)
    return math.log(M) - entropy - D * math.log(M - 1)


def distortion_thresholds(sources: Sources) -> Array:
    """Return D^(0) = 0, D^(1), ..., D^(M): the largest probability of the k least likely outcomes.

    With a budget below D^(k), no channel that meets the budget can leave out k outputs. From
    D^(M-1) on, a constant output meets the budget.

    Raises
    ------
    ValidationError
        Not a Class II set.

    Notes
    -----
    HAMMING (9) and Theorem 2 (a).

    Examples
    --------
    >>> from cvxleak.local_dp.theorems import distortion_thresholds
    >>> distortion_thresholds([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])
    array([0. , 0.2, 0.5, 1. ])
    """
    return np.array([float(threshold) for threshold in worst_tails(_class_two(sources))])


def class_two_distortions(
    sources: Sources, budget: float, *, removed: int = 0, ordered: bool = True
) -> tuple[float, Array]:
    """Return Theorem 2's linear program for l removed outputs: its epsilon and its D_1, ..., D_M.

    minimize log (M - 1 - l) (1 - sum_{i=2}^{M-l} D_i / (M - 1 - l)) / D_1 over D_i in [0, 1] with
    sum P_i D_i <= D for every source, sum_{i <= M-l} D_i <= M - 1 - l, D_i = 1 for i > M - l, and
    D_1 <= D_2 <= ...

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        A Class II set.
    budget : float
        D in (0, 1].
    removed : int
        l, from 0 to M - 2.
    ordered : bool
        False for (11) as printed, without the constraint on the order; its value can be too small.

    Returns
    -------
    epsilon : float
        inf if the budget cannot be met with l outputs removed.
    distortions : ndarray, shape (M,)
        In order of decreasing probability of the outcomes; empty if epsilon is inf.

    Raises
    ------
    ValidationError
        Not a Class II set, or an argument out of range.

    Notes
    -----
    HAMMING (11), corrected: the printed tail D^(l) is the largest over the sources; here each
    source has its own. Linear after division by D_1 (Charnes and Cooper).

    Examples
    --------
    >>> from cvxleak.local_dp.theorems import class_two_distortions
    >>> table = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]]
    >>> epsilon, D = class_two_distortions(table, 0.25)
    >>> round(epsilon, 6), D.round(4)
    (2.014903, array([0.1176, 0.1176, 1.    , 1.    , 1.    , 1.    ]))
    """
    known = _class_two(sources)
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    count = whole_number(removed, "removed", 0, max(known.size - 2, 0))
    return ordered_leakage(known, D, removed=count, ordered=ordered)


def class_two_program(
    sources: Sources, budget: float, *, removed: int = 0, ordered: bool = True
) -> cp.Problem:
    """Return the linear program of `class_two_distortions` in plain CVXPY.

    Its value is e^epsilon, its variables are ``ratios``, D_i / D_1 for i <= M - l, and ``scale``,
    1 / D_1.

    Parameters
    ----------
    sources, budget, removed, ordered
        As for `class_two_distortions`.

    Raises
    ------
    ValidationError
        Not a Class II set, a set with polytopes, or an argument out of range.

    Notes
    -----
    HAMMING (11), corrected as in `class_two_distortions`.

    Examples
    --------
    >>> import math
    >>> from cvxleak.local_dp.theorems import class_two_program
    >>> table = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]]
    >>> round(math.log(class_two_program(table, 0.25).solve(solver="HIGHS")), 6)
    2.014903
    """
    # Here, so that everything else works where CVXPY is not installed.
    import cvxpy as cp

    known = _class_two(sources)
    if known.polytopes:
        raise ValidationError(
            "sources: found polytopes; a finite set is needed (use MinLocalDP for polytopes)"
        )
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    kept = known.size - whole_number(removed, "removed", 0, max(known.size - 2, 0))
    z, t = cp.Variable(kept, nonneg=True, name="ratios"), cp.Variable(nonneg=True, name="scale")
    head, tail = known.points[:, :kept], known.points[:, kept:].sum(axis=1)
    rules: list[Any] = [
        head @ z + tail * t <= D * t,
        cp.sum(z) <= (kept - 1) * t,
        z <= t,
        z[0] == 1,
    ]
    if ordered:
        rules.append(cp.diff(z) >= 0)
    return cp.Problem(cp.Minimize((kept - 1) * t - cp.sum(z[1:])), rules)


def class_two_leakage(sources: Sources, budget: float) -> float:
    """Return the least epsilon of a Class II set by HAMMING Theorem 2, with the order constraint.

    Raises
    ------
    ValidationError
        Not a Class II set, or an argument out of range.

    Examples
    --------
    HAMMING Table I:

    >>> from cvxleak.local_dp.theorems import class_two_leakage
    >>> table = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]]
    >>> [round(class_two_leakage(table, D), 4) for D in (0.02, 0.1, 0.2, 0.29, 0.31)]
    [5.5013, 3.8067, 2.6773, 1.6236, 0.0]
    """
    known = _class_two(sources)
    thresholds = worst_tails(known)
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    if thresholds[-2] <= fraction(D):
        return 0.0
    if thresholds[1] > fraction(D):
        return class_one_leakage(known.size, D)
    return ordered_leakage(known, D)[0]


def class_two_mechanism(distortions: Array, removed: int = 0) -> Array:
    """Return the mechanism (48) of given D_1 <= ... <= D_{M-k} and k removed outputs.

    Q(i|i) = 1 - D_i, Q(j|i) = D_i (1 - D_j) / sum_{l != i} (1 - D_l) for i, j <= M - k, sums over
    l <= M - k; the last k columns are 0 and the last k rows repeat row M - k.

    Parameters
    ----------
    distortions : array_like, shape (M,) or (M - k,)
        The last k are not used.
    removed : int
        k, from 0 to M - 2.

    Raises
    ------
    ValidationError
        Distortions outside [0, 1] by more than 1e-12, or fewer than two distortions below 1.

    Examples
    --------
    >>> from cvxleak.local_dp.theorems import class_two_mechanism
    >>> class_two_mechanism([0.25, 0.25, 1.0], removed=1)
    array([[0.75, 0.25, 0.  ],
           [0.25, 0.75, 0.  ],
           [0.25, 0.75, 0.  ]])
    """
    D = frozen_array(distortions, "distortions", 1)
    k = whole_number(removed, "removed", 0, max(len(D) - 2, 0))
    outside = len(D) == 0 or D.min() < -ROUNDING or D.max() > 1 + ROUNDING
    head = 1 - np.clip(D[: len(D) - k], 0.0, 1.0)
    if outside or (head > 0).sum() < 2:
        raise ValidationError(
            f"distortions: found {D}; they are in [0, 1] and at least two of the outputs that stay "
            "have one below 1"
        )
    block = (1 - head)[:, None] * head[None, :] / (head.sum() - head)[:, None]
    np.fill_diagonal(block, head)
    matrix = np.zeros((len(D), len(D)))
    matrix[: len(head), : len(head)] = block
    matrix[len(head) :, : len(head)] = block[-1]
    return matrix


def one_law_leakage(prior: Prior | ArrayLike, budget: float) -> float:
    """Return the least epsilon of one source: log (m - 1)(1 - D)/(S_m - 1 + D) for the best m.

    S_m is the probability of the m most probable outcomes, and m >= 2 is the best one with S_m >
    1 - D. Randomized response on the m most probable outcomes attains it; for any other input, the
    output is uniform on them. From D = 1 - S_1 on, epsilon is 0, attained by always releasing the
    most probable outcome.

    Parameters
    ----------
    prior : Prior or array_like, shape (M,)
        The distribution, in any order.
    budget : float
        D in [0, 1], expected Hamming distortion.

    Returns
    -------
    float
        In nats; inf if no channel with a finite epsilon meets the budget.

    Raises
    ------
    ValidationError
        An argument out of range.

    Notes
    -----
    The minimum of HAMMING (11), corrected, for a single source. The proof is on the documentation
    page "Local differential privacy under a distortion budget".

    Examples
    --------
    HAMMING Table I:

    >>> from cvxleak.local_dp import one_law_leakage
    >>> law = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
    >>> [round(one_law_leakage(law, D), 4) for D in (0.02, 0.1, 0.2, 0.29, 0.3)]
    [5.5013, 3.8067, 2.6773, 1.6236, 0.0]
    """
    truth = 1 - fraction(real_number(budget, "budget", 0.0, 1.0))
    given = named_law(prior)
    if not isinstance(given, Prior):
        given = Prior(probability_rows(given, "prior", 1))
    law = sorted(exact_law(given.probabilities), reverse=True)
    if law[0] >= truth:
        return 0.0
    kept = enumerate(accumulate(law[1:], initial=law[0]))
    ratios = [others * truth / (total - truth) for others, total in kept if total > truth]
    if not ratios:
        return math.inf
    least = min(ratios)
    return math.log(least.numerator) - math.log(least.denominator)


def ordered_leakage(
    known: SourceSet,
    budget: float,
    *,
    removed: int = 0,
    ordered: bool = True,
) -> tuple[float, Array]:
    """Return (11) for a set that is in falling order."""
    M, kept = known.size, known.size - removed
    if known.polytopes:
        raise ValidationError(
            "sources: found polytopes; a finite set is needed (use MinLocalDP for polytopes)"
        )
    # Columns z_i = D_i / D_1 for i <= kept, and t = 1 / D_1.
    head, tail = known.points[:, :kept], known.points[:, kept:].sum(axis=1)
    rows = [np.column_stack([head, tail - budget])]
    rows.append(np.append(np.ones(kept), -(kept - 1.0))[None])
    rows.append(np.column_stack([np.eye(kept), -np.ones(kept)]))
    if ordered:
        step = np.zeros((kept - 1, kept + 1))
        step[np.arange(kept - 1), np.arange(kept - 1)] = 1.0
        step[np.arange(kept - 1), np.arange(1, kept)] = -1.0
        rows.append(step)
    A = np.vstack(rows)
    cost = np.append(-np.ones(kept), kept - 1.0)
    cost[0] = 0.0
    first = np.eye(1, kept + 1)
    answer = linprog(cost, A, np.zeros(len(A)), first, [1.0], method="highs")
    if answer.status == 2:
        return math.inf, np.zeros(0)
    if answer.status == 3:
        return 0.0, np.zeros(0)
    if answer.status != 0:
        raise SolverError(f"HiGHS: {answer.message}")
    D = np.ones(M)
    D[:kept] = answer.x[:kept] / answer.x[kept]
    # The objective is (kept - 1) t - sum_{i >= 2} z_i, the ratio itself.
    return max(math.log(max(float(answer.fun), 1.0)), 0.0), D


def worst_tails(known: SourceSet) -> list[Fraction]:
    """Return the largest probability of the last 0, 1, ... outcomes, as written for laws."""
    size = known.size
    laws = [exact_law(point) for point in known.points]
    worst = []
    for first in range(size, -1, -1):
        sums = [sum(law[first:], Fraction(0)) for law in laws]
        tail = (np.arange(size) >= first).astype(float)
        sums += [fraction(body.support(tail).value) for body in known.polytopes]
        worst.append(max(sums))
    return worst


def _class_two(sources: Sources) -> SourceSet:
    known = read_sources(sources)
    found = classify(known, cap=1)
    if found.kind != "II" or found.permutation is None:
        raise ValidationError(f"sources: found a set of Class {found.kind}; Class II is needed")
    return known.relabeled(found.permutation)
