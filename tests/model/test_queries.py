"""Queries against brute force over all datasets."""

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Query, RecordSpace, TableQuery
from cvxleak.model.joint import joint_query

few = settings(max_examples=60)


@st.composite
def spaces(draw, records=4):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=records))
    return RecordSpace([range(size) for size in sizes])


@st.composite
def additive_queries(draw, space=None):
    space = draw(spaces()) if space is None else space
    width = draw(st.integers(0, 2))
    part = st.integers(0, 5)
    if width:
        part = st.tuples(*[part] * width)
    # From few kinds of records, so that equal ones occur.
    kinds = {n: draw(st.lists(st.tuples(*[part] * n), min_size=1, max_size=2)) for n in (1, 2, 3)}
    contributions = [draw(st.sampled_from(kinds[n])) for n in space.shape]
    modulus = draw(st.none() | st.integers(1, 6))
    value = draw(st.sampled_from([None, lambda t: sum(t) % 3 if width else t % 3, repr]))
    return AdditiveQuery(space, contributions, value, modulus)


@st.composite
def table_queries(draw, space=None):
    space = draw(spaces()) if space is None else space
    drawn = draw(st.lists(st.integers(0, 2), min_size=space.size, max_size=space.size))
    names = sorted(set(drawn))
    return TableQuery(space, [names.index(v) for v in drawn], [f"v{v}" for v in names])


queries = additive_queries() | table_queries()


def brute_force_fibers(query, group):
    datasets = list(query.space.datasets())
    result = []
    for joint in product(*(query.space.alphabets[i] for i in group)):
        agree = (x for x in datasets if tuple(x[i] for i in group) == joint)
        result.append(Counter(query.values.index(query(x)) for x in agree))
    return result


@few
@given(query=queries, data=st.data())
def test_fibers_count_the_contexts(query, data):
    n = query.space.records
    order = data.draw(st.permutations(range(n)))
    group = order[: data.draw(st.integers(1, n))]
    fibers = query.fibers(group)
    assert fibers == brute_force_fibers(query, group)
    assert all(type(m) is int for fiber in fibers for m in fiber.values())
    if len(group) == 1:
        assert query.fibers(group[0]) == fibers


@few
@given(query=queries)
def test_table_and_values_list_the_query(query):
    table = query.table()
    assert table.shape == query.space.shape
    computed = [query.values[place] for place in table.ravel()]
    assert computed == [query(x) for x in query.space.datasets()]
    assert set(computed) == set(query.values)


@few
@given(query=additive_queries())
def test_the_definition_of_an_additive_query(query):
    for x, place in zip(
        query.space.datasets(), product(*map(range, query.space.shape)), strict=True
    ):
        parts = [record[k] for record, k in zip(query.contributions, place, strict=True)]
        total = tuple(map(sum, zip(*parts, strict=True)))
        if query.modulus is not None:
            total = tuple(t % query.modulus for t in total)
        assert query(x) == dict(query.value_of_total)[total]


@few
@given(query=queries)
def test_exchangeable_records_can_be_swapped(query):
    parts = query.exchangeable()
    assert sorted(i for part in parts for i in part) == list(range(query.space.records))
    for part in parts:
        for i, j in combinations(part, 2):
            assert query.space.alphabets[i] == query.space.alphabets[j]
            for x in query.space.datasets():
                swapped = list(x)
                swapped[i], swapped[j] = x[j], x[i]
                assert query(swapped) == query(x)


@few
@given(query=table_queries())
def test_a_table_finds_all_exchangeable_records(query):
    first = [part[0] for part in query.exchangeable()]
    for i, j in combinations(first, 2):
        if query.space.alphabets[i] == query.space.alphabets[j]:
            swap = list(range(query.space.records))
            swap[i], swap[j] = j, i
            assert any(query([x[k] for k in swap]) != query(x) for x in query.space.datasets())


@few
@given(query=queries)
def test_neighbor_pairs(query):
    expected = set()
    for x in query.space.datasets():
        for i, alphabet in enumerate(query.space.alphabets):
            for value in alphabet:
                pair = (query(x), query((*x[:i], value, *x[i + 1 :])))
                u, v = sorted(query.values.index(w) for w in pair)
                if u < v:
                    expected.add((u, v))
    assert query.neighbor_pairs() == expected


@few
@given(data=st.data())
def test_joint_queries(data):
    space = data.draw(spaces())
    kinds = st.one_of(additive_queries(space), table_queries(space))
    first, second = data.draw(kinds), data.draw(kinds)
    joint = joint_query(first, second)
    for x in space.datasets():
        assert joint(x) == (first(x), second(x))
    assert isinstance(joint, AdditiveQuery) == (
        isinstance(first, AdditiveQuery) and isinstance(second, AdditiveQuery)
    )
    assert joint.fibers([0]) == brute_force_fibers(joint, [0])


