"""The cone that Rényi's divergence and information share."""

from __future__ import annotations

import math

import cvxpy as cp

from cvxleak.core.validation import real_number
from cvxleak.expressions.budgets import Budget, ceiling, exponential, is_number

LEAST_ORDER = 0.2
"""At lower orders a solver's 1e-8 in place of a zero counts: at 0.1, SCS misses a budget by 3 %."""

NEAR_ONE = 0.01
"""Solvers' slack in the sum counts 1 / |alpha - 1| times in nats: at 0.999, 8 % of a budget."""


def order_of(alpha: float) -> float:
    """Return an order that the cones below can state."""
    return real_number(alpha, "alpha", LEAST_ORDER)


def factor_and_level(
    given: Budget, name: str, alpha: float, most: float = math.inf
) -> tuple[Budget, Budget]:
    """Return the factor of the other distribution, and a bound on the divergence; one is 1 or 0.

    Solvers do best with e^budget as a factor. Up to order 1 a level is convex, with variables too.
    """
    if alpha <= 1 and isinstance(given, cp.Expression) and given.variables():
        return 1.0, ceiling(given, name)
    return exponential(given, name, most=most), 0.0


def is_zero(factor: Budget, level: Budget) -> bool:
    """Whether the budget is the number 0."""
    return is_number(factor, 1.0) and is_number(level, 0.0)


def renyi_at_most(
    one: cp.Expression, other: cp.Expression, alpha: float, level: Budget
) -> list[cp.Constraint]:
    """Return D_alpha(one || other) <= level for every row; those of `one` have mass 1.

    As D_alpha(P || c R) = D_alpha(P || R) - log c, ``other = e^epsilon R`` gives any budget at
    level 0, which may then be a Parameter; another level needs an order up to 1. The sum over y of
    one_y^alpha other_y^(1-alpha) is at most 1 for alpha > 1, and at least 1 for alpha < 1: one
    power cone per cell, second-order cones instead where alpha is a power of 2, exponential cones
    at 1, and no cones at inf.

    Orders within 1 % of 1 are raised: to 1 from below, to 1.01 from above. As D_alpha rises in
    alpha, what is stated is sufficient.
    """
    if 0 < abs(alpha - 1) < NEAR_ONE:
        alpha = 1.0 if alpha < 1 else 1 + NEAR_ONE
    if alpha == 1:
        return [cp.rel_entr(one, other).sum(axis=1) <= level]
    if alpha == math.inf:
        return [one <= other]
    power = cp.Variable(one.shape)
    if alpha < 1:
        total = power.sum(axis=1)
        most = total >= 1 if is_number(level, 0.0) else cp.log(total) >= (alpha - 1) * level
        return [cp.PowCone3D(one, other, power, alpha), most]
    rules: list[cp.Constraint] = [power.sum(axis=1) <= 1]
    while alpha >= 2:
        # one^alpha other^(1-alpha) = (one^(alpha/2) other^(1-alpha/2))^2 / other: solvers have
        # more trouble with a high power than with a few quadratic cones.
        alpha /= 2
        root = one if alpha == 1 else cp.Variable(one.shape)
        rules.append(hyperbola(power, other, root))
        power = root
    return rules if alpha == 1 else [*rules, cp.PowCone3D(power, other, one, 1 / alpha)]


def hyperbola(x: cp.Expression, y: cp.Expression, z: cp.Expression) -> cp.Constraint:
    """Return x, y >= 0 and x y >= z^2, for every cell."""
    cells = cp.vstack([cp.vec(2 * z, order="C"), cp.vec(x - y, order="C")])
    return cp.SOC(cp.vec(x + y, order="C"), cells, axis=0)
