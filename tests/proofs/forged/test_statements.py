"""What a certificate states (spaces, queries, channels, knowledge) is refused unless it fits."""

import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import as_written, carries
from cvxleak.core.validation import (
    frozen_array,
    instance,
    label_tuple,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.model import (
    AdditiveQuery,
    Distortion,
    Expectation,
    KnownMarginals,
    Limits,
    Lumped,
    Mechanism,
    Prior,
    RecordSpace,
)
from cvxleak.model.knowledge import Knowledge
from cvxleak.model.knowledge.binding import as_knowledge
from cvxleak.model.prior import as_prior, has_labels
from cvxleak.model.query import Query
from cvxleak.queries import count, from_table

ROWS = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
SPACE = RecordSpace([(0, 1), (0, 1)])


def lumped(**changes):
    return Lumped(
        **{
            "values": (0, 1),
            "outputs": (0, 1),
            "value_index": [0, 0, 1],
            "rows": ROWS,
            "multiplicities": (1, 2, 1),
            "contexts": ((0,), (1,), (2,)),
            **changes,
        }
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"value_index": [0, 1]},
        {"value_index": [0, 0, 0, 1]},
        {"value_index": [[0, 0, 1]]},
        {"value_index": [0.0, 0.0, 1.0]},
        {"value_index": [1, 1, 1]},
        {"value_index": [-1, 0, 1]},
        {"value_index": [0, 0, 0]},
        {"value_index": [0, 1, 2]},
        {"value_index": [0, 1, 0, 1], "rows": [*ROWS, ROWS[0]]},
        {"values": (0, 1, 2), "value_index": [0, 0, 2]},
        {"multiplicities": (1, 2)},
        {"multiplicities": (1, 2, 1, 1)},
        {"multiplicities": (1, 2, 0)},
        {"contexts": ((0,), (1,))},
        {"contexts": ((0,), (1,), (2,), (3,))},
        {"outputs": (0, 1, 2)},
        {"rows": [[0.75, 0.25], [0.5, 0.5], [0.25, 0.8]]},
    ],
)
def test_lumped_problems_fit_together(changes):
    assert lumped().contexts == ((0,), (1,), (2,))
    assert lumped().outputs == (0, 1)
    with pytest.raises(ValidationError):
        lumped(**changes)


@pytest.mark.parametrize(
    ("coefficients", "bounds", "shares"),
    [
        ([[1.0, 0.0]], [0.5, 0.5], None),
        ([[1.0, 0.0], [0.0, 1.0]], [0.5], None),
        ([[1.0, 0.0]], [0.5], [0.0, 0.0]),
        ([[1.0, 0.0]], [0.5], []),
        ([[1.0, 0.0]], [0.5], [-0.5]),
        ([[1.0, 0.0], [1.0, 0.0]], [0.5, 0.5], [1.0, -0.5]),
        ([[math.nan, 0.0]], [0.5], None),
        ([[1.0, 0.0]], [math.nan], None),
    ],
)
def test_limits_fit_together(coefficients, bounds, shares):
    with pytest.raises(ValidationError):
        Limits(coefficients, bounds, shares)


@pytest.mark.parametrize(
    "rows",
    [
        [[math.nan, 1.0]],
        [[math.inf, 0.0]],
        [[-1e-12, 1.0]],
        [[0.5, 0.5], [0.5, 0.5 + 2e-9]],
        [[0.5, 0.5], [0.5, 0.5 - 2e-9], [0.5, 0.5]],
        [[0.5, 0.5 + 1j]],
        [0.5, 0.5],
        [[]],
    ],
)
def test_rows_of_probabilities(rows):
    assert probability_rows([[0.0, 1.0], [0.5, 0.5 + 1e-10]], "rows", 2).shape == (2, 2)
    with pytest.raises(ValidationError, match="rows"):
        probability_rows(rows, "rows", 2)


