"""Packed arrays are read strictly, and no more is unpacked than their shape says."""

import base64
import zlib

import numpy as np
import pytest

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.reading import pack
from cvxleak.proofs.reading import unpack

PACKED = pack(np.zeros((2, 3)), "<f8")


def test_round_trips():
    array = np.array([[[0.1, 1e-300]], [[np.pi, -0.0]]])
    for dtype, exact in (("<f8", array), ("<f4", array.astype("<f4")), ("<i4", array.astype(int))):
        found = unpack(pack(exact, dtype), "it", dtype[1], (None, 1, 2))
        assert np.array_equal(found, exact)
        assert found.dtype == dtype
    assert unpack(pack(np.zeros((0, 3)), "<f8"), "it", "f", (None, 3)).shape == (0, 3)
    assert unpack({**PACKED, "shape": [1, 1, 1, 6]}, "it", "f", [None] * 4).shape == (1, 1, 1, 6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dtype": "<f2"}, "it: dtype"),
        ({"dtype": "<c16"}, "it: dtype"),
        ({"dtype": "<i4"}, "it: dtype"),
        ({"dtype": "<f4"}, "another size than its shape"),
        ({"shape": [2, 2]}, "another size than its shape"),
        ({"shape": [3, 3]}, "another size than its shape"),
        ({"shape": 6}, "it: expected a list"),
        ({"shape": [-2, -3]}, "it: found -2"),
        ({"shape": [2.0, 3.0]}, "it: found 2.0"),
        ({"shape": [1 << 26, 1]}, "another size than its shape"),
        ({"shape": [(1 << 26) + 1, 1]}, "too many bytes"),
        ({"shape": [10**9, 10**9]}, "too many bytes"),
        ({"data": PACKED["data"][:-4]}, "it: "),
        ({"data": "!" + PACKED["data"]}, "it: "),
        ({"data": 3}, "it: "),
        ({"data": "AAAA"}, "it: "),
        ({"note": 1}, "it: it has no note"),
        ({"data": pack([[np.nan] * 3] * 2, "<f8")["data"]}, "a number that is not finite"),
    ],
)
def test_forged_arrays(change, reason):
    with pytest.raises(CertificateError, match=reason):
        unpack({**PACKED, **change}, "it", "f", (None, None))


def test_what_follows_the_data_is_refused():
    data = base64.b64decode(PACKED["data"])
    longer = [zlib.compress(bytes(n)) for n in (0, 47, 49, 10_000, 10**7)]
    for more in (data + b"\0", data[:-1], *longer):
        with pytest.raises(CertificateError, match="another size"):
            unpack({**PACKED, "data": base64.b64encode(more).decode()}, "it", "f", (2, 3))


def test_a_wrong_shape_is_refused_before_anything_is_unpacked(monkeypatch):
    def bomb(*_):
        raise AssertionError("something was unpacked")

    monkeypatch.setattr("zlib.decompressobj", bomb)
    for shape in ((2,), (2, 4), (3, None), (2, 3, 1)):
        with pytest.raises(CertificateError, match="is needed"):
            unpack(PACKED, "it", "f", shape)
    for changed in ([2, True], [2.0, 3], ["2", 3], "2", [1 << 40, 3], [1] * 9):
        with pytest.raises(CertificateError):
            unpack({**PACKED, "shape": changed}, "it", "f", (None, 3))
