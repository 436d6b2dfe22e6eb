"""Mechanisms, and the lumped problem against the full space by brute force."""

import math
import pickle
from collections import Counter
from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Channel, Lumped, Mechanism, Prior, RecordSpace, TableQuery
from cvxleak.model._groups import GROUP_LIMIT, kinds_of_groups
from cvxleak.model._matrix import distinct_rows
from tests.reference import information

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60)


def counting(n, modulus=None):
    return AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=modulus)


def random_mechanism(rng):
    """A random query on a small space, with rows that repeat, and rows with zeros."""
    shape = rng.integers(1, 4, rng.integers(1, 5))
    space = RecordSpace([range(k) for k in shape])
    if rng.random() < 0.5:
        contributions = [tuple(rng.integers(0, 3, k).tolist()) for k in shape]
        query = AdditiveQuery(space, contributions, modulus=[None, 2, 3][rng.integers(3)])
    else:
        names, places = np.unique(rng.integers(0, 4, space.size), return_inverse=True)
        query = TableQuery(space, places, names)
    weights = rng.gamma(1.0, size=(3, 3)) * (rng.random((3, 3)) < 0.8)
    weights[:, 0] += 0.1
    rows = (weights / weights.sum(axis=1, keepdims=True))[rng.integers(0, 3, len(query.values))]
    return Mechanism(query, rows)


def random_group(rng, mechanism):
    n = mechanism.space.records
    group = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
    return group[0] if len(group) == 1 and rng.random() < 0.5 else group


def lumped_joint(lumped, w):
    joint = np.zeros((len(lumped.values), len(lumped.outputs)))
    np.add.at(joint, lumped.value_index, w[:, None] * lumped.rows)
    return joint


def full_joint(mechanism, records, probabilities):
    """P(X_I = a, Y = y) summed dataset by dataset."""
    group = (records,) if isinstance(records, int) else tuple(records)
    values = list(product(*(mechanism.space.alphabets[i] for i in group)))
    joint = np.zeros((len(values), len(mechanism.outputs)))
    for x, p in zip(mechanism.space.datasets(), probabilities, strict=True):
        joint[values.index(tuple(x[i] for i in group))] += p * mechanism.channel.row(
            mechanism.query(x)
        )
    return joint


