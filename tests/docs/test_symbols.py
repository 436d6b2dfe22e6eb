"""docs/symbols.md: every name exists, and every public problem and paper's algorithm is there."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from cvxleak import iterative

PAGE = (Path(__file__).parents[2] / "docs" / "symbols.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("|")]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row.split("|")[-2])})


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


def test_every_paper_has_a_table():
    titles = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
    assert titles == ["LEAKAGE", "ENVELOPE", "HAMMING", "DALENIUS", "SEQUENTIAL"]


def test_every_algorithm_of_a_paper_is_there():
    for name in iterative.__all__:
        doc = inspect.getdoc(getattr(iterative, name)) or ""
        if re.search(r"\((LEAKAGE|SEQUENTIAL|ENVELOPE) Algorithm", doc.splitlines()[0]):
            assert f"iterative.{name}" in NAMES, name
