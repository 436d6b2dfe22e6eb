"""Checks of the arguments of model objects and functions."""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Hashable, Iterable, Mapping, Set
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import (
    ExactArray,
    ExactFloat,
    as_written,
    exact_array,
    logarithm_of,
)
from cvxleak.core.wording import are, counted, whole_text

ROW_SUM_TOLERANCE = 1e-9
"""Absolute tolerance on the sum of a probability vector."""

SIZE_LIMIT = 1 << 53
"""Largest size that a formula takes: floats count exactly so far."""

CELL_LIMIT = 1 << 27
"""Most entries of a matrix that is made from a few numbers (1 GiB of floats)."""

Array = NDArray[np.float64]

Kind = TypeVar("Kind")


class _Short(reprlib.Repr):
    """A repr that stays short whatever it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxtuple = self.maxlist = 4
        self.maxstring = self.maxother = 40

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, np.ndarray):
            return f"an array of shape {x.shape}"
        return super().repr1(x.item() if isinstance(x, np.generic) else x, level)

    def repr_int(self, x: int, level: int) -> str:
        return whole_text(x)


short = _Short().repr
"""Return a short text of any value, for an error message."""


def instance(value: Any, kind: type[Kind], name: str) -> Kind:
    """Return `value`, or say that it is not of this kind."""
    if not isinstance(value, kind):
        from cvxleak.core.advice import advice_on_instance

        remedy = advice_on_instance(value, kind.__name__, name)
        raise ValidationError(f"{name}: expected a {kind.__name__}, found {short(value)}{remedy}")
    return value


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array of our own read-only and return it."""
    array.setflags(write=False)
    return array


def frozen_array(values: ArrayLike, name: str, ndim: int) -> Array:
    """Return a read-only float copy of `values` with `ndim` dimensions and no NaN.

    Numbers may be text, `Decimal` or `Fraction` (`cvxleak.core.numbers`), and the array a sparse
    one of SciPy, or a tensor. Complex numbers and pandas objects are refused: each would lose
    something in silence.
    """
    if hasattr(values, "iloc"):
        raise ValidationError(
            f"{name}: found a pandas {type(values).__name__}, whose labels would be lost; "
            "use from_pandas, or .to_numpy() to drop them"
        )
    if hasattr(values, "inputs"):
        raise ValidationError(
            f"{name}: found a {type(values).__name__}, whose labels would be lost; use its .matrix "
            "to drop them"
        )
    if hasattr(values, "is_dcp"):
        raise ValidationError(
            f"{name}: found a CVXPY expression; its `value` is needed (Channel.from_solver takes "
            "that of a channel)"
        )
    try:
        array = written_array(values)
    except (TypeError, ValueError, OverflowError) as error:
        from cvxleak.core.advice import advice_on_kind

        raise ValidationError(
            f"{name}: expected an array of real numbers, found {short(values)}"
            f"{advice_on_kind(values, error, name)}"
        ) from error
    if array.ndim != ndim:
        from cvxleak.core.advice import advice_on_shape

        raise ValidationError(
            f"{name}: expected {ndim} dimension(s), found shape {array.shape}"
            f"{advice_on_shape(array.shape, ndim, name)}"
        )
    if not isinstance(array, ExactArray):
        array = np.add(array, 0.0, order="C")  # -0.0 becomes 0.0: equal arrays have equal bytes.
    if np.isnan(array).any():
        where = _first(np.isnan(array))
        raise ValidationError(f"{name}: found NaN at index {where}; every entry must be a number")
    return read_only(array)


def written_array(values: ArrayLike) -> Array:
    """Return numbers of any kind as an array of floats, which carries what floats cannot hold.

    An array of floats is returned as it is, not copied.

    Raises
    ------
    TypeError, ValueError, OverflowError
        A value that is not a number.
    """
    if isinstance(values, ExactArray) and values.exact is not None:
        return values
    given = _as_numpy(values)
    if np.ma.is_masked(values):
        raise TypeError("some are masked")
    if given.dtype.kind == "f" and _holds_exact(values):
        given = np.array(values, dtype=object)
    if given.dtype.kind not in "biufOU":
        raise TypeError(f"the entries are {given.dtype}")
    return exact_array(given) if given.dtype.kind in "OU" else given.astype(float, copy=False)


