"""What the numbers in sentences promise."""

import math

import pytest

from cvxleak.report import sentences as say
from cvxleak.report.frequencies import gaussian


@pytest.mark.parametrize("nats", [0.0, 0.1, 1.0, 2.9999, 12.0, 600.0])
def test_a_factor_that_is_at_most_something_is_not_above_it(nats: float):
    shown = float(say.factor(nats))
    assert math.exp(nats) <= shown <= 1.001 * math.exp(nats)
    assert float(say.factor(nats, up=False)) <= math.exp(nats)
    for sentence in (say.record_dp, say.maximal_leakage, say.local_dp, say.max_information):
        assert f" {say.factor(nats)}" in sentence(nats)


def test_rounding_errors_and_numbers_beyond_floats():
    assert say.factor(math.log(3)) == "3"  # a float above 3
    assert say.factor(1000.01) == "e^1001"
    assert say.factor(1000.01, up=False) == "e^1000"


@pytest.mark.parametrize(
    ("delta", "shown"), [(0.0, "0"), (0.21891427, "0.218915"), (5.3e-16, "0.000001")]
)
def test_what_is_added_at_most_is_rounded_as_its_bound_is(delta: float, shown: str):
    for sentence in (say.record_delta, say.moved):
        assert f"by at most 1.106 and adds at most {shown} to it" in sentence(0.1, delta)


def test_the_mean_of_the_harder_test_is_rounded_up():
    assert "has mean 0 or 0.1235." in gaussian(0.12341)
