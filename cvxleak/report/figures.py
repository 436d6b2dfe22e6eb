"""The pictures of a page: what each shows, in words too, for those who do not see it."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.report import names
from cvxleak.report.quantity import Quantity, Report, record_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvxleak.audit import Adversary
    from cvxleak.model import Channel

__all__ = ["Picture", "belief", "channel_picture", "curves", "draw_leakage", "posterior"]

SIZE = (4.8, 3.3)
"""Inches; on a telephone the letters are as large as they get."""

CELLS = 64
"""Channels with more rows or columns than this are not drawn."""

LEAKAGES = (names.RECORD_LEAKAGE, names.GROUP_LEAKAGE)

BARS = 100
"""Beliefs on more values of the query than this are not drawn."""


@dataclass(frozen=True)
class Picture:
    """A picture for a page.

    Attributes
    ----------
    source : str
        The picture itself, an SVG file as a data URI.
    alt : str
        What it shows, with the numbers that matter.
    caption : str
        How to read it.
    """

    source: str
    alt: str
    caption: str


def curves(report: Report) -> Iterator[Picture]:
    """Yield hits against false alarms, and leakage against uncertainty, where there are any."""
    if "hits" in report.facts:
        yield _hits(report)
    if lines := _lines(report):
        said = [
            f"{whose}: from {points[0][2]:.4g} {report.unit} at uncertainty {points[0][0]:g} "
            f"to {points[-1][2]:.4g} {report.unit} at uncertainty {points[-1][0]:g}."
            for whose, points in lines.items()
        ]
        yield Picture(
            _svg(lambda ax: draw_leakage(report, ax=ax)),
            f"Upper bounds on the leakage against the adversary's uncertainty. {' '.join(said)}",
            "Leakage to the worst adversary with at least this much uncertainty. It never rises "
            "with the uncertainty: between the lower and upper bounds that were proved, it lies in "
            "the shaded area. A dot marks each entropy floor that was asked for.",
        )


def draw_leakage(report: Report, *, ax: Axes) -> None:
    """Draw leakage against uncertainty, a line for each record or group."""
    from cvxleak.plots import plot_brackets, rise_from_zero

    lines = _lines(report)
    asked = [q.entropy_floor or 0.0 for name in LEAKAGES for q in report.named(name)]
    names_ = lines if len(lines) > 1 else [""]
    plot_brackets(dict(zip(names_, lines.values(), strict=True)), falling=True, ax=ax)
    for line in list(ax.lines):
        x, y = (np.asarray(part) for part in line.get_data())
        dots = np.isin(x, asked)
        ax.plot(x[dots], y[dots], ".", color=line.get_color())
    ax.set_xlabel(f"uncertainty at least ({report.unit})")
    ax.set_ylabel(f"leakage ({report.unit})")
    rise_from_zero(ax)


def _lines(report: Report) -> dict[str, list[tuple[float, float, float]]]:
    """Return rows of floor, lower and upper bound, by what they are about; single ones left out."""
    if "curves" in report.facts:
        lines = {one["about"]: one["points"] for one in report.facts["curves"]}
    else:
        lines = {}
        for q in (q for name in LEAKAGES for q in report.named(name)):
            row = (q.entropy_floor or 0.0, q.lower, q.upper)
            lines.setdefault(_whose(q, report), []).append(row)
    return {whose: points for whose, points in lines.items() if len(points) > 1}


def _hits(report: Report) -> Picture:
    """Return the hits of the best test against its false alarms."""
    from cvxleak.plots.curves import draw_hits

    points = report.facts["hits"]
    said = "The best test for one record finds " + ", ".join(
        f"{q.upper:.3g} with {q.false_alarm:g} of false alarms" for q in report.named(names.HITS)
    )
    return Picture(
        _svg(lambda ax: draw_hits(points, ax=ax)),
        f"Hits of the best test against its false alarms. {said}.",
        "No attack on one record, by whoever knows all the others, has a point above the line; the "
        "diagonal is a test that does not look at the output. One minus the hits is the trade-off "
        "curve of f-differential privacy.",
    )


def posterior(adversary: Adversary) -> Picture:
    """Return what an adversary believes about the record, before and after each output."""
    from cvxleak.measures import lumped_channel
    from cvxleak.plots import plot_posterior

    channel, law = lumped_channel(adversary.weights, adversary.lumped)
    after = channel.posterior(law)
    value, output = np.unravel_index(after.matrix.T.argmax(), after.matrix.T.shape)
    said = (
        f"The output {after.inputs[output]} makes the value {law.labels[value]} most certain: its "
        f"probability is {law.probabilities[value]:.4g} before and "
        f"{after.matrix[output, value]:.4g} after."
    )
    large = max(len(law), len(after.inputs)) > CELLS
    source = "" if large else _svg(lambda ax: plot_posterior(adversary, ax=ax))
    return Picture(source, said, f"What the worst adversary found believes of the record. {said}")


def belief(adversary: Adversary) -> Picture | None:
    """Return what an adversary believes of the query's value, if that can be drawn."""
    from cvxleak.plots import plot_adversary

    lumped = adversary.lumped
    if len(set(lumped.contexts)) > BARS or len(lumped.values) > BARS:
        return None
    value, context, _, weight = max(adversary.rows(), key=lambda row: row[-1])
    said = (
        f"Most likely, with probability {weight:.4g}: the record is {value} and the query "
        f"{' or '.join(map(str, context[:4]))}{', ...' if len(context) > 4 else ''}."
    )
    return Picture(
        _svg(lambda ax: plot_adversary(adversary, ax=ax)),
        said,
        f"The same adversary's belief before any output: the value of the query, and in each bar "
        f"that of the record. {said}",
    )


def channel_picture(channel: Channel) -> Picture | None:
    """Return a channel as a heat map, if it is small enough to be read."""
    from cvxleak.plots import plot_channel

    rows, columns = channel.matrix.shape
    if max(rows, columns) > CELLS:
        return None
    return Picture(
        _svg(lambda ax: plot_channel(channel, ax=ax)),
        f"Heat map of the mechanism: {rows} inputs by {columns} outputs.",
        "The mechanism: the probability of each output (column) for each value of the query (row).",
    )


def _whose(quantity: Quantity, report: Report) -> str:
    several = len({q.record for q in report.named(quantity.name)}) > 1
    return record_name(quantity) if several else quantity.name


def _svg(draw: Callable[[Any], object]) -> str:
    """Return a picture as a data URI: nothing in it runs, and its names meet no others."""
    import matplotlib
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    # Letters stay letters: small files, and the reader's fonts know more scripts than ours do.
    settings: dict[Any, Any] = {
        "svg.hashsalt": "cvxleak",
        "svg.fonttype": "none",
        "font.size": 10.0,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=SIZE, layout="constrained")
        draw(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
