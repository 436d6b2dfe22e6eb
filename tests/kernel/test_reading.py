"""Parts of files, read strictly; queries and spaces; what a term's numbers may be."""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.kernel import reading, space
from cvxleak.kernel.budget import limited
from cvxleak.kernel.leakage import RecordLeakage, audited_groups
from cvxleak.kernel.numbers import RefusedError, precision
from cvxleak.kernel.reading import array, bound, chosen, count, end_term, items, pack, parts
from cvxleak.kernel.space import label, read_query
from cvxleak.kernel.terms import DEEPEST, Leaf, Shape, read_term
from cvxleak.kernel.view import Row, read_channel, view_of
from tests.kernel.forging import PROBLEM, SHARE, VERTICES, changed, close, prove


def test_objects_have_the_keys_that_they_need_and_may_have() -> None:
    assert parts({"a": 1, "b": 2}, {"a"}, "it", {"b", "c"}) == {"a": 1, "b": 2}
    for value, message in (
        ([], "it: expected an object"),
        ({"b": 1}, "it: without a"),
        ({"a": 1, "d": 1}, "it: it has no d"),
    ):
        with pytest.raises(RefusedError, match=message):
            parts(value, {"a"}, "it", {"b"})


def test_a_term_of_an_end_is_of_its_rule() -> None:
    term = {"rule": "point", "weights": 1}
    assert end_term(term, "point", {"weights"}, "an end") is term
    for wrong in (term | {"rule": "max"}, term | {"more": 1}, {"rule": "point"}, None):
        with pytest.raises(RefusedError):
            end_term(wrong, "point", {"weights"}, "an end")


@pytest.mark.parametrize(
    "value", [None, 5, "kind", {}, {"kind": 1}, {"kind": ["a"]}, {"kind": "c"}]
)
def test_a_choice_is_one_of_the_texts(value: Any) -> None:
    assert chosen({"kind": "a"}, "it", ("a", "b")) == "a"
    with pytest.raises(RefusedError, match=r"of it|it: expected"):
        chosen(value, "it", ("a", "b"))


def test_lists_are_of_their_length() -> None:
    assert items([1, 2], "it", 2) == items([1, 2], "it") == [1, 2]
    for value, length in (((1, 2), None), ({"0": 1}, 1), ([1], 2), ([1, 2], 1)):
        with pytest.raises(RefusedError):
            items(value, "it", length)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 0, 5, 6, -1])
def test_counts_are_whole_numbers_of_a_range(value: Any) -> None:
    assert [count(x, "it", 1, 5) for x in (1, 4)] == [1, 4]
    assert count(1 << 40, "it") == 1 << 40
    with pytest.raises(RefusedError, match="it: found"):
        count(value, "it", 1, 5)


def test_packed_arrays_are_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pack([[1.0, 2.0], [3.0, 4.0]], "<f8")
    assert array(table, "it", "f", 2).tolist() == array(table, "it", "f", 0).tolist()
    assert array(pack([1, 2], "<i4"), "it", "i").tolist() == [1, 2]
    assert array(pack([1, 2], "<f4"), "it", "f").tolist() == [1, 2]
    nothing = pack(np.zeros((0, 2)), "<f8")
    assert array(nothing, "it", "f", 2).shape == (0, 2)
    longer = pack([1.0, 2.0, 3.0, 4.0, 5.0], "<f8")["data"]
    wrong: list[tuple[Any, str, int | None]] = [
        (table, "i", 2),
        (table, "f", 1),
        (table, "f", 3),
        (table, "f", None),
        (pack([1.0], "<f8"), "f", 0),
        (pack(np.zeros((1, 1, 1)), "<f8"), "f", 0),
        (pack([1, 2], "<i4") | {"dtype": "<i8"}, "i", None),
        (table | {"data": longer}, "f", 2),
        (table | {"shape": [2, 2, 1]}, "f", 2),
        (table | {"more": 1}, "f", 2),
        (pack([1.0, np.nan], "<f8"), "f", None),
        (pack([np.inf, np.inf], "<f4"), "f", None),
    ]
    for value, dtypes, columns in wrong:
        with pytest.raises(RefusedError):
            array(value, "it", dtypes, columns)
    monkeypatch.setattr(reading, "MOST_BYTES", 32)
    array(table, "it", "f", 2)
    monkeypatch.setattr(reading, "MOST_BYTES", 31)
    with pytest.raises(RefusedError, match="too many bytes"):
        array(table, "it", "f", 2)


