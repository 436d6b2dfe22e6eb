"""Packed arrays are read strictly, and no more is unpacked than their shape says."""

import base64
import zlib

import numpy as np
import pytest

from cvxleak.core.errors import CertificateError
from cvxleak.exact.packing import declared_shape, pack, unpack

PACKED = pack(np.zeros((2, 3)))


def test_round_trips():
    array = np.array([[0.1, 1e-300], [np.pi, -0.0]])
    assert np.array_equal(unpack(pack(array)), array)
    assert unpack(pack(np.zeros((0, 3)))).shape == (0, 3)
    assert unpack(PACKED, (None, 3)).shape == (2, 3)
    assert declared_shape({**PACKED, "shape": [1, 1, 1, 6]}) == (1, 1, 1, 6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dtype": "<f2"}, "found dtype"),
        ({"dtype": "<c16"}, "found dtype"),
        ({"dtype": "<f4"}, "another size than shape"),
        ({"shape": [2, 2]}, "another size than shape"),
        ({"shape": [3, 3]}, "another size than shape"),
        ({"shape": [1] * 5}, "found dtype .* and shape"),
        ({"shape": 6}, "found dtype .* and shape"),
        ({"shape": [-2, -3]}, "whole number of at least 0"),
        ({"shape": [2.0, 3.0]}, "whole number of at least 0"),
        ({"shape": [1 << 26, 1]}, "another size than shape"),
        ({"shape": [(1 << 26) + 1]}, "bytes; at most"),
        ({"shape": [10**9, 10**9]}, "bytes; at most"),
        ({"data": PACKED["data"][:-4]}, "packed array"),
        ({"data": "!" + PACKED["data"]}, "packed array"),
        ({"data": 3}, "packed array"),
        ({"data": "AAAA"}, "packed array"),
        ({"note": 1}, "a packed array: expected the parts"),
    ],
)
def test_forged_arrays(change, reason):
    with pytest.raises(CertificateError, match=reason):
        unpack({**PACKED, **change})


def test_what_follows_the_data_is_refused():
    data = base64.b64decode(PACKED["data"])
    longer = [zlib.compress(bytes(n)) for n in (0, 47, 49, 10_000, 10**7)]
    for more in (data + b"\0", data[:-1], *longer):
        with pytest.raises(CertificateError, match=r"packed array|another size"):
            unpack({**PACKED, "data": base64.b64encode(more).decode()})


def test_a_wrong_shape_is_refused_before_anything_is_unpacked(monkeypatch):
    def bomb(*_):
        raise AssertionError("something was unpacked")

    monkeypatch.setattr("zlib.decompressobj", bomb)
    for shape in ((2,), (2, 4), (3, None), (2, 3, 1)):
        with pytest.raises(CertificateError, match="is needed"):
            unpack(PACKED, shape)
    for changed in ([2, True], [2.0, 3], ["2", 3], "2", [1 << 40, 3], [1] * 9):
        with pytest.raises(CertificateError):
            unpack({**PACKED, "shape": changed}, (None, 3))
