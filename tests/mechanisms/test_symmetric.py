"""Randomized response and the symmetric channels: level, C_1 (DALENIUS Corollary 1), the flip."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import (
    binary_symmetric,
    flip_for_leakage,
    generalized_symmetric,
    laplace_threshold,
    randomized_response,
    rank_scale_for_leakage,
    symmetric_capacity,
)
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.queries import from_function, modular_sum, parity


@given(st.integers(2, 9), st.floats(0, 30))
def test_randomized_response_has_exactly_its_level(local_level, k, epsilon):
    channel = randomized_response(k, epsilon)
    assert local_level(channel) == pytest.approx(epsilon, abs=1e-12)
    flip = (k - 1) / (math.exp(epsilon) + k - 1)
    assert np.allclose(channel.matrix, generalized_symmetric(k, flip).matrix, rtol=1e-9, atol=0)


@given(st.integers(2, 9), st.floats(0.001, 0.999))
def test_symmetric_channel_has_the_documented_level(local_level, m, flip):
    level = local_level(generalized_symmetric(m, flip))
    assert level == pytest.approx(abs(math.log((1 - flip) * (m - 1) / flip)), abs=1e-12)


def test_ends_of_the_scale():
    assert np.array_equal(binary_symmetric(0).matrix, np.eye(2))
    assert np.array_equal(binary_symmetric(1).matrix, 1 - np.eye(2))
    assert np.allclose(randomized_response(5, 0).matrix, 0.2)
    assert np.array_equal(generalized_symmetric(2, 0.3).matrix, binary_symmetric(0.3).matrix)


@given(st.integers(2, 6), st.floats(0, 1))
@settings(max_examples=50)
def test_capacity_formula(capacity, m, flip):
    found = capacity(generalized_symmetric(m, flip).matrix)
    assert found == pytest.approx(symmetric_capacity(m, flip), abs=1e-7)


@pytest.mark.parametrize(
    ("flip", "value"),
    [(0.1, 0.368064), (0.3, 0.082283), (0.5, 0.0), (0.0, math.log(2)), (1.0, math.log(2))],
)
def test_capacity_of_the_binary_channel_to_its_printed_digits(flip, value):
    assert symmetric_capacity(2, flip) == pytest.approx(value, abs=5e-7)


NOT_CONSTANT = [
    parity(1),
    parity(3),
    # DALENIUS Example 1: the records do not have two values each, and C_1 is the same.
    from_function(RecordSpace([(0, 1, 2), (0, 1)]), lambda x: int(x[0] == x[1])),
    from_function(RecordSpace([(0, 1, 2)] * 2), lambda x: int(x == (2, 2))),
]


@pytest.mark.parametrize("query", NOT_CONSTANT)
@pytest.mark.parametrize("flip", [0.05, 0.3, 0.8])
def test_corollary_1_holds_with_equality_for_any_query_that_is_not_constant(
    individual_capacity, query, flip
):
    leakage = individual_capacity(Mechanism(query, binary_symmetric(flip)))
    assert leakage == pytest.approx(symmetric_capacity(2, flip), abs=1e-7)


def test_c_1_of_three_values_needs_a_record_that_shows_them(individual_capacity):
    noise = generalized_symmetric(3, 0.3)
    ternary = from_function(RecordSpace([(0, 1, 2), (0, 1)]), lambda x: sum(x) % 3)
    bound = symmetric_capacity(3, 0.3)
    assert individual_capacity(Mechanism(ternary, noise)) == pytest.approx(bound, abs=1e-7)
    # A binary record shows two rows: a binary symmetric channel with flip 3/17 that is heard with
    # probability 0.85, and noise otherwise.
    binary = individual_capacity(Mechanism(modular_sum(3, 3), noise))
    assert binary == pytest.approx(0.85 * symmetric_capacity(2, 0.15 / 0.85), abs=1e-7)
    assert binary < bound - 0.01


@given(st.integers(2, 20), st.floats(1e-6, 0.999))
@settings(max_examples=100)
def test_the_flip_leaks_what_was_wanted_and_no_more(m, share):
    epsilon = share * math.log(m)
    flip = flip_for_leakage(m, epsilon)
    leakage = symmetric_capacity(m, flip)
    assert leakage <= epsilon
    assert leakage == pytest.approx(epsilon, abs=1e-12)
    assert 0 < flip <= 1 - 1 / m
    assert symmetric_capacity(m, flip * (1 - 1e-6)) > epsilon


@given(st.integers(2, 9), st.floats(0.001, 0.999))
def test_the_flip_comes_back_from_its_leakage(m, share):
    flip = share * (1 - 1 / m)
    assert flip_for_leakage(m, symmetric_capacity(m, flip)) == pytest.approx(flip, abs=1e-6)


def test_no_leakage_at_all():
    assert flip_for_leakage(2, 0) == pytest.approx(0.5, abs=1e-7)
    assert flip_for_leakage(4, 0) == pytest.approx(0.75, abs=1e-7)


@pytest.mark.parametrize(("m", "epsilon", "name"), [(1, 0.1, "k"), (2, -0.1, "leakage")])
def test_a_wrong_argument_of_the_inverse(m, epsilon, name):
    with pytest.raises(ValidationError, match=f"^{name}: "):
        flip_for_leakage(m, epsilon)


@pytest.mark.parametrize("inverse", [flip_for_leakage, rank_scale_for_leakage])
def test_more_leakage_than_there_can_be_is_refused_with_the_largest(inverse):
    with pytest.raises(ValidationError, match=r"^leakage: found 2\.0; 4 outputs .* = 1\.386294 "):
        inverse(4, 2.0)


def test_the_largest_leakage_needs_no_flip():
    assert flip_for_leakage(4, math.log(4)) == 0.0


@given(st.floats(0, 20))
def test_thresholded_laplace(local_level, epsilon):
    channel = laplace_threshold(epsilon)
    assert channel.matrix[0, 1] == pytest.approx(math.exp(-epsilon / 2) / 2, rel=1e-12)
    level = local_level(channel)
    assert level == pytest.approx(math.log(2 * math.exp(epsilon / 2) - 1), abs=1e-9)
    assert level <= epsilon + 1e-9


def test_leakage_7_2_numbers():
    assert laplace_threshold(1.0).matrix[0, 1] == pytest.approx(0.3033, abs=5e-5)
    assert symmetric_capacity(2, laplace_threshold(1.0).matrix[0, 1]) == pytest.approx(
        0.0795, abs=5e-5
    )
