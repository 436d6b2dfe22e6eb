"""What every mechanism does: rows that are stochastic to the last digits, a word on bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxleak.mechanisms as mechanisms
from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import (
    binary_symmetric,
    constant,
    discretized_gaussian,
    discretized_laplace,
    exponential,
    generalized_symmetric,
    identity,
    laplace_threshold,
    pml_extremal,
    random_rounding,
    randomized_response,
    rank_exponential,
    truncated_geometric,
)
from cvxleak.model import Channel, Prior

SIZES = st.integers(2, 12)
EPSILONS = st.floats(1e-3, 20)
PROBABILITIES = st.floats(0, 1)

CHANNELS = st.one_of(
    st.builds(randomized_response, SIZES, EPSILONS),
    st.builds(binary_symmetric, PROBABILITIES),
    st.builds(generalized_symmetric, SIZES, PROBABILITIES),
    st.builds(laplace_threshold, EPSILONS),
    st.builds(lambda n, e, s: discretized_laplace(range(n), e, s), SIZES, EPSILONS, EPSILONS),
    st.builds(lambda n, v: discretized_gaussian(range(n), v), SIZES, EPSILONS),
    st.builds(lambda n, e: exponential(np.eye(n), e, 1.0), SIZES, EPSILONS),
    st.builds(lambda n, N: rank_exponential(1 - np.eye(n), N), SIZES, EPSILONS),
    st.builds(truncated_geometric, SIZES, EPSILONS),
    st.builds(random_rounding, SIZES, st.integers(1, 9)),
    st.builds(identity, SIZES),
    st.builds(lambda k, n: constant(k, Prior.uniform(n)), SIZES, SIZES),
    st.builds(
        lambda k, s: pml_extremal(Prior.uniform(k), -s * math.log1p(-1 / k)),
        SIZES,
        st.floats(0.01, 0.99),
    ),
)


@given(CHANNELS)
@settings(max_examples=300)
def test_rows_are_stochastic_to_the_last_digits(channel):
    assert isinstance(channel, Channel)
    sums = np.array([math.fsum(row) for row in channel.matrix])
    assert np.abs(sums - 1).max() <= 4 * np.finfo(float).eps
    assert channel.matrix.min() >= 0


def test_every_mechanism_is_a_public_name():
    assert sorted(mechanisms.__all__) == mechanisms.__all__
    assert all(hasattr(mechanisms, name) for name in mechanisms.__all__)


def test_trivial_mechanisms(capacity):
    assert np.array_equal(identity(3).matrix, np.eye(3))
    assert capacity(identity(3).matrix) == pytest.approx(math.log(3))
    nothing = constant(4, Prior([0.2, 0.8], ["no", "yes"]))
    assert nothing.shape == (4, 2)
    assert nothing.outputs == ("no", "yes")
    assert capacity(nothing.matrix) == pytest.approx(0, abs=1e-12)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("build", "arguments", "name"),
    [
        (randomized_response, (0, 1.0), "k"),
        (randomized_response, (2.5, 1.0), "k"),
        (randomized_response, (3, -0.1), "epsilon"),
        (randomized_response, (3, NAN), "epsilon"),
        (randomized_response, (3, "one"), "epsilon"),
        (binary_symmetric, (1.1,), "flip"),
        (binary_symmetric, (-0.1,), "flip"),
        (binary_symmetric, (True,), "flip"),
        (generalized_symmetric, (1, 0.1), "k"),
        (generalized_symmetric, (3, NAN), "flip"),
        (laplace_threshold, (-1.0,), "epsilon"),
        (discretized_laplace, ([0, 1], 0, 1), "epsilon"),
        (discretized_laplace, ([0, 1], 1, 0), "sensitivity"),
        (discretized_laplace, ([0, 1], 1, INF), "sensitivity"),
        (discretized_laplace, ([0, 0], 1, 1), "outputs"),
        (discretized_laplace, ([1, 0], 1, 1), "outputs"),
        (discretized_laplace, ([], 1, 1), "outputs"),
        (discretized_laplace, ([0, INF], 1, 1), "outputs"),
        (discretized_laplace, ([0, 1], 1, 1, []), "inputs"),
        (discretized_laplace, ([0, 1], 1, 1, ["a"]), "inputs"),
        (discretized_laplace, ([0, 1], 1, 1, [1, 1]), "inputs"),
        (discretized_laplace, ({0, 1}, 1, 1), "outputs"),
        (discretized_gaussian, ([0, 1], 0.0), "variance"),
        (discretized_gaussian, ([1, 0], 1.0), "outputs"),
        (exponential, ([1, 0], 1.0, 1.0), "scores"),
        (exponential, ([[]], 1.0, 1.0), "scores"),
        (exponential, ([[1, INF]], 1.0, 1.0), "scores"),
        (exponential, ([[1, 0]], -1.0, 1.0), "epsilon"),
        (exponential, ([[1, 0]], 1.0, 0.0), "sensitivity"),
        (exponential, ([[1, 0]], 1.0, 1.0, ["a", "b"]), "inputs"),
        (exponential, ([[1, 0]], 1.0, 5e-324), "epsilon / sensitivity"),
        (discretized_laplace, ([0, 1], 1.0, 5e-324), "epsilon / sensitivity"),
        (rank_exponential, ([[1, -1]], 1.0), "distortion"),
        (rank_exponential, ([[1, NAN]], 1.0), "distortion"),
        (rank_exponential, ([[1, 0]], 0.0), "scale"),
        (rank_exponential, ([[1, 0]], INF), "scale"),
        (truncated_geometric, (0, 1.0), "n"),
        (truncated_geometric, (3, -1.0), "epsilon"),
        (random_rounding, (0, 3), "n"),
        (random_rounding, (3, 0), "base"),
        (random_rounding, (3, 1.5), "base"),
        (random_rounding, (3, 3, [0.5]), "up"),
        (random_rounding, (3, 3, 0.5), "up"),
        (random_rounding, (3, 3, [0.5, 1.5]), "up"),
        (random_rounding, (3, 3, [-0.1, 0.5]), "up"),
        (identity, (0,), "k"),
        (constant, (0, [1.0]), "k"),
        (constant, (2, [0.5, 0.6]), "law"),
        (pml_extremal, ([1.0], 0.1), "prior"),
        (pml_extremal, ([0.0, 1.0], 0.1), "prior"),
        (pml_extremal, ([0.5, 0.6], 0.1), "prior"),
    ],
)
def test_a_wrong_argument_is_named(build, arguments, name):
    with pytest.raises(ValidationError, match=rf"^{name}\b"):
        build(*arguments)
