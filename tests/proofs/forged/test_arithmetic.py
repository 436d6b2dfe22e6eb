"""Numbers: read strictly, and rounded to the side that claims less."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls, rationals, reading
from cvxleak.exact.outward import SMALLEST, logarithm


def test_floats_on_either_side_of_a_rational():
    for number in (fmpq(1, 3), fmpq(-1, 3), fmpq(10**30 + 1), fmpq(1, 3 * 10**300)):
        below, above = rationals.float_below(number), rationals.float_above(number)
        assert rationals.rational(below) < number < rationals.rational(above)
        assert above == math.nextafter(below, math.inf)
    for exact in (0.0, 0.5, 0.3, -3.0, 2.0**-1074, 2.0**1000):
        number = rationals.rational(exact)
        assert rationals.float_below(number) == exact == rationals.float_above(number)
    for call in (rationals.float_below, rationals.float_above):
        with pytest.raises(CertificateError, match="out of the range of floats"):
            call(fmpq(10) ** 400)


@pytest.mark.parametrize("number", [fmpq(1, 3), fmpq(3), fmpq(10) ** 40, fmpq(1, 10**40)])
def test_logarithms_on_either_side(number):
    with balls.precision(400):
        exact = arb(number).log()
        assert arb(rationals.log_below(number)) < exact < arb(rationals.log_above(number))
    assert rationals.log_above(number) - rationals.log_below(number) < 1e-13


def test_logarithms_at_their_border():
    for call in (rationals.log_below, rationals.log_above):
        assert call(fmpq(1)) == 0.0
        assert call(fmpq(0)) == -math.inf
        with pytest.raises(CertificateError, match="the logarithm of a negative number"):
            call(fmpq(-1))


@pytest.mark.parametrize("x", [1.0, -1.0, 100.0, -100.0, 1e-20, -1e-300, 1e4, -1e4, 0.1, 200.0])
def test_exponentials_on_either_side(x):
    below, above = rationals.exp_below(x), rationals.exp_above(x)
    with balls.precision(600):
        exact = balls.number(x).exp()
        assert arb(below) < exact < arb(above)
    assert (above - below) / below < fmpq(1, 2**124)


def test_exponentials_at_their_border():
    for call in (rationals.exp_below, rationals.exp_above):
        assert call(0.0) == 1
        assert call(-math.inf) == 0
        for x in (math.inf, 1.1e4, -1.1e4, math.nan):
            with pytest.raises(CertificateError, match="exponents are at most"):
                call(x)


def test_rows_are_laws():
    assert rationals.normalized_rows([[0.5, 1.5], [0.0, 2.0]]) == [
        [fmpq(1, 4), fmpq(3, 4)],
        [0, 1],
    ]
    for row in ([0.0, 0.0], [-0.5, 1.5], [1.0, -0.5], [math.nan, 1.0], [math.inf, 1.0]):
        with pytest.raises(CertificateError):
            rationals.normalized_rows([[0.5, 0.5], row])
        with pytest.raises(CertificateError):
            balls.normalized(row)
    with pytest.raises(CertificateError, match="finite and non-negative"):
        balls.normalized([])
    assert rationals.dot([fmpq(1, 2), fmpq(2)], [fmpq(4), fmpq(-1)]) == 0


def test_weights_are_the_law_that_is_written():
    """In balls too 0.7 is seven tenths, and not the float next to it."""
    for weights in ([0.7, 0.2, 0.1], np.array([0.7, 0.2, 0.1])):
        shares = balls.normalized(weights)
        assert all(
            share.overlaps(arb(fmpq(tenths, 10)))
            for share, tenths in zip(shares, (7, 2, 1), strict=True)
        )
        assert not any(share.overlaps(arb(w)) for share, w in zip(shares, weights, strict=True))


def test_balls_are_rounded_outwards():
    third = arb(fmpq(1, 3))
    low, high = balls.round_down(third), balls.round_up(third)
    assert Fraction(low) < Fraction(1, 3) < Fraction(high)
    assert high - low < 1e-15
    for ball in (arb(1), arb(-1), arb(2) ** -1074):
        assert arb(balls.round_down(ball)) < ball < arb(balls.round_up(ball))
    assert balls.round_down(arb(0)) == balls.round_up(arb(0)) == 0.0
    for ball in (arb.pos_inf(), arb.neg_inf(), arb.nan()):
        assert balls.round_down(ball) == -math.inf
        assert balls.round_up(ball) == math.inf
    wide = arb(1, 0.5)
    assert balls.round_down(wide) <= 0.5
    assert balls.round_up(wide) >= 1.5


def test_x_log_x_holds_all_that_a_ball_holds():
    with balls.precision():
        assert balls.x_log_x(arb(0)) == 0
        assert balls.x_log_x(arb(1)).contains(0)
        assert balls.x_log_x(arb(-1, 0.5)).is_nan()
        assert not balls.x_log_x(arb.nan()).is_finite()
        for middle, radius in (
            (0.0, 2.0**-60),
            (2.0**-61, 2.0**-60),
            (0.1, 0.2),
            (0.3, 0.5),
            (1, 2),
        ):
            ball = balls.x_log_x(arb(middle, radius))
            for share in (0.0, 0.01, 0.1, 0.3, 0.36, 0.3678794, 0.4, 0.7, 1.0):
                x = share * (middle + radius)
                assert ball.contains(arb(x) * arb(x).log() if x else arb(0))
        touching = arb(0, 0.25) + arb(0, 0.25).rad()
        assert touching >= 0
        assert not touching > 0
        assert balls.x_log_x(touching).contains(arb(0.25) * arb(0.25).log())
        narrow = balls.x_log_x(arb(2.0**-61, 2.0**-60))
        assert narrow.upper() < 1e-20
        assert narrow.lower() > -1e-15


def test_entropies_and_informations():
    with balls.precision():
        half, quarter = arb("0.5"), arb("0.25")
        assert balls.entropy([half, half, arb(0)]).overlaps(arb(2).log())
        told = [[half, arb(0)], [arb(0), half]]
        assert balls.mutual_information(told).overlaps(arb(2).log())
        assert balls.mutual_information([[quarter] * 2] * 2).contains(0)
        assert balls.log_sum_exp([arb(0), arb(0)]).overlaps(arb(2).log())
        assert balls.log_sum_exp([arb(-5000), arb(-5000)]).overlaps(arb(2).log() - 5000)


def test_precision_is_given_back():
    with balls.precision(77):
        with pytest.raises(ValueError, match="inside"), balls.precision(33):
            raise ValueError("inside")
        assert arb(1).exp().rel_accuracy_bits() > 50
        with balls.precision():
            assert arb(1).exp().rel_accuracy_bits() > 120


def test_logarithms_of_arrays_are_as_near_as_they_say():
    """Off by 2.8 u + 1.2 u |e| + u |log x| at most, where x is between 2^(e - 1) and 2^e."""
    near = np.linspace(0, 2.0**-9, 400)
    x = np.concatenate([np.linspace(0.5, 1.0, 700), 1 - near, 1 + near, 0.5 + near])
    x = np.append(x, [SMALLEST, 2.0**-1022, 2.0**900, 3.0, 1e-10])
    with balls.precision(200):
        for value, log in zip(x.tolist(), logarithm(x).tolist(), strict=True):
            exact, e = arb(value).log(), abs(math.frexp(value)[1])
            allowed = arb("2.8") + arb("1.2") * e + abs(exact)
            assert abs(arb(log) - exact) <= allowed * arb(2) ** -53
            assert not allowed > 4 * (1 + abs(exact))


@pytest.mark.parametrize(
    "value", [True, "1", None, [1.0], math.nan, math.inf, -math.inf, 2**53 + 1, -(2**53) - 1]
)
def test_what_is_no_number_of_a_file(value):
    with pytest.raises(CertificateError, match="x: expected"):
        reading.number(value, "x")
    with pytest.raises(CertificateError, match="x: expected"):
        reading.numbers([0.5, value], "x")


def test_what_is_read():
    assert [reading.number(v, "x") for v in (2**53, -(2**53), 0.5)] == [2.0**53, -(2.0**53), 0.5]
    assert reading.count(3, "x", 3) == 3
    for value in (2, True, 3.0, "3", None):
        with pytest.raises(CertificateError, match="at least 3"):
            reading.count(value, "x", 3)
    assert reading.numbers([], "x") == []
    for values in ((0.5,), {"0": 0.5}, None, "1"):
        with pytest.raises(CertificateError, match="x: expected a list of numbers"):
            reading.numbers(values, "x")
    for size in (0, 2):
        with pytest.raises(CertificateError, match=f"expected a list of {size} numbers"):
            reading.numbers([0.5], "x", size)
    for values in ({"0": [1]}, [1], [[0], 1], None):
        with pytest.raises(CertificateError, match="x: expected a list of lists"):
            reading.groups(values, "x")
    with pytest.raises(CertificateError, match="whole number"):
        reading.groups([[0], [-1]], "x")


def test_parts_are_all_there_and_no_more():
    assert reading.parts({"a": 1, "b": 2}, {"a"}, "x", optional={"b", "c"}) == {"a": 1, "b": 2}
    for value in ({}, {"b": 1}, {"a": 1, "d": 1}, {"a": 1, "b": 1, "d": 1}):
        with pytest.raises(CertificateError, match="x: expected the parts"):
            reading.parts(value, {"a"}, "x", optional={"b"})
    for value in ([1], None, "a", 1, True):
        with pytest.raises(CertificateError, match="x: expected an object"):
            reading.parts(value, {"a"}, "x")


def test_what_says_the_same():
    same = [
        (1, 1.0),
        ([1, 2], (1.0, 2.0)),
        ({"a": [1]}, {"a": [1.0]}),
        (None, None),
        ("a", "a"),
        (True, True),
    ]
    other = [
        (1, True),
        (0, False),
        (True, 1),
        ([1], [1, 2]),
        ([1, 2], [1]),
        ([1], [True]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1}, {"a": 2}),
        ({"a": [1]}, [1]),
        ([1], {"a": 1}),
        ([0], "0"),
        ("1", 1),
        (1, "1"),
        (None, 0),
        (None, False),
        (1, 2),
        ("a", "b"),
        (True, False),
    ]
    assert all(reading.identical(*pair) for pair in same)
    assert not any(reading.identical(*pair) for pair in other)
