"""The kernel's numbers: read exactly, computed with in any of four types.

A rule is written once, with + - * / and the functions below, and is evaluated with

- `arb` of python-flint: balls of 128 bits, which hold the exact value;
- `Many`: arrays of float balls, one entry for each leaf of a tree (`cvxleak.kernel.many`);
- `fmpq`: fractions, for rules without logarithms (`is_zero` of these is not to be asked);
- `Counted`, which only counts the operations, so that what a file asks for is known beforehand.

A comparison of balls is true only if it holds for every point in them, so a comparison that passes
is a proof. What a rule merely picks (the slope of a chord, the place of a knapsack) may be any
number and is taken from the middle of a ball; such functions say that they are untrusted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache, reduce
from operator import add
from typing import Any

import flint
from flint import arb, fmpq, fmpz

from cvxleak.kernel.budget import RefusedError, charge, need

__all__ = [
    "Counted",
    "RefusedError",
    "added",
    "ball",
    "dot",
    "largest",
    "law",
    "least",
    "lower",
    "need",
    "precision",
    "proved",
    "rational",
    "soft",
    "total",
    "upper",
    "xlogx",
]

PRECISION = 128
"""Bits of a ball."""

SMALL = 1 << 12
"""Bits of a common denominator that are not counted."""

LONGEST = 4_000
"""Most characters of a number that is text."""

_NUMBER = re.compile(r"(-?\d+)(?:(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?|/(\d+))", re.ASCII)
MOST_PLACES = 400
"""Largest power of ten in a number."""


@contextmanager
def precision() -> Iterator[None]:
    """Compute with balls of 128 bits in this block."""
    before = flint.ctx.prec
    flint.ctx.prec = PRECISION
    try:
        yield
    finally:
        flint.ctx.prec = before


# Reading --------------------------------------------------------------------------------------


def rational(value: Any) -> fmpq:
    """Return a number as written: 0.3 is three tenths, "1/3" a third.

    Floats stand for the shortest decimal that prints as they do.
    """
    if isinstance(value, fmpq):
        return value
    if type(value) is float:
        return _of_float(value)
    if isinstance(value, str | float):  # a float that carries a number prints as that
        return _of_text(value if isinstance(value, str) else repr(value))
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    need(type(value) is int, f"expected a number, found {value!r:.40}")
    need(value.bit_length() <= 14_000, "an integer of thousands of digits")
    return fmpq(value)


def _of_text(text: str) -> fmpq:
    found = _NUMBER.fullmatch(text) if len(text) <= LONGEST else None
    # A message is made where it is needed only: there may be millions of numbers.
    if found is None:
        raise RefusedError(f"expected a number, found {text!r:.40}")
    whole, rest, power, bottom = found.groups("")
    if bottom:
        need(int(bottom), "a fraction with denominator 0")
        return fmpq(int(whole), int(bottom))
    exponent = int(power or 0)
    need(abs(exponent) <= MOST_PLACES, f"a power of ten beyond {MOST_PLACES}")
    places = len(rest) - exponent
    return fmpq(int(whole + rest) * 10 ** max(-places, 0), 10 ** max(places, 0))


@lru_cache(1 << 12)
def _of_float(value: float) -> fmpq:
    """Large channels have few different numbers."""
    return _of_text(repr(value))


def proved(value: Any) -> fmpq:
    """Return a number of a proof: a float stands for itself, anything else is as written."""
    if isinstance(value, float):
        need(math.isfinite(value), f"expected a number, found {value!r}")
        return fmpq(*value.as_integer_ratio())
    return rational(value)


def ball(value: Any) -> arb:
    """Return a ball that holds a number: as written, or a fraction or ball itself."""
    if isinstance(value, arb):
        return value
    return arb(rational(value))


def added(numbers: Sequence[fmpq]) -> fmpq:
    """Return the sum of fractions; their common denominator, if it is large, is counted before."""
    common = fmpz(1)
    for q in {x.q for x in numbers}:
        common = common.lcm(q)
        if common.bit_length() > SMALL:
            charge("bytes of numbers", common.bit_length() // 8)
    if common.bit_length() > SMALL:
        charge("bytes of numbers", common.bit_length() * len(numbers) // 8)
    return sum(numbers, fmpq(0))


def law(values: Sequence[Any], why: str = "a distribution") -> list[fmpq]:
    """Return the distribution x / sum x of numbers as written."""
    numbers = [rational(value) for value in values]
    mass = added(numbers)
    need(numbers and min(numbers) >= 0 and mass > 0, f"{why}: negative numbers, or a sum of 0")
    return numbers if mass == 1 else [x / mass for x in numbers]


def upper(x: arb | fmpq) -> float:
    """Return a float that is certainly not below a number, as written; inf if there is none.

    Of a ball, what the float stores is not below it either.
    """
    if isinstance(x, fmpq) and abs(x) < 1 << 1023:
        found = int(x.p) / int(x.q)
        fits = rational(found) >= x
    else:
        x = arb(x)
        found = float(x.upper()) if x.is_finite() else math.inf
        fits = found == math.inf or (found > -math.inf and arb(found) >= x and ball(found) >= x)
    return found if fits else math.nextafter(found, math.inf)


def lower(x: arb | fmpq) -> float:
    """Return a float that is certainly not above a number; of what is exactly inf, inf."""
    if isinstance(x, arb) and x == arb.pos_inf():
        return math.inf
    return 0.0 - upper(-x)


# Computing ------------------------------------------------------------------------------------


class Counted:
    """Stands for any number: what is computed with it is counted, and is itself again.

    Every comparison with it holds, so that all that may have to be computed is.
    """

    __slots__ = ("operations",)

    def __init__(self) -> None:
        self.operations = 0

    def _count(self, *_: Any) -> Counted:
        self.operations += 1
        return self

    def _holds(self, _: object) -> bool:
        return True

    def is_zero(self) -> bool:
        """Whether it is exactly 0, so that terms with it may be left out: not certainly."""
        return False

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _count
    __truediv__ = __rtruediv__ = __neg__ = _count
    log = exp = max = mid = _count
    __lt__ = __le__ = __gt__ = __ge__ = _holds


def total(terms: Iterable[Any]) -> Any:
    """Return the sum; the integer 0 of nothing."""
    found = list(terms)
    return reduce(add, found) if found else 0


def dot(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """Return the inner product of equally many numbers."""
    need(len(one) == len(other), "two lists of different lengths")
    return total(x * y for x, y in zip(one, other, strict=True))


def largest(values: Iterable[Any]) -> Any:
    """Return the largest of some numbers: a fraction, if all are."""
    found = list(values)
    need(found, "the largest of nothing")
    return reduce(_larger, found)


def least(values: Iterable[Any]) -> Any:
    """Return the least of some numbers."""
    return -largest(-x for x in values)


def _larger(x: Any, y: Any) -> Any:
    if isinstance(x, fmpq):
        return max(x, y) if isinstance(y, fmpq) else y.max(x)
    return x.max(y)


def xlogx(x: Any) -> Any:
    """Return x log x of a number >= 0, where 0 log 0 = 0."""
    if not isinstance(x, arb):
        return x.xlogx() if hasattr(x, "xlogx") else x * x.log()
    if x > 0:
        return x * x.log()
    if x == 0:
        return arb(0)
    if not (x.is_finite() and x.upper() >= 0):
        return arb.nan()
    # The ball touches 0. On [0, u] it is at most max(0, u log u), and falls until 1/e = .3678.
    top = x.upper()
    end = top * top.log()
    return (end if top < 0.36 else -arb(-1).exp()).union(end.max(arb(0)))


def soft(terms: Sequence[Any], scale: Any) -> Any:
    r"""Return scale log sum_i exp(x_i / scale), or the largest x_i where the scale is 0.

    CHAIN (Gibbs): for every distribution p, <p, x> + scale H(p) is at most this. It grows with the
    scale, so where a ball around the scale touches 0, its upper end stands for it.
    """
    if len(terms) == 1:
        return terms[0]
    if hasattr(scale, "soft"):
        return scale.soft(terms)
    if not scale > 0:
        need(scale.is_finite() and scale.upper() >= 0, "a scale that may be negative")
        scale = scale.upper()
    if scale == 0:
        return largest(terms)
    top = largest(x.mid() for x in terms)
    return top + scale * total(((x - top) / scale).exp() for x in terms).log()
