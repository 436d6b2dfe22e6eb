r"""`Many`: an array of float balls, one for each leaf of a tree, computed with all at once.

A `Many` (m, r) says that the number that entry i stands for is in [m_i - r_i, m_i + r_i]. What is
assumed of NumPy: binary64 with rounding to nearest in separate calls of + - * /, sums and products
of matrices that add their terms in some order, rounded at most once for each + and *, a cumsum that
adds each term to the sum before it, and exact frexp, ldexp, rint, nextafter, maximum, comparisons
and what only picks entries; nothing of its logarithm and exponential.

Let u = 2^-53. A computed c = fl(a . b) is off by at most u |c| + 2^-1074. In each row of the table
the exact error is at most the expression in r, whose own rounding (at most 16 operations, together
below a relative 2^-48, and an underflow below 2^-1000) `_outward` adds.

| operation | r | why |
|---|---|---|
| a + b | r_a + r_b + u\|m\| | triangle inequality |
| a b | \|a\| r_b + r_a (\|b\| + r_b) + u\|m\| | AB - ab = a (B - b) + (A - a) B |
| a / b | (r_a + \|m\| r_b + 2^-1070) / (\|b\| (1 - 4u) - r_b) + 4u\|m\| | below |
| log a, a > 2 r_a | 2 r_a / a + 4u (1 + \|m\|) | \|log A - log a\| <= r_a / (a - r_a), and `_log` |
| exp a, r_a < 1/4 | m (2 r_a + (6 + 3\|a\|) u) | e^r - 1 <= 1.2 r, and `_exp` |
| exp a, a < -699, r_a < 1/4 | 3 m, m = e^max(a, -700) | it is in (0, 4 m] |
| \|a\| | r_a | triangle inequality |
| max(a, b) | max(r_a, r_b) | it is Lipschitz in the largest norm |
| ... if \|a - b\| > 4 max(r_a, r_b) | that of the larger | only it is taken |
| x^p near 0 | t^p, t = x + r_x | it increases, from 0 |
| x log x near 0 | t (2 + \|log t\|), t = x + r_x < 1/4 | it is in [t log t, 0] for 0 <= X <= t |
| sum of n products, of matrices, too | sum of their r, and (n + 2) u sum \|xy\| | Higham, 3.1 |

Division: |A/B - m| <= |A - mB| / |B|, A - mB = (A - a) + (a - mb) + m (b - B), and |a - mb| is at
most u|m||b|, or 2^-1074 |b| where m underflows. So the error is at most (r_a + |m| r_b + u|m||b|) /
(|b| - r_b). If r_b <= |b| / 2, the last of the three is at most 2u|m|. Otherwise the divisor of the
table, which as computed is smaller by more than 2u|b|, makes the second larger by more than
2u|m||b| r_b / (|b| - r_b)^2 >= 2u|m||b| / (|b| - r_b). Where that divisor is positive, |b| / (|b| -
r_b) < 2^52, so that an underflow of m adds less than 2^-1000; 2^-1070 is for that of |m| r_b, which
a small divisor would make large.

Where no such bound holds the radius is infinite, and a radius that is infinite or no number stays
so: the leaf is then evaluated in balls. An operation never drops one. A number that is exactly 0
has m = r = 0; results of operations never do, except for `of`, -x, |x|, max, x log x and powers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from cvxleak.kernel.numbers import Counted, precision, upper, xlogx

__all__ = ["Balls", "Many", "U", "joined", "stacked", "unstacked"]

Array = NDArray[np.float64]

U = 2.0**-53
"""The unit roundoff."""

LEAST = 2.0**-1070
TINY = 2.0**-1000
LARGE = 2.0**900

_CELLS = 512
_LOG_2 = 0.6931471805599453


def _tables() -> tuple[Array, Array, Array]:
    """Return, for each of 512 cells of [1/2, 1), a number c near 1/x, and -log c rounded.

    And 2^(i / 512), rounded, for i = 0, ..., 511.
    """
    cells = np.arange(_CELLS)
    inverses = 1 / (0.5 + (cells + 0.5) / (2 * _CELLS))
    with precision():
        logs = [-float(arb(c).log().mid()) for c in inverses.tolist()]
        powers = [float((arb(2).log() * i / _CELLS).exp().mid()) for i in cells.tolist()]
    return inverses, np.array(logs), np.array(powers)


_INVERSES, _LOGS, _POWERS = _tables()


def _log(x: Array) -> Array:
    """Return log x, off by at most 4 u (1 + |log x|), for floats in [2^-1022, 2^1000].

    Write x = m 2^e with m in [1/2, 1) and let c be the tabulated number near 1/m. With f = m c - 1,
    |f| < 2^-9.9,

        log x = e log 2 + (-log c + log(1 + f)),
        log(1 + f) = f - f^2 (1/2 - f/3 + f^2/4 - f^3/5) + s, |s| < f^6 / 5.9 < 2^-61.

    Errors: the product m c is off by at most u and the subtraction of 1 is exact, which is 1.01 u
    in log(1 + f); the table is off by u; s and the polynomial, whose terms past f are below 2^-20,
    by u/64; the inner sum, at most 0.7 in size, by 0.7 u; e log 2 by 0.5 u |e| from the constant
    and 0.7 u |e| from the product; the outer sum by u |log x|, up to terms in u^2. Together they
    stay below 2.8 u + 1.2 u |e| + u |log x|, and |e| <= 1 + |log x| / log 2 gives the claim.
    """
    m, e = np.frexp(x)
    cell = (m * (2 * _CELLS)).astype(np.intp) - _CELLS
    f = m * _INVERSES[cell] - 1
    tail = f * f * (0.5 - f * (1 / 3 - f * (0.25 - f * 0.2)))
    return e * _LOG_2 + (_LOGS[cell] + (f - tail))


def _exp(x: Array) -> Array:
    """Return e^x, off by at most (5 + 2|x|) u e^x, for floats in [-700, 700].

    With n = 512 i + j the whole number next to 512 x / log 2, and s = x - n log 2 / 512,

        e^x = 2^i 2^(j/512) e^s,   e^s = 1 + s (1 + s (1/2 + s (1/6 + s/24))) + t.

    Since |s| < 0.0007, |t| < u/70. Errors, relative to e^x: log 2 / 512 is off by a relative
    0.31 u, so s by 0.31 u |x| from it, by u |x| (1 + u) from the product and by u |s| from the
    difference; the polynomial but for its 1, which is below 2^-10, by u/100; the sum with 1 by u,
    the table by 2 u, and the product of both by u. Together they stay below 4.1 u + 1.32 u |x|. The
    scaling by 2^i is exact.
    """
    n = np.rint(x * (_CELLS / _LOG_2))
    s = x - n * (_LOG_2 / _CELLS)
    rest = s * (1 + s * (0.5 + s * (1 / 6 + s * (1 / 24))))
    i, j = np.divmod(n.astype(np.int32), _CELLS)
    return np.ldexp(_POWERS[j] * (1 + rest), i)


def _outward(r: Any) -> Any:
    """Return a radius that its own rounding cannot have made too small."""
    return r * (1 + 2.0**-48) + TINY


class Many:
    """Float balls [m - r, m + r]; both are arrays of one length, or single floats.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.kernel.many import Many
    >>> halves = Many(np.array([0.5, 0.25]))
    >>> bool((halves.log() + 1.0).certain().all())
    True
    """

    __slots__ = ("m", "r")
    __array_ufunc__ = None
    """Arithmetic of arrays of floats with these is done here."""

    def __init__(self, m: Any, r: Any = None) -> None:
        self.m, self.r = m, np.zeros(np.shape(m)) if r is None else r

    @staticmethod
    def of(x: Any) -> Many:
        """Return a number as one ball for all leaves. Floats stand for themselves, exactly."""
        if isinstance(x, Many):
            return x
        if isinstance(x, float):
            return Many(x, 0.0 if math.isfinite(x) else np.inf)
        if isinstance(x, np.ndarray):
            return Many(x, np.where(np.isfinite(x), 0.0, np.inf))
        found = x if isinstance(x, arb) else arb(x)
        if found == 0:
            return Many(0.0)
        m, r = float(found.mid()), float(found.rad())
        return Many(m, _outward(2 * r + 2 * U * abs(m)) if abs(m) < LARGE else np.inf)

    @staticmethod
    def table(x: Any) -> Many:
        """Return an array of balls as float balls."""
        made = [Many.of(one) for one in x.flat]
        m, r = np.array([(y.m, y.r) for y in made], dtype=float).T
        return Many(m.reshape(x.shape), r.reshape(x.shape))

    def __getitem__(self, at: Any) -> Many:
        return Many(self.m[at], self.r[at])

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return np.shape(self.m)

    def reshape(self, *shape: int) -> Many:
        """Return it with other axes."""
        return Many(self.m.reshape(shape), self.r.reshape(shape))

    def certain(self) -> NDArray[np.bool_]:
        """Whether an entry says anything."""
        return np.isfinite(self.m) & np.isfinite(self.r)

    def upper(self) -> Array:
        """Return what no number in the balls is above."""
        return np.nextafter(self.m + self.r, np.inf)

    def is_zero(self) -> bool:
        """Whether it is exactly 0 in every leaf."""
        return bool(np.all((self.m == 0) & (self.r == 0)))

    def __add__(self, other: Any) -> Many:
        b = Many.of(other)
        m = self.m + b.m
        return Many(m, _outward(self.r + b.r + U * np.abs(m)))

    def __neg__(self) -> Many:
        return Many(-self.m, self.r)

    def __abs__(self) -> Many:
        return Many(np.abs(self.m), self.r)

    def __sub__(self, other: Any) -> Many:
        return self + -Many.of(other)

    def __rsub__(self, other: Any) -> Many:
        return Many.of(other) + -self

    def __mul__(self, other: Any) -> Many:
        b = Many.of(other)
        m = self.m * b.m
        spread = np.abs(self.m) * b.r + self.r * (np.abs(b.m) + b.r)
        return Many(m, _outward(spread + U * np.abs(m)))

    def __truediv__(self, other: Any) -> Many:
        b = Many.of(other)
        m = np.divide(self.m, b.m)
        left = np.abs(b.m) * (1 - 4 * U) - b.r
        r = _outward((self.r + np.abs(m) * b.r + LEAST) / left + 4 * U * np.abs(m))
        return Many(m, np.where(left > 0, r, np.inf))

    def __rtruediv__(self, other: Any) -> Many:
        return Many.of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def log(self) -> Many:
        """Return the logarithm of what is certainly positive."""
        ok = (self.m > 2 * self.r + TINY) & (self.m < LARGE)
        x = np.where(ok, self.m, 1.0)
        y = _log(x)
        r = _outward(2 * self.r / x + 4 * U * (1 + np.abs(y)))
        return Many(y, np.where(ok, r, np.inf))

    def exp(self) -> Many:
        """Return the exponential of numbers up to 699."""
        ok = (self.r < 0.25) & (self.m < 699)
        x = np.clip(np.where(ok, self.m, 0.0), -700.0, 699.0)
        y = _exp(x)
        near = _outward(y * (2 * self.r + (6 + 3 * np.abs(x)) * U))
        r = np.where(x < -699, _outward(3 * y), near)
        return Many(y, np.where(ok, r, np.inf))

    def max(self, other: Any) -> Many:
        """Return the larger one, entry by entry."""
        b = Many.of(other)
        above, r = self.m - b.m, np.maximum(self.r, b.r)
        r = np.where(np.abs(above) > 4 * r, np.where(above > 0, self.r, b.r), r)
        return Many(np.maximum(self.m, b.m), r)

    def xlogx(self) -> Many:
        """Return x log x of a number >= 0; of an exact 0 an exact 0."""
        most = self.m + self.r
        near = (self.m <= 2 * self.r + TINY) & (most >= 0) & (most < 0.25)
        none = (self.m == 0) & (self.r == 0)
        top = np.where(near, np.maximum(most, TINY), 1.0)
        x = Many(np.where(near, 1.0, self.m), np.where(near, 0.0, self.r))
        far = x * x.log()
        r = np.where(near, _outward(top * (2 + np.abs(_log(top)))), far.r)
        return Many(np.where(near, 0.0, far.m), np.where(none, 0.0, r))

    def power(self, p: Any) -> Many:
        """Return x^p of a number >= 0, for p > 0; of an exact 0 an exact 0."""
        # It increases: where x is hardly known to be positive, the power of the most is the radius.
        top, y = ((x.log() * p).exp() for x in (Many(_outward(self.m + self.r)), self))
        far, none = y.certain(), (self.m == 0) & (self.r == 0)
        r = np.where(far, y.r, _outward(top.m + top.r))
        return Many(np.where(far, y.m, 0.0), np.where(none, 0.0, r))

    def inner(self, other: Any, axis: int = -1) -> Many:
        """Return inner products along an axis, with one rounding bound for the whole sum."""
        b = Many.of(other)
        m = self.m * b.m
        n = m.shape[axis]
        spread = np.abs(self.m) * b.r + self.r * (np.abs(b.m) + b.r)
        # The last factor is for the sums of radii themselves.
        r, m = np.sum(spread + (n + 2) * U * np.abs(m), axis), np.sum(m, axis)
        # A sum may overflow although its radius does not; it then says nothing.
        return Many(m, _outward(r * (1 + (n + 8) * 2.0**-50) + 0.0 * m))

    def matmul(self, other: Any) -> Many:
        """Return products of matrices, with the rounding bound of `inner` for each entry.

        It holds whatever the order in which the products are added.
        """
        b = Many.of(other)
        n, u, v = self.m.shape[-1], np.abs(self.m), np.abs(b.m)
        m, r = self.m @ b.m, u @ (b.r + (n + 2) * U * v) + self.r @ (v + b.r)
        return Many(m, _outward(r * (1 + (n + 8) * 2.0**-50) + 0.0 * m))

    def soft(self, terms: Sequence[Any]) -> Many:
        """Return scale log sum exp(x / scale), for this scale >= 0; see `numbers.soft`.

        The largest x is at most that, and scale log n is the most that it is above it: so where the
        scale is hardly known to be positive, the largest x stands for it.
        """
        x = stacked(list(map(Many.of, terms)))
        top = Many(x.m.max(0), x.r.max(0))
        flat = ~(self.m > 2 * self.r)
        scale = Many(np.where(flat, 1.0, self.m), np.where(flat, 0.0, self.r))
        y = scale * ((x - top.m) / scale).exp().inner(1.0, 0).log() + top.m
        most = np.maximum(self.m + self.r, 0.0) * (np.log(len(terms)) + 1)
        return Many(np.where(flat, top.m, y.m), np.where(flat, _outward(top.r + most), y.r))


class Balls(np.ndarray):
    """An array of balls of 128 bits, or of `Counted`, with what `Many` has for arrays."""

    @staticmethod
    def of(x: Any) -> Any:
        """Return numbers as an array of balls; floats stand for themselves, exactly."""
        return np.asarray(_as_balls(np.asarray(x, dtype=object))).view(Balls)

    @property
    def m(self) -> Array:
        """The middles."""
        return np.asarray(_middles(self), dtype=float)

    def certain(self) -> NDArray[np.bool_]:
        """Whether an entry says anything."""
        return np.asarray(_finite(self), dtype=bool)

    def upper(self) -> Array:
        """Return what no number in the balls is above."""
        return np.asarray(_uppers(self), dtype=float)

    def exp(self) -> Any:
        """Return the exponential."""
        return np.exp(self)

    def log(self) -> Any:
        """Return the logarithm."""
        return np.log(self)

    def xlogx(self) -> Any:
        """Return x log x."""
        return _xlogx(self)

    def is_zero(self) -> bool:
        """Whether all are exactly 0."""
        return all(x.is_zero() for x in self.ravel())

    def max(self, other: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the larger one, entry by entry."""
        return _largest(self, other)

    def inner(self, other: Any, axis: int = -1) -> Any:
        """Return inner products along an axis."""
        found = (self * other).sum(axis, keepdims=True).squeeze(axis)
        return found if found.ndim else found.item()

    def matmul(self, other: Any) -> Any:
        """Return products of matrices."""
        return np.matmul(self, other)


