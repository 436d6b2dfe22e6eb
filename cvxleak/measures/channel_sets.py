"""Measures of a channel of which only a set is known: both ends over its members."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from operator import mul, sub

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array, instance
from cvxleak.measures.privacy import local_dp_epsilon
from cvxleak.model import Channel, ChannelSet

__all__ = ["EpsilonOfSet", "local_dp_epsilon_of_set"]

LARGEST = 50.0
"""Nats from where on it is not asked whether a member needs more."""

SHARP = 1e-7

Rows = list[list[Fraction]]


@dataclass(frozen=True)
class EpsilonOfSet:
    """What local differential privacy the channels of a set have.

    Attributes
    ----------
    lower : float
        No member's epsilon is less, in nats.
    upper : float
        No member's epsilon is more.
    most_private : Channel
        A member (up to rounding) whose epsilon is next to `lower`.
    least_private : Channel
        A member (up to rounding) whose epsilon is `upper`.

    Examples
    --------
    >>> from cvxleak.measures import EpsilonOfSet
    >>> from cvxleak.model import Channel
    >>> channel = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> EpsilonOfSet(1.0986, 1.0987, channel, channel).upper
    1.0987
    """

    lower: float
    upper: float
    most_private: Channel
    least_private: Channel


def local_dp_epsilon_of_set(channel_set: ChannelSet) -> EpsilonOfSet:
    """Return between what the least epsilons of the channels of a set are, in nats.

    Rows are any laws between their bounds, whatever the others are, so the largest epsilon is

        max over x != x', y of log( max q(y|x) / min q(y|x') ),

    with max q(y|x) = min(u_xy, 1 - sum of the other l) and min q(y|x) = max(l_xy, 1 - sum of the
    other u). A member has an epsilon of log f or less if t_y <= q(y|x) <= f t_y for some t >= 0,
    which is a linear program for each f. No member has it if, for some a, b >= 0 with
    sum_x b_xy <= sum_x a_xy,

        sum_x min over rows q of sum_y (b_xy / f - a_xy) q_y > 0,

    since it is at most sum b (q / f - t) + a (t - q) <= 0 otherwise. The lower end is the log of
    an f for which this holds in rational numbers, with the multipliers of the linear program.

    Parameters
    ----------
    channel_set : ChannelSet

    Raises
    ------
    ValidationError
        If `channel_set` is no set of channels.

    Notes
    -----
    ENVELOPE Definition 1, over all members.

    Examples
    --------
    >>> from cvxleak.measures import local_dp_epsilon_of_set
    >>> from cvxleak.model import ChannelSet
    >>> printed = ChannelSet.from_printed([[0.7, 0.3], [0.3, 0.7]], digits=1)
    >>> found = local_dp_epsilon_of_set(printed)
    >>> round(found.lower, 6), round(found.upper, 6)  # log(.65 / .35) and log(.75 / .25)
    (0.619039, 1.098612)
    """
    known = instance(channel_set, ChannelSet, "channel_set")
    low, high = (
        [[fraction(x) for x in row] for row in m.tolist()] for m in (known.lower, known.upper)
    )
    both = [list(zip(*ends, strict=True)) for ends in zip(low, high, strict=True)]
    # Where bounds sum to 1 but for a rounding, an entry is not out of its own.
    most = [
        [max(x, min(u, 1 - sum(own) + x)) for x, u in ends]
        for own, ends in zip(low, both, strict=True)
    ]
    least = [
        [min(u, max(x, 1 - sum(own) + u)) for x, u in ends]
        for own, ends in zip(high, both, strict=True)
    ]
    upper, worst = _largest(known, most, least)
    forced = any(
        max(column) > 0 and min(others) == 0
        for column, others in zip(zip(*least, strict=True), zip(*most, strict=True), strict=True)
    )
    if forced or upper == 0:
        return EpsilonOfSet(upper, upper, worst, worst)
    lower, private = 0.0, known.center
    best = local_dp_epsilon(private)
    while min(best, LARGEST) - lower > SHARP:
        epsilon = (lower + min(best, LARGEST)) / 2
        member, a, b = _nearest(known, math.exp(epsilon))
        reached = local_dp_epsilon(member)
        if reached < best - SHARP / 8:
            best, private = reached, member
        elif _excluded(low, high, a, b, Fraction(math.exp(epsilon))):
            lower = epsilon * (1 - 2.0**-50) - 2.0**-50
        else:
            break
    return EpsilonOfSet(max(lower, 0.0), upper, private, worst)


def _largest(channels: ChannelSet, most: Rows, least: Rows) -> tuple[float, Channel]:
    """Return the largest epsilon, rounded up, and a member that has it."""
    inputs, outputs = channels.shape
    ratio, place = max(
        (
            (most[x][y] / q if q else math.inf, (x, other, y))
            for x, other, y in product(range(inputs), range(inputs), range(outputs))
            if x != other and most[x][y] > (q := least[other][y])
        ),
        default=(1, None),
        key=lambda found: found[0],
    )
    if place is None:
        return 0.0, channels.center
    rows, (x, other, y) = np.array(channels.center.matrix), place
    for i, entry in ((x, most[x][y]), (other, least[other][y])):
        rows[i] = _with(channels.lower[i], channels.upper[i], y, float(entry))
    upper = math.log(ratio) * (1 + 2.0**-50) + 2.0**-50
    return upper, Channel(rows, channels.inputs, channels.outputs)


def _with(low: Array, high: Array, y: int, entry: float) -> Array:
    """Return a row within its box that has this entry."""
    others = np.arange(len(low)) != y
    room = (high - low)[others].sum()
    share = (1 - entry - low[others].sum()) / room if room > 0 else 0.0
    row = low + np.clip(share, 0.0, 1.0) * (high - low)
    row[y] = entry
    return row / row.sum()


def _nearest(channels: ChannelSet, f: float) -> tuple[Channel, Array, Array]:
    """Return the member that is nearest to t <= q <= f t for some t, and the multipliers."""
    (k, m), cells = channels.shape, channels.lower.size
    # Of q, row by row, of t and of the violation v: q / f - t <= v, t - q <= v.
    eye, columns = sparse.eye_array(cells), sparse.kron(np.ones((k, 1)), sparse.eye_array(m))
    slack = np.full((cells, 1), -1.0)
    rules = sparse.block_array([[eye / f, -columns, slack], [-eye, columns, slack]])
    sums = sparse.kron(sparse.eye_array(k), np.ones((1, m)))
    sums = sparse.block_array([[sums, sparse.coo_array((k, m + 1))]])
    low = np.concatenate([channels.lower.ravel(), np.zeros(m), [-1.0]])
    high = np.concatenate([channels.upper.ravel(), np.ones(m + 1)])
    found = linprog(
        np.eye(cells + m + 1)[-1],
        A_ub=rules,
        b_ub=np.zeros(2 * cells),
        A_eq=sums,
        b_eq=np.ones(k),
        bounds=np.stack([low, high], axis=1),
    )
    rows = np.clip(found.x[:cells], channels.lower.ravel(), channels.upper.ravel()).reshape(k, m)
    member = Channel(rows / rows.sum(axis=1, keepdims=True), channels.inputs, channels.outputs)
    b, a = np.maximum(-found.ineqlin.marginals, 0.0).reshape(2, k, m)
    return member, a, b


def _excluded(low: Rows, high: Rows, a: Array, b: Array, f: Fraction) -> bool:
    """Whether these multipliers prove, in rational numbers, that no member has log f or less."""
    exact_a, exact_b = ([[Fraction(x) for x in row] for row in m.tolist()] for m in (a, b))
    share = [
        min(Fraction(1), sum(own, Fraction(0)) / sum(other, Fraction(0)))
        if any(other)
        else Fraction(0)
        for own, other in zip(zip(*exact_a, strict=True), zip(*exact_b, strict=True), strict=True)
    ]
    total = Fraction(0)
    for least, most, row_a, row_b in zip(low, high, exact_a, exact_b, strict=True):
        prices = [s * y / f - x for s, y, x in zip(share, row_b, row_a, strict=True)]
        total += _least(least, most, prices)
    return total > 0


def _least(low: list[Fraction], high: list[Fraction], prices: list[Fraction]) -> Fraction:
    """Return the least <q, prices> of a row, which the cheapest outputs fill."""
    left, value = 1 - sum(low), sum(map(mul, low, prices), Fraction(0))
    for price, room in sorted(zip(prices, map(sub, high, low), strict=True)):
        taken = min(room, left)
        left, value = left - taken, value + taken * price
    return value
