"""Rationals and balls of the provers: each holds the exact value, on its side, and is narrow."""

import math
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import stored_values
from cvxleak.kernel.numbers import precision
from cvxleak.proofs import exact

weights = st.lists(
    st.one_of(st.just(0.0), st.floats(0, 1e300), st.floats(0, 1e-300)), min_size=1, max_size=6
).filter(lambda values: 0 < sum(values))


@given(weights)
def test_normalized_holds_the_exact_quotients(values):
    with precision():
        shares = exact.normalized(values)
    total = sum(Fraction(value) for value in values)
    with flint.ctx.workprec(2000):
        for share, value in zip(shares, values, strict=True):
            quotient = Fraction(value) / total
            assert share.contains(arb(fmpq(quotient.numerator, quotient.denominator)))
            assert float(share.rad()) <= 1e-35 * float(share.mid())


def test_normalized_keeps_zero_exact_and_takes_arrays():
    assert exact.normalized([0.0, 3.0])[0] == 0
    assert [float(share) for share in exact.normalized(np.array([1.0, 1.0]))] == [0.5, 0.5]


@pytest.mark.parametrize("bad", [[], [0.0, 0.0], [1.0, -1e-300], [math.nan, 1.0], [math.inf]])
def test_what_is_no_distribution_is_refused(bad):
    with pytest.raises(CertificateError, match="finite and non-negative"):
        exact.normalized(bad)
    with pytest.raises(CertificateError, match="finite and non-negative"):
        exact.normalized_rows([[1.0], bad])


@given(st.floats(-2000.0, 2000.0))
def test_an_exponential_lies_between_its_two_sides(exponent):
    low, high = exact.exp_below(exponent), exact.exp_above(exponent)
    with mpmath.workprec(600):
        value = mpmath.exp(mpmath.mpf(repr(exponent)))
        lower = mpmath.mpf(int(low.p)) / int(low.q)
        upper = mpmath.mpf(int(high.p)) / int(high.q)
        assert lower <= value <= upper
        assert upper - lower <= value * mpmath.mpf(2) ** -124


@given(st.floats(1e-300, 1e300))
def test_a_logarithm_lies_between_its_two_sides(number):
    q = exact.rational(number)
    low, high = exact.log_below(q), exact.log_above(q)
    with mpmath.workprec(300):
        assert low <= mpmath.log(mpmath.mpf(repr(number))) <= high
    assert high - low <= 5e-16 * max(abs(low), 1e-290) + 1e-300


def test_rows_are_divided_by_their_exact_sums():
    rows = exact.normalized_rows([[0.1, 0.2, 0.7], [1.0, 0.0, 3.0]])
    assert all(sum(row, fmpq(0)) == 1 for row in rows)
    assert rows[1] == [fmpq(1, 4), fmpq(0), fmpq(3, 4)]


def test_files_of_schema_1_mean_what_floats_store():
    written, stored = fmpq(3, 10), fmpq(*(0.3).as_integer_ratio())
    assert exact.rational(0.3) == written
    assert exact.normalized_rows([[0.3, 0.7]])[0][0] == written
    with stored_values(), precision():
        assert exact.rational(0.3) == stored != written
        assert exact.ball(0.3) == arb(stored)
        assert exact.normalized_rows([[0.3, 0.7]])[0][0] != written
    with flint.ctx.workprec(300):
        assert arb(exact.exp_below(0.3)) < arb(written).exp() < arb(exact.exp_above(0.3))


def test_entropy_of_a_die():
    with precision():
        assert exact.entropy(exact.normalized([1.0] * 6)).overlaps(arb(6).log())


def test_mutual_information_of_independent_and_of_equal_variables():
    with precision():
        p, q = exact.normalized([0.1, 0.9]), exact.normalized([0.3, 0.2, 0.5])
        independent = exact.mutual_information([[a * b for b in q] for a in p])
        assert independent.contains(0)
        assert float(independent.rad()) < 1e-30
        equal = exact.mutual_information([[p[0], arb(0)], [arb(0), p[1]]])
        assert equal.overlaps(exact.entropy(p))
