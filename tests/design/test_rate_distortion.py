import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.clock import Clock
from cvxleak.design.rate_distortion import best_for_law
from cvxleak.iterative import blahut_rate_distortion
from cvxleak.measures import expected_distortion, mutual_information


def best(p, d, minimize, number, tol=1e-9, clock=None):
    return best_for_law(
        np.asarray(p), np.asarray(d, dtype=float), minimize, number, tol, clock or Clock()
    )


def h(p):
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.2, 0.29])
def test_a_bit_under_hamming_distortion(share):
    found = best([0.3, 0.7], 1 - np.eye(2), "information", share)
    assert mutual_information(found.channel, [0.3, 0.7]) == pytest.approx(
        h(0.3) - h(share), abs=1e-8
    )
    assert found.prices[0] == pytest.approx(np.log((1 - share) / share), rel=1e-4)


@pytest.mark.parametrize("n", [3, 8])
def test_uniform_symbols_under_hamming_distortion(n):
    d, uniform = 0.3, np.full(n, 1 / n)
    found = best(uniform, 1 - np.eye(n), "information", d)
    truth = np.log(n) - h(d) - d * np.log(n - 1)
    assert mutual_information(found.channel, uniform) == pytest.approx(truth, abs=1e-9)


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
    found = best(p, d, "information", budget)
    assert expected_distortion(found.channel, p, d) == pytest.approx(budget, rel=1e-7)
    assert found.distortion == pytest.approx(budget, rel=1e-7)
    slope, value = found.prices[0], mutual_information(found.channel, p)
    plain = blahut_rate_distortion(p, d, slope, tol=1e-7)
    newton = best(p, d, "sum", slope)
    total = mutual_information(newton.channel, p) + slope * newton.distortion
    assert total == pytest.approx(value + slope * budget, abs=1e-8)
    assert total - 1e-8 <= plain.value <= total + 2e-7
    if value > 1e-4:
        inverse = best(p, d, "distortion", value, tol=1e-9 * high)
        assert inverse.distortion == pytest.approx(budget, abs=1e-7 * high)


def test_the_dual_that_its_multipliers_give_is_feasible_and_tight():
    rng = np.random.default_rng(5)
    p, d = rng.dirichlet(np.ones(30)), rng.random((30, 20))
    budget = 0.5 * (p @ d.min(axis=1)) + 0.5 * (p @ d).min()
    found = best(p, d, "information", budget)
    s = found.prices[0]
    alpha = 1 / (np.exp(-s * d) @ (p @ found.channel))
    alpha /= ((p * alpha) @ np.exp(-s * d)).max()
    value = mutual_information(found.channel, p)
    assert p @ np.log(alpha) - s * budget == pytest.approx(value, abs=1e-8)


def test_it_agrees_with_a_conic_solver():
    rng = np.random.default_rng(1)
    p, d = rng.dirichlet(np.ones(6)), rng.random((6, 5))
    budget = 0.6 * (p @ d.min(axis=1)) + 0.4 * (p @ d).min()
    log_alpha, s = cp.Variable(6), cp.Variable(nonneg=True)
    columns = [cp.log_sum_exp(np.log(p) + log_alpha - s * d[:, y]) <= 0 for y in range(5)]
    dual = cp.Problem(cp.Maximize(p @ log_alpha - s * budget), columns)
    value = dual.solve(solver="CLARABEL")
    found = best(p, d, "information", budget)
    assert mutual_information(found.channel, p) == pytest.approx(value, abs=1e-6)


def test_impossible_inputs_and_equal_outputs_are_no_obstacle():
    p = [0.5, 0.5, 0.0]
    d = [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [5.0, 0.0, 5.0, 0.0]]
    found = best(p, d, "information", 0.1)
    assert mutual_information(found.channel, p) == pytest.approx(np.log(2) - h(0.1), abs=1e-9)
    np.testing.assert_allclose(found.channel.sum(axis=1), 1)


def test_limits_are_kept():
    d = np.random.default_rng(0).random((20, 20))
    p = np.full(20, 0.05)
    assert best(p, d, "sum", 5.0, clock=Clock(0.0)).iterations == 0
    assert blahut_rate_distortion(p, d, 5.0, max_iterations=3).iterations == 3
