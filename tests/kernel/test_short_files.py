"""Short files that stand for very much: refused before it takes memory, or gone through at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.kernel import cases, lemmas, ratio, space
from cvxleak.kernel.budget import LIMITS, limited
from cvxleak.kernel.covers import replay
from cvxleak.kernel.gains import read_gain
from cvxleak.kernel.independent import ProductLeakage
from cvxleak.kernel.knowledge import read_knowledge
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import RefusedError, precision
from cvxleak.kernel.reading import pack
from cvxleak.kernel.space import Space, read_query
from cvxleak.kernel.view import Row
from tests.kernel.forging import HONEST, cells, chord, close, nothing, prove, with_


@pytest.fixture(autouse=True)
def _one_file() -> Iterator[None]:
    with precision(), limited():
        yield


def powers_of_two(records: int) -> Space:
    """Return a sum in which each dataset has a total of its own."""
    stretches = tuple((((0,), (1 << i,)), 1) for i in range(records))
    return Space(stretches, (0,), {(0,): 0}, ("only",))


def test_totals_off_a_line_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "LONGEST", 1 << 10)
    assert len(powers_of_two(10).totals()) == 1 << 10
    with pytest.raises(RefusedError, match="totals; at most 1024"):
        powers_of_two(11).totals()


def test_groups_of_many_kinds_are_limited() -> None:
    assert len(powers_of_two(20).groups(2)) == 190
    with pytest.raises(RefusedError, match="bytes of numbers"):
        powers_of_two(30).groups(14)


def test_joint_values_of_a_group_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Space(((((0,), (0,)), 27),), (0,), {(0,): 0}, ("only",))
    monkeypatch.setitem(LIMITS, "bytes of numbers", 512 << 10)
    assert len(same.contexts((0,) * 10)) == 1 << 10
    with pytest.raises(RefusedError, match="bytes of numbers"):
        same.contexts((0,) * 26)


def test_cells_of_very_many_values_are_limited() -> None:
    many = 5000
    query = {
        "kind": "additive",
        "space": {"alphabets": [[list(range(many)), 1]]},
        "contributions": [[[[i] for i in range(many)], 1]],
        "totals": [[0], [1]],
        "values": [0, 1],
        "modulus": 2,
    }
    mechanism = {"query": query, "channel": {"matrix": [[1, 0], [0, 1]]}}
    problem = {"mechanism": mechanism, "entropy_floor": 0, "size": 1, "records": None}
    term = cells(close(chord([0] * 2 * many), 0))
    with pytest.raises(RefusedError, match="bytes of numbers"):
        RecordLeakage.read(problem).upper({"rule": "max", "groups": [[term]]})


def test_a_tree_of_one_long_branch_is_limited() -> None:
    def nodes(cuts: int) -> Any:
        return np.repeat([0, -1], [cuts, cuts + 1])[
            np.argsort(np.r_[0, 2 : 2 * cuts : 2, 1 : 2 * cuts + 2 : 2])
        ][:, None]

    root = np.zeros((64, 64), dtype=int)
    split = lambda parts, nodes, cuts: np.repeat(parts, 2, 0)  # noqa: E731
    assert len(replay(root, nodes(3), np.ones(3), split)) == 4
    with pytest.raises(RefusedError, match="numbers of a tree's parts"):
        replay(root, nodes(1 << 18), np.ones(1 << 18), split)


def test_guesses_in_tries_are_limited() -> None:
    assert len(read_gain({"kind": "tries", "tries": 3}, 10).linear) == 120
    with pytest.raises(RefusedError, match="bytes of numbers"):
        read_gain({"kind": "tries", "tries": 12}, 24)


def test_very_many_pairs_of_rows_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[arb(0.9), arb(0.1)], [arb(0.8), arb(0.2)]]
    assert lemmas.contraction(rows) < 0.1
    monkeypatch.setattr(lemmas, "MOST_PAIRS", 3)
    assert lemmas.contraction(rows) == 1


def test_what_is_known_of_very_many_records_is_limited() -> None:
    own = (((0,),) * 16, 1 << 20)
    many = Space((own,), (0,), {(0,): 0}, ("only",))
    known = {
        "kind": "expectation",
        "values": [0] * 16,
        "records": [0],
        "query": None,
        "at_least": 0,
        "at_most": None,
        "name": "",
    }
    with pytest.raises(RefusedError, match="bytes of numbers"):
        read_knowledge([known], many)


def test_limits_of_very_many_contexts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Space(((tuple((i,) for i in range(60)), 1),), (0,), {(i,): 0 for i in range(60)}, ("",))
    known = [{"kind": "marginals", "law": ["1/60"] * 60, "records": [0]}]
    assert len(read_knowledge(known, one).view((0,), {0: row()}, 0).limits) == 118
    monkeypatch.setitem(LIMITS, "bytes of numbers", 64 * 118 * 60)
    with limited(), pytest.raises(RefusedError, match="bytes of numbers"):
        read_knowledge(known, one).view((0,), {0: row()}, 0)


def row() -> Row:
    return Row([arb(1)], key=(fmpq(1),))


def of_product(records: int, laws: Any, modulus: int = 2, step: int = 1) -> ProductLeakage:
    """Return a sum of independent records, half of which count `step` times."""
    half = records // 2
    query = {
        "kind": "additive",
        "space": {"alphabets": [[[0, 1], records]]},
        "contributions": [[[[0], [1]], half], [[[0], [step]], records - half]],
        "totals": [[i] for i in range(modulus)],
        "values": list(range(modulus)),
        "modulus": modulus,
    }
    matrix = [[1, 0] if i % 2 else [0, 1] for i in range(modulus)]
    mechanism = {"query": query, "channel": {"matrix": matrix}}
    return ProductLeakage.read({"mechanism": mechanism, "record": 0, "laws": {"vertices": laws}})


def test_sums_of_very_many_independent_records_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = [[[["1/2", "1/2"]], 400]]
    term = {"rule": "corners", "inputs": [pack([[1.0]], "<f8")]}
    assert of_product(400, laws).upper(term) < 1e-9
    monkeypatch.setitem(LIMITS, "bytes of numbers", 8 * 200 * 100)
    with limited(), pytest.raises(RefusedError, match="bytes of numbers"):
        of_product(400, laws).upper(term)


def test_cases_that_are_far_apart_are_computed_in_small_blocks() -> None:
    statement = of_product(100, [[[[1, 0], [0, 1]], 100]], 4_001, 4_000)
    people = statement.people()
    assert statement.cases(people, 0) == 50 * 51
    block = next(iter(statement.blocks(people, 0)))
    assert len(block) * statement.channels.totals < 1 << 25


def test_contexts_of_an_independent_record_are_gone_through_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = {
        "kind": "additive",
        "space": {"alphabets": [[[0, 1], 30]]},
        "contributions": [[[[0], [1]], 30]],
        "totals": [[i] for i in range(31)],
        "values": list(range(31)),
        "modulus": None,
    }
    matrix = [[f"{i + 1}/32", f"{31 - i}/32"] for i in range(31)]
    mechanism = {"query": query, "channel": {"matrix": matrix}}
    statement = ProductLeakage.read({"mechanism": mechanism, "record": 0, "entropy_floor": 0})
    term = {"rule": "contexts", "inputs": [pack(np.ones((30, 2)), "<f8")]}
    whole = statement.upper(term)
    monkeypatch.setattr(cases, "BLOCK", 28)
    blocks = list(statement.blocks(statement.people(), 0))
    assert list(map(len, blocks)) == [7, 7, 7, 7, 2]
    assert statement.upper(term) == whole > 0


def test_functionals_of_very_many_outputs_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not nothing(HONEST["ratio"])
    few_groups = pack(np.zeros((2, 2)), "<f8")
    narrow = with_(HONEST["ratio"], "of.values.0.x", pack(np.zeros((3, 2)), "<f8"))
    narrow = with_(narrow, "of.values.0.psi", few_groups)
    assert not nothing(narrow)
    monkeypatch.setattr(ratio, "LARGEST", 8)
    with pytest.raises(RefusedError, match="too many groups and outputs"):
        prove(narrow)


def test_alike_independent_records_are_one_object() -> None:
    laws = [[["1/2", "1/2"]], 3], [[["1/2", "1/2"]], 5], [[[1, 0]], 2]
    people = of_product(10, list(laws)).people()
    assert [people.index(one) for one in people] == [0, 0, 0, 0, 0, 0, 0, 0, 8, 8]
    assert hash(people[0]) == object.__hash__(people[0])


def test_queries_with_a_total_for_each_dataset_are_read() -> None:
    query = {
        "kind": "additive",
        "space": {"alphabets": [[[0, 1], 3]]},
        "contributions": [[[[0], [1 << i]], 1] for i in range(3)],
        "totals": [[i] for i in range(8)],
        "values": list(range(8)),
        "modulus": None,
    }
    assert len(read_query(query).totals()) == 8
