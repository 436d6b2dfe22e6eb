"""Frequency estimates: unbiased by enumeration, their sampling law, and the projection."""

import math
import pickle
from fractions import Fraction
from itertools import combinations, product

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
from cvxleak.mechanisms.binomial import clopper_pearson
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


# Outputs that are many, and outputs in proportion.
MANY = Channel([[0.4, 0.2, 0.1, 0.2, 0.1], [0.1, 0.1, 0.5, 0.05, 0.25]])
THREE = Channel([[0.6, 0.2, 0.1, 0.1], [0.1, 0.5, 0.2, 0.2], [0.2, 0.1, 0.6, 0.1]])


def holds(found, p):
    return bool(((found.lower <= p + 1e-12) & (p - 1e-12 <= found.upper)).all())


@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize(
    "channel", [randomized_response(2, 0.7), randomized_response(3, 1.5), MANY, THREE], ids=repr
)
def test_intervals_hold_as_often_as_they_say(channel, confidence):
    """Exactly, over every possible outcome of a few respondents, for laws on a grid."""
    n, k = 4, channel.shape[0]
    found = {
        counts: estimate_frequencies(channel, counts, confidence)
        for counts in compositions(n, channel.shape[1])
    }
    ways = [math.factorial(n) / math.prod(math.factorial(c) for c in counts) for counts in found]
    held = []
    for law in compositions(4, k):
        p = np.array(law) / 4
        q = p @ channel.matrix
        chances = [w * float(np.prod(q ** np.array(c))) for w, c in zip(ways, found, strict=True)]
        assert sum(chances) == pytest.approx(1)
        held.append(
            sum(
                c for c, estimate in zip(chances, found.values(), strict=True) if holds(estimate, p)
            )
        )
    assert min(held) >= confidence - 1e-12
    assert min(held) < 1


def test_intervals_hold_for_the_respondents_themselves():
    """Answers that are fixed, so that only the channel is random: exactly, all 2^n outputs."""
    channel, n, confidence = binary_symmetric(0.25), 12, 0.6
    found = [estimate_frequencies(channel, [n - s, s], confidence) for s in range(n + 1)]
    for yes in range(n + 1):
        law = np.ones(1)
        for person in range(n):
            chance = 0.75 if person < yes else 0.25
            law = np.convolve(law, [1 - chance, chance])
        p = np.array([n - yes, yes]) / n
        held = sum(
            chance for chance, estimate in zip(law, found, strict=True) if holds(estimate, p)
        )
        assert held >= confidence


def test_warner_intervals_in_closed_form():
    """The interval of the share of yes, less the flips: one two-sided statement."""
    flip, n, yes = 0.3, 1000, 420
    found = estimate_frequencies(binary_symmetric(flip), [n - yes, yes], 0.95)
    low, high = clopper_pearson(yes, n, Fraction(1, 40))
    ends = [(end - flip) / (1 - 2 * flip) for end in (low, high)]
    assert found.lower == pytest.approx([1 - ends[1], ends[0]], abs=1e-9)
    assert found.upper == pytest.approx([1 - ends[0], ends[1]], abs=1e-9)
    assert found.fits


def test_intervals_are_the_projection_of_the_polytope():
    """Against the vertices that enumeration finds: no wider, no narrower."""
    counts = [45, 50, 45, 20]
    found = estimate_frequencies(THREE, counts, 0.8)
    # Outputs 2 and 3 of THREE are not in proportion: 4 outputs and 3 events of inputs.
    likelier = THREE.matrix > THREE.matrix.mean(axis=0)
    events = np.vstack([np.eye(4), likelier])
    seen = events @ counts
    tails = [Fraction(1, 5) / 16] * 4 + [Fraction(1, 5) / 12] * 3
    box = [clopper_pearson(int(c), 160, tail) for c, tail in zip(seen, tails, strict=True)]
    chances = THREE.matrix @ events.T
    rows = np.vstack([chances.T, -chances.T, -np.eye(3)])
    limits = np.array([high for _, high in box] + [-low for low, _ in box] + [0.0] * 3)
    vertices = []
    for pair in combinations(range(len(rows)), 2):
        system = np.vstack([rows[list(pair)], np.ones(3)])
        if abs(np.linalg.det(system)) > 1e-9:
            p = np.linalg.solve(system, [*limits[list(pair)], 1.0])
            if (rows @ p <= limits + 1e-9).all():
                vertices.append(p)
    assert found.lower == pytest.approx(np.min(vertices, axis=0), abs=1e-7)
    assert found.upper == pytest.approx(np.max(vertices, axis=0), abs=1e-7)


