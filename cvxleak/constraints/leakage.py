"""Upper bounds on leakage: information, maximal leakage, pointwise maximal leakage."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxleak.constraints._renyi import factor_and_level, is_zero, order_of, renyi_at_most
from cvxleak.core.errors import ValidationError
from cvxleak.expressions import (
    exp_conditional_maximal_leakage,
    exp_maximal_leakage,
    posterior_bayes_vulnerability,
    posterior_gain_vulnerability,
)
from cvxleak.expressions.arguments import (
    Law,
    Rows,
    is_fixed,
    is_known,
    matched,
    rows_expression,
    support,
    value,
)
from cvxleak.expressions.budgets import Budget, ceiling, exponential, is_number
from cvxleak.expressions.joint import Joint, conditional_joint, input_joint, record_joint
from cvxleak.model import Gain, Query

__all__ = [
    "capacity_budget",
    "conditional_maximal_leakage",
    "conditional_record_mi_budget",
    "maximal_leakage",
    "mi_budget",
    "pml",
    "record_mi_budget",
    "sibson_budget",
    "vulnerability_budget",
]


def mi_budget(channel: Rows, prior: Law, budget: Budget) -> list[cp.Constraint]:
    """Return I(X;Y) <= L for a fixed prior: convex in the channel.

    H(X) + sum_{x,y} s(x,y) log( s(x,y) / r(y) ) <= L with s = p(x) q(y|x) and one auxiliary
    variable r(y) = sum_x s(x,y) for the output distribution, so that the number of nonzeros grows
    like k m, not like k^2 m. To minimize the information of a large channel, let the budget be a
    variable: minimize t subject to ``mi_budget(channel, prior, t)``.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression without variables, shape (k,)
        The distribution of the input.
    budget : float or cp.Expression
        L >= 0, in nats; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior with variables, or a negative number.

    Notes
    -----
    LEAKAGE (7). DPP when prior and budget are Parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, mi_budget
    >>> Q, rows = channel(2, 2)
    >>> private = rows + mi_budget(Q, [0.5, 0.5], 0.368064)  # log 2 - h(0.1)
    >>> truth = cp.Maximize(cp.trace(Q) / 2)
    >>> round(float(cp.Problem(truth, private).solve()), 3)
    0.9
    """
    return _information(input_joint(prior, channel), budget)


def record_mi_budget(
    channel: Rows, prior: Law, query: Query, records: int | Sequence[int], budget: Budget
) -> list[cp.Constraint]:
    """Return I(X_i;Y) <= L for a fixed adversary: convex in the mechanism's noise channel.

    Parameters
    ----------
    channel, prior, query, records
        As in `cvxleak.expressions.record_information`.
    budget : float or cp.Expression
        L >= 0, in nats; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior with variables, or a negative number.

    Notes
    -----
    LEAKAGE (7). DPP when prior and budget are Parameters.

    Examples
    --------
    For an adversary who knows that the second bit is 0, the parity is the first bit:

    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, record_mi_budget
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> Q, rows = channel(2, 2)
    >>> private = rows + record_mi_budget(Q, [0.5, 0.0, 0.5, 0.0], parity, 0, 0.368064)
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 3)
    0.9
    """
    return _information(record_joint(prior, query, channel, records), budget)


def conditional_record_mi_budget(
    channel: Rows,
    prior: Law,
    query: Query,
    records: int | Sequence[int],
    given: int | Sequence[int],
    budget: Budget,
) -> list[cp.Constraint]:
    """Return I(X_I;Y|X_G) <= L for a fixed adversary who knows records G: convex in the channel.

    Parameters
    ----------
    channel, prior, query, records, given
        As in `cvxleak.expressions.conditional_record_information`.
    budget : float or cp.Expression
        L >= 0, in nats; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior with variables, or a negative number.

    Notes
    -----
    DPP when prior and budget are Parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, conditional_record_mi_budget
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> Q, rows = channel(2, 2)
    >>> private = rows + conditional_record_mi_budget(Q, [0.25] * 4, parity, 0, 1, 0.368064)
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 3)
    0.9
    """
    return _information(conditional_joint(prior, query, channel, records, given), budget)


def sibson_budget(channel: Rows, prior: Law, alpha: float, budget: Budget) -> list[cp.Constraint]:
    """Return I_alpha(X;Y) <= L, Sibson's information for a fixed prior: convex in the channel.

    I_alpha is the least Rényi divergence of p(x) q(y|x) from p(x) r(y) over all distributions r, so
    the constraint needs one auxiliary variable r and k m cones.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression without variables, shape (k,)
        The distribution of the input.
    alpha : float
        The order, at least 0.2 (below that, solvers return channels that exceed the budget). An
        order within 1 % of 1 is replaced by the next larger one of 1 and 1.01, which is sufficient;
        the divergence becomes larger by at most 0.005 V, where V is the variance of the log ratio
        (twice the divergence if that is small). At inf it is the maximal leakage, for which
        `maximal_leakage` needs fewer constraints; at 1 it is equivalent to `mi_budget`.
    budget : float or cp.Parameter; up to order 1 any cp.Expression
        L, in nats, from 0 to 700. Up to order 1 the set is convex in L, too, so L may be any
        concave expression, such as a variable to be minimized.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior with variables, or a number that is out of
        range.

    Notes
    -----
    Sibson, Z. Wahrscheinlichkeitstheorie 14 (1969). Its measure is
    `cvxleak.measures.sibson_information`. DPP when prior and budget are Parameters. Power cones,
    for Clarabel and SCS; second-order cones if alpha is a power of 2.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, sibson_budget
    >>> Q, rows = channel(2, 2)
    >>> private = rows + sibson_budget(Q, [0.5, 0.5], 2, np.log(1.64))
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 4)
    0.9
    """
    order = order_of(alpha)
    p, q = matched(prior, channel)
    _check_fixed(is_fixed(p))
    seen = support(p)
    law, size = p[seen], len(seen) * q.shape[1]
    factor, level = factor_and_level(budget, "budget", order, min(len(seen), q.shape[1]))
    if is_zero(factor, level):
        return _equal(q[seen])
    output = cp.Variable(q.shape[1], nonneg=True)
    joint = cp.multiply(cp.outer(law, np.ones(q.shape[1])), q[seen])
    apart = cp.outer(law, output)
    return [
        output.sum() <= factor,
        *renyi_at_most(
            cp.reshape(joint, (1, size), order="C"),
            cp.reshape(apart, (1, size), order="C"),
            order,
            level,
        ),
    ]


def capacity_budget(channel: Rows, budget: Budget, *, alpha: float = 1.0) -> list[cp.Constraint]:
    """Return C <= L, a bound on the information under all priors: convex in the channel.

    The capacity is max_p I(X;Y) = min_r max_x D( q(.|x) || r ) over distributions r, with Rényi's
    divergence of order alpha and Sibson's information. So the constraint needs one auxiliary
    variable r and k m cones, and no prior.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    budget : float or cp.Parameter; up to order 1 any cp.Expression
        L, in nats, from 0 to 700. Up to order 1 the set is convex in L, too, so L may be any
        concave expression, such as a variable to be minimized.
    alpha : float
        The order, at least 0.2 (below that, solvers return channels that exceed the budget). An
        order within 1 % of 1 is replaced by the next larger one of 1 and 1.01, which is sufficient;
        the divergence becomes larger by at most 0.005 V, where V is the variance of the log ratio
        (twice the divergence if that is small). 1 is Shannon's capacity; inf, the maximal leakage.

    Raises
    ------
    ValidationError
        Not a matrix, or a number that is out of range.

    See Also
    --------
    cvxleak.capacities.capacity : The capacity of a fixed channel, with a certificate.

    Notes
    -----
    Csiszár, IEEE Trans. Inf. Theory 41 (1995), Proposition 1. DPP when the budget is a Parameter.
    Exponential cones at order 1, power cones at others (Clarabel and SCS), second-order cones where
    alpha is a power of 2.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import capacity_budget, channel
    >>> Q, rows = channel(2, 2)
    >>> private = rows + capacity_budget(Q, 0.368064)  # log 2 - h(0.1)
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 3)
    0.9
    """
    order = order_of(alpha)
    q = rows_expression(channel)
    factor, level = factor_and_level(budget, "budget", order, min(q.shape))
    if is_zero(factor, level):
        return _equal(q)
    output = cp.Variable(q.shape[1], nonneg=True)
    everywhere = cp.outer(np.ones(q.shape[0]), output)
    return [output.sum() <= factor, *renyi_at_most(q, everywhere, order, level)]


def vulnerability_budget(
    channel: Rows, prior: Law, budget: Budget, *, gain: Gain | ArrayLike | None = None
) -> list[cp.Constraint]:
    """Return sum_y max_w sum_x p(x) q(y|x) g(w, x) <= V: a bound on an adversary's expected gain.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x). Either it or the prior may hold variables.
    prior : Prior, array_like or cp.Expression, shape (k,)
        The distribution of the secret.
    budget : float or cp.Expression
        V >= 0; a concave expression keeps the set convex.
    gain : Gain or array_like, shape (actions, k), optional
        g(w, x), the gain of action w if the secret is x. If left out, a correct guess gains 1
        (Bayes vulnerability).

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a negative number.

    Notes
    -----
    If the gain is an array, the constraints are linear. The measures are
    `cvxleak.measures.posterior_gain_vulnerability` and
    `cvxleak.measures.posterior_bayes_vulnerability`. DPP when prior and budget are Parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, vulnerability_budget
    >>> Q, rows = channel(2, 2)
    >>> private = rows + vulnerability_budget(Q, [0.4, 0.6], 0.7)
    >>> round(float(cp.Problem(cp.Maximize(0.4 * Q[0, 0] + 0.6 * Q[1, 1]), private).solve()), 6)
    0.7
    """
    after = (
        posterior_bayes_vulnerability(channel, prior)
        if gain is None
        else posterior_gain_vulnerability(channel, prior, gain)
    )
    return [after <= ceiling(budget, "budget")]


def conditional_maximal_leakage(
    first: Rows, second: Sequence[Rows], prior: Law, budget: Budget
) -> list[cp.Constraint]:
    """Return L(X -> Y2 | Y1) <= L, a bound on what a second release adds to the first.

    Parameters
    ----------
    first, second, prior
        As in `cvxleak.expressions.exp_conditional_maximal_leakage`.
    budget : float or cp.Parameter
        L, in nats, from 0 to 700.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a number that is out of range.

    Notes
    -----
    ENVELOPE section IV-A, after Theorem 3. DPP when the budget is a Parameter.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, conditional_maximal_leakage
    >>> Q, rows = channel(2, 2)
    >>> private = rows + conditional_maximal_leakage(np.ones((2, 1)), [Q], [0.5, 0.5], np.log(1.5))
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q)), private).solve()), 6)
    1.5
    """
    leakage = exp_conditional_maximal_leakage(first, second, prior)
    return [leakage <= exponential(budget, "budget")]


def maximal_leakage(channel: Rows, prior: Law, budget: Budget) -> list[cp.Constraint]:
    """Return sum_y max_x q(y|x) <= e^L, over inputs of positive probability.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the input; only its support matters. It must be data, not a Parameter.
    budget : float or cp.Parameter
        L, in nats, from 0 to 700.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior that is not data, or a number that is out of
        range.

    Notes
    -----
    ENVELOPE section IV-A. DPP when the budget is a Parameter.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, maximal_leakage
    >>> Q, rows = channel(3, 3)
    >>> private = rows + maximal_leakage(Q, [0.2, 0.3, 0.5], np.log(2))
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q)), private).solve()), 6)
    2.0
    """
    return [exp_maximal_leakage(channel, prior) <= exponential(budget, "budget")]


def pml(channel: Rows, prior: Law, epsilon: Budget) -> list[cp.Constraint]:
    """Return l(X -> y) <= epsilon for every outcome: q(y|x) <= e^epsilon p(y).

    One auxiliary variable holds the output distribution p(y) = sum_x p(x) q(y|x).

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression without variables, shape (k,)
        The distribution of the input. Inputs of probability zero are not constrained. If the prior
        is a Parameter, its zeros are not known, and all inputs are constrained.
    epsilon : float or cp.Parameter
        In nats, from 0 to 700. From log 1/min p(x) on there is no constraint. If the prior is a
        Parameter, stay below this value: solvers fail if epsilon is much larger.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, a prior with variables, or a number that is out of
        range.

    Notes
    -----
    ENVELOPE Definition 4 and the paragraph after (6). DPP when prior and epsilon are Parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import channel, pml
    >>> Q, rows = channel(2, 2)
    >>> private = rows + pml(Q, [0.5, 0.5], np.log(1.8))
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(Q) / 2), private).solve()), 6)
    0.9
    """
    p, q = matched(prior, channel)
    _check_fixed(is_fixed(p))
    seen = support(p)
    law = p[seen]
    least = value(law).min() if is_known(law) else 0.0
    factor = exponential(epsilon, "epsilon", most=1 / least if least else math.inf)
    if is_number(factor, 1.0):
        return _equal(q[seen])
    output = cp.Variable(q.shape[1])
    return [output == p @ q, q[seen] <= factor * cp.outer(np.ones(len(seen)), output)]


def _equal(rows: cp.Expression) -> list[cp.Constraint]:
    """Return that all rows are the same: what a budget of 0 is, where cones have no interior."""
    return [rows == cp.outer(np.ones(rows.shape[0]), cp.Variable(rows.shape[1]))]


def _information(joint: Joint, budget: Budget) -> list[cp.Constraint]:
    _check_fixed(is_fixed(joint.law))
    most = ceiling(budget, "budget")
    output = cp.Variable((joint.known, joint.cells.shape[1]))
    if is_number(most, 0.0):
        places = np.arange(joint.cells.shape[0]) % joint.known
        law = cp.outer(joint.law, np.ones(joint.cells.shape[1]))
        return [joint.cells == cp.multiply(law, output[places])]
    # Not `joint.information()`: being least at the right output, it would give that no price, and
    # half-spaces of a design need one.
    information = joint.entropy + joint.negative_equivocation(output)
    return [output == joint.output, information <= most]


def _check_fixed(fixed: bool) -> None:
    if not fixed:
        raise ValidationError(
            "prior: found variables; a bound on the leakage is convex in the channel only, so "
            "the prior must be data or a Parameter"
        )
