"""Divergences of two distributions, both of which may hold variables."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import cvxpy as cp
import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, one_of
from cvxleak.core.wording import counted
from cvxleak.expressions.arguments import (
    Law,
    derived,
    is_fixed,
    is_known,
    law_expression,
    nonnegative,
    raised,
    rational_order,
    support,
    value,
)

__all__ = ["exp_renyi_divergence", "f_divergence"]


def f_divergence(law: Law, reference: Law, divergence: str) -> cp.Expression:
    """Return a divergence D(P || R) of two distributions: jointly convex in both.

    - "relative-entropy": sum_y P(y) log( P(y) / R(y) ), in nats;
    - "total-variation": sum_y abs(P(y) - R(y)) / 2;
    - "chi-square": sum_y (P(y) - R(y))^2 / R(y);
    - "squared-hellinger": 1 - sum_y sqrt(P(y) R(y)).

    Parameters
    ----------
    law : Prior, array_like or cp.Expression, shape (m,)
        The distribution P: a row of a channel, or the distribution of its output, ``p @ Q``.
    reference : Prior, array_like or cp.Expression, shape (m,)
        The distribution R; matched to P by position.
    divergence : str
        One of the four names.

    Raises
    ------
    ValidationError
        Distributions on different numbers of outcomes, an unknown name, or for "chi-square" a
        reference with an outcome of probability zero.

    See Also
    --------
    cvxleak.constraints.divergence_budget : For all pairs of rows of a channel.

    Notes
    -----
    The twin of `cvxleak.measures.f_divergence`. DPP when one of the distributions is a Parameter.
    Where a fixed reference is zero, leave the outcome out of both: a solver's 1e-9 there makes the
    relative entropy infinite.
    If both hold variables, the last two divergences consist of one atom per outcome, which is slow
    for more than a few hundred outcomes.

    Examples
    --------
    The channel of largest trace whose output distribution is within 0.1 of the uniform one:

    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel
    >>> from cvxleak.expressions import f_divergence
    >>> (Q, rows), p = channel(2, 2), np.array([0.9, 0.1])
    >>> seen = f_divergence(p @ Q, [0.5, 0.5], "total-variation")
    >>> problem = cp.Problem(cp.Maximize(cp.trace(Q)), rows + [seen <= 0.1])
    >>> round(float(problem.solve()), 4)
    1.6667
    """
    return ATOMS[one_of(divergence, ATOMS, "divergence")](*_laws(law, reference))


def exp_renyi_divergence(law: Law, reference: Law, alpha: float) -> cp.Expression:
    """Return e^((alpha - 1) D_alpha(P || R)) = sum_y P(y)^alpha R(y)^(1-alpha).

    Jointly convex in both distributions for alpha > 1, and jointly concave for alpha < 1. The
    divergence itself is quasiconvex for alpha > 1, so bound or minimize this instead; for alpha < 1
    it is ``-cp.log(exp_renyi_divergence(...)) / (1 - alpha)``, which is convex. For alpha = 1 it is
    the relative entropy: `f_divergence`.

    Parameters
    ----------
    law, reference
        As in `f_divergence`.
    alpha : float
        The order: positive, not 1, and a ratio of whole numbers up to 1024 (CVXPY's atoms round
        other powers, so the order would be a different one).

    Raises
    ------
    ValidationError
        Distributions on different numbers of outcomes, an order that is not allowed, or for alpha >
        1 a fixed reference with an outcome of probability zero.

    See Also
    --------
    cvxleak.constraints.renyi_dp : For all pairs of rows of a channel, and any order.

    Notes
    -----
    In terms of measures it is ``exp((alpha - 1) * renyi_divergence(law, reference, alpha))``. DPP
    when one of the distributions is a Parameter. If both hold variables, it consists of one atom
    per outcome, and its ``value`` is NaN if an outcome has probability exactly zero under both
    distributions (solvers do not return such points).

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.expressions import exp_renyi_divergence
    >>> P = cp.Variable(2)
    >>> divergence = exp_renyi_divergence(P, [0.25, 0.75], 2)
    >>> P.value = [0.75, 0.25]
    >>> divergence.is_convex(), round(float(divergence.value), 6)  # 0.75^2/0.25 + 0.25^2/0.75
    (True, 2.333333)
    """
    return _powers(*_laws(law, reference), rational_order(alpha))


def _chi_square(p: cp.Expression, r: cp.Expression) -> cp.Expression:
    if is_fixed(r):
        # (P - R)^2 / R = (P / sqrt(R) - sqrt(R))^2; a Parameter in a denominator would not be DPP.
        scale = derived(r, partial(_power, exponent=-0.5), r.shape, nonneg=True)
        root = derived(r, partial(raised, exponent=0.5), r.shape, nonneg=True)
        return cp.sum_squares(cp.multiply(scale, p) - root)
    seen = support(p)
    cells = cp.hstack([cp.quad_over_lin(p[y] - r[y], r[y]) for y in seen]).sum()
    rest = np.setdiff1d(np.arange(r.shape[0]), seen)
    # Where P is 0 a cell is R, also where that is 0.
    return nonnegative(cells + r[rest].sum()) if rest.size else cells


def _relative_entropy(p: cp.Expression, r: cp.Expression) -> cp.Expression:
    if not is_known(r):
        return cp.kl_div(p, r).sum()
    # Solvers fail on cones that hold a tiny R(y); its logarithm is a number like any other.
    seen = support(r)
    rest = np.setdiff1d(np.arange(r.shape[0]), seen)
    told = -cp.entr(p[seen]).sum() - p[seen] @ np.log(value(r)[seen])
    if rest.size:
        told += cp.rel_entr(p[rest], r[rest]).sum()
    return cp.maximum(told, 0)


# One for each of the `DIVERGENCES` of cvxleak.measures.divergences.
ATOMS: dict[str, Callable[[cp.Expression, cp.Expression], cp.Expression]] = {
    "chi-square": _chi_square,
    "relative-entropy": _relative_entropy,
    "squared-hellinger": lambda p, r: nonnegative(1 - _powers(p, r, Fraction(1, 2))),
    "total-variation": lambda p, r: cp.abs(p - r).sum() / 2,
}


def _powers(p: cp.Expression, r: cp.Expression, alpha: Fraction) -> cp.Expression:
    """Return sum_y p^alpha r^(1-alpha)."""
    if is_fixed(r):
        weight = derived(r, partial(_power, exponent=float(1 - alpha)), r.shape, nonneg=True)
        return (cp.multiply(weight, cp.power(p, alpha))).sum()
    if is_fixed(p):
        # 0 r^(1-alpha) is not 0 to a solver, and 0 / 0 where both distributions are 0.
        seen = support(p)
        p, r = p[seen], r[seen]
        weight = derived(p, partial(raised, exponent=float(alpha)), p.shape, nonneg=True)
        return (cp.multiply(weight, cp.power(r, 1 - alpha))).sum()
    return cp.hstack([_cell(p[y], r[y], alpha) for y in range(p.shape[0])]).sum()


def _cell(p: cp.Expression, r: cp.Expression, alpha: Fraction) -> cp.Expression:
    """Return p^alpha r^(1-alpha) of two scalars."""
    if alpha > 2:
        return cp.quad_over_lin(_cell(p, r, alpha / 2), r)
    if alpha == 2:
        return cp.quad_over_lin(p, r)
    weights = (alpha, 1 - alpha) if alpha < 1 else (2 - alpha, alpha - 1)
    mean = cp.geo_mean(cp.hstack([p, r]), weights, max_denom=alpha.denominator)
    return mean if alpha < 1 else cp.quad_over_lin(p, mean)


def _power(law: Array, exponent: float) -> Array:
    if exponent < 0 and not (law > 0).all():
        raise ValidationError(
            f"reference: found probability {float(law.min())!r} at index {int(np.argmin(law))}; "
            "every outcome needs a positive one, or the divergence is infinite"
        )
    return raised(law, exponent)


def _laws(law: Law, reference: Law) -> tuple[cp.Expression, cp.Expression]:
    p, r = law_expression(law, "law"), law_expression(reference, "reference")
    if p.shape != r.shape:
        raise ValidationError(
            f"reference: found {counted(r.shape[0], 'outcome')}; "
            f"the distribution has {p.shape[0]}; both need "
            "the same number"
        )
    return p, r
