"""Answers that were randomized on purpose: surveys, PRAM and local differential privacy."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from cvxleak import check_claim, measures
from cvxleak.core import ValidationError
from cvxleak.mechanisms import estimate_frequencies, randomized_response
from cvxleak.model import Channel
from cvxleak.samples import audit_samples, channels_from_counts, sample_mechanism


def test_reports_of_many_states():
    """WICG/attribution-reporting-api, noise_corrector.py: reports of 2925 states, epsilon 14.

    How often did each state truly occur? `estimate_frequencies` took 21 seconds of CPU (now 4), and
    with a confidence 11 for only 300 states (now 2): an SVD to see that rows are independent, and
    one table converted 600 times. Independent: a random state is drawn with probability `rate`.
    """
    states, epsilon = 300, 14.0
    rate = states / (states - 1 + math.exp(epsilon))
    counts = np.full(states, 10)
    counts[0] = 10**6
    estimate = estimate_frequencies(randomized_response(k=states, epsilon=epsilon), counts)
    shares = counts / counts.sum()
    assert estimate.frequencies == pytest.approx((shares - rate / states) / (1 - rate), abs=1e-12)


def test_weighted_answers():
    """The R package rr: forced answers (die shows 1: yes, 6: no), with survey weights.

    Single answers were refused as "counts[0]: expected an integer >= 0, found 'yes'", and weighted
    counts as "expected an integer", which says neither what to do nor why. Both errors say so now;
    weights remain outside, because the intervals are for people drawn with equal chances.
    Independent: (yes - 1/6) / (2/3).
    """
    forced = Channel([["5/6", "1/6"], ["1/6", "5/6"]], ["yes", "no"], ["yes", "no"])
    answers = pd.Series(["yes"] * 600 + ["no"] * 1857)
    for given in (answers, answers.tolist(), ["no", "yes"]):
        with pytest.raises(ValidationError, match=r"give the counts: collections.Counter\(answ"):
            estimate_frequencies(forced, given)
    estimate = estimate_frequencies(forced, Counter(answers), confidence=0.95)
    share = (600 / 2457 - 1 / 6) / (2 / 3)
    assert estimate.frequencies[0] == pytest.approx(share, abs=1e-12)
    error = math.sqrt(600 / 2457 * 1857 / 2457 / 2456) / (2 / 3)
    assert estimate.standard_errors[0] == pytest.approx(error, rel=1e-9)
    assert estimate.lower[0] < share - 1.9 * error
    assert estimate.upper[0] > share + 1.9 * error

    weighted = {"yes": 613.4, "no": 1843.6}
    with pytest.raises(ValidationError, match=r"weights are no counts.* solve Q\^T p = shares"):
        estimate_frequencies(forced, weighted)
    shares = np.array([613.4, 1843.6]) / 2457
    by_hand = np.linalg.solve(forced.matrix.T, shares)
    assert by_hand[0] == pytest.approx((613.4 / 2457 - 1 / 6) / (2 / 3))


def test_transitions_that_the_matrix_forbids():
    """sdcTools/sdcMicro #303: PRAM changed categories whose transition probability is 0.

    Can the transitions that it reports come from the matrix that was asked for? pandas leaves the
    transitions that never occurred empty, which stuck at "found NaN at index (0, 3)"; the error now
    says that they are zeros. The intervals exclude exactly the three forbidden transitions.
    Independent: Clopper-Pearson intervals by the beta distribution.
    """
    asked = np.zeros((5, 5))
    asked[0, :2] = asked[4, :2:-1] = 0.9, 0.1
    for x in (1, 2, 3):
        asked[x, x - 1 : x + 2] = 0.1, 0.8, 0.1
    reported = {
        (1, 1): 181, (1, 2): 17, (1, 3): 2, (2, 1): 15, (2, 2): 166, (2, 3): 17, (2, 5): 2,
        (3, 2): 12, (3, 3): 156, (3, 4): 29, (3, 5): 3, (4, 3): 18, (4, 4): 166, (4, 5): 16,
        (5, 4): 19, (5, 5): 181,
    }  # fmt: skip
    table = pd.Series(reported).unstack()
    with pytest.raises(ValidationError, match=r"has the count 0, as in counts.fillna\(0\)"):
        channels_from_counts(table, confidence=0.95)
    table = table.fillna(0)
    channels = channels_from_counts(table, confidence=0.95)
    outside = (asked < channels.lower) | (asked > channels.upper)
    pairs = [(channels.inputs[x], channels.outputs[y]) for x, y in np.argwhere(outside)]
    assert pairs == [(1, 3), (2, 5), (3, 5)]
    tail = 0.05 / 50  # of five rows, five columns, two ends
    assert channels.lower[1, 4] == pytest.approx(beta.ppf(tail, 2, 199), rel=1e-6)
    assert channels.upper[0, 0] == pytest.approx(beta.isf(tail, 182, 19), rel=1e-6)


def test_unary_encoding_with_a_bug():
    """Samuel-Maddock/pure-LDP #11: the true bit is kept too often, so epsilon is not met.

    The natural function to sample returns an array of bits: "is an array of shape (3,), no value
    that can be counted". The error now says tuple(array). With it the draws rule the claim out for
    a program with such a bug, and not for the right one. Independent: the level of unary encoding.
    """
    epsilon = 0.5
    kept = math.exp(epsilon / 2) / (1 + math.exp(epsilon / 2))

    def report(value, rng, chance):
        bits = rng.random(3) < 1 - kept
        bits[value] = rng.random() < chance
        return bits

    with pytest.raises(ValidationError, match=r"is given as tuple\(array\)"):
        sample_mechanism(lambda x, rng: report(x, rng, kept), inputs=range(3), draws=10, rng=1)
    for chance in (kept, 0.9):
        draws = sample_mechanism(
            lambda x, rng, p=chance: tuple(report(x, rng, p)), inputs=range(3), draws=2000, rng=1
        )
        ruled_out = audit_samples(draws, tol=0.1).violation().epsilon
        odds = chance / (1 - chance) * kept / (1 - kept)
        assert ruled_out <= math.log(odds)
        assert (ruled_out > epsilon) == (chance == 0.9)


def test_a_program_that_lies_too_rarely():
    """opendp/opendp #480: randomized response on a bit, where a lie may be the truth.

    It keeps the bit with probability p + (1 - p) p instead of p. Answered at first: the claim of
    log(p / (1 - p)) is refuted, and the two inputs and the output that do so are named.
    """
    p = 0.75
    true = p + (1 - p) * p
    claimed = math.log(p / (1 - p))
    answer = check_claim(Channel([[true, 1 - true], [1 - true, true]]), epsilon=claimed)
    assert answer.verdict == "FAIL"
    assert answer.bound.lower <= math.log(true / (1 - true)) <= answer.bound.upper
    right = Channel([["3/4", "1/4"], ["1/4", "3/4"]])
    assert check_claim(right, epsilon=claimed + 1e-12).passed
    assert measures.local_dp_epsilon(right) == pytest.approx(claimed)
