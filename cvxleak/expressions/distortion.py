"""Expected distortion as an expression."""

from __future__ import annotations

from collections.abc import Iterable

import cvxpy as cp
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order
from cvxleak.expressions.arguments import (
    Law,
    Rows,
    check_one_varies,
    dataset_law,
    matched,
    matched_query,
    nonnegative,
    rows_expression,
)
from cvxleak.model import Distortion, Prior, Query
from cvxleak.model.channel import Labels
from cvxleak.model.labels import channel_labels, distortion_matrix

__all__ = ["expected_distortion", "mechanism_distortion", "worst_case_distortion"]


def expected_distortion(
    channel: Rows, prior: Law, distortion: Distortion | ArrayLike
) -> cp.Expression:
    """Return E d(X,Y) = sum_{x,y} p(x) q(y|x) d(x,y), in the unit of d.

    Affine in the channel for a fixed prior and affine in the prior for a fixed channel; DPP both
    ways when what is fixed is a Parameter.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (k, m)
        The rows q(y|x).
    prior : Prior, array_like or cp.Expression, shape (k,)
        The true distribution of the input.
    distortion : Distortion or array_like
        A `Distortion` is matched to a `Channel`, and a `Prior` to either, by label; everything
        else is matched by position and has shape (k, m).

    Raises
    ------
    ValidationError
        Arguments that do not match each other, are not stochastic, or both hold variables.

    Notes
    -----
    The twin of `cvxleak.measures.expected_distortion`.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.expressions import expected_distortion
    >>> from cvxleak.model import Distortion
    >>> Q = cp.Variable((2, 2))
    >>> cost = expected_distortion(Q, [0.5, 0.5], Distortion.hamming([0, 1]))
    >>> Q.value = [[1.0, 0.0], [0.5, 0.5]]
    >>> cost.is_affine(), float(cost.value)
    (True, 0.25)
    """
    p, q = matched(prior, channel, _input_labels(distortion))
    return p @ _cost_of_inputs(q, distortion, *channel_labels(channel))


def worst_case_distortion(
    channel: Rows, priors: Iterable[Law], distortion: Distortion | ArrayLike
) -> cp.Expression:
    """Return the largest expected distortion over a set of sources, in the unit of d.

    max over the sources P of sum_{x,y} P(x) q(y|x) d(x,y): convex in the channel. The sources'
    convex hull gives the same number. DPP when sources are Parameters.

    Parameters
    ----------
    channel, distortion
        As in `expected_distortion`.
    priors : iterable of Prior, array_like or cp.Expression, each of shape (k,)
        The possible true distributions of the input, at least one.

    Raises
    ------
    ValidationError
        No sources, arguments that do not match, or sources and channel that both hold variables.

    Notes
    -----
    HAMMING sections II-B and II-D, (5). The twin of `cvxleak.measures.worst_case_distortion`.

    Examples
    --------
    >>> from cvxleak.expressions import worst_case_distortion
    >>> from cvxleak.model import Distortion
    >>> rounding = [[1.0, 0.0], [0.5, 0.5]]
    >>> sources = [[0.5, 0.5], [0.0, 1.0]]
    >>> float(worst_case_distortion(rounding, sources, Distortion.hamming([0, 1])).value)
    0.5
    """
    return nonnegative(cp.max(distortions(priors, channel, distortion)))


def mechanism_distortion(
    channel: Rows, prior: Law, query: Query, distortion: Distortion | ArrayLike
) -> cp.Expression:
    """Return E d(f(X),Y) = sum_{x,y} p(x) q(y|f(x)) d(f(x),y), in the unit of d.

    Affine in the channel for a fixed prior and affine in the prior for a fixed channel; DPP both
    ways when what is fixed is a Parameter.

    Parameters
    ----------
    channel : Channel, array_like or cp.Expression, shape (values of f, outputs)
        One row per value of the query; a `Channel` is matched by label.
    prior : Prior, array_like or cp.Expression, shape (|X|,)
        The true distribution of the dataset, on the datasets in product order. If there are too
        many datasets to write out, use `expected_distortion` with the distribution of f(X).
    query : Query
        The query f.
    distortion : Distortion or array_like
        The inputs of a `Distortion` are values of the query, matched by label; its outputs are
        matched to those of a `Channel` by label. Everything else is matched by position.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, are not stochastic, or both hold variables.

    Notes
    -----
    LEAKAGE Definition 2.2. The twin of `cvxleak.measures.mechanism_distortion`.

    Examples
    --------
    >>> from cvxleak.expressions import mechanism_distortion
    >>> from cvxleak.model import AdditiveQuery, Distortion, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> flip = [[0.75, 0.25], [0.25, 0.75]]
    >>> float(mechanism_distortion(flip, [0.25] * 4, parity, Distortion.hamming([0, 1])).value)
    0.25
    """
    q = matched_query(query, channel)
    p = dataset_law(prior, query.space)
    cost = _cost_of_inputs(q, distortion, query.values, channel_labels(channel)[1])
    check_one_varies(p, q)
    return p @ cost[query.table().ravel()]


def distortions(
    priors: Iterable[Law], channel: Rows, distortion: Distortion | ArrayLike
) -> cp.Expression:
    """Return the expected distortion under each source, shape (sources,)."""
    if isinstance(priors, (Prior, cp.Expression)):
        raise ValidationError(
            f"priors: found one {type(priors).__name__}; a list of sources is needed"
        )
    labels = _input_labels(distortion)
    pairs = [
        matched(prior, channel, labels, f"priors[{place}]")
        for place, prior in enumerate(in_order(priors, "priors"))
    ]
    if not pairs:
        raise ValidationError("priors: found none; at least one source is needed")
    sources = cp.vstack([p for p, _ in pairs])
    return sources @ _cost_of_inputs(pairs[0][1], distortion, *channel_labels(channel))


def costs_of_inputs(
    channel: Rows, distortion: Distortion | ArrayLike
) -> tuple[cp.Expression, Labels | None]:
    """Return sum_y q(y|x) d(x,y) for each input x, and the labels of the inputs, if any."""
    inputs, outputs = channel_labels(channel)
    cost = _cost_of_inputs(rows_expression(channel), distortion, inputs, outputs)
    return cost, inputs or _input_labels(distortion)


def _cost_of_inputs(
    q: cp.Expression,
    distortion: Distortion | ArrayLike,
    inputs: Labels | None,
    outputs: Labels | None,
) -> cp.Expression:
    """Return sum_y q(y|x) d(x,y) for each input x."""
    d = distortion_matrix(distortion, (q.shape[0], q.shape[1]), inputs, outputs)
    return cp.multiply(d, q).sum(axis=1)


def _input_labels(distortion: Distortion | ArrayLike) -> Labels | None:
    return distortion.inputs if isinstance(distortion, Distortion) else None
