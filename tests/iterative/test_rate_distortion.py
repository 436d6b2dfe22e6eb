import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.iterative import blahut_rate_distortion, rate_distortion_interior_point
from cvxleak.measures import expected_distortion, mutual_information


def h(p):
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.2, 0.29])
def test_a_bit_under_hamming_distortion(share):
    hamming = 1 - np.eye(2)
    run = rate_distortion_interior_point([0.3, 0.7], hamming, distortion_budget=share)
    assert run.value == pytest.approx(h(0.3) - h(share), abs=1e-8)
    assert run.point.slope == pytest.approx(np.log((1 - share) / share), rel=1e-4)


@pytest.mark.parametrize("n", [3, 8])
def test_uniform_symbols_under_hamming_distortion(n):
    d = 0.3
    run = rate_distortion_interior_point(np.full(n, 1 / n), 1 - np.eye(n), distortion_budget=d)
    assert run.value == pytest.approx(np.log(n) - h(d) - d * np.log(n - 1), abs=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_budget_slope_and_inverse_are_one_curve(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 9, 2)
    p, d = rng.dirichlet(np.ones(n)), rng.random((n, m)) * 10.0 ** rng.integers(-4, 5)
    low, high = p @ d.min(axis=1), (p @ d).min()
    if high - low < 1e-6 * high:
        return
    budget = low + rng.uniform(0.02, 0.95) * (high - low)
    run = rate_distortion_interior_point(p, d, distortion_budget=budget)
    slope = run.point.slope
    plain = blahut_rate_distortion(p, d, slope, tol=1e-7)
    newton = rate_distortion_interior_point(p, d, slope=slope)
    assert newton.value == pytest.approx(run.value + slope * budget, abs=3e-9)
    assert newton.value - 1e-9 <= plain.value <= newton.value + 2e-7
    if run.value > 1e-4:
        inverse = rate_distortion_interior_point(
            p, d, information_budget=run.value, tol=1e-9 * high
        )
        assert inverse.value == pytest.approx(budget, abs=1e-7 * high)
    # The point is what its numbers say.
    assert mutual_information(p, run.point.channel) == pytest.approx(run.value, abs=1e-8)
    assert expected_distortion(p, run.point.channel, d) == pytest.approx(budget, rel=1e-7)


def test_the_dual_that_its_multipliers_give_is_feasible_and_tight():
    rng = np.random.default_rng(5)
    p, d = rng.dirichlet(np.ones(30)), rng.random((30, 20))
    budget = 0.5 * (p @ d.min(axis=1)) + 0.5 * (p @ d).min()
    run = rate_distortion_interior_point(p, d, distortion_budget=budget)
    s = run.point.slope
    alpha = 1 / (np.exp(-s * d) @ run.point.output)
    alpha /= ((p * alpha) @ np.exp(-s * d)).max()
    assert p @ np.log(alpha) - s * budget == pytest.approx(run.value, abs=2e-9)


def test_it_agrees_with_a_conic_solver():
    rng = np.random.default_rng(1)
    p, d = rng.dirichlet(np.ones(6)), rng.random((6, 5))
    budget = 0.6 * (p @ d.min(axis=1)) + 0.4 * (p @ d).min()
    log_alpha, s = cp.Variable(6), cp.Variable(nonneg=True)
    columns = [cp.log_sum_exp(np.log(p) + log_alpha - s * d[:, y]) <= 0 for y in range(5)]
    dual = cp.Problem(cp.Maximize(p @ log_alpha - s * budget), columns)
    value = dual.solve(solver="CLARABEL")
    run = rate_distortion_interior_point(p, d, distortion_budget=budget)
    assert run.value == pytest.approx(value, abs=1e-6)


def test_impossible_inputs_and_equal_outputs_are_no_obstacle():
    p = [0.5, 0.5, 0.0]
    d = [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [5.0, 0.0, 5.0, 0.0]]
    run = rate_distortion_interior_point(p, d, distortion_budget=0.1)
    assert run.value == pytest.approx(np.log(2) - h(0.1), abs=1e-9)
    np.testing.assert_allclose(run.point.channel.sum(axis=1), 1)


def test_limits_are_kept_and_told():
    d = np.random.default_rng(0).random((20, 20))
    p = np.full(20, 0.05)
    assert rate_distortion_interior_point(p, d, slope=5.0, max_iterations=2).stopped.startswith(
        "max_iterations"
    )
    assert rate_distortion_interior_point(p, d, slope=5.0, time_limit=0.0).stopped.startswith(
        "time_limit"
    )
    assert blahut_rate_distortion(p, d, 5.0, max_iterations=3).iterations == 3


def test_exactly_one_number_is_asked_for():
    for numbers in ({}, {"slope": 1.0, "distortion_budget": 0.1}):
        with pytest.raises(ValidationError, match="exactly one"):
            rate_distortion_interior_point([1.0], [[0.0]], **numbers)
