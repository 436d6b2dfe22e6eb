"""Gaussian noise: the rounded channel, Corollary 4's bound, and the capacity under a peak."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import rel_entr
from scipy.stats import norm

from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.mechanisms import (
    discretized_gaussian,
    gaussian_bound,
    gaussian_peak_capacity,
    gaussian_variance_for_leakage,
)
from cvxleak.mechanisms import peak as module

OUTPUTS = st.lists(st.integers(-20, 20), min_size=1, max_size=7, unique=True).map(sorted)


@given(OUTPUTS, st.floats(0.05, 50))
def test_cells_are_those_of_the_distribution_function(outputs, variance):
    channel = discretized_gaussian(outputs, variance, inputs=(-1, 0, 2.5))
    edges = np.array([-math.inf, *np.add(outputs[:-1], outputs[1:]) / 2, math.inf])
    for v, row in zip(channel.inputs, channel.matrix, strict=True):
        below = norm.cdf(edges, loc=v, scale=math.sqrt(variance))
        assert np.allclose(row, np.diff(below), rtol=0, atol=1e-14)


def test_cells_keep_their_precision_on_both_sides():
    far = discretized_gaussian(range(-30, 31), 1.0, inputs=(0,)).matrix[0]
    assert np.allclose(far, far[::-1], rtol=1e-12, atol=0)
    assert far[-1] == pytest.approx(norm.sf(29.5), rel=1e-10)


@given(st.floats(0.01, 100), st.floats(1e-6, 300))
def test_the_variance_leaks_what_was_wanted_and_no_more(T, epsilon):
    N = gaussian_variance_for_leakage(T, epsilon)
    assert gaussian_bound(T, N) <= epsilon
    assert gaussian_bound(T, N) == pytest.approx(epsilon, rel=1e-12)
    assert pytest.approx(T * T / math.expm1(2 * epsilon), rel=1e-12) == N


@given(st.floats(0.01, 100), st.floats(1e-3, 1e3))
def test_the_variance_comes_back_from_its_bound(T, N):
    assert gaussian_variance_for_leakage(T, gaussian_bound(T, N)) == pytest.approx(N, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "value"), [(0.5, 0.464), (1.0, 0.781), (1.5, 1.124)])
def test_corollary_4_is_a_strict_bound(epsilon, value):
    N = gaussian_variance_for_leakage(2.0, epsilon)
    found = gaussian_peak_capacity(2.0, N)
    assert found.lower == pytest.approx(value, abs=5e-4)
    assert found.upper < gaussian_bound(2.0, N)


def smith_two_points(ratio):
    """Information of the uniform input on two points, by quadrature: log 2 - E log(1 + e^..)."""
    loss = quad(
        lambda z: norm.pdf(z) * np.logaddexp(0, -2 * ratio * (ratio + z)), -12, 12, epsabs=1e-13
    )
    return math.log(2) - loss[0]


@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.0, 1.31, 1.6])
def test_two_points_are_optimal_up_to_a_ratio_of_1_665(ratio):
    found = gaussian_peak_capacity(ratio, 1.0)
    assert found.law.labels == (-ratio, ratio)
    assert found.lower == pytest.approx(smith_two_points(ratio), abs=1e-12)


@pytest.mark.parametrize(
    ("ratio", "points"), [(1.6659, 2), (1.66595, 3), (2.8, 3), (3.0, 4), (4.369, 5), (8.0, 9)]
)
def test_the_number_of_points_grows(ratio, points):
    """The first step, at 1.665925, is known; past it every step was found by this code."""
    assert len(gaussian_peak_capacity(ratio, 1.0).law) == points


@given(st.floats(1e-3, 10))
@settings(max_examples=40)
def test_the_two_ends_meet_and_the_law_keeps_to_the_peak(ratio):
    found = gaussian_peak_capacity(ratio, 1.0)
    assert 0 <= found.upper - found.lower <= 1e-9
    points = np.array(found.law.labels)
    assert np.abs(points).max() == pytest.approx(ratio, rel=1e-12)
    assert np.abs(points).max() <= ratio
    assert np.allclose(points, -points[::-1])
    # Between two bounds of closed form: entropy power, and McKellips.
    assert found.lower >= 0.5 * math.log1p(2 * ratio**2 / (math.pi * math.e)) - 1e-12
    assert found.upper <= math.log1p(2 * ratio / math.sqrt(2 * math.pi * math.e)) + 1e-9
    assert found.upper < gaussian_bound(ratio, 1.0) + 1e-9


@pytest.mark.parametrize("ratio", [1.666, 2.905, 4.026, 5.055, 6.035, 6.975, 7.87, 8.7688])
def test_where_a_point_is_born(ratio):
    found = gaussian_peak_capacity(ratio, 1.0)
    assert found.upper - found.lower <= 1e-9


def test_the_upper_end_is_a_bound_for_any_law():
    # The divergence from the output law, evaluated elsewhere and by other means.
    found = gaussian_peak_capacity(2.5, 1.0)

    def density(y):
        return sum(found.law[x] * norm.pdf(y, loc=x) for x in found.law.labels)

    for x in (0.0, 0.7, 1.3, 2.1, 2.5):
        divergence = quad(
            lambda y, x=x: rel_entr(norm.pdf(y, loc=x), density(y)), -12, 12, epsabs=1e-12
        )[0]
        assert divergence <= found.upper + 1e-10


@given(st.floats(2, 10), st.floats(0.1, 0.9), st.floats(0.1, 0.9))
@settings(max_examples=30)
def test_the_upper_end_holds_between_the_points_where_it_was_evaluated(ratio, place, weight):
    x, w = np.array([place * ratio, ratio]), np.array([weight, 1 - weight])
    _, upper = module._ends(x, w, ratio)
    logs = np.log(module._output(x, w, ratio))
    dense = module._divergence(np.linspace(0, ratio, 20_001), logs, ratio).max()
    assert dense <= upper <= dense + 1e-6


def test_only_the_ratio_matters():
    one, other = gaussian_peak_capacity(2.5, 1.0), gaussian_peak_capacity(10.0, 16.0)
    assert one.lower == pytest.approx(other.lower, abs=1e-12)
    assert np.allclose(4 * np.array(one.law.labels), other.law.labels)


def test_capacity_grows_with_the_peak():
    values = [gaussian_peak_capacity(ratio, 1.0).lower for ratio in np.linspace(0.1, 10, 40)]
    assert all(later > earlier for earlier, later in pairwise(values))


@pytest.mark.parametrize("variance", [0.4, 1.0, 5.0])
def test_rounding_the_output_loses_information(capacity, variance):
    limit = gaussian_peak_capacity(1.0, variance)
    grid = np.linspace(-8, 8, 81)
    fine = capacity(discretized_gaussian(grid, variance, inputs=np.linspace(-1, 1, 9)).matrix)
    coarse = capacity(discretized_gaussian((-1, 0, 1), variance, inputs=(-1, 0, 1)).matrix)
    assert coarse < fine <= limit.upper + 1e-7
    assert fine == pytest.approx(limit.lower, rel=0.02)


@pytest.mark.parametrize("argument", [0.0, -1.0, math.inf, math.nan, "one"])
def test_a_wrong_argument_is_named(argument):
    for function in (gaussian_bound, gaussian_peak_capacity):
        with pytest.raises(ValidationError, match=r"^peak: "):
            function(argument, 1.0)
        with pytest.raises(ValidationError, match=r"^variance: "):
            function(1.0, argument)
    with pytest.raises(ValidationError, match=r"^peak: "):
        gaussian_variance_for_leakage(argument, 1.0)
    with pytest.raises(ValidationError, match=r"^leakage: "):
        gaussian_variance_for_leakage(1.0, argument)


def test_limits_of_the_peak_capacity(monkeypatch):
    with pytest.raises(ValidationError, match="at most 10"):
        gaussian_peak_capacity(10.1, 1.0)
    monkeypatch.setattr(module, "TOLERANCE", 0.0)
    with pytest.raises(SolverError, match="did not meet"):
        gaussian_peak_capacity(2.0, 1.0)
