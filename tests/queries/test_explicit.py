"""Queries from a function or a table: DALENIUS Examples 1 and 5, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.model import RecordSpace
from cvxleak.queries import count, from_function, from_table, modular_sum, pair_sum, parity

EXAMPLE_1 = RecordSpace([(0, 1, 2), (0, 1)])


def test_dalenius_example_1():
    equal = from_function(EXAMPLE_1, lambda x: int(x[0] == x[1]))
    assert equal == from_table(EXAMPLE_1, [[1, 0], [0, 1], [0, 0]])
    assert equal.table().tolist() == [[1, 0], [0, 1], [0, 0]]
    assert equal.values == (0, 1)
    assert equal.sensitivity == 1
    assert equal.fibers([0]) == [{0: 1, 1: 1}, {0: 1, 1: 1}, {0: 2}]
    assert equal.fibers([1]) == [{0: 2, 1: 1}, {0: 2, 1: 1}]
    assert equal.exchangeable() == [[0], [1]]


def test_a_function_that_fails_names_the_dataset():
    with pytest.raises(
        ValidationError, match=r"^function: it failed on the dataset \(0, 0\): Zero"
    ):
        from_function(EXAMPLE_1, lambda x: 1 / x[0])


def test_dalenius_example_5():
    space = RecordSpace.binary(4)
    odd = from_function(space, lambda x: sum(x) % 2)
    for record in range(4):
        assert odd.fibers([record]) == parity(4).fibers([record])
    assert odd.exchangeable() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("query", [count(5), parity(5), modular_sum(5, 3), pair_sum(5)])
def test_a_function_gives_what_the_additive_query_gives(query):
    written = from_function(query.space, query)
    assert written.values == query.values
    assert written.sensitivity == query.sensitivity
    assert np.array_equal(written.table(), query.table())
    assert written.fibers([1, 3]) == query.fibers([1, 3])


@given(st.data(), st.lists(st.integers(1, 3), min_size=1, max_size=3))
@settings(max_examples=60)
def test_array_mapping_series_and_function_agree(data, shape):
    space = RecordSpace([tuple(range(size)) for size in shape])
    size = space.size
    table = data.draw(st.lists(st.sampled_from([-1.5, 0, 2]), min_size=size, max_size=size))
    flat = from_table(space, table)
    mapping = dict(zip(space.datasets(), table, strict=True))
    assert flat == from_table(space, np.array(table).reshape(shape))
    assert flat == from_table(space, mapping)
    assert flat == from_function(space, mapping.__getitem__)
    index = pd.MultiIndex.from_tuples(mapping) if len(shape) > 1 else pd.Index(range(size))
    assert flat == from_table(space, pd.Series(table, index=index))
    assert [flat(x) for x in space.datasets()] == table
    assert list(flat.values) == sorted(set(table))


def test_values_that_are_no_numbers_keep_the_order_in_which_they_appear():
    space = RecordSpace.binary(2)
    words = from_table(space, ["some", "all", "all", "none"])
    assert words.values == ("some", "all", "none")
    with pytest.raises(ValidationError, match="sensitivity"):
        _ = words.sensitivity
    mixed = from_table(space, [0, "no", 0, 1])
    assert mixed.values == (0, "no", 1)
    tuples = from_function(space, lambda x: x)
    assert tuples.values == tuple(space.datasets())


def test_numpy_values_become_python_values():
    query = from_table(RecordSpace.binary(1), np.array([1, 0]))
    assert [type(value) for value in query.values] == [int, int]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([0, 1, 2], r"table: found shape \(3,\)"),
        ([[0, 1], [1]], "table: "),
        ({(0, 0): 1, (0, 1): 1, (1, 0): 1}, r"table: the dataset \(1, 1\) has no value"),
        (
            {(0, 0): 1, (0, 1): 1, (1, 0): 1, (1, 1): 0, (2, 2): 0},
            r"table: \(2, 2\) is not a dataset",
        ),
        ([0, 1, 2, float("nan")], "NaN"),
        ({(0, 0): [1], (0, 1): 1, (1, 0): 1, (1, 1): 0}, "not hashable"),
        (pd.Series([0, 1, 2, 3, 4], index=[(0, 0), (0, 1), (1, 0), (1, 1), (1, 1)]), "twice"),
        (None, "table: "),
    ],
)
def test_a_table_that_is_wrong(table, message):
    with pytest.raises(ValidationError, match=message):
        from_table(RecordSpace.binary(2), table)


def test_a_function_or_a_space_that_is_wrong():
    with pytest.raises(ValidationError, match="function: expected a callable"):
        from_function(RecordSpace.binary(2), 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValidationError, match=r"function: .*not hashable"):
        from_function(RecordSpace.binary(2), list)
    with pytest.raises(ValidationError, match=r"function: .*NaN"):
        from_function(RecordSpace.binary(2), lambda x: float("nan"))
    for space in (RecordSpace.binary(23), RecordSpace.binary(20_000), [(0, 1)]):
        with pytest.raises(ValidationError, match="space: "):
            from_function(space, sum)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValidationError, match="space: "):
            from_table(space, [0])  # pyright: ignore[reportArgumentType]
