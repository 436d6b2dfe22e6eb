"""Local differential privacy of a channel that is known only to lie in a set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from cvxleak.core.validation import Array, instance
from cvxleak.measures import local_dp_epsilon
from cvxleak.model import Channel, ChannelSet
from cvxleak.proofs import Certificate
from cvxleak.proofs.exact import rational
from cvxleak.proofs.local_dp_of_set import Boxes, prove

__all__ = ["EpsilonOfSet", "local_dp_epsilon_of_set"]

LARGEST = 50.0
"""Nats from where on it is not asked whether a member needs more."""

SHARP = 1e-7


@dataclass(frozen=True)
class EpsilonOfSet:
    """Bounds on the epsilon of local differential privacy of the channels of a set.

    Attributes
    ----------
    lower : float
        Lower bound on every member's epsilon, in nats.
    upper : float
        Upper bound on every member's epsilon.
    most_private : Channel
        A member (up to rounding) whose epsilon is close to `lower`.
    least_private : Channel
        A member (up to rounding) whose epsilon is `upper`.
    certificate : Certificate or None
        Proves both bounds; checked by `cvxleak.verify`.

    Examples
    --------
    >>> from cvxleak.local_dp import EpsilonOfSet
    >>> from cvxleak.model import Channel
    >>> channel = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> EpsilonOfSet(1.0986, 1.0987, channel, channel).upper
    1.0987
    """

    lower: float
    upper: float
    most_private: Channel
    least_private: Channel
    certificate: Certificate | None = field(default=None, repr=False)


def local_dp_epsilon_of_set(channel_set: ChannelSet) -> EpsilonOfSet:
    """Bound the least epsilon of each channel of a set, in nats.

    Each row is an arbitrary distribution within its bounds, independently of the others, so the
    largest epsilon is

        max over x != x', y of log( max q(y|x) / min q(y|x') ),

    with max q(y|x) = min(u_xy, 1 - sum of the other l) and min q(y|x) = max(l_xy, 1 - sum of the
    other u). A member has an epsilon of log f or less if t_y <= q(y|x) <= f t_y for some t >= 0,
    which is a linear program for each f. No member has it if, for some a, b >= 0 with
    sum_x b_xy <= sum_x a_xy,

        sum_x min over rows q of sum_y (b_xy / f - a_xy) q_y > 0,

    since it is at most sum b (q / f - t) + a (t - q) <= 0 otherwise. The lower bound is the log of
    an f for which this holds in rational numbers, with the multipliers of the linear program. The
    certificate proves both bounds (kind ``local-dp-of-set``).

    Parameters
    ----------
    channel_set : ChannelSet

    Raises
    ------
    ValidationError
        If `channel_set` is not a `ChannelSet`.

    Notes
    -----
    ENVELOPE Definition 1, over all members.

    Examples
    --------
    >>> from cvxleak import verify
    >>> from cvxleak.local_dp import local_dp_epsilon_of_set
    >>> from cvxleak.model import ChannelSet
    >>> printed = ChannelSet.from_printed([[0.7, 0.3], [0.3, 0.7]], digits=1)
    >>> found = local_dp_epsilon_of_set(printed)
    >>> round(found.lower, 6), round(found.upper, 6)  # log(0.65 / 0.35) and log(0.75 / 0.25)
    (0.619039, 1.098612)
    >>> verify(found.certificate).passed
    True
    """
    known = instance(channel_set, ChannelSet, "channel_set")
    boxes = Boxes(known)
    worst = _least_private(known, boxes)
    if boxes.told:
        return _proved(known, worst, worst, {})
    lower, private, proof = 0.0, known.center, {}
    best = local_dp_epsilon(private)
    while min(best, LARGEST) - lower > SHARP:
        epsilon = (lower + min(best, LARGEST)) / 2
        member, a, b = _nearest(known, math.exp(epsilon))
        reached = local_dp_epsilon(member)
        if reached < best - SHARP / 8:
            best, private = reached, member
            continue
        level = math.exp(epsilon)
        if not boxes.exclude(rational(level), *(_rationals(m) for m in (a, b))):
            break
        lower, proof = epsilon, {"level": level, "a": a.tolist(), "b": b.tolist()}
    return _proved(known, private, worst, proof)


def _proved(
    known: ChannelSet, private: Channel, worst: Channel, proof: dict[str, Any]
) -> EpsilonOfSet:
    """Return the bounds that these parts prove."""
    problem = {"lower": known.lower.tolist(), "upper": known.upper.tolist()}
    witness = {"most_private": private.matrix.tolist(), "least_private": worst.matrix.tolist()}
    lower, upper = prove(problem, witness, proof)
    certificate = Certificate("local-dp-of-set", problem, lower, upper, witness, proof)
    return EpsilonOfSet(lower, upper, private, worst, certificate)


def _least_private(channels: ChannelSet, boxes: Boxes) -> Channel:
    """Return a member that has the largest epsilon."""
    place = boxes.worst()
    if place is None:
        return channels.center
    rows, (x, other, y) = np.array(channels.center.matrix), place
    for i, entry in ((x, boxes.most[x][y]), (other, boxes.least[other][y])):
        near = int(entry.p) / int(entry.q)
        rows[i] = _with(channels.lower[i], channels.upper[i], y, near)
    return Channel(rows, channels.inputs, channels.outputs)


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
    # What the program leaves of a row is spread over its box, and the rounding of that divided out.
    missing = 1 - rows.sum(axis=1, keepdims=True)
    room = np.where(missing > 0, channels.upper - rows, rows - channels.lower)
    rows += missing * room / np.maximum(room.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    member = Channel(rows / rows.sum(axis=1, keepdims=True), channels.inputs, channels.outputs)
    b, a = np.maximum(-found.ineqlin.marginals, 0.0).reshape(2, k, m)
    return member, a, b


def _rationals(multipliers: Array) -> list[list[Any]]:
    return [[rational(x) for x in row] for row in multipliers.tolist()]