class TestSensitivity:
    def test_of_a_count_is_one(self):
        assert AdditiveQuery(RecordSpace.binary(5), [(0, 1)] * 5).sensitivity == 1

    def test_of_a_modular_sum_depends_on_the_distance(self):
        query = AdditiveQuery(RecordSpace.binary(6), [(0, 1)] * 6, modulus=5)
        assert query.sensitivity == 4
        assert query.cyclic_sensitivity(5) == 1

    def test_a_sum_that_cannot_wrap(self):
        query = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=5)
        assert query.sensitivity == 1

    def test_of_a_constant_is_zero(self):
        query = TableQuery(RecordSpace.binary(2), [0] * 4, ["x"])
        assert query.neighbor_pairs() == set()
        with pytest.raises(ValidationError, match=r"^query: its value 'x' is not a finite number"):
            _ = query.sensitivity
        assert TableQuery(RecordSpace.binary(2), [0] * 4, [3.5]).sensitivity == 0

    def test_of_single_valued_records(self):
        query = AdditiveQuery(RecordSpace([["x"], (0, 1)]), [(100,), (0, 3)])
        assert query.values == (100, 103)
        assert query.sensitivity == 3

    @pytest.mark.parametrize("value", [True, math.inf, (1, 2), None, "1"])
    def test_needs_finite_numbers(self, value):
        query = TableQuery(RecordSpace.binary(1), [0, 1], [value, 0])
        for attempt in (lambda: query.sensitivity, lambda: query.cyclic_sensitivity(2)):
            with pytest.raises(ValidationError, match=r"not a finite number"):
                attempt()

    @pytest.mark.parametrize("modulus", [0, -1, 2.0, None])
    def test_needs_a_modulus(self, modulus):
        query = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
        with pytest.raises(ValidationError, match=r"^modulus: "):
            query.cyclic_sensitivity(modulus)


class TestManyRecords:
    """Ten thousand records, with exact integers of three thousand digits."""

    n = 10_000

    def query(self, modulus=None):
        return AdditiveQuery(RecordSpace.binary(self.n), [(0, 1)] * self.n, modulus=modulus)

    def test_counts_are_binomial(self):
        zero, one = self.query().fibers([17])
        for total in (0, 1, 5000, 9999):
            assert zero[total] == one[total + 1] == math.comb(self.n - 1, total)

    @pytest.mark.parametrize("modulus", [1, 2, 3, 64])
    def test_modular_sums_add_up_binomials(self, modulus):
        zero = self.query(modulus).fibers([0])[0]
        expected = Counter()
        binomial = 1
        for k in range(self.n):
            expected[k % modulus] += binomial
            binomial = binomial * (self.n - 1 - k) // (k + 1)
        assert zero == expected

    def test_groups_of_records(self):
        fibers = self.query(3).fibers([5, 9_999, 0])
        assert len(fibers) == 8
        assert fibers[0] != fibers[1] == fibers[2] == fibers[4]
        assert sum(fibers[7].values()) == 2 ** (self.n - 3)

    def test_three_kinds_of_records(self):
        space = RecordSpace([(0, 1), ("a", "b", "c"), ("only",)] * 1000)
        query = AdditiveQuery(space, [(0, 1), (0, 0, 2), (5,)] * 1000, modulus=4)
        # By characters of Z_4: the number with total t is the mean of f(i^k) i^(-kt).
        size = 2**1000 * 3**1000
        constant = 5000 % 4
        at_minus_one = 0  # (1 + x) vanishes at -1
        at_i = (1j + 1) ** 2  # (1 + i)^2 = 2i, (2 + i^2) = 1
        assert at_i == 2j
        power = {0: 2**500, 1: 0, 2: -(2**500), 3: 0}  # (2i)^500 = 2^500, times Re/Im of i^(-t)
        for place, value in enumerate(query.values):
            t = (value - constant) % 4
            count = sum(f[place] if place in f else 0 for f in query.fibers([2]))
            assert count * 4 == size + at_minus_one + 2 * power[t]

    def test_joint_of_a_count_and_a_parity(self):
        joint = joint_query(self.query(), self.query(2))
        assert len(joint.values) == self.n + 1
        assert joint.fibers([0])[0][5] == math.comb(self.n - 1, 5)
        assert joint.values[5] == (5, 1)

    @pytest.mark.parametrize("moduli", [(2, 3), (4, 6), (3, 3), (2, None)])
    def test_joint_of_two_moduli(self, moduli):
        n = 7
        space = RecordSpace.binary(n)
        first, second = (AdditiveQuery(space, [(0, 1)] * n, modulus=m) for m in moduli)
        joint = joint_query(first, second)
        assert isinstance(joint, AdditiveQuery)
        for x in space.datasets():
            assert joint(x) == (first(x), second(x))

    def test_sparse_totals(self):
        query = AdditiveQuery(RecordSpace.binary(40), [(0, 10**30)] * 20 + [(0, 1)] * 20)
        assert len(query.values) == 21 * 21
        assert query.fibers([0])[1][query.values.index(10**30)] == 1

    def test_too_many_totals_is_an_error(self):
        contributions = [((0, 0), (1, 0))] * 5000 + [((0, 0), (0, 1))] * 5000
        with pytest.raises(ValidationError, match=r"^contributions: their sums can take about"):
            AdditiveQuery(RecordSpace.binary(self.n), contributions)

    def test_too_many_joint_values_is_an_error(self):
        with pytest.raises(ValidationError, match=r"^records: 40 of them have 1099511627776 joint"):
            self.query(3).fibers(range(40))
        with pytest.raises(ValidationError, match=r"^records: 5000 of them have about 10"):
            self.query(3).fibers(range(5000))

    def test_too_many_datasets_to_write_out(self):
        with pytest.raises(ValidationError, match=r"^space: found about 10.3010 datasets"):
            self.query(3).table()
        with pytest.raises(ValidationError, match=r"^space: found 8388608 datasets"):
            TableQuery(RecordSpace.binary(23), [0], [0])
        with pytest.raises(ValidationError, match=r"^space: found 1 dataset of 65 records"):
            TableQuery(RecordSpace([[0]] * 65), [0], [0])


