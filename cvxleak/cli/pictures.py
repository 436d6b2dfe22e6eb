"""What --plot writes: one picture of what a command found."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import write_atomic
from cvxleak.problem.bound import unit_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvxleak.model import Channel, Prior
    from cvxleak.sweeps import Sweep

__all__ = [
    "KINDS",
    "check_axes",
    "check_picture",
    "draw_envelope",
    "draw_sweep",
    "save_picture",
]

KINDS = (".pdf", ".png", ".svg")

WHAT = {
    "audit": "leakage",
    "envelope": "pointwise maximal leakage",
    "local-dp": "epsilon",
    "design": "leakage",
}
"""What a sweep's number is, if it is information."""


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


def check_axes(grid: Mapping[str, Sequence[Any]]) -> None:
    """See that a sweep can be drawn: along numbers, with a curve for each value of a second key."""
    if len(grid) > 2:
        raise ValidationError(f"--plot: found {len(grid)} keys in --over; one or two can be drawn")
    key, values = next(iter(grid.items()))
    if any(isinstance(value, (bool, str)) for value in values):
        raise ValidationError(f"--plot: the values of the first key, {key}, must be numbers")


def save_picture(axes: Axes, path: str) -> None:
    """Write a picture, all of it or nothing."""
    import matplotlib

    buffer = io.BytesIO()
    # Without a date and random names, the same numbers give the same file.
    kind = Path(path).suffix.lower().removeprefix(".")
    about = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    with matplotlib.rc_context({"svg.hashsalt": "cvxleak"}):
        axes.figure.savefig(buffer, format=kind, dpi=150, metadata=about)  # pyright: ignore[reportAttributeAccessIssue]
    write_atomic(path, buffer.getvalue())


def draw_envelope(
    prior: Prior,
    channel: Channel,
    delta: Sequence[float],
    unit: str,
    path: str,
    time_limit: float,
) -> None:
    """Draw the exact envelope, the points asked for, and the bounds, into a file."""
    from cvxleak.envelope import envelope_curve
    from cvxleak.plots import plot_envelope

    curve = envelope_curve(prior, channel, time_limit=time_limit)
    axes = plot_envelope(curve, prior, channel, unit=unit)
    axes.plot(delta, curve.at(delta)[1] / unit_scale(unit), "ko", markersize=4)
    save_picture(axes, path)


def draw_sweep(results: Sweep, keys: Sequence[str], number: str) -> Axes:
    """Draw the bounds along the first key, a curve for each value of the second one."""
    from cvxleak.plots import plot_bracket, rise_from_zero

    first, second = keys[0], keys[1:]
    rows = sorted(
        (row for row in results if np.isfinite(row.upper)), key=lambda row: row.point[first]
    )
    if not rows:
        raise ValidationError("--plot: no point has a bound that can be drawn")
    axes = None
    curves = dict.fromkeys(tuple(row.point[key] for key in second) for row in rows)
    for place, values in enumerate(curves):
        part = [row for row in rows if tuple(row.point[key] for key in second) == values]
        axes = plot_bracket(
            [row.point[first] for row in part],
            [row.lower for row in part],
            [row.upper for row in part],
            # Leakage never rises with the doubt: that much is known between the points.
            falling=first == "adversary.entropy_floors",
            label=", ".join(f"{key} = {v}" for key, v in zip(second, values, strict=True)),
            color=f"C{place % 10}",
            ax=axes,
        )
    assert axes is not None
    axes.set_xlabel(first)
    unit = rows[0].unit
    axes.set_ylabel(f"{WHAT[number]} ({unit})" if unit in ("nats", "bits") else unit)
    rise_from_zero(axes)
    if second:
        axes.legend(frameon=False, fontsize=8)
    return axes
