"""What the report on a set of sources says, beside randomized response in closed form."""

import math

import numpy as np
import pytest

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.local_dp import (
    MinDistortionLocalDP,
    MinLocalDP,
    min_distortion_local_dp,
    min_local_dp,
)
from cvxleak.measures import local_dp_epsilon, privacy_profile
from cvxleak.mechanisms import randomized_response
from cvxleak.proofs import verify
from cvxleak.report import Report, local_dp_report
from cvxleak.sources import SourceSet

LAWS = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]
SOURCES = SourceSet(LAWS)
STEPS = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])


def least_epsilon(sources, budget, distortion=None, delta=0.0, **options) -> Report:
    return local_dp_report(MinLocalDP(sources, budget, distortion, delta=delta), **options)


def least_distortion(sources, epsilon, distortion=None, delta=0.0, **options) -> Report:
    problem = MinDistortionLocalDP(sources, epsilon, distortion, delta=delta)
    return local_dp_report(problem, **options)


def one(report: Report, name: str):
    (quantity,) = report.named(name)
    assert quantity.lower <= quantity.upper
    return quantity


def spent(channel, distortion: np.ndarray) -> float:
    return SOURCES.worst((channel.matrix * distortion).sum(axis=1))[0]


@pytest.mark.parametrize("distortion", [None, STEPS])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_both_directions(distortion, delta: float):
    cost = 1 - np.eye(3) if distortion is None else distortion
    least = least_epsilon(LAWS, 0.3, distortion=distortion, delta=delta)
    epsilon = one(least, "least local DP epsilon")
    bound = min_local_dp(SOURCES, 0.3, distortion, delta=delta)
    assert (epsilon.lower, epsilon.upper) == (bound.lower, bound.upper)
    assert verify(epsilon.certificate).passed
    assert least.channel is not None
    assert spent(least.channel, cost) == pytest.approx(
        one(least, "worst-source distortion").upper, abs=1e-12
    )
    assert one(least, "local DP epsilon").upper == local_dp_epsilon(least.channel)
    back = least_distortion(LAWS, epsilon.upper, distortion=distortion, delta=delta)
    found = one(back, "least worst-case distortion")
    assert found.unit == "distortion"
    assert found.upper == pytest.approx(0.3, abs=1e-6)
    assert verify(found.certificate).passed
    converse = min_distortion_local_dp(SOURCES, epsilon.upper, distortion, delta=delta)
    assert found.upper == converse.upper


@pytest.mark.parametrize("distortion", [None, STEPS])
@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("budget", [0.1, 0.3, 0.38])
def test_randomized_response_at_equal_distortion(distortion, delta: float, budget: float):
    cost = 1 - np.eye(3) if distortion is None else distortion
    report = least_epsilon(LAWS, budget, distortion=distortion, delta=delta)
    epsilon = one(report, "k-RR epsilon").upper
    assert one(report, "least local DP epsilon").lower <= epsilon + 1e-9
    # By bisection on k-RR itself: the pure epsilon that spends the budget.
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        over = spent(randomized_response(3, middle), cost) > budget
        low, high = (middle, high) if over else (low, middle)
    if high < 1e-9:
        assert epsilon == pytest.approx(0, abs=1e-6)
        return
    # It is (epsilon, delta)-private, and no less.
    assert privacy_profile(randomized_response(3, high), epsilon) == pytest.approx(delta, abs=1e-9)
    back = least_distortion(LAWS, epsilon, distortion=distortion, delta=delta)
    assert one(back, "k-RR distortion").upper == pytest.approx(budget, abs=1e-7)


def test_a_diagonal_that_costs():
    # Randomized response never meets the budget if the right answer is dear as well.
    report = least_epsilon(LAWS, 1.2, distortion=[[1, 2, 2], [2, 1, 2], [2, 2, 1]])
    assert one(report, "k-RR epsilon").upper == pytest.approx(math.log(8))
    # With d(x, x) = 2 and all else 0 the uniform output is the best that it can do.
    dear = 2 * np.eye(3)
    back = least_distortion(LAWS, 1.0, distortion=dear)
    assert one(back, "k-RR distortion").upper == pytest.approx(2 / 3)
    tight = least_epsilon(LAWS, 0.1, distortion=dear)
    assert one(tight, "k-RR epsilon").upper == math.inf


def test_degenerate_budgets():
    exact = least_epsilon(LAWS, 0.0)
    assert one(exact, "least local DP epsilon").upper == math.inf
    assert one(exact, "k-RR epsilon").upper == math.inf
    free = least_epsilon(LAWS, 1.0)
    assert one(free, "least local DP epsilon").upper == 0
    assert one(free, "k-RR epsilon").upper == 0
    none = least_distortion(LAWS, 0.0)
    assert one(none, "least worst-case distortion").upper == pytest.approx(0.4)
    assert one(none, "k-RR distortion").upper == pytest.approx(2 / 3)


def test_facts():
    facts = least_epsilon(SourceSet(LAWS, "abc"), 0.3).facts
    assert facts["class"] == "II"
    assert facts["class_exact"]
    assert facts["permutation"] == ["a", "b", "c"]
    assert (facts["outcomes"], facts["outputs"], facts["foldings"]) == (3, 3, 1)
    assert sum(facts["worst_source"]) == pytest.approx(1)
    assert least_epsilon([[1 / 3] * 3], 0.3).facts["class"] == "I"
    assert least_epsilon([LAWS[0], LAWS[0][::-1]], 0.3).facts["class"] == "III"


def test_bits():
    nats = one(least_epsilon(LAWS, 0.3), "least local DP epsilon")
    bits = one(least_epsilon(LAWS, 0.3, unit="bits"), "least local DP epsilon")
    assert bits.upper * math.log(2) == pytest.approx(nats.upper)
    there = least_distortion(LAWS, 1.0, unit="bits")
    here = least_distortion(LAWS, 1.0)
    assert there.quantities[0].upper == here.quantities[0].upper
    assert one(there, "local DP epsilon").upper * math.log(2) == pytest.approx(1.0)


def test_other_outputs_than_values_have_no_comparison():
    report = least_epsilon(LAWS, 0.4, distortion=[[0, 1], [1, 0], [1, 1]])
    assert not report.named("k-RR epsilon")
    assert report.facts["outputs"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "bytes"}, "unit: found"),
        ({"time_limit": -1}, "time_limit: found -1"),
        ({"tol": -1}, "tol: found -1"),
    ],
)
def test_bad_arguments(options: dict, message: str):
    with pytest.raises(ValidationError, match=message):
        least_epsilon(LAWS, 0.1, **options)
    with pytest.raises(ValidationError, match="problem: expected"):
        local_dp_report(LAWS)  # pyright: ignore[reportArgumentType]


def test_no_channel_meets_the_budget():
    with pytest.raises(InfeasibleError, match="least"):
        least_epsilon(LAWS, 0.1, distortion=[[1, 2], [1, 2], [1, 2]])


def test_a_time_limit_ends_either_search():
    for problem in (MinLocalDP([LAWS[0]], 0.3), MinDistortionLocalDP([LAWS[0]], 1.0)):
        report = local_dp_report(problem, time_limit=0.0)
        quantity = report.quantities[0]
        assert 0 <= quantity.lower <= quantity.upper < math.inf
    assert quantity.status == "BRACKETED"
    with pytest.raises(ValidationError, match="time_limit"):
        least_distortion([[0.5, 0.3, 0.2]], 1.0, time_limit=-1.0)
