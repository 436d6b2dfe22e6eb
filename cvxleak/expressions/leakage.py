"""Maximal leakage of what is still a variable."""

from __future__ import annotations

import cvxpy as cp

from cvxleak.core.errors import ValidationError
from cvxleak.expressions.arguments import Law, Rows, is_known, matched, support

__all__ = ["exp_maximal_leakage"]


def exp_maximal_leakage(prior: Law, channel: Rows) -> cp.Expression:
    """Return e^L(X -> Y) = sum_y max_x q(y|x), over inputs of positive probability: convex.

    Its logarithm, the maximal leakage in nats, is not convex (it is quasiconvex): minimize or
    bound this instead. It is piecewise linear, so a linear program is enough.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The law of the input; only its support matters. It is known data, not a Parameter.
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x). DPP when it holds Parameters.

    Raises
    ------
    ValidationError
        Arguments that do not fit, or a prior that is not data.

    Notes
    -----
    ENVELOPE section IV-A. Its logarithm is the twin of `cvxleak.measures.maximal_leakage`.

    Examples
    --------
    >>> from cvxleak.expressions import exp_maximal_leakage
    >>> float(exp_maximal_leakage([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]).value)
    1.8
    """
    p, q = matched(prior, channel)
    if not is_known(p):
        raise ValidationError(
            "prior: found variables or Parameters; its support must be known, so data is needed"
        )
    return q[support(p)].max(axis=0).sum()