class TestLumping:
    @few
    @given(seed=seeds)
    def test_information_is_that_of_the_full_space(self, seed):
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(rng)
        records = random_group(rng, mechanism)
        prior = rng.dirichlet(np.full(mechanism.space.size, 0.5))
        lumped = mechanism.lumped(records)
        joint = lumped_joint(lumped, mechanism.lump(records, prior))
        assert joint == pytest.approx(full_joint(mechanism, records, prior), abs=1e-15)
        assert information(joint) == pytest.approx(
            information(full_joint(mechanism, records, prior)), abs=1e-12
        )

    @few
    @given(seed=seeds)
    def test_entropy_is_that_of_the_expanded_prior(self, seed):
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(rng)
        records = random_group(rng, mechanism)
        lumped = mechanism.lumped(records)
        w = rng.dirichlet(np.full(len(lumped.multiplicities), 0.5))
        expanded = mechanism.expand(records, w)
        entropy = entr(w).sum() + w @ lumped.log_multiplicity
        assert entropy == pytest.approx(entr(expanded.probabilities).sum(), abs=1e-12)
        assert mechanism.lump(records, expanded) == pytest.approx(w, abs=1e-15)

    @few
    @given(seed=seeds)
    def test_spreading_evenly_keeps_the_information_and_raises_the_entropy(self, seed):
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(rng)
        records = random_group(rng, mechanism)
        prior = rng.dirichlet(np.full(mechanism.space.size, 0.5))
        spread = mechanism.expand(records, mechanism.lump(records, prior)).probabilities
        assert full_joint(mechanism, records, spread) == pytest.approx(
            full_joint(mechanism, records, prior), abs=1e-14
        )
        assert entr(spread).sum() >= entr(prior).sum() - 1e-12

    @few
    @given(seed=seeds)
    def test_groups_are_the_contexts_with_one_row(self, seed):
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(rng)
        record = int(rng.integers(mechanism.space.records))
        lumped = mechanism.lumped(record)
        expected = Counter()
        seen = {}
        for x in mechanism.space.datasets():
            row = tuple(mechanism.channel.row(mechanism.query(x)))
            expected[x[record], row] += 1
            seen.setdefault((x[record], row), set()).add(mechanism.query(x))
        assert len(lumped.multiplicities) == len(expected)
        for a, row, m, context in zip(
            lumped.value_index, lumped.rows, lumped.multiplicities, lumped.contexts, strict=True
        ):
            key = (lumped.values[a], tuple(row))
            assert m == expected[key]
            assert set(context) == seen[key]
        assert lumped.size == mechanism.space.size
        assert lumped.values == mechanism.space.alphabets[record]

    @few
    @given(seed=seeds)
    def test_uniform_is_the_lumped_uniform_prior(self, seed):
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(rng)
        records = random_group(rng, mechanism)
        uniform = np.full(mechanism.space.size, 1 / mechanism.space.size)
        lumped = mechanism.lumped(records)
        assert lumped.uniform() == pytest.approx(mechanism.lump(records, uniform), abs=1e-14)
        assert lumped.max_entropy == pytest.approx(math.log(mechanism.space.size), abs=1e-14)

    def test_contexts_are_values_that_can_occur(self):
        # Values 0 and 3 have one row, but 0 needs a record of 0.
        mechanism = Mechanism(counting(3), [[1, 0], [0.5, 0.5], [0.25, 0.75], [1, 0]])
        lumped = mechanism.lumped(1)
        by_value = {0: set(), 1: set()}
        for a, context in zip(lumped.value_index, lumped.contexts, strict=True):
            by_value[lumped.values[a]].add(context)
        assert by_value == {0: {(0,), (1,), (2,)}, 1: {(3,), (1,), (2,)}}

    def test_equal_rows_are_merged_whatever_the_query_value(self):
        lumped = Mechanism(counting(4), [[1, 0], [0, 1]] * 2 + [[1, 0]]).lumped(0)
        assert lumped == Lumped(
            values=(0, 1),
            outputs=(0, 1),
            value_index=[0, 0, 1, 1],
            rows=[[0, 1], [1, 0]] * 2,
            multiplicities=[4, 4, 4, 4],
            contexts=[(1, 3), (0, 2), (1, 3), (2, 4)],
        )

    def test_rows_that_only_round_to_the_same_stay_apart(self):
        p = 0.1
        rows = [[p, 1 - p], [np.nextafter(p, 1), 1 - p], [p, 1 - p]]
        lumped = Mechanism(counting(2), rows).lumped(0)
        assert lumped.multiplicities == (1, 1, 1, 1)
        assert Mechanism(counting(2), [rows[0]] * 3).lumped(0).multiplicities == (2, 2)

    def test_a_negative_zero_is_a_zero(self):
        mechanism = Mechanism(counting(1), [[1.0, 0.0], [1.0, -0.0]])
        assert np.array_equal(*mechanism.lumped(0).rows)
        assert len(mechanism.distinct_rows[0]) == 1

    def test_a_record_with_one_value(self):
        space = RecordSpace([["only"], (0, 1)])
        mechanism = Mechanism(AdditiveQuery(space, [(0,), (0, 1)]), np.eye(2))
        assert mechanism.lumped(0).values == ("only",)
        assert mechanism.lumped(0).multiplicities == (1, 1)
        assert mechanism.lumped([0, 1]).values == (("only", 0), ("only", 1))

    def test_all_records_as_one_group(self):
        lumped = Mechanism(counting(2), np.eye(3)).lumped([1, 0])
        assert lumped.multiplicities == (1, 1, 1, 1)
        assert lumped.values == ((0, 0), (0, 1), (1, 0), (1, 1))

    @pytest.mark.parametrize("records", [-1, 3, True, 1.0, "0", None, [], [0, 0], [0, 5]])
    def test_bad_records(self, records):
        mechanism = Mechanism(counting(3), np.eye(4))
        for attempt in (
            lambda: mechanism.lumped(records),
            lambda: mechanism.expand(records, [1.0]),
            lambda: mechanism.lump(records, [1.0]),
        ):
            with pytest.raises(ValidationError, match=r"^records: "):
                attempt()

    def test_numpy_integers_are_records(self):
        mechanism = Mechanism(counting(3), np.eye(4))
        assert mechanism.lumped(np.int64(1)) == mechanism.lumped(1)
        assert mechanism.lumped(np.array([0, 1])) == mechanism.lumped((0, 1))


