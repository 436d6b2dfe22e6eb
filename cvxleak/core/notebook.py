"""The representation of an object in a notebook: a short table, with escaped texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

__all__ = ["MOST", "html_table"]

MOST = 24
"""Most rows, and columns, that are shown."""


def html_table(caption: str, head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in HTML below its caption; what is beyond `MOST` rows or columns is left out.

    Examples
    --------
    >>> from cvxleak.core.notebook import html_table
    >>> html_table("a < b", ["x"], [[0.5]])
    '<p>a &lt; b</p><table><tr><th>x</th></tr><tr><td>0.5</td></tr></table>'
    """
    shown = list(islice(rows, MOST + 1))
    lines = [_line(head, "th"), *(_line(row, "td") for row in shown[:MOST])]
    if len(shown) > MOST:
        lines.append(_line(["…"], "td"))
    above = f"<p>{escape(caption)}</p>" if caption else ""
    return f"{above}<table>{''.join(lines)}</table>"


def _line(cells: Sequence[Any], tag: str) -> str:
    texts = [_text(cell) for cell in cells[: MOST + 1]] + ["…"] * (len(cells) > MOST + 1)
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def _text(cell: Any) -> str:
    return f"{cell:.7g}" if isinstance(cell, float) else str(cell)
