"""Local differential privacy over a set of channels: both ends against members and closed forms."""

import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.local_dp import local_dp_epsilon_of_set
from cvxleak.measures import local_dp_epsilon
from cvxleak.model import Channel, ChannelSet


def members(channels, many, rng):
    """Yield members: rows filled up in random orders, and mixtures of two such."""
    for _ in range(many):
        pair = []
        for _ in range(2):
            rows = channels.lower.copy()
            for row, high in zip(rows, channels.upper, strict=True):
                for y in rng.permutation(len(row)):
                    row[y] += min(high[y] - row[y], 1 - row.sum())
            pair.append(rows)
        share = rng.choice([0.0, rng.random()])
        yield Channel((1 - share) * pair[0] + share * pair[1])


@pytest.mark.parametrize("seed", range(4))
def test_members_are_between_the_ends_and_reach_them(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(4), 3)
    low, high = np.maximum(rows - 0.05, 0.01), np.minimum(rows + rng.uniform(0.02, 0.1), 1)
    low = np.minimum(low, rows)
    channels = ChannelSet(low, high)
    found = local_dp_epsilon_of_set(channels)
    for channel in members(channels, 300, rng):
        assert found.lower - 1e-9 <= local_dp_epsilon(channel) <= found.upper + 1e-9
    for channel, end in ((found.most_private, found.lower), (found.least_private, found.upper)):
        assert channel in channels
        assert local_dp_epsilon(channel) == pytest.approx(end, abs=1e-6)


def test_two_inputs_and_outputs_are_known_in_closed_form():
    found = local_dp_epsilon_of_set(ChannelSet([[0.7, 0.2], [0.2, 0.7]], [[0.8, 0.3], [0.3, 0.8]]))
    assert 0 <= math.log(0.7 / 0.3) - found.lower < 1e-6
    assert 0 < found.upper - math.log(0.8 / 0.2) < 1e-12
    same = local_dp_epsilon_of_set(ChannelSet([[0.4, 0.4]] * 2, [[0.6, 0.6]] * 2))
    assert same.lower == 0.0
    assert same.upper == pytest.approx(math.log(1.5))
    alone = local_dp_epsilon_of_set(ChannelSet([[0.4, 0.4]], [[0.6, 0.6]]))
    assert (alone.lower, alone.upper) == (0.0, 0.0)


def test_what_the_simplex_leaves_counts():
    # The box of the first row lets its first output be .9, the other two leave it .6.
    found = local_dp_epsilon_of_set(
        ChannelSet([[0.1, 0.2, 0.2], [0.25, 0.25, 0.5]], [[0.9, 0.3, 0.4], [0.25, 0.25, 0.5]])
    )
    assert found.upper == pytest.approx(math.log(2.5))


def test_a_channel_that_is_known():
    rows = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]
    found = local_dp_epsilon_of_set(ChannelSet(rows, rows))
    assert found.lower <= math.log(2.5) <= found.upper
    assert found.upper - found.lower < 1e-6


def test_outputs_that_may_or_must_be_told():
    may = local_dp_epsilon_of_set(ChannelSet([[0.8, 0.0], [0.3, 0.5]], [[1.0, 0.2], [0.5, 0.7]]))
    assert may.upper == math.inf
    assert local_dp_epsilon(may.least_private) == math.inf
    assert may.lower == pytest.approx(math.log(0.5 / 0.2), abs=1e-6)
    must = local_dp_epsilon_of_set(ChannelSet([[1.0, 0.0], [0.3, 0.5]], [[1.0, 0.0], [0.5, 0.7]]))
    assert (must.lower, must.upper) == (math.inf, math.inf)
    unused = [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]
    thirds = [[1 / 3, 1 / 3, 1 / 3, 0.0]] * 2
    assert local_dp_epsilon_of_set(ChannelSet(thirds, thirds)).upper < 1e-12
    found = local_dp_epsilon_of_set(ChannelSet(unused, unused))
    assert found.lower <= math.log(2) <= found.upper < found.lower + 1e-6


def test_a_channel_is_no_set():
    with pytest.raises(ValidationError, match="channel_set"):
        local_dp_epsilon_of_set([[0.5, 0.5]])
