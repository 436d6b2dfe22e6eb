"""Numbers as written: the exact value of a float, a text, a `Decimal` or a `Fraction`.

A float stands for the shortest decimal that prints as it, so 0.3 is three tenths; text ("0.3",
"3/10"), `Decimal` and `Fraction` stand for themselves. Computations run in floats. Where a number
is not the shortest decimal of the nearest float, an `ExactFloat` or an `ExactArray` carries it
along, so that a proof and a certificate are about the number as written.

A probability vector whose numbers as written sum to exactly 1 is used as written. Any other is
divided by its sum: the sum of the numbers as written if one of them is not a float, otherwise the
sum of the floats' exact values.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ExactArray",
    "ExactFloat",
    "as_written",
    "at_most",
    "carries",
    "content",
    "exact_array",
    "exact_law",
    "fraction",
    "from_json",
    "integer_law",
    "logarithm_of",
    "ratio",
    "same_numbers",
    "smallest",
    "stacked",
    "stored_values",
    "to_json",
    "written_law",
]

Array = NDArray[np.float64]

LONGEST = 4_000
"""Most characters of a number in text."""

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_FRACTION = re.compile(r"[+-]?\d+/\d+", re.ASCII)
_LOGARITHM = re.compile(r"\s*log\(([^()]*)\)\s*", re.ASCII)

_POWERS = tuple(10**places for places in range(400))
"""More than the places of the least positive float."""

_repr = float.__repr__

_stored: ContextVar[bool] = ContextVar("stored", default=False)


@contextmanager
def stored_values() -> Iterator[None]:
    """Read floats as the binary numbers that they store, as in certificates of schema 1.

    Examples
    --------
    >>> from cvxleak.core.numbers import fraction, stored_values
    >>> fraction(0.3)
    Fraction(3, 10)
    >>> with stored_values():
    ...     fraction(0.3)
    Fraction(5404319552844595, 18014398509481984)
    """
    token = _stored.set(True)
    try:
        yield
    finally:
        _stored.reset(token)


class ExactFloat(float):
    """A float and the exact number that it approximates, which is not its shortest decimal.

    It computes, compares in size and is formatted as the float; it is equal to the same number
    only, and its `repr` is the number.

    Examples
    --------
    >>> from cvxleak.core.numbers import as_written
    >>> third = as_written("1/3")
    >>> third, float(third) == 1 / 3, third == 1 / 3, third == as_written("2/6")
    (1/3, True, False, True)
    """

    __slots__ = ("exact",)
    exact: Fraction

    def __new__(cls, exact: Fraction) -> ExactFloat:
        """Return the float nearest to `exact`, carrying it."""
        made = super().__new__(cls, exact.numerator / exact.denominator)
        made.exact = exact
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactFloat) and other.exact == self.exact

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.exact)

    def __repr__(self) -> str:
        return str(self.exact)

    __str__ = __repr__

    def __neg__(self) -> ExactFloat:
        return ExactFloat(-self.exact)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.exact,)


class ExactArray(np.ndarray[Any, np.dtype[np.float64]]):
    """A read-only array of floats that carries the numbers that they are nearest to.

    Parts of it (by index, in another shape, transposed) carry theirs, and `tolist` returns them;
    results of computations are floats and no more.
    """

    exact: NDArray[np.object_] | None = None

    def __new__(cls, exact: NDArray[np.object_]) -> ExactArray:
        """Return the floats nearest to `exact`, carrying them."""
        return np.array(exact, dtype=float).view(cls)._carrying(exact)

    def _carrying(self, exact: NDArray[np.object_]) -> ExactArray:
        self.exact = exact
        self.setflags(write=False)
        return self

    def __array_finalize__(self, obj: Any) -> None:
        self.exact = None

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if self.exact is None:
            return found
        exact = self.exact[index]
        return found._carrying(exact) if isinstance(found, ExactArray) else exact

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def tolist(self) -> Any:
        """Return nested lists of the numbers that the array carries."""
        return super().tolist() if self.exact is None else self.exact.tolist()

    def _same(self, found: Any, name: str, *args: Any, **options: Any) -> Any:
        if self.exact is None:
            return found
        return found._carrying(getattr(self.exact, name)(*args, **options))

    def reshape(self, *args: Any, **options: Any) -> Any:
        """Return the array in another shape, with its numbers."""
        return self._same(super().reshape(*args, **options), "reshape", *args, **options)

    def ravel(self, *args: Any, **options: Any) -> Any:
        """Return the array in one dimension, with its numbers."""
        return self._same(super().ravel(*args, **options), "ravel", *args, **options)

    def transpose(self, *args: Any, **options: Any) -> Any:
        """Return the array transposed, with its numbers."""
        return self._same(super().transpose(*args, **options), "transpose", *args, **options)

    @property
    def T(self) -> Any:  # noqa: N802
        """The array transposed, with its numbers."""
        return self.transpose()

    def __copy__(self) -> Any:
        return np.array(self) if self.exact is None else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce__(self) -> Any:
        if self.exact is None:
            return np.array(self).__reduce__()
        return type(self), (self.exact,)


def as_written(value: Any) -> float:
    """Return a number as the nearest float, an `ExactFloat` if it is not its shortest decimal.

    Raises
    ------
    TypeError
        Not a real number (booleans are none) and not text.
    ValueError
        Text that is not a number, or a number that is too close to 0 for a float.
    OverflowError
        Too large for a float.

    Examples
    --------
    >>> from decimal import Decimal
    >>> from cvxleak.core.numbers import as_written
    >>> as_written("0.3"), as_written(Decimal("0.30")), as_written("3/10"), as_written("1/3")
    (0.3, 0.3, 0.3, 1/3)
    """
    if isinstance(value, ExactFloat):
        return value
    if type(value) is float:
        return value + 0.0  # -0.0 becomes 0.0: equal arrays have equal bytes.
    if isinstance(value, (bool, np.bool_)):
        raise TypeError("a truth value is not a number")
    if isinstance(value, str):
        exact = _of_text(value.strip())
    elif isinstance(value, Decimal):
        if value.is_finite() and value and abs(value.adjusted()) > 400:
            raise OverflowError(f"{value:.3} is out of the range of floats")
        exact = Fraction(value) if value.is_finite() else float(value)
    elif isinstance(value, numbers.Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, numbers.Real):
        exact = float(value)
    else:
        raise TypeError(f"{type(value).__name__} is not a number")
    if isinstance(exact, float):
        return exact
    near = exact.numerator / exact.denominator  # OverflowError beyond the largest float
    if near == 0 and exact:
        raise ValueError("too close to 0 for a float")
    return near if Fraction(_repr(near)) == exact else ExactFloat(Fraction(exact))


def logarithm_of(value: Any) -> Fraction | None:
    """Return r of a number that is written as the text "log(r)", otherwise None.

    Raises
    ------
    ValueError
        An r that is no positive number.

    Examples
    --------
    >>> from cvxleak.core.numbers import logarithm_of
    >>> logarithm_of("log(3)"), logarithm_of("log(1.5)"), logarithm_of(1.1)
    (Fraction(3, 1), Fraction(3, 2), None)
    """
    found = _LOGARITHM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    exact = _of_text(found[1].strip())
    if isinstance(exact, float) or exact <= 0:
        raise ValueError("a logarithm of a positive number is needed")
    return Fraction(exact)


def _of_text(text: str) -> Fraction | float:
    if len(text) > LONGEST:
        raise ValueError(f"found a text of {len(text)} characters; at most {LONGEST} are read")
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    if _FRACTION.fullmatch(text):
        if not int(text.partition("/")[2]):
            raise ValueError(f"{text!r:.40} has the denominator 0")
        return Fraction(text)
    if text.lower().lstrip("+-") in {"inf", "infinity", "nan"}:
        return float(text)
    hint = "; decimals have a point" if _DECIMAL.fullmatch(text.replace(",", ".", 1)) else ""
    hint = "; divide percentages by 100" if text.endswith("%") else hint
    raise ValueError(f"{text!r:.40} is not a number{hint}")


def ratio(value: float) -> tuple[int, int]:
    """Return a finite number as written as a numerator and a denominator, not in lowest terms.

    Raises
    ------
    ValueError, OverflowError
        NaN or infinite.

    Examples
    --------
    >>> from cvxleak.core.numbers import ratio
    >>> ratio(0.3), ratio(3)
    ((3, 10), (3, 1))
    """
    if isinstance(value, ExactFloat):
        return value.exact.as_integer_ratio()
    if _stored.get() or isinstance(value, int) or not math.isfinite(value):
        return value.as_integer_ratio()
    digits, places = _digits(value)
    return (digits, _POWERS[places]) if places > 0 else (digits * 10**-places, 1)


def fraction(value: float) -> Fraction:
    """Return a finite number as written.

    Examples
    --------
    >>> from cvxleak.core.numbers import fraction
    >>> fraction(0.3), fraction(1e-3)
    (Fraction(3, 10), Fraction(1, 1000))
    """
    return Fraction(*ratio(value))


def at_most(one: float, other: float) -> bool:
    """Whether one number as written is at most another; a bound need not be a shortest decimal.

    Examples
    --------
    >>> from cvxleak.core.numbers import as_written, at_most
    >>> at_most(as_written("0.30000000000000000001"), 0.3), at_most(0.3, float("inf"))
    (False, True)
    """
    if not (math.isfinite(one) and math.isfinite(other)):
        return one <= other
    return fraction(one) <= fraction(other)


def smallest(values: Iterable[float]) -> float:
    """Return the least of several numbers as written.

    Examples
    --------
    >>> from cvxleak.core.numbers import as_written, smallest
    >>> smallest([as_written("0.30000000000000000001"), 0.3, 0.5])
    0.3
    """
    known = list(values)
    lowest = min(known)
    ties = [value for value in known if not value > lowest]  # equal as floats
    return lowest if len(ties) == 1 else min(ties, key=fraction)


def written_law(values: Sequence[float] | Array) -> list[int] | None:
    """Return whole numbers in the ratios of a distribution, if they are determined as written.

    None if they do not: for floats whose shortest decimals do not sum to exactly 1, which are
    divided by the sum of their stored values.

    Examples
    --------
    >>> from cvxleak.core.numbers import written_law
    >>> written_law([0.7, 0.2, 0.1]), written_law([0.1] * 9)
    ([7, 2, 1], None)
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if _stored.get():
        return None
    if ExactFloat in set(map(type, values)):
        pairs = [ratio(value) for value in values]
        common = math.lcm(*(bottom for _, bottom in pairs))
        return _lowest([top * (common // bottom) for top, bottom in pairs])
    # Shortest decimals are off by half a unit in the last place of their floats at most, so a sum
    # of 1 is one of the floats' within 2^-53, up to terms in 2^-106.
    if not abs(math.fsum(values) - 1) <= 2.0**-52:
        return None
    if _last_digits_remain(values):
        return None
    pairs = [_digits(value) for value in values]
    places = max(place for _, place in pairs)
    shifts = {place: 10 ** (places - place) for _, place in pairs}
    whole = [digits * shifts[place] for digits, place in pairs]
    return _lowest(whole) if sum(whole) == 10**places else None


def integer_law(values: Sequence[float] | Array) -> list[int]:
    """Return whole numbers in exactly the ratios of a distribution's probabilities.

    Examples
    --------
    >>> from cvxleak.core.numbers import integer_law
    >>> integer_law([0.5, 0.25, 0.25]), integer_law([0.7, 0.3])
    ([2, 1, 1], [7, 3])
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    written = written_law(values)
    if written is not None:
        return written
    pairs = [value.as_integer_ratio() for value in values]
    common = max(bottom for _, bottom in pairs)
    return [top * (common // bottom) for top, bottom in pairs]


def exact_law(values: Sequence[float] | Array) -> tuple[Fraction, ...]:
    """Return the exact probabilities of a distribution.

    Examples
    --------
    >>> from cvxleak.core.numbers import exact_law
    >>> exact_law([0.7, 0.3])
    (Fraction(7, 10), Fraction(3, 10))
    """
    weights = integer_law(values)
    total = sum(weights)
    return tuple(Fraction(weight, total) for weight in weights)


def exact_array(values: NDArray[Any]) -> Array:
    """Return an array of numbers of any kind as floats, an `ExactArray` where floats are not all.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As for `as_written`.
    """
    numbers_as_written = np.empty(values.shape, dtype=object)
    flat = [as_written(value) for value in values.ravel().tolist()]
    numbers_as_written.ravel()[:] = flat
    if any(isinstance(value, ExactFloat) for value in flat):
        return ExactArray(numbers_as_written)
    return numbers_as_written.astype(float)


def stacked(arrays: Iterable[Array]) -> Array:
    """Return arrays below each other, as `numpy.vstack` does, with the numbers that they carry."""
    parts = list(arrays)
    if not any(carries(part) for part in parts):
        return np.vstack(parts)
    return ExactArray(np.vstack([_objects(part) for part in parts]))


def same_numbers(one: Any, other: Any) -> bool:
    """Whether two arrays hold the same numbers as written."""
    if not np.array_equal(one, other):
        return False
    if not (carries(one) or carries(other)):
        return True
    return _objects(one).tolist() == _objects(other).tolist()


def content(array: Array) -> Hashable:
    """Return a value that is equal for arrays of one shape with the same numbers as written.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.core.numbers import content, exact_array
    >>> one, other = (exact_array(np.array(row, dtype=object)) for row in ([1 / 3], ["1/3"]))
    >>> np.array_equal(one, other), content(one) == content(other)
    (True, False)
    """
    return tuple(_objects(array).ravel().tolist()) if carries(array) else array.tobytes()


def to_json(value: Any) -> Any:
    """Return numbers, and lists and mappings with them, with fractions as text where floats fail.

    Examples
    --------
    >>> from cvxleak.core.numbers import as_written, to_json
    >>> to_json([0.3, as_written("1/3")])
    [0.3, '1/3']
    """
    if isinstance(value, ExactFloat):
        return str(value.exact)
    if isinstance(value, np.ndarray):
        return to_json(value.tolist()) if carries(value) else value.tolist()
    if isinstance(value, (list, tuple)):
        return [part if type(part) is float else to_json(part) for part in value]
    if isinstance(value, Mapping):
        return {key: to_json(part) for key, part in value.items()}
    return value


def from_json(text: str) -> float:
    """Return a JSON number as written: what `json.loads` takes as ``parse_float``."""
    value = float(text)
    known = not math.isfinite(value) or float.__repr__(value) == text
    return value if known else as_written(text)


def carries(array: Any) -> bool:
    """Whether an array carries numbers that are not the shortest decimals of its floats."""
    return isinstance(array, ExactArray) and array.exact is not None


def _objects(array: Any) -> NDArray[np.object_]:
    if isinstance(array, ExactArray) and array.exact is not None:
        return array.exact
    return np.asarray(array).astype(object)


def _lowest(whole: list[int]) -> list[int]:
    shared = math.gcd(*whole)
    return [number // shared for number in whole] if shared > 1 else whole


def _last_digits_remain(values: Iterable[float]) -> bool:
    """Whether the digits that stand furthest right do not sum to a multiple of ten.

    A float from 10^-k on has no digit beyond place k + 16, so the least values decide, mostly.
    """
    furthest, total, reach = 0, 0, math.inf
    for value in sorted(values):
        if value > reach:  # neither this one nor a greater one has a digit there
            return total % 10 != 0
        digits, places = _digits(value)
        if places > furthest:
            furthest, total, reach = places, 0, 2 * 10.0 ** (17 - places)
        total += digits if places == furthest else 0
    return False


def _digits(value: float) -> tuple[int, int]:
    """Return the digits d and the places n of the shortest decimal d 10^-n of a finite float."""
    text = _repr(value)
    if text[:2] == "0.":  # a probability, mostly
        return int(text[2:]), len(text) - 2
    mantissa, _, exponent = text.partition("e")
    whole, _, rest = mantissa.partition(".")
    return int(whole + rest), len(rest) - int(exponent or 0)
