"""What --plot writes: one picture of what a command found."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvxleak.cli.cli_errors import place
from cvxleak.core.errors import ValidationError
from cvxleak.core.files import write_atomic
from cvxleak.problem.bound import unit_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvxleak.model import Channel, Mechanism, Prior
    from cvxleak.report import Report
    from cvxleak.sweeps import Sweep

__all__ = [
    "KINDS",
    "check_axes",
    "check_picture",
    "draw_envelope",
    "draw_leakage",
    "draw_sweep",
    "draw_trade_off",
]

KINDS = (".pdf", ".png", ".svg")


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


def _axes() -> Axes:
    """Return axes that pyplot does not know of: no window, and nothing to close."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6.0, 4.0), layout="constrained").subplots()


def _save(axes: Axes, path: str) -> None:
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
    time_limit: float | None,
) -> None:
    """Draw the exact envelope, the points asked for, and the bounds, into a file."""
    from cvxleak.envelope import envelope_curve
    from cvxleak.plots import plot_envelope

    curve = envelope_curve(prior, channel, time_limit=time_limit)
    axes = plot_envelope(curve, prior, channel, unit=unit, ax=_axes())
    axes.plot(delta, curve.at(delta)[1] / unit_scale(unit), "ko", markersize=4)
    _save(axes, path)


def draw_leakage(path: str, report: Report) -> None:
    """Draw the leakage over the entropy floors into a file."""
    from cvxleak.report.figures import draw_leakage as draw

    axes = _axes()
    draw(report, ax=axes)
    _save(axes, path)


def draw_sweep(results: Sweep, keys: Sequence[str], what: str, path: str) -> None:
    """Draw the bounds along the first key, a curve for each value of the second, into a file."""
    from cvxleak.plots import plot_sweep, rise_from_zero

    with place("--plot"):
        # Leakage never rises with the uncertainty, so this is known between the points.
        falling = keys[0] == "adversary.entropy_floors"
        axes = plot_sweep(results, keys[0], falling=falling, ax=_axes())
    axes.set_ylabel(f"{what} ({axes.get_ylabel()})")
    rise_from_zero(axes)
    _save(axes, path)


def draw_trade_off(mechanism: Mechanism, path: str) -> None:
    """Draw the hits of the best test for one record against its false alarms, into a file."""
    from cvxleak.plots import plot_trade_off

    _save(plot_trade_off(mechanism, ax=_axes()), path)