class TestTenThousandRecords:
    n = 10_000
    noise = ((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8))

    def mechanism(self):
        return Mechanism(counting(self.n, 3), self.noise)

    def test_multiplicities_are_exact(self):
        lumped = self.mechanism().lumped(4711)
        assert all(type(m) is int for m in lumped.multiplicities)
        assert lumped.size == 2**self.n
        # The number of subsets of n - 1 with size r mod 3 is within 1 of 2^(n-1) / 3.
        third = 2 ** (self.n - 1) // 3
        assert all(0 <= m - third <= 1 for m in lumped.multiplicities)

    def test_logarithms_of_huge_integers(self):
        lumped = self.mechanism().lumped(0)
        expected = (self.n - 1) * math.log(2) - math.log(3)
        assert lumped.log_multiplicity == pytest.approx([expected] * 6, rel=1e-15)
        assert lumped.max_entropy == pytest.approx(self.n * math.log(2), rel=1e-15)
        assert lumped.uniform() == pytest.approx([1 / 6] * 6, rel=1e-15)
        assert repr(lumped) == "Lumped(2 values, 6 groups, 3 outputs, log|X| = 6931.47)"

    def test_groups_of_records(self):
        mechanism = self.mechanism()
        assert mechanism.groups(1) == [(0,)]
        assert mechanism.groups(5) == [(0, 1, 2, 3, 4)]
        assert mechanism.groups(self.n) == [tuple(range(self.n))]
        lumped = mechanism.lumped((0, 1, 2))
        assert len(lumped.values) == 8
        assert lumped.size == 2**self.n
        # The same problem as three records among 10,000 give by brute force on a small space.
        small = Mechanism(counting(7, 3), self.noise).lumped((0, 1, 2))
        assert np.array_equal(lumped.rows, small.rows)
        assert np.array_equal(lumped.value_index, small.value_index)

    def test_too_large_a_group_is_an_error(self):
        with pytest.raises(ValidationError, match=r"^records: 30 of them have"):
            self.mechanism().lumped(range(30))

    def test_the_full_space_is_refused_in_one_line(self):
        mechanism = self.mechanism()
        for attempt in (
            mechanism.to_channel,
            lambda: mechanism.expand(0, [1 / 6] * 6),
            lambda: mechanism.lump(0, [1.0]),
            lambda: Mechanism.from_channel(mechanism.space, np.eye(2)),
        ):
            with pytest.raises(ValidationError, match=r"about 10.3010 datasets") as caught:
                attempt()
            assert len(str(caught.value)) < 200

    def test_it_is_pickled_and_stored(self, tmp_path):
        mechanism = self.mechanism()
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        mechanism.to_json(tmp_path / "mechanism.json")
        assert Mechanism.from_json(tmp_path / "mechanism.json") == mechanism

    def test_it_releases(self):
        mechanism = self.mechanism()
        assert mechanism.sample([1] * self.n, rng=0) in (0, 1, 2)


