"""k-RR in closed form: against the channel's measures, Theorem 5 as printed, degenerate cases."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.envelope import (
    envelope_upper_bound,
    four_level_prior,
    pml_envelope,
    response_condition,
    response_dp_epsilon,
    response_envelope,
    response_envelope_pieces,
    response_event_envelope,
    response_lower_bound,
    response_upper_bound,
    tail_average_bound,
)
from cvxleak.measures import event_envelope, pml_right_quantile, privacy_profile
from cvxleak.mechanisms import randomized_response


def drawn(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    prior = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 10.0])))
    if rng.random() < 0.3:  # ties
        prior = np.round(prior * 8) + 1
        prior /= prior.sum()
    return prior, rng.uniform(0.05, 4), rng.uniform(0.001, 1)


def printed(prior, epsilon, delta):
    """h_delta(theta) with theta_1 and theta_2 as Theorem 5 (iii) prints them, N > 1."""
    k = len(prior)
    alpha = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    beta = 1 / (math.exp(epsilon) + k - 1)
    q = beta + (alpha - beta) * np.sort(prior)
    reach = np.cumsum(q)
    n = int(np.searchsorted(reach[:-1], delta)) + 1
    if n == 1:
        return math.log(alpha / q[0])
    theta = (delta - reach[n - 2]) / q[n - 1]
    first = alpha * ((n - 2) * q[n - 2] - q[: n - 2].sum()) / (alpha * q[n - 1] - beta * q[n - 2])
    second = alpha * ((n - 1) * q[n - 1] - q[: n - 1].sum()) / (q[n - 1] * (alpha - beta))
    if theta <= first:
        return math.log(alpha / q[n - 2])
    if theta <= second:
        return math.log(((n - 1) * alpha + theta * beta) / delta)
    return math.log(alpha / q[n - 1])


@settings(max_examples=200)
@given(st.integers(0, 10**6))
def test_theorem_5(seed):
    prior, epsilon, delta = drawn(seed)
    lower = response_lower_bound(prior, epsilon, delta)
    exact = response_envelope(prior, epsilon, delta)
    assert lower == pytest.approx(printed(prior, epsilon, delta), abs=1e-9)
    assert lower <= exact + 1e-12
    if response_condition(prior, epsilon, delta):
        assert lower == pytest.approx(exact, abs=1e-9)
    channel = randomized_response(len(prior), epsilon)
    assert exact <= tail_average_bound(prior, channel, delta) + 1e-9
    assert exact >= pml_right_quantile(channel, prior, delta) - 1e-9
    upper = response_upper_bound(prior, epsilon, delta)
    assert upper == pytest.approx(envelope_upper_bound(prior, channel, delta), abs=1e-9)
    event = response_event_envelope(prior, epsilon, delta)
    assert event == pytest.approx(event_envelope(channel, prior, delta), abs=1e-9)


@given(st.integers(0, 10**6))
def test_pieces_are_the_envelope(seed):
    prior, epsilon, _ = drawn(seed)
    if seed % 5 == 0:
        prior = np.append(prior, 0.0)
    pieces = response_envelope_pieces(prior, epsilon)
    assert pieces[0].start == 0
    assert pieces[-1].end == 1
    assert len(pieces) <= 3 * len(prior)
    for before, after in pairwise(pieces):
        assert before.end == after.start
        # The envelope is continuous.
        assert before(before.end) == pytest.approx(float(after(after.start)), abs=1e-9)
    for piece in pieces:
        inside = np.linspace(piece.start, piece.end, 7)[1:]
        assert piece(inside) == pytest.approx(response_envelope(prior, epsilon, inside), abs=1e-9)


def test_conjecture_fails_without_its_condition():
    prior = [0.01, 0.01, 0.01, 0.97]
    exact, lower = (f(prior, 1.0, 0.7) for f in (response_envelope, response_lower_bound))
    assert not response_condition(prior, 1.0, 0.7)
    assert exact >= lower
    gaps = []
    rng = np.random.default_rng(0)
    for _ in range(200):
        skewed = rng.dirichlet(np.full(5, 0.2))
        delta = np.linspace(0.05, 1, 20)
        missing = ~response_condition(skewed + 1e-300, 2.0, delta)
        gap = response_envelope(skewed, 2.0, delta) - response_lower_bound(
            np.maximum(skewed, 1e-12), 2.0, delta
        )
        gaps.extend(gap[missing])
    assert max(gaps) > 0.1


def test_degenerate_cases():
    uniform = np.full(4, 0.25)
    alpha = math.e / (math.e + 3)
    delta = np.linspace(0, 1, 11)
    for function in (response_envelope, response_lower_bound):
        # Corollary 1: all outputs leak log(k alpha).
        assert function(uniform, 1.0, delta) == pytest.approx(np.full(11, math.log(4 * alpha)))
        assert function(uniform, 0.0, delta) == pytest.approx(np.zeros(11), abs=1e-12)
        assert function([0.3, 0.7], 800.0, 0.1) == pytest.approx(math.log(1 / 0.3))
    # q_1 = ... = q_(N-1) and q_(N-1) = q_N.
    for prior in ([0.2, 0.2, 0.6], [0.1, 0.45, 0.45]):
        assert response_lower_bound(prior, 1.0, delta) == pytest.approx(
            [printed(prior, 1.0, max(d, 1e-9)) for d in delta]
        )
    # The order of the prior does not matter.
    assert response_envelope([0.5, 0.2, 0.3], 1.0, 0.4) == response_envelope(
        [0.2, 0.3, 0.5], 1.0, 0.4
    )


@given(st.integers(2, 8), st.floats(0.05, 3), st.floats(0, 0.3))
def test_approximate_dp(k, epsilon, delta):
    """The privacy profile at the least e is delta, as far as e is positive."""
    level = float(response_dp_epsilon(k, epsilon, delta))
    profile = privacy_profile(randomized_response(k, epsilon), level)
    assert profile <= delta + 1e-12
    assert level == 0 or profile == pytest.approx(delta, abs=1e-12)


def test_four_level_prior():
    prior = four_level_prior(12, 0.1).probabilities
    assert prior.sum() == pytest.approx(1)
    assert prior[[0, 3, 6, 9]] * 12 == pytest.approx([0.7, 0.9, 1.1, 1.3])
    for k, rho, name in ((10, 0.1, "k"), (12, 0.4, "rho"), (0, 0.1, "k")):
        with pytest.raises(ValidationError, match=name):
            four_level_prior(k, rho)


def test_arguments():
    with pytest.raises(ValidationError, match="Theorem 5 needs none"):
        response_lower_bound([0.0, 0.4, 0.6], 1.0, 0.5)
    with pytest.raises(ValidationError, match="prior"):
        response_envelope([1.0], 1.0, 0.5)
    with pytest.raises(ValidationError, match="epsilon"):
        response_envelope([0.5, 0.5], -1.0, 0.5)
    with pytest.raises(ValidationError, match="delta"):
        response_envelope([0.5, 0.5], 1.0, 1.5)


@pytest.mark.parametrize("epsilon", [40.0, 100.0, 800.0])
@pytest.mark.parametrize("prior", [[0.0, 1.0], [0.0, 0.4, 0.6], [0.25, 0.0, 0.0, 0.75]])
def test_outputs_that_hardly_occur(prior, epsilon):
    """The mass of an output without an input is lost in the sums, or it is 0."""
    pieces = response_envelope_pieces(prior, epsilon)
    assert pieces[-1].end == 1
    for delta in (1e-30, 0.3, 1.0):
        exact = pml_envelope(prior, randomized_response(len(prior), epsilon), delta)
        found = float(response_envelope(prior, epsilon, delta))
        assert exact.lower - 1e-10 <= found <= exact.upper + 1e-10
        piece = next(piece for piece in pieces if piece.start < delta <= piece.end)
        assert float(piece(delta)) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(
    ("prior", "epsilon"),
    [([1e-14, 1e-13, 1 - 1.1e-13], 28.0), ([1e-14, 1e-13, 1 - 1.1e-13], 40.0), ([0.2, 0.8], 700.0)],
)
def test_pieces_are_exact_at_any_scale(prior, epsilon):
    pieces = response_envelope_pieces(prior, epsilon)
    for piece in pieces:
        delta = piece.start + (piece.end - piece.start) * np.linspace(0.001, 1, 40)
        assert piece(delta) == pytest.approx(response_envelope(prior, epsilon, delta), abs=1e-9)


def test_approximate_dp_does_not_overflow():
    assert response_dp_epsilon(3, 746.0, 0.5) == pytest.approx(746 - math.log(2))
    assert response_dp_epsilon(3, 740.0, [0.0, 1.0]).tolist() == [740.0, 0.0]
