"""What counts as a mutant of the checker, and that the list of survivors is about mutants."""

import tomllib
from pathlib import Path

import pytest

import cvxleak
from tests.mutation import mutants

HERE = Path(__file__).parent
ROOT = Path(cvxleak.__file__).parents[1]  # not the checkout's: the wheel is tested without one

TEXT = """
def outer(x, y=-1):
    if x < 0 or not y:
        raise ValueError(f"{-x}")
    check(x)
    total = 0
    total += -x
    def inner(z):
        return max(x, z) + round_up(z) if x != y else math.inf
    return inner(x) == 0 <= y < 1
"""


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "sample.py"
    file.write_text(TEXT)
    return mutants.Source(file)


def test_each_place_is_changed_once(source):
    assert [mutant.text for mutant in source.mutants] == [
        "if x < 0 or not y: raise -> never",
        "x < 0 or not y -> not y",
        "x < 0 or not y -> x < 0",
        "x < 0 -> x <= 0",
        "not y -> y",
        "check(x) -> nothing",
        "total += -x -> total -= ...",
        "-x -> x",
        "x != y -> x < y",
        "x != y -> x > y",
        "max(x, z) + round_up(z) -> max(x, z) - round_up(z)",
        "max(x, z) -> min(x, z)",
        "round_up(z) -> round_down(z)",
        "math.inf -> -math.inf",
        "inner(x) == 0 <= y < 1 -> inner(x) >= 0 <= y < 1",
        "inner(x) == 0 <= y < 1 -> inner(x) == 0 < y < 1",
        "inner(x) == 0 <= y < 1 -> inner(x) == 0 <= y <= 1",
    ]
    assert {mutant.function for mutant in source.mutants} == {"outer"}


def test_a_mutant_differs_in_its_place_only(source):
    key = ("outer", 2)
    honest = source.code()[key]
    found = {mutant.text: source.mutated(mutant)[key] for mutant in source.mutants}
    assert all(code != honest for code in found.values())
    assert len(set(found.values())) == len(found)
    assert source.code()[key] == honest


def test_statements_are_counted_as_they_run(source):
    reached = set()
    names = {"__reached__": reached, "check": id}
    exec(TEXT, names)
    names["outer"].__code__ = source.instrumented(10)[("outer", 2)]
    with pytest.raises(ValueError, match="1"):
        names["outer"](-1)
    assert reached == {10, 11}
    guard = source.mutants[0]
    assert guard.statement == 0
    assert {mutant.statement for mutant in source.mutants} <= set(range(source.statements))


def test_survivors_are_mutants_with_a_reason():
    entries = tomllib.loads((HERE / "survivors.toml").read_text())["harmless"]
    files = {Path(ROOT, mutant.split(" ")[0]) for one in entries for mutant in one["mutants"]}
    known = {m.key(ROOT) for file in files for m in mutants.Source(file).mutants}
    listed = [mutant for entry in entries for mutant in entry["mutants"]]
    assert sorted(set(listed)) == sorted(listed)
    assert [mutant for mutant in listed if mutant not in known] == []
    assert all(entry["because"].strip() for entry in entries)
