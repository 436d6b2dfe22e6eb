"""Ceilings on the expected distortion."""

from __future__ import annotations

from collections.abc import Iterable

import cvxpy as cp
from numpy.typing import ArrayLike

from cvxleak.expressions.arguments import Law, Rows
from cvxleak.expressions.budgets import Budget, ceiling
from cvxleak.expressions.distortion import distortions
from cvxleak.model import Distortion

__all__ = ["distortion_budget"]


def distortion_budget(
    priors: Iterable[Law], channel: Rows, distortion: Distortion | ArrayLike, budget: Budget
) -> list[cp.Constraint]:
    """Return sum_{x,y} P(x) q(y|x) d(x,y) <= D for every source P of a set.

    The sources' convex hull gives the same set of channels.

    Parameters
    ----------
    priors : iterable of Prior, array_like or cp.Expression, each of shape (k,)
        The possible true laws of the input, at least one.
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    distortion : Distortion or array_like
        As in `cvxleak.expressions.expected_distortion`.
    budget : float or cp.Expression
        D >= 0, in the unit of d; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        No sources, arguments that do not fit, or a negative number.

    Notes
    -----
    HAMMING Definition 2. DPP when sources and budget are Parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import distortion_budget, row_stochastic
    >>> from cvxleak.model import Distortion
    >>> Q = cp.Variable((2, 2))
    >>> useful = row_stochastic(Q)
    >>> useful += distortion_budget([[0.5, 0.5], [0.1, 0.9]], Q, Distortion.hamming([0, 1]), 0.2)
    >>> round(float(cp.Problem(cp.Maximize(Q[0, 1] + Q[1, 0]), useful).solve()), 6)
    0.4
    """
    return [distortions(priors, channel, distortion) <= ceiling(budget, "budget")]