class TestChannelOfAMechanism:
    def test_rows_are_matched_by_label(self):
        query = TableQuery(RecordSpace.binary(2), [0, 1, 1, 0], ["even", "odd"])
        rows = {"odd": [0.25, 0.75], "even": [0.9, 0.1], "never": [0.5, 0.5]}
        for order in (("odd", "even", "never"), ("never", "odd", "even")):
            channel = Channel([rows[label] for label in order], order, "yn")
            mechanism = Mechanism(query, channel)
            assert mechanism.channel == Channel([rows["even"], rows["odd"]], ["even", "odd"], "yn")
            assert mechanism.to_channel().row((0, 1)).tolist() == rows["odd"]
            assert mechanism == Mechanism(query, channel.to_pandas())

    def test_arrays_are_in_the_order_of_the_values(self):
        query = TableQuery(RecordSpace.binary(1), [0, 1], [1, 0])
        assert Mechanism(query, [[1, 0], [0, 1]]).to_channel().row((0,)).tolist() == [1, 0]

    def test_rows_of_probability_zero_outputs(self):
        mechanism = Mechanism(counting(1), [[1, 0, 0], [0, 1, 0]])
        assert mechanism.lumped(0).rows.tolist() == [[1, 0, 0], [0, 1, 0]]

    def test_missing_rows(self):
        with pytest.raises(ValidationError, match=r"^channel: its inputs are .* lack \[2, 3\]"):
            Mechanism(counting(3), Channel(np.eye(2)))
        with pytest.raises(ValidationError, match=r"^channel: found 2 rows; the query has 4"):
            Mechanism(counting(3), np.eye(2))

    @pytest.mark.parametrize("channel", [None, "ab", [0.5, 0.5], [[0.5, 0.6]] * 4])
    def test_bad_channels(self, channel):
        with pytest.raises(ValidationError, match=r"^channel: "):
            Mechanism(counting(3), channel)

    def test_bad_query(self):
        with pytest.raises(ValidationError, match=r"^query: expected a Query, found <built-in"):
            Mechanism(sum, np.eye(2))


class TestFromChannel:
    space = RecordSpace([(0, 1), "ab"])

    def test_arrays_are_in_product_order(self):
        rows = np.eye(4)
        mechanism = Mechanism.from_channel(self.space, rows)
        assert np.array_equal(mechanism.to_channel().matrix, rows)
        assert mechanism.to_channel().inputs == ((0, "a"), (0, "b"), (1, "a"), (1, "b"))

    def test_rows_labeled_by_datasets_are_matched(self):
        datasets = list(self.space.datasets())
        rows = np.random.default_rng(0).dirichlet(np.ones(3), 4)
        order = [2, 0, 3, 1]
        shuffled = Channel(rows[order], [datasets[k] for k in order])
        mechanism = Mechanism.from_channel(self.space, shuffled)
        assert np.array_equal(mechanism.to_channel().matrix, rows)
        assert mechanism == Mechanism.from_channel(self.space, Channel(rows, datasets))

    def test_other_labels_are_in_product_order(self):
        channel = Channel(np.eye(4), ["0a", "0b", "1a", "1b"])
        mechanism = Mechanism.from_channel(self.space, channel)
        assert mechanism.query((1, "a")) == "1a"
        assert np.array_equal(mechanism.to_channel().matrix, np.eye(4))

    def test_one_record(self):
        space = RecordSpace([("no", "yes")])
        rows = [[0.1, 0.9], [0.7, 0.3]]
        labeled = Mechanism.from_channel(space, Channel(rows, ["yes", "no"]))
        assert labeled.to_channel().row(("yes",)).tolist() == rows[0]
        assert labeled.query(("yes",)) == "yes"
        positional = Mechanism.from_channel(RecordSpace([(1, 0)]), rows)
        assert positional.to_channel().row((1,)).tolist() == rows[0]

    def test_frames(self):
        frame = pd.DataFrame(np.eye(4), index=[(1, "b"), (1, "a"), (0, "b"), (0, "a")])
        mechanism = Mechanism.from_channel(self.space, frame)
        assert np.array_equal(mechanism.to_channel().matrix, np.eye(4)[::-1])

    def test_round_trip(self):
        mechanism = Mechanism(counting(3), np.eye(4))
        again = Mechanism.from_channel(mechanism.space, mechanism.to_channel())
        assert again.to_channel() == mechanism.to_channel()
        assert again.lumped(1).multiplicities == mechanism.lumped(1).multiplicities

    def test_wrong_size(self):
        with pytest.raises(ValidationError, match=r"^channel: found 3 rows; the space has 4"):
            Mechanism.from_channel(self.space, np.eye(3))
        with pytest.raises(ValidationError, match=r"^space: expected a RecordSpace"):
            Mechanism.from_channel(4, np.eye(4))


