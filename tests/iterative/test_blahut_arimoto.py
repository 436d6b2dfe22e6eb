"""Plain Blahut–Arimoto: closed forms, its laws, and why it stops."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.iterative import IterativeResult, blahut_arimoto
from cvxleak.model import Channel, Prior


def channel_of(seed, inputs, outputs, concentration=1.0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(outputs, concentration), size=inputs)


@pytest.mark.parametrize("e", [0.0, 0.01, 0.3, 0.5, 0.9])
def test_z_channel(e):
    run = blahut_arimoto([[1.0, 0.0], [e, 1.0 - e]])
    exact = math.log1p(math.exp(-entr([e, 1 - e]).sum() / (1 - e)))
    assert exact - 1e-9 <= run.value <= exact + 1e-14
    assert run.stopped == "the gap is within tol"


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 8))
@settings(max_examples=50)
def test_the_objective_rises_below_an_upper_bound(seed, inputs, outputs):
    run = blahut_arimoto(channel_of(seed, inputs, outputs), max_iterations=300)
    objective, upper = run.history["objective"], run.history["upper"]
    assert (np.diff(objective) >= -1e-14).all()
    assert (upper >= objective.max() - 1e-14).all()
    assert run.value == objective[-1]
    assert run.point.sum() == pytest.approx(1, abs=1e-12)
    assert (run.point >= 0).all()


def test_history_has_one_entry_per_iterate_or_update():
    run = blahut_arimoto(channel_of(1, 5, 4), max_iterations=7, tol=0.0)
    assert run.stopped == "max_iterations reached"
    assert run.iterations == 7
    assert {name: len(values) for name, values in run.history.items()} == {
        "objective": 8,
        "upper": 8,
        "step": 7,
    }
    again = blahut_arimoto(channel_of(1, 5, 4), max_iterations=6, tol=0.0)
    assert np.abs(run.point - again.point).sum() == pytest.approx(run.history["step"][-1])


def test_time_limit():
    run = blahut_arimoto(channel_of(2, 5, 4), time_limit=0.0, tol=0.0)
    assert run.stopped == "time_limit reached"
    assert run.iterations == 0


def test_the_start_is_used_and_its_zeros_stay():
    noiseless = np.eye(3)
    run = blahut_arimoto(noiseless, start=Prior([0.5, 0.5, 0.0]), max_iterations=10)
    assert run.value == pytest.approx(math.log(2))
    assert run.point[2] == 0
    assert run.history["upper"][-1] > math.log(3)
    start = [0.2, 0.3, 0.5]
    assert blahut_arimoto(noiseless, start=start, max_iterations=0).point == pytest.approx(start)


def test_probabilities_that_would_be_subnormal_become_zero():
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]
    run = blahut_arimoto(rows, start=[0.4, 0.6, 1.5e-200], max_iterations=1)
    assert run.point == pytest.approx([0.5, 0.5, 0.0])
    assert run.point[2] == 0


def test_rows_count_as_divided_by_their_sums():
    rows = channel_of(3, 4, 4)
    shifted = rows * (1 + np.array([[9e-10], [-9e-10], [5e-10], [0.0]]))
    assert blahut_arimoto(shifted).value == pytest.approx(blahut_arimoto(rows).value, abs=1e-14)


@pytest.mark.parametrize(
    ("matrix", "value"),
    [
        ([[1.0]], 0.0),
        ([[0.2, 0.8]], 0.0),
        ([[1.0], [1.0], [1.0]], 0.0),
        ([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], 0.0),
        ([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], math.log(2)),
    ],
)
def test_degenerate_channels(matrix, value):
    run = blahut_arimoto(Channel(matrix))
    assert run.value == pytest.approx(value, abs=1e-15)
    assert run.iterations == 0


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"tol": -1.0}, "tol"),
        ({"tol": math.nan}, "tol"),
        ({"max_iterations": 1.5}, "max_iterations"),
        ({"time_limit": -1}, "time_limit"),
        ({"start": [0.5, 0.5, 0.0]}, "start"),
        ({"start": [0.5, 0.4]}, "start"),
    ],
)
def test_bad_options(options, name):
    with pytest.raises(ValidationError, match=name):
        blahut_arimoto([[0.9, 0.1], [0.1, 0.9]], **options)


def test_results_are_frozen_and_pickle():
    run = blahut_arimoto(channel_of(4, 3, 3))
    loaded = pickle.loads(pickle.dumps(run))
    assert isinstance(loaded, IterativeResult)
    for result in (run, loaded):
        with pytest.raises(ValueError, match="read-only"):
            result.history["objective"][0] = 1.0
        with pytest.raises(TypeError):
            result.history["objective"] = np.zeros(1)
        with pytest.raises(AttributeError):
            result.value = 0.0
    assert loaded.history["upper"].tolist() == run.history["upper"].tolist()
