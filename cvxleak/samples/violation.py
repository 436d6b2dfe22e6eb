"""`DPViolation`: the (epsilon, delta) that a mechanism violates, and the event that proves it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from flint import arb
from numpy.typing import NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, in_order, instance, plain_label, real_number, short
from cvxleak.core.value import preview
from cvxleak.core.wording import rounded
from cvxleak.kernel.numbers import ball, largest, least, lower, precision, total, upper
from cvxleak.model import ChannelSet

__all__ = ["DPViolation", "dp_violation"]

Event = NDArray[np.bool_]


@dataclass(frozen=True)
class DPViolation:
    """An event whose probabilities under two secrets violate (epsilon, delta)-differential privacy.

    No channel of the set is (e, `delta`)-differentially private for any e < `epsilon`: P(event |
    first) >= `least` and P(event | second) <= `most`, and for such e, `least` > exp(e) `most` +
    `delta`.

    Attributes
    ----------
    epsilon : float
        In nats; 0 if no event proves a violation.
    delta : float
    first, second : hashable
        The two secrets.
    event : tuple of hashable
        Outputs.
    least, most : float
        The bounds on the two probabilities, over all channels of the set.

    Examples
    --------
    >>> from cvxleak.samples import channels_from_counts, dp_violation
    >>> print(dp_violation(channels_from_counts([[900, 100], [120, 880]])))
    not (epsilon, 0)-private for epsilon below 1.936: P([1] | 1) >= 0.855, P([1] | 0) <= 0.1233
    """

    epsilon: float
    delta: float
    first: Hashable
    second: Hashable
    event: tuple[Hashable, ...]
    least: float
    most: float

    @property
    def why(self) -> str:
        """The event and the bounds on its probabilities, in words."""
        if self.epsilon == 0:
            return f"no epsilon above 0 is ruled out at delta = {self.delta:g}"
        event = preview(self.event)
        return (
            f"P({event} | {self.first!r}) >= {rounded(self.least)}, "
            f"P({event} | {self.second!r}) <= {rounded(self.most, up=True)}"
        )

    def __str__(self) -> str:
        if self.epsilon == 0:
            return self.why
        level = f"(epsilon, {self.delta:g})"
        return f"not {level}-private for epsilon below {rounded(self.epsilon)}: {self.why}"


def dp_violation(
    channels: ChannelSet,
    delta: float = 0.0,
    pairs: Iterable[tuple[Hashable, Hashable]] | None = None,
) -> DPViolation:
    """Return a lower bound on epsilon, at a given delta, for every channel of a set.

    max over pairs (x, x') and events S of log((min Q(S|x) - delta) / max Q(S|x')), with minimum and
    maximum over the set. It bounds epsilon of local differential privacy from below; with `pairs`
    of neighbors, of central differential privacy.

    Parameters
    ----------
    channels : ChannelSet
        For example the channels that are compatible with counts (`channels_from_counts`). The
        result then holds with their confidence, simultaneously for all events, pairs and values of
        delta.
    delta : float
        From 0 to 1.
    pairs : iterable of pairs of inputs, optional
        The pairs of inputs that must be hard to distinguish, in both orders; all pairs if left out.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or a pair that is not two inputs.

    Notes
    -----
    The probability of an event is at least the sum of the lower ends of its outputs, and at least 1
    minus the sum of the upper ends of the other outputs; upper bounds are analogous. For each of
    the four resulting bounds on the ratio, the best event consists of the outputs whose own ratio
    is above some level, so it is found by sorting.

    Examples
    --------
    >>> from cvxleak.model import ChannelSet
    >>> from cvxleak.samples import dp_violation
    >>> found = dp_violation(ChannelSet.from_printed([[0.8, 0.2], [0.3, 0.7]], digits=1))
    >>> found.first, found.second, found.event, round(found.epsilon, 4)
    (1, 0, (1,), 0.9555)
    """
    inputs = instance(channels, ChannelSet, "channels").inputs
    allowed = real_number(delta, "delta", 0.0, 1.0)
    best, found = 1.0, None
    for x, other in _places(inputs, pairs):
        for order in _orders(channels, x, other):
            ratios = _ratios(channels, x, other, order, allowed)
            size = int(np.argmax(ratios))
            if ratios[size] > best:
                best, found = ratios[size], (x, other, order[: size + 1])
    if found is None:
        return DPViolation(0.0, allowed, inputs[0], inputs[0], (), 1.0, 1.0)
    x, other, outputs = found
    event = np.isin(np.arange(len(channels.outputs)), outputs)
    with precision():
        below, above = _ends(channels, x, other, event)
        room = below - ball(allowed)
        if above == 0:
            epsilon = math.inf if room > 0 else 0.0
        else:
            epsilon = max(lower((room / above).log()), 0.0) if room > 0 else 0.0
        ends = max(lower(below), 0.0), upper(above)
    labels = tuple(channels.outputs[y] for y in np.flatnonzero(event))
    return DPViolation(epsilon, allowed, inputs[x], inputs[other], labels, *ends)


def _places(
    inputs: tuple[Hashable, ...], pairs: Iterable[tuple[Hashable, Hashable]] | None
) -> list[tuple[int, int]]:
    """Return the ordered pairs of inputs, by number."""
    if pairs is None:
        return list(permutations(range(len(inputs)), 2))
    places: dict[tuple[int, int], None] = {}
    for pair in in_order(pairs, "pairs"):
        labels = [plain_label(label, "pairs") for label in in_order(pair, "pairs")]
        if len(labels) != 2 or any(label not in inputs for label in labels):
            raise ValidationError(
                f"pairs: found {short(pair)}; pairs of the inputs {preview(inputs)} are needed"
            )
        x, other = map(inputs.index, labels)
        places |= dict.fromkeys([(x, other), (other, x)])
    return list(places)


def _orders(channels: ChannelSet, x: int, other: int) -> Iterator[NDArray[np.intp]]:
    """Yield orders of the outputs such that the best event consists of the first ones of one."""
    for over in (channels.lower[x], channels.upper[x]):
        for under in (channels.lower[other], channels.upper[other]):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(over > 0, over / under, 0.0)
            yield np.argsort(-ratio, kind="stable")


def _ratios(
    channels: ChannelSet, x: int, other: int, order: NDArray[np.intp], delta: float
) -> Array:
    """Return (least - delta) / most of the events of the first 1, 2, ... outputs of an order."""
    rows = (channels.lower[x], channels.upper[x], channels.lower[other], channels.upper[other])
    low, high, low_other, high_other = (np.cumsum(row[order]) for row in rows)
    least = np.maximum(low, 1 - (high[-1] - high))
    most = np.minimum(high_other, 1 - (low_other[-1] - low_other))
    # The whole set of outputs, the last event, has both ends at 1.
    room = np.maximum(least[:-1] - delta, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(room > 0, room / np.maximum(most[:-1], 0.0), 0.0)
    return np.append(found, 0.0)


def _ends(channels: ChannelSet, x: int, other: int, event: Event) -> tuple[arb, arb]:
    """Return what Q(event|x) is at least and Q(event|other) at most, over the set."""

    def mass(ends: Array, mask: Event) -> arb:
        return total(ball(end) for end in ends[mask].tolist())

    below = largest([mass(channels.lower[x], event), 1 - mass(channels.upper[x], ~event)])
    above = least([mass(channels.upper[other], event), 1 - mass(channels.lower[other], ~event)])
    return below, above
