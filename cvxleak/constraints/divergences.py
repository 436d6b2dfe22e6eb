"""Upper bounds on divergences between the rows of a channel: f-divergences, Rényi and zCDP."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

import cvxpy as cp

from cvxleak.constraints._renyi import (
    factor_and_level,
    hyperbola,
    is_zero,
    order_of,
    renyi_at_most,
)
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, one_of, real_number, short
from cvxleak.expressions.arguments import Rows
from cvxleak.expressions.budgets import LARGEST_LOG, Budget, ceiling, exponential, is_number
from cvxleak.expressions.pairs import row_pairs
from cvxleak.model import Query, RecordSpace

__all__ = ["divergence_budget", "renyi_dp", "zcdp"]

STEEPEST = 8.0
"""Largest rho a_r of the default orders: more gains an optimum 1e-5 at most, and solvers fail."""

ORDERS = (1.05, 1.1, 1.2, 1.4, 1.7, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Orders at which `zcdp` compares rows: Clarabel loses its footing at much higher ones."""

MOST = math.exp(12)
"""Largest factor between rows: Clarabel fails at e^20, and e^12 excludes hardly a channel."""


def divergence_budget(
    channel: Rows, divergence: str, budget: Budget, *, query: Query | RecordSpace | None = None
) -> list[cp.Constraint]:
    """Return D( q(.|x) || q(.|x') ) <= B for every pair of rows: convex in the channel.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    divergence : str
        "relative-entropy" (in nats), "total-variation", "chi-square" or "squared-hellinger", as in
        `cvxleak.measures.f_divergence`.
    budget : float or cp.Expression
        B >= 0; a concave expression keeps the set convex.
    query : Query or RecordSpace, optional
        Which pairs of rows are compared. With a query f the channel is q(y|f(x)), and the pairs are
        the values of f on datasets that differ in one record. With a space the channel has one row
        per dataset, in product order. All pairs of inputs if left out.

    Returns
    -------
    list of cp.Constraint
        Empty if there is no pair.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, an unknown name, or a negative number.

    See Also
    --------
    cvxleak.expressions.f_divergence : The divergence of two given distributions.

    Notes
    -----
    There are k (k - 1) m cones or inequalities, half as many for the two symmetric divergences:
    exponential cones for the relative entropy, second-order cones for "chi-square" and
    "squared-hellinger", inequalities for the total variation. DPP when the budget is a Parameter.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, divergence_budget
    >>> Q, rows = channel(3, 3)
    >>> private = rows + divergence_budget(Q, "total-variation", 0.4)
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q)), private).solve()), 6)
    1.8
    """
    name, most = one_of(divergence, BUILDERS, "divergence"), ceiling(budget, "budget")
    equal = is_number(most, 0.0)
    pairs = row_pairs(channel, query, both=not equal and name not in SYMMETRIC)
    if pairs is None:
        return []
    one, other = pairs
    return [one == other] if equal else BUILDERS[name](one, other, cp.Variable(one.shape), most)


def renyi_dp(
    channel: Rows, alpha: float, epsilon: Budget, *, query: Query | RecordSpace | None = None
) -> list[cp.Constraint]:
    """Return (alpha, epsilon)-Rényi differential privacy: D_alpha( q(.|x) || q(.|x') ) <= epsilon.

    For alpha > 1 the constraint is sum_y q(y|x)^alpha q(y|x')^(1-alpha) <= e^((alpha-1) epsilon),
    which is jointly convex in the two rows. For alpha < 1 the sum is concave, and the constraint is
    >=.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    alpha : float
        The order, at least 0.2 (below that, solvers return channels that exceed the budget). An
        order within 1 % of 1 is replaced by the next larger one of 1 and 1.01, which is sufficient;
        the divergence becomes larger by at most 0.005 V, where V is the variance of the log ratio
        (twice the divergence if that is small). At 1 it is the relative entropy. At inf it is
        differential privacy, for which `local_dp` and `record_dp` need fewer constraints.
    epsilon : float or cp.Parameter; up to order 1 any cp.Expression
        In nats, from 0 to 700. Values above 12 are replaced by 12, which is sufficient; a channel
        that only this excludes satisfies the constraint after mixing with at most m e^-12 (6.2e-6
        m) of uniform noise. Up to order 1 the set is convex in epsilon, too, so epsilon may be any
        concave expression, such as a variable to be minimized.
    query : Query or RecordSpace, optional
        Which pairs of rows are compared, as in `divergence_budget`; all pairs of inputs (local
        privacy) if left out.

    Returns
    -------
    list of cp.Constraint
        Empty if there is no pair.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a number that is out of range.

    Notes
    -----
    Mironov, "Rényi differential privacy", CSF 2017, Definition 4. Its measure is
    `cvxleak.measures.renyi_dp_epsilon`. DPP when epsilon is a Parameter. k (k - 1) m power cones,
    for Clarabel and SCS; at alpha = 2 second-order cones, for ECOS, too.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, renyi_dp
    >>> Q, rows = channel(2, 2)
    >>> private = rows + renyi_dp(Q, 2, np.log(7 / 3))
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 4)
    0.75
    """
    order = order_of(alpha)
    return _renyi_dp(channel, query, order, *factor_and_level(epsilon, "epsilon", order, MOST))