def test_packed_arrays_end_where_their_data_do() -> None:
    table = pack([1.0, 2.0], "<f8")
    raw = base64.b64decode(table["data"])
    for data in (raw + b"x", raw[:-1], zlib.compress(bytes(15)), zlib.compress(bytes(17))):
        with pytest.raises(RefusedError):
            array(table | {"data": base64.b64encode(data).decode()}, "it", "f")


def test_claimed_bounds() -> None:
    assert [bound(x, "it") for x in ("inf", 0, "1/4", -2.5)] == [np.inf, 0, 0.25, -2.5]


# Queries ------------------------------------------------------------------------------------------

QUERY = PROBLEM["mechanism"]["query"]
TABLE = {
    "kind": "table",
    "space": {"alphabets": [[[0, 1], 1], [[0, 1, 2], 1]]},
    "table": [0, 1, 0, 1, 1, 0],
    "values": ["a", "b"],
}


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        QUERY | {"kind": "magic"},
        QUERY | {"more": 1},
        QUERY | {"totals": [], "values": []},
        QUERY | {"totals": [[0], [1], [2], [3], []], "values": [0, 1, 2, 3, 4]},
        QUERY | {"totals": [[0], [1], [2], [True]]},
        QUERY | {"totals": [[0], [1], [2], [1 << 62]]},
        QUERY | {"totals": [[0], [1], [2], [-(1 << 62)]]},
        QUERY | {"totals": [[0], [1], [2], ["3"]]},
        QUERY | {"contributions": [[[[], []], 3]], "totals": [[]], "values": [0]},
        QUERY | {"totals": [[0], [1], [2], [3], [4, 0]], "values": [0, 1, 2, 3, 4]},
        QUERY | {"totals": [[0], [1], [2], [2]]},
        QUERY | {"totals": [[i, i] for i in range(4)], "contributions": [[[[0, 0], [1, True]], 3]]},
        QUERY | {"contributions": [[[[0], [1, 1]], 3]], "totals": [[0], [1], [2], [3, 3]]},
        QUERY | {"contributions": [[[[0], [1], [2]], 3]]},
        QUERY | {"contributions": [[[[0]], 3]]},
        QUERY | {"contributions": [[[[0], [1]], 2], [[[0], [1], [1]], 1]]},
        QUERY | {"contributions": []},
        QUERY | {"contributions": [[[[0], [1]], 4]]},
        QUERY | {"contributions": [[[[0], [1]], 3], [[[0], [1]], 1]]},
        QUERY | {"contributions": [[[[0], [1]], 0]]},
        QUERY | {"contributions": [], "space": {"alphabets": []}},
        QUERY | {"contributions": [[[], 3]], "space": {"alphabets": [[[], 3]]}},
        QUERY | {"space": {"alphabets": [[[0, 1], 3]], "more": 1}},
        QUERY | {"space": {"alphabets": [[[0, 1], 3, 1]]}},
        QUERY | {"space": {"alphabets": [[[0, 0], 3]]}},
        TABLE | {"more": 1},
        TABLE | {"values": ["a", "a"]},
        TABLE | {"values": ["a", "b", "c"]},
        TABLE | {"table": [0, 1, 0, 1, 1]},
        TABLE | {"table": [0, 1, 0, 1, 1, 2]},
        TABLE | {"table": [0, 0, 0, 0, 0, 0]},
        TABLE | {"table": [0], "values": ["a"], "space": {"alphabets": []}},
        TABLE | {"table": [], "values": [], "space": {"alphabets": [[[], 1]]}},
    ],
)
def test_forged_queries_are_refused(wrong: Any) -> None:
    with pytest.raises(RefusedError):
        read_query(wrong)


@pytest.mark.parametrize(("gain", "number"), [({"kind": "guess"}, 2), ({"table": []}, 3)])
def test_the_order_of_records_matters_for_actions_alone(gain: Any, number: int) -> None:
    contributions = [[[[0], [1]], 1], [[[0], [2]], 1], [[[0], [1]], 1]]
    totals = {"totals": [[i] for i in range(5)], "values": list(range(5))}
    space = read_query(QUERY | {"contributions": contributions} | totals)
    groups = audited_groups(space, {"size": 2, "records": None, "gain": gain})
    assert len(groups) == number


def test_records_are_in_the_order_of_the_file() -> None:
    contributions = [[[[0], [1]], 1], [[[0], [2]], 2]]
    totals = [[i] for i in range(6)]
    read = read_query(
        QUERY | {"contributions": contributions, "totals": totals, "values": list(range(6))}
    )
    assert read.each == [((0,), (1,)), ((0,), (2,)), ((0,), (2,))]


