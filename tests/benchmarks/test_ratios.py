"""The comparison runs at its smallest size, and its page shows what was measured."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ratios(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks._ratios")


def run(seconds: float, lower: float | None = None, note: str = "") -> dict[str, Any]:
    return {"seconds": seconds, "lower": lower, "upper": lower, "note": note, "why": ""}


def small() -> dict[str, Any]:
    """Return a family in which one program is right, one is not, and one is late."""
    return {
        "title": "A family",
        "case": "of size n",
        "attained": "lower",
        "close": 1e-6,
        "relative": False,
        "limit": 1.0,
        "sizes": [1, 2],
        "absent": [],
        "runs": {
            "cvxleak": [run(0.1, 1.0), run(0.2, 2.0)],
            "right": [run(0.2, 1.0), run(0.6, 2.0)],
            "wrong": [run(0.1, 1.0), run(0.1, 1.5)],
            "late": [run(1.0, 1.0), run(4.0, note="out of time")],
        },
        "growth": {"cvxleak": 1.0, "right": 1.6, "wrong": None, "late": None},
    }


@pytest.mark.parametrize("family", ["capacity", "rate-distortion", "envelope", "local-dp"])
def test_programs_agree_at_the_smallest_size(ratios: ModuleType, family: str):
    kind = ratios.FAMILIES[family]()
    case = kind.make(kind.sizes[0])
    lower, upper = kind.programs["cvxleak"](case, 5.0)
    assert lower <= upper
    attained = lower if kind.attained == "lower" else upper
    for name in ("CLARABEL", "CLARABEL, dual form", "CLARABEL, bisection"):
        if name in kind.programs:
            assert kind.programs[name](case, 5.0) == pytest.approx(attained, abs=kind.close)


def test_a_run_is_measured(ratios: ModuleType):
    found = ratios.measure("capacity", "Blahut–Arimoto", 10, 5.0)
    assert found.done
    assert found.seconds > 0
    assert found.lower == pytest.approx(ratios.measure("capacity", "cvxleak", 10, 5.0).lower)


def test_who_fails_is_noted(ratios: ModuleType):
    found = ratios.measure("release", "SCS", 4, 5.0)
    assert found.done or (found.note, bool(found.why)) == ("failed", True)


def test_growth_is_the_exponent(ratios: ModuleType):
    sizes = (10, 20, 40, 80)
    runs = [ratios.Run(1e-3 * n**1.7, 0.0, 0.0) for n in sizes]
    assert ratios.growth(sizes, runs) == pytest.approx(1.7)
    late = ratios.Run(9.0, note="out of time")
    assert ratios.growth(sizes, [*runs[:3], late]) == pytest.approx(1.7)
    assert ratios.growth(sizes, [*runs[:2], late, late]) is None


def test_table_of_a_family(ratios: ModuleType):
    table = ratios.family_table(small())
    cells = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]]
        for line in table.splitlines()
    }
    assert cells["cvxleak"][:3] == ["0.1 s", "0.2 s", "1.0"]
    assert cells["right"] == ["2×", "3×", "1.6", "+0"]
    assert cells["wrong"] == ["1×", "0.5×\\*", "–", "-0.5"]
    assert cells["late"][1] == "> 20×"
    # Where cvxleak is late, who is not is not called so.
    family = small()
    family["runs"]["cvxleak"][1] = run(4.0, note="out of time")
    shown = [ratios.cell(family, name, 1) for name in ("cvxleak", "right", "late")]
    assert shown == ["out of time", "0.6 s", "out of time"]
    best = ratios.best_table({"families": {"one": small()}})
    assert "| A family | 2 | 0.2 s | right | 3× | 1.0 | 1.6 |" in best


def test_page_is_made_of_the_stored_run(ratios: ModuleType):
    pages = importlib.import_module("benchmarks._pages")
    found = ratios.load()
    for name, content in ratios.sections(found).items():
        assert pages.section("benchmarks.md", name) == content.strip()
    assert list(found["families"]) == list(ratios.FAMILIES)
    for family in found["families"].values():
        for program, runs in family["runs"].items():
            runs = [ratios.Run(**one) for one in runs]
            exponent, fitted = family["growth"][program], ratios.growth(family["sizes"], runs)
            assert (exponent is None) == (fitted is None)
            if fitted is not None:
                assert exponent == pytest.approx(fitted)


def test_stored_brackets_are_brackets(ratios: ModuleType):
    for family in ratios.load()["families"].values():
        for one in family["runs"]["cvxleak"]:
            if not one["note"]:
                assert one["lower"] <= one["upper"]
                assert np.isfinite(one["lower"])


def test_every_peer_of_the_page_competes(ratios: ModuleType):
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name in ("SCIP", "qif", "dit", "CLARABEL", "ECOS", "SCS", "HIGHS"):
        assert re.search(rf"^\| {name}", text, re.MULTILINE), name
    for paper in ("LEAKAGE", "ENVELOPE", "HAMMING", "SEQUENTIAL"):
        assert re.search(rf"^\| {paper} ", text, re.MULTILINE), paper
