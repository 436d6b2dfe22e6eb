"""Simultaneous confidence intervals for the frequencies of a channel's inputs.

The events whose counts are used depend on the channel alone: each output (outputs that all inputs
have in proportion count as one), and, where there are more outputs than inputs, for each input the
outputs that are likelier from it than from the average input. The probabilities q of the events
lie in a box of Clopper and Pearson's intervals, by Bonferroni's inequality, with the confidence
asked for. The frequencies p then lie in the polytope of all distributions p whose P^T p, P(x, A)
the probability of the event A from the input x, is in that box, and what a linear function c of p
can be in it is the interval. Its upper end is a linear program, and any numbers w bound it:

    c p = sum_A w(A) q(A) + (c - P w) p
        <= sum_A max(w(A) l(A), w(A) u(A)) + max_x (c - P w)(x),

with equality for the program's optimal multipliers. The solver's multipliers are therefore only
proposals: the bound is evaluated in ball arithmetic, with the probabilities as the channel draws
them. Where the solver finds none (the polytope is empty), or there are more inputs than `MOST`, the
coefficients of an unbiased estimate serve: P w = c but for a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import arb, arb_mat
from scipy.optimize import linprog

from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import Array
from cvxleak.kernel.numbers import ball, largest, precision, total
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.mechanisms.binomial import clopper_pearson
from cvxleak.model import Channel
from cvxleak.model._proportional import proportional

__all__ = ["frequency_intervals"]

ALIKE = 1e-9
"""Columns that are proportional but for a part of this are one event; no event is a wrong one."""

MOST = 100
"""Most inputs for which programs are solved: 100 take 3 seconds, 200 would take 20."""

Events = list[list[int]]


def frequency_intervals(
    channel: Channel, counts: Sequence[int], confidence: float
) -> tuple[Array, Array]:
    """Return lower and upper ends of the frequencies; 1 and 0 if the polytope is proved empty.

    Parameters
    ----------
    channel : Channel, shape (k, outputs)
    counts : sequence of int
        Of the outputs.
    confidence : float
        Of all intervals together, in (0, 1).

    Examples
    --------
    >>> from cvxleak.mechanisms.frequency_intervals import frequency_intervals
    >>> from cvxleak.model import Channel
    >>> channel = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> lower, upper = frequency_intervals(channel, [400, 600], 0.95)
    >>> lower.round(3), upper.round(3)
    (array([0.239, 0.638]), array([0.362, 0.761]))
    """
    families = _events(channel.matrix)
    events = [event for family in families for event in family]
    tails = [
        (1 - fraction(confidence)) / (2 * len(families) * len(family))
        for family in families
        for _ in family
    ]
    drawn = sum(counts)
    box = np.array(
        [
            clopper_pearson(sum(counts[y] for y in event), drawn, tail)
            for event, tail in zip(events, tails, strict=True)
        ]
    ).reshape(-1, 2)
    multipliers = _multipliers(channel.matrix, events, box)
    k = len(channel.matrix)
    with precision():
        rows = map(exact_law, channel.matrix)
        exact = [[ball(sum(row[y] for y in event)) for event in events] for row in rows]
        low, high = ([ball(end) for end in ends] for ends in box.T.tolist())
        table = arb_mat(exact)
        ends = []
        for turn, weights in enumerate(multipliers):
            sign, at = (1, turn) if turn < k else (-1, turn - k)
            w = [arb(weight) for weight in weights.tolist()]
            used = total(
                weight * (above if weight > 0 else below)
                for weight, below, above in zip(w, low, high, strict=True)
            )
            rest = [arb(0)] * k
            if w:
                rest = (table * arb_mat([[weight] for weight in w])).entries()
            most = largest(sign * (x == at) - part for x, part in enumerate(rest))
            ends.append(float_above(used + most))
    upper = np.minimum(ends[:k], 1.0)
    lower = np.maximum(-np.array(ends[k:]), 0.0)
    return (lower, upper) if (lower <= upper).all() else (np.ones(k), np.zeros(k))


def _events(matrix: Array) -> list[Events]:
    """Return families of events, each a list of outputs; they share the tail equally."""
    groups = proportional(matrix, ALIKE)
    if len(groups) <= 2:
        # What is said of one of two is said of the other.
        return [groups[1:]] if len(groups) == 2 else []
    if len(groups) <= len(matrix):
        return [groups]
    average = matrix.mean(axis=0)
    likelier = [np.flatnonzero(row > average).tolist() for row in matrix]
    return [groups, likelier]


def _multipliers(matrix: Array, events: Events, box: Array) -> list[Array]:
    """Return weights of the events for the upper ends, and then for the lower ones."""
    k = len(matrix)
    chances = np.array([matrix[:, event].sum(axis=1) for event in events]).reshape(-1, k)
    limits = np.concatenate([box[:, 1], -box[:, 0]])
    found = []
    for sign, weights in ((1, _unbiased(chances, box)), (-1, -_unbiased(chances, box))):
        for x in range(k):
            found.append(weights[x])
            if k > MOST:
                continue
            answer = linprog(
                -sign * np.eye(k)[x],
                np.vstack([chances, -chances]),
                limits,
                np.ones((1, k)),
                [1.0],
                method="highs",
            )
            if answer.status == 0:
                above, below = np.split(answer.ineqlin.marginals, 2)
                found[-1] = below - above
    return found


def _unbiased(chances: Array, box: Array) -> Array:
    """Return weights for each input under which only its own frequency remains, and a constant."""
    m, k = chances.shape
    groups = slice(m - k if m > k else m)
    centered = chances[groups] - chances[groups].mean(axis=1, keepdims=True)
    weights = np.zeros((k, m))
    weights[:, groups] = np.linalg.lstsq(centered.T, np.eye(k) - 1 / k)[0].T
    if m > 1:
        # The groups' probabilities sum to 1: a constant may be taken off their weights. The median,
        # weighted by how wide the intervals are, leaves the least uncertain sum.
        order = np.argsort(weights[:, groups], axis=1)
        widths = (box[:, 1] - box[:, 0])[groups][order].cumsum(axis=1)
        middle = (widths < widths[:, -1:] / 2).sum(axis=1, keepdims=True)
        place = np.take_along_axis(order, middle, axis=1)
        weights[:, groups] -= np.take_along_axis(weights, place, axis=1)
    return weights
