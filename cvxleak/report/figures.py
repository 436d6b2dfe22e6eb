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
from cvxleak.report.numbers import record_name
from cvxleak.report.quantity import Quantity, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvxleak.audit import Adversary
    from cvxleak.model import Channel

__all__ = ["Picture", "belief", "channel_picture", "curves", "posterior"]

SIZE = (4.8, 3.3)
"""Inches; on a telephone the letters are as large as they get."""

CELLS = 64
"""Channels with more rows or columns than this are not drawn."""

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
    """Yield leakage against doubt, where there is more than one floor; a curve for each record."""
    from cvxleak.plots import plot_brackets, rise_from_zero

    if "hits" in report.facts:
        yield _hits(report)
    for name in (names.RECORD_LEAKAGE, names.GROUP_LEAKAGE):
        lines: dict[str, list[Quantity]] = {}
        for quantity in report.named(name):
            lines.setdefault(_whose(quantity, report), []).append(quantity)
        lines = {whose: rows for whose, rows in lines.items() if len(rows) > 1}
        if not lines:
            continue

        def draw(ax: Axes, lines: dict[str, list[Quantity]] = lines, name: str = name) -> None:
            ends = {
                whose if len(lines) > 1 else "": [
                    (q.entropy_floor or 0.0, q.lower, q.upper) for q in rows
                ]
                for whose, rows in lines.items()
            }
            plot_brackets(ends, falling=True, ax=ax)
            ax.set_xlabel(f"doubt at least ({report.unit})")
            ax.set_ylabel(f"{name} ({report.unit})")
            rise_from_zero(ax)

        said = [
            f"{whose}: from {rows[0].upper:.4g} {report.unit} at doubt {rows[0].entropy_floor:g} "
            f"to {rows[-1].upper:.4g} {report.unit} at doubt {rows[-1].entropy_floor:g}."
            for whose, rows in lines.items()
        ]
        yield Picture(
            _svg(draw),
            f"Upper ends of the {name} against the doubt. {' '.join(said)}",
            f"The {name} at each doubt asked for is between the two dots there, which often look "
            "like one. It never rises with the doubt: between the dots it is somewhere in the "
            "shaded area.",
        )


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

    law, channel = lumped_channel(adversary.weights, adversary.lumped)
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
