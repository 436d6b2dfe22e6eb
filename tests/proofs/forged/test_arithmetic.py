"""Numbers: read strictly, and rounded to the side that claims less."""

import math

import flint
import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import precision
from cvxleak.proofs import exact, reading


@pytest.mark.parametrize("number", [fmpq(1, 3), fmpq(3), fmpq(10) ** 40, fmpq(1, 10**40)])
def test_logarithms_on_either_side(number):
    below, above = exact.log_below(number), exact.log_above(number)
    with flint.ctx.workprec(400):
        assert arb(below) < arb(number).log() < arb(above)
    assert above == math.nextafter(below, math.inf)


def test_logarithms_near_their_zero():
    near = 1 + fmpq(1, 1 << 150)
    assert 0 < exact.log_below(near) <= 2.0**-150 <= exact.log_above(near) < 2.0**-149


def test_logarithms_at_their_border():
    for call in (exact.log_below, exact.log_above):
        assert call(fmpq(1)) == 0.0
        assert call(fmpq(0)) == -math.inf
        with pytest.raises(CertificateError, match="the logarithm of a negative number"):
            call(fmpq(-1))


@pytest.mark.parametrize("x", [1.0, -1.0, 100.0, -100.0, 1e-20, -1e-300, 1e4, -1e4, 0.1, 200.0])
def test_exponentials_on_either_side(x):
    below, above = exact.exp_below(x), exact.exp_above(x)
    with flint.ctx.workprec(600):
        assert arb(below) < exact.ball(x).exp() < arb(above)
    assert (above - below) / below < fmpq(1, 2**124)


def test_exponentials_at_their_border():
    for call in (exact.exp_below, exact.exp_above):
        assert call(0.0) == 1
        assert call(-math.inf) == 0
        for x in (math.inf, 1.1e4, -1.1e4, math.nan):
            with pytest.raises(CertificateError, match="exponents are at most"):
                call(x)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_refused(number):
    for call in (exact.rational, exact.ball):
        with pytest.raises(CertificateError, match="finite"):
            call(number)


def test_rows_are_laws():
    assert exact.normalized_rows([[0.5, 1.5], [0.0, 2.0]]) == [[fmpq(1, 4), fmpq(3, 4)], [0, 1]]
    for row in ([0.0, 0.0], [-0.5, 1.5], [1.0, -0.5], [math.nan, 1.0], [math.inf, 1.0], []):
        with pytest.raises(CertificateError, match="finite and non-negative"):
            exact.normalized_rows([[0.5, 0.5], row])
        with pytest.raises(CertificateError, match="finite and non-negative"):
            exact.normalized(row)


def test_weights_are_the_law_that_is_written():
    """In balls too 0.7 is seven tenths, and not the float next to it."""
    with precision():
        for weights in ([0.7, 0.2, 0.1], np.array([0.7, 0.2, 0.1])):
            shares = exact.normalized(weights)
            assert all(
                share.overlaps(arb(fmpq(tenths, 10)))
                for share, tenths in zip(shares, (7, 2, 1), strict=True)
            )
            assert not any(share.overlaps(arb(w)) for share, w in zip(shares, weights, strict=True))


def test_entropies_and_informations():
    with precision():
        half, quarter = arb("0.5"), arb("0.25")
        assert exact.entropy([half, half, arb(0)]).overlaps(arb(2).log())
        told = [[half, arb(0)], [arb(0), half]]
        assert exact.mutual_information(told).overlaps(arb(2).log())
        assert exact.mutual_information([[quarter] * 2] * 2).contains(0)


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
        with pytest.raises(CertificateError, match="x: found"):
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
    with pytest.raises(CertificateError, match="x: found -1"):
        reading.groups([[0], [-1]], "x")


def test_parts_are_all_there_and_no_more():
    assert reading.parts({"a": 1, "b": 2}, {"a"}, "x", may={"b", "c"}) == {"a": 1, "b": 2}
    for value in ({}, {"b": 1}, {"a": 1, "d": 1}, {"a": 1, "b": 1, "d": 1}):
        with pytest.raises(CertificateError, match=r"x: (without a|it has no d)"):
            reading.parts(value, {"a"}, "x", may={"b"})
    for value in ([1], None, "a", 1, True):
        with pytest.raises(CertificateError, match="x: expected an object"):
            reading.parts(value, {"a"}, "x")