class TestAdditive:
    space = RecordSpace([(0, 1), "abc"])

    def test_values_are_ordered_by_total(self):
        query = AdditiveQuery(self.space, [(0, 3), (0, 1, 5)])
        assert query.values == (0, 1, 3, 4, 5, 8)

    def test_equal_values_are_one(self):
        query = AdditiveQuery(
            self.space, [(0, 3), (0, 1, 5)], {0: 0, 1: "x", 3: 0.0, 4: 1, 5: "x", 8: 1}
        )
        assert query.values == (0, "x", 1)

    def test_numpy_numbers(self):
        query = AdditiveQuery(
            self.space, [np.array([0, 3]), np.array([0, 1, 5])], lambda t: np.float64(t) / 2
        )
        assert query.values == (0.0, 0.5, 1.5, 2.0, 2.5, 4.0)
        assert all(type(v) is float for v in query.values)
        assert Query.from_dict(query.to_dict()) == query

    def test_huge_contributions_are_exact(self):
        query = AdditiveQuery(RecordSpace.binary(2), [(0, 2**70), (0, 2**70 + 1)])
        assert query.values == (0, 2**70, 2**70 + 1, 2**71 + 1)
        assert query.table().tolist() == [[0, 2], [1, 3]]

    def test_equality_is_that_of_the_function_as_given(self):
        one = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
        other = AdditiveQuery(RecordSpace.binary(2), [(0, 3)] * 2, {0: 0, 1: 1}, modulus=2)
        assert one == other  # 3 = 1 mod 2

    @pytest.mark.parametrize(
        ("contributions", "message"),
        [
            (None, "^contributions: expected a sequence"),
            ([], "^contributions: found 0 records; the space has 2"),
            ([(0, 1)], "^contributions: found 1 record; the space has 2"),
            ([(0, 1), (0, 1)], r"^contributions\[1\]: found 2; 3 are needed"),
            ([(0, 1), 3], r"^contributions\[1\]: expected a sequence"),
            ([(0, -1), (0, 1, 2)], r"^contributions\[0\]: found -1"),
            ([(0, 1.0), (0, 1, 2)], r"^contributions\[0\]: .*found 1.0"),
            ([(0, True), (0, 1, 2)], r"^contributions\[0\]: .*found True"),
            ([(0, "1"), (0, 1, 2)], r"^contributions\[0\]: .*found '1'"),
            ([(0, [1]), (0, 1, 2)], r"^contributions\[0\]: .*not hashable"),
            ([((0,), (1,)), (0, 1, 2)], "^contributions: .*found both"),
            ([(0, (1,)), (0, 1, 2)], "^contributions: .*found both"),
            ([((0,), (1, 2)), ((0,), (1,), (2,))], "^contributions: .*different lengths"),
            ([((), ()), ((), (), ())], "^contributions: .*length 0"),
            ([np.zeros((2, 2), int), (0, 1, 2)], r"^contributions\[0\]: .*not hashable"),
        ],
    )
    def test_bad_contributions(self, contributions, message):
        with pytest.raises(ValidationError, match=message):
            AdditiveQuery(self.space, contributions)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ({0: 0}, "^value: the total 1 can occur and has no value"),
            ([0, 1, 2, 3], "^value: expected a mapping or a function"),
            (7, "^value: expected a mapping or a function"),
            (lambda t: [t], "^value: the label .* is not hashable"),
            (lambda t: math.nan, "^value: found the label NaN"),
        ],
    )
    def test_bad_values(self, value, message):
        with pytest.raises(ValidationError, match=message):
            AdditiveQuery(self.space, [(0, 1), (0, 1, 2)], value)

    @pytest.mark.parametrize("modulus", [0, -2, 2.0, True, "2"])
    def test_bad_moduli(self, modulus):
        with pytest.raises(ValidationError, match=r"^modulus: "):
            AdditiveQuery(self.space, [(0, 1), (0, 1, 2)], modulus=modulus)

    def test_no_space(self):
        with pytest.raises(ValidationError, match=r"^space: expected a RecordSpace, found 3"):
            AdditiveQuery(3, [(0, 1)] * 3)

    def test_calls_are_checked(self):
        query = AdditiveQuery(self.space, [(0, 1), (0, 1, 2)])
        with pytest.raises(ValidationError, match=r"^dataset\[1\]: found 'd'"):
            query((0, "d"))

    @pytest.mark.parametrize("records", [-1, 2, [0, 0], [], [0, -1], True])
    def test_fibers_are_checked(self, records):
        query = AdditiveQuery(self.space, [(0, 1), (0, 1, 2)])
        table = TableQuery(self.space, range(6), range(6))
        for q in (query, table):
            with pytest.raises(ValidationError, match=r"^records: "):
                q.fibers(records)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"contributions": [[[[0], [1]], 3]]}, "^contributions: found 3"),
            ({"contributions": [[[[0], [1]], 1]]}, "^contributions: found 1 record"),
            ({"contributions": 5}, "^contributions: expected a sequence"),
            ({"contributions": [5]}, "^contributions: found 5; pairs"),
            ({"totals": [[0]]}, "^totals: found 1; there are 3 values"),
            ({"totals": [[0], [0], [1]]}, "^totals: .*which are equal"),
            ({"totals": [[0], [1], [5]]}, "^value: the total .* can occur"),
            ({"modulus": "2"}, "^modulus: "),
            ({"space": None}, "^data: expected a mapping"),
            ({"values": None}, "^values: expected a sequence"),
        ],
    )
    def test_bad_files(self, changes, message):
        data = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2).to_dict()
        with pytest.raises(ValidationError, match=message):
            Query.from_dict({**data, **changes})

    def test_files_are_short_for_many_records(self):
        query = AdditiveQuery(RecordSpace.binary(10_000), [(0, 1)] * 10_000, modulus=3)
        assert len(repr(query.to_dict())) < 300
        assert Query.from_dict(query.to_dict()) == query


