"""Checks of arguments: distributions and channels, and which of them may hold variables."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.advice import advice_on_order
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    instance,
    probability_rows,
    real_number,
    short,
)
from cvxleak.core.wording import are, counted
from cvxleak.model import Channel, Mechanism, Prior, Query, RecordSpace, as_channel, as_prior
from cvxleak.model.channel import Labels
from cvxleak.model.labels import channel_labels
from cvxleak.model.prior import named_law

LARGEST_TERM = 1024
"""Largest numerator or denominator of a power that CVXPY does not round."""

Law = Prior | ArrayLike | cp.Expression
"""A distribution: a `Prior`, an array, or an affine CVXPY expression (variable, parameter)."""

Rows = Channel | ArrayLike | cp.Expression
"""A channel: a `Channel`, an array, or an affine CVXPY expression (variable, parameter)."""


def law_expression(prior: Law, name: str = "prior", labels: Labels | None = None) -> cp.Expression:
    """Return a distribution as a CVXPY expression with one axis.

    A `Prior` is matched to the labels, if there are any; everything else is matched by position.
    """
    if isinstance(prior, cp.Expression):
        found = _expression(prior, name, 1)
        if found.is_constant() and found.value is not None:  # a Parameter has a value, or will have
            as_prior(found.value, found.size, name)
        return found
    _check_stacked(prior, name)
    prior = named_law(prior)
    if isinstance(prior, Prior):
        size = len(prior) if labels is None else len(labels)
        prior = as_prior(prior, size, name, labels).probabilities
    return _expression(prior, name, 1)


def dataset_law(prior: Law, space: RecordSpace) -> cp.Expression:
    """Return a distribution on the datasets of a space, in product order."""
    if not isinstance(prior, cp.Expression):
        return cp.Constant(space.law(prior))
    p = law_expression(prior)
    if p.shape[0] != space.size:
        raise ValidationError(
            f"prior: found {counted(p.shape[0], 'outcome')}; "
            f"{short(space.size)} {are(space.size)} needed"
        )
    return p


def rows_expression(channel: Rows, name: str = "channel") -> cp.Expression:
    """Return a channel as a CVXPY expression with one row per input."""
    if isinstance(channel, cp.Expression):
        return _expression(channel, name, 2)
    _check_stacked(channel, name)
    return cp.Constant(as_channel(channel, name).matrix)


def table_expression(joint: Law, name: str) -> cp.Expression:
    """Return a joint distribution as a CVXPY expression with two axes."""
    return _expression(joint, name, 2, joint=True)


def matched(
    prior: Law, channel: Rows, labels: Labels | None = None, name: str = "prior"
) -> tuple[cp.Expression, cp.Expression]:
    """Return a prior and a channel that fit each other, at most one of them with variables.

    A prior's labels are matched to the channel's inputs, or to `labels` if these have none.
    """
    q = rows_expression(channel)
    p = law_expression(prior, name, channel_labels(channel)[0] or labels)
    if p.shape[0] != q.shape[0]:
        raise ValidationError(
            f"{name}: found {counted(p.shape[0], 'outcome')}; "
            f"the channel has {counted(q.shape[0], 'input')}"
        )
    check_one_varies(p, q)
    return p, q


def check_one_varies(p: cp.Expression, q: cp.Expression) -> None:
    """Refuse a prior and a channel that both hold variables."""
    if not is_fixed(p) and not is_fixed(q):
        raise ValidationError(
            "prior: found variables both in the prior and in the channel; one of them must be "
            "data or a Parameter, since the expression is not jointly convex"
        )


def matched_query(query: Query, channel: Rows) -> cp.Expression:
    """Return a channel with one row per value of the query, in the order of `query.values`."""
    if isinstance(channel, Query):
        raise ValidationError(f"channel: found a query{advice_on_order('channel')}")
    instance(query, Query, "query")
    if not isinstance(channel, cp.Expression):
        return cp.Constant(Mechanism(query, channel).channel.matrix)
    q = rows_expression(channel)
    if q.shape[0] != len(query.values):
        raise ValidationError(
            f"channel: found {counted(q.shape[0], 'row')}; "
            f"the query has {counted(len(query.values), 'value')}"
        )
    return q


def rational_order(alpha: float) -> Fraction:
    """Return an order that CVXPY's atoms take exactly: they round other powers to such a ratio."""
    order = real_number(alpha, "alpha", 0.0, open_low=True, open_high=True)
    found = Fraction(order).limit_denominator(LARGEST_TERM)
    if order == 1 or max(found.as_integer_ratio()) > LARGEST_TERM or float(found) != order:
        raise ValidationError(
            f"alpha: found {short(alpha)}; a ratio of whole numbers up to {LARGEST_TERM} is "
            "needed, and not 1 (the builders of cvxleak.constraints take any order from 0.2 on)"
        )
    return found


