"""Laplace, geometric and rounding: their laws, their level, and that rounding is unbiased."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace

from cvxleak.core.numbers import exact_law
from cvxleak.measures import record_dp_epsilon
from cvxleak.mechanisms import (
    discretized_laplace,
    laplace_threshold,
    random_rounding,
    truncated_geometric,
)
from cvxleak.model import Mechanism
from cvxleak.queries import count, modular_sum, pair_sum

OUTPUTS = st.lists(st.integers(-50, 50), min_size=1, max_size=7, unique=True).map(sorted)


@given(OUTPUTS, st.floats(0.05, 3), st.floats(0.5, 5))
def test_laplace_cells_are_those_of_the_distribution_function(outputs, epsilon, sensitivity):
    channel = discretized_laplace(outputs, epsilon, sensitivity, inputs=range(-3, 4))
    edges = np.array([-math.inf, *np.add(outputs[:-1], outputs[1:]) / 2, math.inf])
    for v, row in zip(channel.inputs, channel.matrix, strict=True):
        below = laplace.cdf(edges, loc=v, scale=sensitivity / epsilon)
        # Levels are rounded towards privacy, by more the farther a cell is for its width.
        assert np.allclose(row, np.diff(below), rtol=0, atol=1e-12)


@given(OUTPUTS, st.floats(0.05, 3))
def test_laplace_level_of_any_two_inputs(local_level, outputs, epsilon):
    channel = discretized_laplace(outputs, epsilon, 1, inputs=(0, 2.5))
    assert local_level(channel) <= 2.5 * epsilon * (1 + 1e-12) + 1e-12


def test_laplace_keeps_its_precision_far_out_in_the_tail(local_level):
    channel = discretized_laplace(range(0, 601), 1.0, 1.0, inputs=(0, 1))
    assert 1 - 2e-12 <= local_level(channel) <= 1
    assert 0 < channel.matrix[0, 599] < 1e-259


def test_laplace_with_two_outputs_is_the_threshold():
    for epsilon in (0.1, 1.0, 4.0):
        two = discretized_laplace((0, 1), epsilon, 1)
        assert np.allclose(two.matrix, laplace_threshold(epsilon).matrix, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "query", [count(4), modular_sum(4, 3), modular_sum(6, 5), pair_sum(5)], ids=repr
)
def test_laplace_with_the_querys_sensitivity_meets_its_level(record_level, query):
    mechanism = Mechanism(query, discretized_laplace(query.values, 0.7, query.sensitivity))
    level = record_level(mechanism)
    assert level <= 0.7 + 1e-12
    assert level == pytest.approx(record_dp_epsilon(mechanism), abs=1e-12)


def test_the_modular_sum_misses_its_level_when_noise_is_scaled_to_the_cycle(record_level):
    query = modular_sum(4, 3)
    cyclic = query.cyclic_sensitivity(3)
    assert record_level(Mechanism(query, discretized_laplace(query.values, 0.7, cyclic))) > 1


def test_inputs_and_outputs_keep_their_labels():
    channel = discretized_laplace((0, 3, 6), 1, 1, inputs=range(5))
    assert channel.outputs == (0, 3, 6)
    assert channel.inputs == (0, 1, 2, 3, 4)
    assert discretized_laplace((2,), 1, 1).matrix.tolist() == [[1.0]]


@given(st.integers(1, 12), st.floats(0, 5))
def test_geometric_is_clamped_two_sided_noise(n, epsilon):
    a = math.exp(-epsilon)
    matrix = truncated_geometric(n, epsilon).matrix
    for v in range(n + 1):
        noise = {y: (1 - a) / (1 + a) * a ** abs(y - v) for y in range(1, n)}
        for y, probability in noise.items():
            assert matrix[v, y] == pytest.approx(probability, rel=1e-9, abs=1e-13)
        rest = 1 - sum(noise.values())
        assert matrix[v, 0] + matrix[v, n] == pytest.approx(rest, abs=1e-12)
        # The two tails are in the ratio of a^v and a^(n - v).
        assert matrix[v, 0] * a ** (n - v) == pytest.approx(matrix[v, n] * a**v, rel=1e-9)


def test_geometric_without_any_budget_tells_nothing():
    assert truncated_geometric(3, 0).matrix.tolist() == [[0.5, 0, 0, 0.5]] * 4


@given(st.integers(1, 12), st.floats(1e-3, 5))
def test_geometric_has_exactly_its_level_between_any_two_counts(local_level, n, epsilon):
    channel = truncated_geometric(n, epsilon)
    assert local_level(channel) == pytest.approx(n * epsilon, abs=1e-9)
    for v in range(n):
        ratio = np.abs(np.log(channel.matrix[v] / channel.matrix[v + 1]))
        assert ratio.max() == pytest.approx(epsilon, abs=1e-9)


def test_geometric_on_a_count(record_level):
    mechanism = Mechanism(count(5), truncated_geometric(5, 0.4))
    assert record_level(mechanism) == pytest.approx(0.4, abs=1e-12)


@given(st.integers(1, 60), st.integers(1, 12))
@settings(max_examples=100)
def test_rounding_is_unbiased_and_leaves_multiples_alone(n, base):
    channel = random_rounding(n, base)
    outputs = np.array(channel.outputs)
    assert channel.inputs == tuple(range(n + 1))
    assert outputs[0] == 0
    assert set(np.diff(outputs)) == {base}
    assert n <= outputs[-1] < n + base
    assert np.abs(channel.matrix @ outputs - np.arange(n + 1)).max() <= 1e-13 * (n + base)
    for v, row in enumerate(channel.matrix):
        assert np.abs(outputs[row > 0] - v).max() < base
        if v % base == 0:
            assert row[v // base] == 1


def test_rounding_to_base_3_as_published():
    matrix = random_rounding(20, 3).matrix
    for v, row in enumerate(matrix):
        nearest = (v + 1) // 3
        assert row[nearest] == pytest.approx(float(Fraction(2, 3)) if v % 3 else 1, abs=1e-15)


@pytest.mark.parametrize("base", [2, 3, 5, 6, 7, 49])
def test_rounding_is_exact(base):
    channel = random_rounding(2 * base, base)
    for v in channel.inputs:
        law = exact_law(channel.row(v).tolist())
        up = Fraction(v % base, base)
        assert law[v // base] == 1 - up
        assert up == 0 or law[v // base + 1] == up


def test_rounding_with_probabilities_of_an_office():
    channel = random_rounding(7, 3, up=["0.3", Fraction(5, 7)])
    assert channel.row(1).tolist() == [0.7, 0.3, 0, 0]
    assert exact_law(channel.row(5).tolist()) == (0, Fraction(2, 7), Fraction(5, 7), 0)
    assert channel.row(6).tolist() == [0, 0, 1, 0]
    assert random_rounding(7, 3, up=["1/3", "2/3"]) == random_rounding(7, 3)
    # Counts that never leave the first step need the whole list all the same.
    assert random_rounding(1, 3, up=[0.5, 0]).matrix.tolist() == [[1, 0], [0.5, 0.5]]


def test_rounding_discloses_a_record_to_whom_knows_the_others(individual_capacity, record_level):
    mechanism = Mechanism(count(4), random_rounding(4, 3))
    assert individual_capacity(mechanism) == pytest.approx(math.log(2), abs=1e-7)
    assert record_level(mechanism) == math.inf
