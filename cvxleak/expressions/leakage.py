"""Maximal leakage as an expression."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order
from cvxleak.core.wording import counted
from cvxleak.expressions.arguments import (
    Law,
    Rows,
    is_known,
    matched,
    nonnegative,
    rows_expression,
    support,
    value,
)

__all__ = ["exp_conditional_maximal_leakage", "exp_maximal_leakage"]


def exp_maximal_leakage(channel: Rows, prior: Law) -> cp.Expression:
    """Return e^L(X -> Y) = sum_y max_x q(y|x), over inputs of positive probability: convex.

    Its logarithm, the maximal leakage in nats, is only quasiconvex, so minimize or bound this
    expression instead. It is piecewise linear, so a linear program is enough.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x). DPP when it holds Parameters.
    prior : Prior or array_like, shape (k,)
        The distribution of the input; only its support matters. It must be data, not a Parameter.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a prior that is not data.

    Notes
    -----
    ENVELOPE section IV-A. Its logarithm is the twin of `cvxleak.measures.maximal_leakage`.

    Examples
    --------
    >>> from cvxleak.expressions import exp_maximal_leakage
    >>> float(exp_maximal_leakage([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]).value)
    1.8
    """
    p, q = matched(prior, channel)
    if not is_known(p):
        raise ValidationError(
            "prior: found variables or Parameters; its support must be known, so data is needed"
        )
    seen = support(p)
    # Without an index where all inputs count: CVXPY takes a sixth more time with one.
    rows = q if len(seen) == q.shape[0] else q[seen]
    return nonnegative(rows.max(axis=0).sum())


def exp_conditional_maximal_leakage(
    first: Rows, second: Sequence[Rows], prior: Law
) -> cp.Expression:
    """Return e^L(X -> Y2 | Y1) = max_y1 sum_y2 max_x q2(y2|x, y1): convex in the second channels.

    The outer maximum is over the outputs y1 that can occur, the inner one over the inputs with
    p(x|y1) > 0. Its logarithm is quasiconvex. Piecewise linear, so a linear program is enough.

    Parameters
    ----------
    first : Channel or array_like, shape (k, m1)
        The first release, q1(y1|x); it must be data, too.
    second : sequence of m1 Channels, arrays or cp.Expressions, each of shape (k, m2)
        The second release, one channel for each output of the first. DPP when they hold Parameters.
    prior : Prior or array_like, shape (k,)
        The distribution of X. It must be data, not a Parameter.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior or a first channel that is not data, or a
        number of second channels that is not the number of outputs of the first.

    Notes
    -----
    ENVELOPE section IV-A, after Theorem 3. Its logarithm is the twin of
    `cvxleak.measures.conditional_maximal_leakage`.

    Examples
    --------
    >>> from cvxleak.expressions import exp_conditional_maximal_leakage
    >>> erasure = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    >>> noisy = [[0.9, 0.1], [0.1, 0.9]]
    >>> float(exp_conditional_maximal_leakage(erasure, [noisy] * 3, [0.5, 0.5]).value)
    1.8
    """
    p, q = matched(prior, first)
    if not is_known(p) or not is_known(q):
        raise ValidationError(
            "first: found variables or Parameters in it or in the prior; which inputs are possible "
            "must be known, so data is needed"
        )
    given = in_order(second, "second")
    channels = [rows_expression(rows, f"second[{y}]") for y, rows in enumerate(given)]
    if len(channels) != q.shape[1]:
        raise ValidationError(
            f"second: found {counted(len(channels), 'channel')}; "
            f"the first has {counted(q.shape[1], 'output')}"
        )
    possible = (value(p)[:, None] > 0) & (value(q) > 0)
    totals = []
    for y, then in enumerate(channels):
        if then.shape[0] != len(possible):
            raise ValidationError(
                f"second[{y}]: found {counted(then.shape[0], 'row')}; "
                f"the prior has {counted(len(possible), 'outcome')}"
            )
        if possible[:, y].any():
            totals.append(then[np.flatnonzero(possible[:, y])].max(axis=0).sum())
    return nonnegative(cp.max(cp.hstack(totals)))
