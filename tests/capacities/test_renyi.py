"""Rényi capacities: closed forms, orders 1 and infinity, brute force, a second solver."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxleak import Status, capacity, verify
from cvxleak.capacities import RenyiCapacity, maximal_alpha_leakage, renyi_capacity
from cvxleak.core import ValidationError
from cvxleak.measures import (
    arimoto_information,
    maximal_leakage,
    sibson_information,
)
from cvxleak.mechanisms import binary_symmetric

ORDERS = (0.05, 0.5, 0.99, 1.0, 1.01, 2.0, 7.0, 60.0, math.inf)
rng = np.random.default_rng(0)
CHANNELS = [
    [[0.9, 0.1], [0.3, 0.7]],
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.2, 0.0, 0.8]],
    [[0.5, 0.5], [0.5, 0.5]],
    rng.dirichlet(np.ones(5), 4),
    rng.dirichlet(np.full(3, 0.2), 12),
]


def sibson(law: np.ndarray, matrix: np.ndarray, alpha: float) -> float:
    """Return I_alpha by its definition."""
    if math.isinf(alpha):
        return math.log(matrix[law > 0].max(axis=0).sum())
    if alpha == 1:
        output = law @ matrix
        ratio = np.where(matrix > 0, matrix, 1.0) / np.where(matrix > 0, output, 1.0)
        return float((law[:, None] * matrix * np.log(ratio)).sum())
    return alpha / (alpha - 1) * math.log(((law @ matrix**alpha) ** (1 / alpha)).sum())


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("channel", CHANNELS, ids=range(len(CHANNELS)))
def test_no_law_tells_more(channel, alpha: float):
    bound = renyi_capacity(channel, alpha)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    matrix = np.array(channel)
    assert sibson(bound.witness.probabilities, matrix, alpha) == pytest.approx(
        bound.lower, abs=1e-9
    )
    for law in rng.dirichlet(np.full(len(matrix), 0.4), 200):
        assert sibson(law, matrix, alpha) <= bound.upper + 1e-12


@pytest.mark.parametrize("flip", [0.01, 0.2, 0.5])
@pytest.mark.parametrize("alpha", [0.2, 3.0, 20.0])
def test_symmetric_channels_have_a_closed_form(flip: float, alpha: float):
    bound = renyi_capacity(binary_symmetric(flip), alpha)
    truth = math.log(2) + math.log(flip**alpha + (1 - flip) ** alpha) / (alpha - 1)
    assert bound.lower - 1e-12 <= truth <= bound.upper + 1e-12


@pytest.mark.parametrize("channel", CHANNELS, ids=range(len(CHANNELS)))
def test_orders_one_and_infinity(channel):
    shannon = capacity(channel)
    one = renyi_capacity(channel, 1)
    assert one.lower <= shannon.upper
    assert shannon.lower <= one.upper
    near = renyi_capacity(channel, 1 + 1e-6)
    assert near.lower == pytest.approx(shannon.lower, abs=1e-5)
    most = maximal_leakage(channel, np.full(len(channel), 1 / len(channel)))
    bound = renyi_capacity(channel, math.inf)
    assert bound.lower - 1e-12 <= most <= bound.upper + 1e-12


@given(st.floats(0.05, 30.0), st.floats(0.05, 30.0), st.integers(0, len(CHANNELS) - 1))
def test_it_rises_with_the_order(one: float, other: float, place: int):
    low, high = sorted((one, other))
    below, above = (renyi_capacity(CHANNELS[place], alpha) for alpha in (low, high))
    assert below.lower <= above.upper


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_a_second_solver_agrees(alpha: float):
    problem = RenyiCapacity(CHANNELS[3], alpha)
    program = problem.to_cvxpy()
    program.solve(solver="CLARABEL")
    check = problem.check(program.var_dict["input"].value)
    assert check.shortfall[1] < 1e-6


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), "much", None, -math.inf])
def test_orders_are_positive(alpha):
    with pytest.raises(ValidationError, match="alpha"):
        RenyiCapacity(CHANNELS[0], alpha)


def test_there_is_no_program_for_order_infinity():
    with pytest.raises(ValidationError, match="alpha: found inf"):
        RenyiCapacity(CHANNELS[0], math.inf).to_cvxpy()


@pytest.mark.parametrize("alpha", [0.5, 2.0, math.inf])
def test_forged_certificates_fail(alpha: float):
    certificate = renyi_capacity(CHANNELS[0], alpha).certificate
    assert certificate is not None
    for lower, upper in (
        (certificate.lower * 1.001, certificate.upper),
        (0.0, certificate.lower * 0.999),
    ):
        assert not verify(replace(certificate, lower=lower, upper=upper)).passed
    other = "inf" if alpha != math.inf else 2.0
    moved = {**certificate.problem, "alpha": other}
    assert not verify(replace(certificate, problem=moved)).passed
    for wrong in (0, -2.0, "two", None):
        assert not verify(
            replace(certificate, problem={**certificate.problem, "alpha": wrong})
        ).passed
    zero = {"output": [0.0, 1.0]}
    assert not verify(replace(certificate, proof=zero)).passed


def test_maximal_alpha_leakage_is_the_capacity_of_the_support():
    q = np.array([[0.9, 0.1], [0.3, 0.7], [0.0, 1.0]])
    for alpha in (1.5, 3.0, math.inf):
        found = maximal_alpha_leakage([0.99, 0.01, 0.0], q, alpha)
        assert found.status is Status.CERTIFIED
        whole = renyi_capacity(q[:2], alpha)
        assert (found.lower, found.upper) == (whole.lower, whole.upper)
        assert verify(found.certificate).passed
    assert maximal_alpha_leakage([0.5, 0.5, 0.0], q, math.inf).upper == pytest.approx(
        maximal_leakage(q, [0.5, 0.5, 0.0])
    )


@pytest.mark.parametrize("alpha", [1.5, 4.0, math.inf])
def test_no_function_of_the_secret_has_more_alpha_leakage(alpha):
    """U is drawn with a law for each x, or x itself is drawn as a function of U."""
    most = maximal_alpha_leakage(np.ones(4) / 4, CHANNELS[3], alpha)
    assert most.lower == pytest.approx(
        sibson_information(CHANNELS[3], most.witness, alpha), abs=1e-9
    )
    for _ in range(50):
        law, given = rng.dirichlet(np.ones(6)), rng.dirichlet(np.full(4, 0.3), 6)
        told = arimoto_information(given @ CHANNELS[3], law, alpha)
        assert told <= most.upper + 1e-12


def test_maximal_alpha_leakage_of_order_1_is_another_number():
    with pytest.raises(ValidationError, match=r"alpha: found 1; it must be in \(1, inf\)"):
        maximal_alpha_leakage([0.5, 0.5], np.eye(2), 1)
