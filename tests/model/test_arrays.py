"""Matrices as people have them: each is taken, or the message names what to do.

Nothing is corrected in silence: what a channel is made of is what was given, or a set of channels.
"""

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cvxleak import capacity
from cvxleak.core.errors import ValidationError
from cvxleak.measures import local_dp_epsilon, mutual_information
from cvxleak.mechanisms import identity, randomized_response
from cvxleak.model import Channel, ChannelSet, Prior, as_channel

ROWS = [[0.5, 0.5], [0.25, 0.75]]
SINGLE = np.array([[0.9, 0.05, 0.05], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], dtype=np.float32)


class Tensor:
    """What tensors have in common: they are read as arrays, some only after `detach`."""

    def __init__(self, values: Any, gradient: bool = False) -> None:
        self.values, self.gradient = np.asarray(values), gradient

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.gradient:
            raise RuntimeError("this tensor requires grad; use tensor.detach().numpy()")
        return self.values.astype(dtype or self.values.dtype)


class Shared:
    """An array that is handed over by DLPack only."""

    def __init__(self, values: Any, device: int = 1) -> None:
        self.values, self.device = np.asarray(values), device

    def __dlpack__(self, **options: Any) -> Any:
        if self.device != 1:
            raise BufferError("the array is on another device")
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


@pytest.mark.parametrize(
    "given",
    [
        sparse.csr_matrix(ROWS),
        sparse.csc_array(ROWS),
        sparse.coo_array(ROWS),
        np.array(ROWS, dtype=np.float32),
        np.asfortranarray(ROWS),
        np.array(ROWS, dtype=">f8"),
        Tensor(ROWS),
        Tensor(np.array(ROWS, dtype=np.float16)),
        [Tensor(row) for row in ROWS],
        Shared(ROWS),
        pd.DataFrame(ROWS),
        [["1/2", "0.5"], [Fraction(1, 4), Decimal("0.75")]],
    ],
)
def test_what_holds_a_channel_is_one(given: Any):
    for channel in (Channel(given), as_channel(given), Channel.from_solver(given)):
        assert channel == Channel(ROWS)
    assert mutual_information(given, [0.5, 0.5]) == mutual_information(ROWS, [0.5, 0.5])


def test_a_sparse_matrix_that_is_too_large_is_refused():
    with pytest.raises(ValidationError, match="as an array it has more than"):
        Channel(sparse.coo_array((1 << 20, 1 << 20)))


def test_a_frame_brings_its_labels():
    frame = pd.DataFrame(ROWS, index=["a", "b"], columns=["no", "yes"])
    assert Channel(frame) == Channel(ROWS, ["a", "b"], ["no", "yes"])
    assert Channel.from_solver(frame) == Channel(frame)
    of_polars: Any = SimpleNamespace(columns=["no", "yes"], to_numpy=lambda: np.array(ROWS))
    assert Channel(of_polars) == Channel(ROWS, outputs=["no", "yes"])
    column = pd.Series([0.25, 0.75], index=["a", "b"])
    assert Prior(column) == Prior([0.25, 0.75], ["a", "b"])
    with pytest.raises(ValidationError, match="labels would be lost"):
        Channel(frame, inputs=["c", "d"])
    with pytest.raises(ValidationError, match="take one of its columns"):
        Prior(frame)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (SINGLE, r"float32 numbers are rounded .*Channel\.from_solver\(matrix\) repairs"),
        (Tensor(SINGLE), r"float32 numbers .*Channel\.from_solver\(matrix\)"),
        (pd.DataFrame(SINGLE), r"float32 numbers .*Channel\.from_solver\(matrix\)"),
        (SINGLE.astype(np.float16), r"Channel\.from_solver\(matrix, tol=1e-3\)"),
        (Tensor(SINGLE, gradient=True), r"use tensor\.detach\(\)\.numpy\(\)"),
        (Shared(ROWS, device=2), "on another device"),
        (
            [[0.333333] * 3] * 2,
            r"rounded to 6 decimals: cvxleak\.ChannelSet\.from_printed\(matrix, 6\)",
        ),
        ([["0.3333333"] * 3] * 2, r"rounded to 7 decimals: .*'1/3' are exact"),
        ([[0.5, 0.500000003], [0.5, 0.5]], r"off by rounding: Channel\.from_solver\(matrix\)"),
        ([[0.9, 0.3, 0.5], [0.1, 0.7, 0.5]], r"its columns sum to 1, .*\(\.T\)$"),
        ([[1, 0, 1], [0, 1, 0]], r"its columns sum to 1, .*\(\.T\)$"),
        ([[-1e-9, 1 + 1e-9]], r"Channel\.from_solver repairs"),
        (cp.Variable((2, 2)), "its `value` is needed"),
        ([0.5, 0.5], r"single row as \[\[\.\.\.\]\]"),
        ([["0,5", "0,5"]], "decimals have a point"),
        ("rows.csv", r"from_csv reads"),
        ({"a": [0.5, 0.5]}, "its values as a list, and its keys as labels"),
        ([[0.5, 0.5], [1.0]], "rows are not equally long"),
        (ChannelSet(ROWS, ROWS), r"\.center"),
    ],
)
def test_what_holds_none_is_told_a_remedy(given: Any, remedy: str):
    for call in (Channel, capacity) if not isinstance(given, ChannelSet) else (as_channel,):
        with pytest.raises(ValidationError, match=remedy):
            call(given)


