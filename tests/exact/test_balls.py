"""Ball arithmetic: every ball holds the exact value, and is narrow."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls

weights = st.lists(
    st.one_of(st.just(0.0), st.floats(0, 1e300), st.floats(0, 1e-300)), min_size=1, max_size=6
).filter(lambda values: 0 < sum(values))


@given(weights)
def test_normalized_holds_the_exact_quotients(values):
    with balls.precision():
        shares = balls.normalized(values)
    total = sum(Fraction(value) for value in values)
    with balls.precision(2000):
        for share, value in zip(shares, values, strict=True):
            exact = Fraction(value) / total
            assert share.contains(arb(fmpq(exact.numerator, exact.denominator)))
            assert float(share.rad()) <= 1e-35 * float(share.mid())


def test_normalized_keeps_zero_exact():
    assert balls.normalized([0.0, 3.0])[0] == 0


@pytest.mark.parametrize("bad", [[], [0.0, 0.0], [1.0, -1e-300], [math.nan, 1.0], [math.inf]])
def test_normalized_refuses(bad):
    with pytest.raises(CertificateError):
        balls.normalized(bad)


@given(st.floats(0, 1e6))
def test_x_log_x(x):
    with balls.precision(), localcontext(prec=60):
        exact = Decimal(x) * Decimal(x).ln() if x else Decimal(0)
        value = balls.x_log_x(arb(x))
        assert float(value.rad()) <= 1e-30 * (1 + abs(x))
        assert abs(float(value.mid()) - float(exact)) <= 1e-15 * (1 + abs(float(exact)))


@given(st.floats(0, 3), st.floats(0, 1))
def test_x_log_x_of_a_ball_that_touches_zero_holds_every_value(radius, position):
    with balls.precision():
        ball = arb(0, radius)
        assert balls.x_log_x(ball).contains(balls.x_log_x(arb(radius * position)))


def test_x_log_x_of_nothing_known_is_nothing_known():
    assert not balls.x_log_x(arb.nan()).is_finite()
    assert not balls.x_log_x(arb(-2)).is_finite()
    assert not balls.x_log_x(arb.pos_inf()).is_finite()


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_rounding_is_outward(numerator, denominator):
    with balls.precision():
        ball = arb(numerator) / denominator
    exact = Fraction(numerator, denominator)
    low, high = balls.round_down(ball), balls.round_up(ball)
    assert Fraction(low) < exact < Fraction(high)
    assert high - low <= 4 * math.ulp(high)


def test_rounding_at_the_ends_of_the_number_line():
    huge, tiny = arb(2) ** 3000, arb(2) ** -3000
    assert balls.round_down(huge) < math.inf == balls.round_up(huge)
    assert balls.round_down(tiny) < 0 < balls.round_up(tiny)
    assert balls.round_up(arb.nan()) == math.inf
    assert balls.round_down(arb.nan()) == -math.inf


def test_entropy_of_a_die():
    with balls.precision():
        assert balls.entropy(balls.normalized([1.0] * 6)).overlaps(arb(6).log())


def test_mutual_information_of_independent_and_of_equal_variables():
    with balls.precision():
        p, q = balls.normalized([0.1, 0.9]), balls.normalized([0.3, 0.2, 0.5])
        independent = balls.mutual_information([[a * b for b in q] for a in p])
        assert independent.contains(0)
        assert float(independent.rad()) < 1e-30
        equal = balls.mutual_information([[p[0], arb(0)], [arb(0), p[1]]])
        assert equal.overlaps(balls.entropy(p))


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8))
def test_log_sum_exp(terms):
    with balls.precision(), localcontext(prec=60):
        exact = sum(Decimal(term).exp() for term in terms).ln()
        value = balls.log_sum_exp([arb(term) for term in terms])
        assert float(value.rad()) < 1e-25
        assert abs(float(value.mid()) - float(exact)) <= 1e-15 * (1 + abs(float(exact)))


def fail_inside_precision():
    with balls.precision(77):
        assert ctx.prec == 77
        raise ValueError("inside")


def test_precision_is_restored_after_an_error():
    before = ctx.prec
    with pytest.raises(ValueError, match="inside"):
        fail_inside_precision()
    assert ctx.prec == before


def test_normalized_takes_arrays():
    shares = balls.normalized(np.array([1.0, 1.0]))
    assert [float(share) for share in shares] == [0.5, 0.5]
