"""docs/architecture.md draws the rooms that there are."""

import re
from pathlib import Path

import cvxleak

ROOT = Path(__file__).parents[1]
PACKAGE = Path(cvxleak.__file__).parent  # the installed one, if that is what is tested


def test_the_rooms_drawn_are_those_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert picture is not None
    lines = picture[1].splitlines()
    drawn = {name for line in lines for name in re.findall(r"│ (\w+)(?= {2,})", line)}
    there = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    there |= {p.stem for p in PACKAGE.glob("[!_]*.py")}
    missing, gone = there - drawn, drawn - there
    assert not missing, f"draw in docs/architecture.md: {sorted(missing)}"
    assert not gone, f"drawn in docs/architecture.md and not there: {sorted(gone)}"
