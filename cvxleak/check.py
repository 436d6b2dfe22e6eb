# fmt: off
"""Check a certificate with the standard library alone: python check.py proof.json

A second checker, independent of the one that `cvxleak.verify` runs: written from the format
(docs/certificates.md) and the proofs (docs/theory), not from the first one's code. It lumps the
problem by itself, determines which groups of records have to be covered, and computes both bounds
in whole numbers: rational numbers exactly, logarithms and exponentials rounded outward.

Exit code: 0 all claimed bounds proved, 1 one is not, 2 unusable file, 3 unknown kind or proof."""

import array
import base64
import functools
import hashlib
import itertools
import json
import math
import re
import sys
import zlib
from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

PROVED, NOT_PROVED, UNUSABLE, UNKNOWN = 0, 1, 2, 3

LARGEST_FILE = 1 << 28  # bytes
LARGEST_ARRAY = 1 << 24  # numbers in all packed arrays and runs of a file together
LARGEST_SPACE = 1 << 20  # datasets that are listed one by one
LARGEST_WORK = 1 << 26  # elementary steps for all of a file, a step being some microseconds
LARGEST_RECORDS = 1 << 16  # records of a dataset
LARGEST_BUNDLE = 10_000  # certificates in a file
LARGEST_GROUPS = 100_000  # groups of records, types of datasets
LARGEST_VERTEX = 200_000  # bits of the vertices of a tree, 53 or so for each cut on the way
DIGITS = (160, 512, 2560)  # bits; more are used if a claim is missed by less than 2^-90

Interval = tuple[int, int]
Vector = tuple[int, ...]
zips = functools.partial(zip, strict=True)

class RefusedError(Exception):
    code = UNUSABLE
class UnusableError(RefusedError): ...  # a part is missing, of the wrong type, or makes no sense
class UnknownError(RefusedError):  # a kind of claim or proof that this checker does not support
    code = UNKNOWN
class NotProvedError(RefusedError):  # a claimed bound does not follow from the file's content
    code = NOT_PROVED
class NarrowError(NotProvedError): ...  # the same, where more digits could make a difference
class InfiniteError(Exception): ...  # an upper bound is infinite
def need(condition: object, message: str, error: type[RefusedError] = UnusableError) -> None:
    if not condition:
        raise error(message)
prove = functools.partial(need, error=NotProvedError)
def dot(xs: Iterable[Any], ys: Iterable[Any]) -> Any:
    return sum(x * y for x, y in zips(xs, ys))

# -------- Fixed-point arithmetic, rounded outward.
#
# A number v is an integer that stands for v / 2^P; an interval is a pair (lo, hi). `log_ratio` and
# `exp` work with 64 more bits, Q = P + 64; an "ulp" below is 2^-Q.
class Precision:  # P, Q and what depends on them; the one instance, `FX`, is set anew
    def __init__(self, bits: int) -> None:
        self.bits, self.one, self.wide = bits, 1 << bits, bits + 64
        self.halvings = math.isqrt(self.wide) * 2 // 3  # at most 40
        # log 2 = 2 atanh(1/3) = 2 sum 3^-(2i+1) / (2i+1). Terms are truncated at 2^-(Q+32), and
        # there are fewer than 2^12 of them, so ln2 <= 2^Q log 2 < ln2 + 2.
        power, total, index = (2 << (self.wide + 32)) // 3, 0, 1
        while power:
            total += power // index
            power, index = power // 9, index + 2
        self.ln2 = total >> 32
FX = Precision(DIGITS[0])
MARGIN = 1 << 60  # ulps: more than the errors of `exp` and `log_ratio`, as shown there
def _exp(r: int) -> int:
    """Return a number within 2^56 ulps of 2^Q exp(r / 2^Q), for 0 <= r <= log 2.
    r / 2^k is truncated (one ulp, 2^(k+1) in the result). Each term of Taylor's series is truncated
    once, so that its error is below 2 ulps, and the terms after the last of n are below 6 in total.
    Squaring k times multiplies an error by at most 2^(k+1), and each adds one ulp that later ones
    multiply. In total at most 2^(k+1) (2n + 10 + k) < 2^56 ulps, as k <= 40 and n < 2^13."""
    wide, i = FX.wide, 1
    r >>= FX.halvings
    term = total = 1 << wide
    while term:
        term = (term * r) // (i << wide)
        total += term
        i += 1
    for _ in range(FX.halvings):
        total = (total * total) >> wide
    return total
def exp(x: int) -> Interval:
    """Return an interval that contains exp(x).
    With n = floor(x / log 2), subtracting n log 2 is off by at most 2|n| <= 2^24 ulps, which is at
    most doubled in the result, below 2; with the error of `_exp` less than 2^57 < MARGIN."""
    if x == 0:
        return FX.one, FX.one
    n = (x << 64) // FX.ln2
    if n < -FX.bits - 2:
        return 0, 1
    need(n <= 1 << 22, "an exponent is too large")
    value = _exp((x << 64) - n * FX.ln2)
    lo, hi, up, down = max(value - MARGIN, 0), value + MARGIN, max(n, 0), 64 - min(n, 0)
    return (lo << up) >> down, -((-hi << up) >> down)
def log_ratio(a: int, b: int) -> Interval:
    """Return an interval that contains log(a / b), for whole numbers a, b > 0.
    With a/b = 2^e m, 1/2 < m < 2, and y the float logarithm of m (whether accurate or not):
    log m = y + log(m exp(-y)), and z = m exp(-y) - 1 is tiny, which is checked. m is
    truncated (2 ulps relative), exp(-y) is off by 2^57 ulps, so that z is off by less than 2^59;
    the series log(1 + z) = 2 (s + s^3/3 + ...), s = z / (2 + z), is truncated where s^j < 2^-Q,
    which leaves less than 8 ulps; e log 2 is off by 2|e| < 2^40. The sum is below MARGIN."""
    if a == b:
        return 0, 0
    wide, e = FX.wide, a.bit_length() - b.bit_length()
    m = (a << (wide - e)) // b if wide >= e else a // (b << (e - wide))
    y = round(math.log((m >> (wide - 60)) / (1 << 60)) * (1 << 60)) << (wide - 60)
    z = ((m * (_exp(-y) if y <= 0 else _exp(FX.ln2 - y) >> 1)) >> wide) - (1 << wide)
    if abs(z) >> (wide - 40):
        raise ArithmeticError("the platform's logarithm is off")
    s = (z << wide) // ((2 << wide) + z)
    square, term, series, j = (s * s) >> wide, s, s, 1
    while abs(term) > 1:
        term, j = (term * square) >> wide, j + 2
        series += term // j
    value = e * FX.ln2 + y + 2 * series
    return (value - MARGIN) >> 64, ((value + MARGIN) >> 64) + 1
def fixed(x: Fraction | int) -> Interval:  # the narrowest interval around a rational number
    lo, rest = divmod(x.numerator << FX.bits, x.denominator)
    return lo, lo + (rest > 0)
def times(x: Interval, y: Interval) -> Interval:
    products = (x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])
    return min(products) >> FX.bits, -(-max(products) >> FX.bits)
def plus(terms: Iterable[Interval]) -> Interval:
    lo = hi = 0
    for low, high in terms:
        lo, hi = lo + low, hi + high
    return lo, hi
def minus(x: Interval, y: Interval) -> Interval:
    return x[0] - y[1], x[1] - y[0]
def x_log_x(cell: Interval) -> Interval:
    """Return an interval around x log x for all x of an interval in [0, 1] (or just above)."""
    lo, hi = cell
    if hi <= 0:
        return 0, 0
    log_hi = log_ratio(hi, FX.one)
    if lo <= 0:  # x log x falls from 0 to x = 1/e, and is -1/e there
        ends = times((hi, hi), log_hi)
        return (ends[0] if 4 * hi < FX.one else -FX.one), max(0, ends[1])
    if hi - lo <= 1 and lo << 8 > FX.one:  # log hi - log lo <= (hi - lo) / lo < 2^8 units
        return times(cell, (log_hi[0] - 256 * (hi - lo), log_hi[1]))
    return times(cell, (log_ratio(lo, FX.one)[0], log_hi[1]))
