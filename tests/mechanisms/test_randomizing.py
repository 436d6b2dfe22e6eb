"""A column through a channel: the law of what comes out, its kind, and what is refused."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import (
    binary_symmetric,
    estimate_frequencies,
    identity,
    randomize,
    randomized_response,
)
from cvxleak.model import Channel

NAMED = Channel([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]], ["no", "yes"], ["a", (0, 1), 7])
SAME = Channel(np.eye(2), ["no", "yes"], ["N", "Y"])


def test_each_entry_has_its_own_row():
    """Counts of 20,000 draws of each input are within 5 standard deviations of the row's."""
    column = ["no", "yes"] * 20_000
    drawn = randomize(column, NAMED, rng=4)
    for place, row in enumerate(NAMED.matrix):
        counts = Counter(drawn[place::2])
        for output, chance in zip(NAMED.outputs, row, strict=True):
            error = math.sqrt(20_000 * chance * (1 - chance))
            assert abs(counts[output] - 20_000 * chance) <= 5 * error
    # Neighbors are independent.
    pairs = Counter(zip(drawn[::2], drawn[1::2], strict=True))
    assert pairs[("a", 7)] / 20_000 == pytest.approx(0.35, abs=0.02)


def test_a_seed_reproduces_and_the_system_does_not():
    column = [0, 1] * 50
    channel = binary_symmetric(0.3)
    assert randomize(column, channel, 1) == randomize(column, channel, 1)
    assert randomize(column, channel, 1) != randomize(column, channel, 2)
    assert randomize(column, channel) != randomize(column, channel)
    rng = np.random.default_rng(1)
    assert randomize(column, channel, rng) != randomize(column, channel, rng)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["no", "yes", "no"], ["N", "Y", "N"]),
        (("no", "yes"), ("N", "Y")),
        ([], []),
        ((text for text in ("yes", "no")), ["Y", "N"]),
        (pd.Index(["yes", "no"]), ["Y", "N"]),
    ],
)
def test_lists_and_the_like(column: Any, expected: Any):
    found = randomize(column, SAME)
    assert (type(found), found) == (type(expected), expected)


def test_arrays():
    found = randomize(np.array(["no", "yes"]), SAME)
    assert found.dtype.kind == "U"
    assert found.tolist() == ["N", "Y"]
    numbers = randomize(np.array([2, 0, 1]), identity(3))
    assert numbers.dtype.kind == "i"
    assert numbers.tolist() == [2, 0, 1]
    mixed = randomize(np.array(["yes"] * 50), NAMED, rng=0)
    assert mixed.shape == (50,)
    assert set(mixed.tolist()) == {"a", (0, 1), 7}


def test_series_keep_index_name_and_categories():
    column = pd.Series(["no", "yes"], index=[7, 3], name="smokes")
    found = randomize(column, SAME)
    pd.testing.assert_series_equal(found, pd.Series(["N", "Y"], index=[7, 3], name="smokes"))
    kinds = randomize(column.astype("category"), SAME)
    assert list(kinds.cat.categories) == ["N", "Y"]
    assert kinds.tolist() == ["N", "Y"]
    assert column.tolist() == ["no", "yes"]


@pytest.mark.parametrize("nothing", [None, math.nan, pd.NA, pd.NaT])
def test_missing_values(nothing: Any):
    column = pd.Series(["no", nothing, "yes"], dtype=object)
    for given in (column, list(column), column.to_numpy()):
        with pytest.raises(ValidationError, match="column: entry 1 is missing"):
            randomize(given, SAME)
        kept = list(randomize(given, SAME, missing="keep"))
        assert (kept[0], kept[2]) == ("N", "Y")
        assert pd.isna(kept[1])


def test_no_answer_can_be_an_answer():
    channel = Channel(np.eye(2), ["no", None], ["N", "-"])
    assert randomize(["no", None], channel) == ["N", "-"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": ["no", "perhaps"]}, "column: entry 1 is 'perhaps'; .*'no', 'yes'"),
        ({"column": ["no", ["yes"]]}, r"column: entry 1 is \['yes'\]"),
        ({"column": "no"}, "column: expected a list"),
        ({"column": {"no": 1}}, "column: expected a list"),
        ({"column": {"no"}}, "column: found a set"),
        ({"column": 3}, "column: "),
        ({"column": np.array([["no"]])}, "column: found a table"),
        ({"column": pd.DataFrame({"x": ["no"]})}, "column: found a table"),
        ({"missing": "drop"}, "missing: "),
        ({"rng": "seed"}, "rng: "),
        ({"channel": [[0.5, 0.6]]}, "channel: "),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        randomize(**{"column": ["no", "yes"], "channel": SAME} | arguments)


def test_randomized_and_read_back():
    """The intervals of 80 surveys hold together as often as stated, within 4 sigma."""
    rng, channel, truth = np.random.default_rng(2), randomized_response(3, 1.2), [0.6, 0.3, 0.1]
    surveys, held = 80, 0
    for _ in range(surveys):
        answers = rng.choice(3, 200, p=truth)
        published = pd.Series(randomize(answers, channel, rng))
        found = estimate_frequencies(channel, published.value_counts(), 0.75)
        held += bool(((found.lower <= truth) & (truth <= found.upper)).all())
    assert held >= surveys * 0.75 - 4 * math.sqrt(surveys * 0.75 * 0.25)
