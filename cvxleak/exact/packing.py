"""Arrays in JSON: little-endian bytes, compressed, as text; floats round-trip exactly."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import carries, to_json
from cvxleak.exact import reading
from cvxleak.exact.limits import charge

__all__ = ["declared_shape", "pack", "pack_written", "unpack"]

DTYPES = ("<f8", "<f4", "<i4")
SIZE_LIMIT = 1 << 29
"""Most bytes that one array may unpack to."""


def pack(array: NDArray[Any], dtype: str = "<f8") -> dict[str, Any]:
    """Return `array` as {"dtype", "shape", "data"}; `dtype` is "<f8", "<f4" or "<i4"."""
    data = np.ascontiguousarray(array, dtype=dtype)
    text = base64.b64encode(zlib.compress(data.tobytes())).decode()
    return {"dtype": dtype, "shape": list(data.shape), "data": text}


def pack_written(array: NDArray[np.float64]) -> Any:
    """Return an array of a problem's numbers, as lists if packed floats would not hold them."""
    return to_json(array) if carries(array) else pack(array)


def declared_shape(packed: Any) -> tuple[int, ...]:
    """Return the shape that a packed array says it has; nothing is decompressed.

    Raises
    ------
    CertificateError
        Not a packed array, an unknown dtype, no shape, or one that is too large to be read.
    """
    reading.parts(packed, {"dtype", "shape", "data"}, "a packed array")
    dtype, given = packed["dtype"], packed["shape"]
    if dtype not in DTYPES or not isinstance(given, list) or len(given) > 4:
        raise CertificateError(f"packed array: found dtype {dtype!r:.20} and shape {given!r:.60}")
    shape = tuple(reading.count(n, "the shape of a packed array") for n in given)
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if size > SIZE_LIMIT:
        raise CertificateError(f"packed array: {size} bytes; at most {SIZE_LIMIT} are read")
    return shape


def unpack(packed: Any, shape: Sequence[int | None] | None = None) -> NDArray[Any]:
    """Return the array that `pack` wrote.

    With `shape`, another one is refused before anything is decompressed; None in it stands for any
    length.

    Raises
    ------
    CertificateError
        An unknown dtype, another shape than wanted, data that does not decode, or another size
        than the shape says.
    """
    found = declared_shape(packed)
    wanted = found if shape is None else tuple(shape)
    if len(found) != len(wanted) or any(
        n is not None and n != m for n, m in zip(wanted, found, strict=True)
    ):
        raise CertificateError(f"packed array: shape {found} does not fit; {wanted} is needed")
    dtype = packed["dtype"]
    size = np.dtype(dtype).itemsize * math.prod(found)
    charge("bytes of packed arrays", size, f"a packed array of shape {found}")
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(packed["data"], validate=True), size + 1)
    except (binascii.Error, zlib.error, TypeError, ValueError) as error:
        raise CertificateError(f"packed array: {error}") from error
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise CertificateError(f"packed array: found another size than shape {found} needs")
    return np.frombuffer(data, dtype=dtype).reshape(found)