class TestComposition:
    @few
    @given(seed=seeds)
    def test_product_multiplies_the_rows(self, seed):
        rng = np.random.default_rng(seed)
        first = random_mechanism(rng)
        space = first.space
        contributions = [tuple(rng.integers(0, 3, k).tolist()) for k in space.shape]
        query = AdditiveQuery(space, contributions, modulus=[None, 2][rng.integers(2)])
        second = Mechanism(query, rng.dirichlet(np.ones(2), len(query.values)))
        for one, two in ((first, second), (second, first), (first, first)):
            both = one.product(two).to_channel()
            expected = one.to_channel().product(two.to_channel())
            assert both.outputs == expected.outputs
            assert both.matrix == pytest.approx(expected.matrix, abs=1e-15)

    def test_different_sums_of_many_records(self):
        n = 500
        count = Mechanism(counting(n), np.full((n + 1, 2), 0.5))
        parity = Mechanism(counting(n, 2), np.eye(2))
        both = count.product(parity)
        lumped = both.lumped(0)
        assert lumped.size == 2**n
        # The count's noise says nothing, so only the parity counts: two rows per value.
        assert len(lumped.multiplicities) == 4

    def test_needs_one_space(self):
        mechanism = Mechanism(counting(2), np.eye(3))
        for other in (Mechanism(counting(3), np.eye(4)), mechanism.channel, None):
            with pytest.raises(
                ValidationError, match=r"^mechanism: expected a mechanism on RecordSpace"
            ):
                mechanism.product(other)

    def test_then(self):
        mechanism = Mechanism(counting(2), np.eye(3))
        after = Channel([[1, 0], [0.5, 0.5], [0, 1]], outputs="lh")
        assert mechanism.then(after) == Mechanism(counting(2), Channel(after.matrix, outputs="lh"))
        with pytest.raises(ValidationError, match=r"^channel: its inputs are"):
            mechanism.then(Channel(np.eye(2)))


class TestGroups:
    @given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
    def test_one_group_for_each_multiset_of_classes(self, sizes, data):
        n = sum(sizes)
        order = data.draw(st.permutations(range(n)))
        ends = np.cumsum([0, *sizes])
        parts = [sorted(order[a:b]) for a, b in pairwise(ends)]
        part_of = {i: p for p, part in enumerate(parts) for i in part}
        k = data.draw(st.integers(1, n))

        def kind(group):
            return tuple(sorted(part_of[i] for i in group))

        groups = kinds_of_groups(parts, k)
        assert all(list(group) == sorted(set(group)) and len(group) == k for group in groups)
        kinds = [kind(group) for group in groups]
        assert len(set(kinds)) == len(kinds)
        assert set(kinds) == {kind(group) for group in combinations(range(n), k)}

    def test_all_records_different(self):
        space = RecordSpace.binary(6)
        query = AdditiveQuery(space, [(0, 1 + i) for i in range(6)])
        mechanism = Mechanism(query, np.eye(len(query.values)))
        assert mechanism.groups(2) == list(combinations(range(6), 2))

    def test_many_classes_is_a_clear_error(self):
        parts = [[i] for i in range(60)]
        assert len(kinds_of_groups(parts, 2)) == 60 * 59 // 2
        with pytest.raises(
            ValidationError, match=rf"^size: there are more than {GROUP_LIMIT} kinds"
        ):
            kinds_of_groups(parts, 30)
        # Few groups, though very many multisets of that size.
        assert kinds_of_groups(parts, 60) == [tuple(range(60))]
        assert len(kinds_of_groups(parts, 59)) == 60

    @pytest.mark.parametrize("size", [0, 4, True, 1.0, None])
    def test_bad_sizes(self, size):
        with pytest.raises(ValidationError, match=r"^size: .*an integer from 1 to 3"):
            Mechanism(counting(3), np.eye(4)).groups(size)


