"""The README is one screen, and what it names is there."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_one_screen():
    assert len(README.splitlines()) <= 45


def test_two_commands_are_those_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert targets == ["audit", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert "cvxleak audit examples/rounded_count.toml\n" in makefile


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_each_way_in_has_a_page_and_a_notebook():
    ways = re.findall(r"^\| \*\*.*$", README, re.MULTILINE)
    assert len(ways) == 4
    for way in ways:
        assert re.search(r"\(docs/[\w/]+\.md\)", way), way
        assert re.search(r"\(examples/\w+\.ipynb\)", way), way


def test_supported_pythons_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"\b3\.\d+\b", README))
    classified = {c.split()[-1] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert named == classified
