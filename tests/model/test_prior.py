import math
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cvxleak
from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import constant
from cvxleak.model import Channel, Distortion, Prior, RecordSpace, as_prior
from cvxleak.sources import SourceSet


def test_probabilities_are_stored_as_given():
    off = [0.5, 0.5 + 0.9e-9]
    assert Prior(off).probabilities.tolist() == off


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "must not be empty"),
        ([[1.0]], "expected 1 dimension"),
        (1.0, "expected 1 dimension"),
        ([0.5, 0.6], "sums to 1.1"),
        ([1.5, -0.5], r"found -0.5 at index \(1,\)"),
        ([math.nan, 1.0], "NaN"),
        ([math.inf, 1.0], "found inf"),
        (["all"], "real numbers"),
    ],
)
def test_bad_probabilities(values, message):
    with pytest.raises(ValidationError, match=rf"^probabilities: .*{message}"):
        Prior(values)


def test_outcomes_are_looked_up_by_label():
    prior = Prior([0.25, 0.75, 0.0], [1, 0, "x"])
    assert (prior[1], prior[0], prior["x"]) == (0.25, 0.75, 0.0)
    assert prior.labels == (1, 0, "x")
    assert len(prior) == 3
    assert prior.support == (1, 0)
    with pytest.raises(KeyError):
        prior["y"]


@pytest.mark.parametrize("use", [list, sum, set, max])
def test_it_is_not_a_sequence_of_labels_or_of_numbers(use):
    with pytest.raises(TypeError, match=r"not iterable: use its \.labels or its \.probabilities"):
        use(Prior([0.25, 0.75], [1, 0]))


def test_numpy_sees_the_probabilities():
    prior = Prior([0.25, 0.75], [1, 0])
    array = np.asarray(prior)
    assert array.tolist() == [0.25, 0.75]
    array[0] = 0.0
    assert prior[1] == 0.25


class TestUniform:
    def test_of_a_number(self):
        prior = Prior.uniform(np.int64(3))
        assert prior.labels == (0, 1, 2)
        assert prior.probabilities.tolist() == [1 / 3] * 3

    def test_of_labels(self):
        assert Prior.uniform(iter(["no", "yes"])) == Prior([0.5, 0.5], ["no", "yes"])

    @pytest.mark.parametrize("k", [0, -1, True, 2.0, None, [], (), {"a", "b"}])
    def test_bad_sizes(self, k):
        with pytest.raises(ValidationError, match=r"^labels: "):
            Prior.uniform(k)

    def test_many_outcomes(self):
        assert Prior.uniform(10**6)[5] == 1e-6


class TestFromCounts:
    @pytest.mark.parametrize(
        "counts",
        [
            {"a": 3, "b": 1, "c": 0},
            Counter({"a": 6, "b": 2, "c": 0}),
            pd.Series([30, 10, 0], index=["a", "b", "c"]),
            pd.Series([1.5, 0.5, 0.0], index=["a", "b", "c"]),
            pd.Series([np.int8(3), np.int8(1), np.int8(0)], index=list("abc")),
        ],
    )
    def test_frequencies(self, counts):
        assert Prior.from_counts(counts) == Prior([0.75, 0.25, 0.0], ["a", "b", "c"])

    def test_of_value_counts(self):
        answers = pd.Series(["yes", "no", "yes", "yes"])
        assert Prior.from_counts(answers.value_counts())["yes"] == 0.75

    def test_numpy_labels_become_plain(self):
        prior = Prior.from_counts(pd.Series([1, 1], index=np.array([3, 4])))
        assert all(type(label) is int for label in prior.labels)

    @pytest.mark.parametrize(
        ("counts", "message"),
        [
            ({}, "the total is 0"),
            ({"a": 0}, "the total is 0"),
            ({"a": 1, "b": -1}, r"^counts\['b'\]: found -1"),
            ({"a": math.nan}, r"^counts\['a'\]: found nan"),
            ({"a": math.inf}, "the total is inf"),
            ({"a": "three"}, r"^counts\['a'\]: expected a number"),
            ({"a": True}, r"^counts\['a'\]: expected a number"),
            ({"a": 10**400}, "too large for a float"),
            ([3, 1], "expected a mapping or a pandas Series"),
            (pd.Series([1, 2], index=["a", "a"]), "are equal"),
            (pd.DataFrame({"a": [1, 2]}), r"^counts\['a'\]: expected a number"),
        ],
    )
    def test_bad_counts(self, counts, message):
        with pytest.raises(ValidationError, match=message):
            Prior.from_counts(counts)


