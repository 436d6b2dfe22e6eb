"""Sets of priors: entropy floors, polytopes, and known orders of the outcomes."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxleak.constraints.channels import permutation
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, plain_array, short
from cvxleak.expressions import entropy, lumped_entropy
from cvxleak.expressions.arguments import Law, is_fixed, law_expression
from cvxleak.expressions.budgets import Budget, floor
from cvxleak.model import Lumped

__all__ = ["entropy_floor", "ordered_prior", "prior_polytope"]

Bounds = ArrayLike | cp.Expression


def entropy_floor(
    prior: Law, entropy_floor: Budget, lumped: Lumped | None = None
) -> list[cp.Constraint]:
    """Return H(X) >= b: an adversary with at least b nats of uncertainty.

    Parameters
    ----------
    prior : cp.Expression, shape (k,)
        The distribution p, or lumped weights w.
    entropy_floor : float or cp.Expression
        b >= 0, in nats; a convex expression keeps the set convex. DPP when it is a Parameter. The
        set is empty for b > log k.
    lumped : Lumped, optional
        If given, `prior` holds the weights of its groups, and H(X) is their `lumped_entropy`.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a negative number.

    Notes
    -----
    LEAKAGE (5). It does not require that p sums to 1; `prior_polytope` does.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import entropy_floor, prior_polytope
    >>> p = cp.Variable(2)
    >>> uncertain = prior_polytope(p) + entropy_floor(p, 0.5004)  # h(0.2) = 0.5004
    >>> round(float(cp.Problem(cp.Maximize(p[0]), uncertain).solve()), 3)
    0.8
    """
    least = floor(entropy_floor, "entropy_floor")
    return [(entropy(prior) if lumped is None else lumped_entropy(prior, lumped)) >= least]


def prior_polytope(
    prior: Law,
    *,
    lower: Bounds | None = None,
    upper: Bounds | None = None,
    inequalities: tuple[Bounds, Bounds] | None = None,
    vertices: Sequence[Law] | None = None,
) -> list[cp.Constraint]:
    """Return p >= 0, sum_x p(x) = 1 and the given linear constraints: a polytope of priors.

    Parameters
    ----------
    prior : cp.Expression, shape (k,)
        The distribution p.
    lower, upper : float, array_like or cp.Expression, optional
        lower <= p <= upper: one number for all entries, or one for each.
    inequalities : (matrix, bounds), optional
        matrix @ p <= bounds, of shapes (r, k) and (r,).
    vertices : sequence of Prior, array_like or cp.Expression, each of shape (k,), optional
        p lies in the convex hull of these distributions.

    Raises
    ------
    ValidationError
        Shapes that do not match, no vertices in the list, or NaN.

    Notes
    -----
    Bounds and inequalities are DPP when they are Parameters; vertices likewise.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import prior_polytope
    >>> p = cp.Variable(3)
    >>> between = prior_polytope(p, upper=0.6, vertices=[[0.2, 0.8, 0], [0.5, 0, 0.5]])
    >>> round(float(cp.Problem(cp.Minimize(p[0]), between).solve()), 6)
    0.275
    """
    p = law_expression(prior)
    k = p.shape[0]
    result = [p >= 0, p.sum() == 1]
    if lower is not None:
        result.append(p >= _bounds(lower, "lower", k))
    if upper is not None:
        result.append(p <= _bounds(upper, "upper", k))
    if inequalities is not None:
        pair = in_order(inequalities, "inequalities")
        if len(pair) != 2:
            raise ValidationError(f"inequalities: found {short(inequalities)}; a pair is needed")
        matrix, bounds = pair
        left, right = _numbers(matrix, "inequalities"), _numbers(bounds, "inequalities")
        if left.ndim != 2 or left.shape[1] != k or right.shape != left.shape[:1]:
            raise ValidationError(
                f"inequalities: found a matrix of shape {left.shape} and bounds of shape "
                f"{right.shape}; shapes (r, {k}) and (r,) are needed"
            )
        result.append(left @ p <= right)
    if vertices is not None:
        corners = [law_expression(vertex, "vertices") for vertex in in_order(vertices, "vertices")]
        if not corners or any(corner.shape != (k,) for corner in corners):
            raise ValidationError(
                f"vertices: found shapes {[corner.shape for corner in corners]}; "
                f"at least one is needed, all of shape ({k},)"
            )
        share = cp.Variable(len(corners))
        result += [share >= 0, share.sum() == 1, p == share @ cp.vstack(corners)]
    return result


def ordered_prior(prior: Law, order: Sequence[int] | None = None) -> list[cp.Constraint]:
    """Return p(T_1) >= p(T_2) >= ... >= p(T_k): the order of the outcomes by probability is known.

    Parameters
    ----------
    prior : cp.Expression, shape (k,)
        The distribution p.
    order : sequence of int, optional
        The permutation T of 0, ..., k - 1, most probable outcome first; 0, 1, ..., k - 1 if left
        out.

    Returns
    -------
    list of cp.Constraint
        Empty if k = 1.

    Raises
    ------
    ValidationError
        Not a permutation.

    Notes
    -----
    HAMMING Definition 1 (Class II) and (12). It does not require that p sums to 1; `prior_polytope`
    does.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import ordered_prior, prior_polytope
    >>> p = cp.Variable(3)
    >>> ordered = prior_polytope(p) + ordered_prior(p, [2, 0, 1])
    >>> round(float(cp.Problem(cp.Maximize(p[1]), ordered).solve()), 6)
    0.333333
    """
    p = law_expression(prior)
    k = p.shape[0]
    places = permutation(range(k) if order is None else order, k, "order")
    return [p[places[:-1]] >= p[places[1:]]] if k > 1 else []


def _bounds(given: Bounds, name: str, size: int) -> cp.Expression:
    bounds = _numbers(given, name)
    if bounds.shape not in ((), (size,)):
        raise ValidationError(
            f"{name}: found shape {bounds.shape}; one number or {size} of them are needed"
        )
    return bounds


def _numbers(given: Bounds, name: str) -> cp.Expression:
    if isinstance(given, cp.Expression):
        if not is_fixed(given):
            raise ValidationError(f"{name}: found variables; data or a Parameter is needed")
        return given
    array = plain_array(given, name)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValidationError(f"{name}: found {given!r}; finite numbers are needed")
    return cp.Constant(array)
