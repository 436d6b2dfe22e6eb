"""The benchmarks that make the documentation's numbers run, and the numbers are theirs."""

from __future__ import annotations

import importlib
import io
import math
import re
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"benchmarks.{name}")

    return load


def cells(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def ends(cell: str) -> tuple[float, float]:
    low, high = map(float, cell.split(" to "))
    return low, high


def test_local_methods_end_below_the_proved_upper_end(benchmarks):
    cases = benchmarks("_audit_cases").CASES
    chosen = [
        case for case in cases if case.name.endswith("b = 1") or case.name.endswith("b = 1.2")
    ]
    rows, costs = map(cells, benchmarks("local_methods").comparison(chosen, 1, 60.0))
    assert [row[0] for row in rows] == [case.name for case in chosen]
    for _, uniform, median, best, short, joint, exact, certified in rows:
        low, high = ends(certified)
        missing = 1 - max(float(uniform), float(best)) / low
        assert float(short.rstrip("%")) == pytest.approx(100 * max(missing, 0), abs=0.1)
        assert exact == "0"
        assert max(map(float, (uniform, median, best, joint))) <= high + 1e-5
        assert float(joint) >= low - 1e-5
    assert [row[0] for row in costs] == [case.name for case in chosen]
    assert all(int(cost) > 0 for row in costs for cost in row[1:4])
    assert all(float(cost) >= 0 for row in costs for cost in row[4:])
    assert {len(row) for row in costs} == {8}


def test_the_page_has_what_is_computed(benchmarks):
    module, pages = benchmarks("local_methods"), benchmarks("_pages")
    assert cells(pages.section("local_methods.md", "prior")) == cells(module.printed_prior())
    page, computed = pages.section("local_methods.md", "table 3"), module.printed_table(1)
    for on_page, now in zip(cells(page), cells(computed), strict=True):
        for column in (0, 1, 3, 4, 6):  # Algorithm 1 depends on its random starts
            assert on_page[column] == now[column]
    names = [case.name for case in benchmarks("_audit_cases").CASES]
    for name in ("local_methods.md", "relaxations.md"):
        assert [row[0] for row in cells(pages.section(name, "comparison"))] == names


def test_the_page_shows_what_it_says(benchmarks):
    rows = cells(benchmarks("_pages").section("local_methods.md", "comparison"))
    short = 0
    for _, uniform, _, best, missing, joint, exact, certified in rows:
        low, high = ends(certified)
        assert low - 1e-5 <= float(joint) <= high + 1e-5
        assert (missing == "0") == (max(float(uniform), float(best)) >= low - 2e-5)
        assert exact == "0"
        short += max(float(uniform), float(best)) < low - 1e-4
    assert short >= 12


def test_the_witness_passes_the_check_by_hand(benchmarks):
    bound, adversary = benchmarks("local_methods").worst_prior()
    prior = adversary.mechanism.expand(adversary.records[0], adversary.weights)
    alpha = 8 * min(prior.probabilities)

    def h(p: float) -> float:
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    q = alpha * 0.6967 + (1 - alpha) * 0.3033
    assert 3 * math.log(2) + h(alpha) == pytest.approx(2.495, abs=1e-6)
    assert math.log(2) - h(q) == pytest.approx(bound.lower, abs=1e-6)
    assert (round(alpha, 4), round(h(alpha), 4), round(q, 4), round(h(q), 4)) == (
        0.1459,
        0.4156,
        0.3607,
        0.6538,
    )


def test_the_figure_is_drawn_at_reduced_size(benchmarks, tmp_path):
    path = tmp_path / "figure.svg"
    module = benchmarks("local_methods")
    drawing = module.figure(path, sizes=(2,), points=7, dots=3, starts=1)
    assert path.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    (axis,) = drawing.axes
    curves = [line for line in axis.lines if len(line.get_xdata()) == 7]
    assert len(curves) == len(module.FLIPS)
    for flip, curve in zip(module.FLIPS, curves, strict=True):
        capacity = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
        assert curve.get_ydata()[0] == pytest.approx(capacity, rel=1e-4)
        assert curve.get_ydata()[-1] == pytest.approx(0, abs=1e-6)
    assert (ROOT / "docs" / "figures" / "parity_leakage.svg").is_file()


@pytest.mark.parametrize("title", ["`local_dp`", "`pml`"])
def test_repaired_channels_are_within_their_budgets(benchmarks, title):
    clipped, repaired = benchmarks("solvers").over_budget(title, "CLARABEL")
    assert clipped > 0
    assert repaired == 0


def test_relaxations_are_above_the_leakage(benchmarks):
    cases = benchmarks("_audit_cases").CASES[:14:7]
    for _, leakage, *uppers, _ in cells(benchmarks("relaxations").comparison(cases, 60.0)):
        assert all(float(upper) >= float(leakage) for upper in uppers)


def test_the_programs_of_the_relaxations_page():
    page = (ROOT / "docs" / "relaxations.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(programs) == 3
    for program in programs:
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile(program, "relaxations.md", "exec"), {})
        assert output.getvalue().split() == re.findall(r"  # ([\d.]+):", program)


def test_scip_gets_the_same_problem(benchmarks):
    pytest.importorskip("pyscipopt")
    audit = benchmarks("audit")
    case = benchmarks("_audit_cases").CASES[0]
    mine = audit.ours(case)
    assert mine.closed
    for cut in (False, True):
        peer = audit.with_scip(case, 20.0, cut)
        assert peer.closed
        assert peer.lower == pytest.approx(mine.lower, rel=2e-4)
        assert peer.upper == pytest.approx(mine.upper, rel=2e-4)
