"""docs/symbols.md: every name exists, and every numbered item of the papers is there once."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from cvxleak import iterative
from cvxleak.papers.gallery import ERRATA, ITEMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "symbols.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("|")]
CODE = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row.split("|")[-2])})
NAMES = [name for name in CODE if "::" not in name]
TESTS = [name for name in CODE if "::" in name]

NUMBERED = {
    "LEAKAGE": "Definition 2.1, Definition 2.2, Definition 2.3, Definition 3.1, Assumption 1 to 2, "
    "Theorem 1 to 9, Lemma 1, Algorithm 1 to 11, Figure 1 to 7, Table 1 to 3",
    "ENVELOPE": "Definition 1 to 5, Theorem 1 to 5, Corollary 1, Lemma 1 to 3, Algorithm 1, "
    "Example 1 to 4, Figure 1 to 2",
    "HAMMING": "Definition 1 to 8, Theorem 1 to 3, Corollary 1, Lemma 1 to 10, Claim 1 to 5, "
    "Remark 1 to 8, Example 1 to 2, Figure 1 to 9, Table I to IV",
    "DALENIUS": "Definition 1 to 17, Assumption 1 to 2, Theorem 1 to 4, Corollary 1 to 4, "
    "Lemma 1 to 4, Proposition 1 to 2, Remark 1 to 3, Example 1 to 5, Figure 1 to 6, Table 1 to 4",
    "SEQUENTIAL": "Proposition 1, Theorem 1, Lemma 1 to 2, Remark 1 to 3, Algorithm 1 to 3, "
    "Figure 1 to 5, Table I to II",
}
"""What each paper numbers, by its text. A paper is added with its table on the page."""

NOTHING = {
    "LEAKAGE": "Assumption 2, Figure 2, Table 1 to 2",
    "DALENIUS": "Example 2, Example 4, Figure 1 to 2, Figure 6, Table 1, Table 3",
    "SEQUENTIAL": "Figure 1 to 2",
}
"""Drawings, guidelines and tables of words, which state nothing that could be computed."""

ROMAN = ["", "I", "II", "III", "IV"]


def items(text: str) -> list[str]:
    """Return the items of a list such as "Lemma 9, Claim 1 to 5, Table I to II", one by one."""
    found = []
    for entry in text.split(", "):
        ((kind, first, last),) = re.findall(r"^([A-Z]\w+) ([\w.]+)(?: to (\w+))?$", entry)
        if "." in first:
            found.append(entry)
            continue
        numbers = [ROMAN.index(n) if n in ROMAN else int(n) for n in (first, last or first)]
        for n in range(numbers[0], numbers[1] + 1):
            found.append(f"{kind} {ROMAN[n] if first in ROMAN else n}")
    return found


def carried(paper: str) -> list[tuple[str, str]]:
    """Return each item of the paper's table with its last cell."""
    (table,) = re.findall(rf"^### Numbered items of {paper}\n(.*?)(?=^#|\Z)", PAGE, re.M | re.S)
    rows = [row.strip("|").split("|") for row in table.splitlines() if row.startswith("|")][2:]
    assert all(len(row) == 3 for row in rows)
    return [(item, row[2]) for row in rows for item in items(row[0].strip())]


def find(dotted: str) -> object:
    """Import the longest part that is a module, and take attributes from there."""
    parts = ["cvxleak", *dotted.split(".")]
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            annotations = getattr(found, "__annotations__", {})
            if inspect.isclass(found) and not hasattr(found, part) and part in annotations:
                return None
            found = getattr(found, part)
        return found
    raise AssertionError(dotted)


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name: str):
    name, _, argument = name.partition("(")
    found = find(name)
    if argument:
        assert argument.removesuffix("=)") in inspect.signature(found).parameters  # type: ignore
    parts = name.split(".")
    if len(parts) == 2:
        module = importlib.import_module(f"cvxleak.{parts[0]}")
        assert parts[1] in module.__all__, f"{name} is not public"


@pytest.mark.parametrize("name", TESTS)
def test_test_exists(name: str):
    path, *parts = name.split("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    for part in parts:
        assert re.search(rf"^ *(def|class) {part}\b", source, re.M), name


def test_every_paper_has_a_table():
    titles = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
    assert titles == ["LEAKAGE", "ENVELOPE", "HAMMING", "DALENIUS", "SEQUENTIAL"]


def test_every_table_of_numbered_items_is_compared():
    assert re.findall(r"^### Numbered items of (\w+)$", PAGE, re.M) == list(NUMBERED)


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_is_there_once(paper: str):
    there = [item for item, _ in carried(paper)]
    assert len(set(there)) == len(there)
    assert set(there) == set(items(NUMBERED[paper]))


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_is_carried(paper: str):
    nothing = items(NOTHING.get(paper, "")) if paper in NOTHING else []
    for item, cell in carried(paper):
        links = re.findall(r"\[([^]]+)\]\((gallery|errata)\.md\)", cell)
        for text, page in links:
            if page == "errata":
                assert f"{paper} {text.removeprefix('erratum ')}" in ERRATA, text
            else:
                assert text in ITEMS
                assert text.startswith(paper.lower()), text
        assert bool(links or "`" in cell) != (item in nothing), item


@pytest.mark.parametrize("cell", ["", "*words only*", "Theorem 2 below"])
def test_an_item_that_nothing_carries_is_noticed(cell: str, monkeypatch: pytest.MonkeyPatch):
    page = re.sub(r"^(\| Theorem 1 \|[^|]*\|)[^|]*\|$", rf"\1 {cell} |", PAGE, flags=re.M)
    assert page != PAGE
    monkeypatch.setitem(carried.__globals__, "PAGE", page)
    with pytest.raises(AssertionError, match="Theorem 1"):
        test_every_numbered_item_is_carried("HAMMING")


def test_an_item_that_is_missing_is_noticed(monkeypatch: pytest.MonkeyPatch):
    page = re.sub(r"^\| Lemma 7 \|.*\n", "", PAGE, flags=re.M)
    monkeypatch.setitem(carried.__globals__, "PAGE", page)
    with pytest.raises(AssertionError):
        test_every_numbered_item_is_there_once("HAMMING")


def test_every_algorithm_of_a_paper_is_there():
    for name in iterative.__all__:
        doc = inspect.getdoc(getattr(iterative, name)) or ""
        if re.search(r"\((LEAKAGE|SEQUENTIAL|ENVELOPE) Algorithm", doc.splitlines()[0]):
            assert f"iterative.{name}" in NAMES, name
