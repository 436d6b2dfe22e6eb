"""The interior-point method for capacity: gaps that close on every kind of channel."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.iterative import blahut_arimoto, capacity_interior_point, interior_point
from cvxleak.mechanisms import discretized_gaussian


def normalized(matrix):
    return matrix / matrix.sum(axis=1, keepdims=True)


def random_channel(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.choice([1, 2, 3, 5, 8, 20, 70], size=2)
    kind = rng.integers(7)
    if kind == 0:
        return normalized(rng.gamma(10 ** rng.uniform(-2.5, 1.5), size=(n, m)) + 1e-290)
    if kind == 1:
        return normalized(np.exp(-rng.uniform(1, 740) * rng.random((n, m))))
    if kind == 2:
        sparse = (rng.random((n, m)) < rng.uniform(0.05, 0.9)) * rng.random((n, m))
        return normalized(sparse + np.eye(m)[rng.integers(0, m, n)] * 10 ** rng.uniform(-12, 0))
    if kind == 3:
        x, y = np.sort(rng.random(n)), np.linspace(0, 1, m)
        return normalized(np.exp(-((x[:, None] - y) ** 2) / 10 ** rng.uniform(-4, 1)) + 1e-300)
    if kind == 4:
        return normalized(rng.random((1, m)) + 10 ** rng.uniform(-9, -1) * rng.random((n, m)))
    if kind == 5:
        return normalized(np.eye(n, m) + 10 ** rng.uniform(-14, 0) * rng.random((n, m)))
    few = normalized(rng.random((max(1, n // 4), m)))
    noise = 1 + 10 ** rng.uniform(-16, -1) * rng.random((n, m))
    return normalized(few[rng.integers(0, len(few), n)] * noise)


@given(st.integers(0, 10**9))
@settings(max_examples=150)
def test_the_gap_closes(seed):
    run = capacity_interior_point(random_channel(seed))
    assert run.stopped == "the gap is within tol"
    assert (run.history["upper"] - run.history["objective"]).min() <= 1e-9
    assert run.point.sum() == pytest.approx(1, abs=1e-12)
    assert (run.point >= 0).all()


@given(st.integers(0, 10**9))
@settings(max_examples=150)
def test_the_gap_closes_when_rows_join_late(seed):
    matrix = random_channel(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interior_point, "_ALL_ROWS", 2)
        patch.setattr(interior_point, "_RANKING_STEPS", 1)
        run = capacity_interior_point(matrix)
    assert run.stopped == "the gap is within tol"
    assert run.value == pytest.approx(capacity_interior_point(matrix).value, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_blahut_arimoto(seed):
    matrix = np.random.default_rng(seed).dirichlet(np.ones(12), size=15)
    run = blahut_arimoto(matrix, tol=1e-7)
    assert capacity_interior_point(matrix).value == pytest.approx(run.value, abs=1e-7)


def test_closely_spaced_inputs():
    channel = discretized_gaussian(np.linspace(-8, 8, 200), 1.0, np.linspace(-3, 3, 200))
    run = capacity_interior_point(channel)
    assert run.stopped == "the gap is within tol"
    assert run.iterations < 30
    # Blahut–Arimoto is on its way there, from below.
    slow = blahut_arimoto(channel, max_iterations=2000)
    assert slow.history["upper"][-1] - slow.value > 1e-6
    assert run.value - 1e-4 < slow.value < run.value


def test_only_a_working_set_of_a_large_channel_is_factorized():
    matrix = np.random.default_rng(0).dirichlet(np.ones(300), size=300)
    run = capacity_interior_point(matrix)
    assert run.history["rows"].max() < 300
    assert run.stopped == "the gap is within tol"


def test_a_row_with_a_tiny_share_of_a_new_output():
    matrix = np.zeros((101, 101))
    matrix[:100, :100] = np.eye(100)
    matrix[100, :100], matrix[100, 100] = 0.995 / 100, 0.005
    run = capacity_interior_point(matrix)
    assert run.value == pytest.approx(math.log(100), abs=1e-9)


def test_limits():
    matrix = np.random.default_rng(1).dirichlet(np.ones(9), size=9)
    capped = capacity_interior_point(matrix, max_iterations=2)
    assert (capped.stopped, capped.iterations) == ("max_iterations reached", 2)
    late = capacity_interior_point(matrix, time_limit=0.0)
    assert (late.stopped, late.iterations) == ("time_limit reached", 0)
    assert late.point == pytest.approx(np.full(9, 1 / 9))
    exact = capacity_interior_point(matrix, tol=0.0)
    assert exact.stopped in {
        "the gap is within tol",
        "the gap no longer decreases: limit of floating-point arithmetic",
    }
    best = (exact.history["upper"] - exact.history["objective"]).min()
    assert best < 1e-14
    assert {name: len(values) for name, values in capped.history.items()} == {
        "objective": 3,
        "upper": 3,
        "rows": 3,
        "step": 2,
    }


@pytest.mark.parametrize(
    ("options", "name"),
    [({"tol": -1.0}, "tol"), ({"max_iterations": -1}, "max_iter"), ({"time_limit": -1}, "time")],
)
def test_bad_options(options, name):
    with pytest.raises(ValidationError, match=name):
        capacity_interior_point([[0.9, 0.1], [0.1, 0.9]], **options)
