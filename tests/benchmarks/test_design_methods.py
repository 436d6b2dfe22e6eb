"""LEAKAGE's Algorithms 6 to 11 on the page: what is printed is computed, and is as it says."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOALS = ("leakage", "distortion")


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def cells(markdown):
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def on_page(benchmarks, goal):
    return cells(benchmarks("_pages").section("local_methods.md", f"least {goal}"))


def share(row):
    return float(row[-1].rstrip("%")) / 100


@pytest.mark.parametrize("goal", GOALS)
def test_every_problem_has_its_five_rows(benchmarks, goal):
    names = [case.name for case in benchmarks("design_methods").CASES for _ in range(5)]
    assert [row[0] for row in on_page(benchmarks, goal)] == names
    assert {row[1] for row in on_page(benchmarks, goal)} == {"norm", "variance", "exact step"}


@pytest.mark.parametrize("goal", GOALS)
def test_nothing_ends_below_the_proved_optimum(benchmarks, goal):
    for row in on_page(benchmarks, goal):
        low, high = map(float, row[8].split(" to "))
        assert float(row[7]) >= low
        assert float(row[7]) / high - 1 == pytest.approx(share(row), abs=2e-3)


@pytest.mark.parametrize("goal", GOALS)
def test_the_page_says_what_its_tables_show(benchmarks, goal):
    for row in on_page(benchmarks, goal):
        parity, (search, start) = row[0].startswith("parity"), row[1:3]
        if parity and (
            search == "exact step" or (goal, search, start) == (*GOALS[:1], "norm", "default")
        ):
            assert share(row) < 1e-3
        else:
            assert share(row) > 0.2
    back = [row for row in on_page(benchmarks, goal) if row[4] == "came back"]
    assert {"count", "sum mod 3"} <= {row[0].split(",")[0] for row in back}


@pytest.mark.parametrize(
    "goal", [GOALS[0], *(pytest.param(goal, marks=pytest.mark.slow) for goal in GOALS[1:])]
)
def test_the_numbers_are_computed(benchmarks, goal):
    module = benchmarks("design_methods")
    found = []
    for row in module.rows(module.CASES[0], goal, 60.0):
        found.append(row)
        if len(found) == 2:  # the others take long
            break
    for now, page in zip(found, on_page(benchmarks, goal), strict=False):
        assert now[:5] == page[:5]
        assert float(now[7]) == pytest.approx(float(page[7]), rel=2e-3)