class TestFiles:
    @given(
        counts=st.dictionaries(
            st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none()),
            st.integers(1, 1000),
            min_size=1,
            max_size=5,
        )
    )
    def test_csv_round_trip(self, counts, tmp_path_factory):
        prior = Prior.from_counts(counts)
        path = tmp_path_factory.mktemp("csv") / "prior.csv"
        prior.to_csv(path)
        assert Prior.from_csv(path) == prior

    def test_csv_without_a_header(self, tmp_path):
        path = tmp_path / "prior.csv"
        path.write_text("\ufeffno, 0.25\n\nyes, 0.75\n", encoding="utf-8")
        assert Prior.from_csv(path) == Prior([0.25, 0.75], ["no", "yes"])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("a,b,c\n", "has 3 columns"),
            ("label,probability\n", "must not be empty"),
            ("a,0.5\nb,half\n", r"line 2, column 2 of .*prior\.csv': found 'half'"),
            ("a,0.5\nb,0.6\n", "sums to 1.1"),
            ("a,0.5\na,0.5\n", "are equal"),
            ("a,0.5\nb\n", "line 2 .* has 1 cell, but line 1 has 2 cells"),
        ],
    )
    def test_bad_csv(self, text, message, tmp_path):
        path = tmp_path / "prior.csv"
        path.write_text(text)
        with pytest.raises(ValidationError, match=message):
            Prior.from_csv(path)

    def test_pandas_round_trip(self):
        prior = Prior([0.25, 0.25, 0.5], ["a", (0, 1), 2])
        series = prior.to_pandas()
        assert series["a"] == 0.25
        assert Prior.from_pandas(series) == prior
        series.iloc[0] = 0.0
        assert prior["a"] == 0.25

    @pytest.mark.parametrize("series", [pd.DataFrame({"a": [1.0]}), [1.0], {"a": 1.0}, None])
    def test_not_a_series(self, series):
        with pytest.raises(ValidationError, match=r"^series: expected a pandas Series"):
            Prior.from_pandas(series)

    def test_a_series_is_not_renormalized(self):
        with pytest.raises(ValidationError, match=r"sums to 4"):
            Prior.from_pandas(pd.Series([3.0, 1.0]))


