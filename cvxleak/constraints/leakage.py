"""Ceilings on what a channel leaks: information, maximal leakage, pointwise maximal leakage."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.expressions import exp_maximal_leakage
from cvxleak.expressions.arguments import Law, Rows, is_fixed, matched, support
from cvxleak.expressions.budgets import Budget, ceiling, exponential, is_number
from cvxleak.expressions.joint import Joint, input_joint, record_joint
from cvxleak.model import Query

__all__ = ["maximal_leakage", "mi_budget", "pml", "record_mi_budget"]


def mi_budget(prior: Law, channel: Rows, budget: Budget) -> list[cp.Constraint]:
    """Return I(X;Y) <= L for a fixed prior: convex in the channel.

    H(X) + sum_{x,y} s(x,y) log( s(x,y) / r(y) ) <= L with s = p(x) q(y|x) and one auxiliary
    variable r(y) = sum_x s(x,y) for the output law, so that a channel of k inputs and m outputs
    needs a few k m nonzeros and not k^2 m. To minimize the information of a large channel, let the
    budget be a variable: minimize t subject to ``mi_budget(prior, channel, t)``.

    Parameters
    ----------
    prior : Prior, array_like or cp.Expression without variables, shape (k,)
        The law of the input.
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    budget : float or cp.Expression
        L >= 0, in nats; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        Arguments that do not fit, a prior with variables, or a negative number.

    Notes
    -----
    LEAKAGE (7). DPP when prior and budget are Parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import mi_budget, row_stochastic
    >>> Q = cp.Variable((2, 2))
    >>> private = row_stochastic(Q) + mi_budget([0.5, 0.5], Q, 0.368064)  # log 2 - h(0.1)
    >>> truth = cp.Maximize(cp.trace(Q) / 2)
    >>> round(float(cp.Problem(truth, private).solve()), 3)
    0.9
    """
    return _information(input_joint(prior, channel), budget)


def record_mi_budget(
    prior: Law, query: Query, channel: Rows, records: int | Sequence[int], budget: Budget
) -> list[cp.Constraint]:
    """Return I(X_i;Y) <= L for a fixed adversary: convex in the mechanism's noise channel.

    Parameters
    ----------
    prior, query, channel, records
        As in `cvxleak.expressions.record_information`.
    budget : float or cp.Expression
        L >= 0, in nats; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        Arguments that do not fit, a prior with variables, or a negative number.

    Notes
    -----
    LEAKAGE (7). DPP when prior and budget are Parameters.

    Examples
    --------
    An adversary who knows that the second bit of a parity is 0 sees the first through the noise:

    >>> import cvxpy as cp
    >>> from cvxleak.constraints import record_mi_budget, row_stochastic
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> Q = cp.Variable((2, 2))
    >>> private = row_stochastic(Q)
    >>> private += record_mi_budget([0.5, 0.0, 0.5, 0.0], parity, Q, 0, 0.368064)
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 3)
    0.9
    """
    return _information(record_joint(prior, query, channel, records), budget)


def maximal_leakage(prior: Law, channel: Rows, budget: Budget) -> list[cp.Constraint]:
    """Return sum_y max_x q(y|x) <= e^L, over inputs of positive probability.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The law of the input; only its support matters. It is known data, not a Parameter.
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    budget : float or cp.Parameter
        L, in nats, from 0 to 700.

    Raises
    ------
    ValidationError
        Arguments that do not fit, a prior that is not data, or a number that is out of range.

    Notes
    -----
    ENVELOPE section IV-A. DPP when the budget is a Parameter.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import maximal_leakage, row_stochastic
    >>> Q = cp.Variable((3, 3))
    >>> private = row_stochastic(Q) + maximal_leakage([0.2, 0.3, 0.5], Q, np.log(2))
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q)), private).solve()), 6)
    2.0
    """
    return [exp_maximal_leakage(prior, channel) <= exponential(budget, "budget")]


def pml(prior: Law, channel: Rows, epsilon: Budget) -> list[cp.Constraint]:
    """Return l(X -> y) <= epsilon for every outcome: q(y|x) <= e^epsilon p(y).

    One auxiliary variable holds the output law p(y) = sum_x p(x) q(y|x).

    Parameters
    ----------
    prior : Prior, array_like or cp.Expression without variables, shape (k,)
        The law of the input. Inputs whose probability is known to be zero are not constrained; of
        a Parameter it is not known, and then all inputs are.
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    epsilon : float or cp.Parameter
        In nats, from 0 to 700. Nothing is constrained from log 1/min p(x) on.

    Raises
    ------
    ValidationError
        Arguments that do not fit, a prior with variables, or a number that is out of range.

    Notes
    -----
    ENVELOPE Definition 4 and the paragraph after (6). DPP when prior and epsilon are Parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import pml, row_stochastic
    >>> Q = cp.Variable((2, 2))
    >>> private = row_stochastic(Q) + pml([0.5, 0.5], Q, np.log(1.8))
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 6)
    0.9
    """
    p, q = matched(prior, channel)
    _check_fixed(is_fixed(p))
    seen = support(p)
    output = cp.Variable(q.shape[1])
    everywhere = cp.outer(np.ones(len(seen)), output)
    factor = exponential(epsilon, "epsilon")
    if is_number(factor, 1.0):
        return [q[seen] == everywhere]
    return [output == p @ q, q[seen] <= factor * everywhere]


def _information(joint: Joint, budget: Budget) -> list[cp.Constraint]:
    _check_fixed(joint.entropy is not None)
    output = cp.Variable(joint.cells.shape[1])
    information = joint.entropy + joint.negative_equivocation(output)
    return [output == joint.output, information <= ceiling(budget, "budget")]


def _check_fixed(fixed: bool) -> None:
    if not fixed:
        raise ValidationError(
            "prior: found variables; a ceiling on the leakage is convex in the channel only, so "
            "the prior must be data or a Parameter"
        )