def test_the_remedies_are_right():
    repaired = Channel.from_solver(SINGLE)
    exact = SINGLE.astype(float)
    assert np.array_equal(repaired.matrix, exact / exact.sum(axis=1, keepdims=True))
    assert Channel.from_solver(SINGLE.astype(np.float16), tol=1e-3).shape == (3, 3)
    thirds = Channel([["1/3"] * 3] * 2)
    assert thirds in ChannelSet.from_printed([[0.333333] * 3] * 2, 6)


@pytest.mark.parametrize("scale", [0.9, 1.1, 0.99])
def test_there_is_no_remedy_for_what_is_no_rounding(scale):
    with pytest.raises(ValidationError, match=r"must sum to 1 within 1e-09$"):
        Channel(scale * np.array([[0.123456789012345, 1 - 0.123456789012345]]))


def test_a_law_is_told_its_own_remedies():
    cases: list[tuple[Any, str]] = [
        ([0.333333] * 3, "rounded to 6 decimals: give more digits, fractions .*divide by the sum"),
        (SINGLE[0] / np.float32(1.0000003), "float32 .*: divide by the sum, in float64"),
        (sparse.coo_array([[0.5, 0.5]]), r"\.ravel\(\) makes a vector"),
    ]
    for law, remedy in cases:
        with pytest.raises(ValidationError, match=remedy):
            Prior(law)


def test_one_symbol_and_no_noise():
    assert randomized_response(1, 0.5) == Channel([[1.0]])
    assert randomized_response(3, np.inf) == identity(3)
    assert local_dp_epsilon(randomized_response(2, np.inf)) == np.inf
    for rows in ([[1.0]], [[1.0], [1.0]], [[0.25, 0.75]]):
        bound = capacity(rows)
        assert bound.lower <= 0 <= bound.upper <= 1e-12
        assert local_dp_epsilon(rows) == 0


def test_large_products_are_refused_by_size():
    wide = Channel(np.full((2, 242), 1 / 242))
    twice = wide.product(wide)
    assert twice.shape == (2, 58564)
    with pytest.raises(ValidationError, match=r"14172488 pairs; with 2 inputs, at most 262144 are"):
        twice.product(wide)
    # What the message says to do; the labels of 58564 pairs in each output would take long.
    assert Channel(twice.reduced().matrix).product(wide).shape == (2, 242)
    thirds = Channel([["1/3"] * 3] * 30_000)
    with pytest.raises(ValidationError, match=r"9 pairs; with 30000 inputs, at most 8 are"):
        thirds.product(thirds)
