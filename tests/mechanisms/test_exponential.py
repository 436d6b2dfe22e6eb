"""The exponential mechanism by scores and by ranks: law, level, entropy (30) and Corollary 3."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import (
    column_symmetric_bound,
    discretized_laplace,
    exponential,
    is_column_symmetric,
    randomized_response,
    rank_exponential,
    rank_exponential_bound,
    rank_exponential_entropy,
    rank_scale_for_leakage,
)
from cvxleak.model import Distortion, Mechanism
from cvxleak.queries import count, pair_sum

SCORES = st.integers(1, 5).flatmap(
    lambda k: st.lists(st.lists(st.floats(-4, 4), min_size=k, max_size=k), min_size=1, max_size=5)
)


@given(SCORES, st.floats(0, 3), st.floats(0.5, 4))
def test_law_and_level(local_level, scores, epsilon, sensitivity):
    u = np.array(scores)
    channel = exponential(u, epsilon, sensitivity)
    for row, given_scores in zip(channel.matrix, u, strict=True):
        weights = [math.exp(epsilon * s / (2 * sensitivity)) for s in given_scores]
        assert row == pytest.approx([w / sum(weights) for w in weights], abs=1e-13)
    change = max(np.abs(a - b).max() for a in u for b in u)
    assert local_level(channel) <= epsilon * change / sensitivity + 1e-12


def test_leakage_7_2():
    channel = exponential(np.eye(2), 1.0, 1.0)
    assert channel.matrix[0, 1] == pytest.approx(1 / (math.exp(0.5) + 1), abs=1e-14)
    for k in (2, 3, 7):
        same = randomized_response(k, 0.8 / 2)
        assert np.allclose(exponential(np.eye(k), 0.8, 1.0).matrix, same.matrix, atol=1e-14)


@pytest.mark.parametrize("query", [count(4), pair_sum(4)], ids=repr)
def test_level_for_a_query(record_level, query):
    # |v - y| changes by no more than v does.
    scores = -Distortion.absolute(query.values).matrix
    channel = exponential(scores, 0.9, query.sensitivity, query.values, query.values)
    assert record_level(Mechanism(query, channel)) <= 0.9 + 1e-12


def test_large_scores_do_not_overflow():
    # The least probability that is stored: a zero would be an infinite level of privacy.
    assert exponential([[0.0, 1e308]], 700.0, 1.0).matrix.tolist() == [[1e-300, 1.0]]


@given(st.integers(2, 6), st.integers(1, 4), st.floats(0.05, 50), st.randoms(use_true_random=False))
def test_ranks_order_the_law(k, inputs, N, random):
    distances = np.array(
        [[random.choice([0.0, 1.0, 2.0, 5.5]) for _ in range(k)] for _ in range(inputs)]
    )
    channel = rank_exponential(distances, N)
    alpha = sum(math.exp(-i / N) for i in range(k))
    for row, d in zip(channel.matrix, distances, strict=True):
        # Python's sort is stable: at equal distance the earlier output comes first.
        for rank, y in enumerate(sorted(range(k), key=d.__getitem__)):
            assert row[y] == pytest.approx(math.exp(-rank / N) / alpha, abs=1e-14)
    assert is_column_symmetric(channel, tol=0)


def test_ties_go_to_the_earlier_output():
    tied = rank_exponential([[1.0, 0.0, 1.0]], 1.0).matrix[0]
    assert tied[1] > tied[0] > tied[2]


def test_labels_come_with_a_distortion():
    channel = rank_exponential(Distortion.absolute([0, 1, 3], [0, 3]), 2.0)
    assert channel.inputs == (0, 1, 3)
    assert channel.outputs == (0, 3)


@given(st.integers(2, 7), st.floats(0.1, 20))
def test_level_of_ranks(local_level, k, N):
    assert local_level(rank_exponential(Distortion.absolute(range(k)), N)) == pytest.approx(
        (k - 1) / N, rel=1e-9
    )


@given(st.integers(1, 60), st.floats(-3, 3))
@settings(max_examples=200)
def test_entropy_formula_30(k, exponent):
    N = 10**exponent
    row = rank_exponential([range(k)], N).matrix[0]
    assert rank_exponential_entropy(k, N) == pytest.approx(float(entr(row).sum()), abs=1e-11)


@pytest.mark.parametrize("N", [1e-320, 1e-300, 1e-3, 1e12, 1e300])
def test_entropy_at_the_ends(N):
    assert rank_exponential_entropy(4, N) == pytest.approx(0 if N < 1 else math.log(4), abs=1e-9)
    limit = [1, 0, 0, 0] if N < 1 else [0.25] * 4
    assert rank_exponential([range(4)], N).matrix[0] == pytest.approx(limit, abs=1e-9)


@given(st.integers(2, 40), st.floats(0.001, 0.999))
@settings(max_examples=100)
def test_corollary_3_the_scale_leaks_what_was_wanted_and_no_more(k, share):
    epsilon = share * math.log(k)
    N = rank_scale_for_leakage(k, epsilon)
    assert rank_exponential_bound(k, N) <= epsilon
    assert rank_exponential_bound(k, N) == pytest.approx(epsilon, abs=1e-11)
    assert rank_exponential_bound(k, N * (1 - 1e-6)) > epsilon


@given(st.integers(2, 20), st.floats(0.2, 50))
def test_the_scale_comes_back_from_its_bound(k, N):
    assert rank_scale_for_leakage(k, rank_exponential_bound(k, N)) == pytest.approx(N, rel=1e-6)


def test_the_bound_decreases_in_the_scale():
    bounds = [rank_exponential_bound(5, N) for N in np.geomspace(0.05, 500, 60)]
    assert all(later < earlier for earlier, later in pairwise(bounds))


@pytest.mark.parametrize("N", [0.5, 2.0, 8.0])
def test_corollary_3_bounds_c_1(individual_capacity, N):
    query = count(3)
    mechanism = Mechanism(query, rank_exponential(Distortion.absolute(query.values), N))
    bound = rank_exponential_bound(4, N)
    assert column_symmetric_bound(mechanism) == pytest.approx(bound, abs=1e-12)
    assert individual_capacity(mechanism) <= bound + 1e-9


def test_discretized_laplace_is_not_column_symmetric():
    # Its end outputs take the tails, so formula (30) and Corollary 3 do not speak about it.
    assert not is_column_symmetric(discretized_laplace(range(4), 1.0, 1.0))


@pytest.mark.parametrize(
    ("k", "leakage", "name"),
    [(1, 0.1, "k"), (3, 0.0, "leakage"), (3, math.log(3), "leakage"), (3, math.nan, "leakage")],
)
def test_a_wrong_argument_of_the_inverse(k, leakage, name):
    with pytest.raises(ValidationError, match=f"^{name}: "):
        rank_scale_for_leakage(k, leakage)
