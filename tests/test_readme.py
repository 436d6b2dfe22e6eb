"""The README is two screens and the first page of the documentation, and what it names is there."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_two_screens():
    assert len(README.splitlines()) <= 130


def test_cvxpy_comes_first_then_audits_then_designs():
    places = [
        README.index(word)
        for word in ("cl.channel(", "verify_iterates(", "make audit", "cl.min_leakage")
    ]
    assert places == sorted(places)


def test_first_page_of_the_documentation_is_the_readme():
    """It includes the README up to a mark, before which every relative link leads into docs/."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    mark = re.search(r"^:end-before: (<!-- .* -->)$", index, re.MULTILINE)
    assert mark is not None
    assert "```{include} ../README.md\n:relative-docs: docs/\n" in index
    page, _ = README.split(mark[1])
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page):
        assert target.startswith("docs/"), target


def test_names_the_papers_of_the_citation():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    names = re.findall(r'notes: "cited as (\w+)"', citation)
    assert re.findall(r"^- \*\*([A-Z]+)\*\*:", README, re.MULTILINE) == names
    words = " ".join(README.split())
    titles = re.findall(
        r"title: (?:>-\n((?:      .*\n)+)|\"(.*)\")", citation.partition("references:")[2]
    )
    assert len(titles) == len(names)
    for folded, quoted in titles:
        assert f"*{' '.join((folded or quoted).split())}*" in words


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


def test_each_way_in_has_a_page_and_the_notebooks_are_named():
    ways = re.findall(r"^- \*[^*]+\*: .*$", README, re.MULTILINE)
    assert len(ways) == 4
    notebooks = {path.name for path in (ROOT / "examples").glob("*.ipynb")}
    assert set(re.findall(r"\(examples/(\w+\.ipynb)\)", README)) == notebooks


def test_supported_pythons_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"\b3\.\d+\b", README))
    classified = {c.split()[-1] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert named == classified