def test_without_programs_the_intervals_are_valid_and_as_sharp_for_randomized_response(
    monkeypatch,
):
    for channel, counts in ((randomized_response(3, 1.0), [50, 60, 40]), (THREE, [9, 6, 5, 3])):
        solved = estimate_frequencies(channel, counts, 0.9)
        with monkeypatch.context() as patch:
            patch.setattr("cvxleak.mechanisms.frequency_intervals.MOST", 0)
            other = estimate_frequencies(channel, counts, 0.9)
        assert (other.lower <= solved.lower + 1e-7).all()
        assert (other.upper >= solved.upper - 1e-7).all()
        if channel is not THREE:
            assert other.upper == pytest.approx(solved.upper)
            assert other.lower == pytest.approx(solved.lower)


def test_wrong_multipliers_make_wider_intervals_and_no_wrong_ones(monkeypatch):
    rng = np.random.default_rng(3)
    counts = [45, 50, 45, 20]
    honest = estimate_frequencies(THREE, counts, 0.9)
    assert honest.fits
    wrong = [rng.normal(size=7) for _ in range(6)]
    monkeypatch.setattr("cvxleak.mechanisms.frequency_intervals._multipliers", lambda *_: wrong)
    found = estimate_frequencies(THREE, counts, 0.9)
    assert (found.lower <= honest.lower + 1e-9).all()
    assert (found.upper >= honest.upper - 1e-9).all()


def test_counts_that_no_frequencies_explain():
    """Nearly everybody says yes, and a spinner alone says no in a quarter of the cases."""
    found = estimate_frequencies(binary_symmetric(0.25), [2, 998], 0.95)
    assert not found.fits
    assert "none fit the counts" in repr(found)
    assert not holds(found, np.array([0.0, 1.0]))
    assert estimate_frequencies(binary_symmetric(0.25), [2, 998]).fits


def test_one_input():
    found = estimate_frequencies([[1.0]], [7], 0.9)
    assert (found.lower[0], found.upper[0]) == (pytest.approx(1.0), 1.0)


def test_what_an_estimate_shows():
    plain, sure = (estimate_frequencies(WIDE, [40, 10, 60, 10], level) for level in (None, 0.9))
    assert repr(plain) == "FrequencyEstimate(120 respondents, 2 frequencies)"
    assert list(plain.to_frame().columns) == ["frequency", "standard_error"]
    frame = sure.to_frame()
    assert list(frame.index) == ["no", "yes"]
    assert frame.loc["yes", "upper"] == sure.upper[1]
    assert "90 % confidence" in sure._repr_html_()
    # The ends as printed are not inside the interval.
    for line, low, high in zip(str(sure).splitlines()[2:], sure.lower, sure.upper, strict=True):
        shown = [float(text) for text in line.split()[-2:]]
        assert shown[0] <= low <= shown[0] + 1e-4
        assert shown[1] >= high >= shown[1] - 1e-4
    assert pickle.loads(pickle.dumps(sure)) == sure != plain


@pytest.mark.parametrize("confidence", [0, 1, 1.5, math.nan, "often"])
def test_a_confidence_is_between_0_and_1(confidence):
    with pytest.raises(ValidationError, match=r"^confidence: "):
        estimate_frequencies(WIDE, [4, 0, 6, 1], confidence)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"lower": [0, 0]}, "confidence: .*together"),
        ({"lower": [0, 0], "upper": [1], "confidence": 0.9}, "upper: found 1 ends"),
        ({"lower": [0, 0], "upper": [1, 1], "confidence": 2}, "confidence: "),
    ],
)
def test_parts_that_do_not_fit(parts, message):
    with pytest.raises(ValidationError, match=message):
        FrequencyEstimate((0, 1), [0.5, 0.5], np.eye(2), 10, **parts)
