"""Answers that were randomized on purpose: surveys, PRAM and local differential privacy."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr
from scipy.stats import beta

from cvxleak import capacity, check_claim, measures
from cvxleak.cli.from_spec import build_task
from cvxleak.cli.spec_file import SpecFile
from cvxleak.core import ValidationError
from cvxleak.mechanisms import estimate_frequencies, randomized_response
from cvxleak.model import Channel, ChannelSet
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


def test_a_matrix_that_r_prints(tmp_path):
    """sdcTools/sdcMicro #264: a PRAM matrix as R prints it, whose rows sum to 1.000000003.

    Its columns have 8 to 10 decimals. `Channel` refused it, and so did `from_printed` with any one
    number of decimals ("sum to 1.0000000005; no distribution lies within"), the spec, and a file of
    what R prints ("put an empty cell before"). Each number now counts with its own decimals, in a
    spec as `digits = "printed"`, and names of columns that are those of the rows are seen as such.
    Independent: the capacity of the rows divided by their sums, by Blahut-Arimoto iterations.
    """
    printed = """            2          4            5           6            9
2 0.970396344 0.02728206 0.0006672392 0.001094932 0.0005594228
4 0.006006924 0.98859020 0.0016121788 0.002368318 0.0014223822
5 0.028585933 0.31369606 0.6519396872 0.004536487 0.0012418340
6 0.026213966 0.25751972 0.0025350956 0.711839660 0.0018915564
9 0.028460636 0.32865920 0.0014746779 0.004019557 0.6373859305
"""
    path = tmp_path / "pram.txt"
    path.write_text(printed)
    with pytest.raises(ValidationError, match="off by rounding"):
        Channel.from_csv(path)
    channels = ChannelSet.from_csv(path)
    assert channels.inputs == channels.outputs == (2, 4, 5, 6, 9)
    rows = np.array([line.split()[1:] for line in printed.splitlines()[1:]], dtype=float)
    rows /= rows.sum(axis=1, keepdims=True)
    p = np.full(5, 0.2)
    for _ in range(2000):
        information = rel_entr(rows, p @ rows).sum(axis=1)
        p *= np.exp(information - information.max())
        p /= p.sum()
    found = capacity(channels)
    assert found.lower <= p @ information <= found.upper
    assert found.upper - found.lower < 1e-6
    spec = tmp_path / "pram.toml"
    spec.write_text(
        "version = 1\nspace = { alphabets = [[2, 4, 5, 6, 9]] }\n"
        'mechanism = { kind = "matrix", file = "pram.txt", digits = "printed" }\n'
    )
    assert build_task(SpecFile(spec)).mechanism.noise == channels


def test_answers_that_are_randomized_twice():
    """hharcolezi/multi-freq-ldpy, L_GRR.py: memoized answers, randomized again for each report.

    Its estimator multiplies with a matrix that leaves one of two ways to a wrong answer out, so
    that its rows do not sum to 1, which `Channel` says. Answered at first: what one report and two
    of them tell, of 5 answers at epsilon 2 for ever. Independent: the chain by hand.
    """
    k, forever, once = 5, 2.0, 1.0
    a, b = math.exp(forever), math.exp(once)
    p1, q1 = a / (a + k - 1), 1 / (a + k - 1)
    p2 = (q1 - b * p1) / (-p1 * b + k * q1 * b - q1 * b - p1 * (k - 1) + q1)
    q2 = (1 - p2) / (k - 1)
    theirs = np.full((k, k), p1 * q2 + q1 * p2)
    np.fill_diagonal(theirs, p1 * p2 + (1 - p1) * q2)
    with pytest.raises(ValidationError, match="row 0 sums to"):
        Channel(theirs)
    again = randomized_response(k=k, epsilon=math.log(p2 / q2))
    memoized = randomized_response(k=k, epsilon=forever)
    wrong = p1 * q2 + q1 * p2 + (k - 2) * q1 * q2
    truth = math.log((p1 * p2 + (k - 1) * q1 * q2) / wrong)
    assert measures.local_dp_epsilon(memoized.then(again)) == pytest.approx(truth)
    assert truth < once
    twice = (p1 * p2**2 + (k - 1) * q1 * q2**2) / (q1 * p2**2 + (p1 + (k - 2) * q1) * q2**2)
    two = measures.local_dp_epsilon(memoized.then(again.product(again)))
    assert two == pytest.approx(math.log(twice))
    assert two < forever
