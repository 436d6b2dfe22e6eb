"""What --plot writes: one picture of what a command found."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cvxleak._files import write_atomic
from cvxleak.errors import ValidationError
from cvxleak.result import unit_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvxleak.model import Channel, Prior

__all__ = ["KINDS", "check_picture", "draw_envelope", "save_picture"]

KINDS = (".pdf", ".png", ".svg")

POINTS = 400


def check_picture(path: str | None) -> None:
    """See, before the work, that a picture can be drawn and of which kind it is to be."""
    if path is None:
        return
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ValidationError(
            "--plot: pictures need matplotlib: pip install 'cvxleak[plot]'"
        ) from error
    if Path(path).suffix.lower() not in KINDS:
        raise ValidationError(f"--plot: found {path}; its end must be one of {', '.join(KINDS)}")


def save_picture(axes: Axes, path: str) -> None:
    """Write a picture, all of it or nothing."""
    buffer = io.BytesIO()
    # No date: the same numbers give the same file.
    kind = Path(path).suffix.lower().removeprefix(".")
    about = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    axes.figure.savefig(buffer, format=kind, dpi=150, metadata=about)  # pyright: ignore[reportAttributeAccessIssue]
    write_atomic(path, buffer.getvalue())


def draw_envelope(
    prior: Prior, channel: Channel, delta: Sequence[float], unit: str, time_limit: float | None
) -> Axes:
    """Draw the exact envelope, the points asked for, and the bounds."""
    from cvxleak import measures
    from cvxleak.plots import plot_bracket
    from cvxleak.problems.envelope import envelope_curve

    curve = envelope_curve(prior, channel, time_limit=time_limit)
    # Where it jumps, both sides are drawn.
    jumps = curve.jumps[:, 1]
    grid = np.concatenate([np.linspace(0, 1, POINTS + 1), jumps, jumps * (1 + 1e-9)])
    grid = np.unique(grid[grid <= 1])
    scale = unit_scale(unit)
    lower, upper = curve.at(grid)
    axes = plot_bracket(grid, lower / scale, upper / scale, label="envelope, exact")
    for label, function, style in (
        ("Theorem 3, upper bound", measures.envelope_upper_bound, "C1-."),
        ("tail average, upper bound", measures.tail_average_bound, "C1:"),
        ("output as released, lower bound", measures.pml_right_quantile, "C7-"),
        ("event envelope, lower bound", measures.event_envelope, "C2--"),
    ):
        axes.plot(grid, function(prior, channel, grid) / scale, style, label=label, linewidth=1)
    axes.plot(delta, curve.at(delta)[1] / scale, "ko", markersize=4)
    axes.set_xlabel("delta")
    axes.set_ylabel(f"pointwise maximal leakage ({unit})")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    return axes
