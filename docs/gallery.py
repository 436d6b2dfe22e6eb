"""Writes the pages "Gallery" and "Errata", and their pictures, from `cvxleak.papers.gallery`.

python docs/gallery.py          runs everything, and writes pictures, numbers and both pages
python docs/gallery.py pages    writes both pages again, from the numbers that are stored
"""

import json
import sys
from pathlib import Path
from typing import Any

from cvxleak.papers.gallery import ERRATA, ITEMS

DOCS = Path(__file__).parent
FOLDER = DOCS / "gallery"
NUMBERS = FOLDER / "pairs.json"
LONG = 14
"""More rows than this are counted, not shown."""

TITLES = {
    "LEAKAGE": "LEAKAGE: Wu, Zhang, Qi, Wang, Wang and He (2026), leakage under entropy floors",
    "ENVELOPE": "ENVELOPE: Saeidian, Pinzón and Palamidessi (2026), leakage envelopes",
    "HAMMING": "HAMMING: Kalantari, Sankar and Sarwate (2018), privacy under Hamming distortion",
    "DALENIUS": "DALENIUS: Wu, Xia and He (2025), Dalenius' goal under practical assumptions",
    "SEQUENTIAL": "SEQUENTIAL: Taylor, Vippathalla and Coon, sequential releases under collusion",
    "LIBQIF": "LIBQIF: the tests of libqif, a library of quantitative information flow",
}

GALLERY = """# Gallery

This page recomputes the figures, tables and numbers of five papers. Each computed number is shown
with the number it is compared with: the printed one or, in italics, the result of a formula or
of a second method. LEAKAGE, ENVELOPE, HAMMING, DALENIUS and SEQUENTIAL are short names of the
papers; each section names the authors. Where a printed number differs from the computed one, the
[errata](errata.md) explain why. The last section compares with the numbers in the tests of another
program, [libqif](https://github.com/chatziko/libqif).

```text
cvxleak reproduce --list
cvxleak reproduce leakage-table-3
cvxleak reproduce --all --out FOLDER
```

The last command writes the numbers of every item as JSON and its picture as PNG and SVG. In
Python:

```python
from cvxleak.papers.gallery import reproduce

table = reproduce("leakage-table-3")
print(table)
print(all(pair.explained for pair in table.pairs))
```

Curves that the papers print without numbers are compared with closed forms or with a second
method. Where a lower and an upper bound are given, both are proved.

Figures and tables without numbers (diagrams, notation, and comparisons in words) are omitted:
LEAKAGE Figure 2 and Tables 1 and 2, DALENIUS Figures 1, 2 and 6 and Tables 1 to 4, SEQUENTIAL
Figures 1 and 2.
"""

ERRATA_PAGE = """# Errata

This page lists statements of the five papers that are wrong, or weaker than what can be proved.
LEAKAGE, ENVELOPE, HAMMING, DALENIUS and SEQUENTIAL are short names of [the papers](symbols.md). We
found the errors when we recomputed the figures. We may be wrong ourselves, so each entry says how
it is known, and has a test that computes its numbers
(`ERRATA["..."].check()` in `cvxleak.papers.gallery`).
"""


def numbers() -> dict[str, list[dict[str, Any]]]:
    """Run everything, and write pictures and pairs."""
    FOLDER.mkdir(exist_ok=True)
    pairs = {}
    for name, item in ITEMS.items():
        found = item.run()
        pairs[name] = [pair.to_dict() for pair in found.pairs]
        for path in found.save(FOLDER, ("svg",)):
            if path.suffix == ".json":
                path.unlink()
    lines = (f"{json.dumps(name)}: {rows_of(rows)}" for name, rows in pairs.items())
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return pairs


def rows_of(rows: list[dict[str, Any]]) -> str:
    return "[\n " + ",\n ".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"


def number(row: dict[str, Any]) -> str:
    low, high = row["lower"], row["upper"]
    if high - low > 1e-7 * max(abs(high), 1.0):
        return f"{low:.6g} to {high:.6g}"
    return f"{high:.6g}" if abs(high) > 1e-9 else "0"


def table(rows: list[dict[str, Any]]) -> str:
    differ = any(not row["agrees"] for row in rows)
    lines = ["| | computed | compared with |", "|---|---:|---:|"]
    if differ:
        lines = [lines[0] + " erratum |", lines[1] + "---|"]
    for row in rows:
        beside = row["numeral"] or f"*{row['printed']:.6g}*"
        cells = [escaped(row["name"]), number(row), beside]
        if differ:
            cells.append("" if row["agrees"] else f"[{row['erratum']}](errata.md)")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Return text for a cell: | would end it, and * and _ would be marks."""
    for mark in "|*_<>":
        text = text.replace(mark, "\\" + mark)
    return text


def gallery_page(pairs: dict[str, list[dict[str, Any]]]) -> str:
    parts = [GALLERY]
    paper = ""
    for name, item in ITEMS.items():
        if item.paper != paper:
            paper = item.paper
            parts.append(f"## {TITLES[paper]}\n")
        parts.append(f"### {name}\n\n{item.title[0].upper()}{item.title[1:]}. {item.note}".rstrip())
        if item.draw is not None:
            parts.append(f"\n![{item.title}](gallery/{name}.svg)")
        rows = pairs[name]
        agree = sum(row["agrees"] for row in rows)
        shown = rows if len(rows) <= LONG else [row for row in rows if not row["agrees"]]
        if len(rows) > LONG:
            parts.append(f"\n{agree} of {len(rows)} numbers agree.")
        if shown:
            parts.append("\n" + table(shown))
        parts.append("")
    return "\n".join(parts)


def errata_page() -> str:
    parts = [ERRATA_PAGE]
    paper = ""
    for where, entry in ERRATA.items():
        if entry.paper != paper:
            paper = entry.paper
            head = "| where | printed | correct | how it is known |"
            parts.append(f"\n## {paper}\n\n{head}")
            parts.append("|---|---|---|---|")
        place = where.removeprefix(paper + " ")
        cells = map(escaped, (place, entry.printed, entry.so, entry.how))
        parts.append(f"| {' | '.join(cells)} |")
    page = "\n".join(parts) + "\n"
    title = "The envelope of randomized response"
    return page.replace(f"'{title}'", f"[{title}](envelope_conjecture.md)")


def write(pairs: dict[str, list[dict[str, Any]]]) -> None:
    (DOCS / "gallery.md").write_text(gallery_page(pairs), encoding="utf-8")
    (DOCS / "errata.md").write_text(errata_page(), encoding="utf-8")


if __name__ == "__main__":
    write(json.loads(NUMBERS.read_text("utf-8")) if sys.argv[1:] == ["pages"] else numbers())
