import math

import numpy as np
import pandas as pd
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.model import Prior, RecordSpace


def test_counts():
    space = RecordSpace([(0, 1, 2), ("no", "yes"), [None]])
    assert (space.records, space.shape, space.size) == (3, (3, 2, 1), 6)
    assert space.max_entropy == math.log(6)


def test_datasets_are_in_product_order():
    space = RecordSpace([(0, 1), "ab"])
    assert list(space.datasets()) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert [space.indices(x) for x in space.datasets()] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert space.indices([np.int64(1), "b"]) == (1, 1)


def test_ten_thousand_records():
    space = RecordSpace.binary(10_000)
    assert space.size == 2**10_000
    assert space.max_entropy == pytest.approx(10_000 * math.log(2), rel=1e-15)
    assert repr(space) == "RecordSpace(10000 records with 2 values [0, 1])"


def test_repr():
    assert repr(RecordSpace([["x"]])) == "RecordSpace(1 record with 1 value ['x'])"
    assert repr(RecordSpace([(0, 1), (0,)])) == "RecordSpace(2 records with [2, 1] values)"


@pytest.mark.parametrize(
    ("alphabets", "message"),
    [
        ([], "^alphabets: found none"),
        ([(0, 1), ()], r"^alphabets\[1\]: found an empty alphabet"),
        ([(0, 1), (0, 0)], r"^alphabets\[1\]: .*which are equal"),
        ([(0, 1), (1, True)], r"^alphabets\[1\]: .*which are equal"),
        ([(0, [1])], r"^alphabets\[0\]: .*hashable"),
        ([(0, math.nan)], r"^alphabets\[0\]: .*NaN"),
        ([{0, 1}], r"^alphabets\[0\]: found a set"),
        ([2, 2], r"^alphabets\[0\]: expected a sequence, found 2"),
        (3, "^alphabets: expected a sequence, found 3"),
        (None, "^alphabets: expected a sequence"),
    ],
)
def test_bad_alphabets(alphabets, message):
    with pytest.raises(ValidationError, match=message):
        RecordSpace(alphabets)


@pytest.mark.parametrize("n", [0, -1, True, 2.0, "3", None])
def test_bad_numbers_of_records(n):
    with pytest.raises(ValidationError, match=r"^n: "):
        RecordSpace.binary(n)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ((0,), "^dataset: found 1 record; the space has 2"),
        ((0, "a", 0), "^dataset: found 3 records"),
        ((0, "c"), r"^dataset\[1\]: found 'c'; its alphabet is \['a', 'b'\]"),
        (([0], "a"), r"^dataset\[0\]: found \[0\]"),
        (5, "^dataset: expected a sequence"),
    ],
)
def test_bad_datasets(dataset, message):
    with pytest.raises(ValidationError, match=message):
        RecordSpace([(0, 1), "ab"]).indices(dataset)


def test_groups_of_records():
    space = RecordSpace.binary(4)
    assert space.group(np.int64(2)) == (2,)
    assert space.group([3, 0]) == (3, 0)
    assert space.group(np.array([1, 2])) == (1, 2)
    for bad in (-1, 4, True, 1.0, None, "1", [], [0, 0], [0, 4], [-1], {0, 1}, [[0]]):
        with pytest.raises(ValidationError, match=r"^records: "):
            space.group(bad)


@pytest.mark.parametrize(
    "alphabets", [None, 3, [[0, 1]], [[[0, 1], 0]], [[[0, 1], 10**12]], [[[0, 1], "2"]], [[3, 1]]]
)
def test_bad_files(alphabets):
    with pytest.raises(ValidationError, match=r"^alphabets"):
        RecordSpace.from_dict({"alphabets": alphabets})


MIXED = RecordSpace([("no", "yes"), (0, 1, 2), "ab"])


@pytest.mark.parametrize("records", [0, 1, np.int64(2), [1], [0, 2], (2, 0), np.array([2, 1, 0])])
def test_values_and_where_each_dataset_has_its_own(records):
    values, index = MIXED.values(records), MIXED.value_index(records)
    assert len(set(values)) == len(values)
    assert index.shape == (MIXED.size,)
    one = np.ndim(records) == 0
    for x, place in zip(MIXED.datasets(), index, strict=True):
        own = x[int(records)] if one else tuple(x[i] for i in records)
        assert values[place] == own


def test_too_many_values_to_list():
    space = RecordSpace.binary(10_000)
    assert space.values(9_999) == (0, 1)
    assert len(space.values([0, 5, 9_999])) == 8
    with pytest.raises(ValidationError, match=r"^records: these 23 have 8388608 joint values"):
        space.values(range(23))
    with pytest.raises(ValidationError, match=r"^space: found about 10\^3010 datasets"):
        space.value_index(0)
    for bad in (-1, [0, 0], [], "0"):
        with pytest.raises(ValidationError, match=r"^records: "):
            space.values(bad)
        with pytest.raises(ValidationError, match=r"^records: "):
            space.value_index(bad)


class TestLaws:
    """A prior on the datasets, in their order."""

    def test_by_label_or_by_position(self):
        p = np.random.default_rng(0).dirichlet(np.ones(MIXED.size))
        datasets = list(MIXED.datasets())
        order = np.random.default_rng(1).permutation(MIXED.size)
        named = Prior(p[order], [datasets[i] for i in order])
        index = pd.Index([datasets[i] for i in order], tupleize_cols=False)
        for prior in (p, list(p), Prior(p), named, pd.Series(p[order], index)):
            assert MIXED.law(prior).tolist() == p.tolist()

    def test_other_labels_are_refused(self):
        with pytest.raises(ValidationError, match=r"^source: its labels are"):
            MIXED.law(Prior(np.full(12, 1 / 12), "abcdefghijkl"), "source")
        with pytest.raises(ValidationError, match=r"^prior: sums to"):
            MIXED.law(np.ones(12))

    @pytest.mark.parametrize(
        "prior", [[0.5, 0.5], Prior([0.5, 0.5]), pd.Series([0.5, 0.5], ["a", "b"])]
    )
    def test_sizes_are_compared_before_datasets_are_listed(self, prior, monkeypatch):
        monkeypatch.setattr(RecordSpace, "datasets", None)
        for n in (26, 10_000):
            with pytest.raises(ValidationError, match=r"^prior: found 2 outcomes; .* are needed"):
                RecordSpace.binary(n).law(prior)


def test_labels_of_a_file_are_nested_so_far_and_no_farther():
    def nested(depth: int):
        return [nested(depth - 1)] if depth else 0

    read = RecordSpace.from_dict({"alphabets": [[[nested(63), 1], 1]]})
    assert read.records == 1
    with pytest.raises(ValidationError, match=r"^labels: found more than 64 lists within"):
        RecordSpace.from_dict({"alphabets": [[[nested(64), 1], 1]]})
