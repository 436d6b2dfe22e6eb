"""Plots of distributions and channels, and of an adversary's beliefs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.audit import Adversary
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance
from cvxleak.core.wording import counted
from cvxleak.measures import lumped_channel
from cvxleak.model import Channel, Prior
from cvxleak.model.prior import named_law
from cvxleak.plots._axes import (
    INK,
    READABLE,
    bar_width,
    checked_axes,
    heat,
    label_text,
    rise_from_zero,
    ticks,
)
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_adversary", "plot_channel", "plot_posterior", "plot_prior", "plot_sources"]

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where the certain distributions on three outcomes are drawn."""


def plot_channel(channel: Channel, *, ax: Axes | None = None) -> Axes:
    """Draw a channel's matrix: a row for each input, a column for each output.

    Examples
    --------
    >>> from cvxleak.mechanisms import randomized_response
    >>> from cvxleak.plots import plot_channel
    >>> plot_channel(randomized_response(3, 1.0)).get_xlabel()
    'output'
    """
    instance(channel, Channel, "channel")
    axes = heat(channel.matrix, channel.inputs, channel.outputs, ax)
    axes.set_xlabel("output")
    axes.set_ylabel("input")
    return axes


def plot_prior(prior: Prior | Mapping[Any, Any], *, ax: Axes | None = None) -> Axes:
    """Draw a probability distribution as bars.

    Examples
    --------
    >>> from cvxleak import Prior
    >>> from cvxleak.plots import plot_prior
    >>> len(plot_prior(Prior([0.2, 0.8], ["no", "yes"])).patches)
    2
    """
    prior = instance(named_law(prior), Prior, "prior")
    axes = checked_axes(ax)
    axes.bar(range(len(prior)), prior.probabilities, width=bar_width(len(prior)), color=INK)
    rise_from_zero(axes)
    ticks(axes.xaxis, axes.set_xticks, prior.labels)
    axes.set_ylabel("probability")
    return axes


def plot_sources(sources: SourceSet, *, ax: Axes | None = None) -> Axes:
    """Draw a source set on three outcomes in the probability simplex (HAMMING Figures 1 to 3).

    Convex parts are filled, single distributions are dots. The lines separate the six orders of the
    outcomes and meet at the uniform distribution.

    Raises
    ------
    ValidationError
        Not a source set on three outcomes.

    Examples
    --------
    >>> from cvxleak.sources import SourceSet
    >>> from cvxleak.plots import plot_sources
    >>> box = SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3], labels=["a", "b", "c"])
    >>> len(plot_sources(box).patches)
    1
    """
    instance(sources, SourceSet, "sources")
    if sources.size != 3:
        raise ValidationError(
            f"sources: found {counted(sources.size, 'outcome')}; a triangle has three"
        )
    axes = checked_axes(ax)
    axes.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.2", linewidth=1.0)
    for i in range(3):
        middle = np.delete(CORNERS, i, axis=0).mean(axis=0)
        axes.plot(*np.array([CORNERS[i], middle]).T, color="0.7", linewidth=0.6)
        away = CORNERS[i] - CORNERS.mean(axis=0)
        axes.annotate(
            label_text(sources.labels[i]),
            CORNERS[i],
            16 * away,
            textcoords="offset points",
            ha="center",
            va="center",
        )
    turns = np.linspace(0.0, 2 * np.pi, 181)
    costs: Array = np.column_stack([np.cos(turns), np.sin(turns)]) @ CORNERS.T
    for part in sources.parts:
        # The extreme distributions in many directions, in their order around the part.
        laws = [part.points[np.argmax(part.points @ c)] for c in costs if len(part.points)]
        laws += [body.support(c).point for body in part.polytopes for c in costs]
        different: Any = np.unique(np.round(np.array(laws, float), 12), axis=0)
        x, y = _around(np.matmul(different, CORNERS)).T
        if len(x) > 2:
            axes.fill(x, y, facecolor=INK, alpha=0.4)
        axes.plot(
            np.append(x, x[0]), np.append(y, y[0]), color=INK, marker="o" if len(x) < 3 else ""
        )
    axes.set_aspect("equal")
    axes.axis("off")
    return axes


