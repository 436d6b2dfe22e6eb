"""DALENIUS Definitions 11 and 12 and Corollary 2: the bound, and its equality."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import (
    binary_symmetric,
    column_symmetric_bound,
    constant,
    generalized_symmetric,
    identity,
    is_column_symmetric,
    is_weakly_symmetric,
    random_rounding,
    randomized_response,
    symmetric_capacity,
    truncated_geometric,
)
from cvxleak.mechanisms import column_symmetry as module
from cvxleak.model import Channel, Mechanism, RecordSpace, TableQuery
from cvxleak.queries import count, from_function, modular_sum, parity

CYCLIC = Channel([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])


@st.composite
def permuted_mechanisms(draw):
    """Mechanisms whose rows are permutations of one law, on up to three records."""
    width = draw(st.integers(2, 4))
    weights = draw(st.lists(st.integers(0, 5), min_size=width, max_size=width).filter(any))
    shape = draw(st.lists(st.integers(2, 3), min_size=1, max_size=3))
    space = RecordSpace([tuple(range(size)) for size in shape])
    orders = draw(st.lists(st.permutations(range(width)), min_size=2, max_size=4))
    values = draw(
        st.lists(st.integers(0, len(orders) - 1), min_size=space.size, max_size=space.size)
    )
    used = sorted(set(values))
    law = np.array(weights) / sum(weights)
    query = TableQuery(space, [used.index(v) for v in values], used)
    return Mechanism(query, np.array([law[list(orders[v])] for v in used]))


def weakly_symmetric_records(mechanism):
    table = mechanism.to_channel().matrix.reshape(*mechanism.space.shape, -1)
    found = []
    for record in range(mechanism.space.records):
        contexts = [rows.reshape(-1, rows.shape[-1]) for rows in np.moveaxis(table, record, 0)]
        sums = (sum(rows) for rows in product(*contexts))
        if any(np.ptp(total) < 1e-9 for total in sums):
            found.append(record)
    return found


@given(permuted_mechanisms())
@settings(max_examples=60)
@pytest.mark.slow
def test_corollary_2_bounds_c_1_and_is_attained_under_weak_symmetry(individual_capacity, mechanism):
    assert is_column_symmetric(mechanism)
    bound = column_symmetric_bound(mechanism)
    leakage = individual_capacity(mechanism)
    assert leakage <= bound + 1e-9
    records = weakly_symmetric_records(mechanism)
    for record in range(mechanism.space.records):
        assert is_weakly_symmetric(mechanism, record) == (record in records)
    assert is_weakly_symmetric(mechanism) == bool(records)
    if records:
        assert leakage == pytest.approx(bound, abs=1e-7)


def test_a_channel_alone_is_a_mechanism_with_one_record(capacity):
    assert is_weakly_symmetric(CYCLIC)
    assert capacity(CYCLIC.matrix) == pytest.approx(column_symmetric_bound(CYCLIC), abs=1e-7)
    two_rows = Channel(CYCLIC.matrix[:2])
    assert is_column_symmetric(two_rows)
    assert not is_weakly_symmetric(two_rows)
    assert capacity(two_rows.matrix) < column_symmetric_bound(two_rows) - 1e-3
    alone = Mechanism.from_channel(RecordSpace([(0, 1)]), two_rows)
    assert not is_weakly_symmetric(alone)


def test_which_mechanisms_are_symmetric():
    for channel in (randomized_response(4, 1.0), binary_symmetric(0.2), identity(3)):
        assert is_weakly_symmetric(channel)
    # Rows that are all equal are permutations of one another, with unequal column sums.
    flat = constant(3, [0.2, 0.8])
    assert is_column_symmetric(flat)
    assert not is_weakly_symmetric(flat)
    for channel in (truncated_geometric(4, 1.0), random_rounding(4, 3)):
        assert not is_column_symmetric(channel)
        assert not is_weakly_symmetric(channel)


def test_only_rows_that_some_dataset_has_count():
    odd_one = Channel([[0.7, 0.3], [0.3, 0.7], [0.5, 0.5]])
    assert not is_column_symmetric(odd_one)
    assert is_column_symmetric(Mechanism(parity(3), odd_one))
    assert is_weakly_symmetric(Mechanism(parity(3), odd_one))


def test_one_record_can_be_weakly_symmetric_where_another_is_not():
    space = RecordSpace([(0, 1, 2), (0, 1)])
    mechanism = Mechanism(from_function(space, lambda x: sum(x) % 3), CYCLIC.matrix)
    assert is_weakly_symmetric(mechanism, 0)
    assert not is_weakly_symmetric(mechanism, 1)
    assert is_weakly_symmetric(mechanism)


def test_weak_symmetry_is_not_necessary(individual_capacity):
    # The third value repeats the row of the first: two of the three values attain the bound.
    mechanism = Mechanism.from_channel(
        RecordSpace([(0, 1, 2)]), [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]]
    )
    assert not is_weakly_symmetric(mechanism)
    bound = column_symmetric_bound(mechanism)
    assert individual_capacity(mechanism) == pytest.approx(bound, abs=1e-7)


@given(st.integers(2, 8), st.floats(0, 1))
def test_the_bound_of_the_symmetric_channel_is_its_capacity(m, flip):
    bound = column_symmetric_bound(generalized_symmetric(m, flip))
    assert bound == pytest.approx(symmetric_capacity(m, flip), abs=1e-12)


def test_many_records():
    mechanism = Mechanism(modular_sum(10_000, 2), binary_symmetric(0.3))
    assert is_weakly_symmetric(mechanism)
    assert column_symmetric_bound(mechanism) == pytest.approx(symmetric_capacity(2, 0.3))


def test_the_tolerance():
    almost = [[0.7, 0.3], [0.3 + 1e-6, 0.7 - 1e-6]]
    assert not is_column_symmetric(almost)
    assert is_column_symmetric(almost, tol=1e-5)
    assert is_weakly_symmetric(almost, tol=1e-5)


def test_what_is_refused(monkeypatch):
    with pytest.raises(ValidationError, match="not permutations"):
        column_symmetric_bound(truncated_geometric(3, 1.0))
    with pytest.raises(ValidationError, match="record"):
        is_weakly_symmetric(CYCLIC, 0)
    with pytest.raises(ValidationError, match="record"):
        is_weakly_symmetric(Mechanism(parity(3), binary_symmetric(0.1)), 3)
    with pytest.raises(ValidationError, match="tol"):
        is_column_symmetric(CYCLIC, tol=-1)
    with pytest.raises(ValidationError, match="subject"):
        is_column_symmetric([[0.5, 0.6]])
    monkeypatch.setattr(module, "ENTRIES", 10)
    with pytest.raises(ValidationError, match="choices of rows"):
        is_weakly_symmetric(Mechanism(count(2), CYCLIC.matrix))


def test_bound_ranges():
    assert column_symmetric_bound(identity(4)) == pytest.approx(math.log(4))
    assert column_symmetric_bound(constant(2, [0.5, 0.5])) == 0