def _as_numpy(values: Any) -> NDArray[Any]:
    """Return values as NumPy reads them; sparse matrices are filled in, tensors copied or shared.

    Raises
    ------
    TypeError, ValueError
        They are ragged or too large, or the owner of a tensor refuses.
    """
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        if math.prod(values.shape) > CELL_LIMIT:
            raise ValueError(f"as an array it has more than {CELL_LIMIT} entries")
        return values.toarray()
    try:
        if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
            return np.from_dlpack(values)
        return np.asarray(values)
    except (RuntimeError, BufferError) as error:  # a tensor with gradients, or on another device
        raise TypeError(str(error)) from error


def _holds_exact(values: Any) -> bool:
    """Whether there is an `ExactFloat` among numbers that are not in an array yet."""
    if isinstance(values, np.ndarray):
        return False
    if isinstance(values, (list, tuple)):
        return any(type(x) is not float and _holds_exact(x) for x in values)
    return isinstance(values, ExactFloat)


def probability_rows(values: ArrayLike, name: str, ndim: int, labels: object = None) -> Array:
    """Return a read-only array whose last axis holds probability vectors, or say what is wrong.

    `labels` are what the rows are called in that case, if it is a list or a tuple.
    """
    array = frozen_array(values, name, ndim)
    if array.size == 0:
        raise ValidationError(f"{name}: found shape {array.shape}; it must not be empty")
    wrong = (array < 0) | (array == np.inf)
    if wrong.any():
        where = _first(wrong)
        tiny = -1e-6 <= array[where] < 0 and ndim == 2
        raise ValidationError(
            f"{name}: found {float(array[where])!r} at index {where}; probabilities are in [0, 1]"
            + ("; Channel.from_solver repairs a solver's rounding errors" if tiny else "")
        )
    with np.errstate(over="ignore"):
        sums = np.atleast_1d(array.sum(axis=-1))
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE:
        row = f" row {worst}" if ndim > 1 else ""
        if isinstance(labels, list | tuple) and [*labels[worst : worst + 1]] not in ([], [worst]):
            row += f" ({short(labels[worst])})"
        total = round(float(sums[worst]), 12)
        from cvxleak.core.advice import advice_on_sums

        advice = advice_on_sums(array, _as_numpy(values).dtype, ROW_SUM_TOLERANCE)
        raise ValidationError(
            f"{name}:{row} sums to {total!r}; "
            f"probabilities must sum to 1 within {ROW_SUM_TOLERANCE}{advice}"
        )
    return array


def composed_rows(rows: Array) -> Array:
    """Return probability vectors computed from others, still valid as input.

    Vectors that each sum to 1 within the tolerance can compose to one that misses it by twice as
    much; such a row is divided by its sum. All other rows are left as they are.
    """
    sums = rows.sum(axis=-1, keepdims=True)
    return np.where(np.abs(sums - 1) > ROW_SUM_TOLERANCE / 2, rows / sums, rows)


def label_tuple(labels: Iterable[Hashable] | None, size: int, name: str) -> tuple[Hashable, ...]:
    """Return `labels` as a tuple of `size` distinct hashables; None gives 0, 1, ..., size - 1.

    Labels are compared as Python compares dictionary keys: 1, 1.0 and True are the same label.
    """
    if labels is None:
        return tuple(range(size))
    result = tuple(plain_label(label, name) for label in in_order(labels, name))
    if len(result) != size:
        raise ValidationError(
            f"{name}: found {counted(len(result), 'label')}; {size} {are(size)} needed"
        )
    seen: dict[Hashable, Hashable] = {}
    for label in result:
        if label in seen:
            raise ValidationError(
                f"{name}: found {short(seen[label])} and {short(label)}, which are equal; "
                "labels must be distinct"
            )
        seen[label] = label
    return result


def in_order(items: Iterable[Any], name: str) -> tuple[Any, ...]:
    """Return the items as a tuple; sets are refused, because their order is accidental."""
    if isinstance(items, Set):
        raise ValidationError(f"{name}: found a set, which has no order; a sequence is needed")
    try:
        return tuple(items)
    except TypeError as error:
        raise ValidationError(f"{name}: expected a sequence, found {short(items)}") from error


