"""Pictures (matplotlib, the ``plot`` extra): each draws one result on one pair of axes.

A bracket is shaded from its lower to its upper end, so that what is not known is seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak._validation import Array, instance, short
from cvxleak.errors import ValidationError
from cvxleak.measures import lumped_channel
from cvxleak.model import Channel, Prior, SourceSet
from cvxleak.problems import Adversary, LeakageCurve
from cvxleak.sweeps import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_adversary",
    "plot_bracket",
    "plot_channel",
    "plot_curve",
    "plot_posterior",
    "plot_prior",
    "plot_sources",
    "plot_sweep",
    "rise_from_zero",
]

INK = "#1f4e79"
"""One dark color, told apart from its own shade in print and by everybody."""

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where the certain laws on three outcomes are drawn."""

READABLE = 24
"""Up to this many cells in a row are labeled with their numbers."""


def plot_bracket(
    x: Sequence[float] | Array,
    lower: Sequence[float] | Array,
    upper: Sequence[float] | Array,
    *,
    falling: bool = False,
    label: str | None = None,
    color: str = INK,
    ax: Axes | None = None,
) -> Axes:
    """Draw a function that is known to lie between two others, and shade what is between.

    Parameters
    ----------
    x, lower, upper : array_like, shape (n,)
        Points in increasing order and both ends there.
    falling : bool
        The function is known at these points only, and never rises: between two points it is
        shaded from the lower end of the next one to the upper end of the one before.
    label : str, optional
        For the legend.
    color : str
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValidationError
        Different lengths, or matplotlib missing.

    Examples
    --------
    >>> from cvxleak.plots import plot_bracket
    >>> axes = plot_bracket([0, 1, 2], [0.9, 0.5, 0.1], [1.0, 0.6, 0.1], label="leakage")
    >>> len(axes.lines), len(axes.collections)
    (2, 1)
    """
    points, low, high = (np.asarray(part, dtype=float) for part in (x, lower, upper))
    if not points.shape == low.shape == high.shape or points.ndim != 1:
        raise ValidationError(
            f"lower, upper: found shapes {low.shape} and {high.shape}; x has {points.shape}"
        )
    axes = _axes(ax)
    if falling:
        below = np.append(low[1:], low[-1:])
        steps, styles = "post", ("steps-post", "steps-pre")
    else:
        below, steps, styles = low, None, ("default", "default")
    # A few points that were computed are told from what is between; a single one is no line.
    dot = "." if falling or len(points) <= READABLE else ""
    shade: dict[str, Any] = {"color": color, "alpha": 0.25, "linewidth": 0}
    line: dict[str, Any] = {"color": color, "marker": dot}
    axes.fill_between(points, below, high, step=steps, **shade)
    axes.plot(points, high, linewidth=1.4, label=label, drawstyle=styles[0], **line)
    axes.plot(points, low, linewidth=0.8, linestyle="--", drawstyle=styles[1], **line)
    if len(points) > 1:
        # Room for the marks at both ends, and for a curve that was drawn before.
        room = 0.02 * float(np.ptp(points)) if dot else 0.0
        ends = [points.min() - room, points.max() + room]
        if len(axes.lines) > 2:
            ends = [min(ends[0], axes.get_xlim()[0]), max(ends[1], axes.get_xlim()[1])]
        axes.set_xlim(*ends)
    return axes