def scaled(x: int, by: Fraction | int) -> int:  # x times a rational number, rounded up
    return -(-x * by.numerator // by.denominator)
def log_sum_exp(values: Sequence[int], scale: Fraction) -> int:
    """Return scale log sum exp(v / scale), rounded up; the largest v if the scale is 0."""
    if scale == 0 or len(values) == 1:
        return max(values)
    xs = [-(-v * scale.denominator // scale.numerator) for v in values]
    top = max(xs)
    return scaled(top + log_ratio(sum(exp(x - top)[1] for x in xs), FX.one)[1], scale)

# -------- Reading: strict JSON, exact numbers, packed arrays.
def parse(text: str) -> Any:  # strict JSON as Python objects: no NaN, no repeated key
    def decimal(text: str) -> float:  # floats stand for their shortest decimals and no others
        near = float(text)
        fits = text == repr(near) or Decimal(text) == Decimal(repr(near))
        need(fits and math.isfinite(near), f"{text:.40} is no number that a float holds")
        return near
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(found)) == len(found), "a key is there twice")
        return dict(found)
    try:
        return json.loads(
            text, parse_float=decimal, parse_constant=decimal, object_pairs_hook=pairs)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise UnusableError(f"not JSON: {error}") from error
class Reader:  # the schema version, and the expansion and work that the file has caused so far
    def __init__(self, version: int, expanded: int = 0, steps: int = 0) -> None:
        self.version, self.expanded, self.steps = version, expanded, steps
    def spend(self, numbers: int) -> None:  # count the numbers in an expansion, before it is made
        self.expanded += numbers
        need(self.expanded <= LARGEST_ARRAY, "the arrays and runs are too large")
    def work(self, steps: int, what: str) -> None:  # count steps, before they are made
        self.steps += steps
        need(self.steps <= LARGEST_WORK, f"{what}: the file asks for too much work")
READ, DECIMALS = Reader(1), 2  # the first version in which a float is its shortest decimal
FRACTION = re.compile(r"-?[0-9]{1,4000}(/0*[1-9][0-9]{0,4000}|\.[0-9]{1,400})?")
def rational(value: Any, what: str) -> Fraction:
    """Return a number exactly: a float as its binary value (schema 1) or shortest decimal (2)."""
    if isinstance(value, float):
        need(math.isfinite(value), f"{what} is not finite")
        return Fraction(repr(value)) if READ.version >= DECIMALS else Fraction(value)
    if isinstance(value, str) and FRACTION.fullmatch(value):
        return Fraction(value)
    return Fraction(integer(value, what))
def integer(value: Any, what: str) -> int:
    need(isinstance(value, int) and not isinstance(value, bool), f"{what} is no number")
    return value
def nonnegative(value: Any, what: str = "a multiplier") -> Fraction:
    x = value if isinstance(value, Fraction) else rational(value, what)
    prove(x >= 0, f"{what} is negative")
    return x
def fields(holder: Any, names: str, optional: str = "") -> list[Any]:
    """Return the entries of an object, None for missing optional ones; refuse others by name."""
    wanted, perhaps = names.split(), optional.split()
    need(isinstance(holder, dict), f"no object with {names!r}")
    for key in holder:
        known = key in wanted or key in perhaps
        need(known, f"this checker does not know {key!r:.60} beside {names!r}", UnknownError)
    for key in wanted:
        need(key in holder, f"{key!r} is missing")
    return [holder.get(key) for key in (*wanted, *perhaps)]
def a_list(values: Any, what: str, length: int | None = None) -> list[Any]:
    need(isinstance(values, list), f"{what} is no list")
    need(length is None or len(values) == length, f"{what} has {len(values)} entries")
    return values
def whole(values: Any, what: str, length: int | None = None) -> list[int]:
    return [integer(v, what) for v in a_list(values, what, length)]
def numbers(values: Any, what: str, length: int | None = None) -> list[Fraction]:
    if isinstance(values, dict):  # packed multipliers are the binary values of their floats
        return list(map(Fraction, a_list(unpack(values, what, 1)[0], what, length)))
    return [rational(value, what) for value in a_list(values, what, length)]
def unpack(packed: Any, what: str, axes: int, of: str = "dfi") -> tuple[list[Any], list[int]]:
    """Return the numbers of a packed array and its shape; no more than declared is expanded."""
    dtype, shape, data = fields(packed, "dtype shape data")
    code, width = {"<f8": ("d", 8), "<f4": ("f", 4), "<i4": ("i", 4)}.get(str(dtype), ("", 0))
    need(code and code in of and isinstance(data, str), f"{what} has another dtype, or no data")
    shape = whole(shape, what)
    good = len(shape) == axes and all(0 <= side <= LARGEST_ARRAY for side in shape)
    need(good, f"{what} has the wrong shape")
    count = math.prod(shape)
    READ.spend(count)
    try:
        stream = zlib.decompressobj()
        raw = stream.decompress(base64.b64decode(data, validate=True), count * width + 1)
    except (ValueError, zlib.error) as error:
        raise UnusableError(f"{what} cannot be unpacked: {error}") from error
    need(len(raw) == count * width and stream.eof and not stream.unused_data, f"{what}: size")
    values = array.array(code)
    values.frombytes(raw)
    if sys.byteorder == "big":
        values.byteswap()
    need(code == "i" or all(map(math.isfinite, values)), f"{what} is not finite")
    return values.tolist(), shape
def table(packed: Any, what: str, width: int | None = None, of: str = "dfi") -> list[list[Any]]:
    values, (rows, length) = unpack(packed, what, 2, of)
    need(width in (None, length), f"{what} has the wrong shape")
    return [values[i * length : (i + 1) * length] for i in range(rows)]
class Law(NamedTuple):  # a probability distribution: weights[i] / total, whole numbers
    weights: Vector
    total: int
    def fractions(self) -> list[Fraction]:
        return [Fraction(w, self.total) for w in self.weights]
    def merged(self, parts: Iterable[Iterable[int]]) -> "Law":
        return Law(tuple(sum(self.weights[y] for y in part) for part in parts), self.total)
    def logs(self) -> list[Interval | None]:  # None for log 0
        return [log_ratio(w, self.total) if w else None for w in self.weights]
def common(weights: Sequence[Fraction]) -> Law:  # the distribution proportional to weights
    scale = math.lcm(*(w.denominator for w in weights))
    found = tuple(w.numerator * (scale // w.denominator) for w in weights)
    return Law(found, sum(found))
def law(values: Any, what: str, length: int | None = None, positive: bool = False) -> Law:
    """Return the distribution of a list of weights: the weights divided by their exact sum.
    In schema 2 these are the weights as written, if they sum to one exactly or one of them is no
    float; otherwise the binary values of the floats, divided by their sum."""
    raw = unpack(values, what, 1)[0] if isinstance(values, dict) else a_list(values, what)
    need(length in (None, len(raw)), f"{what} has {len(raw)} entries")
    weights, below = [rational(v, what) for v in raw], 1
    for w in weights:  # a common denominator may be far longer than the file
        below = math.lcm(below, w.denominator)
        READ.work(below.bit_length() ** 2 >> 20, f"fractions of {what}")
    floats = (isinstance(v, float) or w == Fraction(repr(float(w))) for v, w in zips(raw, weights))
    if sum(weights) != 1 and all(floats):
        weights = [Fraction(float(w)) for w in weights]
    signs = all(weights) if positive else sum(weights) > 0
    need(all(w >= 0 for w in weights) and signs, f"{what} is no distribution (or not positive)")
    return common(weights)
def fixed_law(p: Law) -> list[Interval]:
    return [fixed(x) for x in p.fractions()]
def entropy(cells: Iterable[Interval]) -> Interval:
    lo, hi = plus(map(x_log_x, cells))
    return -hi, -lo
def divergence(row: Law, t: Law, log_t: Sequence[Interval | None]) -> Interval:
    terms = []  # D(row || t)
    for w, other, log_other in zips(row.weights, t.weights, log_t):
        if w and log_other is None:
            raise InfiniteError
        if w and log_other and w * t.total != other * row.total:
            gain = minus(log_ratio(w, row.total), log_other)
            terms.append(times(fixed(Fraction(w, row.total)), gain))
    return plus(terms)

# -------- The problem: records, query, channel; and lumping.
def label(value: Any) -> Any:
    """Return a label such that equal labels compare equal: 1 and 1.0 do, 1 and true do not."""
    if isinstance(value, list):
        return tuple(label(v) for v in value)
    need(value is None or isinstance(value, (str, int, float)), "a label of an unknown type")
    return (type(value).__name__, value) if isinstance(value, (bool, str)) else ("number", value)
def places(values: Any, what: str) -> dict[Any, int]:  # the place of each label
    found = {label(v): i for i, v in enumerate(a_list(values, what))}
    need(len(found) == len(values), f"{what} has a label twice")
    return found
def runs(values: Any, what: str, read: Callable[[Any], Any]) -> list[Any]:
    """Return a list that is stored as runs [item, how many]; each item is read once."""
    found = [a_list(run, what, 2) for run in a_list(values, what)]
    for item, number in found:
        need(integer(number, what) > 0, f"{what} has a run without a length")
        READ.spend(number * len(a_list(item, what)))
    need(sum(number for _, number in found) <= LARGEST_RECORDS, "too many records")
    return [x for item, number in found for x in itertools.repeat(read(item), number)]
class Query:
    """A function of the dataset. `values` are its labels; a place is an index into them.
    `alphabets[i]` are the values of record i, `sizes[i]` is their number. Additive: the vectors
    `contributions[i][a]` are added up over the records and reduced by `moduli`; `totals` has the
    place of each sum. Table: `table` has the place of each dataset, with the last record varying
    fastest. Records of equal `kinds` can be swapped without changing the query."""

    totals: dict[Vector, int] | None = None
    def __init__(self, data: Any) -> None:
        kind = data.get("kind") if isinstance(data, dict) else None
        known = kind in ("additive", "table")
        need(known, f"this checker does not know the query kind {kind!r:.60}", UnknownError)
        own = ("table", "") if kind == "table" else ("contributions totals", "modulus")
        _, space, labels, first, *rest = fields(data, f"kind space values {own[0]}", own[1])
        self.alphabets = runs(
            fields(space, "alphabets")[0], "alphabets", lambda a: tuple(places(a, "an alphabet")))
        self.sizes = [len(one) for one in self.alphabets]
        need(self.sizes and min(self.sizes) > 0, "a space without records or values")
        self.space = math.prod(k**n for k, n in Counter(self.sizes).items())  # number of datasets
        if kind == "table":
            self.values = list(places(labels, "values"))
            need(self.space <= LARGEST_ARRAY, "the space is too large")
            self.table = whole(first, "a table", self.space)
            need(all(0 <= v < len(labels) for v in self.table), "the table points outside")
            self.kinds: list[Any] = list(range(len(self.sizes)))
            return
        self.contributions: list[Any] = runs(first, "contributions", lambda one: tuple(
            tuple(whole(v, "a contribution")) for v in a_list(one, "a record")))
        sums = [tuple(whole(t, "a total")) for t in a_list(rest[0], "totals")]
        width = len(sums[0]) if sums else 0
        self.moduli = rest[1] if isinstance(rest[1], list) else [rest[1]] * width
        for m in self.moduli:
            need(m is None or integer(m, "a modulus") > 0, "a modulus that is not positive")
        need(list(map(len, self.contributions)) == self.sizes, "contributions do not fit")
        vectors = itertools.chain([self.moduli], sums, *set(self.contributions))
        need(width and all(len(v) == width for v in vectors), "vectors of different lengths")
        need(len(set(sums)) == len(sums), "a total is there twice")
        names = [label(v) for v in a_list(labels, "values", len(sums))]  # totals may share a value
        self.values = list(dict.fromkeys(names))
        at = {name: place for place, name in enumerate(self.values)}
        self.totals = {total: at[name] for total, name in zips(sums, names)}
        self.kinds = self.contributions
    def types(self, data: Any) -> "Query":
        """Return the query that counts, in each class of equal records, all values but the first.
        A type is a vector, the counts of the first class first, or a number if it has one entry."""
        need(self.totals is not None, "types of a query that is not additive")
        kinds = list(zips(self.alphabets, self.contributions))
        width, start, ranges, vectors = sum(len(k[0]) - 1 for k in set(kinds)), 0, [], {}
        for kind, number in Counter(kinds).items():
            size = len(kind[0])
            vectors[kind] = [[int(j == start + a - 1 and a > 0) for j in range(width)]
                             for a in range(size)]
            start += size - 1
            need(math.comb(number + size - 1, size - 1) <= LARGEST_GROUPS, "too many types")
            counts = itertools.combinations_with_replacement(range(size), number)
            ranges.append(sorted([c.count(a) for a in range(1, size)] for c in counts))
        need(math.prod(map(len, ranges)) <= LARGEST_GROUPS, "too many types")
        found = [list(itertools.chain(*v)) for v in itertools.product(*ranges)]
        return Query({"kind": "additive", "space": data["space"], "totals": found,
                      "values": [t[0] if width == 1 else t for t in found],
                      "contributions": [[vectors[kind], 1] for kind in kinds]})
    def as_sum(self) -> "Query":
        """Make the query additive: a dataset's place in product order is the sum of its values'."""
        if self.totals is None:
            self.contributions = [tuple((a * stride,) for a in range(k))
                                  for k, stride in zips(self.sizes, self.strides)]
            self.totals = {(x,): place for x, place in enumerate(self.table)}
            self.moduli, self.kinds = [None], self.contributions
        return self
    @property
    def strides(self) -> list[int]:
        return [math.prod(self.sizes[i + 1 :]) for i in range(len(self.sizes))]
    def alike(self) -> list[int]:
        """Return the first record of each class of exchangeable records with equal alphabets."""
        found, known = [], set()
        for i, key in enumerate(zips(self.alphabets, self.kinds)):
            same = (j for j in found if self.totals is None and self.alphabets[j] == key[0])
            if key not in known and not any(self._swapped(i, j) for j in same):
                found.append(i)
            known.add(key)
        return found
    def _swapped(self, i: int, j: int) -> bool:  # whether swapping them leaves a table unchanged
        step = self.strides[i] - self.strides[j]
        READ.work(self.space, "records that may be swapped")
        return all(self.table[x] == self.table[x + (v[j] - v[i]) * step]
                   for x, v in enumerate(itertools.product(*map(range, self.sizes))))
    def listing(self) -> list[int]:  # the place of every dataset, in product order
        need(self.space <= LARGEST_SPACE, "too many datasets to list them")
        if self.totals is None:
            return self.table
        joint = Sum([self])
        READ.work(4 * self.space * len(self.sizes) * len(self.moduli), "datasets")
        sums = (functools.reduce(joint.add, x, joint.nothing)
                for x in itertools.product(*self.contributions))
        return [joint.places(s)[0] for s in sums]
class Sum:  # several additive queries of one space as one, with their vectors side by side
    def __init__(self, queries: Sequence[Query]) -> None:
        self.totals = [q.totals or {} for q in queries]
        self.moduli = [m for q in queries for m in q.moduli]
        self.ends = list(itertools.accumulate((len(q.moduli) for q in queries), initial=0))
        together = functools.cache(lambda *kinds: tuple(sum(v, ()) for v in zips(*kinds)))
        self.vectors = [together(*kinds) for kinds in zips(*(q.contributions for q in queries))]
        self.nothing: Vector = (0,) * len(self.moduli)
        self.step = len(self.moduli) + (queries[0].space.bit_length() >> 8)  # of large numbers
    def add(self, x: Vector, y: Vector, n: int = 1, k: int = 1) -> Vector:  # n x + k y, reduced
        sums = ((n * u + k * v, m) for u, v, m in zips(x, y, self.moduli))
        return tuple(u if m is None else u % m for u, m in sums)
    def places(self, total: Vector) -> Vector:  # each query's place at a sum
        parts = [total[i:j] for i, j in itertools.pairwise(self.ends)]
        need(all(p in totals for p, totals in zips(parts, self.totals)), "a sum without a value")
        return tuple(totals[p] for p, totals in zips(parts, self.totals))
    def convolve(self, left: dict[Vector, int], right: dict[Vector, int]) -> dict[Vector, int]:
        READ.work(len(left) * len(right) * self.step, "contexts")
        ways: Counter[Vector] = Counter()
        for (x, p), (y, q) in itertools.product(left.items(), right.items()):
            ways[self.add(x, y)] += p * q
        return ways
    def power(self, vectors: Sequence[Vector], n: int, weights: Any = None) -> dict[Vector, int]:
        """Return the number of ways in which n records have each sum, or the sum of weights."""
        once, ways = Counter[Vector](), Counter({self.nothing: 1})
        for v, w in zips(vectors, weights or [1] * len(vectors)):
            once[self.add(v, self.nothing)] += w
        once = Counter({v: w for v, w in once.items() if w})
        if len(once) == 2:  # a binomial distribution
            (x, p), (y, q) = once.items()
            READ.work(n * self.step, "contexts")
            ways, number = Counter(), p**n
            for j in range(n + 1):
                ways[self.add(x, y, n - j, j)] += number
                number = number * q * (n - j) // (p * (j + 1))
            return ways
        while n:
            ways = self.convolve(ways, once) if n & 1 else ways
            n >>= 1
            once = self.convolve(once, once) if n else once
        return ways
def contexts(queries: Sequence[Query], group: Sequence[int]) -> list[dict[Vector, int]]:
    """Return, for each value of a group of records, the number of contexts by query values.
    A context is an assignment of the other records, and a key has a place for each query. Values of
    the group are in product order. Additive queries are convolved, others counted one by one."""
    sizes = queries[0].sizes
    READ.work(len(sizes) + (len(group) + 16) * math.prod(sizes[i] for i in group), "contexts")
    values = itertools.product(*(range(sizes[i]) for i in group))
    counts: dict[Vector, Counter[Vector]] = {v: Counter() for v in values}
    if any(q.totals is None for q in queries):
        READ.work(queries[0].space * len(group), "contexts")
        keys = zips(*(q.listing() for q in queries))
        for x, key in zips(itertools.product(*map(range, sizes)), keys):
            counts[tuple(x[i] for i in group)][key] += 1
        return list(counts.values())
    joint = Sum(queries)
    others = Counter(joint.vectors[i] for i in set(range(len(sizes))) - set(group))
    parts = sorted((joint.power(vectors, n) for vectors, n in others.items()), key=len)
    ways = functools.reduce(joint.convolve, parts) if parts else {joint.nothing: 1}
    READ.work(8 * len(counts) * (len(ways) + len(group)) * joint.step, "contexts")
    for value, mine in counts.items():
        chosen = (joint.vectors[i][a] for i, a in zips(group, value))
        start = functools.reduce(joint.add, chosen, joint.nothing)
        for total, number in ways.items():
            mine[joint.places(joint.add(start, total))] += number
    return list(counts.values())
class Channel:
    """A row of probabilities for each value of a query, or a box; `order[v]` is it as stored."""
    def __init__(self, data: Any, query: Query, ends: str = "matrix") -> None:
        stored, outputs, *given = fields(data, f"inputs outputs {ends}")
        inputs, self.outputs = places(stored, "inputs"), list(places(outputs, "outputs"))
        need(set(inputs) == set(query.values), "the channel's inputs are not the query's values")
        given = [a_list(matrix, "a matrix", len(inputs)) for matrix in given]
        both = [[a_list(m[inputs[v]], "a row", len(self.outputs)) for m in given]
                for v in query.values]
        self.boxes = [box(*row) for row in both] if len(given) == 2 else []
        self.rows: Any = self.boxes or [law(row, "a row of the channel") for row, in both]
        self.order = [tuple(numbers(list(itertools.chain(*row)), "a row")) for row in both]
class Lumped:
    """The lumped problem of one group of records.
    Groups of contexts with equal rows are listed value by value, and for each value in
    lexicographic order of their rows: `rows`, `order` (as stored), `counts` (how many contexts),
    `values`. `of[a]` are the groups of value a."""
    def __init__(self, query: Query, channel: Channel, group: Sequence[int]) -> None:
        rank = {row: i for i, row in enumerate(sorted(set(channel.order)))}
        first = {rank[row]: v for v, row in enumerate(channel.order)}
        self.kinds, self.counts, self.of = [], [], []
        self.boxes, self.fibers = channel.boxes, contexts([query], group)
        self.kind_of = [rank[row] for row in channel.order]
        for counted in self.fibers:
            merged: Counter[int] = Counter()
            for (place,), number in counted.items():
                merged[self.kind_of[place]] += number
            self.of.append(range(len(self.kinds), len(self.kinds) + len(merged)))
            self.kinds += sorted(merged)
            self.counts += [merged[kind] for kind in sorted(merged)]
        self.size, self.outputs = len(self.of), len(channel.outputs)
        self.values = [a for a, groups in enumerate(self.of) for _ in groups]
        self.rows = [channel.rows[first[kind]] for kind in self.kinds]
        self.order = [channel.order[first[kind]] for kind in self.kinds]
        logs = {m: log_ratio(m, 1) for m in set(self.counts)}
        self.log_counts = [logs[m] for m in self.counts]
    def content(self) -> list[list[tuple[int, int]]]:
        """Return rows and counts of each value, in a canonical order: equal ones leak equally."""
        return sorted([(self.kinds[g], self.counts[g]) for g in groups] for groups in self.of)
    def masses(self, w: Law) -> list[list[Fraction]]:
        """Return the mass of each value of the group with each value of the query."""
        at, found = {key: g for g, key in enumerate(zips(self.values, self.kinds))}, []
        for a, counted in enumerate(self.fibers):
            found.append([Fraction(0)] * len(self.kind_of))
            for (v,), number in counted.items():
                g = at[a, self.kind_of[v]]
                found[a][v] = Fraction(w.weights[g] * number, w.total * self.counts[g])
        return found
def required_groups(query: Query, size: int) -> list[Vector]:
    """Return groups of records such that every group of that size leaks as much as one of them."""
    members: dict[Any, list[int]] = {}
    for i, kind in enumerate(query.kinds):
        members.setdefault(kind, []).append(i)
    chosen: list[Vector] = [()]
    for mine in members.values():
        chosen = [(*one, *mine[:n]) for one in chosen
                  for n in range(min(len(mine), size - len(one)) + 1)]
        need(len(chosen) <= LARGEST_GROUPS, "too many groups of records")
    return [one for one in chosen if len(one) == size]

# -------- Gains: functions of the distribution of a secret; with -H the gain is the leakage.
GAINS = {"shannon": ("", "nats"), "guess": ("", "probability"), "tries": ("tries", "probability"),
         "gini": ("", "probability"), "matrix": ("table", "gain"), "arimoto": ("alpha", "gain")}
class Gain:
    """A convex G, with G(c r) = c G(r), and the form in which it is measured.
    r is a tangent if <r, s> <= G(s) for every measure s; rounding its entries down keeps that.
    `actions(k)` are linear functions whose maximum is G, for gains on k values with at most 64."""
    def __init__(self, stored: Any, form: Any) -> None:
        kind: Any = stored.get("kind") if isinstance(stored, dict) else None
        known = isinstance(kind, str) and kind in GAINS
        need(known, f"this checker does not know the gain {kind!r:.60}", UnknownError)
        need(form in ("posterior", "rise", "factor"), "another form of a gain")
        own, unit = GAINS[kind]
        _, *rest = fields(stored, f"kind {own}")
        self.kind, self.form, self.tries, self.alpha = kind, form, 1, Fraction(0)
        self.table: list[list[Fraction]] = []
        self.unit = "times" if form == "factor" else unit
        self.leakage = kind == "shannon" and form == "rise"
        self.least = {"posterior": -math.inf, "rise": 0, "factor": FX.one}[form]
        if kind == "tries":
            self.tries = integer(rest[0], "tries")
            need(self.tries > 0, "a guess without a try")
        elif kind == "matrix":
            self.table = [numbers(row, "a row of gains") for row in a_list(rest[0], "the gains")]
            need(self.table and self.table[0], "a table without gains")
        elif kind == "arimoto" and rest[0] != "infinity":
            self.alpha = rational(rest[0], "the order of a norm")
            need(self.alpha > 1, "the order of a norm is 1 or less")
        self.guess = kind in ("guess", "tries") or (kind == "arimoto" and not self.alpha)
    def above(self, law: Sequence[Interval]) -> int:  # G of a distribution, rounded up
        if self.guess:
            return sum(sorted(hi for _, hi in law)[-self.tries :])
        if self.kind == "matrix":
            return max(plus(times(fixed(g), x) for g, x in zips(row, law))[1] for row in self.table)
        if self.kind == "gini":
            return plus(times(x, x) for x in law)[1]
        if self.kind == "arimoto":
            logs = [log_ratio(hi, FX.one)[1] for _, hi in law if hi > 0]
            return exp(log_sum_exp(logs, 1 / self.alpha))[1]
        return plus(map(x_log_x, law))[1]
    def tangent(self, weights: Sequence[Any]) -> list[int]:
        """Return a tangent that nearly touches G at the distribution proportional to some weights.
        For a norm it is (rho / |rho|)^(alpha - 1), by Hoelder's inequality."""
        p = common(weights if any(weights) else [1] * len(weights))
        if self.guess:
            best = sorted(range(len(p.weights)), key=lambda a: (-p.weights[a], a))[: self.tries]
            return [FX.one * (a in best) for a in range(len(p.weights))]
        if self.kind == "matrix":
            best = max(self.table, key=lambda row: dot(row, p.weights))
            return [fixed(g)[0] for g in best]
        if self.kind == "gini":
            square = dot(p.weights, p.weights)
            return [((2 * w * p.total - square) << FX.bits) // p.total**2 for w in p.weights]
        if self.kind == "arimoto":
            size = log_sum_exp([x[1] for x in p.logs() if x], 1 / self.alpha)
            return [exp(-scaled(size - x[0], self.alpha - 1))[0] if x else 0 for x in p.logs()]
        p = common([w << FX.bits or 1 for w in p.weights])  # a nearby distribution without zeros
        return [log_ratio(w, p.total)[0] for w in p.weights]
    def actions(self, k: int) -> list[list[int]]:
        need(all(len(row) == k for row in self.table), "gains of another number of values")
        if self.guess and math.comb(k, min(self.tries, k)) <= 64:
            tried = itertools.combinations(range(k), min(self.tries, k))
            return [[FX.one * (a in chosen) for a in range(k)] for chosen in tried]
        few = self.table if len(self.table) <= 64 else []
        return [[fixed(g)[0] for g in row] for row in few]
    def usual(self, k: int) -> list[list[int]]:  # or a tangent at the uniform distribution
        mean = [self.tries * FX.one // k] * k  # for guesses the mean over all sets of guesses
        return self.actions(k) or [mean if self.guess else self.tangent([1] * k)]
    def told(self, posterior: int, prior: Sequence[Interval]) -> float:
        """Return a number below the gain, from one below sum_y s_y G(rho_y) and a distribution."""
        if self.form == "posterior":
            return posterior
        before = self.above(prior)
        if self.form == "rise":
            return max(posterior - before, 0)
        prove(before > 0, "a factor of what is not proved to be positive")
        return max((posterior << FX.bits) // before, FX.one)
    def below(self, joint: list[list[Interval]]) -> float:
        """Return a number below the gain under a joint distribution s_ay; G(s_y) >= <r, s_y>."""
        columns = [(self.tangent([lo for lo, _ in s]), s) for s in zips(*joint)]
        terms = (times((r, r), x) for tangent, s in columns for r, x in zips(tangent, s))
        return self.told(plus(terms)[0], [plus(own) for own in joint])
LEAKAGE = Gain({"kind": "shannon"}, "rise")

# -------- Upper bounds on a leakage: any multipliers prove one. All of these are rounded up.
def lemma_bound(lumped: Lumped, c: Sequence[int], log_counts: Sequence[Interval], kappa: Fraction,
                lam: Fraction, floor: Fraction) -> int:
    """Return (k + l) log sum_a exp(phi_a / (k + l)) - l b, phi_a = l log sum_g m exp(c / l).
    It is at least k H(pi) + <w, c> if F(w) >= b (docs/theory/upper_bounds.md, Lemma)."""
    terms = [x + scaled(log_m[1], lam) for x, log_m in zips(c, log_counts)]
    phi = [log_sum_exp(terms[mine.start : mine.stop], lam) for mine in lumped.of]
    return log_sum_exp(phi, kappa + lam) - fixed(lam * floor)[0]
def choices_bound(lumped: Lumped, stored: Any) -> float:
    """Return the largest max_a D(R_{a,g(a)} || sum_a pi_a R_{a,g(a)}) over the choices g.
    Without a floor the leakage is the largest capacity of a choice of one group for each value.
    Rounding t down makes it smaller than a distribution, which can only raise the divergence."""
    laws = table(stored, "choices", lumped.size)
    need(len(laws) == math.prod(map(len, lumped.of)), "choices are not as many as there are")
    READ.work(len(laws) * lumped.size * lumped.outputs, "choices")
    rows = [fixed_law(row) for row in lumped.rows]
    gains, worst = [-entropy(row)[0] for row in rows], 0
    for groups, weights in zips(itertools.product(*lumped.of), laws):
        pi = law(weights, "a distribution of choices")
        if len({lumped.kinds[g] for g in groups}) == 1:
            continue  # t is the only row
        chosen = [rows[g] for g in groups], [gains[g] for g in groups]
        worst = max(worst, *divergences(*chosen, pi))
    return worst
def divergences(rows: list[list[Interval]], gains: list[int], pi: Law) -> list[float]:
    """Return numbers above D(R_a || sum_a pi_a R_a), for `gains` above -H(R_a)."""
    output = [dot(pi.weights, (r[0] for r in column)) // pi.total for column in zips(*rows)]
    log_t, found = [log_ratio(t, FX.one)[0] if t else None for t in output], []
    for gain, row in zips(gains, rows):
        missed = any(r[1] and x is None for r, x in zips(row, log_t))
        small = missed and all(pi.weights)
        need(not small, "a probability is too small for this precision", NarrowError)
        cost = dot((r[1] for r in row), (min(x or 0, 0) for x in log_t))
        found.append(math.inf if missed else gain - (cost >> FX.bits))
    return found
def dataset_bound(lumped: Lumped, stored: Any, floor: Fraction) -> float:
    """Return the lemma's bound with k = 1 - q and c = q D(R || t): I(A;Y) <= I(X;Y), H(A)."""
    multipliers, output = fields(stored, "multipliers output")
    lam, q = map(nonnegative, numbers(multipliers, "multipliers", 2))
    prove(q <= 1, "q is not from 0 to 1")
    t = law(output, "an output distribution", lumped.outputs)
    log_t = t.logs()
    known = {row: scaled(divergence(row, t, log_t)[1], q) for row in set(lumped.rows)}
    c = [known[row] for row in lumped.rows]
    return lemma_bound(lumped, c, lumped.log_counts, 1 - q, lam, floor)
Merged = namedtuple("Merged", "rows extra price same")  # the amounts added for each group, for all
def merge(lumped: Lumped, stored: Any, output: Any = None) -> Merged:
    """Return the rows with the outputs of each part added up, and a bound on what that hides.
    I(A;Y) <= I(A;Y') + I(A,G;Y|Y'), and the last term is at most the largest log(beta / alpha),
    where the shares of an output in its part lie between alpha and beta over all rows in which the
    part occurs; or, with t on the outputs, at most <w, e> for e = D(R || t) - D(R' || t')."""
    parts = [whole(p, "a part of the outputs") for p in a_list(stored, "outputs")]
    chosen = sorted(itertools.chain(*parts))
    prove(chosen == list(range(lumped.outputs)) and all(parts), "outputs: no partition")
    if lumped.boxes:
        plain = output is None and len(parts) == lumped.outputs
        prove(plain and chosen == list(itertools.chain(*parts)), "merged outputs of a set")
        return Merged(lumped.rows, [0] * len(lumped.rows), 0, False)
    price, extra = 0, dict.fromkeys(lumped.rows, 0)
    coarse = {row: row.merged(parts) for row in extra}
    if output is not None:
        t = law(output, "an output distribution", lumped.outputs)
        together = t.merged(parts)
        log_t, log_together = t.logs(), together.logs()
        for row in extra:
            cost = divergence(coarse[row], together, log_together)
            extra[row] = minus(divergence(row, t, log_t), cost)[1]
    for i, y in ((i, y) for i, part in enumerate(parts) if len(part) > 1 for y in part):
        some = [r for r in extra if coarse[r].weights[i] and output is None]
        shares = [Fraction(r.weights[y], coarse[r].weights[i]) for r in some] or [Fraction(0)]
        if max(shares) > min(shares) == 0:
            raise InfiniteError
        if max(shares):
            price = max(price, log_ratio(*(max(shares) / min(shares)).as_integer_ratio())[1])
    known, same = {row: fixed_law(coarse[row]) for row in extra}, len(parts) == lumped.outputs
    same = same and chosen == list(itertools.chain(*parts))
    return Merged([known[r] for r in lumped.rows], [extra[r] for r in lumped.rows], price, same)
def support(row: Sequence[Interval], slopes: Sequence[int]) -> int:  # over all distributions in it
    return (dot(filled(row, slopes), slopes) >> FX.bits) + 1
class Cell:
    """A simplex: its vertices (whole numbers over one), and a gain G at each, rounded up.
    A point is a vertex in fixed point, rounded down: the exact entry is at most one unit more."""
    def __init__(self, gain: Gain, vertices: list[Any], points: list[Any], bends: list[int]):
        self.gain, self.vertices, self.points, self.bends = gain, vertices, points, bends
    def cut(self, i: int, j: int, t: Fraction) -> list["Cell"]:
        """Return the parts of a cut at (1-t) V_i + t V_j, which replaces V_j first, then V_i."""
        (left, first), (right, second) = self.vertices[i], self.vertices[j]
        both = math.lcm(first, second)
        a, b = (t.denominator - t.numerator) * (both // first), t.numerator * (both // second)
        new, below = tuple(a * x + b * y for x, y in zips(left, right)), both * t.denominator
        prove(below.bit_length() <= LARGEST_VERTEX, "the tree is too deep")
        READ.work(below.bit_length() ** 2 >> 14, "cuts")
        vertex = [fixed(Fraction(x, below)) for x in new]
        point, bend = [lo for lo, _ in vertex], self.gain.above(vertex)
        children = []
        for place in (j, i):
            mine = self.vertices.copy(), self.points.copy(), self.bends.copy()
            mine[0][place], mine[1][place], mine[2][place] = (new, below), point, bend
            children.append(Cell(self.gain, *mine))
        return children
    @functools.cached_property
    def inverse(self) -> list[list[int]]:
        """The approximate inverse of the matrix of vertices; no proof depends on its accuracy."""
        n, extra = len(self.points), FX.bits + 32
        units = [[int(i == j) << extra for j in range(n)] for i in range(n)]
        rows = [[x << 32 for x in p] + unit for p, unit in zips(self.points, units)]
        for i in range(n):
            pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
            rows[i], rows[pivot] = rows[pivot], rows[i]
            need(rows[i][i], "a cell is too thin for this precision", NarrowError)
            rows[i] = [(x << extra) // rows[i][i] for x in rows[i]]
            for r, row in enumerate(rows):
                if r != i and row[i]:
                    rows[r] = [x - (row[i] * y >> extra) for x, y in zips(row, rows[i])]
        return [row[n:] for row in rows]
    def slope(self, slack: Sequence[int]) -> list[int]:
        """Return nu with <V_j, nu> >= G(V_j) at every vertex: near mu_j + G(V_j), then raised.
        Vertices sum to one, so adding one number to all of nu adds it to every <V_j, nu>. A vertex
        is between its point and one unit more in every entry."""
        wanted = [m + b for m, b in zips(slack, self.bends)]
        nu = [dot(row, wanted) >> (FX.bits + 32) for row in self.inverse]
        below = sum(x for x in nu if x < 0)
        reached = [(dot(nu, point) + below) >> FX.bits for point in self.points]
        missing = max(0, *(bend - x for bend, x in zips(self.bends, reached)))
        return [x + missing for x in nu]
def symmetries_of(lumped: Lumped, stored: list[list[int]]) -> tuple[list[Any], list[Interval]]:
    """Return the symmetries, checked, and log m, with every m raised to the largest of its orbit.
    A symmetry permutes the values and the outputs such that every row of a value, moved, is a row
    of the image. The larger m only enlarge the set of adversaries, which becomes symmetric."""
    k, n = lumped.size, lumped.outputs
    position = {key: g for g, key in enumerate(zips(lumped.values, lumped.order))}
    orbit = list(range(len(lumped.rows)))
    found = [(row[:k], row[k:]) for row in stored]
    READ.work(len(found) * len(orbit) * (k + n + len(orbit) // 16), "symmetries")
    for p, s in found:
        prove(sorted(p) == list(range(k)), "a symmetry is no permutation of the values")
        prove(sorted(s) == list(range(n)), "a symmetry is no permutation of the outputs")
        for g, (a, row) in enumerate(zips(lumped.values, lumped.order)):
            image = position.get((p[a], tuple(w for _, w in sorted(zips(s, row)))))
            prove(image is not None, "a symmetry does not take rows to rows")
            joined = {orbit[g], orbit[image or 0]}
            orbit = [min(joined) if o in joined else o for o in orbit]
    largest = [max(m for m, other in zips(lumped.counts, orbit) if other == o) for o in orbit]
    return found, [log_ratio(m, 1) for m in largest]
def moved_away(cells: Sequence[Cell], p: Sequence[int], s: Sequence[int]) -> bool:
    """Whether a symmetry increases T for all posteriors in the cells.
    T(rho) = sum_{y,a} (n - y) a rho_y(a). Of all images of an optimal adversary under the
    symmetries take one with the largest T: its posteriors are not in these cells."""
    n, total = len(cells), 0
    for y, cell in enumerate(cells):
        gains = [(n - y) * a - (n - s[y]) * p[a] for a in range(len(p))]
        slack = sum(g for g in gains if g > 0)
        total += max(dot(gains, point) + slack for point in cell.points)
    return total < 0
def leaves_of(packed: Any, width: int, entries: int) -> list[list[Any]]:
    """Return the rows of a tree's leaves. Each counts steps for each entry of the problem: many
    steps if the file is too short to have one character for each of their numbers."""
    rows = table(packed, "leaves", width)
    missing = max(len(rows) - len(packed["data"]) // width, 0)
    READ.work(entries * (len(rows) + 32 * missing), "leaves")
    return rows
def replay(nodes: Iterable[Any], cuts: Any, leaves: list[Any], start: list[Any],
           split: Callable[..., Any]) -> Iterable[tuple[list[Any], list[Any]]]:
    """Yield for each leaf of a tree in preorder the restriction that it is about, and its row.
    A node has the place of the part that is cut, or -1. `split` returns two parts that cover it."""
    where, rows, stack = iter(numbers(cuts, "cuts")), iter(leaves), [start]
    for node in nodes:
        prove(stack, "the tree goes on after its end")
        here, (y, *how) = stack.pop(), node if isinstance(node, list) else [node]
        if y == -1 and all(i == -1 for i in how):
            row = next(rows, None)
            prove(row is not None, "the tree has more leaves than rows")
            yield here, row or []
            continue
        t = next(where, None)
        prove(t is not None and 0 <= y < len(here), "the tree has no such cut")
        first, second = split(here[y], *how, t)
        stack += [[*here[:y], child, *here[y + 1 :]] for child in (second, first)]
    prove(not stack and next(where, None) is None, "the tree ends too early")
    prove(next(rows, None) is None, "the tree has fewer leaves than rows")
def cells_bound(lumped: Lumped, stored: Any, floor: Fraction, gain: Gain) -> float:
    """Return the largest bound of the leaves of a tree of cells for the posteriors.
    In a leaf the posterior of each output y is in a simplex, and <V, nu_y> >= G(V) at its
    vertices. As G is convex, sum_y s_y G(rho_y) <= <w, c> with c = sum_y R(y) nu_y(a). For the
    leakage, G = -H, H(A) is added, and the lemma with k = 1 gives the bound. For another gain
    -t G(pi) <= -t <r, pi> for a mixture r of tangents, and the lemma with k = 0 gives it.
    The two parts of a cut cover the simplex, so that the leaves cover everything."""
    more = "output symmetries" if gain.leakage else "tangents times least"
    parts, splits, cuts, leaves, *rest = fields(stored, "outputs splits cuts leaves", more)
    output, moves = rest[:2] if gain.leakage else (None, None)
    merged = merge(lumped, parts, output)
    alone = gain.leakage or all(len(part) == 1 for part in parts)
    prove(alone, "merged outputs of another gain than the information")
    n, k, symmetries, log_counts = len(merged.rows[0]), lumped.size, [], lumped.log_counts
    if moves is not None:
        prove(merged.same and output is None, "symmetries of merged outputs")
        symmetries, log_counts = symmetries_of(lumped, table(moves, "symmetries", k + n, "i"))
    def split(cell: Cell, i: int, j: int, t: Fraction) -> list[Cell]:
        inside = 0 < t < 1 and 0 <= i < k and 0 <= j < k and i != j
        prove(inside, "a cut is not between two vertices of a cell")
        return cell.cut(i, j, t)
    mixture = Mixture(gain, k, *([None] * 3 if gain.leakage else rest))
    width = n * k + mixture.width
    rows = leaves_of(leaves, 1 + width, width * (1 + len(gain.table)) + len(lumped.rows))
    corners = [tuple(int(i == j) for j in range(k)) for i in range(k)]
    points = [[FX.one * x for x in v] for v in corners]
    bends = [gain.above(list(zips(point, point))) for point in points]
    simplex = Cell(gain, [(v, 1) for v in corners], points, bends)
    worst = -math.inf
    for cells, leaf in replay(table(splits, "splits", 3, "i"), cuts, rows, [simplex] * n, split):
        lam = Fraction(leaf[0])
        if lam < 0:
            index = -1 - lam
            left_out = index.denominator == 1 and index < len(symmetries) and not any(leaf[1:])
            prove(left_out, "a multiplier is negative")
            prove(moved_away(cells, *symmetries[int(index)]), "no symmetry moves a leaf away")
            continue
        slack = [fixed(nonnegative(Fraction(m)))[0] for m in leaf[1 : 1 + n * k]]
        nu = list(zips(*(cell.slope(slack[y * k : y * k + k]) for y, cell in enumerate(cells))))
        taken, both = mixture.of(leaf[1 + n * k :]), zips(merged.rows, lumped.values, merged.extra)
        c = [support(row, nu[a]) + more - taken[a] for row, a, more in both]
        kappa = Fraction(int(gain.leakage))
        worst = max(worst, lemma_bound(lumped, c, log_counts, kappa, lam, floor))
    return mixture.bound(worst + merged.price) if worst > -math.inf else math.inf
class Mixture:
    """What the leaves of a tree subtract for the gain of the prior: t sum_i theta_i r_i.
    The r_i are the actions of a gain, or else tangents at points that a leaf stores. For a factor
    sum_y s_y G(rho_y) <= t G(pi) + U, so that it is at most t + U / g, where G >= g > 0."""
    def __init__(self, gain: Gain, k: int, tangents: Any, factor: Any, least: Any) -> None:
        self.gain, self.k, self.rows, self.least, self.number = gain, k, gain.actions(k), least, 0
        form, self.t = gain.form, Fraction(1)
        need((factor is None and least is None) or form == "factor", "a part of factors")
        if form == "factor":
            self.t = nonnegative(factor, "the factor")
        if not gain.leakage and form != "posterior":
            self.number = len(self.rows) or integer(tangents, "the number of tangents")
            need(self.number > 0, "no tangents")
        own = self.number > 0 and not self.rows
        need(own or tangents is None, "tangents of a gain that has actions, or needs none")
        self.width = self.number * (1 + k * own)
    def of(self, stored: list[Any]) -> list[int]:  # rounded down
        if not self.number:
            return [0] * self.k
        exact, k, rows = list(map(Fraction, stored)), self.k, self.rows
        if not rows:
            places = range(self.number, self.width, k)
            points = [[nonnegative(x) for x in exact[i : i + k]] for i in places]
            need(all(map(any, points)), "a point that is no distribution")
            rows = list(map(self.gain.tangent, points))
        return [-scaled(-r, self.t) for r in mixed(exact[: self.number], rows)]
    def bound(self, most: float) -> float:
        if self.gain.form != "factor":
            return most
        rows = self.gain.usual(self.k)
        g = min(mixed(numbers(self.least, "the weights of the least gain"), rows))
        prove(g > 0, "the gain is not proved to be positive")
        return fixed(self.t)[1] - (-max(int(most), 0) << FX.bits) // g
def mixed(stored: list[Fraction], rows: list[list[int]]) -> list[int]:  # of tangents, by weights
    need(len(stored) == len(rows) and any(stored), "a mixture of nothing")
    p = common([nonnegative(w, "a weight of a mixture") for w in stored])
    return [dot(p.weights, column) // p.total for column in zips(*rows)]
def ceiling(gain: Gain, k: int) -> float:
    """Return an upper bound on a gain on k values, for all channels and adversaries.
    sum_y s_y G(rho_y) <= sum_a pi_a G(e_a), for G is convex, and G(pi) >= <r, pi>."""
    if gain.leakage:
        return log_ratio(k, 1)[1]
    corners = [gain.above([fixed(int(a == b)) for b in range(k)]) for a in range(k)]
    if gain.form == "posterior":
        return max(corners)
    rows = gain.usual(k)
    r = mixed([Fraction(1)] * len(rows), rows)
    if gain.form == "rise":
        return max(corner - x for corner, x in zips(corners, r))
    return -((-max(corners) << FX.bits) // min(r)) if min(r) > 0 else math.inf
def sharing_bound(lumped: Lumped, stored: Any, floor: Fraction) -> float:
    """Return l log sum_a exp(phi_a / l) - l b, phi_a >= max_v D(v R_a || t) + l (H(v)+<v, log m>).
    I(w) <= sum_a pi_a D(r_a || t) for every t, and then the lemma's last step."""
    parts, multiplier, output, values = fields(stored, "outputs multiplier output values")
    merged, lam = merge(lumped, parts), rational(multiplier, "a multiplier")
    prove(lam > 0, "the multiplier of sharing is not positive")
    t = law(output, "an output distribution", len(merged.rows[0]), positive=True)
    log_t, phi = [log_ratio(w, t.total) for w in t.weights], []
    for mine, one in zips(lumped.of, a_list(values, "values", lumped.size)):
        part = slice(mine.start, mine.stop)
        way = tangent_bound if isinstance(one, dict) and "law" in one else chords_bound
        phi.append(way(merged.rows[part], one, log_t, lumped.log_counts[part], lam))
    return log_sum_exp(phi, lam) - fixed(lam * floor)[0] + merged.price
def tangent_bound(rows: list[list[Interval]], stored: Any, log_t: list[Interval],
                  log_counts: list[Interval], lam: Fraction) -> int:
    """Return phi by a tangent at v0 = law, r0 = v0 R.
    D(v R || t) = D(v R || r0) + sum_y (v R)_y log(r0_y / t_y), and D(v R || r0) <= eta D(v || v0)
    (Ordentlich and Polyanskiy 2021: the contraction coefficient of a channel is that of two rows
    P, Q, at most 1 - (sum sqrt(P Q))^2). The rest is linear in v except for (l - eta) H(v)."""
    v0 = law(fields(stored, "law")[0], "a distribution of sharing", len(rows), positive=True)
    r0 = []
    for column in zips(*rows):
        lo, hi = (dot(v0.weights, (r[end] for r in column)) for end in (0, 1))
        r0.append((lo // v0.total, -(-hi // v0.total)))
    small = any(lo <= 0 < hi for lo, hi in r0)
    need(not small, "a probability is too small for this precision", NarrowError)
    eta = FX.one
    if len(rows) <= 316:
        roots = [[math.isqrt(lo << FX.bits) for lo, _ in row] for row in rows]
        near = [dot(*two) >> FX.bits for two in itertools.combinations(roots, 2)]
        eta -= min([FX.one, *near]) ** 2 >> FX.bits
    scale = lam - Fraction(eta, FX.one)
    prove(scale >= 0, "a tangent needs a multiplier of at least eta")
    gains = [(log_ratio(lo, FX.one)[0] - t[1], log_ratio(hi, FX.one)[1] - t[0]) if hi else (0, 0)
             for (lo, hi), t in zips(r0, log_t)]
    terms = []
    for row, w, log_m in zips(rows, v0.weights, log_counts):
        cost = plus(times(r, gain) for r, gain in zips(row, gains))[1]
        inside = times((eta, eta), minus(log_m, log_ratio(w, v0.total)))[1]
        terms.append(cost + inside + scaled(log_m[1], scale))
    return log_sum_exp(terms, scale)
def chords_bound(rows: list[list[Interval]], stored: Any, log_t: list[Interval],
                 log_counts: list[Interval], lam: Fraction) -> int:
    """Return phi by a tree of intervals for the entries of r = v R.
    h(r) = r log(r / t) is convex, so h(r) - nu r is largest at an endpoint of r's interval; the
    rest, <v, R nu> + l (H(v) + <v, log m>), is at most l log sum_g m exp(<R_g, nu> / l)."""
    nodes, cuts, leaves = fields(stored, "nodes cuts leaves")
    leaves = leaves_of(leaves, len(log_t), len(log_t) + len(rows))
    @functools.cache
    def h(y: int, r: int) -> int:
        return x_log_x((r, r))[1] + times((r, r), (-log_t[y][1], -log_t[y][0]))[1] if r > 0 else 0
    def split(interval: Interval, where: Fraction) -> tuple[Interval, Interval]:
        cut = min(max(fixed(where)[0], interval[0]), interval[1])
        return (interval[0], cut), (cut, interval[1])
    start = [(min(r[0] for r in column), max(r[1] for r in column)) for column in zips(*rows)]
    bounds = []
    for intervals, leaf in replay(unpack(nodes, "nodes", 1, "i")[0], cuts, leaves, start, split):
        nu = [fixed(Fraction(v))[0] for v in leaf]
        pairs = enumerate(zips(nu, intervals))
        off = sum(max(h(y, r) - (v * r >> FX.bits) for r in ends) for y, (v, ends) in pairs)
        terms = [support(row, nu) + scaled(m[1], lam) for row, m in zips(rows, log_counts)]
        bounds.append(log_sum_exp(terms, lam) + off)
    return max(bounds)

# -------- Sets of channels: each row is any distribution in a box, independently of the others.
def box(low: Any, high: Any) -> tuple[Interval, ...]:
    lower, upper = numbers(low, "a lower bound"), numbers(high, "an upper bound", len(low))
    need(all(0 <= x <= y <= 1 for x, y in zips(lower, upper)), "a box that is none")
    some = sum(lower) <= 1 <= sum(upper)  # the first sum allows for a rounding
    need(some, "this checker does not know boxes without a distribution", UnknownError)
    return tuple((fixed(x)[0], fixed(y)[1]) for x, y in zips(lower, upper))
def filled(row: Sequence[Interval], slopes: Sequence[Any]) -> list[int]:
    """Return the q of a box with the largest <q, slopes>, by filling up the lower bounds."""
    q = [lo for lo, _ in row]
    left = FX.one - sum(q)
    for y in sorted(range(len(q)), key=slopes.__getitem__, reverse=True):
        taken = min(row[y][1] - q[y], left)
        q[y], left = q[y] + taken, left - taken
    return q
STEPS, CUTS = 24, 6
def below_of_set(gain: Gain, masses: list[list[Fraction]], rows: list[Any]) -> float:
    """Return a number below a gain, where (a, row v) has the mass `masses[a][v]`.
    sum_y s_y G(rho_y) >= sum s_ay r_ya for all tangents r_y, which is linear in the rows. Good
    tangents touch G at the posteriors under the least revealing rows, which conditional gradients
    approximate."""
    READ.work(STEPS * len(masses) * len(rows) * len(rows[0]), "a set of channels")
    columns, best, q = list(zips(*masses)), -math.inf, []
    for row in rows:
        left, room = FX.one - sum(lo for lo, _ in row), sum(hi - lo for lo, hi in row)
        q.append([lo + (hi - lo) * left // max(room, 1) for lo, hi in row])
    for step in range(STEPS):
        tangents = [gain.tangent([dot(own, column) + 1 for own in masses]) for column in zips(*q)]
        prices = [[-plus(times(fixed(m), (r, r)) for m, r in zips(own, tangent))[0]
                   for tangent in tangents] for own in columns]
        best = max(best, -sum(map(support, rows, prices)))
        worst = list(map(filled, rows, prices))
        q = [[x + 2 * (y - x) // (step + 3) for x, y in zips(*two)] for two in zips(q, worst)]
    return gain.told(int(best), [fixed(sum(own)) for own in masses])
def divergence_above(row: Sequence[Interval], log_t: Sequence[Interval | None], cuts: int) -> int:
    """Return a number above D(q || t) for all distributions q of a box.
    h(q) = q log(q / t) is convex and so below its chord. A sum of chords is largest where all q but
    one are at endpoints. There it is sharp except for that q, for which the box is cut."""
    offset, slopes = 0, []
    for ends, log in zips(row, log_t):
        if log is None and ends[1]:
            raise InfiniteError
        h = [x_log_x((q, q))[1] - times((q, q), log or (0, 0))[0] for q in ends]
        slopes.append(((h[1] - h[0]) << FX.bits) // max(ends[1] - ends[0], 1))
        offset += max(x - (slopes[-1] * q >> FX.bits) for x, q in zips(h, ends))
    best, q = offset + support(row, slopes), filled(row, slopes)
    for y, (x, (lo, hi)) in enumerate(zips(q, row)):
        if cuts and lo < x < hi:
            parts = ([*row[:y], part, *row[y + 1 :]] for part in ((lo, x), (x, hi)))
            best = min(best, max(divergence_above(part, log_t, cuts - 1) for part in parts))
    return best

# -------- Leakage about records: both bounds.
Ends = namedtuple("Ends", "lower upper")  # bounds: fixed point, rational, infinite, or None
def enough_doubt(w: Law, log_counts: list[Interval], floor: Fraction, who: str) -> None:
    # F(w) = H(w) + sum w log m >= b
    cells = fixed_law(w)
    doubt = entropy(cells)[0] + plus(times(cell, m) for cell, m in zips(cells, log_counts))[0]
    enough = Fraction(doubt, FX.one) >= floor
    need(enough, f"{who} has less entropy than the floor", NarrowError)
def joint_law(w: Law, rows: list[Law], values: Iterable[Sequence[int]]) -> list[list[Interval]]:
    """Return intervals around s_ay = sum_g w_g R_g(y), the sum over the groups of value a."""
    joint, n = [], len(rows[0].weights)
    for mine in values:
        some = [(rows[g], w.weights[g]) for g in mine if w.weights[g]]
        joint.append([plus(fixed(Fraction(m * r.weights[y], w.total * r.total)) for r, m in some)
                      for y in range(n)])
    return joint
def bounded(way: Callable[..., float], *parts: Any) -> float:
    try:
        return way(*parts)
    except InfiniteError:
        return math.inf
def a_group(values: Any, query: Query, size: int) -> Vector:
    group = tuple(whole(values, "a group of records", size))
    need(len(set(group)) == len(group), "a group of records has one twice")
    need(all(0 <= i < len(query.sizes) for i in group), "a record that does not exist")
    return group
class Audit:  # the leakage of one mechanism about groups of records, for one entropy floor
    def __init__(self, query: Query, channel: Channel, floor: Fraction, size: int, records: Any,
                 gain: Gain = LEAKAGE) -> None:
        need(1 <= size <= len(query.sizes), "groups of another size than records")
        need(records is None or a_list(records, "records"), "no records are audited")
        self.query, self.floor, self.size, self.gain = query, floor, size, gain
        self.records = None if records is None else [a_group(g, query, size) for g in records]
        self.lumped = functools.cache(lambda group: Lumped(query, channel, group))
    def lower(self, stored: Any) -> float:
        """Return a number below the leakage under a witness; refuse unless F(w) >= b is proved."""
        records, weights = fields(stored, "records weights")
        group = a_group(records, self.query, self.size)
        audited = self.records is None or set(group) in map(set, self.records)
        prove(audited, "the witness attacks a group that is not audited")
        lumped = self.lumped(group)
        w = law(weights, "the witness", len(lumped.rows))
        enough_doubt(w, lumped.log_counts, self.floor, "the witness")
        if lumped.boxes:
            return below_of_set(self.gain, lumped.masses(w), lumped.boxes)
        return self.gain.below(joint_law(w, lumped.rows, lumped.of))
    def group_bound(self, lumped: Lumped, entry: Any) -> float:
        """Return the least of the bounds for all channels, and of the bounds of an entry."""
        ways = (dataset_bound, functools.partial(cells_bound, gain=self.gain), sharing_bound)
        _, choices, *rest = fields(entry, "records", "choices dataset cells sharing")
        bounds: list[float] = [ceiling(self.gain, lumped.size)]
        known = {"records", "cells"} >= set(entry) or not (lumped.boxes or not self.gain.leakage)
        need(known, "this checker knows but cells for a set of channels, or a gain", UnknownError)
        if len(set(lumped.kinds)) == 1 and not lumped.boxes:
            bounds += [self.gain.least] * (self.gain.form != "posterior")  # a constant output
        bounds += [bounded(choices_bound, lumped, choices)] if choices is not None else []
        bounds += [bounded(way, lumped, one, self.floor)
                   for way, one in zips(ways, rest) if one is not None]
        return min(bounds)
    def upper(self, stored: Any) -> float:
        """Return the largest bound of the entries; refuse unless they cover all groups.
        A group is covered if it is listed, or if a listed one leaks exactly as much, because their
        records can be swapped or because their lumped problems are equal. An entry `same_as` says
        that another is covered, which is determined here anyway."""
        worst, covered, listed = self.gain.least, set(), []
        for place, entry in enumerate(a_list(fields(stored, "groups")[0], "groups")):
            if isinstance(entry, dict) and set(entry) == {"same_as"}:
                earlier = 0 <= integer(entry["same_as"], "same_as") < place
                prove(earlier, "same_as is not the place of an earlier entry")
                continue
            need(isinstance(entry, dict), "an entry is no object")
            group = a_group(entry.get("records"), self.query, self.size)
            worst = max(worst, self.group_bound(self.lumped(group), entry))
            covered.add(self.kind(group))
            listed.append(group)
        contents = None
        for group in self.records or required_groups(self.query, self.size):
            if self.kind(group) not in covered:
                contents = contents or [self.lumped(one).content() for one in listed]
                equal = self.lumped(group).content() in contents
                prove(equal, f"no entry covers the records {list(group)}")
        return worst
    def kind(self, group: Vector) -> Any:  # equal if one group becomes the other by swaps
        return tuple(sorted(self.query.kinds[i] for i in group))

# -------- The kinds. Each takes problem, witness and proof and returns what they prove.
def a_matrix(stored: Any, what: str) -> list[Law]:  # a channel, its rows as distributions
    rows = table(stored, what) if isinstance(stored, dict) else a_list(stored, what)
    need(rows and a_list(rows[0], what), f"{what} is empty")
    return [law(row, f"a row of {what}", len(rows[0])) for row in rows]
def capacity(problem: Any, witness: Any, proof: Any) -> Ends:
    """Return bounds on the capacity, I(p, Q) <= C <= max_x D(Q_x || t); for all Q of a set."""
    given = fields(problem, "lower upper" if "lower" in problem else "matrix")
    rows = a_matrix(given[0], "the channel") if len(given) == 1 else []
    both = zips(*(a_list(end, "a matrix") for end in given)) if not rows else []
    boxes = [box(a_list(low, "a row"), high) for low, high in both]
    need(len({*map(len, boxes), *(len(row.weights) for row in rows)}) == 1, "rows do not fit")
    p = law(fields(witness, "input")[0], "the witness", len(boxes or rows))
    t = law(fields(proof, "output")[0], "the output", len((boxes or [rows[0].weights])[0]))
    log_t = t.logs()
    if boxes:
        masses = [[x * (i == j) for j in range(len(boxes))] for i, x in enumerate(p.fractions())]
        READ.work(len(boxes) * len(log_t) << CUTS + 2, "a set of channels")
        most = bounded(lambda: max(divergence_above(row, log_t, CUTS) for row in set(boxes)))
        return Ends(below_of_set(LEAKAGE, masses, boxes), min(most, log_ratio(len(boxes), 1)[1]))
    upper = bounded(lambda: max(divergence(row, t, log_t)[1] for row in set(rows)))
    return Ends(LEAKAGE.below(joint_law(p, rows, [[x] for x in range(len(rows))])), upper)
def record_leakage(problem: Any, witness: Any, proof: Any) -> Ends:
    """Return bounds on the largest leakage about audited records (or groups of them)."""
    mechanism, floor, size, records, known, *_ = fields(
        problem, "mechanism entropy_floor size records", "adversaries gain form")
    need(not known, "this checker does not know what else is known of adversaries", UnknownError)
    bounds = isinstance(mechanism, dict) and "channel_set" in mechanism
    stored, given = fields(mechanism, "query channel_set" if bounds else "query channel")
    query, b = Query(stored), rational(floor, "the entropy floor")
    channel = Channel(given, query, "lower upper" if bounds else "matrix")
    audit = Audit(query, channel, b, integer(size, "size"), records, gain_of(problem))
    return Ends(audit.lower(witness), audit.upper(proof))
def gain_of(problem: Any) -> Gain:
    given = isinstance(problem, dict) and ("gain" in problem or "form" in problem)
    return Gain(problem.get("gain"), problem.get("form")) if given else LEAKAGE
class Independent:
    """Independent records. I(X_i;Y) is convex in the distribution of each other record, so its
    maximum over distributions of record i is, too: it is largest with the others at vertices."""
    def __init__(self, query: Query, channel: Channel) -> None:
        self.sum, self.sizes = Sum([query.as_sum()]), query.sizes
        self.vectors, self.step, self.channel = self.sum.vectors, self.sum.step, channel
        self.rows = [fixed_law(row) for row in channel.rows]
    def total(self, laws: Iterable[tuple[Any, Law, int]]) -> tuple[dict[Vector, int], int]:
        """Return the distribution of the sum over records: vectors, probabilities, number."""
        laws = list(laws)
        whole = math.prod(p.total**n for _, p, n in laws)
        self.sum.step = self.step + (whole.bit_length() >> 8)
        parts = [self.sum.power(v, n, p.weights) for v, p, n in laws]
        return functools.reduce(self.sum.convolve, parts, {self.sum.nothing: 1}), whole
    def given(self, i: int, ways: dict[Vector, int], whole: int) -> list[list[Interval]]:
        """Return the row of each value of record i, given the distribution of the others' sum."""
        vectors, n, rows = self.vectors[i], len(self.rows[0]), []
        READ.work(len(vectors) * (len(ways) * self.sum.step + len(self.rows) * n), "rows")
        for vector in vectors:
            mass: Counter[int] = Counter()
            for sums, w in ways.items():
                mass[self.sum.places(self.sum.add(sums, vector))[0]] += w
            known = [(divmod(w << FX.bits, whole), self.rows[v]) for v, w in mass.items() if w]
            rows.append([plus(times((lo, lo + (rest > 0)), row[y]) for (lo, rest), row in known)
                         for y in range(n)])
        return rows
    def below(self, i: int, laws: Sequence[Law]) -> float:
        """Return a number below I(X_i;Y) under a product of distributions."""
        others = Counter((self.vectors[j], p) for j, p in enumerate(laws) if j != i)
        rows = self.given(i, *self.total((v, p, n) for (v, p), n in others.items()))
        own = fixed_law(laws[i])
        return LEAKAGE.below([[times(x, q) for q in row] for x, row in zips(own, rows)])
    def lines_bound(self, i: int, stored: Any) -> float:
        """Return the largest capacity of a line: the places of the query's value along record i."""
        others = Counter(v for j, v in enumerate(self.vectors) if j != i).items()
        ways, _ = self.total((v, Law((1,) * len(v), len(v)), n) for v, n in others)
        lines = sorted({tuple(self.sum.places(self.sum.add(sums, v))[0] for v in self.vectors[i])
                        for sums in ways})
        laws, worst = table(stored, "distributions of contexts", self.sizes[i]), 0.0
        READ.work(len(lines) * self.sizes[i] * len(self.rows[0]), "contexts")
        gains = [-entropy(row)[0] for row in self.rows]
        for line, weights in zips(lines, laws):
            pi = law(weights, "a distribution of a context")
            if len({self.channel.rows[v] for v in line}) > 1:
                chosen = [self.rows[v] for v in line], [gains[v] for v in line]
                worst = max(worst, *divergences(*chosen, pi))
        return worst
    def hulls(self, stored: Any, least: Any, inside: bool) -> list[list[tuple[Law, ...]]]:
        """Return the vertices of each record's distribution, and of that of an attacked record.
        For a record floor they are those of a least probability, rounded to the safe side."""
        need(isinstance(stored, dict) and len(stored) == 1, "what is known of the laws is unclear")
        (kind, given), = stored.items()
        known = kind in ("vertices", "least_probability", "record_floor")
        need(known, f"this checker does not know {kind!r:.60} of laws", UnknownError)
        need((least is None) == (kind != "record_floor"), "a least probability, or none")
        if kind == "vertices":
            each = runs(given, kind, lambda laws: tuple(law(p, "a vertex") for p in laws))
            fit = [{len(p.weights) for p in v} for v in each] == [{k} for k in self.sizes]
            need(fit, "vertices of other records")
            return [each, each]
        share = rational(given if least is None else least, "a least probability")
        need(all(0 <= share * k <= 1 for k in self.sizes), "that least probability is impossible")
        if kind == "record_floor":
            need(set(self.sizes) == {2}, "a record floor is for records of two values")
            doubt, floor = entropy(map(fixed, (share, 1 - share))), rational(given, kind)
            right = doubt[0] >= floor * FX.one if inside else doubt[1] <= floor * FX.one
            need(right, "a least probability on the wrong side of the record floor", NarrowError)
        box = functools.cache(lambda k, share: tuple(
            common([1 - (k - 1) * share if a == b else share for a in range(k)])
            for b in range(k if share * k < 1 else 1)))
        return [[box(k, x) for k in self.sizes] for x in (share, Fraction(0))]
    def cases_bound(self, i: int, each: list[Any], own: tuple[Law, ...], stored: Any) -> float:
        """Return the largest bound of a case, max_v sum_a v_a D(R_a || sum_a p_a R_a), p stored.
        A case is the number of the other records of each kind at each vertex."""
        kinds = Counter(zips(self.vectors, each)) - Counter([(self.vectors[i], each[i])])
        ways = [math.comb(n + len(v) - 1, n) for (_, v), n in kinds.items()]
        need(math.prod(ways) <= LARGEST_GROUPS, "too many cases")
        shared = []
        for (vectors, v), n in kinds.items():
            drawn = itertools.combinations_with_replacement(range(len(v)), n)
            READ.work(math.comb(n + len(v) - 1, n) * n >> 4, "cases")
            counts = sorted([one.count(j) for j in range(len(v))] for one in drawn)
            shared.append([[(vectors, p, m) for p, m in zips(v, one) if m] for one in counts])
        inputs, worst = table(stored, "inputs", len(own)), Fraction(0)
        for weights, case in zips(inputs, itertools.product(*shared)):
            rows = self.given(i, *self.total(itertools.chain(*case)))
            w = law(weights, "weights on vertices").weights
            pi = common([dot(w, column) for column in zips(*(p.fractions() for p in own))])
            found = divergences(rows, [-entropy(row)[0] for row in rows], pi)
            for p in own:
                terms = [x * d for x, d in zips(p.fractions(), found) if x]
                worst = max(worst, sum(terms))
        return math.inf if worst == math.inf else math.ceil(worst)
def product_leakage(problem: Any, witness: Any, proof: Any) -> Ends:
    """Return bounds on the largest leakage about a record when records are independent."""
    known = isinstance(problem, dict) and "laws" in problem
    need(gain_of(problem).leakage, "another gain of independent records", UnknownError)
    mechanism, record, about = fields(
        problem, f"mechanism record {'laws' if known else 'entropy_floor'}")
    stored, matrix = fields(mechanism, "query channel")
    query, alike = Query(stored), Query(stored).alike
    channel, sizes = Channel(matrix, query), query.sizes
    setting, one = Independent(query, channel), list(range(len(sizes)))
    audited = None if record is None else [one[integer(record, "a record")]]
    need(record is None or record >= 0, "a record that does not exist")
    if known:
        return product_of_known_laws(setting, audited, about, witness, proof)
    floor, each = rational(about, "the entropy floor"), audited or alike()
    i, laws = fields(witness, "record laws")
    prove(integer(i, "a record") in each, "the witness is about a record that is not audited")
    p = [law(x, "a distribution", k) for x, k in zips(a_list(laws, "laws", len(sizes)), sizes)]
    doubt = plus(entropy(fixed_law(x)) for x in p)[0]
    need(doubt >= floor * FX.one, "the witness has less entropy than the floor", NarrowError)
    contexts, audit = fields(proof, "contexts audit")
    upper: float = max(log_ratio(sizes[j], 1)[1] for j in each)
    if contexts is not None:
        pairs = zips(each, a_list(contexts, "contexts", len(each)))
        upper = min(upper, max(setting.lines_bound(j, x) for j, x in pairs))
    if audit is not None:
        attained, proved = fields(audit, "witness proof")
        whole = Audit(query, channel, floor, 1, audited and [audited])
        whole.lower(attained)  # not part of the claim, but it has to be well-formed
        upper = min(upper, whole.upper(proved))
    return Ends(setting.below(i, p), upper)
def product_of_known_laws(setting: Independent, audited: Any, laws: Any, witness: Any,
                          proof: Any) -> Ends:
    i, weights, least = fields(witness, "record weights least_probability")
    inputs, bound = fields(proof, "inputs least_probability")
    each, own = setting.hulls(laws, least, True)
    prove(0 <= integer(i, "a record") < len(own), "the witness is about no record")
    prove(audited in (None, [i]), "the witness is about a record that is not audited")
    mixed = runs(weights, "weights", list)
    p = [common([dot(law(w, "weights", len(v)).weights, column)
                 for column in zips(*(x.fractions() for x in v))])
         for w, v in zips(mixed, [*each[:i], own[i], *each[i + 1 :]])]
    lower = setting.below(i, p)
    each, own = setting.hulls(laws, bound, False)
    kinds = {key: j for j, key in reversed(list(enumerate(zips(setting.vectors, each, own))))}
    audited = audited or sorted(kinds.values())
    bounds = [min(log_ratio(setting.sizes[j], 1)[1], setting.cases_bound(j, each, own[j], x))
              for j, x in zips(audited, a_list(inputs, "inputs", len(audited)))]
    return Ends(lower, max(bounds))
def stored_floats(values: Any, length: int) -> list[Fraction]:  # in every version
    return [Fraction(float(x)) for x in numbers(values, "weights or multipliers", length)]
class Symbols:
    """An input distribution and a channel, for pointwise maximal leakage, in whole numbers.
    `outputs[y]` and `rows[x][y]` stand for P(y) and P(y|x), both times `total`. Inputs of
    probability 0 do not count, nor do outputs that never occur."""
    def __init__(self, prior: Any, matrix: Any) -> None:
        laws = a_matrix(matrix, "the channel")
        p, scale = law(prior, "the prior", len(laws)), math.lcm(*(row.total for row in laws))
        self.inputs = [x for x, w in enumerate(p.weights) if w]
        self.total = p.total * scale
        self.rows = [[w * (self.total // row.total) for w in row.weights] for row in laws]
        self.outputs = [dot(p.weights, column) // p.total for column in zips(*self.rows)]
    def masses(self, witness: Any) -> list[tuple[Fraction, Fraction]]:
        """Return for each symbol its probability, and its probability given its input.
        A witness gives the symbol of input x the share w of output y. The rest of the outputs goes
        to one further symbol, about which nothing is claimed."""
        inputs, outputs, weights = fields(witness, "inputs outputs weights")
        xs = whole(inputs, "inputs")
        ys, shares = whole(outputs, "outputs", len(xs)), stored_floats(weights, len(xs))
        used, found = [Fraction(0)] * len(self.outputs), {}
        for x, y, w in zips(xs, ys, shares):
            need(0 <= y < len(used) and x in self.inputs, "no such input or output")
            used[y] += nonnegative(w, "a weight of the witness")
            mass, given = found.get(x, (Fraction(0), Fraction(0)))
            found[x] = mass + w * self.outputs[y], given + w * self.rows[x][y]
        prove(all(u <= 1 for u in used), "the witness uses more of an output than there is")
        return [(m / self.total, given / self.total) for m, given in found.values() if m]
    def reaching(self, t: Fraction, strict: bool) -> list[int]:
        """Return the inputs whose P(y|x) / P(y) is t or more (or more than t) at some output."""
        levels = {x: max(Fraction(r, m) for r, m in zips(self.rows[x], self.outputs) if m)
                  for x in self.inputs}
        return [x for x, level in levels.items() if level > t or (level == t and not strict)]
    def dual(self, stored: Any, t: Fraction, strict: bool) -> Fraction:
        """Return sum_y max(0, max_x [P(y) + mu_x (P(y|x) - t P(y))]), an upper bound on the mass.
        The inner maximum is over the inputs that reach t; the others have no symbol."""
        mu = [nonnegative(m) for m in stored_floats(stored, len(self.rows))]
        reach, total = self.reaching(t, strict), Fraction(0)
        for y, m in enumerate(self.outputs):
            terms = [m + mu[x] * (self.rows[x][y] - t * m) for x in reach if m]
            total += max([Fraction(0), *terms])
        return total / self.total
def failure_probability(problem: Any, witness: Any, proof: Any) -> Ends:
    """Return the largest probability that a post-processing leaks epsilon (or more than epsilon).
    A smaller t = exp(epsilon) raises the upper bound; a larger one excludes symbols below."""
    prior, matrix, epsilon, strict = fields(problem, "prior matrix epsilon strict")
    need(isinstance(strict, bool), "'strict' is neither true nor false")
    symbols, (lo, hi) = Symbols(prior, matrix), fixed(rational(epsilon, "epsilon"))
    below, above = Fraction(exp(lo)[0], FX.one), Fraction(exp(hi)[1], FX.one)
    mass = sum((m for m, given in symbols.masses(witness) if given > above * m), Fraction(0))
    upper = symbols.dual(fields(proof, "multipliers")[0], below, strict)
    return Ends(mass, min(upper, Fraction(1)))
def pml_envelope(problem: Any, witness: Any, proof: Any) -> Ends:
    """Return the largest level that is reached with probability delta, in nats.
    Lower bound: the level that symbols of total mass delta reach (at delta = 0, some mass). Upper
    bound: log t, if the mass at t is below delta, or no input reaches t."""
    prior, matrix, stored = fields(problem, "prior matrix delta")
    symbols, delta, lower = Symbols(prior, matrix), rational(stored, "delta"), 0
    need(0 <= delta <= 1, "delta is no probability")
    levels = sorted(((given / m, m) for m, given in symbols.masses(witness)), reverse=True)
    for (level, _), reached in zips(levels, itertools.accumulate(m for _, m in levels)):
        if reached >= delta:
            lower = log_ratio(level.numerator, level.denominator)[0] if level > 1 else 0
            break
    multipliers, stored = fields(proof, "multipliers level")
    t = rational(stored, "the level")
    prove(t > 0, "the level is not positive")
    small = symbols.dual(multipliers, t, False) < delta or not symbols.reaching(t, False)
    return Ends(lower, log_ratio(t.numerator, t.denominator)[1] if small else math.inf)

# -------- Designs: the least leakage within a distortion budget, and the other way round.
class Design:
    """The problem of a design: rows of the channel, distortion, sources, adversaries, half-spaces.
    `expected[s][r][y]`: what q(y|r) adds to the cost under source s; `counts[r]`: datasets of r."""
    def __init__(self, problem: Any) -> None:
        query, rows, distortion, sources, objective, priors, budget, floor, own = fields(
            problem, "query rows distortion sources objective priors budget entropy_floor own")
        need(priors is None, "this checker does not know designs against priors", UnknownError)
        self.query, self.size = Query(query), integer(fields(objective, "size")[0], "size")
        need(0 <= self.size <= len(self.query.sizes), "groups of another size than records")
        self.floor = rational(floor, "the entropy floor")
        self.budget = None if budget is None else rational(budget, "the budget")
        form, stored, generators = fields(rows, "form", "query generators")
        known = form in ("query", "types", "orbits", "classes")
        need(known, f"this checker does not know rows of the form {form!r:.60}", UnknownError)
        self.rows = self.query if form == "query" else (
            self.query.types(query) if form == "types" else Query(stored))
        need(self.rows.sizes == self.query.sizes, "rows of another space")
        joint = contexts([self.rows, self.query], ())[0]
        self.counts, sizes = [0] * len(self.rows.values), [0] * len(self.query.values)
        for (r, v), number in joint.items():
            self.counts[r] += number
            sizes[v] += number
        need(all(self.counts) and all(sizes), "a row or a value that no dataset has")
        laws = [self._law(one, sizes) for one in a_list(sources, "sources")]
        need(laws, "there are no sources")
        listed = [mass for mass, per_dataset in laws if per_dataset]
        if form == "orbits":
            self._see_orbits(a_list(generators, "generators"), listed)
        elif form == "classes" or (form == "types" and listed):
            # The datasets of a row are equivalent: averaging over their permutations (over
            # swaps of equal records) cannot raise a leakage, which is convex.
            prove(form == "types" or self.size == 0, "classes are for the whole dataset")
            content: dict[int, Any] = {}
            for r, *one in zips(self.rows.listing(), self.query.listing(), *listed):
                prove(content.setdefault(r, one) == one, "datasets that differ share a row")
        inputs, outputs, matrix = fields(distortion, "inputs outputs matrix")
        at, self.outputs = places(inputs, "inputs"), list(places(outputs, "outputs"))
        need(set(at) == set(self.query.values), "the distortion is about other values")
        costs = [numbers(r, "a row", len(self.outputs)) for r in a_list(matrix, "it", len(at))]
        cost, self.expected = [costs[at[v]] for v in self.query.values], []
        for mass, per_dataset in laws:
            found = [[Fraction(0)] * len(self.outputs) for _ in self.counts]
            cells: Any = ((r, v, number * mass[v]) for (r, v), number in joint.items())
            if per_dataset:
                cells = zips(self.rows.listing(), self.query.listing(), mass)
            for r, v, p in cells:
                found[r] = [x + p * d for x, d in zips(found[r], cost[v])]
            self.expected.append(found)
        self.own = HalfSpaces(own, len(self.counts), len(self.outputs))
    def _law(self, stored: Any, sizes: list[int]) -> tuple[list[Fraction], bool]:
        """Return the mass of each dataset by value; or, with true, of each dataset."""
        on, weights = fields(stored, "on weights")
        if on == "values":
            masses = law(weights, "a distribution", len(sizes)).fractions()
            return [w / max(size, 1) for w, size in zips(masses, sizes)], False
        if on == "datasets":
            need(self.query.space <= LARGEST_SPACE, "too many datasets")
            return law(weights, "a distribution", self.query.space).fractions(), True
        need(on == "uniform" and weights == [], "a distribution of something unknown")
        return [Fraction(1, self.query.space)] * len(sizes), False
    def _see_orbits(self, generators: list[Any], laws: list[list[Fraction]]) -> None:
        """Refuse unless the datasets of a row are in one orbit of the symmetries [order, maps].
        x goes to x' with x'_(order_i) = maps_i(x_i). That keeps entropies, and leakages up to a
        permutation of the groups; if it also keeps the query and the sources, averaging a channel
        over an orbit cannot raise its leakage."""
        sizes, rows, listing = self.query.sizes, self.rows.listing(), self.query.listing()
        strides, parent = self.query.strides, list(range(len(rows)))
        def root(x: int) -> int:
            while parent[x] != x:
                parent[x] = x = parent[parent[x]]
            return x
        for generator in generators:
            order, maps = a_list(generator, "a generator", 2)
            order, maps = whole(order, "a generator"), a_list(maps, "maps", len(sizes))
            records = sorted(order) == list(range(len(sizes)))
            prove(records, "a generator is no permutation of the records")
            prove([sizes[i] for i in order] == sizes, "a generator mixes records of other sizes")
            for size, one in zips(sizes, maps):
                prove(sorted(whole(one, "a map")) == list(range(size)), "a map: no permutation")
            READ.work(4 * len(rows) * (len(sizes) + len(laws)), "symmetries")
            for x, values in enumerate(itertools.product(*map(range, sizes))):
                y = sum(strides[i] * one[a] for i, one, a in zips(order, maps, values))
                prove(listing[x] == listing[y], "a generator changes the query")
                prove(all(p[x] == p[y] for p in laws), "a generator changes a source")
                parent[root(x)] = root(y)
        orbit: dict[int, int] = {}
        for x, r in enumerate(rows):
            prove(orbit.setdefault(r, root(x)) == root(x), "datasets of two orbits share a row")
    def channel(self, stored: Any) -> Channel:
        channel = Channel(stored, self.rows)
        need(channel.outputs == self.outputs, "a channel with other outputs than the distortion")
        return channel
    def distortion(self, channel: Channel) -> Fraction:  # the largest over the sources, exactly
        rows = [row.fractions() for row in channel.rows]
        return max(Fraction(sum(map(dot, rows, costs))) for costs in self.expected)
    def leakage(self, channel: Channel, stored: Any) -> float:
        """Return an upper bound on the leakage of a channel: an audit, or that of a mixture."""
        if isinstance(stored, dict) and "parts" in stored:
            return self._mixture(channel, fields(stored, "parts")[0])
        if self.size:
            audit = Audit(self.rows, channel, self.floor, self.size, None)
            attained, proof = fields(stored, "witness proof")
            audit.lower(attained)  # not part of the claim, but it has to be well-formed
            return audit.upper(proof)
        # I(X;Y) <= sum w D(R || t), and the lemma with one value: l log sum m exp(D / l) - l b.
        output, multiplier = fields(stored, "output multiplier")
        t, lam = law(output, "an output distribution", len(self.outputs)), nonnegative(multiplier)
        log_t, both = t.logs(), list(zips(channel.rows, self.counts))
        most = bounded(lambda: log_sum_exp(
            [divergence(r, t, log_t)[1] + scaled(log_ratio(m, 1)[1], lam) for r, m in both], lam))
        return max(most - fixed(lam * self.floor)[0], 0)
    def _mixture(self, channel: Channel, parts: Any) -> float:
        """Return sum s L(Q) + (1 - sum s - t) log|A| where P >= sum s Q, t = sum_y min_r of the
        rest.
        The rest contains a constant output of mass t, which reveals nothing. L is convex."""
        rest, shares, total = [row.fractions() for row in channel.rows], Fraction(0), 0
        for one in a_list(parts, "parts"):
            share, stored, proof = fields(one, "share channel leakage")
            s, mixed = nonnegative(share, "a share"), self.channel(stored)
            need(isinstance(proof, dict) and "parts" not in proof, "a mixture of mixtures")
            rest = [[p - s * q for p, q in zips(old, row.fractions())]
                    for old, row in zips(rest, mixed.rows)]
            leaks = self.leakage(mixed, proof)
            prove(leaks < math.inf, "a part's leakage is not bounded")
            shares, total = shares + s, total + scaled(int(leaks), s)
        prove(all(min(row) >= 0 for row in rest), "the channel is less than its parts")
        sizes = sorted(self.query.sizes)[-self.size :] if self.size else [len(self.counts)]
        left = 1 - shares - sum(map(min, zips(*rest)))
        return total + scaled(log_ratio(math.prod(sizes), 1)[1], left)
    def cuts(self, stored: Any) -> list[tuple[Fraction, list[list[int]]]]:
        """Return for each adversary its multiplier and L, rounded down: I(q) >= sum q(y|r) L[r][y].
        I(q) >= sum_{a,r} w_{a,r} q(y|r) log(phi(a|y) / pi_a), for the difference is a mean of
        divergences. Weights belong to the cells (a, r): by value, then by the row's place (for the
        whole dataset a value is a row). Other logs are a unit smaller, so log 0 may be finite."""
        found = []
        for cut in a_list(stored, "cuts"):
            records, weights, posterior, theta = fields(cut, "records weights posterior multiplier")
            group = a_group(records, self.query, self.size)
            cells = [[(r, m)] for r, m in enumerate(self.counts)]
            if self.size:
                counted = contexts([self.rows], group)
                cells = [[(r, m) for (r,), m in sorted(one.items())] for one in counted]
            flat = [cell for one in cells for cell in one]
            w = law(weights, "weights", len(flat))
            enough_doubt(w, [log_ratio(m, 1) for _, m in flat], self.floor, "a cut's adversary")
            rows = [a_list(p, "a posterior", len(self.outputs))
                    for p in a_list(posterior, "a posterior", len(cells))]
            phi = [law(list(column), "a posterior") for column in zips(*rows)]
            gains, masses = [[0] * len(self.outputs) for _ in self.counts], iter(w.weights)
            for a, mine in enumerate(cells):
                some = [(r, next(masses)) for r, _ in mine]
                mass = sum(m for _, m in some)
                log_pi = log_ratio(mass, w.total)[1] if mass else 0
                for y, p in enumerate(phi if mass else []):
                    low = log_ratio(p.weights[a], p.total)[0] - 1 if p.weights[a] else -FX.one << 64
                    for r, m in some:
                        gains[r][y] += (low - log_pi) * m // w.total
            found.append((nonnegative(theta), gains))
        return found
    def least(self, cuts: Iterable[Any], prices: list[Fraction], own: Any, constant: bool) -> int:
        """Return the least sum theta L + sum beta E d - (half-spaces) over channels, rounded down:
        the sum_r min_y of its coefficients; over channels of one row (`constant`) min_y sum_r."""
        total = [[0] * len(self.outputs) for _ in self.counts]
        for theta, gains in cuts:
            for mine, gain in zips(total, gains):
                mine[:] = [x - scaled(-g, theta) for x, g in zips(mine, gain)]
        for price, expected in zips(prices, self.expected):
            for mine, costs in zips(total, expected):
                mine[:] = [x + fixed(price * cost)[0] for x, cost in zips(mine, costs)]
        for r, y, a in own:
            total[r][y] += fixed(-a)[0]
        return min(map(sum, zips(*total))) if constant else sum(map(min, total))
ROOM = Fraction(1, 1 << 40)
class HalfSpaces:
    """The user's own constraints: sum a q(y|x) + sum b z_j >= c - r, or within r of c, for some z
    common to all, with the tolerance r = 2^-40 (|c| + sum |a| q(y|x))."""
    def __init__(self, stored: Any, rows: int, outputs: int) -> None:
        self.spaces = []
        for one in a_list(stored, "own"):
            entries, further, at_least, equal = fields(one, "entries further at_least equal")
            need(isinstance(equal, bool), "'equal' is neither true nor false")
            found, more = [], Counter[Any]()  # a cell may occur twice: each entry has a tolerance
            for x, y, a in (a_list(entry, "an entry", 3) for entry in a_list(entries, "entries")):
                need(0 <= integer(x, "a row") < rows, "an entry of another row")
                need(0 <= integer(y, "an output") < outputs, "an entry of another output")
                found.append((x, y, rational(a, "an entry")))
            for j, b in (a_list(entry, "an entry", 2) for entry in a_list(further, "further")):
                need(integer(j, "a variable") >= 0, "a variable that does not exist")
                more[j] += rational(b, "an entry")  # pyright: ignore
            self.spaces.append((found, more, rational(at_least, "at_least"), equal))
        self.further = 1 + max((j for _, more, *_ in self.spaces for j in more), default=-1)
    def hold(self, channel: Channel, values: Any) -> bool:
        """Whether a channel and values of the further variables are in all half-spaces."""
        if self.further and values is None:
            return False
        z = numbers(values or [], "further", self.further)
        rows = [row.fractions() for row in channel.rows]
        for found, more, at_least, equal in self.spaces:
            terms = [a * rows[x][y] for x, y, a in found]
            off = sum(terms) + sum(b * z[j] for j, b in more.items()) - at_least
            room = ROOM * (abs(at_least) + sum(map(abs, terms)))
            if off < -room or (equal and off > room):
                return False
        return True
    def rest(self, kappa: list[Fraction]) -> Counter[int]:  # the weighted sum of each z_j's terms
        left: Any = Counter()
        for k, (_, more, *_) in zips(kappa, self.spaces):
            for j, b in more.items():
                left[j] += k * b
        return left
    def weighted(self, stored: Any, balance: Any) -> tuple[list[tuple[int, int, Any]], Fraction]:
        """Return sum kappa (entries) and sum kappa c with tolerance, for kappa that cancel all z_j.
        Those named under `balance` are first changed to a solution of the equations for that."""
        kappa = numbers(stored, "multipliers of half-spaces", len(self.spaces))
        names = whole(balance or [], "balance")
        need(all(0 <= i < len(kappa) for i in names), "balance names what is not there")
        moved = sorted({j for i in names for j in self.spaces[i][1]})
        READ.work(len(names) ** 2 * len(moved) << 5, "the balance")
        rest, done = self.rest(kappa), 0
        rows = [[*(Fraction(self.spaces[i][1][j]) for i in names), -rest[j]] for j in moved]
        for i in range(len(names)):  # Gauss and Jordan; the first rows have a pivot
            pivot = next((r for r in range(done, len(rows)) if rows[r][i]), None)
            if pivot is not None:
                rows[done], rows[pivot] = rows[pivot], rows[done]
                rows[done] = [v / rows[done][i] for v in rows[done]]
                rows = [row if r == done else [u - row[i] * v for u, v in zips(row, rows[done])]
                        for r, row in enumerate(rows)]
                done += 1
        for row in rows[:done]:
            kappa[names[next(i for i, v in enumerate(row) if v)]] += row[-1]
        prove(not any(self.rest(kappa).values()), "multipliers of further variables do not cancel")
        entries, constant = [], Fraction(0)
        for k, (found, _, at_least, equal) in zips(kappa, self.spaces):
            prove(k >= 0 or equal, "a multiplier of a half-space is negative")
            room = abs(k) * ROOM if READ.version > 1 else 0
            entries += [(x, y, k * a + room * abs(a)) for x, y, a in found]
            constant += k * at_least - room * abs(at_least)
        return entries, constant
def design_of(problem: Any, witness: Any, proof: Any) -> tuple[Any, ...]:
    leakage, cuts, sources, own, balance = fields(proof, "leakage cuts sources own", "balance")
    stored, further = fields(witness, "channel", "further")
    design = Design(problem)
    prices = [nonnegative(p) for p in numbers(sources, "prices", len(design.expected))]
    channel = design.channel(stored)
    inside, leaks = design.own.hold(channel, further), design.leakage(channel, leakage)
    weighted = design.own.weighted(own, balance)
    return design, channel, inside, leaks, design.cuts(cuts), prices, weighted
def min_leakage(problem: Any, witness: Any, proof: Any) -> Ends:
    """Return the least leakage within the distortion budget.
    Upper bound: the witness. Lower bound: the leakage is at least sum theta I, sum theta = 1,
    and within the budget beta (E - D) <= 0 and kappa (c - a q) <= 0."""
    design, channel, inside, leaks, cuts, prices, (own, c) = design_of(problem, witness, proof)
    need(design.budget is not None or not any(prices), "prices without a budget")
    within = design.budget is None or design.distortion(channel) <= design.budget
    prove(within, "the witness is above the distortion budget")
    weight = sum(theta for theta, _ in cuts) or 1
    least = design.least([(theta / weight, gains) for theta, gains in cuts], prices, own, False)
    lower = least + fixed(c - sum(prices) * (design.budget or 0))[0]
    return Ends(max(lower, 0), leaks if inside else None)
def min_distortion(problem: Any, witness: Any, proof: Any) -> Ends:
    """Return the least distortion within the leakage budget: sum beta = 1, and theta (I - L) <= 0.
    If nothing may leak and b < log|X|, channels have one row only (docs/theory/design.md)."""
    design, channel, inside, leaks, cuts, prices, (own, c) = design_of(problem, witness, proof)
    need(design.budget is not None, "there is no leakage budget")
    within = leaks < math.inf and Fraction(int(leaks), FX.one) <= design.budget
    need(within, "the witness is not proved to be within the leakage budget", NarrowError)
    prove(sum(prices) > 0, "no source has a price")
    most = Fraction(log_ratio(design.query.space, 1)[0], FX.one)
    silent = design.budget <= 0 and design.floor < most
    least = design.least(cuts, [price / sum(prices) for price in prices], own, silent)
    lower = least + fixed(c - sum(theta for theta, _ in cuts) * design.budget)[0]
    return Ends(lower, design.distortion(channel) if inside else None)

# -------- Local differential privacy: rational numbers, except for one logarithm.
class Sources:  # points and polytopes, whose hull is the set of the sources, and the distortion
    def __init__(self, stored: Any, distortion: Any) -> None:
        self.points: list[list[Fraction]] = []
        self.polytopes: list[tuple[Any, ...]] = []
        for points, polytopes in (fields(s, "points polytopes") for s in a_list(stored, "sources")):
            self.points += [law(p, "a distribution").fractions() for p in a_list(points, "points")]
            for polytope in a_list(polytopes, "polytopes"):
                low, high, matrix, bound = fields(polytope, "lower upper matrix bound")
                low, bound = numbers(low, "lower"), numbers(bound, "a bound")
                rows = [numbers(r, "a row", len(low)) for r in a_list(matrix, "it", len(bound))]
                self.polytopes.append((low, numbers(high, "upper", len(low)), rows, bound))
        sizes = {len(p) for p in self.points} | {len(low) for low, *_ in self.polytopes}
        need(len(sizes) == 1 and sizes != {0}, "sources of different sizes, or none")
        self.size = sizes.pop()
        if distortion == "hamming":
            READ.spend(self.size**2)
            distortion = [[int(x != y) for y in range(self.size)] for x in range(self.size)]
        costs = a_list(distortion, "d", self.size)
        width = len(a_list(costs[0], "a distortion"))
        self.costs = [[nonnegative(d) for d in numbers(row, "a cost", width)] for row in costs]
    def member(self, i: int, stored: Any) -> list[Fraction]:
        """Return a distribution; refuse unless it is in a polytope, exactly."""
        low, high, rows, bound = self.polytopes[i]
        p = numbers(stored, "a member", self.size)
        inside = all(max(u, 0) <= v <= w for u, v, w in zips(low, p, high)) and sum(p) == 1
        meets = all(dot(row, p) <= b for row, b in zips(rows, bound))
        prove(inside and meets, "a member of a polytope is not in it")
        return p
    def worst(self, channel: list[Law], supports: Any) -> Fraction:
        """Return an upper bound on the distortion over all sources.
        On a polytope, for y >= 0 and any m, max c p <= b y + m + sum max(l r, u r), where r = c -
        A'y - m. A member (or, for a box, its bounds) shows that there is a distribution in it."""
        cost = [dot(row.fractions(), d) for row, d in zips(channel, self.costs)]
        ends = [dot(point, cost) for point in self.points]
        for i, support in enumerate(a_list(supports, "supports", len(self.polytopes))):
            low, high, rows, bound = self.polytopes[i]
            multipliers, level, member = fields(support, "multipliers level member")
            y = [nonnegative(v) for v in numbers(multipliers, "multipliers", len(bound))]
            least = [max(u, 0) for u in low]
            box = not bound and sum(least) <= 1 <= sum(high)
            box = box and all(u <= v for u, v in zips(least, high))
            prove(box if member is None else self.member(i, member), "a polytope may be empty")
            m = rational(level, "a level")
            r = [c - m - sum(v * row[x] for v, row in zips(y, rows)) for x, c in enumerate(cost)]
            most = sum(max(u * t, v * t) for u, v, t in zips(low, high, r))
            ends.append(dot(bound, y) + m + most)
        return max(ends)
    def mixture(self, stored: Any) -> list[Fraction]:  # a distribution of the hull
        weights, members = fields(stored, "weights members")
        w, laws = numbers(weights, "weights", len(self.points)), list(self.points)
        for i, one in enumerate(a_list(members, "members", len(self.polytopes))):
            weight, mine = fields(one, "weight law")
            w.append(rational(weight, "a weight"))
            laws.append(self.member(i, mine) if w[-1] else [Fraction(0)] * self.size)
        prove(min(w) >= 0 and sum(w) > 0, "weights of a mixture are negative or 0")
        return [dot(w, column) / sum(w) for column in zips(*laws)]
def private_at(channel: list[Law], delta: Fraction) -> Any:
    """Return the least f = e^epsilon >= 1 for which a channel is private; infinite if none is.
    For rows a, b: sum_y max(0, a - f b) <= delta if and only if sum_S (a - f b) <= delta for all
    sets S; among the sets of one size the one with the largest ratios a / b is the worst."""
    least, rows = Fraction(1), set(channel)
    READ.work(len(rows) ** 2 * len(channel[0].weights), "the channel")
    for a, b in itertools.permutations(rows, 2):
        pairs = [(u * b.total, v * a.total) for u, v in zips(a.weights, b.weights)]
        top, below = sum(u for u, v in pairs if not v) - delta * a.total * b.total, 0
        if top > 0:
            return math.inf
        for u, v in sorted((p for p in pairs if p[1]), key=lambda p: Fraction(*p), reverse=True):
            top, below = top + u, below + v
            least = max(least, top / below)
    return least
def pure_level(p: list[Fraction], stored: Any, sources: Sources, budget: Fraction) -> Any:
    """Return an f = e^epsilon that is too small (or infinite), by potentials v; 1 proves nothing.
    The distortion is at least sum v + sum_y u_y (S+ - f S-), u_y the least entry of column y."""
    v, ratios = numbers(stored, "potentials", sources.size), []
    for costs in zips(*sources.costs):
        gaps = [x * d - w for x, d, w in zips(p, costs, v)]
        positive, negative = sum(g for g in gaps if g > 0), -sum(g for g in gaps if g < 0)
        if positive or negative:
            ratios.append(Fraction(positive) / negative if negative else math.inf)
        elif sum(v) == budget:
            ratios.append(Fraction(1))
    return min(ratios, default=math.inf) if sum(v) >= budget else Fraction(1)
def approximate_end(p: list[Fraction], stored: Any, sources: Sources, delta: Fraction, s: Any,
                    f: Any) -> Fraction:
    """Return a lower bound on the distortion of (epsilon, delta)-private channels:
    sum_x min_y [p_x d + s sum_x' h(x,x',y) - f sum_x' h(x',x,y)] - s delta sum max_y h, with s = 1
    and f = e^epsilon or, which is the same for an h f times as large, s = e^-epsilon and f = 1."""
    brackets, off = [[x * d for d in costs] for x, costs in zips(p, sources.costs)], Fraction(0)
    for one in a_list(stored, "comparisons"):
        first, second, multipliers = fields(one, "first second multipliers")
        for x in whole([first, second], "inputs"):
            need(0 <= x < sources.size, "a comparison of an input outside")
        h = [nonnegative(v) for v in numbers(multipliers, "multipliers", len(brackets[0]))]
        brackets[first] = [x + s * v for x, v in zips(brackets[first], h)]
        brackets[second] = [x - f * v for x, v in zips(brackets[second], h)]
        off += s * delta * max(h)
    return sum(map(min, brackets), -off)
def local_dp(problem: Any, witness: Any, proof: Any) -> Ends:
    stored, distortion, level, most = fields(problem, "sources distortion delta budget")
    matrix, supports = fields(witness, "channel supports")
    sources, delta = Sources(stored, distortion), rational(level, "delta")
    budget, channel = rational(most, "the budget"), a_matrix(matrix, "the channel")
    need(0 <= delta <= 1 and len(channel) == sources.size, "delta, or the channel, is out of range")
    prove(sources.worst(channel, supports) <= budget, "the witness is above the distortion budget")
    f, least = private_at(channel, delta), Fraction(1)
    if proof and delta == 0:
        mixture, potentials = fields(proof, "mixture potentials")
        least = pure_level(sources.mixture(mixture), potentials, sources, budget)
    elif proof:
        mixture, comparisons, small = fields(proof, "mixture comparisons level")
        parts = sources.mixture(mixture), comparisons, sources, delta
        end = functools.partial(approximate_end, *parts)
        if small == "inf":  # concave in 1/f: at least D at 0 and more at 1, so more in between
            least = math.inf if end(0, 1) >= budget and end(1, 1) > budget else least
        elif end(1, rational(small, "a level")) > budget:
            least = rational(small, "a level")
    lower, upper = (x if x == math.inf else log_ratio(*x.as_integer_ratio())[i] if x > 1 else 0
                    for i, x in enumerate((least, f)))
    return Ends(lower, upper)
KINDS: dict[str, tuple[Any, Callable[[Any, Any, Any], Ends]]] = {  # unit, or problem -> unit
    "capacity": ("nats", capacity), "local-dp": ("nats", local_dp),
    "record-leakage": (lambda problem: gain_of(problem).unit, record_leakage),
    "product-leakage": (lambda problem: gain_of(problem).unit, product_leakage),
    "pml-envelope": ("nats", pml_envelope),
    "failure-probability": ("probability", failure_probability),
    "min-leakage": ("nats", min_leakage), "min-distortion": ("distortion", min_distortion)}

# -------- A claim, a certificate, a file
SIDES, WORDS = ("lower", "upper"), ("PROVED", "NOT PROVED", "UNUSABLE", "UNKNOWN")  # by the code
Verdict = namedtuple("Verdict", "code kind text")  # of one certificate; the code is the exit code
def claims(claim: Any, unit: str, version: int, own: Any) -> list[Any]:
    """Return the claimed bounds: rational numbers, infinite floats, or None for no claim."""
    *ends, stored, about = fields(claim, "lower upper unit", "about")
    prove(stored == unit, f"the unit of this kind is {unit}")
    found = [math.inf if isinstance(end, str) and end == "inf" else
             None if end is None and version != 1 else rational(end, "a claim") for end in ends]
    if version == 1:
        need(about is None, "version 1 does not say what an end is about")
        return found
    claimed = {key for key, end in zips(SIDES, found) if end is not None}
    need(claimed and isinstance(about, dict) and set(about) == claimed, "'about' does not fit")
    for of in about.values():
        need(of == "problem" or (own and of == "half-spaces"), "an end about something unknown")
    return found
def missed(ends: Ends, wanted: list[Any]) -> tuple[list[str], bool]:
    """Return which claimed bounds are not proved, and whether more digits could change that."""
    texts, narrow = [], False
    for side, end, claim in zips(SIDES, ends, wanted):
        if claim is None:
            continue
        value = Fraction(end, FX.one) if isinstance(end, int) else end
        more = 0 if value == claim else math.inf if value is None else value - claim
        gap = more if side == "upper" or value is None else -more
        if gap > 0:
            proved = "nothing is" if value is None else f"{float(value)!r} is"
            texts.append(f"the {side} bound {float(claim)!r} is claimed, {proved} proved")
            narrow |= value is not None and (math.isinf(value) or gap * (1 << 90) < 1)
    return texts, narrow
def check(data: Any) -> Verdict:  # check one certificate
    global FX, READ
    kind, texts, wanted, unit = "?", [], [], ""
    try:
        form, version, kind, problem, claim, witness, proof, _, stored = fields(
            data, "format schema_version kind problem claim witness proof versions sha256")
        need(form == "cvxleak-certificate", "not a certificate")
        need(type(version) is int and version in (1, 2), "another schema version than 1 or 2")
        content = {key: value for key, value in data.items() if key != "sha256"}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        need(stored == hashlib.sha256(text.encode()).hexdigest(), "the SHA-256 does not fit")
        known = isinstance(kind, str) and kind in KINDS
        need(known, f"this checker does not know the kind {kind!r:.60}", UnknownError)
        unit, evaluate = KINDS[kind]
        unit = unit if isinstance(unit, str) else unit(problem)
        before = READ.expanded, READ.steps
        for bits in DIGITS:
            READ, FX = Reader(version, *before), Precision(bits)
            wanted = claims(claim, unit, version, isinstance(problem, dict) and "own" in problem)
            try:
                texts, narrow = missed(evaluate(problem, witness, proof), wanted)
            except NarrowError:
                if bits == DIGITS[-1]:
                    raise
                continue
            if not narrow:
                break
        prove(not texts, "; ".join(texts))
        said = [f"{side} bound {float(end)!r} {unit}" for side, end in zips(SIDES, wanted)
                if end is not None]
        return Verdict(PROVED, kind, " and ".join(said))
    except RefusedError as error:
        return Verdict(error.code, f"{kind!s:.60}", str(error))
    except Exception as error:  # whatever goes wrong with a forged file
        return Verdict(UNUSABLE, f"{kind!s:.60}", f"{type(error).__name__}: {error!s:.200}")
def check_text(text: str) -> list[Verdict]:  # check a certificate, or each of a file of several
    global READ
    READ = Reader(1)
    try:
        data = parse(text)
        if not isinstance(data, dict) or data.get("format") != "cvxleak-certificates":
            return [check(data)]
        _, version, members = fields(data, "format version certificates")
        need(type(version) is int and version == 1, "another version of bundles")
        several = 0 < len(a_list(members, "certificates")) <= LARGEST_BUNDLE
        need(several, "a bundle of no certificates, or of too many")
        inside = any(isinstance(m, dict) and m.get("format") == data["format"] for m in members)
        need(not inside, "a bundle inside of a bundle")
        return [check(member) for member in members]
    except RefusedError as error:
        return [Verdict(UNUSABLE, "?", str(error))]
def check_file(path: Any) -> list[Verdict]:
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        text = raw.decode() if len(raw) <= LARGEST_FILE else "too large"
    except (OSError, UnicodeDecodeError) as error:
        return [Verdict(UNUSABLE, "?", str(error))]
    return check_text(text)
def worst(verdicts: Iterable[Verdict]) -> int:  # unusable, not proved, unknown, proved
    return min((v.code for v in verdicts), key=(UNUSABLE, NOT_PROVED, UNKNOWN, PROVED).index)
def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return PROVED if arguments else UNUSABLE
    found = [(path, verdict) for path in arguments for verdict in check_file(path)]
    for path, verdict in found:
        print(f"{WORDS[verdict.code]}  {path}  {verdict.kind}: {verdict.text}")
    return worst(verdict for _, verdict in found)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
