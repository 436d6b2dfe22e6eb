"""Sections of the pages under docs/ whose numbers are computed here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def section(page: str, name: str) -> str:
    """Return what stands between the marks of a section."""
    text = (DOCS / page).read_text(encoding="utf-8")
    begin, end = marks(name)
    return text.split(begin, 1)[1].split(end, 1)[0].strip()


def replace_section(page: str, name: str, content: str) -> None:
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    begin, end = marks(name)
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    path.write_text(f"{before}{begin}\n{content.strip()}\n{end}{after}", encoding="utf-8")


def marks(name: str) -> tuple[str, str]:
    return f"<!-- computed: {name} -->", f"<!-- end of {name} -->"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns of numbers, apart from the first column, are aligned right."""
    columns = list(zip(*rows, strict=True))
    rules = [
        "---:" if place and _numbers(column) else "---" for place, column in enumerate(columns)
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [headings, rules, *rows])


def _numbers(column: Sequence[str]) -> bool:
    """Whether at least half of the cells begin with a number, or are a dash."""
    return 2 * sum(bool(re.match(r"–$|[-+<>~(]*[.\d]", cell)) for cell in column) >= len(column)
