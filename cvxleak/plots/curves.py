"""Plots of bounds, curves, sweeps and envelopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.audit import Adversary, LeakageCurve
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance, short
from cvxleak.design import DesignCurve
from cvxleak.envelope import EnvelopeCurve, envelope_upper_bound, tail_average_bound
from cvxleak.measures import event_envelope, pml_right_quantile, record_trade_off
from cvxleak.model import Channel, Mechanism, Prior
from cvxleak.plots._axes import INK, READABLE, checked_axes, rise_from_zero
from cvxleak.problem import IterateReport
from cvxleak.problem.bound import unit_scale
from cvxleak.sweeps import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_bracket",
    "plot_brackets",
    "plot_convergence",
    "plot_curve",
    "plot_envelope",
    "plot_guesses",
    "plot_sweep",
    "plot_trade_off",
]

LEAST = 1e-16
"""What is drawn of a distance of 0 on a log scale."""

POINTS = 400
"""At how many deltas an envelope is drawn, plateaus apart."""


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
    """Draw a lower and an upper bound on a function, and shade the area between them.

    Parameters
    ----------
    x, lower, upper : array_like, shape (n,)
        Points in increasing order, and the lower and upper bound at each.
    falling : bool
        The function is bounded at these points only, and does not increase. So between two points,
        the area from the lower bound at the right one to the upper bound at the left one is shaded.
        For at most 24 points the lines are stairs along the edges of this area; for more, they
        connect the points.
    label : str, optional
        Its name in the legend.
    color : str
    ax : matplotlib.axes.Axes, optional
        Where to draw; if left out, pyplot's current axes if they are empty, a new figure otherwise.

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
    axes = checked_axes(ax)
    if falling:
        below = np.append(low[1:], low[-1:])
        few = len(points) <= READABLE
        steps, styles = "post", ("steps-post", "steps-pre") if few else ("default", "default")
    else:
        below, steps, styles = low, None, ("default", "default")
    # A few points that were computed are told from what is between; a single one is no line.
    dot = "." if len(points) <= READABLE else ""
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