def plot_curve(curve: LeakageCurve, *, label: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw L(b), the most that an adversary with at least b of doubt learns about one record.

    Parameters
    ----------
    curve : LeakageCurve
        What `leakage_curve` returned.
    label, ax
        As for `plot_bracket`.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.plots import plot_curve
    >>> from cvxleak.problems import leakage_curve
    >>> from cvxleak.queries import parity
    >>> curve = leakage_curve(Mechanism(parity(2), binary_symmetric(0.1)), [0, 0.7, 1.2])
    >>> plot_curve(curve).get_xlabel()
    'entropy floor b (nats)'
    """
    instance(curve, LeakageCurve, "curve")
    unit = curve.bounds[0].unit
    floors = curve.entropy_floors
    axes = plot_bracket(floors, curve.lower, curve.upper, falling=True, label=label, ax=ax)
    axes.set_xlabel("entropy floor b (nats)")  # whatever the unit of the leakage
    axes.set_ylabel(f"record leakage L(b) ({unit})")
    rise_from_zero(axes)
    return axes


def plot_sweep(
    results: Sweep, coordinate: str, *, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the bounds of a sweep over one of its coordinates; points without a bound are left out.

    Parameters
    ----------
    results : Sweep
        What `sweep` returned. Its other coordinates must have one value each.
    coordinate : str
        Whose values go along the horizontal axis.
    label, ax
        As for `plot_bracket`.

    Raises
    ------
    ValidationError
        No such coordinate, values that are no numbers, or another coordinate that varies.

    Examples
    --------
    >>> from cvxleak import capacity
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.plots import plot_sweep
    >>> from cvxleak.sweeps import sweep
    >>> results = sweep(lambda flip: capacity(binary_symmetric(flip)), {"flip": [0.1, 0.3]})
    >>> plot_sweep(results, "flip").get_xlabel()
    'flip'
    """
    instance(results, Sweep, "results")
    rows = [row for row in results if not np.isnan(row.lower)]
    if not rows or coordinate not in rows[0].point:
        known = sorted(rows[0].point) if rows else []
        raise ValidationError(f"coordinate: found {short(coordinate)}; it must be one of {known}")
    others = {tuple(v for k, v in row.point.items() if k != coordinate) for row in rows}
    if len(others) > 1:
        raise ValidationError(
            "results: more than one coordinate varies; draw one curve for each value of the others"
        )
    try:
        rows.sort(key=lambda row: float(row.point[coordinate]))
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"coordinate: {coordinate!r} has values that are no numbers"
        ) from error
    axes = plot_bracket(
        [float(row.point[coordinate]) for row in rows],
        [row.lower for row in rows],
        [row.upper for row in rows],
        label=label,
        ax=ax,
    )
    axes.set_xlabel(coordinate)
    axes.set_ylabel(rows[0].unit or "value")
    return axes


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
    axes = _heat(channel.matrix, channel.inputs, channel.outputs, ax)
    axes.set_xlabel("output")
    axes.set_ylabel("input")
    return axes


def plot_prior(prior: Prior, *, ax: Axes | None = None) -> Axes:
    """Draw a probability distribution as bars.

    Examples
    --------
    >>> from cvxleak import Prior
    >>> from cvxleak.plots import plot_prior
    >>> len(plot_prior(Prior([0.2, 0.8], ["no", "yes"])).patches)
    2
    """
    instance(prior, Prior, "prior")
    axes = _axes(ax)
    axes.bar(range(len(prior)), prior.probabilities, width=_width(len(prior)), color=INK)
    rise_from_zero(axes)
    _ticks(axes.xaxis, axes.set_xticks, prior.labels)
    axes.set_ylabel("probability")
    return axes


def plot_sources(sources: SourceSet, *, ax: Axes | None = None) -> Axes:
    """Draw a source set on three outcomes in the triangle of all laws (HAMMING Figures 1 to 3).

    Convex parts are filled, single laws are dots; the lines part the six orders of the outcomes and
    meet in the uniform law.

    Raises
    ------
    ValidationError
        Not a source set on three outcomes.

    Examples
    --------
    >>> from cvxleak.model import SourceSet
    >>> from cvxleak.plots import plot_sources
    >>> box = SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3], labels=["a", "b", "c"])
    >>> len(plot_sources(box).patches)
    1
    """
    instance(sources, SourceSet, "sources")
    if sources.size != 3:
        raise ValidationError(f"sources: found {sources.size} outcomes; a triangle has three")
    axes = _axes(ax)
    axes.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.2", linewidth=1.0)
    for i in range(3):
        middle = np.delete(CORNERS, i, axis=0).mean(axis=0)
        axes.plot(*np.array([CORNERS[i], middle]).T, color="0.7", linewidth=0.6)
        away = CORNERS[i] - CORNERS.mean(axis=0)
        axes.annotate(
            _text(sources.labels[i]),
            CORNERS[i],
            16 * away,
            textcoords="offset points",
            ha="center",
            va="center",
        )
    turns = np.linspace(0.0, 2 * np.pi, 181)
    costs: Array = np.column_stack([np.cos(turns), np.sin(turns)]) @ CORNERS.T
    for part in sources.parts:
        # The extreme laws in many directions, in their order around the part.
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
    """Draw what an adversary believes about the record before and after each output.

    Parameters
    ----------
    adversary : Adversary
        The `witness` of an audit, say.

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
    law, channel = lumped_channel(adversary.weights, adversary.lumped)
    after = channel.posterior(law)
    beliefs = np.column_stack([law.probabilities, after.matrix.T])
    axes = _heat(beliefs, law.labels, ("before", *after.inputs), ax)
    axes.axvline(0.5, color="white", linewidth=4)
    axes.set_xlabel("belief before, and after each output")
    axes.set_ylabel("value of the record")
    return axes


def plot_adversary(adversary: Adversary, *, ax: Axes | None = None) -> Axes:
    """Draw what an adversary believes before any output: a bar for each value of the query.

    Each bar is divided by the value of the record. What the query does not tell apart, and has the
    same output law, is one bar.

    Parameters
    ----------
    adversary : Adversary
        The `witness` of an audit, say.

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
    axes = _axes(ax)
    from matplotlib import colormaps

    shades = np.linspace(0.35, 1.0, len(lumped.values))
    for a, (value, row) in enumerate(zip(lumped.values, heights, strict=True)):
        color = colormaps["Blues"](shades[a])
        below = heights[:a].sum(axis=0)
        look: dict[str, Any] = {"width": _width(len(bars)), "color": color, "label": _text(value)}
        axes.bar(range(len(bars)), row, bottom=below, **look)
    names = [bar[0] if len(bar) == 1 else " or ".join(map(str, bar)) for bar in bars]
    _ticks(axes.xaxis, axes.set_xticks, names)
    rise_from_zero(axes)
    axes.set_xlabel("value of the query")
    axes.set_ylabel("probability")
    if len(lumped.values) <= READABLE // 2:
        # Above the bars, which may leave no room between them.
        above: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 6}
        small: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small"}
        axes.legend(title="value of the record", frameon=False, **above, **small)
    return axes