def test_arrays_hold_numbers():
    assert not frozen_array([0.5], "it", 1).flags.writeable
    with pytest.raises(ValidationError, match=r"NaN at index \(1,\)"):
        frozen_array([0.5, math.nan], "it", 1)
    with pytest.raises(ValidationError, match="NaN"):
        frozen_array([math.nan, math.nan], "it", 1)


def test_exact_numbers_stay_exact():
    third = as_written("1/3")
    for values in ([third], [0.5, third], (third, 0.5), np.array(["1/3"])):
        assert carries(frozen_array(values, "it", 1))
    assert not carries(frozen_array([0.5], "it", 1))
    assert carries(frozen_array(frozen_array([third], "it", 1), "it", 1))
    assert not carries(frozen_array(frozen_array([third], "it", 1) + 1, "it", 1))
    with pytest.raises(ValidationError, match="pandas"):
        frozen_array(type("Series", (), {"iloc": 0})(), "it", 1)
    for values in ([], [[0.5]], 0.5):
        with pytest.raises(ValidationError, match="it: "):
            probability_rows(values, "it", 1)


def test_labels_are_told_apart():
    assert label_tuple(["a", 1, (2, 3)], 3, "it") == ("a", 1, (2, 3))
    for labels in (
        ["a", "a"],
        [1, 1.0],
        [1, True],
        ["a"],
        [math.nan, 1],
        [{}, 1],
        {1, 2},
        [([],), 1],
    ):
        with pytest.raises(ValidationError, match="it"):
            label_tuple(labels, 2, "it")


@pytest.mark.parametrize(
    ("value", "options", "holds"),
    [
        (0, {}, True),
        (1, {}, True),
        (-0.01, {}, False),
        (1.01, {}, False),
        (0, {"open_low": True}, False),
        (1, {"open_high": True}, False),
        (0.5, {"open_low": True, "open_high": True}, True),
        (math.nan, {}, False),
        ("1.0000000000000000000001", {}, False),
        ("-1/100000000000000000000", {}, False),
        ("a", {}, False),
        (True, {}, False),
        (10**400, {}, False),
    ],
)
def test_numbers_in_an_interval(value, options, holds):
    if holds:
        assert real_number(value, "it", 0, 1, **options) == value
    else:
        with pytest.raises(ValidationError, match="it: "):
            real_number(value, "it", 0, 1, **options)


def test_whole_numbers():
    assert [whole_number(n, "it", 0, 2) for n in (0, np.int64(1), 2)] == [0, 1, 2]
    for n in (-1, 3, True, 1.0, "1", None):
        with pytest.raises(ValidationError, match="it: "):
            whole_number(n, "it", 0, 2)
    with pytest.raises(ValidationError, match="it: expected a str"):
        instance(3, str, "it")


@pytest.mark.parametrize(
    "matrix", [[[0.0, -1.0]], [[-1e-300, 2.0]], [[math.inf, 0.0]], [[math.nan]], [[]], [1.0]]
)
def test_distortions(matrix):
    assert Distortion([[0.0, 1e308]]).matrix.tolist() == [[0.0, 1e308]]
    with pytest.raises(ValidationError, match="matrix"):
        Distortion(matrix)


def test_groups_of_records():
    assert SPACE.group([1, 0]) == (1, 0)
    for records in ([0, 0], [], [2], [-1], 2, [True]):
        with pytest.raises(ValidationError, match="records"):
            SPACE.group(records)