def plot_brackets(
    lines: Mapping[str, Sequence[tuple[float, float, float]]],
    *,
    falling: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw bounds on several functions on one pair of axes, each in its own color.

    Parameters
    ----------
    lines : mapping of str to sequence of (x, lower, upper)
        By name in the legend; a line with an empty name is not in the legend.
    falling, ax
        As for `plot_bracket`.

    Examples
    --------
    >>> from cvxleak.plots import plot_brackets
    >>> axes = plot_brackets({"one": [(0, 0.9, 1.0)], "two": [(0, 0.5, 0.5), (1, 0.4, 0.5)]})
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['one', 'two']
    """
    axes = checked_axes(ax)
    for place, (label, points) in enumerate(lines.items()):
        x, lower, upper = np.array(sorted(points)).T
        color = INK if len(lines) == 1 else f"C{place % 10}"
        plot_bracket(x, lower, upper, falling=falling, label=label, color=color, ax=axes)
    if any(lines):
        axes.legend(frameon=False, fontsize="small")
    return axes


def plot_curve(
    curve: LeakageCurve | DesignCurve, *, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a leakage curve over the entropy floor, or a design curve over its budget.

    Neither increases: not the leakage L(b) with the floor b, nor the least leakage or distortion
    with the budget.

    Parameters
    ----------
    curve : LeakageCurve or DesignCurve
        The result of `leakage_curve` or `design_curve`.
    label, ax
        As for `plot_bracket`.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.plots import plot_curve
    >>> from cvxleak.audit import leakage_curve
    >>> from cvxleak.queries import parity
    >>> curve = leakage_curve(Mechanism(parity(2), binary_symmetric(0.1)), [0, 0.7, 1.2])
    >>> plot_curve(curve).get_xlabel()
    'entropy floor b (nats)'
    """
    if isinstance(curve, DesignCurve):
        x, about, symbol = curve.budgets, "budget", ""
    else:
        # The floors are in nats whatever the unit of the leakage.
        x = instance(curve, LeakageCurve, "curve").entropy_floors
        about, symbol = "entropy floor b (nats)", " L(b)"
    bound = curve.bounds[0]
    axes = plot_bracket(x, curve.lower, curve.upper, falling=True, label=label, ax=ax)
    axes.set_xlabel(about)
    unit = f" ({bound.unit})" if bound.unit in ("nats", "bits") else ""
    axes.set_ylabel(f"{bound.name}{symbol}{unit}")
    rise_from_zero(axes)
    return axes


def plot_guesses(curve: LeakageCurve, *, ax: Axes | None = None) -> Axes:
    """Draw the worst adversary's chance of a correct guess before and after the output, by floor.

    The adversaries are the witnesses of the curve, so they are the worst found by the curve's
    measure; for those whose chance rises most, use a curve of that rise. `plot_curve` draws the
    proved lower and upper bound.

    Parameters
    ----------
    curve : LeakageCurve
        The result of `leakage_curve`.
    ax
        As for `plot_bracket`.

    Raises
    ------
    ValidationError
        Not a curve, or one with a floor at which no adversary was found.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.audit import leakage_curve
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.plots import plot_guesses
    >>> from cvxleak.queries import parity
    >>> curve = leakage_curve(Mechanism(parity(2), binary_symmetric(0.1)), [0, 0.7, 1.2])
    >>> before, after = plot_guesses(curve).lines
    >>> [round(float(line.get_ydata()[0]), 3) for line in (before, after)]
    [0.5, 0.9]
    """
    floors = instance(curve, LeakageCurve, "curve").entropy_floors
    worst = [instance(bound.witness, Adversary, "curve: witness") for bound in curve.bounds]
    before, after = np.array([adversary.guess() for adversary in worst]).T
    axes = checked_axes(ax)
    style: dict[str, Any] = {"color": INK, "marker": "." if len(floors) <= READABLE else ""}
    axes.fill_between(floors, before, after, color=INK, alpha=0.15, linewidth=0)
    axes.plot(floors, before, linewidth=0.8, linestyle="--", label="before the output", **style)
    axes.plot(floors, after, linewidth=1.4, label="after the output", **style)
    axes.set(xlabel="entropy floor b (nats)", ylabel="chance of a right guess", ylim=(0, 1.02))
    axes.legend(frameon=False, fontsize="small")
    return axes


def plot_envelope(
    curve: EnvelopeCurve,
    prior: Prior | ArrayLike,
    channel: Channel | ArrayLike,
    *,
    unit: str = "nats",
    ax: Axes | None = None,
) -> Axes:
    """Draw the lower and upper bound on the PML envelope, and the bounds in closed form.

    Parameters
    ----------
    curve : EnvelopeCurve
        The result of `envelope_curve` for this prior and this channel.
    prior : Prior or array_like
    channel : Channel or array_like
    unit : str
        "nats" or "bits".
    ax : matplotlib.axes.Axes, optional
        Where to draw; if left out, pyplot's current axes if they are empty, a new figure otherwise.

    Examples
    --------
    >>> from cvxleak.plots import plot_envelope
    >>> from cvxleak.envelope import envelope_curve
    >>> prior, channel = [0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]]
    >>> axes = plot_envelope(envelope_curve(prior, channel), prior, channel, unit="bits")
    >>> axes.get_ylabel()
    'pointwise maximal leakage (bits)'
    """
    plateaus = instance(curve, EnvelopeCurve, "curve").plateaus[:, 1]
    # Where a plateau ends, both sides are drawn.
    delta = np.concatenate([np.linspace(0, 1, POINTS + 1), plateaus, plateaus * (1 + 1e-9)])
    delta = np.unique(delta[delta <= 1])
    scale = unit_scale(unit)
    lower, upper = curve.at(delta)
    axes = plot_bracket(delta, lower / scale, upper / scale, label="envelope, exact", ax=ax)
    for label, function, style in (
        ("Theorem 3, upper bound", envelope_upper_bound, "C1-."),
        ("tail average, upper bound", tail_average_bound, "C1:"),
        (
            "output as released, lower bound",
            lambda p, q, delta: pml_right_quantile(q, p, delta),
            "C7-",
        ),
        ("event envelope, lower bound", lambda p, q, delta: event_envelope(q, p, delta), "C2--"),
    ):
        axes.plot(delta, function(prior, channel, delta) / scale, style, label=label, linewidth=1)
    axes.set_xlabel("delta")
    axes.set_ylabel(f"pointwise maximal leakage ({unit})")
    rise_from_zero(axes)
    axes.legend(frameon=False, fontsize=8)
    return axes


def plot_convergence(report: IterateReport, *, ax: Axes | None = None) -> Axes:
    """Draw the gap between an iterative solver's points and the proved optimum, on a log scale.

    The line is the upper bound on a point's gap, and the shaded area extends to the lower bound.
    Circles are points that are not feasible. Gaps below the precision of floats are drawn at 1e-16.

    Parameters
    ----------
    report : IterateReport
        The result of `cvxleak.verify_iterates`.
    ax
        As for `plot_bracket`.

    Examples
    --------
    >>> from cvxleak.capacities import Capacity
    >>> from cvxleak.plots import plot_convergence
    >>> from cvxleak.problem import verify_iterates
    >>> channel = [[0.9, 0.1], [0.2, 0.8]]
    >>> report = verify_iterates(Capacity(channel), [[0.2, 0.8], [0.4, 0.6], [0.5, 0.5]])
    >>> plot_convergence(report).get_yscale()
    'log'
    """
    checks = instance(report, IterateReport, "report").checks
    points = np.arange(len(checks))
    least, most = np.maximum(np.array([check.shortfall for check in checks]), LEAST).T
    axes = checked_axes(ax)
    axes.fill_between(points, least, most, color=INK, alpha=0.25, linewidth=0)
    axes.plot(points, most, color=INK, linewidth=1.4, marker="." if len(points) <= READABLE else "")
    outside = np.array([not check.feasible for check in checks])
    if outside.any():
        style: dict[str, Any] = {"color": "C3", "markerfacecolor": "none", "linestyle": "none"}
        axes.plot(points[outside], most[outside], marker="o", label="not feasible", **style)
        axes.legend(frameon=False, fontsize="small")
    axes.set_yscale("log")
    axes.set_xlabel("point")
    axes.set_ylabel(f"short of the optimum ({report.last.bound.unit})")
    return axes


def plot_sweep(
    results: Sweep, coordinate: str, *, falling: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the bounds of a sweep over one of its coordinates; points without a bound are left out.

    There is a curve for each value of the other coordinates.

    Parameters
    ----------
    results : Sweep
        The result of `sweep`.
    coordinate : str
        The coordinate for the horizontal axis.
    falling, ax
        As for `plot_bracket`.

    Raises
    ------
    ValidationError
        No bound, no such coordinate, or values that are not numbers.

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
    rows = [row for row in instance(results, Sweep, "results") if np.isfinite(row.upper)]
    if not rows:
        raise ValidationError("results: no point has a bound that can be drawn")
    if coordinate not in rows[0].point:
        known = sorted(rows[0].point)
        raise ValidationError(f"coordinate: found {short(coordinate)}; it must be one of {known}")
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        label = ", ".join(f"{key} = {v}" for key, v in row.point.items() if key != coordinate)
        try:
            x = float(row.point[coordinate])
        except (TypeError, ValueError) as error:
            raise ValidationError(
                f"coordinate: {coordinate!r} has values that are not numbers"
            ) from error
        lines.setdefault(label, []).append((x, row.lower, row.upper))
    axes = plot_brackets(lines, falling=falling, ax=ax)
    axes.set_xlabel(coordinate)
    axes.set_ylabel(rows[0].unit or "value")
    return axes


def plot_trade_off(
    mechanism: Mechanism | Channel | ArrayLike,
    *,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the hit rate of the best test for one record against its false-alarm rate (its ROC).

    No attack has a point above the line, whatever else the adversary knows. One minus the hit rate
    is the trade-off curve of f-differential privacy. The diagonal is that of tests that ignore the
    output.

    Parameters
    ----------
    mechanism : Mechanism, Channel or array_like
        As for `cvxleak.measures.record_trade_off`.
    label, ax
        As for `plot_bracket`.

    Examples
    --------
    >>> from cvxleak.plots import plot_trade_off
    >>> axes = plot_trade_off([[0.75, 0.25], [0.25, 0.75]])
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('false alarms', 'hits')
    """
    rates = np.linspace(0, 1, POINTS + 1)
    hits = 1 - record_trade_off(mechanism, rates)
    return draw_hits(np.column_stack([rates, hits]), label=label, ax=ax)


def draw_hits(points: ArrayLike, *, label: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw points (false alarms, hits) of tests, and the diagonal."""
    rates, hits = np.asarray(points, dtype=float).T
    axes = checked_axes(ax)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
    axes.plot(rates, hits, color=INK, linewidth=1.4, label=label)
    axes.fill_between(rates, rates, hits, color=INK, alpha=0.15, linewidth=0)
    axes.set(xlabel="false alarms", ylabel="hits", xlim=(0, 1), ylim=(0, 1.005))
    return axes