class TestExpansion:
    mechanism = Mechanism(counting(2), [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])

    def test_labels_are_datasets(self):
        prior = self.mechanism.expand(0, [0.5, 0, 0, 0.5])
        assert prior.labels == ((0, 0), (0, 1), (1, 0), (1, 1))
        assert self.mechanism.lump(0, prior).tolist() == [0.5, 0, 0, 0.5]

    def test_priors_are_matched_by_dataset(self):
        prior = Prior([0.1, 0.2, 0.3, 0.4], [(1, 1), (1, 0), (0, 1), (0, 0)])
        in_order = self.mechanism.lump(0, [0.4, 0.3, 0.2, 0.1])
        assert self.mechanism.lump(0, prior).tolist() == in_order.tolist()

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([0.5, 0.5], "found 2 outcomes; 4 are needed"),
            ([0.5, 0.5, 0.5, -0.5], "found -0.5 at index"),
            ([0.5, 0.5, 0.5, 0.5], "sums to 2.0"),
            ([math.nan, 0, 0, 1], "NaN"),
            ([[0.25] * 4], "expected 1 dimension"),
        ],
    )
    def test_bad_weights(self, weights, message):
        with pytest.raises(ValidationError, match=rf"^weights: .*{message}"):
            self.mechanism.expand(0, weights)

    def test_arrays_need_no_list_of_datasets(self, monkeypatch):
        expected = self.mechanism.lump(0, [0.4, 0.3, 0.2, 0.1])
        monkeypatch.setattr(RecordSpace, "datasets", None)
        assert self.mechanism.lump(0, [0.4, 0.3, 0.2, 0.1]).tolist() == expected.tolist()
        assert self.mechanism.lump([1], np.full(4, 0.25)).sum() == 1.0

    def test_bad_priors(self):
        with pytest.raises(ValidationError, match=r"^prior: found 2 outcomes; 4 are needed"):
            self.mechanism.lump(0, [0.5, 0.5])
        with pytest.raises(ValidationError, match=r"^prior: its labels are"):
            self.mechanism.lump(0, Prior([0.25] * 4, "abcd"))


def test_samples_follow_the_row_of_the_dataset():
    mechanism = Mechanism(counting(2), [[1, 0, 0], [0, 0.5, 0.5], [0, 0, 1]])
    rng = np.random.default_rng(3)
    assert {mechanism.sample((0, 0), rng=rng) for _ in range(20)} == {0}
    assert set(mechanism.sample((0, 1), 60, rng)) == {1, 2}
    with pytest.raises(ValidationError, match=r"^dataset: "):
        mechanism.sample((0,))


LUMPED = {
    "values": ("a", "b"),
    "outputs": (0, 1),
    "value_index": [0, 1, 1],
    "rows": [[1, 0], [0.5, 0.5], [0, 1]],
    "multiplicities": [1, 2, 3],
    "contexts": [(0,), (1,), (2,)],
}


