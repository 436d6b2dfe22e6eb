"""A mechanism passes its own epsilon, and exact numbers are compared exactly."""

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import verify
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.differential_privacy import check_claim
from cvxleak.mechanisms import (
    discretized_laplace,
    exponential,
    laplace_threshold,
    randomized_response,
    rank_exponential,
    truncated_geometric,
)
from cvxleak.model import Channel, Mechanism
from cvxleak.queries import count

EPSILONS = [round(0.1 * i, 1) for i in range(1, 31)]
WARNER = [["3/4", "1/4"], ["1/4", "3/4"]]

few = settings(max_examples=60)


def keeps(channel: Channel, epsilon: float, pairs) -> bool:
    """Whether epsilon-DP holds, decided here from the exact numbers that the rows stand for."""
    rows = [exact_law(row) for row in channel.matrix]
    most = max(
        x / y
        for i, j in pairs
        for p, r in ((i, j), (j, i))
        for x, y in zip(rows[p], rows[r], strict=True)
    )
    with flint.ctx.workprec(256):
        level = fraction(epsilon)
        limit = arb(fmpq(level.numerator, level.denominator)).exp()
        return bool(arb(fmpq(most.numerator, most.denominator)) <= limit)


def every(k):
    return [(i, j) for i in range(k) for j in range(i)]


def neighbors(k):
    return [(i, i + 1) for i in range(k - 1)]


@pytest.mark.parametrize("k", range(2, 8))
def test_randomized_response(k):
    for epsilon in EPSILONS:
        answer = check_claim(randomized_response(k, epsilon), epsilon=epsilon)
        assert answer.passed
        assert (
            check_claim(randomized_response(k, epsilon), epsilon=epsilon - 1e-12).verdict == "FAIL"
        )


@pytest.mark.parametrize("n", [1, 3, 9])
def test_truncated_geometric(n):
    for epsilon in EPSILONS:
        mechanism = Mechanism(count(n), truncated_geometric(n, epsilon))
        assert check_claim(mechanism, epsilon=epsilon).passed


@few
@given(st.integers(2, 9), st.floats(1e-9, 30))
def test_constructors_are_rounded_towards_privacy(k, epsilon):
    assert keeps(randomized_response(k, epsilon), epsilon, every(k))
    assert keeps(truncated_geometric(k, epsilon), epsilon, neighbors(k + 1))
    assert keeps(laplace_threshold(epsilon), epsilon, every(2))
    assert keeps(discretized_laplace(range(k), epsilon, 1), epsilon, neighbors(k))
    scores = np.minimum(np.arange(k)[:, None], np.arange(k))
    assert keeps(exponential(scores, epsilon, 1), epsilon, neighbors(k))
    distances = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    assert keeps(
        rank_exponential(distances, (k - 1) / epsilon), epsilon + 1e-15 * epsilon, every(k)
    )


@pytest.mark.parametrize("outputs", [np.linspace(0, 3, 31), np.linspace(-50, 50, 11), [0, 1e-6, 1]])
def test_laplace_noise_on_cells_that_are_narrow_or_far_away(outputs):
    for epsilon in (1e-3, 0.3, 2.0):
        channel = discretized_laplace(outputs, epsilon, 0.5, [0, 0.5])
        assert keeps(channel, epsilon, [(0, 1)])


def test_exact_numbers_are_compared_exactly():
    claims: list[dict[str, Any]] = [{"epsilon": "log(3)"}, {"ratio": 3}, {"ratio": Fraction(3)}]
    for claim in [*claims, {"ratio": "3"}]:
        answer = check_claim(WARNER, **claim)
        assert str(answer) == "PASS: log(3)-DP; delta is 0"
        assert answer.bound.certificate is not None
        assert verify(answer.bound.certificate).passed
    below = check_claim(WARNER, ratio=Fraction(3) - Fraction(1, 10**40))
    assert below.verdict == "FAIL"
    assert below.violation is not None
    assert check_claim(WARNER, ratio="3.1", delta=0).passed
    assert check_claim(WARNER, epsilon="log(2)", delta=0.25).passed  # 3/4 - 2/4, exactly
    assert check_claim(WARNER, epsilon="log(2)", delta=0.2499999).verdict == "FAIL"


def test_floats_around_an_exact_level():
    # 1.0986122886681098 is above log 3 = 1.09861228866810969..., the float before it below.
    assert check_claim(WARNER, epsilon=1.0986122886681098).passed
    answer = check_claim(WARNER, epsilon=1.0986122886681096)
    assert answer.verdict == "FAIL"
    assert "the rounding of your numbers; write epsilon=1.0986122886681" in str(answer)
    assert 'epsilon="log(3)"' in str(answer)
    assert check_claim(WARNER, epsilon=1.0).remedy == ""


def test_floats_that_miss_their_level_are_told_what_to_write():
    e = math.exp(0.1)
    rows = np.array([[e, 1], [1, e]]) / (1 + e)
    answer = check_claim(rows, epsilon=0.1)
    assert answer.verdict == "FAIL"
    assert "write epsilon=0.1000000000000000" in answer.remedy
    advised = float(answer.remedy.rpartition("=")[2])
    assert check_claim(rows, epsilon=advised).passed


@pytest.mark.parametrize("level", ["log(2)", "log(3)", "log(5/2)", "log(1.1)", "log(1)"])
def test_constructors_of_an_exact_epsilon_are_exact(level):
    assert check_claim(randomized_response(3, level), epsilon=level).passed
    counted = Mechanism(count(4), truncated_geometric(4, level))
    assert check_claim(counted, epsilon=level).passed
    odds = exact_law(randomized_response(3, level).row(0))
    assert f"log({odds[0] / odds[1]})" == level.replace("1.1", "11/10")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"epsilon": "log(1/2)"}, r"epsilon: found 'log\(1/2\)'; it must be at least"),
        ({"epsilon": "log(x)"}, r"epsilon: found 'log\(x\)'; 'x' is not a number"),
        ({"ratio": 0.5}, "ratio: found 0.5"),
        ({"ratio": 3, "epsilon": 1}, "ratio: found epsilon as well"),
        ({"ratio": 3, "zcdp": 1}, "epsilon: found ratio and zcdp"),
    ],
)
def test_bad_levels(claim, message):
    with pytest.raises(ValidationError, match=message):
        check_claim(WARNER, **claim)
