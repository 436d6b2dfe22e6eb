"""Bounds on the capacities of the channels of a set, and the kernel's terms for capacities."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.iterative.interior_point import FLOOR, capacity_interior_point
from cvxleak.kernel.numbers import precision
from cvxleak.measures import mutual_information
from cvxleak.model import Channel, ChannelSet, Prior
from cvxleak.problem import Gap
from cvxleak.problem.bound import Stopped
from cvxleak.problem.problem import Found
from cvxleak.proofs.checker import PROVERS
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["capacity_of_set", "largest_divergence", "point_of"]

METHOD = (
    "best input distributions and furthest rows by turns, because each row of a set of channels is "
    "only known to lie in a box"
)

TURNS = 50
"""Most rounds that add the rows furthest from the output distribution of the rows so far."""

SPECK = 1e-12
"""Share of the prior that is mixed into the posteriors; any share is valid."""

Term = dict[str, Any]


def point_of(law: Array, channel: Channel | ChannelSet | None = None) -> Term:
    """Return the term of a lower end, from a distribution of the input.

    Over a set it has the posteriors at the set's center, with a little of the prior mixed in.
    """
    term: Term = {"rule": "point", "weights": law.tolist()}
    if isinstance(channel, ChannelSet):
        joint = np.maximum(law[:, None] * (channel.center.matrix + SPECK), 1e-300)
        term["posteriors"] = (joint / joint.sum(axis=0)).tolist()
    return term


def largest_divergence(output: Array, inputs: int) -> Term:
    """Return the term of an upper end: the largest divergence from an output distribution."""
    values = [{"rule": "vertices"}] * inputs
    return _closed({"rule": "share", "t": output.tolist(), "values": values})


def _closed(term: Term) -> Term:
    return {"rule": "close", "multiplier": 0, "limits": [], "of": term}


def capacity_of_set(channels: ChannelSet, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
    """Return lower and upper bound on the capacity of every channel of a set.

    No capacity exceeds min over output distributions t of max_x max_{q in the box of x} D(q || t),
    that of a channel with all rows of all boxes as inputs: by turns t is made best for the rows so
    far, and each box's row that is furthest from t joins them. That an input has one row in a
    channel is not used, so `attained` may be more than a member's capacity. The lower end is the
    least I(p, .) over the boxes, bounded by its tangent at the center (`cvxleak.kernel.leakage`),
    for the distribution p that is best at the center or
    with the most telling rows.
    """
    size = len(channels.inputs)
    rows, owner = channels.center.matrix, np.arange(size)
    inputs = [_best(rows, gap, clock)]
    attained, output = 0.0, inputs[0] @ rows
    stopped = Stopped.WORK_LIMIT
    for _ in range(TURNS):
        spend(1e3 * channels.lower.size * channels.lower.shape[1])
        furthest = _furthest(channels, output)
        above = float(_divergences(furthest, output).max())
        if above <= attained + gap.allowed(above) / 4:
            # What the proof leaves open is between these rows and the furthest ones.
            stopped = Stopped.NO_PROGRESS
            break
        rows, owner = np.vstack([rows, furthest]), np.append(owner, np.arange(size))
        law = _best(rows, gap, clock)
        output = law @ rows
        attained = mutual_information(rows, law)
        inputs = [inputs[0], np.bincount(owner, weights=law, minlength=size)]
        if clock.late:
            stopped = Stopped.at_limit(clock)
            break
    output = np.maximum(output, FLOOR)
    stored = {"lower": channels.lower.tolist(), "upper": channels.upper.tolist()}
    lows = [point_of(law, channels) for law in inputs]
    highs = [largest_divergence(output, size), _closed({"rule": "alphabet"})]
    prove = PROVERS["capacity"].prove
    with precision():
        lowers = [prove(stored, term, {})[0] for term in lows]
        uppers = [prove(stored, {}, term)[1] for term in highs]
    best, least = int(np.argmax(lowers)), int(np.argmin(uppers))
    lower, upper = lowers[best], uppers[least]
    found = Found(
        lower,
        upper,
        Prior(inputs[best], channels.inputs),
        (stored, lows[best], highs[least]),
        stats={"method": METHOD},
        attained=min(max(attained, lower), upper),
    )
    return found, stopped


def _best(rows: Array, gap: Gap, clock: Clock) -> Array:
    run = capacity_interior_point(rows, tol=gap.absolute / 4, max_iterations=100, **clock.limits)
    return run.point / run.point.sum()


def _divergences(rows: Array, output: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(rows > 0, rows * np.log(rows / output), 0.0)
    return terms.sum(axis=1)


def _furthest(channels: ChannelSet, output: Array) -> Array:
    """Return a row of each box far from the output distribution."""
    boxes = zip(channels.lower, channels.upper, channels.center.matrix, strict=True)
    return np.array([_furthest_in(low, high, row, output) for low, high, row in boxes])


def _furthest_in(low: Array, high: Array, center: Array, output: Array) -> Array:
    """Return a row of a box far from the output distribution: a vertex that is a local maximum.

    The divergence is convex, so each row is followed by the best one for its tangent. The first
    ones are the best for the center's tangent and for the chords, without and with one output put
    before or after all others.
    """
    log_output = np.log(np.maximum(output, 1e-300))
    ends = np.stack([low, high])
    (at_low, at_high) = ends * (np.log(np.maximum(ends, 1e-300)) - log_output)
    chords = (at_high - at_low) / np.maximum(high - low, 1e-300)
    first = (1 + np.ptp(chords)) * np.eye(len(low))
    prices = np.vstack(
        [np.log(np.maximum(center, 1e-300)) - log_output, chords, chords + first, chords - first]
    )
    best, far = center, float(_divergences(center[None], output)[0])
    for _ in range(TURNS):
        rows = largest_rows(low[None, None], high[None, None], prices[None])[0, :, 0]
        rows /= rows.sum(axis=1, keepdims=True)
        reached = _divergences(rows, output)
        if not reached.max() > far + 1e-15:
            break
        best, far = rows[reached.argmax()], float(reached.max())
        prices = np.log(np.maximum(rows, 1e-300)) - log_output
    return best
