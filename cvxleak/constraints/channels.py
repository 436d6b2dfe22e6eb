"""What makes a matrix of variables a channel."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import plain_array
from cvxleak.expressions.arguments import (
    Law,
    Rows,
    law_expression,
    rows_expression,
    table_expression,
)

__all__ = ["joint_law", "output_support", "row_stochastic"]


def row_stochastic(channel: Rows) -> list[cp.Constraint]:
    """Return q(y|x) >= 0 and sum_y q(y|x) = 1 for every x.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x). (Data is allowed here and below: the constraints then say whether it
        qualifies.)

    Raises
    ------
    ValidationError
        Not a matrix, or not affine.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import row_stochastic
    >>> Q = cp.Variable((2, 2))
    >>> problem = cp.Problem(cp.Maximize(Q[0, 0] - Q[1, 0]), row_stochastic(Q))
    >>> round(float(problem.solve()), 6)
    1.0
    """
    q = rows_expression(channel)
    return [q >= 0, q.sum(axis=1) == 1]


def joint_law(prior: Law, joint: Law) -> list[cp.Constraint]:
    """Return J(x,y) >= 0 and sum_y J(x,y) = p(x) for every x: J(x,y) = p(x) q(y|x).

    Parameters
    ----------
    prior : Prior, array_like or cp.Expression, shape (k,)
        The law of the input. DPP when it is a Parameter.
    joint : cp.Expression, shape (k, m)
        The joint law J.

    Raises
    ------
    ValidationError
        Arguments that do not fit.

    See Also
    --------
    cvxleak.expressions.joint_information : What such a J leaks.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import joint_law
    >>> J = cp.Variable((2, 2))
    >>> problem = cp.Problem(cp.Maximize(J[0, 0] + J[1, 0]), joint_law([0.3, 0.7], J))
    >>> round(float(problem.solve()), 6)
    1.0
    """
    p = law_expression(prior)
    table = table_expression(joint, "joint")
    if table.shape[0] != p.shape[0]:
        raise ValidationError(
            f"joint: found {table.shape[0]} rows; the prior has {p.shape[0]} outcomes"
        )
    return [table >= 0, table.sum(axis=1) == p]


def output_support(channel: Rows, allowed: ArrayLike) -> list[cp.Constraint]:
    """Return q(y|x) = 0 for every pair (x, y) that is not allowed.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    allowed : array_like of bool, shape (m,) or (k, m)
        Which outputs may be released, for all inputs or for each.

    Returns
    -------
    list of cp.Constraint
        Empty if every pair is allowed.

    Raises
    ------
    ValidationError
        Entries that are not booleans, a shape that does not fit, or an input without any output.

    Examples
    --------
    Counts rounded to a multiple of 3, at most 2 away:

    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import output_support
    >>> counts, published = np.arange(7), np.array([0, 3, 6])
    >>> near = np.abs(counts[:, None] - published) <= 2
    >>> Q = cp.Variable((7, 3))
    >>> output_support(Q, near)[0].shape
    (10,)
    """
    q = rows_expression(channel)
    mask = plain_array(allowed, "allowed")
    if mask.dtype != bool or mask.shape not in (q.shape, q.shape[1:]):
        raise ValidationError(
            f"allowed: found an array of {mask.dtype} with shape {mask.shape}; booleans of shape "
            f"{q.shape[1:]} or {q.shape} are needed"
        )
    mask = np.broadcast_to(mask, q.shape)
    if not mask.any(axis=1).all():
        row = int(np.argmin(mask.any(axis=1)))
        raise ValidationError(f"allowed: row {row} allows no output; at least one is needed")
    x, y = np.nonzero(~mask)
    return [q[x, y] == 0] if len(x) else []
