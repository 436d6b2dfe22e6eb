"""A small sample of the simulated surveys; and what the page says of the large one."""

import importlib
import math
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def surveys(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.surveys")


def test_intervals_hold(surveys: ModuleType):
    lines = surveys.coverage(8).splitlines()
    assert len(lines) == 2 + 5 + 1
    total = re.findall(r"(\d+) of 20", lines[-1])
    assert len(total) == 2
    least = 20 * 0.95 - 4 * math.sqrt(20 * 0.95 * 0.05)
    assert all(int(held) >= least for held in total)


def test_the_page_says_what_was_counted():
    text = (ROOT / "docs" / "tutorials" / "survey.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| (\d+) of (\d+) \| (\d+) of (\d+) \|", text)
    *channels, total = [tuple(map(int, row)) for row in rows]
    assert [row[1::2] for row in channels] == [(1000, 1000)] * 5
    assert total == tuple(map(sum, zip(*channels, strict=True)))
    assert all(held >= 950 for row in channels for held in row[::2])
