"""The notebooks in examples/ are their pages, were run, and name nothing of the machine."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.docs.test_pages import DOCS, ROOT, RUNNING

TUTORIALS = ("audit", "certificates", "guess", "own_constraints")
PAGES = {name: DOCS / "tutorials" / f"{name}.md" for name in TUTORIALS}
PAGES["design"] = DOCS / "design.md"


def blocks(name: str) -> list[tuple[str, str]]:
    page = PAGES[name].read_text(encoding="utf-8")
    found = RUNNING.BLOCK.finditer(page)
    return [(block["code"], block["out"] or "") for block in found if block["code"] is not None]


def cells(name: str, kind: str) -> list[dict]:
    text = (ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == kind]


def test_every_notebook_has_its_page():
    assert {path.stem for path in (ROOT / "examples").glob("*.ipynb")} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_programs_and_outputs_are_those_of_the_page(name: str):
    pairs = blocks(name)
    found = cells(name, "code")
    assert len(pairs) == len(found) > 2
    for (code, shown), cell in zip(pairs, found, strict=True):
        assert "".join(cell["source"]).strip() == code.strip()
        printed = ["".join(out["text"]) for out in cell["outputs"] if out.get("name") == "stdout"]
        assert RUNNING.agrees(shown, "".join(printed)), code
        assert all(out["output_type"] != "error" for out in cell["outputs"])
    pictures = [out for cell in found for out in cell["outputs"] if "image/png" in str(out)]
    assert len(pictures) == sum("cvxleak.plots" in code for code, _ in pairs)


@pytest.mark.parametrize("name", PAGES)
def test_text_and_links(name: str):
    page = PAGES[name].read_text(encoding="utf-8")
    page = RUNNING.BLOCK.sub(lambda block: block[0] if block["console"] else "", page)
    text = "\n".join("".join(cell["source"]) for cell in cells(name, "markdown"))
    link = re.compile(r"\]\(([^)#]+)")
    assert link.sub("](", text).split() == link.sub("](", page).split()
    targets = link.findall(text)
    assert targets
    for target in targets:
        assert (ROOT / "examples" / target).exists(), target


def test_nothing_of_the_machine():
    for path in (ROOT / "examples").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text
        assert str(Path.home()) + os.sep not in text
        assert not re.search(r"/(?:tmp|home|Users|work)/|site-packages|file:", text)
