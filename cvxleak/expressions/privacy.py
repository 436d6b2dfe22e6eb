"""Differential privacy as an expression."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.expressions.arguments import Rows, is_known, rows_expression, value
from cvxleak.expressions.budgets import Budget, exponential
from cvxleak.expressions.pairs import neighbors_of, row_pairs
from cvxleak.measures import local_dp_epsilon
from cvxleak.model import Query, RecordSpace

__all__ = ["exp_local_dp_epsilon", "privacy_profile", "record_privacy_profile"]


def exp_local_dp_epsilon(channel: Rows) -> cp.Expression:
    """Return e^epsilon = max over x, x', y of q(y|x) / q(y|x'): quasiconvex in the channel.

    The least epsilon of local differential privacy is its logarithm, ``cp.log(...)``, which is
    quasiconvex, too. A problem with either is solved by bisection, ``problem.solve(qcp=True)``.
    Choose the ratio and not its logarithm: at each level it is then a linear program, which HiGHS
    decides exactly.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x), with a sign that CVXPY knows: a variable of `cvxleak.channel`, or one with
        ``nonneg=True``. The quotients have no curvature otherwise.

    Raises
    ------
    ValidationError
        Not a matrix, or a sign that CVXPY does not know.

    See Also
    --------
    cvxleak.constraints.local_dp : Bounds it, in convex problems.
    cvxleak.local_dp.min_local_dp : The least epsilon for a distortion, with a certificate.

    Notes
    -----
    ENVELOPE Definition 1. Its logarithm is the twin of `cvxleak.measures.local_dp_epsilon`. DQCP,
    and not DPP. At a solver's point an output that is not used makes the value meaningless or NaN:
    take the measure of ``Channel.from_solver(Q.value)``.

    Examples
    --------
    The least epsilon if each of three values must be released correctly with probability 0.5:

    >>> import cvxpy as cp
    >>> import cvxleak as cl
    >>> Q, rows = cl.channel(3, 3)
    >>> ratio = cl.expressions.exp_local_dp_epsilon(Q)
    >>> problem = cp.Problem(cp.Minimize(ratio), [*rows, cp.diag(Q) >= 0.5])
    >>> round(float(problem.solve(qcp=True, solver="HIGHS")), 4)  # (0.5) / (0.25)
    2.0
    """
    q = rows_expression(channel)
    if is_known(q):
        return cp.Constant(np.exp(local_dp_epsilon(value(q))))
    if not q.is_nonneg():
        raise ValidationError(
            "channel: found an expression of which CVXPY does not know that it is not negative, so "
            "that quotients of its entries have no curvature; make the variable with "
            "cvxleak.channel(k, m), or with nonneg=True"
        )
    return cp.max(np.ones((q.shape[0], 1)) @ cp.max(q, axis=0, keepdims=True) / q)


def privacy_profile(channel: Rows, epsilon: Budget) -> cp.Expression:
    """Return delta*(epsilon), the least delta for (epsilon, delta)-local DP: convex in the channel.

    max over inputs x, x' of sum_y max(0, q(y|x) - e^epsilon q(y|x')). Piecewise linear, so a linear
    program is enough: k (k - 1) m rows. At epsilon = 0 it is the largest total variation distance
    between two rows.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x).
    epsilon : float or cp.Parameter
        In nats, from 0 to 700. DPP when it is a Parameter.

    Raises
    ------
    ValidationError
        Not a matrix, or a number that is out of range.

    See Also
    --------
    cvxleak.constraints.local_dp : Bounds the least epsilon, which is only quasiconvex.

    Notes
    -----
    ENVELOPE Definition 2 and (3). The twin of `cvxleak.measures.privacy_profile`. The other failure
    probability, `cvxleak.measures.dp_failure_probability`, is not convex, and post-processing can
    raise it.

    Examples
    --------
    The least delta at epsilon = log 3 if a bit must be released correctly with probability 0.9:

    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel
    >>> from cvxleak.expressions import privacy_profile
    >>> Q, rows = channel(2, 2)
    >>> delta = privacy_profile(Q, np.log(3))
    >>> problem = cp.Problem(cp.Minimize(delta), rows + [cp.diag(Q) >= 0.9])
    >>> round(float(problem.solve()), 6)  # 0.9 - 3 * 0.1
    0.6
    """
    return _profile(channel, None, epsilon)


def record_privacy_profile(
    channel: Rows, query: Query | RecordSpace, epsilon: Budget
) -> cp.Expression:
    """Return delta*(epsilon) for datasets one record apart: convex in the channel.

    max over neighboring datasets x, x' of sum_y max(0, q(y|x) - e^epsilon q(y|x')).

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (values of f or datasets, outputs)
        The rows of the mechanism.
    query : Query or RecordSpace
        With a query f the channel is q(y|f(x)), and only the pairs of values that neighbors can
        have are compared. With a space the channel has one row per dataset, in product order.
    epsilon : float or cp.Parameter
        In nats, from 0 to 700. DPP when it is a Parameter.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a number that is out of range.

    Notes
    -----
    The twin of `cvxleak.measures.record_privacy_profile`.

    Examples
    --------
    >>> from cvxleak.expressions import record_privacy_profile
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> float(record_privacy_profile([[0.75, 0.25], [0.25, 0.75]], parity, 0.0).value)
    0.5
    """
    return _profile(channel, neighbors_of(query), epsilon)


def _profile(channel: Rows, query: Query | RecordSpace | None, epsilon: Budget) -> cp.Expression:
    factor, pairs = exponential(epsilon, "epsilon"), row_pairs(channel, query)
    if pairs is None:
        return cp.Constant(0.0)
    one, other = pairs
    return cp.max(cp.pos(one - factor * other).sum(axis=1))