def zcdp(
    channel: Rows,
    rho: Budget,
    *,
    query: Query | RecordSpace | None = None,
    orders: Iterable[float] | None = None,
) -> list[cp.Constraint]:
    """Return constraints that are sufficient for rho-zCDP: D_alpha <= rho alpha for all alpha > 1.

    rho-zCDP is a constraint for each alpha > 1. The same constraints for finitely many orders are
    only necessary; here they are tightened so that they are sufficient, and the set is smaller than
    that of all rho-zCDP channels. With orders a_1 < ... < a_r, for all compared pairs of rows:

    - D_alpha <= (rho / s) alpha at each of the orders;
    - D_inf <= rho a_r, which is rho a_r-differential privacy, and covers all orders above a_r;
    - s is the maximum of a_1 and of 1 + max (alpha - a) (b - alpha) / (alpha (alpha - 1)) over the
      alpha between consecutive orders a < b. Since (alpha - 1) D_alpha is convex in alpha, it is at
      most its chord between a and b, and the chord exceeds (rho / s) alpha (alpha - 1) at most by
      this factor. Below a_1, D_alpha is at most its value at a_1.

    A necessary condition is ``renyi_dp(channel, alpha, rho * alpha)`` at any orders of at least
    1.01 with rho alpha <= 12 (outside this range `renyi_dp` is itself tightened). The optimum under
    these constraints bounds the optimum over all channels with rho-zCDP.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    rho : float or cp.Parameter
        In nats, not negative; rho a_r is at most 700.
    query : Query or RecordSpace, optional
        Which pairs of rows are compared, as in `divergence_budget`; all pairs of inputs if left
        out.
    orders : iterable of float
        Increasing orders above 1. More orders make s smaller; a larger last order loosens the
        second condition. (sqrt(2 rho)-differential privacy alone is sufficient, too; it is looser
        than the second condition if a_r < sqrt(2 / rho).) The default has eleven orders from 1.05
        to 12, for which s is 1.072; if rho is a number, those above 8 / rho are left out, since
        solvers fail at them. Right-hand sides are at most 12 nats, as in `renyi_dp`.

    Returns
    -------
    list of cp.Constraint
        Empty if there is no pair.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a number that is out of range, or orders that do not
        increase.

    Notes
    -----
    Bun and Steinke, "Concentrated differential privacy", TCC 2016, Definition 1.1. Its measure is
    `cvxleak.measures.zcdp_rho`. DPP when rho is a Parameter. k (k - 1) m power cones for each
    order. Clarabel solves small programs for every number rho, and for a Parameter up to 1 (above
    1, sometimes). SCS reports channels as optimal that exceed the budget, by about 10 % for three
    inputs.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, zcdp
    >>> from cvxleak.measures import zcdp_rho
    >>> from cvxleak.model import Channel
    >>> Q, rows = channel(2, 2)
    >>> problem = cp.Problem(cp.Maximize(cp.trace(Q)), rows + zcdp(Q, 0.2))
    >>> value = problem.solve(solver="CLARABEL")
    >>> 0.17 < zcdp_rho(Channel.from_solver(Q.value)) < 0.2
    True
    """
    if orders is None:
        number = 0.0
        if not isinstance(rho, cp.Expression):
            number = real_number(rho, "rho", 0.0, LARGEST_LOG / ORDERS[0])
        orders = [a for a in ORDERS if a * number <= STEEPEST or a == ORDERS[0]]
    given = tuple(
        real_number(order, "orders", 1.0, open_low=True, open_high=True)
        for order in in_order(orders, "orders")
    )
    if not given or any(a >= b for a, b in pairwise(given)):
        raise ValidationError(
            f"orders: found {short(given)}; increasing numbers above 1 are needed"
        )
    slack = max(given[0], *(_chord_factor(a, b) for a, b in pairwise(given)), 1.0)
    tail = exponential(rho, "rho", given[-1], MOST)
    budgets = [(math.inf, tail)]
    if not is_number(tail, 1.0):
        budgets += [(a, exponential(rho, "rho", a / slack, MOST)) for a in given]
    return [rule for order, most in budgets for rule in _renyi_dp(channel, query, order, most)]


# One for each of the `DIVERGENCES` of cvxleak.measures.divergences: constraints on the rows p and r
# of all pairs, with a variable c of their shape.
BUILDERS: dict[str, Callable[..., list[cp.Constraint]]] = {
    "chi-square": lambda p, r, c, most: [hyperbola(c, r, p - r), c.sum(axis=1) <= most],
    "relative-entropy": lambda p, r, c, most: [cp.rel_entr(p, r).sum(axis=1) <= most],
    "squared-hellinger": lambda p, r, c, most: [hyperbola(p, r, c), 1 - c.sum(axis=1) <= most],
    "total-variation": lambda p, r, c, most: [cp.abs(p - r).sum(axis=1) <= 2 * most],
}

# Those with D(P || R) = D(R || P): each pair is compared once.
SYMMETRIC = {"squared-hellinger", "total-variation"}


def _renyi_dp(
    channel: Rows,
    query: Query | RecordSpace | None,
    order: float,
    factor: Budget,
    level: Budget = 0.0,
) -> list[cp.Constraint]:
    equal = is_zero(factor, level)
    pairs = row_pairs(channel, query, both=not equal)
    if pairs is None:
        return []
    one, other = pairs
    return [one == other] if equal else renyi_at_most(one, factor * other, order, level)


def _chord_factor(a: float, b: float) -> float:
    """Return the largest ratio of the chord of alpha (alpha - 1) from a to b to the function."""
    # Where the derivative vanishes: (a + b - 1) alpha^2 - 2 a b alpha + a b = 0.
    worst = (a * b + math.sqrt(a * b * (a - 1) * (b - 1))) / (a + b - 1)
    return 1.0 + (worst - a) * (b - worst) / (worst * (worst - 1))
