"""Sets of channels: what they are, what is refused, and that they come back from files."""

import pickle
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxleak import Mechanism
from cvxleak.constraints import in_channel_set, row_stochastic
from cvxleak.core import ValidationError
from cvxleak.model import Channel, ChannelSet
from cvxleak.queries import count


def test_printed_digits_hold_what_rounds_to_them():
    rng = np.random.default_rng(1)
    for _ in range(20):
        rows = rng.dirichlet(np.ones(4), 3)
        for digits in (1, 2, 4):
            printed = ChannelSet.from_printed(rows.round(digits), digits)
            assert Channel(rows) in printed
            assert printed.center in printed
    assert Channel([[0.5, 0.5]]) not in ChannelSet.from_printed([[0.4, 0.6]], 1)
    assert [[0.4, 0.6]] not in ChannelSet.from_printed([[0.4, 0.6]], 1)


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        ([[0.6, 0.6]], [[0.7, 0.7]], "lower: the bounds of input 0 sum to 1.2"),
        ([[0.1, 0.1]], [[0.3, 0.3]], "upper: the bounds of input 0 sum to 0.6"),
        ([[0.5, 0.1]], [[0.4, 1.0]], "lower: found .*0.5.* above the upper bound"),
        ([[-0.1, 0.5]], [[0.4, 1.0]], "lower: found -0.1 at index"),
        ([[0.1, 0.5]], [[0.4, 1.1]], "upper: found 1.1 at index"),
        ([[0.1, np.nan]], [[0.4, 1.0]], "lower: found NaN"),
        ([[0.1, 0.5]], [[0.4, 0.5, 0.5]], "upper: found shape"),
        ([[0.1, 0.5]], [[0.6]], "upper: found shape"),
        ([[0.1, 0.5], [0.6, 0.6]], [[0.9, 0.9], [0.7, 0.7]], "lower: the bounds of input 1 sum"),
        ([[0.1, 0.5], [0.1, 0.1]], [[0.9, 0.9], [0.3, 0.3]], "upper: the bounds of input 1 sum"),
        ([0.1, 0.5], [0.4, 0.6], "lower: expected 2 dimension"),
        ([[]], [[]], "must not be empty"),
    ],
)
def test_boxes_without_a_member_are_refused(lower: Any, upper: Any, words: str):
    with pytest.raises(ValidationError, match=words):
        ChannelSet(lower, upper)


def test_one_channel_is_a_set_and_rounding_is_none():
    rows = [[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]]
    alone = ChannelSet(rows, rows)
    np.testing.assert_allclose(alone.center.matrix, rows)
    assert Channel(rows) in alone
    exact = [[Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)]]
    enclosed = ChannelSet(exact, exact)
    assert (enclosed.lower < enclosed.upper).all()
    with pytest.raises(ValidationError, match="unknown keys"):
        ChannelSet.from_dict({**alone.to_dict(), "matrix": rows})


def test_digits_are_checked():
    for digits in (0, 16, 2.0, True):
        with pytest.raises(ValidationError, match="digits"):
            ChannelSet.from_printed([[0.4, 0.6]], digits)  # pyright: ignore[reportArgumentType]


def test_they_come_back():
    channels = ChannelSet(
        [[0.1, 0.2], [0.3, 0.3]], [[0.8, 0.9], [0.7, 0.7]], ["a", "b"], ["x", "y"]
    )
    assert ChannelSet.from_dict(channels.to_dict()) == channels
    assert pickle.loads(pickle.dumps(channels)) == channels
    assert hash(pickle.loads(pickle.dumps(channels))) == hash(channels)
    assert channels.select(["b", "a"]).lower.tolist() == [[0.3, 0.3], [0.1, 0.2]]
    mechanism = Mechanism(count(1), channels.select(["b", "a"]).lower * 0 + 0.5)
    assert Mechanism.from_dict(mechanism.to_dict()) == mechanism
    known = Mechanism(count(1), ChannelSet(channels.lower, channels.upper))
    assert Mechanism.from_dict(known.to_dict()) == known
    assert pickle.loads(pickle.dumps(known)) == known
    assert known != mechanism
    assert known.outputs == (0, 1)


def test_a_mechanism_needs_a_row_for_each_value():
    with pytest.raises(ValidationError, match="channel"):
        Mechanism(count(2), ChannelSet([[0.1, 0.2]], [[0.8, 0.9]]))


def test_a_set_is_taken_for_no_channel():
    known = Mechanism(count(1), ChannelSet([[0.1, 0.2], [0.3, 0.3]], [[0.8, 0.9], [0.7, 0.7]]))
    for ask in (lambda: known.channel, lambda: known.lumped(0), known.to_channel):
        with pytest.raises(ValidationError, match="only known to lie in a set"):
            ask()
    with pytest.raises(ValidationError, match="unknown keys"):
        Mechanism.from_dict({**known.to_dict(), "channel": 1})


def test_members_in_cvxpy():
    channels = ChannelSet([[0.1, 0.2], [0.3, 0.3]], [[0.8, 0.9], [0.7, 0.7]])
    q = cp.Variable((2, 2))
    rules = row_stochastic(q) + in_channel_set(q, channels)
    cp.Problem(cp.Maximize(q[0, 0] - q[1, 0]), rules).solve(solver="CLARABEL")
    assert q.value is not None
    np.testing.assert_allclose(q.value, [[0.8, 0.2], [0.3, 0.7]], atol=1e-6)
    with pytest.raises(ValidationError, match="channel_set: found shape"):
        in_channel_set(cp.Variable((3, 2)), channels)


def test_boxes_around_one_center_are_told_apart():
    known = Mechanism(count(1), ChannelSet([[0.4, 0.4], [0.2, 0.2]], [[0.6, 0.6], [0.8, 0.8]]))
    assert known.noise.center.matrix.tolist() == [[0.5, 0.5]] * 2
    assert len(known.distinct_rows[0]) == 2
