"""qif and cvxleak compute the same numbers in the benchmark, where qif is installed."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_both_have_the_same_values(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("qif")
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.qif")
    found = module.rows([*module.floats(5), *module.rationals(3)])
    assert len(found) == 13
    assert all(abs(off) < 1e-12 for *_, off in found)
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    content = module.comparison(60.0, (5,), (3,))
    shown = page.split("<!-- computed: qif -->")[1].split("<!-- end of qif -->")[0]
    names = [re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) for text in (content, shown)]
    assert names[0] == names[1]
