"""Writes tutorials as notebooks, and runs them.

python docs/notebooks.py FOLDER PAGE...    writes FOLDER/NAME.ipynb for each page

A page is the source: its programs become cells, the outputs that it shows are left out, and those
of the run stand in their place. A cell that raises ends the run, and so does one that prints
something else than the page shows. Needs the extra `notebooks`. Some notebooks are stored in
examples/; a test holds them to their pages.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from itertools import chain
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from running import BLOCK, agrees

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# What HiGHS 1.16 prints past Python when CVXPY starts it; a kernel catches it all the same.
BANNER = re.compile(r"^(?:Running HiGHS|Includes third-party software).*\n", re.MULTILINE)

# Where a page says it leads to, from the folder of the page.
LINK = re.compile(r"(?<=\]\()(?!https?:|#)[^)#]+")


def program(block: re.Match[str]) -> str:
    """Leave out what a program of the page prints and draws."""
    return block[0] if block["code"] is None else f"```python\n{block['code']}```"


def notebook(page: Path, folder: Path) -> list[str]:
    """Run a page as a notebook, write that, and return what is printed otherwise than shown."""
    text = page.read_text(encoding="utf-8")
    shown = [block["out"] for block in BLOCK.finditer(text) if block["code"] is not None]
    text = LINK.sub(lambda link: os.path.relpath(page.parent / link[0], folder), text)
    found = jupytext.reads(BLOCK.sub(program, text), fmt="md")
    for place, cell in enumerate(found.cells):
        cell["id"] = f"cell-{place}"  # else drawn at random
    # Files that a page writes go with the folder that it runs in.
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "examples").symlink_to(EXAMPLES)
        kernel = {"kernel_name": "python3", "resources": {"metadata": {"path": home}}}
        NotebookClient(found, record_timing=False, coalesce_streams=True, **kernel).execute()
    programs = [cell for cell in found.cells if cell.cell_type == "code"]
    texts = [[out for out in cell.outputs if out.get("name") == "stdout"] for cell in programs]
    for out in chain.from_iterable(texts):
        out.text = BANNER.sub("", out.text)
    nbformat.write(found, folder / f"{page.stem}.ipynb")
    printed = ["".join(out.text for out in outs) for outs in texts]
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
