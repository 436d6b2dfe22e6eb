"""Differential privacy of a channel (local) and of a mechanism (neighboring datasets)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxleak.expressions.arguments import Rows, rows_expression
from cvxleak.expressions.budgets import Budget, ceiling, exponential, is_number
from cvxleak.expressions.pairs import neighbors_of, row_pairs
from cvxleak.measures.pufferfish import secret_pairs
from cvxleak.model import Prior, Query, RecordSpace

__all__ = ["local_dp", "pufferfish", "record_dp"]

MOST = math.exp(20)
"""Largest factor between rows: solvers fail at e^50, and e^20 excludes hardly a channel."""


def local_dp(channel: Rows, epsilon: Budget, delta: Budget = 0.0) -> list[cp.Constraint]:
    """Return (epsilon, delta)-local differential privacy of a channel.

    - delta = 0: q(y|x) <= e^epsilon q(y|x') for all x, x' and y, in the form with one auxiliary
      variable per output, t_y <= q(y|x) <= e^epsilon t_y: 2 k m rows instead of k^2 m.
    - delta > 0 or a Parameter: sum_y max(0, q(y|x) - e^epsilon q(y|x')) <= delta for all x and x',
      the largest gap over all events; k (k - 1) m rows.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    epsilon : float or cp.Parameter
        In nats, from 0 to 700. Values above 20 are replaced by 20, which is sufficient; a channel
        that only this excludes satisfies the constraint after mixing with at most m e^-20 (2.1e-9
        m) of uniform noise.
    delta : float or cp.Expression
        From 0 to 1; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        Not a matrix, or a number that is out of range.

    Notes
    -----
    ENVELOPE Definitions 1 and 2; HAMMING Definition 3. DPP when epsilon and delta are Parameters:
    e^epsilon is then a Parameter that is updated with epsilon.

    Examples
    --------
    With three values, the least probability of a wrong output is 2 / (2 + e^epsilon) (k-ary
    randomized response; HAMMING Theorem 1):

    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, local_dp
    >>> Q, rows = channel(3, 3)
    >>> private = rows + local_dp(Q, np.log(2))
    >>> round(float(cp.Problem(cp.Minimize(1 - cp.trace(Q) / 3), private).solve()), 6)
    0.5
    """
    q = rows_expression(channel)
    k, m = q.shape
    factor, slack = exponential(epsilon, "epsilon", most=MOST), ceiling(delta, "delta", 1.0)
    if not is_number(slack, 0.0):
        return _compared(q, None, factor, slack)
    least = cp.outer(np.ones(k), cp.Variable(m))
    return [q == least] if is_number(factor, 1.0) else [least <= q, q <= factor * least]


def pufferfish(
    channel: Rows,
    priors: Iterable[Prior | ArrayLike],
    pairs: Iterable[Sequence[ArrayLike]],
    epsilon: Budget,
) -> list[cp.Constraint]:
    """Return Pufferfish privacy: P(y|s, theta) <= e^epsilon P(y|s', theta) and the converse.

    For all outputs y, beliefs theta and pairs (s, s') of secrets; linear in the channel.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    priors : iterable of Prior or array_like, each of shape (k,)
        The beliefs theta on the inputs.
    pairs : iterable of pairs of array_like, each of shape (k,)
        The secrets, as in `cvxleak.measures.pufferfish_epsilon`.
    epsilon : float or cp.Parameter
        In nats, from 0 to 700; above 20 as for `local_dp`.

    Raises
    ------
    ValidationError
        As for `cvxleak.measures.pufferfish_epsilon`, or an epsilon that is out of range.

    Notes
    -----
    DALENIUS (51). DPP when epsilon is a Parameter.

    Examples
    --------
    The first of two bits that are surely equal, with the least error at epsilon = log 3:

    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, pufferfish
    >>> Q, rows = channel(4, 2)  # datasets 00, 01, 10, 11; the first bit is released
    >>> secrets = [([1, 1, 0, 0], [0, 0, 1, 1])]
    >>> private = rows + pufferfish(Q, [[0.5, 0, 0, 0.5]], secrets, np.log(3))
    >>> error = (Q[0, 1] + Q[3, 0]) / 2
    >>> round(float(cp.Problem(cp.Minimize(error), private).solve()), 6)
    0.25
    """
    q = rows_expression(channel)
    factor = exponential(epsilon, "epsilon", most=MOST)
    found: list[cp.Constraint] = []
    for one, other in secret_pairs(q.shape[0], priors, pairs):
        first, second = one @ q, other @ q
        found += [first <= factor * second, second <= factor * first]
    return found


def record_dp(
    channel: Rows, query: Query | RecordSpace, epsilon: Budget, delta: Budget = 0.0
) -> list[cp.Constraint]:
    """Return (epsilon, delta)-differential privacy of a mechanism, for datasets one record apart.

    q(y|x) <= e^epsilon q(y|x') for all y and all datasets x, x' that differ in the value of one
    record; with delta, sum_y max(0, q(y|x) - e^epsilon q(y|x')) <= delta.

    Parameters
    ----------
    channel : cp.Expression, shape (values of f or datasets, outputs)
        The rows of the mechanism.
    query : Query or RecordSpace
        With a query f the channel is q(y|f(x)), and only the pairs of values that neighbors can
        have are compared. With a space the channel has one row per dataset, in product order.
    epsilon : float or cp.Parameter
        In nats, from 0 to 700. Values above 20 are replaced by 20, which is sufficient; a channel
        that only this excludes satisfies the constraint after mixing with at most m e^-20 (2.1e-9
        m) of uniform noise.
    delta : float or cp.Expression
        From 0 to 1; a concave expression keeps the set convex.

    Returns
    -------
    list of cp.Constraint
        Empty if no two neighbors differ in their row.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a number that is out of range.

    Notes
    -----
    DALENIUS Definition 9, with "differ in one record" in place of its norm. DPP when epsilon and
    delta are Parameters.

    Examples
    --------
    A count of two bits with the largest possible probability of a correct output:

    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, record_dp
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> count = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
    >>> Q, rows = channel(3, 3)
    >>> private = rows + record_dp(Q, count, np.log(2))
    >>> round(float(cp.Problem(cp.Maximize(cp.min(cp.diag(Q))), private).solve()), 6)
    0.5
    """
    factor, slack = exponential(epsilon, "epsilon", most=MOST), ceiling(delta, "delta", 1.0)
    return _compared(channel, neighbors_of(query), factor, slack)


def _compared(
    channel: Rows, query: Query | RecordSpace | None, factor: Budget, slack: Budget
) -> list[cp.Constraint]:
    """Compare the rows of each pair, both ways."""
    equal = is_number(factor, 1.0) and is_number(slack, 0.0)
    pairs = row_pairs(channel, query, both=not equal)
    if pairs is None:
        return []
    one, other = pairs
    if equal:
        return [one == other]
    if is_number(slack, 0.0):
        return [one <= factor * other]
    return [cp.pos(one - factor * other).sum(axis=1) <= slack]