def test_limits_of_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    read_query(QUERY | {"totals": [[0], [1], [2], [(1 << 62) - 1]]})
    with monkeypatch.context() as patched:
        patched.setattr(space, "LONGEST", 6)
        read_query(TABLE)
        patched.setattr(space, "LONGEST", 5)
        with pytest.raises(RefusedError, match="too many datasets"):
            read_query(TABLE)
    monkeypatch.setattr(space, "MOST_RECORDS", 3)
    read_query(TABLE)
    assert read_query(QUERY).records == 3
    monkeypatch.setattr(space, "MOST_RECORDS", 1)
    with pytest.raises(RefusedError, match="too many records"):
        read_query(TABLE)
    monkeypatch.setattr(space, "MOST_RECORDS", 2)
    with pytest.raises(RefusedError, match="contributions: found 3"):
        read_query(QUERY | {"space": {"alphabets": [[[0, 1], 1]] * 2}})


def test_what_is_far_too_large_is_not_even_counted() -> None:
    """The numbers of datasets, and of a group's values, have a million bits."""
    sixteen = [[list(range(16)), 1 << 20]]
    with pytest.raises(RefusedError, match="too many datasets"):
        read_query(TABLE | {"space": {"alphabets": sixteen}})
    one = [[["only"], 1 << 10], [[0, 1], 1]]
    assert read_query(TABLE | {"space": {"alphabets": one}, "table": [0, 1]}).records == 1025
    many = space.Space((((((0,),) * 16), 1 << 20),), (0,), {(0,): 0}, ("only",))
    with limited(), pytest.raises(RefusedError, match="ball operations"):
        many.contexts((0,) * (1 << 20))


def test_groups_are_no_larger_than_the_dataset() -> None:
    read = read_query(QUERY)
    assert [read.groups(size) for size in (1, 2, 3)] == [[(0,)], [(0, 0)], [(0, 0, 0)]]
    for size in (0, 4):
        with pytest.raises(RefusedError, match="larger than the dataset"):
            read.groups(size)
    assert read.totals((0, 0, 0)) == {(0,): 1}
    with pytest.raises(RefusedError, match="more records of a run"):
        read.totals((0,) * 4)