_as_balls = np.frompyfunc(lambda x: x if isinstance(x, arb | Counted) else arb(x), 1, 1)
_middles = np.frompyfunc(lambda x: float(x.mid()) if isinstance(x, arb) else 0.5, 1, 1)
_finite = np.frompyfunc(lambda x: x.is_finite(), 1, 1)
_uppers = np.frompyfunc(upper, 1, 1)
_xlogx = np.frompyfunc(xlogx, 1, 1)
_largest = np.frompyfunc(lambda x, y: x.max(y), 2, 1)


def stacked(numbers: Sequence[Any]) -> Any:
    """Return an array of `Many` or of balls, whose first axis has these numbers.

    The last axis of a `Many` is that of leaves: of length 1, if a number is the same for all.
    """
    if not any(isinstance(x, Many) for x in numbers):
        return Balls.of(numbers)
    made = list(map(Many.of, numbers))
    ends = [np.atleast_1d(x) for y in made for x in (y.m, y.r)]
    if any(len(x) > 1 for x in ends):
        ends = np.broadcast_arrays(*ends)
    return Many(np.stack(ends[::2]), np.stack(ends[1::2]))


def joined(arrays: Sequence[Any], axis: int = 0) -> Any:
    """Return arrays of one type, one after the other along an axis."""
    if isinstance(arrays[0], Many):
        return Many(*(np.concatenate([getattr(x, end) for x in arrays], axis) for end in "mr"))
    return np.concatenate(arrays, axis).view(type(arrays[0]))


def unstacked(array: Any) -> list[Any]:
    """Return the numbers that the first axis of an array has."""
    if isinstance(array, Many):
        return [Many(m, r) for m, r in zip(array.m, array.r, strict=True)]
    return list(array)
