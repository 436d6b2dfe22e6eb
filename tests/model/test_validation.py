"""The checks that every argument goes through."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    check_cells,
    composed_rows,
    frozen_array,
    label_tuple,
    probability_rows,
    real_number,
    short,
    whole_number,
)


def test_a_matrix_that_is_asked_for_by_its_size_has_a_limit():
    check_cells(10_000, 10_000, "k")
    with pytest.raises(ValidationError, match=r"^k: a matrix of 20001 x 20001 .* 3200 MB"):
        check_cells(20_001, 20_001, "k")
    with pytest.raises(ValidationError, match=r"80000000000000000 MB"):
        check_cells(10**11, 10**11, "k")


class TestArrays:
    def test_is_a_read_only_copy(self):
        given = np.array([0.5, 0.5])
        array = frozen_array(given, "p", 1)
        given[0] = 7.0
        assert array.tolist() == [0.5, 0.5]
        with pytest.raises(ValueError, match=r"read-only"):
            array[0] = 1.0

    def test_the_callers_array_stays_writable(self):
        given = np.array([0.5, 0.5])
        frozen_array(given, "p", 1)
        given[0] = 0.0
        assert given[0] == 0.0

    def test_negative_zero_becomes_zero(self):
        assert frozen_array([-0.0, 1.0], "p", 1).tobytes() == np.array([0.0, 1.0]).tobytes()

    def test_memory_order_does_not_matter(self):
        given = np.asfortranarray([[0.25, 0.75], [0.5, 0.5]])
        assert frozen_array(given, "q", 2).flags.c_contiguous

    def test_exact_numbers_are_read(self):
        assert frozen_array([Fraction(1, 4), 0.75], "p", 1).tolist() == [0.25, 0.75]

    @pytest.mark.parametrize(
        "values",
        [
            ["0.5", "half"],
            [0.5, "1/0"],
            [0.5 + 0j, 0.5 + 0j],
            np.array([0.5 + 0j, 0.5]),
            [None, 1.0],
            [Decimal("1e999"), 0.5],
            [[0.5], [0.5, 0.5]],
            [10**400, 0.5],
            "ab",
            None,
            {0.5},
            np.array(["2020-01-01"], dtype="datetime64[D]"),
        ],
    )
    def test_what_is_not_numbers_is_refused(self, values):
        with pytest.raises(ValidationError, match=r"^p: expected an array of real numbers"):
            frozen_array(values, "p", 1)

    def test_pandas_labels_are_not_dropped_in_silence(self):
        with pytest.raises(ValidationError, match=r"^p: found a pandas Series, .*from_pandas"):
            frozen_array(pd.Series([0.5, 0.5], index=["b", "a"]), "p", 1)

    def test_wrong_dimension(self):
        with pytest.raises(ValidationError, match=r"^p: expected 1 dimension\(s\), .*\(1, 2\)"):
            frozen_array([[0.5, 0.5]], "p", 1)

    def test_nan_is_located(self):
        with pytest.raises(ValidationError, match=r"^q: found NaN at index \(1, 0\)"):
            frozen_array([[1.0, 2.0], [math.nan, 1.0]], "q", 2)


class TestProbabilities:
    def test_the_tolerance_is_absolute(self):
        assert probability_rows([0.5, 0.5 + 0.9e-9], "p", 1)[1] == 0.5 + 0.9e-9
        with pytest.raises(ValidationError, match=r"^p: sums to 1\.0000000011"):
            probability_rows([0.5, 0.5 + 1.1e-9], "p", 1)

    @pytest.mark.parametrize("values", [[[]], np.zeros((0, 3)), np.zeros((2, 0))])
    def test_empty(self, values):
        with pytest.raises(ValidationError, match=r"^q: .*must not be empty"):
            probability_rows(values, "q", 2)

    @pytest.mark.parametrize("value", [-1e-300, -0.5, math.inf, -math.inf])
    def test_out_of_range_is_located(self, value):
        with pytest.raises(ValidationError, match=rf"^q: found {value!r} at index \(1, 0\)"):
            probability_rows([[0.5, 0.5], [value, 1.0]], "q", 2)

    def test_the_worst_row_is_named(self):
        with pytest.raises(ValidationError, match=r"^q: row 2 sums to 0\.5;"):
            probability_rows([[1.0, 0.0], [0.5, 0.6], [0.5, 0.0]], "q", 2)

    def test_huge_finite_entries_do_not_warn(self):
        with pytest.raises(ValidationError, match=r"sums to inf"):
            probability_rows([1e308, 1e308], "p", 1)

    def test_composed_rows_only_touches_rows_off_the_tolerance(self):
        good = np.array([0.3, 0.7])
        off = np.array([0.3, 0.7 + 1.8e-9])
        result = composed_rows(np.array([good, off]))
        assert result[0].tobytes() == good.tobytes()
        assert result[1] == pytest.approx(off / off.sum(), abs=1e-16)


class TestLabels:
    def test_default(self):
        assert label_tuple(None, 3, "inputs") == (0, 1, 2)

    def test_numpy_scalars_become_plain(self):
        labels = label_tuple([np.int64(1), np.str_("a"), (np.float64(0.5), np.bool_(True))], 3, "x")
        assert labels == (1, "a", (0.5, True))
        kinds = [type(x) for x in (*labels[:2], *labels[2])]
        assert kinds == [int, str, float, bool]

    @pytest.mark.parametrize("pair", [(1, 1.0), (1, True), (0.0, -0.0), ("a", "a"), ((1,), (1.0,))])
    def test_equal_labels_are_both_named(self, pair):
        with pytest.raises(ValidationError, match=r"^inputs: found .* and .*, which are equal"):
            label_tuple(pair, 2, "inputs")

    def test_text_and_number_differ(self):
        assert label_tuple(["1", 1], 2, "inputs") == ("1", 1)

    @pytest.mark.parametrize("label", [[1], {1: 2}, {1}, np.array([1, 2]), (1, [2])])
    def test_unhashable(self, label):
        with pytest.raises(ValidationError, match=r"^inputs: the label .* is not hashable"):
            label_tuple([label], 1, "inputs")

    @pytest.mark.parametrize("label", [math.nan, np.nan, (1, math.nan)])
    def test_nan(self, label):
        with pytest.raises(ValidationError, match=r"^inputs: found the label NaN"):
            label_tuple([label], 1, "inputs")

    @pytest.mark.parametrize("labels", [{"a", "b"}, frozenset("ab"), {"a": 1, "b": 2}.keys()])
    def test_a_set_has_no_order(self, labels):
        with pytest.raises(ValidationError, match=r"^inputs: found a set"):
            label_tuple(labels, 2, "inputs")

    def test_count(self):
        with pytest.raises(ValidationError, match=r"^inputs: found 1 label; 2 are needed"):
            label_tuple(["a"], 2, "inputs")

    def test_not_iterable(self):
        with pytest.raises(ValidationError, match=r"^inputs: expected a sequence, found 3"):
            label_tuple(3, 2, "inputs")


class TestNumbers:
    def test_interval_ends(self):
        assert real_number(0, "x", 0, 1) == 0.0
        assert type(real_number(np.float32(0.5), "x")) is float
        assert real_number(Fraction(1, 4), "x", 0, 1) == 0.25
        for bad in ({"open_low": True}, {"low": 0.1}):
            with pytest.raises(ValidationError, match=r"^x: found 0; it must be in "):
                real_number(0, "x", **{"low": 0, **bad})
        with pytest.raises(ValidationError, match=r"it must be in \[0, 1\)"):
            real_number(1, "x", 0, 1, open_high=True)

    def test_infinity(self):
        assert real_number(math.inf, "x") == math.inf
        with pytest.raises(ValidationError, match=r"\(-inf, inf\)"):
            real_number(math.inf, "x", open_high=True)

    @pytest.mark.parametrize(
        "value",
        [
            True,
            np.bool_(True),
            "one",
            "1_0",
            None,
            1j,
            np.complex128(1),
            math.nan,
            np.array(0.5),
            10**400,
        ],
    )
    def test_what_is_not_a_number(self, value):
        with pytest.raises(ValidationError, match=r"^x: "):
            real_number(value, "x")

    def test_whole_numbers(self):
        assert type(whole_number(np.int8(3), "k", 1)) is int
        for bad in (0, 5, 2.0, True, "2", None, np.float64(2), 10**5000):
            with pytest.raises(ValidationError, match=r"^k: .*an integer from 1 to 4"):
                whole_number(bad, "k", 1, 4)


class TestMessages:
    @pytest.mark.parametrize(
        "value",
        [
            np.zeros(10**6),
            [0.123456789] * 10**5,
            "x" * 10**5,
            10**10_000,
            -(10**10_000),
            [(10**10_000,)],
            tuple(tuple(range(1000)) for _ in range(1000)),
            {i: list(range(1000)) for i in range(1000)},
            pd.DataFrame(np.zeros((1000, 100))),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_are_short_whatever_is_given(self, value):
        assert 0 < len(short(value)) < 200

    def test_say_what_small_values_are(self):
        assert short((1, "a", np.float64(0.5))) == "(1, 'a', 0.5)"
        assert short(-(10**20)) == "about -10^20"
        assert short(np.zeros((2, 3))) == "an array of shape (2, 3)"

    def test_no_array_is_dumped(self):
        with pytest.raises(ValidationError) as caught:
            frozen_array([[0.1] * 5000, [0.2] * 4999], "q", 2)
        assert len(str(caught.value)) < 400