class TestLumpedObjects:
    def test_starts_and_logs(self):
        lumped = Lumped(**LUMPED)
        assert lumped.starts.tolist() == [0, 1]
        assert lumped.log_multiplicity.tolist() == [0.0, math.log(2), math.log(3)]
        assert lumped.uniform().tolist() == [1 / 6, 2 / 6, 3 / 6]

    @pytest.mark.parametrize(
        ("changes", "name"),
        [
            ({"value_index": [0, 0, 0]}, "value_index"),
            ({"value_index": [1, 1, 0]}, "value_index"),
            ({"value_index": [0, 1]}, "value_index"),
            ({"value_index": [0, 1, 2]}, "value_index"),
            ({"value_index": [0.0, 1.0, 1.0]}, "value_index"),
            ({"value_index": 0}, "value_index"),
            ({"value_index": [], "rows": np.zeros((0, 2)), "values": ()}, "rows"),
            ({"multiplicities": [1, 2, 0]}, "multiplicities"),
            ({"multiplicities": [1, 2.0, 3]}, "multiplicities"),
            ({"multiplicities": [1, 2]}, "multiplicities, contexts"),
            ({"contexts": [(0,), (1,)]}, "multiplicities, contexts"),
            ({"rows": [[1, 0], [0.5, 0.5], [-1, 2]]}, "rows"),
            ({"rows": [1, 0, 0]}, "rows"),
            ({"rows": [[1, 0], [5, 5], [0, 1]]}, "rows"),
            ({"rows": [[1, 0], [0.5, np.inf], [0, 1]]}, "rows"),
            ({"outputs": (0,)}, "outputs"),
            ({"values": ("a", "a")}, "values"),
        ],
    )
    def test_parts_have_to_fit(self, changes, name):
        with pytest.raises(ValidationError, match=rf"^{name}: "):
            Lumped(**{**LUMPED, **changes})


def test_numbered_inputs_are_labels_and_the_message_says_what_else_to_pass():
    query = TableQuery(RecordSpace.binary(1), [0, 1], ["no", "yes"])
    rows = [[0.75, 0.25], [0.0, 1.0]]
    hint = "lack .'no', 'yes'.* pass the matrix, which is taken in order, or name the inputs"
    with pytest.raises(ValidationError, match=f"^channel: its inputs are .0, 1.; they {hint}"):
        Mechanism(query, Channel(rows))
    assert Mechanism(query, Channel(rows).matrix) == Mechanism(query, Channel(rows, query.values))
    with pytest.raises(ValidationError, match=r"they lack \['no'\], which are needed$"):
        Mechanism(query, Channel(rows, ["yes", "maybe"]))


@given(seed=seeds, shape=st.tuples(st.integers(1, 9), st.integers(1, 5)))
def test_distinct_rows_are_those_of_numpy(seed, shape):
    rng = np.random.default_rng(seed)
    matrix = rng.choice([0.0, 5e-324, 1e-300, 0.25, 0.5, 1.0, 256.0], size=shape)
    rows, which = distinct_rows(matrix)
    expected, inverse = np.unique(matrix, axis=0, return_inverse=True)
    assert np.array_equal(rows, expected)
    assert np.array_equal(which, inverse.ravel())


def test_a_rounded_count_of_many_people():
    n, base = 1500, 3
    rounding = np.zeros((n + 1, n // base + 1))
    for v in range(n + 1):
        rounding[v, v // base] = 1 - v % base / base
        if v % base:
            rounding[v, v // base + 1] = v % base / base
    lumped = Mechanism(counting(n), rounding).lumped(0)
    value = dict(zip(map(bytes, rounding), range(n + 1), strict=True))
    seen = [
        (int(a), value[bytes(row)], m)
        for a, row, m in zip(lumped.value_index, lumped.rows, lumped.multiplicities, strict=True)
    ]
    expected = [(a, v, math.comb(n - 1, v - a)) for a in (0, 1) for v in range(a, n + a)]
    assert sorted(seen) == expected
    assert all(context == (v,) for context, (_, v, _) in zip(lumped.contexts, seen, strict=True))