def test_what_a_query_is_made_of():
    record = [(0,), (1,)]
    for value in (7, {(0,): "a"}):
        with pytest.raises(ValidationError, match="value"):
            AdditiveQuery(SPACE, [record, record], value)
    # Equal as floats, different as written: no row stands for another.
    rows = np.array([["1/3", "2/3"], [1 / 3, 2 / 3], ["1/3", "2/3"]], dtype=object)
    found, index = Mechanism(count(2), rows).distinct_rows
    assert (len(found), index[0] == index[2], index[0] == index[1]) == (2, True, False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": ["expectation"]}, "kind"),
        ({"kind": "belief"}, "kind"),
        ({"note": 1}, "note"),
        ({"name": 3}, "name"),
        ({"at_least": None, "at_most": None}, "at_least|at_most"),
        ({"at_least": 0.75, "at_most": 0.25}, "at_least|at_most"),
        ({"query": count(2).to_dict()}, "records|query"),
        ({"values": [0.0, 1.0, 2.0]}, "found 3"),
        ({"values": [0.0]}, "found 1"),
        ({"values": [0.0, math.inf]}, "finite"),
        ({"values": [math.inf, math.inf]}, "finite"),
    ],
)
def test_what_an_adversary_knows(changes, reason):
    query = count(2)
    (bound,) = as_knowledge([Expectation([0, 1], records=0, at_most=0.25)], query)
    data = bound.to_dict()
    assert Knowledge.from_dict(data).to_dict() == data
    with pytest.raises(ValidationError, match=reason):
        as_knowledge([Knowledge.from_dict({**data, **changes})], query)


def test_knowledge_is_about_the_space():
    query, other = count(2), count(3)
    with pytest.raises(ValidationError, match="query: found one on"):
        as_knowledge([Expectation([0, 1, 2, 3], query=other, at_most=1.0)], query)
    with pytest.raises(ValidationError):
        as_knowledge([3], query)
    (law,) = as_knowledge([KnownMarginals([0.75, 0.25])], query)
    with pytest.raises(ValidationError, match="note"):
        Knowledge.from_dict({**law.to_dict(), "note": 1})
    with pytest.raises(ValidationError):
        Query.from_dict([1])


def test_priors_are_matched_by_label():
    assert as_prior([0.25, 0.75], 2, "it").probabilities.tolist() == [0.25, 0.75]
    for probabilities in ([1.0], [0.25, 0.25, 0.5]):
        with pytest.raises(ValidationError, match="it"):
            as_prior(probabilities, 2, "it")
    named = Prior([0.25, 0.75], ["b", "a"])
    assert as_prior(named, 2, "it", ("a", "b")).probabilities.tolist() == [0.75, 0.25]
    with pytest.raises(ValidationError, match="it"):
        as_prior(named, 2, "it", ("a", "c"))
    with pytest.raises(ValidationError, match="it"):
        as_prior(named, 2, "it", ("c", "d"))
    # By position only if one side has no labels, and they have none in common.
    assert as_prior(Prior([0.25, 0.75]), 2, "it", ("c", "d")).labels == ("c", "d")
    with pytest.raises(ValidationError, match="it"):
        as_prior(Prior([0.25, 0.75]), 2, "it", (1, 2))
    assert has_labels(named)
    assert not has_labels([0.25, 0.75])
    assert has_labels(type("Series", (), {"iloc": 0})())


def test_records_that_can_be_swapped():
    """Of these, one stands for all in what a proof has to bound."""
    same, other = [[0, 1], [1, 2]], [[0, 1], [2, 3]]
    assert from_table(SPACE, same).exchangeable() == [[0, 1]]
    assert from_table(SPACE, other).exchangeable() == [[0], [1]]
    for alphabets in ([(0, 1), ("a", "b")], [(0, 2), (0, 1)], [(0, 1), (0, 2)]):
        assert from_table(RecordSpace(alphabets), same).exchangeable() == [[0], [1]]


def test_tables_are_seen_from_each_record():
    space = RecordSpace([(0, 1), (0, 1, 2), (0, 1)])
    query = from_table(space, np.arange(12).reshape(2, 3, 2) % 7)
    for i, alphabet in enumerate(space.alphabets):
        assert space.values(i) == alphabet
        assert space.values([i]) == tuple((value,) for value in alphabet)
        others = [x for x in space.datasets() if x[i] == 0]
        lines = {
            tuple(query.values.index(query((*x[:i], value, *x[i + 1 :]))) for value in alphabet)
            for x in others
        }
        assert sorted(query.lines(i)) == sorted(lines)
