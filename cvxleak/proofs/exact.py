"""Exact and outward-rounded numbers of the provers, beyond what `cvxleak.kernel.numbers` has.

A number is the rational number as written, and a distribution is what `cvxleak.core.numbers` says;
in files of schema 1 both are what the floats store. The kernel, whose files are of schema 3, reads
the same numbers, but always divides a distribution by its sum as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import flint
from flint import arb, fmpq
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import integer_law, ratio
from cvxleak.kernel.numbers import lower, precision, total, upper, xlogx

__all__ = [
    "LARGEST_EXPONENT",
    "ball",
    "entropy",
    "exp_above",
    "exp_below",
    "log_above",
    "log_below",
    "mutual_information",
    "normalized",
    "normalized_rows",
    "rational",
]

BITS = 256
"""Bits with which exponentials and logarithms of rationals are computed."""

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
    >>> from cvxleak.proofs.exact import rational
    >>> rational(0.3), rational(3)
    (3/10, 3)
    """
    try:
        return fmpq(*ratio(number))
    except (OverflowError, ValueError) as error:
        raise CertificateError(f"{number!r} is not a finite number") from error


def ball(number: float) -> arb:
    """Return a ball that holds a finite number as written."""
    return arb(rational(number))


def normalized_rows(matrix: Iterable[Iterable[float]]) -> list[list[fmpq]]:
    """Return, exactly, the distributions that rows of non-negative numbers stand for.

    Raises
    ------
    CertificateError
        A negative or non-finite entry, or a row that sums to zero.

    Examples
    --------
    >>> from cvxleak.proofs.exact import normalized_rows
    >>> normalized_rows([[1.0, 3.0], [0.7, 0.3]])
    [[1/4, 3/4], [7/10, 3/10]]
    """
    found = []
    for row in matrix:
        weights = _whole(list(row))
        mass = sum(weights)
        found.append([fmpq(weight, mass) for weight in weights])
    return found


def normalized(weights: Sequence[float] | NDArray) -> list[arb]:
    """Return balls around one of `normalized_rows`; 0 stays exactly 0."""
    numbers = _whole(weights if isinstance(weights, Sequence) else weights.tolist())
    mass = arb(sum(numbers))
    return [arb(number) / mass for number in numbers]


def _whole(weights: Sequence[float]) -> list[int]:
    """Return whole numbers in the ratios of a distribution's probabilities."""
    if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
        raise CertificateError("weights must be finite and non-negative and must not sum to zero")
    return integer_law(weights)


def exp_below(exponent: float) -> fmpq:
    """Return a rational in [e^x (1 - 2^-125), e^x] for a float x; 0 for -inf.

    Examples
    --------
    >>> from cvxleak.proofs.exact import exp_above, exp_below
    >>> exp_below(0.0) <= 1 <= exp_above(0.0), exp_below(1.0) < exp_above(1.0)
    (True, True)
    """
    with precision():  # to which an end of a ball is rounded
        return _exponential(exponent).lower().fmpq()


def exp_above(exponent: float) -> fmpq:
    """Return a rational in [e^x, e^x (1 + 2^-125)] for a float x; 0 for -inf."""
    with precision():
        return _exponential(exponent).upper().fmpq()


def log_below(number: fmpq) -> float:
    """Return a float at most log(number) for a rational number >= 0; -inf at 0."""
    return _logarithm(number, lower)


def log_above(number: fmpq) -> float:
    """Return a float at least log(number) for a rational number >= 0; -inf at 0."""
    return _logarithm(number, upper)


def entropy(probabilities: Iterable[arb]) -> arb:
    """Return H(p) = -sum p log p."""
    return -total(map(xlogx, probabilities))


def mutual_information(joint: Sequence[Sequence[arb]]) -> arb:
    """Return I(A;Y) of a joint distribution given by its rows s_{a,y}."""
    cells = -total(map(entropy, joint))
    return cells + entropy(map(total, joint)) + entropy(map(total, zip(*joint, strict=True)))


def _exponential(exponent: float) -> arb:
    if exponent == -math.inf:
        return arb(0)
    if not abs(exponent) <= LARGEST_EXPONENT:
        raise CertificateError(f"e^{exponent!r}; exponents are at most {LARGEST_EXPONENT:g}")
    with flint.ctx.workprec(BITS):
        return ball(exponent).exp()


def _logarithm(number: fmpq, end: Callable[[arb], float]) -> float:
    if number < 0:
        raise CertificateError("the logarithm of a negative number")
    with flint.ctx.workprec(BITS):
        return end(arb(number).log()) if number else -math.inf
