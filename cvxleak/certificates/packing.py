"""Arrays in JSON: little-endian bytes, compressed, as text; floats round-trip exactly."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.errors import CertificateError

__all__ = ["pack", "unpack"]

DTYPES = ("<f8", "<f4", "<i4")
SIZE_LIMIT = 1 << 30
"""Most bytes that one array may unpack to."""


def pack(array: NDArray[Any], dtype: str = "<f8") -> dict[str, Any]:
    """Return `array` as {"dtype", "shape", "data"}; `dtype` is "<f8", "<f4" or "<i4"."""
    data = np.ascontiguousarray(array, dtype=dtype)
    text = base64.b64encode(zlib.compress(data.tobytes(), 9)).decode()
    return {"dtype": dtype, "shape": list(data.shape), "data": text}


def unpack(packed: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array that `pack` wrote.

    Raises
    ------
    CertificateError
        An unknown dtype, data that does not decode, or another size than the shape says.
    """
    dtype, shape = packed["dtype"], tuple(int(n) for n in packed["shape"])
    if dtype not in DTYPES or any(n < 0 for n in shape):
        raise CertificateError(f"packed array: found dtype {dtype!r} and shape {shape}")
    size = int(np.dtype(dtype).itemsize * np.prod(shape, dtype=object))
    if size > SIZE_LIMIT:
        raise CertificateError(f"packed array: {size} bytes; at most {SIZE_LIMIT} are read")
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(packed["data"], validate=True), size + 1)
    except (binascii.Error, zlib.error, TypeError) as error:
        raise CertificateError(f"packed array: {error}") from error
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise CertificateError(f"packed array: found another size than shape {shape} needs")
    return np.frombuffer(data, dtype=dtype).reshape(shape)
