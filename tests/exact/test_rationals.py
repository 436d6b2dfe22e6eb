import math
from fractions import Fraction

import mpmath
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import CertificateError
from cvxleak.exact import rationals


def exact(number: fmpq) -> Fraction:
    return Fraction(int(number.p), int(number.q))


@given(st.floats(-2000.0, 2000.0))
def test_an_exponential_lies_between_its_two_sides(exponent):
    low, high = rationals.exp_below(exponent), rationals.exp_above(exponent)
    with mpmath.workprec(600):
        value = mpmath.exp(mpmath.mpf(repr(exponent)))
        lower = mpmath.mpf(int(low.p)) / int(low.q)
        upper = mpmath.mpf(int(high.p)) / int(high.q)
        assert lower <= value <= upper
        assert upper - lower <= value * mpmath.mpf(2) ** -123


@given(st.floats(1e-300, 1e300))
def test_a_logarithm_lies_between_its_two_sides(number):
    q = rationals.rational(number)
    low, high = rationals.log_below(q), rationals.log_above(q)
    with mpmath.workprec(300):
        assert low <= mpmath.log(mpmath.mpf(repr(number))) <= high
    assert high - low <= 1e-15 * max(abs(low), 1e-290) + 1e-300


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**30))
def test_the_nearest_floats_of_a_rational(numerator, denominator):
    q = fmpq(numerator, denominator)
    low, high = rationals.float_below(q), rationals.float_above(q)
    assert Fraction(repr(low)) <= exact(q) <= Fraction(repr(high))
    assert low == high or math.nextafter(low, math.inf) == high


def test_ends_of_the_scale():
    assert rationals.exp_below(-math.inf) == rationals.exp_above(-math.inf) == 0
    assert rationals.exp_below(0.0) == 1 == rationals.exp_above(0.0)
    assert rationals.log_below(fmpq(0)) == rationals.log_above(fmpq(0)) == -math.inf
    assert rationals.dot([fmpq(1, 2), fmpq(3)], [fmpq(2), fmpq(1, 3)]) == 2


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(number):
    with pytest.raises(CertificateError, match="finite"):
        rationals.rational(number)


def test_rows_are_divided_by_their_exact_sums():
    rows = rationals.normalized_rows([[0.1, 0.2, 0.7], [1.0, 0.0, 3.0]])
    assert all(sum(row, fmpq(0)) == 1 for row in rows)
    assert rows[1] == [fmpq(1, 4), fmpq(0), fmpq(3, 4)]
    for bad in ([[0.5, -0.5]], [[0.0, 0.0]]):
        with pytest.raises(CertificateError, match="negative"):
            rationals.normalized_rows(bad)
    with pytest.raises(CertificateError):
        rationals.log_below(fmpq(-1))
    with pytest.raises(CertificateError, match="at most 10000"):
        rationals.exp_above(1e18)
    with pytest.raises(CertificateError, match="range"):
        rationals.float_above(fmpq(10) ** 400)
