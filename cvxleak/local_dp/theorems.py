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
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
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
from cvxleak.local_dp.hamming import channel_of_distortions
from cvxleak.local_dp.linear import SourceProgram
from cvxleak.local_dp.statement import Sources, read_sources
from cvxleak.model import Prior
from cvxleak.model.prior import named_law
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "class_one_information",
    "class_one_leakage",
    "class_two",
    "class_two_distortions",
    "class_two_leakage",
    "class_two_mechanism",
    "class_two_program",
    "distortion_thresholds",
    "least_ratio",
    "one_law_leakage",
    "ordered_leakage",
    "worst_of",
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
    return np.array([float(threshold) for threshold in worst_tails(class_two(sources))])


def class_two_distortions(
    sources: Sources,
    budget: float,
    *,
    removed: int = 0,
    ordered: bool = True,
    common_tail: bool = False,
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
    common_tail : bool
        True for (11) as printed, where every source has the budget D - D^(l) for the outputs that
        stay; its value can be too large. Otherwise a source has what its own outcomes leave.

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
    HAMMING (11), as printed with ``ordered=False, common_tail=True``. Linear after division by D_1
    (Charnes and Cooper).

    Examples
    --------
    >>> from cvxleak.local_dp.theorems import class_two_distortions
    >>> table = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]]
    >>> epsilon, D = class_two_distortions(table, 0.25)
    >>> round(epsilon, 6), D.round(4)
    (2.014903, array([0.1176, 0.1176, 1.    , 1.    , 1.    , 1.    ]))
    """
    known, D, count = class_two_removed(sources, budget, removed)
    kept = known.size - count
    place = np.minimum(np.arange(known.size), kept)
    options = {"ordered": ordered, "common_tail": common_tail}
    return least_ratio(known, D, place, kept, removed=count, first=True, **options)


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

    known = class_two(sources)
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
    known = class_two(sources)
    return ordered_leakage(known, real_number(budget, "budget", 0.0, 1.0, open_low=True))


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
    head = np.clip(D[: len(D) - k], 0.0, 1.0)
    if outside or (head < 1).sum() < 2:
        raise ValidationError(
            f"distortions: found {D}; they are in [0, 1] and at least two of the outputs that stay "
            "have one below 1"
        )
    block = channel_of_distortions(head)
    return np.pad(np.vstack([block, np.tile(block[-1], (k, 1))]), ((0, 0), (0, k)))


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


def least_ratio(
    known: SourceSet,
    budget: float,
    place: NDArray[np.int_],
    groups: int,
    *,
    removed: int = 0,
    ordered: bool = False,
    first: bool = False,
    common_tail: bool = False,
) -> tuple[float, Array]:
    """Return (11) or (18) for a set in falling order, and the distortions.

    Outcomes with one `place` have one distortion; at the place `groups` it is 1. The ratio is that
    of the `first` row, or else of the row with the least distortion.
    """
    # Columns z_g = D_g / D_1, or over the least, and t = 1 / that.
    each, whole = np.eye(groups + 1)[place], np.eye(groups + 1)[groups]
    kept = each[: known.size - removed]
    total = kept.sum(axis=0) - (len(kept) - 1) * whole
    rows = [total[None], np.eye(groups, groups + 1) - whole]
    if ordered:
        rows.append(kept[:-1] - kept[1:])
    cost, ceiling = each, budget * whole
    if common_tail:
        cost = np.vstack([kept, np.zeros((removed, groups + 1))])
        ceiling = (budget - float(worst_tails(known)[removed])) * whole
    low: list[tuple[float, float | None]] = [(0.0 if first else 1.0, None)] * (groups + 1)
    if first:
        low[place[0]] = (1.0, 1.0)
    inequalities = np.vstack(rows)
    best = SourceProgram(known, cost, ceiling).minimize(
        -total, low, inequalities, np.zeros(len(inequalities))
    )
    if best is None:
        return math.inf, np.zeros(0)
    # The objective is the ratio less 1.
    return math.log1p(max(best.value, 0.0)), (best.columns / best.columns[groups])[place]


def ordered_leakage(known: SourceSet, budget: float) -> float:
    """Return Theorem 2 for a set in falling order, with the order constraint."""
    thresholds, D = worst_tails(known), fraction(budget)
    if thresholds[-2] <= D:
        return 0.0
    if thresholds[1] > D:
        return class_one_leakage(known.size, budget)
    size = known.size
    return least_ratio(known, budget, np.arange(size), size, ordered=True, first=True)[0]


def worst_tails(known: SourceSet) -> list[Fraction]:
    """Return the largest probability of the last 0, 1, ... outcomes, as written for laws."""
    return [worst_of(known, np.arange(known.size) >= k) for k in range(known.size, -1, -1)]


def worst_of(known: SourceSet, outcomes: NDArray[np.bool_]) -> Fraction:
    """Return the largest probability of some outcomes, as written for laws."""
    chosen = np.flatnonzero(outcomes)
    found = [fraction(body.support(outcomes.astype(float)).value) for body in known.polytopes]
    laws = (exact_law(point) for point in known.points)
    return max([*found, *(sum((law[i] for i in chosen), Fraction(0)) for law in laws)])


def class_two_removed(
    sources: Sources, budget: float, removed: int
) -> tuple[SourceSet, float, int]:
    """Return a Class II set, D and how many outputs are removed, all checked."""
    known = class_two(sources)
    D = real_number(budget, "budget", 0.0, 1.0, open_low=True)
    return known, D, whole_number(removed, "removed", 0, max(known.size - 2, 0))


def class_two(sources: Sources) -> SourceSet:
    """Return a Class II set with its outcomes in falling order."""
    known = read_sources(sources)
    found = classify(known, cap=1)
    if found.kind != "II" or found.permutation is None:
        raise ValidationError(f"sources: found a set of Class {found.kind}; Class II is needed")
    return known.relabeled(found.permutation)
