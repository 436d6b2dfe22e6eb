"""Forged statements, witnesses and claimed bounds: each is refused."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq

from cvxleak.kernel.balance import Balance
from cvxleak.kernel.budget import limited
from cvxleak.kernel.claims import _at_most
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import RefusedError, lower, precision, rational
from cvxleak.kernel.reading import bound
from tests.kernel.forging import (
    GAIN,
    HONEST,
    PROBLEM,
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
}


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
