"""How all pictures of the gallery look. Matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLORS", "SETTINGS", "foot", "image", "panels"]

COLORS = ("#1f4e79", "#c1462c", "#2f7d4f", "#8a5aa8", "#a87b1e", "#555555")
"""Distinguishable in black and white print and by color-blind readers."""

SETTINGS: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # The same numbers make the same file.
    "svg.hashsalt": "cvxleak",
}


def panels(count: int, *, width: float = 3.4, height: float = 3.3, share: bool = False) -> Any:
    """Return a figure with a row of axes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(width * count, height), layout="constrained")
        axes = figure.subplots(1, count, sharey=share, squeeze=False)[0]
    return figure, list(axes)


def foot(figure: Figure, axes: Sequence[Axes] | Axes, columns: int) -> None:
    """Put one legend for all axes below them."""
    known: dict[str, Any] = {}
    for ax in axes if isinstance(axes, Sequence) else [axes]:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    figure.legend(
        known.values(), known, loc="outside lower center", ncols=columns, frameon=False, fontsize=8
    )


def image(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a .png or .svg file."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context(SETTINGS):
        dateless = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=150, metadata=dateless)
    return buffer.getvalue()