@pytest.mark.parametrize("by_halves", [False, True])
@pytest.mark.parametrize(
    ("own", "n"),
    [
        ([(0,), (3,), (9,)], 5),
        ([(7,), (1,), (4,)], 4),
        ([(0, 1), (2, 5), (4, 9)], 3),
        ([(0, 0), (0, 1), (1, 0)], 4),
        ([(0, 0), (1, 0), (1, 1)], 3),
        ([(2,), (2,), (5,)], 3),
        ([(5,)], 4),
        ([(0,), (1,)], 2),
        ([(0,), (1,)], 1),
    ],
)
def test_totals_are_those_of_all_datasets(
    own: Any, n: int, by_halves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_halves:
        monkeypatch.setattr(space, "_line", lambda totals: (totals[0], totals[0], []))
    sums = Counter(tuple(map(sum, zip(*x, strict=True))) for x in product(own, repeat=n))
    moduli = (0,) * len(own[0])
    read = space.Space(((tuple(own), n),), moduli, {}, ())
    assert read.totals() == sums


def test_labels_are_texts_that_tell_numbers_apart() -> None:
    class Carries(float):
        def __repr__(self) -> str:
            return "1/3"

        __str__ = __repr__

    assert label(Carries(1 / 3)) != label(1 / 3) == "0.3333333333333333"
    assert label("1") != label(1)
    assert label((1, "a")) == label([1, "a"])


# Channels and views -------------------------------------------------------------------------------


def test_rows_and_boxes_are_read() -> None:
    with precision():
        (row,) = read_channel({"matrix": [["0.5", "0.5000005"]]})
        assert row.key == (fmpq(1, 2), fmpq(1000001, 2000000))
        assert abs(row.lo[0] + row.lo[1] - 1) < 1e-30
        (box,) = read_channel({"lower": [[0, 1]], "upper": [[0, 1]]})
        assert (list(box.lo), list(box.hi or ())) == ([0, 1], [0, 1])
        (box,) = read_channel({"lower": [["0.2", "0.3"]], "upper": [["0.6", 1]]})
        assert [x.overlaps(y) for x, y in zip(box.lo, (arb("0.2"), arb("0.3")), strict=True)]
        assert (box.hi or ())[1] == 1
        (box,) = read_channel({"lower": [["0.5", "0.5000005"]], "upper": [[1, 1]]})
        assert abs(box.lo[0] + box.lo[1] - 1) < 1e-30


@pytest.mark.parametrize(
    "wrong",
    [
        5,
        None,
        {"matrix": []},
        {"matrix": [[0.5, 0.5]], "more": 1},
        {"matrix": [["0.5", "0.500001"]]},
        {"matrix": [["0.5", "0.499999"]]},
        {"lower": [[0, 0]]},
        {"lower": [[0, 0]], "upper": [[1, 1], [1, 1]]},
        {"lower": [[0, 0], [0, 0]], "upper": [[1, 1]]},
        {"lower": [["0.5", "0.500001"]], "upper": [[1, 1]]},
        {"lower": [[0, 0]], "upper": [["0.5", "0.499999"]]},
        {"lower": [[0, "0.6"]], "upper": [[1, "0.5"]]},
        {"lower": [["-0.1", 0]], "upper": [[1, 1]]},
        {"lower": [[0, 0]], "upper": [[1, "1.1"]]},
    ],
)
def test_forged_channels_are_refused(wrong: Any) -> None:
    with pytest.raises(RefusedError):
        read_channel(wrong)


def test_a_floor_above_the_largest_entropy_by_rounding_is_that() -> None:
    rows = {0: Row([arb(1)], key=(fmpq(1),))}
    with precision():
        most = arb(6).log()
        contexts = [{(0, ()): 2}, {(0, ()): 4}]
        assert view_of(contexts, rows, most + 2.0**-41).floor < most + 1e-30
        assert view_of(contexts, rows, most - 1).floor < most - 0.99
        with pytest.raises(RefusedError, match="no adversary reaches"):
            view_of(contexts, rows, most + 2.0**-39)
        with pytest.raises(RefusedError, match="without contexts"):
            view_of([{(0, ()): 2}, {}], rows, 0)


def test_information_is_shannons_gain_as_a_rise() -> None:
    (view,) = RecordLeakage.read(PROBLEM).views
    assert view.information
    for gain, form in (("shannon", "posterior"), ("shannon", "factor"), ("guess", "rise")):
        (view,) = RecordLeakage.read(changed(gain={"kind": gain}, form=form)).views
        assert not view.information


# Terms --------------------------------------------------------------------------------------------


def test_terms_are_inside_of_one_another_up_to_a_depth() -> None:
    (view,) = RecordLeakage.read(PROBLEM).views
    term: Any = {"rule": "alphabet"}
    deep = {"share": 0.1, "t": [1, 1, 1], "rule": "smoothed"}
    for _ in range(DEEPEST - 1):
        term = deep | {"of": term}
    read_term(term, "J", Shape(view))
    with pytest.raises(RefusedError, match="too deep"):
        read_term(deep | {"of": term}, "J", Shape(view))


def test_a_term_keeps_what_it_concludes_where_it_is() -> None:
    (view,) = RecordLeakage.read(PROBLEM).views
    trace: list[Any] = []
    with precision():
        read_term(close(SHARE), "B", Shape(view)).conclude(view, Leaf(trace=trace))
    found = [(depth, term.rule) for depth, term, _ in trace]
    assert found == [(0, "close"), (1, "share"), (1, "vertices"), (1, "vertices")]
    assert all(concluded is not None for *_, concluded in trace)


def test_a_number_of_a_proof_may_be_the_least_one() -> None:
    (view,) = RecordLeakage.read(PROBLEM).views
    zero = read_term(close(SHARE | {"t": [0, 1, 1]}, 0), "B", Shape(view))
    assert zero.multiplier.written == (0,)
    for wrong in (close(SHARE | {"t": [-1, 1, 1]}), close(SHARE | {"t": [1, 1, -1]})):
        with pytest.raises(RefusedError, match="below 0"):
            read_term(wrong, "B", Shape(view))
    for judgement in ("A", "Z", "BV"):
        with pytest.raises(RefusedError, match="is needed"):
            read_term(VERTICES, judgement, Shape(view))


def test_numbers_of_a_term_may_be_packed() -> None:
    t = [0.25, 0.5, 0.25]
    packed_ = close(SHARE | {"t": pack(t, "<f8")})
    assert prove(packed_) == prove(close(SHARE | {"t": t}))
    with pytest.raises(RefusedError, match="3 are needed"):
        prove(close(SHARE | {"t": pack(t[:2], "<f8")}))
