"""Axes: creating and labeling them, and heat maps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "INK",
    "READABLE",
    "bar_width",
    "checked_axes",
    "heat",
    "label_text",
    "rise_from_zero",
    "ticks",
]

INK = "#1f4e79"
"""One dark color, which can be distinguished from its own shade in print and by all readers."""

READABLE = 24
"""Up to this many cells in a row are labeled with their numbers."""


def checked_axes(ax: Axes | None) -> Axes:
    """Return the given axes, or pyplot's: its current ones if they are empty, else new ones.

    So `matplotlib.pyplot.savefig`, `show` and notebooks know of them. No picture is drawn over
    another one; for that, pass `ax`.
    """
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ImportError as error:
        raise ValidationError("ax: plots need matplotlib: pip install 'cvxleak[plot]'") from error
    if ax is not None:
        return instance(ax, Axes, "ax")
    if pyplot.get_fignums() and not pyplot.gca().has_data():
        return pyplot.gca()
    return pyplot.figure(figsize=(6.0, 4.0), layout="constrained").subplots()


def rise_from_zero(axes: Axes) -> None:
    """Let the vertical axis start at 0 and end above everything drawn, including flat lines.

    Examples
    --------
    >>> from cvxleak.plots import plot_bracket, rise_from_zero
    >>> axes = plot_bracket([0, 1], [2.0, 2.0], [2.0, 2.0])
    >>> rise_from_zero(axes)
    >>> [round(float(end), 3) for end in axes.get_ylim()]
    [0.0, 2.12]
    """
    checked_axes(axes)
    top = float(axes.dataLim.y1)
    axes.set_ylim(0.0, 1.06 * top if np.isfinite(top) and top > 0 else 1.0)


def heat(
    matrix: Array, rows: Sequence[Hashable], columns: Sequence[Hashable], ax: Axes | None
) -> Axes:
    """Draw a matrix of probabilities."""
    axes = checked_axes(ax)
    image = axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=matrix.max(), aspect="auto")
    ticks(axes.xaxis, axes.set_xticks, columns)
    ticks(axes.yaxis, axes.set_yticks, rows)
    if max(matrix.shape) <= READABLE // 2:
        for (i, j), value in np.ndenumerate(matrix):
            shade = "white" if value > 0.55 * matrix.max() else "black"
            number = f"{value:.3f}".rstrip("0").rstrip(".")
            axes.text(j, i, number, ha="center", va="center", color=shade, fontsize="small")
    else:
        axes.figure.colorbar(image, ax=axes, label="probability")
    return axes


def bar_width(bars: int) -> float:
    """Return how wide each of many bars is."""
    # Gaps between many bars would flicker.
    return 0.8 if bars <= READABLE else 1.0


def ticks(axis: Any, place: Any, labels: Sequence[Hashable]) -> None:
    """Label each cell, or so many that they can be read."""
    step = -(-len(labels) // READABLE)
    shown = range(0, len(labels), step)
    names = [label_text(labels[i]) for i in shown]
    crowded = axis.axis_name == "x" and sum(len(name) + 2 for name in names) > 60
    size = "small" if len(names) > READABLE // 2 else None
    place(shown, names, rotation=90 if crowded else 0, fontsize=size)


def label_text(label: Hashable) -> str:
    """Return a label as it is drawn: short, and no formula."""
    text = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
    text = text if len(text) <= 16 else text[:15] + "…"
    return text.replace("$", r"\$")  # a dollar would begin a formula