def rise_from_zero(axes: Axes) -> None:
    """Let the vertical axis begin at 0 and end above all that is drawn, flat lines included.

    Examples
    --------
    >>> from cvxleak.plots import plot_bracket, rise_from_zero
    >>> axes = plot_bracket([0, 1], [2.0, 2.0], [2.0, 2.0])
    >>> rise_from_zero(axes)
    >>> [round(float(end), 3) for end in axes.get_ylim()]
    [0.0, 2.12]
    """
    _axes(axes)
    top = float(axes.dataLim.y1)
    axes.set_ylim(0.0, 1.06 * top if np.isfinite(top) and top > 0 else 1.0)


def _around(places: Array) -> Array:
    """Return the corners of a convex set, without those inside, in their order around it."""
    if len(places) < 3:
        return places
    turns = np.linspace(0.0, 2 * np.pi, 721)
    directions = np.column_stack([np.cos(turns), np.sin(turns)])
    order = np.argmax(places @ directions.T, axis=0)
    kept = order[np.append(True, np.diff(order) != 0)]
    return places[kept[:-1] if len(kept) > 1 and kept[0] == kept[-1] else kept]


def _axes(ax: Axes | None) -> Axes:
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValidationError(
            "ax: pictures need matplotlib: pip install 'cvxleak[plot]'"
        ) from error
    if ax is not None:
        return instance(ax, Axes, "ax")
    # Not through pyplot: no window, no global state, and nothing to close.
    return Figure(figsize=(6.0, 4.0), layout="constrained").subplots()


def _heat(
    matrix: Array, rows: Sequence[Hashable], columns: Sequence[Hashable], ax: Axes | None
) -> Axes:
    axes = _axes(ax)
    image = axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=matrix.max(), aspect="auto")
    _ticks(axes.xaxis, axes.set_xticks, columns)
    _ticks(axes.yaxis, axes.set_yticks, rows)
    if max(matrix.shape) <= READABLE // 2:
        for (i, j), value in np.ndenumerate(matrix):
            shade = "white" if value > 0.55 * matrix.max() else "black"
            number = f"{value:.3f}".rstrip("0").rstrip(".")
            axes.text(j, i, number, ha="center", va="center", color=shade, fontsize="small")
    else:
        axes.figure.colorbar(image, ax=axes, label="probability")
    return axes


def _width(bars: int) -> float:
    # Gaps between many bars would flicker.
    return 0.8 if bars <= READABLE else 1.0


def _ticks(axis: Any, place: Any, labels: Sequence[Hashable]) -> None:
    """Label each cell, or so many that they can be read."""
    step = -(-len(labels) // READABLE)
    shown = range(0, len(labels), step)
    names = [_text(labels[i]) for i in shown]
    crowded = axis.axis_name == "x" and sum(len(name) + 2 for name in names) > 60
    size = "small" if len(names) > READABLE // 2 else None
    place(shown, names, rotation=90 if crowded else 0, fontsize=size)


def _text(label: Hashable) -> str:
    text = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
    text = text if len(text) <= 16 else text[:15] + "…"
    return text.replace("$", r"\$")  # a dollar would begin a formula
