"""Frequency estimates: unbiased by enumeration, their sampling law, and the projection."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import (
    FrequencyEstimate,
    binary_symmetric,
    constant,
    estimate_frequencies,
    identity,
    randomized_response,
)
from cvxleak.model import Channel

WIDE = Channel([[0.5, 0.2, 0.2, 0.1], [0.1, 0.3, 0.3, 0.3]], ["no", "yes"], ["a", "b", "c", "d"])
CHANNELS = [randomized_response(2, 0.7), randomized_response(3, 1.5), WIDE, identity(3)]


def compositions(total, parts):
    return (c for c in product(range(total + 1), repeat=parts) if sum(c) == total)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_estimate_and_covariance_are_unbiased(channel):
    """Expectations over every possible outcome of four respondents."""
    n, k = 4, channel.shape[0]
    p = np.arange(1, k + 1) / (k * (k + 1) / 2)
    law = p @ channel.matrix
    mean, second, covariance = np.zeros(k), np.zeros((k, k)), np.zeros((k, k))
    for counts in compositions(n, channel.shape[1]):
        ways = math.factorial(n) / math.prod(math.factorial(c) for c in counts)
        chance = ways * float(np.prod(law ** np.array(counts)))
        found = estimate_frequencies(channel, counts)
        mean += chance * found.frequencies
        second += chance * np.outer(found.frequencies, found.frequencies)
        covariance += chance * found.covariance
    assert mean == pytest.approx(p, abs=1e-12)
    assert covariance == pytest.approx(second - np.outer(mean, mean), abs=1e-12)


def test_warner_closed_form():
    # pi = (c - flip) / (1 - 2 flip), variance c (1 - c) / ((n - 1) (1 - 2 flip)^2).
    flip, n, yes = 0.3, 1000, 420
    found = estimate_frequencies(binary_symmetric(flip), [n - yes, yes])
    share = yes / n
    assert found.frequencies[1] == pytest.approx((share - flip) / (1 - 2 * flip))
    error = math.sqrt(share * (1 - share) / (n - 1)) / (1 - 2 * flip)
    assert found.standard_errors == pytest.approx([error, error])
    assert found.respondents == n


def test_sampling_law():
    """Standardized errors of 2,000 surveys have the mean 0 and the variance 1, within 4 sigma."""
    rng = np.random.default_rng(7)
    channel, p, n, surveys = randomized_response(4, 1.2), np.array([0.4, 0.3, 0.2, 0.1]), 500, 2000
    counts = rng.multinomial(n, p @ channel.matrix, size=surveys)
    found = [estimate_frequencies(channel, c) for c in counts]
    scores = np.array([(f.frequencies - p) / f.standard_errors for f in found])
    assert np.abs(scores.mean(axis=0)).max() < 4 / math.sqrt(surveys)
    assert np.abs(scores.var(axis=0) - 1).max() < 4 * math.sqrt(2 / surveys)
    inside = (np.abs(scores) < 1.96).mean()
    assert inside == pytest.approx(0.95, abs=0.01)
    # Those who draw the respondents' answers one at a time get the same law.
    truth = rng.choice(4, size=20_000, p=p)
    answers = [y for x in range(4) for y in channel.sample(x, int((truth == x).sum()), rng=rng)]
    drawn = estimate_frequencies(channel, np.bincount(answers, minlength=4))
    assert np.abs((drawn.frequencies - p) / drawn.standard_errors).max() < 4


@given(st.integers(2, 5), st.floats(0.2, 3), st.data())
@settings(max_examples=60)
def test_splitting_an_output_at_random_changes_nothing(k, epsilon, data):
    channel = randomized_response(k, epsilon)
    counts = data.draw(st.lists(st.integers(1, 90), min_size=k, max_size=k))
    split = data.draw(st.integers(1, counts[0]))
    matrix = np.hstack(
        [0.3 * channel.matrix[:, :1], 0.7 * channel.matrix[:, :1], channel.matrix[:, 1:]]
    )
    one = estimate_frequencies(channel, counts)
    other = estimate_frequencies(matrix, [split, counts[0] - split, *counts[1:]])
    assert one.frequencies == pytest.approx(other.frequencies, abs=1e-9)
    assert one.covariance == pytest.approx(other.covariance, abs=1e-9)


@given(st.integers(2, 6), st.floats(0.05, 4), st.data())
@settings(max_examples=80)
def test_projection_is_the_nearest_distribution(k, epsilon, data):
    channel = randomized_response(k, epsilon)
    counts = data.draw(st.lists(st.integers(0, 40), min_size=k, max_size=k))
    if sum(counts) < 2:
        counts[0] += 2
    found = estimate_frequencies(channel, counts)
    assert found.frequencies.sum() == pytest.approx(1, abs=1e-9)
    p = found.projected.probabilities
    # Optimality: the gradient p - v is least where p is positive.
    gradient = p - found.frequencies
    assert np.all(gradient[p > 0] <= gradient.min() + 1e-9)
    if found.frequencies.min() >= 0:
        assert p == pytest.approx(found.frequencies, abs=1e-9)
    other = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=k, max_size=k)))
    other /= other.sum()
    before = np.linalg.norm(found.frequencies - other)
    assert np.linalg.norm(p - other) <= before + 1e-9


def test_without_noise_the_estimate_is_the_share():
    found = estimate_frequencies(identity(3), [5, 0, 15])
    assert found.frequencies == pytest.approx([0.25, 0, 0.75])
    assert found.standard_errors[1] == 0


def test_counts_by_label():
    array = estimate_frequencies(WIDE, [4, 0, 6, 1])
    for counts in ({"a": 4, "d": 1, "c": 6}, pd.Series([6, 1, 4], index=["c", "d", "a"])):
        assert estimate_frequencies(WIDE, counts) == array
    assert array.labels == ("no", "yes")
    assert array.projected.labels == ("no", "yes")
    assert isinstance(array, FrequencyEstimate)


def test_an_output_that_cannot_occur_is_left_out():
    matrix = np.insert(randomized_response(2, 1.0).matrix, 1, 0, axis=1)
    found = estimate_frequencies(matrix, [30, 0, 70])
    assert found == estimate_frequencies(randomized_response(2, 1.0), [30, 70])
    with pytest.raises(ValidationError, match=r"counts: .*no input"):
        estimate_frequencies(matrix, [30, 1, 70])


def test_the_estimate_is_read_only_and_hashable():
    found = estimate_frequencies(WIDE, [4, 0, 6, 1])
    with pytest.raises(ValueError, match="read-only"):
        found.frequencies[0] = 1
    assert len({found, estimate_frequencies(WIDE, [4, 0, 6, 1])}) == 1


@pytest.mark.parametrize(
    ("channel", "counts", "message"),
    [
        (constant(2, [0.5, 0.5]), [1, 1], "channel: .*dependent"),
        (Channel([[0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]), [3, 3], "channel: .*dependent"),
        (binary_symmetric(0.5), [1, 1], "channel: .*dependent"),
        ([[0.5, 0.6]], [1, 1], "channel: "),
        (WIDE, [1, 2, 3], r"counts: found shape \(3,\)"),
        (WIDE, [1, 2, 3, -1], r"counts\[3\]: "),
        (WIDE, [1, 2, 3, 0.5], r"counts\[\d\]: "),
        (WIDE, [1, 0, 0, 0], "counts: found 1 respondents"),
        (WIDE, [0, 0, 0, 0], "counts: found 0 respondents"),
        (WIDE, {"a": 3, "z": 1}, "counts: .*'z'"),
        (WIDE, {"a": 3, "b": math.nan}, r"counts\['b'\]: "),
        (WIDE, pd.Series([1, 2], index=["a", "a"]), "counts: .*twice"),
    ],
)
def test_what_is_refused(channel, counts, message):
    with pytest.raises(ValidationError, match=message):
        estimate_frequencies(channel, counts)
