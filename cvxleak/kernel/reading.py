"""Parts of JSON objects and packed arrays, read strictly: exact keys, finite numbers."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from cvxleak.kernel.budget import charge
from cvxleak.kernel.numbers import RefusedError, need, proved, rational

__all__ = ["array", "bound", "chosen", "count", "end_term", "fractions", "items", "pack", "parts"]

DTYPES = ("<f8", "<f4", "<i4")
MOST_BYTES = 1 << 29
"""Most bytes of one packed array."""


def parts(
    value: Any, must: Collection[str], what: str, may: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return an object that has exactly these keys, and perhaps those in `may`."""
    need(isinstance(value, Mapping), f"{what}: expected an object")
    missing, unknown = set(must) - set(value), set(value) - set(must) - set(may)
    need(not missing, f"{what}: without {', '.join(sorted(missing))}")
    need(not unknown, f"{what}: it has no {', '.join(sorted(map(str, unknown)))[:60]}")
    return value


def end_term(
    data: Any, rule: str, keys: Collection[str], what: str, may: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return the term of an end, of this rule, with exactly its keys and perhaps those in `may`."""
    parts(data, {"rule", *keys}, what, may)
    chosen(data, what, (rule,), "rule")
    return data


def chosen(value: Any, what: str, known: Collection[str], key: str = "kind") -> str:
    """Return which of the known texts an object has at a key."""
    need(isinstance(value, Mapping) and key in value, f"{what}: expected an object with its {key}")
    found = value[key]
    need(isinstance(found, str) and found in known, f"no such {key} of {what}: {found!r:.40}")
    return found


def items(value: Any, what: str, length: int | None = None) -> list[Any]:
    """Return a list, of this length if there is one."""
    need(isinstance(value, list), f"{what}: expected a list")
    need(length in (None, len(value)), f"{what}: {len(value)} entries, where {length} are needed")
    return value


def fractions(value: Any, what: str, length: int | None = None) -> list[fmpq]:
    """Return the numbers of a proof, from a list or a packed vector."""
    if isinstance(value, Mapping):
        packed = array(value, what, "f")
        charge("bytes of numbers", 256 * len(packed))
        value = packed.tolist()
    return [proved(x) for x in items(value, what, length)]


def count(value: Any, what: str, least: int = 0, below: int | None = None) -> int:
    """Return a whole number from `least` on, below `below`."""
    fits = type(value) is int and value >= least and (below is None or value < below)
    need(fits, f"{what}: found {value!r:.40}")
    return value


def array(value: Any, what: str, dtypes: str, columns: int | None = None) -> NDArray[Any]:
    """Return a packed array of finite numbers: a vector, or a table of so many columns.

    It is {"dtype": "<f8", "<f4" or "<i4", "shape", "data"}, with the bytes in zlib and base64;
    `dtypes` is the letter of the kind that is wanted, "f" or "i"; columns = 0 stands for any
    number.
    """
    parts(value, {"dtype", "shape", "data"}, what)
    dtype = value["dtype"]
    need(dtype in DTYPES and dtype[1] in dtypes, f"{what}: dtype {dtype!r:.20}")
    shape = tuple(count(n, what) for n in items(value["shape"], what))
    fits = len(shape) == (1 if columns is None else 2) and (not columns or shape[1] == columns)
    need(fits, f"{what}: shape {shape!r:.40}, where {columns or 'a vector'} is needed")
    size = np.dtype(dtype).itemsize * math.prod(shape)
    need(size <= MOST_BYTES, f"{what}: too many bytes")
    charge("bytes of packed arrays", size)
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(value["data"], validate=True), size + 1)
    except (binascii.Error, zlib.error, TypeError, ValueError) as error:
        raise RefusedError(f"{what}: {error}") from error
    whole = len(data) == size and unpacker.eof and not unpacker.unused_data
    need(whole, f"{what}: another size than its shape says")
    found = np.frombuffer(data, dtype=dtype).reshape(shape)
    need(bool(np.isfinite(found).all()), f"{what}: a number that is not finite")
    return found


def pack(values: Any, dtype: str) -> dict[str, Any]:
    """Return what `array` reads."""
    data = np.ascontiguousarray(values, dtype=dtype)
    text = base64.b64encode(zlib.compress(data.tobytes(), 9)).decode()
    return {"dtype": dtype, "shape": list(data.shape), "data": text}


def bound(value: Any, what: str) -> float:
    """Return a claimed bound: a number, or "inf"."""
    if value == "inf":
        return math.inf
    found = rational(value)
    need(abs(found) < 1 << 1000, f"{what}: expected a number")
    return float(found)