def plot_posterior(adversary: Adversary, *, ax: Axes | None = None) -> Axes:
    """Draw an adversary's belief about the record before the output and after each output.

    Parameters
    ----------
    adversary : Adversary
        For example the `witness` of an audit.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.plots import plot_posterior
    >>> from cvxleak.queries import parity
    >>> bound = record_leakage(Mechanism(parity(2), binary_symmetric(0.1)), entropy_floor=0.5)
    >>> plot_posterior(bound.witness).get_ylabel()
    'value of the record'
    """
    instance(adversary, Adversary, "adversary")
    channel, law = lumped_channel(adversary.weights, adversary.lumped)
    after = channel.posterior(law)
    beliefs = np.column_stack([law.probabilities, after.matrix.T])
    axes = heat(beliefs, law.labels, ("before", *after.inputs), ax)
    axes.axvline(0.5, color="white", linewidth=4)
    axes.set_xlabel("belief before, and after each output")
    axes.set_ylabel("value of the record")
    return axes


def plot_adversary(adversary: Adversary, *, ax: Axes | None = None) -> Axes:
    """Draw an adversary's prior belief: a bar for each value of the query.

    Each bar is divided by the value of the record. Values of the query with the same output
    distribution share one bar.

    Parameters
    ----------
    adversary : Adversary
        For example the `witness` of an audit.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.plots import plot_adversary
    >>> from cvxleak.queries import parity
    >>> bound = record_leakage(Mechanism(parity(2), binary_symmetric(0.1)), entropy_floor=0.5)
    >>> plot_adversary(bound.witness).get_xlabel()
    'value of the query'
    """
    instance(adversary, Adversary, "adversary")
    lumped = adversary.lumped
    order = {value: place for place, value in enumerate(adversary.mechanism.query.values)}
    bars = sorted(set(lumped.contexts), key=lambda values: [order[value] for value in values])
    place = {bar: x for x, bar in enumerate(bars)}
    heights = np.zeros((len(lumped.values), len(bars)))
    for a, context, weight in zip(
        lumped.value_index, lumped.contexts, adversary.weights, strict=True
    ):
        heights[a, place[context]] += weight
    axes = checked_axes(ax)
    from matplotlib import colormaps

    shades = np.linspace(0.35, 1.0, len(lumped.values))
    for a, (value, row) in enumerate(zip(lumped.values, heights, strict=True)):
        color = colormaps["Blues"](shades[a])
        below = heights[:a].sum(axis=0)
        look: dict[str, Any] = {
            "width": bar_width(len(bars)),
            "color": color,
            "label": label_text(value),
        }
        axes.bar(range(len(bars)), row, bottom=below, **look)
    names = [bar[0] if len(bar) == 1 else " or ".join(map(str, bar)) for bar in bars]
    ticks(axes.xaxis, axes.set_xticks, names)
    rise_from_zero(axes)
    axes.set_xlabel("value of the query")
    axes.set_ylabel("probability")
    if len(lumped.values) <= READABLE // 2:
        # Above the bars, which may leave no room between them.
        above: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 6}
        small: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small"}
        axes.legend(title="value of the record", frameon=False, **above, **small)
    return axes


def _around(places: Array) -> Array:
    """Return the corners of a convex set, without those inside, in their order around it."""
    if len(places) < 3:
        return places
    turns = np.linspace(0.0, 2 * np.pi, 721)
    directions = np.column_stack([np.cos(turns), np.sin(turns)])
    order = np.argmax(places @ directions.T, axis=0)
    kept = order[np.append(True, np.diff(order) != 0)]
    return places[kept[:-1] if len(kept) > 1 and kept[0] == kept[-1] else kept]
