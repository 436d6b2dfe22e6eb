"""Numbers are read strictly, and ends are floats on the side that claims less."""

import math
import sys

import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.kernel.numbers import (
    RefusedError,
    law,
    lower,
    precision,
    proved,
    rational,
    soft,
    upper,
    xlogx,
)


@pytest.fixture(autouse=True)
def _in_balls():
    with precision():
        yield


NONE = ["+3/4", "3/-4", "3/", "/4", "3/0", ".5", "1.", "1e1000", "1e-401", "0x1", "", " 1", "1_0"]
NONE += ["\u0663/4", "3/\u0664", "inf", "nan", "9" * 5000, True, None, [1], math.inf, math.nan, 1j]


@pytest.mark.parametrize("value", NONE)
def test_what_is_no_number_is_refused(value):
    for read in (rational, proved):
        with pytest.raises(RefusedError):
            read(value)


def test_numbers_are_as_written_and_floats_of_proofs_stand_for_themselves():
    assert rational(0.3) == rational("0.3") == rational("6/20") == fmpq(3, 10)
    assert rational(1e-5) == rational("1e-05") == fmpq(1, 10**5)
    assert proved(0.3) == fmpq(*(0.3).as_integer_ratio()) != fmpq(3, 10)
    assert proved("0.3") == fmpq(3, 10)
    assert law([0.3, "0.1", 0]) == [fmpq(3, 4), fmpq(1, 4), 0]
    for values in ([], [0, 0], [2, -1], [0.5, math.nan]):
        with pytest.raises(RefusedError):
            law(values)


@pytest.mark.parametrize("x", [fmpq(1, 3), fmpq(-1, 3), fmpq(10**30 + 1), fmpq(1, 3 * 10**300)])
def test_ends_are_on_either_side(x):
    for number in (x, arb(x)):
        low, high = lower(number), upper(number)
        assert rational(low) < x < rational(high)
        assert (high - low) <= 4e-16 * abs(high)
    # Of a ball, what the float stores is on that side as well.
    assert arb(lower(arb(x))) < arb(x) < arb(upper(arb(x)))


def test_whole_numbers_have_thousands_of_digits_at_most() -> None:
    assert rational((1 << 14_000) - 1) == (1 << 14_000) - 1
    with pytest.raises(RefusedError, match="thousands of digits"):
        rational(1 << 14_000)


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**30))
def test_ends_are_the_next_floats(numerator: int, denominator: int):
    x = fmpq(numerator, denominator)
    low, high = lower(x), upper(x)
    assert rational(low) <= x <= rational(high)
    assert low == high or math.nextafter(low, math.inf) == high
    assert lower(arb(x)) <= low <= high <= upper(arb(x))
    assert math.nextafter(high, math.inf) >= upper(arb(x))


def test_ends_at_the_ends_of_the_number_line():
    for huge in (fmpq(10) ** 400, arb(10) ** 400):
        assert lower(huge) == sys.float_info.max == -upper(-huge)
        assert upper(huge) == math.inf == -lower(-huge)
    for tiny in (fmpq(1, 10**400), arb(2) ** -3000):
        assert lower(tiny) == 0 < upper(tiny) == 2.0**-1074
        assert lower(-tiny) == -(2.0**-1074) < 0 == upper(-tiny)
    largest = fmpq(*sys.float_info.max.as_integer_ratio())
    assert lower(largest) <= sys.float_info.max <= upper(largest)


def test_ends_of_what_is_exact_or_not_known():
    for x in (0.0, 0.5, -3.0, 2.0**-1074, 2.0**1000):
        assert lower(arb(x)) <= x <= upper(arb(x))
    assert lower(arb(0)) == upper(arb(0)) == 0
    wide = arb(1, 0.5)
    assert lower(wide) <= 0.5
    assert upper(wide) >= 1.5
    assert upper(arb.nan()) == upper(arb.pos_inf()) == math.inf
    assert lower(arb.nan()) == lower(arb.neg_inf()) == -math.inf


def test_x_log_x_holds_all_that_a_ball_holds():
    assert xlogx(arb(0)) == 0
    assert xlogx(arb(1)).contains(0)
    assert xlogx(arb(-1, 0.5)).is_nan()
    assert not xlogx(arb.nan()).is_finite()
    for middle, radius in ((0, 2.0**-60), (2.0**-61, 2.0**-60), (0.1, 0.2), (0.3, 0.5), (1, 2)):
        found = xlogx(arb(middle, radius))
        for share in (0, 0.01, 0.1, 0.3, 0.36, 0.3678794, 0.4, 0.7, 1):
            x = share * (middle + radius)
            assert found.contains(arb(x) * arb(x).log() if x else arb(0))
    assert xlogx(arb(2.0**-61, 2.0**-60)).upper() < 1e-20


def test_soft_maxima_at_their_border():
    terms = [arb(-5000), arb(-5000)]
    assert soft(terms, arb(1)).overlaps(arb(2).log() - 5000)
    assert soft(terms, arb(0)) == -5000
    # A scale that may be 0 or a little more stands for the most that it may be.
    assert soft(terms, arb(0, 1e-9)) >= arb(2).log() * 0.99e-9 - 5000
    assert not soft([arb(0), arb.nan()], arb(1)).is_finite()
    assert not soft([arb(0), arb.nan()], arb(0)).is_finite()
