"""Strict reading of a certificate's parts: what a file says is what is checked.

A number is a JSON number, which stands for its decimal, or a fraction as text ("1/3"). Refused are
true and false, integers that a float would round, and keys that no prover asks for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import as_written, stored_values
from cvxleak.exact.limits import charge_fractions

__all__ = [
    "count",
    "groups",
    "identical",
    "number",
    "numbers",
    "parts",
    "schema",
    "schema_version",
]

NEWEST = 2

FRACTION = re.compile(r"-?\d+/\d+|-?\d{17,}", re.ASCII)
"""A number written as text: one that a JSON number of a float cannot express."""

_schema: ContextVar[int] = ContextVar("schema", default=NEWEST)


@contextmanager
def schema(version: int) -> Iterator[None]:
    """Read what follows as a file of this schema version; the newest one otherwise.

    In version 1 numbers are the binary values that floats store (`cvxleak.core.numbers`).

    Examples
    --------
    >>> from cvxleak.exact import reading
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


def parts(value: Any, keys: Set[str], name: str, *, optional: Set[str] = frozenset()) -> Any:
    """Return a mapping that has exactly these keys, and perhaps some of the optional ones.

    Raises
    ------
    CertificateError
        Not a mapping, a key missing, or one too many.

    Examples
    --------
    >>> from cvxleak.exact import reading
    >>> reading.parts({"input": [1.0]}, {"input"}, "the witness")
    {'input': [1.0]}
    """
    if not isinstance(value, Mapping):
        raise CertificateError(f"{name}: expected an object, found {_short(value)}")
    if not keys <= set(value) <= keys | optional:
        found = sorted(str(key)[:40] for key in value)[:12]
        raise CertificateError(f"{name}: expected the parts {sorted(keys)}, found {found}")
    return value


def number(value: Any, name: str) -> float:
    """Return a finite number as written.

    Examples
    --------
    >>> from cvxleak.exact import reading
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
            raise CertificateError(f"{name}: expected a number, found {_short(value)}") from error
        return found
    raise CertificateError(f"{name}: expected a number that a float holds, found {_short(value)}")


def numbers(values: Any, name: str, size: int | None = None) -> list[float]:
    """Return a list of finite numbers, `size` of them.

    Examples
    --------
    >>> from cvxleak.exact import reading
    >>> reading.numbers([0.5, 1], "the input", 2)
    [0.5, 1.0]
    """
    if not isinstance(values, list) or (size is not None and len(values) != size):
        wanted = "a list of numbers" if size is None else f"a list of {size} numbers"
        raise CertificateError(f"{name}: expected {wanted}, found {_short(values)}")
    if set(map(type, values)) == {float} and all(map(math.isfinite, values)):
        return values.copy()
    found = [number(value, name) for value in values]
    charge_fractions(found, name)
    return found


def count(value: Any, name: str, low: int = 0) -> int:
    """Return a whole number that is at least `low`.

    Examples
    --------
    >>> from cvxleak.exact import reading
    >>> reading.count(2, "the size", 1)
    2
    """
    if type(value) is not int or value < low:
        raise CertificateError(
            f"{name}: expected a whole number of at least {low}, found {_short(value)}"
        )
    return value


def groups(values: Any, name: str) -> list[list[int]]:
    """Return a list of lists of whole numbers.

    Examples
    --------
    >>> from cvxleak.exact import reading
    >>> reading.groups([[0, 2], [1]], "the merged outputs")
    [[0, 2], [1]]
    """
    if not isinstance(values, list) or not all(isinstance(group, list) for group in values):
        raise CertificateError(f"{name}: expected a list of lists, found {_short(values)}")
    return [[count(i, name) for i in group] for group in values]


def identical(one: Any, other: Any) -> bool:
    """Whether two pieces of JSON have the same content, where 1 is 1.0 but not true.

    Lists and tuples are alike, since JSON has only one of them.

    Examples
    --------
    >>> from cvxleak.exact import reading
    >>> reading.identical({"a": [1, 2]}, {"a": (1.0, 2)}), reading.identical(1, True)
    (True, False)
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"an integer of {value.bit_length()} bits"
    return f"{value!r:.40}"