class TestMatching:
    """Which probability belongs to which input: by label if there are labels."""

    def test_same_labels_in_another_order(self):
        prior = as_prior(Prior([0.25, 0.75], ["yes", "no"]), 2, labels=("no", "yes"))
        assert prior == Prior([0.75, 0.25], ["no", "yes"])

    def test_series(self):
        series = pd.Series([0.25, 0.75], index=["yes", "no"])
        assert as_prior(series, 2, labels=("no", "yes"))["yes"] == 0.25
        assert as_prior(series, 2).labels == ("yes", "no")

    def test_numbers_count_as_labels_too(self):
        prior = as_prior(Prior([0.25, 0.75], [0, 1]), 2, labels=(1, 0))
        assert prior.probabilities.tolist() == [0.75, 0.25]

    def test_arrays_go_by_position(self):
        assert as_prior([0.25, 0.75], 2, labels=(1, 0)) == Prior([0.25, 0.75], [1, 0])

    @pytest.mark.parametrize(
        ("own", "labels"), [((0, 1), ("no", "yes")), (("no", "yes"), (0, 1)), ((3, 4), (0, 1))]
    )
    def test_without_labels_on_one_side_by_position(self, own, labels):
        assert as_prior(Prior([0.25, 0.75], own), 2, labels=labels)[labels[0]] == 0.25

    @pytest.mark.parametrize(
        ("own", "labels"),
        [((0, 1, 2), (1, 2, 3)), ((1, 2, 3), (0, 1, 2)), ((0, 1, 2), ("a", 0, 9))],
    )
    def test_labels_are_never_shifted(self, own, labels):
        with pytest.raises(ValidationError, match=r"^prior: its labels are .* they must be"):
            as_prior(Prior([0.25, 0.5, 0.25], own), 3, labels=labels)
        assert as_prior([0.25, 0.5, 0.25], 3, labels=labels).labels == labels

    def test_other_labels_are_refused(self):
        with pytest.raises(ValidationError, match=r"^source: its labels are \['a', 'b'\]; .*'no'"):
            as_prior(Prior([0.5, 0.5], ["a", "b"]), 2, "source", ("no", "yes"))

    @pytest.mark.parametrize("prior", [[1.0], [0.5, 0.25, 0.25], Prior([1.0])])
    def test_wrong_size(self, prior):
        with pytest.raises(ValidationError, match=r"^source: found . outcomes?; 2 are needed"):
            as_prior(prior, 2, "source", ("no", "yes"))

    def test_the_argument_is_named(self):
        with pytest.raises(ValidationError, match=r"^source: sums to 1.5"):
            as_prior([1.0, 0.5], 2, "source")


class TestMappings:
    LAW: ClassVar[Any] = {"yes": 0.75, "no": 0.25}

    def test_a_mapping_is_a_law_with_labels(self):
        assert Prior(self.LAW) == Prior([0.75, 0.25], ["yes", "no"])
        assert as_prior(self.LAW, 2, labels=("no", "yes")).probabilities.tolist() == [0.25, 0.75]
        assert Prior({"a": "1/3", "b": "2/3"}).to_dict()["probabilities"] == ["1/3", "2/3"]
        with pytest.raises(ValidationError, match="labels: found some beside a mapping"):
            Prior(self.LAW, ["a", "b"])
        with pytest.raises(ValidationError, match=r"^prior: its labels are \['yes', 'no'\]"):
            as_prior(self.LAW, 2, labels=("a", "b"))

    def test_wherever_a_prior_goes(self):
        channel = Channel([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])
        named = Prior(self.LAW)
        assert channel.output(self.LAW) == channel.output(named)
        for measure in (measures.mutual_information, measures.posterior_bayes_vulnerability):
            assert measure(channel, self.LAW) == measure(channel, named)
        twin = expressions.mutual_information(channel, self.LAW)
        assert twin.value == pytest.approx(measures.mutual_information(channel, named))
        assert measures.entropy(self.LAW) == measures.entropy(named)
        assert measures.renyi_divergence({"no": 0.25, "yes": 0.75}, self.LAW, 2) < 1e-15
        assert SourceSet([self.LAW]) == SourceSet([named])
        space = RecordSpace.binary(1)
        assert space.law({(1,): 0.75, (0,): 0.25}).tolist() == [0.25, 0.75]
        assert constant(2, self.LAW).outputs == ("yes", "no")
        found = cvxleak.design_for_prior(
            self.LAW, distortion=Distortion.hamming(("yes", "no")), budget=0.5
        )
        assert found.upper < 1e-6


def test_counts_are_refused_with_the_name_of_what_takes_them():
    with pytest.raises(
        ValidationError, match=r"sums to 8\.0; .*for counts there is Prior\.from_counts"
    ):
        Prior([3, 5])
    with pytest.raises(ValidationError) as found:
        Prior([0.3, 0.5])
    assert "counts" not in str(found.value)