def raised(probabilities: Array, exponent: float) -> Array:
    """Return probabilities to a power: a fixed distribution's or channel's part of such a sum."""
    return probabilities**exponent


def nonnegative(expression: cp.Expression) -> cp.Expression:
    """Return a convex expression that is never negative with a sign that CVXPY knows.

    Only for sums of few terms: the row of its maximum with 0 is dense, and a solver takes eight
    times as long for it if the sum is over the cells of a channel.
    """
    return expression if expression.is_nonneg() else cp.pos(expression)


def is_fixed(expression: cp.Expression) -> bool:
    """Whether the expression holds no variables: data, or a function of Parameters."""
    return not expression.variables()


def is_known(expression: cp.Expression) -> bool:
    """Whether the expression is data: its value will never change."""
    return not expression.variables() and not expression.parameters()


def value(expression: cp.Expression) -> Array:
    """Return the value of a known expression as a dense array."""
    found: Any = expression.value
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=float)


def support(p: cp.Expression) -> NDArray[np.intp]:
    """Return the outcomes that are not known to have probability zero."""
    return np.flatnonzero(value(p) > 0) if is_known(p) else np.arange(p.shape[0])


def derived(
    source: cp.Expression,
    function: Callable[[Array], Any],
    shape: tuple[int, ...] = (),
    *,
    nonneg: bool = False,
) -> cp.Expression:
    """Return function(source) of a fixed source: a constant, or a Parameter that follows it.

    A nonlinear function of a Parameter is not DPP; a Parameter that is computed from it is.
    `nonneg` says that the function has no negative values, where a sign is needed.
    """
    if is_known(source):
        return cp.Constant(function(value(source)))
    return cp.CallbackParam(partial(_follow, source, function), shape, nonneg=nonneg)


def _follow(source: cp.Expression, function: Callable[[Array], Any]) -> Any:
    return None if source.value is None else function(value(source))


def _check_stacked(given: Any, name: str) -> None:
    """Refuse expressions in a list or in an array of objects, and say how to put them together."""
    if isinstance(given, tuple) and [type(part) for part in given] == [cp.Variable, list]:
        raise ValidationError(
            f"{name}: found the variable and its constraints, which cvxleak.channel returns; "
            "Q, rows = channel(k, m) separates them"
        )
    if _holds_expressions(given):
        raise ValidationError(
            f"{name}: found a list or an array that holds CVXPY expressions; cp.hstack makes one "
            "expression of numbers, cp.vstack of rows, cp.bmat of rows of numbers"
        )


def _holds_expressions(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.dtype == object and any(map(_holds_expressions, given.flat))
    if isinstance(given, list | tuple):
        return any(map(_holds_expressions, given))
    return isinstance(given, cp.Expression)


def _expression(given: Any, name: str, ndim: int, *, joint: bool = False) -> cp.Expression:
    if isinstance(given, cp.Expression):
        if given.ndim != ndim:
            flat = f"; {name}.flatten(order='C') has one" if ndim == 1 and 1 in given.shape else ""
            raise ValidationError(
                f"{name}: expected {ndim} dimension(s), found an expression of shape {given.shape}"
                + (flat or advice_on_order(name))
            )
        if not given.is_affine() or not given.is_real():
            raise ValidationError(
                f"{name}: found an expression that is not affine and real; variables, parameters "
                "and affine functions of them are allowed"
            )
        if not is_known(given):
            return given
        given = value(given)
    if not joint:
        return cp.Constant(probability_rows(given, name, ndim))
    table = frozen_array(given, name, ndim)
    probability_rows(table.ravel(), name, 1)
    return cp.Constant(table)
