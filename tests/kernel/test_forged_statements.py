"""Forged statements, witnesses and claimed bounds: each is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.kernel.balance import Balance
from cvxleak.kernel.budget import limited
from cvxleak.kernel.claims import _at_most
from cvxleak.kernel.gains import read_gain
from cvxleak.kernel.leakage import RecordLeakage, check_adversary, formed, same
from cvxleak.kernel.numbers import RefusedError, lower, precision, rational, upper
from cvxleak.kernel.reading import bound
from cvxleak.kernel.terms import Leaf, Shape, read_term
from cvxleak.kernel.view import Limit, Row, View
from tests.kernel.forging import (
    GAIN,
    HONEST,
    PROBLEM,
    SET,
    SHARE,
    WITNESS,
    attained,
    cells,
    changed,
    chord,
    close,
    prove,
)


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with precision(), limited(), np.errstate(all="ignore"):
        yield


STATEMENTS: dict[str, Any] = {
    "knowledge that is not read": changed(adversaries={}),
    "a gain without its form": changed(gain={"kind": "guess"}),
    "a form without a gain": changed(form="rise"),
    "no such form": changed(**GAIN, form="best"),
    "a form that is no text": changed(**GAIN, form=["rise"]),
    "no such gain": changed(gain={"kind": "wish"}, form="rise"),
    "a norm that is concave": changed(gain={"kind": "arimoto", "alpha": 0.5}, form="rise"),
    "no tries": changed(gain={"kind": "tries", "tries": 0}, form="rise"),
    "actions for another number of values": changed(
        gain={"kind": "matrix", "table": [[1, 0, 0]]}, form="rise"
    ),
    "ragged rows": changed(channel={"matrix": [[0.5, 0.5, 0], [1, 0], [0, 1, 0], [0, 0, 1]]}),
    "rows that do not sum to 1": changed(
        channel={"matrix": [[3, 0, 0], [7, 7, 7], [0, 1, 0], [0, 0, 1]]}
    ),
    "negative probabilities": changed(
        channel={"matrix": [[1.5, -0.5, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]}
    ),
    "too few rows": changed(channel={"matrix": [[1, 0, 0]]}),
    "rows of other inputs": changed(channel={"inputs": [0, 1, 2, 4]}),
    "an output twice": changed(channel={"outputs": [0, 1, 0]}),
    "too few outputs": changed(channel={"outputs": [0, 1]}),
    "more outputs than columns": changed(channel={"outputs": [0, 1, 2, 3]}),
    "outputs in a text": changed(channel={"outputs": "abc"}),
    "an input twice": changed(channel={"inputs": [0, 1, 2, 2]}),
    "an empty set of rows": changed(channel={"lower": [[0, 0]] * 4, "upper": [[0.2, 0.2]] * 4}),
    "no size": changed(size=0),
    "a negative size": changed(size=-1),
    "a size that is too large": changed(size=4),
    "a size that is no number": changed(size=True),
    "a record that is none": changed(records=[[3]]),
    "a negative record": changed(records=[[-1]]),
    "a record twice in a group": changed(size=2, records=[[1, 1]]),
    "no group": changed(records=[]),
    "labels twice": changed(query={"space": {"alphabets": [[[0, 0], 3]]}}),
    "very many records": changed(query={"space": {"alphabets": [[[0, 1], 1 << 40]]}}),
    "other numbers of records": changed(query={"space": {"alphabets": [[[0, 1], 2]]}}),
    "a contribution too few": changed(query={"contributions": [[[[0]], 3]]}),
    "contributions of different lengths": changed(query={"contributions": [[[[0], [1, 1]], 3]]}),
    "a total twice": changed(query={"totals": [[0], [1], [2], [2]]}),
    "a total without a value": changed(query={"totals": [[0], [1], [2], [4]]}),
    "a value too few": changed(query={"values": [0, 1, 2]}),
    "a modulus of 0": changed(query={"modulus": 0}),
    "totals that a modulus makes equal": changed(query={"modulus": 3}),
    "totals shorter than contributions": changed(query={"contributions": [[[[0, 0], [1, 1]], 3]]}),
    "totals of different lengths": changed(
        query={
            "contributions": [[[[0, 0], [1, 0]], 3]],
            "totals": [[0, 0], [1, 0], [2, 0], [3]],
        }
    ),
    "a fraction of a record": changed(query={"contributions": [[[[0], [0.5]], 3]]}),
    "a floor that no adversary reaches": changed(entropy_floor=3),
    "an endless exponent": changed(entropy_floor="1e3000000"),
    "a floor that is no number": changed(entropy_floor=True),
    "an unknown key": changed(comment="all is well"),
    "a mechanism that is none": changed(mechanism=5),
    "a mechanism without a channel": changed(
        mechanism={"query": PROBLEM["mechanism"]["query"], "noise": {"kind": "laplace"}, "more": 1}
    ),
    "a mechanism without a query": {
        **PROBLEM,
        "mechanism": {"channel": PROBLEM["mechanism"]["channel"]},
    },
    "a mechanism of two channels": changed(
        mechanism={**PROBLEM["mechanism"], "channel_set": {"lower": [[0]], "upper": [[1]]}}
    ),
    "a channel that is none": changed(
        mechanism={"query": PROBLEM["mechanism"]["query"], "channel": 5}
    ),
    "an unknown key beside noise": changed(
        mechanism={
            "query": PROBLEM["mechanism"]["query"],
            "noise": {"kind": "laplace", "scale": 1},
            "more": 1,
        }
    ),
    "a gain that is none": changed(gain=5, form="rise"),
    "an unknown key of the channel": changed(channel={"noise": 1}),
}


WIDE = {"lower": [[0.1] * 3] * 4, "upper": [[0.9] * 3] * 4}


def test_a_set_of_channels_says_so() -> None:
    query = PROBLEM["mechanism"]["query"]
    one = {"matrix": PROBLEM["mechanism"]["channel"]["matrix"]}
    RecordLeakage.read(changed(mechanism={"query": query, "channel_set": WIDE}))
    for mechanism in ({"channel": WIDE}, {"channel_set": one}):
        with pytest.raises(RefusedError):
            RecordLeakage.read(changed(mechanism={"query": query, **mechanism}))


MEAN: dict[str, Any] = {
    "kind": "expectation",
    "values": [0, 1, 2, 3],
    "records": None,
    "query": None,
    "name": "total",
}
NOBODY = {
    "a mean in two places": (
        {"entropy_floor": 0, "adversaries": [MEAN | {"at_least": 2.5, "at_most": 0.5}]},
        [100, 100],
        0,
    ),
    "a floor above what a mean leaves": (
        {"entropy_floor": 1.9, "adversaries": [MEAN | {"at_least": None, "at_most": 0.3}]},
        [60],
        50,
    ),
}
"""Classes without an adversary, and multipliers that prove any bound of their leakage."""


@pytest.mark.parametrize("name", NOBODY)
def test_no_upper_end_is_below_what_every_adversary_attains(name: str) -> None:
    more, limits, multiplier = NOBODY[name]
    assert prove(close(SHARE, multiplier, limits), problem=changed(**more)) == 0
    for form, least in (("rise", 0), ("posterior", 0.5)):
        problem = changed(**more, gain={"kind": "gini"}, form=form)
        term = chord() if form == "posterior" else prior(chord())
        found = prove(cells(close(term, multiplier, limits)), problem=problem)
        assert found == pytest.approx(least)


def prior(of: Any) -> dict[str, Any]:
    return {"rule": "prior", "points": [[1, 1]], "theta": [1], "of": of}


def test_a_floor_that_excludes_everyone_keeps_no_more_than_all() -> None:
    more, limits, multiplier = NOBODY["a floor above what a mean leaves"]
    statement = Balance.read(changed(**more))
    leakage = {"rule": "max", "groups": [[close(SHARE, multiplier, limits)]]}
    free = {"rule": "point", "group": 0, "weights": [0, 0, 40, 0, 0, 7]}
    term = {"rule": "difference", "capacity": free, "leakage": leakage}
    assert 0 < lower(statement.lower(term)) < 0.7


def test_a_fraction_is_compared_with_what_is_infinite() -> None:
    assert not _at_most(float("inf"), "1/3")
    assert not _at_most("1/3", -float("inf"))
    assert _at_most("1/3", float("inf"))
    assert _at_most(float("inf"), "inf")


@pytest.mark.parametrize("name", STATEMENTS)
def test_forged_statements_are_refused(name: str) -> None:
    with pytest.raises(RefusedError):
        RecordLeakage.read(STATEMENTS[name])


def test_very_many_bits_are_refused_before_they_are_computed() -> None:
    many = {"space": {"alphabets": [[[0, 1], 1 << 20]]}, "contributions": [[[[0], [1]], 1 << 20]]}
    with pytest.raises(RefusedError, match="asks for more"):
        RecordLeakage.read(changed(query=many))
    with pytest.raises(RefusedError, match="asks for more"):
        RecordLeakage.read(changed(size=18, query=many))


def test_rows_belong_to_the_inputs_that_they_are_listed_with() -> None:
    rows = PROBLEM["mechanism"]["channel"]["matrix"]
    moved = changed(
        channel={"inputs": [2, 0, 3, 1], "matrix": [rows[2], rows[0], rows[3], rows[1]]}
    )
    assert attained(moved) == attained()
    assert attained(changed(channel={"inputs": [1, 0, 2, 3]})) != attained()


@pytest.mark.parametrize("entry", [0, -1, True, 1, 0.0, [], None, {}])
def test_a_group_is_the_same_as_an_earlier_one_or_has_terms(entry: Any) -> None:
    statement = RecordLeakage.read(PROBLEM)
    with pytest.raises(RefusedError):
        statement.upper({"rule": "max", "groups": [entry]})


def test_groups_that_differ_are_not_the_same() -> None:
    query = {
        "space": {"alphabets": [[[0, 1], 3]]},
        "contributions": [[[[0], [1]], 2], [[[1], [0]], 1]],
    }
    statement = RecordLeakage.read(changed(query=query))
    assert len(statement.views) == 2
    with pytest.raises(RefusedError, match="not the same"):
        statement.upper({"rule": "max", "groups": [[HONEST["share"]], 0]})
    with pytest.raises(RefusedError, match="each audited group"):
        statement.upper({"rule": "max", "groups": [[HONEST["share"]]]})


def test_the_same_as_an_earlier_group_is_what_that_one_is_the_same_as() -> None:
    table = [bin(i).count("1") % 2 for i in range(8)]
    query = {"kind": "table", "space": {"alphabets": [[[0, 1], 3]]}, "table": table}
    query |= {"values": [0, 1]}
    channel = {"matrix": [[0.9, 0.1], [0.2, 0.8]]}
    statement = RecordLeakage.read(changed(mechanism={"query": query, "channel": channel}))
    sharp, loose = (close(SHARE | {"t": [1, 1]}, x) for x in (0.1, 0.3))

    def found(*terms: Any) -> float:
        return upper(statement.upper({"rule": "max", "groups": [list(terms), 0, 1]}))

    # The sharper of two terms counts.
    assert found(sharp) == found(sharp, loose) == found(loose, sharp) < found(loose)
    with pytest.raises(RefusedError, match="each audited group"):
        statement.upper({"rule": "max", "groups": [[sharp], 0, 1, 2]})


def test_views_are_the_same_if_rows_as_written_and_limits_are() -> None:
    (view,) = RecordLeakage.read(PROBLEM).views
    other = replace(view, rows=list(view.rows))
    assert same(view, other)
    bare = [replace(row, key=None) for row in view.rows]
    for rows in (bare, [*view.rows[:-1], bare[-1]]):
        one = replace(view, rows=rows)
        assert not same(one, one)
    c = [fmpq(g) for g in range(len(view.rows))]
    for limits in ([Limit(c, fmpq(1), fmpq(0))], [Limit(c[::-1], fmpq(1), fmpq(0))]):
        assert same(replace(view, limits=limits), replace(view, limits=limits))
        assert not same(replace(view, limits=limits), view)
        assert not same(
            replace(view, limits=limits), replace(view, limits=[Limit(c[1:], fmpq(1), fmpq(0))])
        )
    one, two = (replace(view, limits=[Limit(x, fmpq(1), fmpq(0))]) for x in (c, c[::-1]))
    assert not same(one, two)
    # With a share of F, labels say what a limit is about.
    of_balls = [[arb(x).exp() for x in c] for _ in range(2)]
    one, two = (replace(view, limits=[Limit(x, fmpq(1), fmpq(1))]) for x in of_balls)
    assert same(one, two)


def test_a_gain_after_the_output_may_be_a_loss() -> None:
    loss = {"kind": "matrix", "table": [[-2, -1], [-1, -3]]}
    assert -2 < attained(changed(gain=loss, form="posterior")) < -1
    assert attained(changed(gain=loss, form="rise")) >= 0


def test_a_factor_of_nothing_has_no_value() -> None:
    with pytest.raises(RefusedError, match="may be 0"):
        formed(read_gain({"kind": "guess"}, 2), None, arb(1), [0, 0])


def test_the_reference_is_in_its_ball_but_not_in_one_of_a_negative_radius() -> None:
    (view,) = RecordLeakage.read(changed(entropy_floor=0)).views
    w = [fmpq(m, sum(view.counts)) for m in view.counts]
    cost = [arb(sum(view.counts)).log()] * len(w)
    for radius, inside in ((0, True), (-1, False)):
        limit = Limit(cost, fmpq(radius), fmpq(1), lambda counts: w)
        known = replace(view, limits=[limit])
        if inside:
            check_adversary(known, w)
        else:
            with pytest.raises(RefusedError, match="violates"):
                check_adversary(known, w)


def test_rows_that_are_not_written_are_not_shown_to_be_equal() -> None:
    rows = [Row([arb(1)])] * 2
    view = View(rows, [1, 1], [arb(0)] * 2, [[0], [1]], arb(0))
    with pytest.raises(RefusedError, match="as written"):
        read_term({"rule": "equal"}, "B", Shape(view)).evaluate(view, Leaf())
    keyed = replace(view, rows=[replace(row, key=(fmpq(1),)) for row in rows])
    for times, found in ((1, 0), (None, 1)):
        view = replace(keyed, times=times)
        assert read_term({"rule": "equal"}, "B", Shape(view)).evaluate(view, Leaf()) == found
    with pytest.raises(RefusedError, match="a rise, or a factor"):
        read_term({"rule": "equal"}, "B", Shape(replace(keyed, times=0)))


def test_decimals_are_read_with_all_their_digits() -> None:
    assert rational("0.30000000000000000001") == rational(Fraction(3, 10) + Fraction(1, 10**20))
    rows = [list(row) for row in PROBLEM["mechanism"]["channel"]["matrix"]]
    rows[0][:2] = "0.80000000000000000001", "0.14999999999999999999"
    (view,) = RecordLeakage.read(changed(channel={"matrix": rows})).views
    assert fmpq(4, 5) + fmpq(1, 10**20) in [row.key[0] for row in view.rows if row.key]


@pytest.mark.parametrize("third", [1 / 3, 0.3333333, 0.3333334])
def test_boxes_that_are_points_are_rows_of_a_channel(third: Any) -> None:
    rows = [[0.8, 0.15, 0.05], [third] * 3, [0.2, 0.3, 0.5], [0.05, 0.15, 0.8]]
    inputs = PROBLEM["mechanism"]["channel"]["inputs"]
    query = PROBLEM["mechanism"]["query"]
    boxes = {"inputs": inputs, "lower": rows, "upper": rows}
    known = changed(mechanism={"query": query, "channel": {"inputs": inputs, "matrix": rows}})
    problem = changed(mechanism={"query": query, "channel_set": boxes})
    assert prove(HONEST["share"], problem=problem) == pytest.approx(
        prove(HONEST["share"], problem=known), abs=1e-12
    )
    (view,) = RecordLeakage.read(known).views
    table = np.array([[float(x.mid()) for x in row.lo] for row in view.rows])
    joint = [(np.array(WITNESS)[own] @ table[own]).tolist() for own in view.of]
    point = {"rule": "point", "group": 0, "weights": WITNESS, "posteriors": joint}
    found = lower(RecordLeakage.read(problem).lower(point))
    assert found == pytest.approx(attained(known), abs=1e-12)
    for ends in ({"upper": [[0.3, 0.3, 0.3]] * 4}, {"lower": [[0.4, 0.4, 0.4]] * 4}):
        wrong = changed(mechanism={"query": query, "channel_set": boxes | ends})
        with pytest.raises(RefusedError, match="empty"):
            RecordLeakage.read(wrong)


LOWER: dict[str, Any] = {
    "a witness below the floor": {"group": 0, "weights": [1, 0, 0, 0, 0, 0]},
    "negative weights": {"group": 0, "weights": [2, -1, 1, 1, 1, 1]},
    "too few weights": {"group": 0, "weights": [1, 1]},
    "no weight": {"group": 0, "weights": [0] * 6},
    "a group that is not audited": {"group": 1, "weights": WITNESS},
    "a negative group": {"group": -1, "weights": WITNESS},
    "posteriors of a known channel": {"group": 0, "weights": WITNESS, "posteriors": [[1] * 3] * 2},
    "infinite weights": {"group": 0, "weights": [1e999, 1, 1, 1, 1, 1]},
    "another key": {"group": 0, "weights": WITNESS, "value": 1},
    "no weights": {"group": 0},
}


def test_a_witness_over_a_set_has_posteriors() -> None:
    with pytest.raises(RefusedError, match="posteriors are needed"):
        RecordLeakage.read(SET).lower({"rule": "point", "group": 0, "weights": WITNESS})


def test_posteriors_of_a_value_that_does_not_occur_are_a_law_too() -> None:
    # A share above 1 of the value that does occur would be information about it.
    statement = RecordLeakage.read(SET | {"entropy_floor": 0})
    alone = {"rule": "point", "group": 0, "weights": [1, 2, 1, 0, 0, 0]}
    certain = statement.lower(alone | {"posteriors": [[1] * 3, [0] * 3]})
    assert certain == 0 == statement.lower(alone | {"posteriors": [[1e9] * 3, [1] * 3]})
    with pytest.raises(RefusedError, match="negative numbers"):
        statement.lower(alone | {"posteriors": [[1e9] * 3, [1 - 1e9] * 3]})


@pytest.mark.parametrize("name", LOWER)
def test_forged_witnesses_are_refused(name: str) -> None:
    statement = RecordLeakage.read(PROBLEM)
    with pytest.raises(RefusedError):
        statement.lower({"rule": "point", **LOWER[name]})


@pytest.mark.parametrize(
    "value", [None, True, "one", "1/0", 10**400, -(10**400), float("nan"), [1], "-inf"]
)
def test_a_claimed_bound_is_a_number_that_a_float_can_be(value: Any) -> None:
    with pytest.raises(RefusedError):
        bound(value, "the upper end")
    assert bound("1/4", "the upper end") == 0.25
