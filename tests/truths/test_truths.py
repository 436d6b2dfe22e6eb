"""Every bracket holds the truth, and every certificate passes."""

from collections import Counter

import pytest

from cvxleak.problem.registry import PROBLEMS
from tests.truths import known
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
    answer = solve(entry)
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


def test_every_problem_has_ten_entries():
    found = Counter(entry["problem"] for entry in ENTRIES)
    assert {name: found[name] for name in PROBLEMS if found[name] < 10} == {}


def test_half_are_neither_closed_forms_nor_two_by_two():
    plain = [entry for entry in ENTRIES if entry["kind"] == "closed form" or two_by_two(entry)]
    assert len(plain) <= len(ENTRIES) / 2


def two_by_two(entry):
    """Whether the largest table of an entry has at most four numbers."""
    sizes = list(tables(entry["data"]))
    return bool(sizes) and max(sizes) <= 4


def tables(data):
    """Yield the sizes of the lists of lists in an entry's data."""
    if isinstance(data, dict):
        for part in data.values():
            yield from tables(part)
    elif isinstance(data, list):
        if any(isinstance(row, list) for row in data):
            yield sum(1 for _ in leaves(data))
        for part in data:
            yield from tables(part)


def leaves(data):
    if isinstance(data, list):
        for part in data:
            yield from leaves(part)
    else:
        yield data


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [case(entry) for entry in ENTRIES if entry["problem"] in known.TRUTHS and "how" not in entry][
        ::5
    ],
)
def test_truths_computed_anew_meet_those_that_are_stored(entry):
    assert known.agree(entry), (known.truth(entry), entry["truth"])


def test_a_wrong_truth_is_noticed():
    entry = next(entry for entry in ENTRIES if entry["name"] == "capacity-bsc-0.1")
    off = entry | {"truth": [end + 1e-6 for end in entry["truth"]]}
    assert known.agree(entry)
    assert not known.agree(off)
    assert not solve(entry).meets(off)
