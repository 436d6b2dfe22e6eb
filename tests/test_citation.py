"""CITATION.cff names the software, its license, and the five papers by their short names."""

import tomllib
from pathlib import Path

import pytest

from cvxleak import __version__

ROOT = Path(__file__).resolve().parents[1]
PAPERS = {"LEAKAGE", "ENVELOPE", "HAMMING", "DALENIUS", "SEQUENTIAL"}


@pytest.fixture(scope="module")
def citation() -> dict:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_what_the_format_asks_for(citation: dict):
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["license"] == project["license"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in project["authors"]
    ]
    assert set(citation["keywords"]) <= set(project["keywords"])


def test_version_and_date_are_those_of_the_release(citation: dict):
    assert citation["version"] == __version__
    heading = f"## [{citation['version']}] - {citation['date-released']}"
    assert heading in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()


def test_the_five_papers(citation: dict):
    papers = {paper["notes"].removeprefix("cited as "): paper for paper in citation["references"]}
    assert set(papers) == PAPERS
    for paper in papers.values():
        assert {"type", "title", "authors", "year"} <= set(paper)
        assert {"status", "volume"} & set(paper)
        assert all(set(author) == {"family-names", "given-names"} for author in paper["authors"])
