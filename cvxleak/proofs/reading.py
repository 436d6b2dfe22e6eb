"""Strict reading of a certificate of schema 1 or 2: what a file says is what is checked.

A number is a JSON number, which stands for its decimal, or a fraction as text ("1/3"). Refused are
true and false, integers that a float would round, and keys that no prover asks for.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import ExactFloat, as_written, ratio, stored_values
from cvxleak.core.validation import short
from cvxleak.kernel import reading
from cvxleak.kernel.budget import RefusedError, charge, need

__all__ = [
    "charge_fractions",
    "count",
    "groups",
    "number",
    "numbers",
    "parts",
    "reporting",
    "schema",
    "schema_version",
    "unpack",
]

NEWEST = 2

FRACTION = re.compile(r"-?\d+/\d+|-?\d{17,}", re.ASCII)
"""A number written as text: one that a JSON number of a float cannot express."""

_schema: ContextVar[int] = ContextVar("schema", default=NEWEST)

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def schema(version: int) -> Iterator[None]:
    """Read what follows as a file of this schema version; the newest one otherwise.

    In version 1 numbers are the binary values that floats store (`cvxleak.core.numbers`).

    Examples
    --------
    >>> from cvxleak.proofs import reading
    >>> with reading.schema(1):
    ...     reading.schema_version()
    1
    >>> reading.schema_version()
    2
    """
    token = _schema.set(version)
    try:
        with stored_values() if version == 1 else nullcontext():
            yield
    finally:
        _schema.reset(token)


def schema_version() -> int:
    """Return the schema version of what is being read."""
    return _schema.get()


def reporting(call: Callable[P, T]) -> Callable[P, T]:
    """Return a function of the kernel that reports what it refuses as a `CertificateError`."""

    @functools.wraps(call)
    def reported(*args: P.args, **options: P.kwargs) -> T:
        try:
            return call(*args, **options)
        except RefusedError as error:
            raise CertificateError(str(error)) from error

    return reported


parts = reporting(reading.parts)
count = reporting(reading.count)


def number(value: Any, name: str) -> float:
    """Return a finite number as written.

    Examples
    --------
    >>> from cvxleak.proofs import reading
    >>> reading.number(3, "the floor"), reading.number("1/3", "the floor")
    (3.0, 1/3)
    """
    if isinstance(value, float) and math.isfinite(value):
        return value
    if type(value) is int and abs(value) <= 1 << 53:
        return float(value)
    if isinstance(value, str) and FRACTION.fullmatch(value) and schema_version() > 1:
        try:
            found = as_written(value)
        except (ValueError, OverflowError) as error:
            raise CertificateError(f"{name}: expected a number, found {short(value)}") from error
        return found
    raise CertificateError(f"{name}: expected a number that a float holds, found {short(value)}")


def numbers(values: Any, name: str, size: int | None = None) -> list[float]:
    """Return a list of finite numbers, `size` of them.

    Examples
    --------
    >>> from cvxleak.proofs import reading
    >>> reading.numbers([0.5, 1], "the input", 2)
    [0.5, 1.0]
    """
    if not isinstance(values, list) or (size is not None and len(values) != size):
        wanted = "a list of numbers" if size is None else f"a list of {size} numbers"
        raise CertificateError(f"{name}: expected {wanted}, found {short(values)}")
    if set(map(type, values)) == {float} and all(map(math.isfinite, values)):
        return values.copy()
    found = [number(value, name) for value in values]
    charge_fractions(found)
    return found


def charge_fractions(values: Sequence[float]) -> None:
    """Count what it takes to find a common denominator, which may be far longer than the file."""
    if ExactFloat in set(map(type, values)):
        below = 1
        for value in values:
            below = math.lcm(below, ratio(value)[1])
            charge("ball operations", below.bit_length() ** 2 >> 19)


def groups(values: Any, name: str) -> list[list[int]]:
    """Return a list of lists of whole numbers.

    Examples
    --------
    >>> from cvxleak.proofs import reading
    >>> reading.groups([[0, 2], [1]], "the merged outputs")
    [[0, 2], [1]]
    """
    if not isinstance(values, list) or not all(isinstance(group, list) for group in values):
        raise CertificateError(f"{name}: expected a list of lists, found {short(values)}")
    return [[count(i, name) for i in group] for group in values]


@reporting
def unpack(packed: Any, name: str, dtypes: str, wanted: Sequence[int | None]) -> NDArray[Any]:
    """Return a packed array (see `cvxleak.kernel.reading.array`) of this shape; None is any length.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.kernel.reading import pack
    >>> from cvxleak.proofs import reading
    >>> reading.unpack(pack(np.zeros((2, 1, 3)), "<f8"), "a kernel", "f", (None, 1, 3)).shape
    (2, 1, 3)
    """
    sizes = reading.items(parts(packed, {"dtype", "shape", "data"}, name)["shape"], name)
    shape = [count(size, name) for size in sizes]
    fits = len(shape) == len(wanted) and all(
        n in (None, m) for n, m in zip(wanted, shape, strict=True)
    )
    need(fits, f"{name}: found shape {shape!r:.60}, where {wanted} is needed")
    return reading.array({**packed, "shape": [math.prod(shape)]}, name, dtypes).reshape(shape)