def is_missing(entry: Any) -> bool:
    """Whether an entry of a column has no value: None, NaN or pandas.NA.

    Examples
    --------
    >>> from cvxleak.core.validation import is_missing
    >>> [is_missing(entry) for entry in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    try:
        return entry is None or bool(entry != entry)
    except (TypeError, ValueError):
        # pandas.NA is neither equal nor unequal to itself; an array is no entry at all.
        return type(entry).__name__ == "NAType"


def plain_label(label: Any, name: str) -> Any:
    """Return a label with NumPy scalars turned into the Python values that survive JSON."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(plain_label(part, name) for part in label)
    if isinstance(label, float) and math.isnan(label):
        raise ValidationError(f"{name}: found the label NaN, which does not equal itself")
    try:
        hash(label)
    except TypeError as error:
        raise ValidationError(f"{name}: the label {short(label)} is not hashable") from error
    return label


def real_number(
    value: Any,
    name: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `value` as a float in the interval from `low` to `high`, or say what is wrong.

    It may be text, a `Decimal` or a `Fraction` (`cvxleak.core.numbers`).
    """
    interval = f"{'(' if open_low or low == -math.inf else '['}{low:g}, {high:g}" + (
        ")" if open_high or high == math.inf else "]"
    )
    try:
        number = as_written(value)
    except OverflowError as error:
        raise ValidationError(f"{name}: found {short(value)}, too large for a float") from error
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"{name}: expected a number in {interval}, found {short(value)}"
        ) from error
    exact = number.exact if isinstance(number, ExactFloat) else number
    below = exact <= low if open_low else exact < low
    above = exact >= high if open_high else exact > high
    if math.isnan(number) or below or above:
        raise ValidationError(f"{name}: found {short(value)}; it must be in {interval}")
    return number


def privacy_level(value: Any, name: str, **interval: bool) -> tuple[float, Fraction | None]:
    """Return an epsilon >= 0 in nats, and e^epsilon exactly if it is written as in "log(3)"."""
    try:
        odds = logarithm_of(value)
    except ValueError as error:
        raise ValidationError(f"{name}: found {short(value)}; {error}") from error
    if odds is None:
        return real_number(value, name, 0, **interval), None
    if odds < 1:
        raise ValidationError(f"{name}: found {short(value)}; it must be at least log(1) = 0")
    return math.log(odds.numerator) - math.log(odds.denominator), odds


def number_or_nan(value: Any, name: str) -> float:
    """Return a computed value, which may be NaN, as a float; anything else is an error."""
    return value if isinstance(value, float) and math.isnan(value) else real_number(value, name)


def whole_number(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Return `value` as an int between `low` and `high` (inclusive), or say what is wrong."""
    allowed = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValidationError(f"{name}: expected {allowed}, found {short(value)}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValidationError(f"{name}: found {short(number)}; it must be {allowed}")
    return number


def one_of(value: Any, allowed: Iterable[str], name: str) -> str:
    """Return `value`, or say that it is none of the texts that are `allowed`."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        listed = ", ".join(map(repr, names))
        raise ValidationError(f"{name}: found {short(value)}; allowed: {listed}")
    return value


def number_map(values: Any, name: str) -> dict[str, float]:
    """Return a mapping from texts to numbers, NaN among them, or say what is wrong."""
    if not isinstance(values, Mapping):
        raise ValidationError(f"{name}: expected a mapping, found {short(values)}")
    return {instance(key, str, name): number_or_nan(v, name) for key, v in values.items()}


def generator(rng: int | np.random.Generator | None, name: str = "rng") -> np.random.Generator:
    """Return a generator: the given one, one with this seed, or one seeded by the system."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    if isinstance(rng, bool) or not isinstance(rng, numbers.Integral):
        raise ValidationError(
            f"{name}: expected a seed (an integer >= 0), a numpy.random.Generator or None, "
            f"found {short(rng)}"
        )
    return np.random.default_rng(whole_number(rng, name, 0))


def check_cells(rows: int, columns: int, name: str) -> None:
    """Say so if a matrix that is asked for by its size is too large to be made."""
    if rows * columns > CELL_LIMIT:
        raise ValidationError(
            f"{name}: a matrix of {short(rows)} x {short(columns)} numbers is required, "
            f"{short(8 * rows * columns // 10**6)} MB; the most is {8 * CELL_LIMIT // 10**6} MB"
        )


def dimensions(values: ArrayLike, name: str) -> int:
    """Return how many dimensions `values` has as an array, or say that it is ragged."""
    return plain_array(values, name).ndim


def plain_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return `values` as NumPy reads them, or say that they are ragged."""
    try:
        return _as_numpy(values)
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"{name}: expected an array, found {short(values)} ({error})"
        ) from error


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])
