"""Every bracket holds the truth, and every certificate passes."""

from collections import Counter

import pytest

from tests.truths.problems import failures, load, solve

ENTRIES = load()

SHARP: frozenset[str] = frozenset()
"""The families whose search counts its work: their gaps are asserted."""

TIMES = 5.0
"""How many times the gap of the last measurement a gap may be."""

KINDS = ("closed form", "enumeration", "solver", "brackets")


def case(entry):
    marks = [pytest.mark.slow] if entry.get("slow") else []
    return pytest.param(entry, id=f"{entry['family']}-{entry['name']}", marks=marks)


@pytest.mark.parametrize("entry", [case(entry) for entry in ENTRIES])
def test_the_bracket_holds_the_truth(entry):
    answer = solve(entry, time_limit=60.0)
    assert answer.meets(entry), (answer.lower, answer.upper)
    assert not failures(answer)
    assert answer.certificates or entry.get("unproved") or "infeasible" in answer.stats
    if entry["family"] in SHARP:
        relative, absolute = entry["gap"]
        assert answer.gap[0] <= TIMES * relative or answer.gap[1] <= TIMES * max(absolute, 1e-9)


def test_the_bank_is_in_order():
    names = Counter(entry["name"] for entry in ENTRIES)
    assert [name for name, times in names.items() if times > 1] == []
    for entry in ENTRIES:
        low, high = entry["truth"]
        assert low <= high, entry["name"]
        assert entry["known"].strip(), entry["name"]
        assert entry["kind"] in KINDS, entry["name"]