class TestTable:
    space = RecordSpace.binary(2)

    def test_either_shape(self):
        flat = TableQuery(self.space, [0, 1, 1, 2], range(3))
        assert flat == TableQuery(self.space, [[0, 1], [1, 2]], range(3))

    def test_the_table_is_read_only(self):
        places = np.array([0, 1, 1, 2])
        query = TableQuery(self.space, places, range(3))
        places[0] = 2
        assert query((0, 0)) == 0
        with pytest.raises(ValueError, match=r"read-only"):
            query.table()[0, 0] = 1

    @pytest.mark.parametrize(
        ("places", "values", "message"),
        [
            ([0, 1, 1], range(2), "^places: .*4 integers are needed"),
            ([[0, 1, 1, 0]], range(2), r"^places: .*shape \(1, 4\)"),
            ([0.0, 1.0, 1.0, 0.0], range(2), "^places: found an array of float64"),
            ([True, False, False, True], range(2), "^places: found an array of bool"),
            (["a", "b", "a", "b"], range(2), "^places: found an array of <U1"),
            ([0, [1], 1, 0], range(2), "^places: "),
            ([0, 1, 1, 2], range(2), "^places: found indices from 0 to 2"),
            ([0, 1, 1, 0], range(3), "^places: .*all of the 3 values"),
            ([0, -1, 1, 0], range(2), "^places: found indices from -1"),
            ([0, 0, 0, 0], [], "^places: "),
            ([0, 1, 1, 0], ["a", "a"], "^values: .*which are equal"),
            ([0, 1, 1, 0], [[0], [1]], "^values: .*not hashable"),
            ([0, 1, 1, 0], {"a", "b"}, "^values: found a set"),
            ([0, 1, 1, 0], 2, "^values: expected a sequence"),
        ],
    )
    def test_bad_tables(self, places, values, message):
        with pytest.raises(ValidationError, match=message):
            TableQuery(self.space, places, values)

    def test_fractions_in_a_file_are_not_truncated(self):
        data = TableQuery(self.space, [0, 1, 1, 0], "ab").to_dict()
        with pytest.raises(ValidationError, match=r"^places: "):
            Query.from_dict({**data, "table": [0.5, 1, 1, 0]})
