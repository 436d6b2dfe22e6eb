"""Upper bounds on the expected distortion."""

from __future__ import annotations

from collections.abc import Iterable

import cvxpy as cp
from numpy.typing import ArrayLike

from cvxleak.expressions.arguments import Law, Rows
from cvxleak.expressions.budgets import Budget, ceiling
from cvxleak.expressions.distortion import costs_of_inputs, distortions
from cvxleak.model import Distortion, Prior, as_prior
from cvxleak.model.channel import Labels
from cvxleak.sources import SourceSet

__all__ = ["distortion_budget"]


def distortion_budget(
    channel: Rows,
    priors: Iterable[Law] | SourceSet,
    distortion: Distortion | ArrayLike,
    budget: Budget,
) -> list[cp.Constraint]:
    """Return sum_{x,y} P(x) q(y|x) d(x,y) <= D for every source P of a set.

    The sources' convex hull gives the same set of channels.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    priors : iterable of Prior, array_like or cp.Expression, each of shape (k,), or SourceSet
        The possible true distributions of the input, at least one. For the polytopes of a
        `SourceSet` no vertices are computed: by LP duality, with an auxiliary variable per
        inequality and outcome, the constraints require the budget for the worst distribution of the
        polytope.
    distortion : Distortion or array_like
        As in `cvxleak.expressions.expected_distortion`.
    budget : float or cp.Expression
        D >= 0, in the unit of d; a concave expression keeps the set convex.

    Raises
    ------
    ValidationError
        No sources, arguments that do not match, or a negative number.

    Notes
    -----
    HAMMING Definition 2. DPP when sources and budget are Parameters. For a polytope of the
    distributions p with l <= p <= u and A p <= b, and with c(x) the distortion of input x,

    max_p c . p = min over v >= 0 and w of b . v + w + sum_x max( l(x) r(x), u(x) r(x) ), with
    r = c - A^T v - w.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, distortion_budget
    >>> from cvxleak.model import Distortion
    >>> Q, rows = channel(2, 2)
    >>> sources, wrong = [[0.5, 0.5], [0.1, 0.9]], Distortion.hamming([0, 1])
    >>> useful = rows + distortion_budget(Q, sources, wrong, 0.2)
    >>> round(float(cp.Problem(cp.Maximize(Q[0, 1] + Q[1, 0]), useful).solve()), 6)
    0.4

    A source that is known up to an interval:

    >>> from cvxleak.sources import SourceSet
    >>> between = SourceSet.box([0.1, 0.5], [0.5, 0.9])
    >>> useful = rows + distortion_budget(Q, between, wrong, 0.2)
    >>> round(float(cp.Problem(cp.Maximize(Q[0, 1] + Q[1, 0]), useful).solve()), 6)
    0.4
    """
    most = ceiling(budget, "budget")
    if not isinstance(priors, SourceSet):
        return [distortions(priors, channel, distortion) <= most]
    cost, labels = costs_of_inputs(channel, distortion)
    sources = _in_order_of(labels, priors, cost.shape[0])
    rules: list[cp.Constraint] = []
    if len(sources.points):
        rules.append(sources.points @ cost <= most)
    for polytope in sources.polytopes:
        excess, level = cp.Variable(cost.shape[0]), cp.Variable()
        ends = cp.maximum(cp.multiply(polytope.lower, excess), cp.multiply(polytope.upper, excess))
        covered, worst = excess + level, level + ends.sum()
        if len(polytope.bound):  # a box has no inequalities, and older CVXPY no empty variables
            prices = cp.Variable(len(polytope.bound))
            rules.append(prices >= 0)
            covered += prices @ polytope.matrix
            worst += prices @ polytope.bound
        rules += [covered == cost, worst <= most]
    return rules


def _in_order_of(labels: Labels | None, sources: SourceSet, size: int) -> SourceSet:
    """Return the set with its outcomes in the order of the channel's inputs."""
    as_prior(Prior.uniform(sources.labels), size, "priors", labels)  # refuses what does not match
    if labels is None or set(labels) != set(sources.labels):
        return sources
    return sources.relabeled([sources.labels.index(label) for label in labels])
