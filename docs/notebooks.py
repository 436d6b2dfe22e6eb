"""Writes tutorials as notebooks, and runs them.

python docs/notebooks.py FOLDER PAGE...    writes FOLDER/NAME.ipynb for each page

A page is the source: its programs become cells, the outputs that it shows are left out, and those
of the run stand in their place. A cell that raises ends the run, and so does one that prints
something else than the page shows. Needs the extra `notebooks`. One notebook is stored,
examples/guess.ipynb of the page tutorials/guess.md; a test holds it to that page.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from running import BLOCK, agrees

# What HiGHS 1.16 prints past Python when CVXPY starts it; a kernel catches it all the same.
BANNER = re.compile(r"^(?:Running HiGHS|Includes third-party software).*\n", re.MULTILINE)

# Where a page says it leads to, from the folder of the page.
LINK = re.compile(r"(?<=\]\()(?!https?:|#)[^)#]+")

SHOWN = re.compile(
    r"^```\{code-block\} text\n:class: output\n\n.*?^```\n", re.DOTALL | re.MULTILINE
)


def notebook(page: Path, folder: Path) -> list[str]:
    """Run a page as a notebook, write that, and return what is printed otherwise than shown."""
    text = page.read_text(encoding="utf-8")
    shown = [block["out"] for block in BLOCK.finditer(text) if block["code"] is not None]
    text = LINK.sub(lambda link: os.path.relpath(page.parent / link[0], folder), text)
    found = jupytext.reads(SHOWN.sub("", text), fmt="md")
    for place, cell in enumerate(found.cells):
        cell["id"] = f"cell-{place}"  # else drawn at random
    kernel = {"kernel_name": "python3", "resources": {"metadata": {"path": "."}}}
    NotebookClient(found, record_timing=False, coalesce_streams=True, **kernel).execute()
    nbformat.write(found, folder / f"{page.stem}.ipynb")
    printed = [
        "".join(BANNER.sub("", out.text) for out in cell.outputs if out.get("name") == "stdout")
        for cell in found.cells
        if cell.cell_type == "code"
    ]
    return [
        f"{page}: shown\n{wanted}printed\n{real}"
        for wanted, real in zip(shown, printed, strict=True)
        if wanted is not None and not agrees(wanted, real)
    ]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wrong = [line for page in sys.argv[2:] for line in notebook(Path(page), folder)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
