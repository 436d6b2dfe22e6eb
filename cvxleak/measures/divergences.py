"""Divergences of two distributions, and of the rows of a channel: f-divergences, Rényi, zCDP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, rel_entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, one_of, real_number, short
from cvxleak.core.wording import counted
from cvxleak.measures._laws import law as law_of
from cvxleak.model import Channel, Mechanism, Prior, Query, RecordSpace, as_channel, as_prior
from cvxleak.model.prior import named_law

__all__ = [
    "f_divergence",
    "renyi_divergence",
    "renyi_dp_epsilon",
    "row_divergence",
    "zcdp_rho",
]

ROUNDED_UP = 1.001
"""What `zcdp_rho` multiplies the largest ratio on its grid of orders by."""


def f_divergence(law: Prior | ArrayLike, reference: Prior | ArrayLike, divergence: str) -> float:
    """Return a divergence D(P || R) of two distributions on the same outcomes.

    ===================  =============================================  ==========
    divergence           D(P || R)                                      range
    ===================  =============================================  ==========
    "relative-entropy"   sum_y P(y) log( P(y) / R(y) ), in nats         [0, inf]
    "total-variation"    sum_y abs(P(y) - R(y)) / 2                     [0, 1]
    "chi-square"         sum_y (P(y) - R(y))^2 / R(y)                   [0, inf]
    "squared-hellinger"  1 - sum_y sqrt(P(y) R(y))                      [0, 1]
    ===================  =============================================  ==========

    The first and the third are inf if P gives mass to an outcome that R excludes.

    Parameters
    ----------
    law : Prior or array_like, shape (m,)
        The distribution P.
    reference : Prior or array_like, shape (m,)
        The distribution R; two `Prior` objects are matched by label.
    divergence : str
        One of the four names.

    Raises
    ------
    ValidationError
        Arguments that are not distributions on the same outcomes, or an unknown name.

    Notes
    -----
    Csiszár, Studia Sci. Math. Hungar. 2 (1967). Each is an f-divergence: it is jointly convex in
    both distributions, and post-processing of the outcome cannot increase it.

    Examples
    --------
    >>> from cvxleak.measures import f_divergence
    >>> f_divergence([0.75, 0.25], [0.5, 0.5], "total-variation")
    0.25
    >>> f_divergence([0.75, 0.25], [0.5, 0.5], "chi-square")
    0.25
    """
    return _f_divergence(*_laws(law, reference), one_of(divergence, DIVERGENCES, "divergence"))


def renyi_divergence(law: Prior | ArrayLike, reference: Prior | ArrayLike, alpha: float) -> float:
    """Return D_alpha(P || R) = log( sum_y P(y)^alpha R(y)^(1-alpha) ) / (alpha - 1), in nats.

    At alpha = 1 and alpha = inf the formula is read as a limit: the relative entropy, and max log(
    P(y) / R(y) ). The divergence does not decrease as alpha increases.

    Parameters
    ----------
    law : Prior or array_like, shape (m,)
        The distribution P.
    reference : Prior or array_like, shape (m,)
        The distribution R; two `Prior` objects are matched by label.
    alpha : float
        The order, positive; inf is allowed.

    Returns
    -------
    float
        inf if alpha >= 1 and R excludes an outcome of P, or if the two have no outcome in common.

    Raises
    ------
    ValidationError
        Arguments that are not distributions on the same outcomes, or an order that is not positive.

    Notes
    -----
    van Erven and Harremoës, IEEE Trans. Inf. Theory 60 (2014). The formula divides by alpha - 1, so
    near alpha = 1 it amplifies the rounding error in the sums of the distributions.

    Examples
    --------
    >>> from cvxleak.measures import renyi_divergence
    >>> [round(renyi_divergence([0.75, 0.25], [0.25, 0.75], a), 6) for a in (1, 2, float("inf"))]
    [0.549306, 0.847298, 1.098612]
    """
    order = real_number(alpha, "alpha", 0.0, open_low=True)
    return float(_renyi(*_laws(law, reference), np.array([order]))[0])


def row_divergence(
    channel: Channel | ArrayLike, divergence: str, *, query: Query | RecordSpace | None = None
) -> float:
    """Return the largest divergence of two rows of a channel, D( q(.|x) || q(.|x') ).

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    divergence : str
        A name as in `f_divergence`.
    query : Query or RecordSpace, optional
        Which pairs of rows are compared, in both directions. With a query f the channel is
        q(y|f(x)), and the pairs are the values of f on datasets that differ in one record. With a
        space the channel has one row per dataset, in product order. All pairs of inputs if left
        out.

    Returns
    -------
    float
        0 if there is no pair.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or an unknown name.

    Examples
    --------
    >>> from cvxleak.measures import row_divergence
    >>> row_divergence([[0.75, 0.25], [0.25, 0.75]], "total-variation")
    0.5
    """
    name = one_of(divergence, DIVERGENCES, "divergence")
    return max((_f_divergence(p, r, name) for p, r in _pairs(channel, query)), default=0.0)


def renyi_dp_epsilon(
    channel: Channel | ArrayLike, alpha: float, *, query: Query | RecordSpace | None = None
) -> float:
    """Return the least epsilon for (alpha, epsilon)-Rényi differential privacy, in nats.

    The largest `renyi_divergence` of order alpha of two rows. At alpha = inf it is the epsilon of
    differential privacy.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    alpha : float
        The order, positive; inf is allowed.
    query : Query or RecordSpace, optional
        Which pairs of rows are compared, as in `row_divergence`; all pairs of inputs (local
        privacy) if left out.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or an order that is not positive.

    Notes
    -----
    Mironov, "Rényi differential privacy", CSF 2017, Definition 4.

    Examples
    --------
    >>> from cvxleak.measures import renyi_dp_epsilon
    >>> round(renyi_dp_epsilon([[0.75, 0.25], [0.25, 0.75]], 2), 6)  # log 7/3
    0.847298
    """
    order = np.array([real_number(alpha, "alpha", 0.0, open_low=True)])
    return max((float(_renyi(p, r, order)[0]) for p, r in _pairs(channel, query)), default=0.0)


def zcdp_rho(channel: Channel | ArrayLike, *, query: Query | RecordSpace | None = None) -> float:
    """Return a rho for which the channel is rho-zCDP, at most 0.1 percent above the least one.

    rho-zCDP (zero-concentrated differential privacy) requires D_alpha <= rho alpha for every
    compared pair of rows at every order alpha > 1. The supremum of D_alpha / alpha over these
    orders has no closed form. The function returns 1.001 times its maximum over a grid of orders,
    which is at least the supremum:

    - psi(alpha) = (alpha - 1) D_alpha is convex: it is the logarithm of a sum of exponentials of
      functions that are affine in alpha. Let it be at most rho alpha (alpha - 1) at two neighboring
      orders a < b. Between them it is below its chord, and the chord is at most rho alpha (alpha -
      1) ( 1 + (b - a)^2 / (4 a (a - 1)) ). The grid has b - 1 = 1.06 (a - 1), so this factor is at
      most 1 + 0.06^2 / 4.
    - Below the first order, 1.001, D_alpha is at most that of order 1.001.
    - Above the last order A it is at most D_inf, and A is such that D_inf / A <= D_2 / 2.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    query : Query or RecordSpace, optional
        Which pairs of rows are compared, as in `row_divergence`; all pairs of inputs if left out.

    Returns
    -------
    float
        In nats; inf if an output is possible for one row of a pair only.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Notes
    -----
    Bun and Steinke, "Concentrated differential privacy", TCC 2016, Definition 1.1.
    epsilon-DP implies epsilon^2 / 2-zCDP (there, Proposition 1.4).

    Examples
    --------
    >>> from cvxleak.measures import zcdp_rho
    >>> round(zcdp_rho([[0.75, 0.25], [0.25, 0.75]]), 4)
    0.5498
    """
    return max((_rho(p, r) for p, r in _pairs(channel, query)), default=0.0)


def _rho(p: Array, reference: Array) -> float:
    two, most = _renyi(p, reference, np.array([2.0, np.inf]))
    if most <= 0.0 or most == np.inf:
        return max(0.0, float(most))
    # A divergence that is 0 in floats (equal distributions up to rounding) needs no more than order
    # 2.
    last = max(2.0, 2.0 * most / two) if two > 0 else 2.0
    steps = np.arange(np.ceil(np.log(1e3 * (last - 1.0)) / np.log(1.06)) + 1)
    orders = 1.0 + 1e-3 * 1.06**steps
    largest = float((_renyi(p, reference, orders) / orders).max())
    return ROUNDED_UP * max(largest, float(most) / orders[-1])


def _chi_square(p: Array, reference: Array) -> float:
    if (p[reference == 0] > 0).any():
        return np.inf
    seen = reference > 0
    with np.errstate(over="ignore"):
        return float(((p[seen] - reference[seen]) ** 2 / reference[seen]).sum())


# `ATOMS` in cvxleak.expressions.divergences and `BUILDERS` in cvxleak.constraints.divergences have
# the same names.
DIVERGENCES: dict[str, Callable[[Array, Array], float]] = {
    "chi-square": _chi_square,
    "relative-entropy": lambda p, r: rel_entr(p, r).sum(),
    "squared-hellinger": lambda p, r: 1 - np.sqrt(p * r).sum(),
    "total-variation": lambda p, r: np.abs(p - r).sum() / 2,
}


def _f_divergence(p: Array, reference: Array, divergence: str) -> float:
    # Rounding can leave -1e-17 where the distributions are equal.
    return max(0.0, float(DIVERGENCES[divergence](p, reference)))


def _renyi(p: Array, reference: Array, orders: Array) -> Array:
    """Return the Rényi divergence of each order, shape (orders,)."""
    seen = p > 0
    with np.errstate(divide="ignore"):
        a, b = np.log(p[seen]), np.log(reference[seen])
    # Where the reference excludes an outcome, alpha log P + (1 - alpha) log R is inf or -inf.
    finite = (orders != 1) & (orders != np.inf)
    alpha = orders[finite][:, None]
    found = np.empty(len(orders))
    total = np.asarray(logsumexp(alpha * a + (1 - alpha) * b, axis=1))
    found[finite] = total / (alpha[:, 0] - 1)
    found[orders == 1] = rel_entr(p, reference).sum()
    found[orders == np.inf] = (a - b).max()
    # Rounding can leave -1e-17 where the distributions are equal.
    return np.maximum(0.0, found)


def _laws(law: Prior | ArrayLike, reference: Prior | ArrayLike) -> tuple[Array, Array]:
    known = named_law(law)
    p = law_of(known)
    labels = known.labels if isinstance(known, Prior) else None
    return p, as_prior(reference, len(p), "reference", labels).probabilities


def _pairs(
    channel: Channel | ArrayLike, query: Query | RecordSpace | None
) -> Iterator[tuple[Array, Array]]:
    """Yield the rows of each pair that is compared, in both orders."""
    if isinstance(query, Query):
        rows = Mechanism(query, channel).channel.matrix
        for u, v in sorted(query.neighbor_pairs()):
            yield rows[u], rows[v]
            yield rows[v], rows[u]
        return
    rows = as_channel(channel).matrix
    if query is None:
        yield from permutations(rows, 2)
        return
    if not isinstance(query, RecordSpace):
        raise ValidationError(f"query: expected a Query or a RecordSpace, found {short(query)}")
    if len(rows) != query.size:
        raise ValidationError(
            f"channel: found {counted(len(rows), 'row')}; the space has {query.size}"
        )
    datasets = list(query.datasets())
    for u, v in combinations(range(len(rows)), 2):
        if sum(a != b for a, b in zip(datasets[u], datasets[v], strict=True)) == 1:
            yield rows[u], rows[v]
            yield rows[v], rows[u]
