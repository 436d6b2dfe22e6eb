"""Exact rational arithmetic, and the rationals on either side of an exponential or a logarithm.

What a linear program claims is checked without any rounding: a number is the rational number
as written (`cvxleak.core.numbers`), and e^epsilon is replaced by a rational that makes the claim
weaker.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from flint import arb, fmpq, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import integer_law, ratio
from cvxleak.exact.balls import precision, round_down, round_up

__all__ = [
    "dot",
    "exp_above",
    "exp_below",
    "float_above",
    "float_below",
    "from_text",
    "log_above",
    "log_below",
    "normalized_rows",
    "rational",
]

BITS = 128
"""Binary digits of the rationals that stand for e^epsilon."""

FRACTION = re.compile(r"-?\d+(/\d+)?", re.ASCII)

LARGEST_EXPONENT = 1e4
"""Above it e^x is too large to compute with exactly."""


def rational(number: float) -> fmpq:
    """Return a finite number as written: 0.3 is three tenths.

    Raises
    ------
    CertificateError
        NaN or infinite.

    Examples
    --------
    >>> from cvxleak.exact.rationals import rational
    >>> rational(0.3), rational(3)
    (3/10, 3)
    """
    try:
        numerator, denominator = ratio(number)
    except (OverflowError, ValueError) as error:
        raise CertificateError(f"{number!r} is not a finite number") from error
    return fmpq(numerator, denominator)


def from_text(text: Any, longest: int) -> fmpq:
    """Return a fraction that is written as text of at most `longest` characters.

    Raises
    ------
    CertificateError
        Something else.

    Examples
    --------
    >>> from cvxleak.exact.rationals import from_text
    >>> from_text("-2/6", 10), from_text("3", 10)
    (-1/3, 3)
    """
    if not isinstance(text, str) or len(text) > longest:
        raise CertificateError("exact numbers are written as fractions in text")
    if not FRACTION.fullmatch(text):
        raise CertificateError(f"{text!r:.40} is not a fraction")
    top, _, bottom = text.partition("/")
    if not fmpz(bottom or 1):
        raise CertificateError("a fraction has the denominator 0")
    return fmpq(fmpz(top), fmpz(bottom or 1))


def normalized_rows(matrix: Iterable[Iterable[float]]) -> list[list[fmpq]]:
    """Return, exactly, the distributions that rows of non-negative numbers stand for.

    See `cvxleak.core.numbers` for what numbers stand for.

    Raises
    ------
    CertificateError
        A negative or non-finite entry, or a row that sums to zero.

    Examples
    --------
    >>> from cvxleak.exact.rationals import normalized_rows
    >>> normalized_rows([[1.0, 3.0], [0.7, 0.3]])
    [[1/4, 3/4], [7/10, 3/10]]
    """
    result = []
    for row in matrix:
        entries = list(row)
        if not all(0 <= entry < math.inf for entry in entries) or not any(entries):
            raise CertificateError("rows must be non-negative and must not sum to zero")
        weights = integer_law(entries)
        total = sum(weights)
        result.append([fmpq(weight, total) for weight in weights])
    return result


def exp_below(exponent: float) -> fmpq:
    """Return a rational in [e^x (1 - 2^-125), e^x] for a float x; 0 for -inf.

    Examples
    --------
    >>> from cvxleak.exact.rationals import exp_above, exp_below
    >>> exp_below(0.0) <= 1 <= exp_above(0.0), exp_below(1.0) < exp_above(1.0)
    (True, True)
    """
    if exponent == -math.inf:
        return fmpq(0)
    return _exponential(exponent, -1)


def exp_above(exponent: float) -> fmpq:
    """Return a rational in [e^x, e^x (1 + 2^-125)] for a float x; 0 for -inf."""
    if exponent == -math.inf:
        return fmpq(0)
    return _exponential(exponent, 1)


def log_below(number: fmpq) -> float:
    """Return a float at most log(number) for a rational number >= 0; -inf at 0."""
    with precision(2 * BITS):
        return round_down(arb(number).log()) if number > 0 else _at_zero(number)


def log_above(number: fmpq) -> float:
    """Return a float at least log(number) for a rational number >= 0; -inf at 0."""
    with precision(2 * BITS):
        return round_up(arb(number).log()) if number > 0 else _at_zero(number)


def float_below(number: fmpq) -> float:
    """Return the largest float that is, as written, at most `number`."""
    near = _nearest(number)
    return near if rational(near) <= number else math.nextafter(near, -math.inf)


def float_above(number: fmpq) -> float:
    """Return the smallest float that is, as written, at least `number`."""
    near = _nearest(number)
    return near if rational(near) >= number else math.nextafter(near, math.inf)


def dot(one: Sequence[fmpq], other: Sequence[fmpq]) -> fmpq:
    """Return the exact inner product."""
    return sum((a * b for a, b in zip(one, other, strict=True)), fmpq(0))


def _exponential(exponent: float, side: int) -> fmpq:
    if not abs(exponent) <= LARGEST_EXPONENT:
        raise CertificateError(f"e^{exponent!r}; exponents are at most {LARGEST_EXPONENT:g}")
    with precision(2 * BITS):
        power = arb(rational(exponent)).exp()
        mantissa, shift = power.mid().man_exp()
        # Dyadic numbers of BITS digits, the first of which is past the ball on the wanted side.
        digits = int(mantissa).bit_length() - BITS
        step = fmpq(2) ** (int(shift) + digits)
        steps = int(mantissa) >> digits if digits >= 0 else int(mantissa) << -digits
        candidate = steps * step
        while not (arb(candidate) <= power if side < 0 else arb(candidate) >= power):
            candidate += side * step
        return candidate


def _nearest(number: fmpq) -> float:
    # Python divides integers exactly rounded; a quotient beyond the floats is refused.
    try:
        return int(number.p) / int(number.q)
    except OverflowError as error:
        raise CertificateError("a number is out of the range of floats") from error


def _at_zero(number: fmpq) -> float:
    if number < 0:
        raise CertificateError("the logarithm of a negative number")
    return -math.inf
