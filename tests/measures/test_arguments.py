"""What every measure says about arguments that are not what it takes."""

import pandas as pd
import pytest

from cvxleak import measures
from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Mechanism, Prior, RecordSpace

HALVES = [0.5, 0.5]

OF_A_MECHANISM = {
    "conditional_record_information": lambda m: measures.conditional_record_information(
        m, HALVES, 0, 1
    ),
    "group_chain_rule": lambda m: measures.group_chain_rule(m, HALVES, 0, 1),
    "group_information": lambda m: measures.group_information(m, HALVES, 1),
    "information_gradient_conditional": lambda m: measures.information_gradient_conditional(
        m, HALVES, 0
    ),
    "information_gradient_marginal": lambda m: measures.information_gradient_marginal(m, HALVES, 0),
    "information_gradient_mechanism": lambda m: measures.information_gradient_mechanism(
        m, HALVES, 0
    ),
    "mechanism_distortion": lambda m: measures.mechanism_distortion(m, HALVES, [[0, 1], [1, 0]]),
    "product_max_information": measures.product_max_information,
    "record_channel": lambda m: measures.record_channel(m, HALVES, 0),
    "record_dp_epsilon": measures.record_dp_epsilon,
    "record_dp_failure_probability": lambda m: measures.record_dp_failure_probability(m, 1.0),
    "record_information": lambda m: measures.record_information(m, HALVES, 0),
    "record_max_information": lambda m: measures.record_max_information(m, HALVES, 0),
    "record_privacy_profile": lambda m: measures.record_privacy_profile(m, 1.0),
}
COUNT = AdditiveQuery(RecordSpace.binary(26), [(0, 1)] * 26)
LARGE = Mechanism(COUNT, [[0.5, 0.5]] * 27)
SMALL = Mechanism(AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2), [[1, 0], [0.5, 0.5], [0, 1]])


@pytest.mark.parametrize("measure", OF_A_MECHANISM.values(), ids=OF_A_MECHANISM)
@pytest.mark.parametrize("wrong", ["count", None, COUNT, SMALL.channel, [[1.0, 0.0]]])
def test_a_mechanism_is_needed(measure, wrong):
    with pytest.raises(ValidationError, match=r"^mechanism: expected a Mechanism, found"):
        measure(wrong)


@pytest.mark.parametrize("wrong", ["count", None, SMALL, [[1.0, 0.0]]])
def test_other_objects_are_needed(wrong):
    for measure in (measures.lumped_entropy, measures.lumped_channel, measures.lumped_information):
        with pytest.raises(ValidationError, match=r"^lumped: expected a Lumped, found"):
            measure(HALVES, wrong)
    for gradient in (measures.entropy_gradient_marginal, measures.entropy_gradient_conditional):
        with pytest.raises(ValidationError, match=r"^space: expected a RecordSpace, found"):
            gradient(HALVES, wrong, 0)
    for measure in (measures.entropy, measures.bayes_vulnerability):
        with pytest.raises(ValidationError, match=r"^prior: expected"):
            measure(wrong)
    with pytest.raises(ValidationError, match=r"^channel: expected|^prior: found 2"):
        measures.mutual_information(wrong, HALVES)


def test_pairs_and_lists_are_checked():
    quarters = [0.25] * 4
    for pair in ("xy", (SMALL, "y"), (None, SMALL)):
        with pytest.raises(ValidationError, match=r"^mechanisms\[.\]: expected a Mechanism"):
            measures.composition_chain_rule(pair, quarters, 0)
    for pair in ((SMALL,), (SMALL,) * 3, SMALL):
        with pytest.raises(ValidationError, match=r"^mechanisms: "):
            measures.composition_chain_rule(pair, quarters, 0)
    with pytest.raises(ValidationError, match=r"^second: expected a sequence"):
        measures.conditional_maximal_leakage([[1.0], [1.0]], 1, HALVES)
    with pytest.raises(ValidationError, match=r"^priors: found one Prior"):
        measures.worst_case_distortion([[1.0], [1.0]], Prior(HALVES), [[0], [1]])
    with pytest.raises(ValidationError, match=r"^priors: expected a sequence"):
        measures.worst_case_distortion([[1.0], [1.0]], 5, [[0], [1]])


@pytest.mark.parametrize("prior", [Prior(HALVES), pd.Series(HALVES, ["a", "b"]), HALVES])
@pytest.mark.parametrize(
    "measure",
    [
        lambda p: measures.record_information(LARGE, p, 0),
        lambda p: measures.mechanism_distortion(LARGE, p, [[0, 1]] * 27),
        lambda p: measures.information_gradient_mechanism(LARGE, p, 0),
        lambda p: measures.entropy_gradient_marginal(p, LARGE.space, 0),
        lambda p: measures.group_chain_rule(LARGE, p, 0, 1),
        lambda p: LARGE.lump(0, p),
    ],
)
def test_no_list_of_datasets_for_a_prior_that_does_not_fit(prior, measure, monkeypatch):
    monkeypatch.setattr(RecordSpace, "datasets", None)
    with pytest.raises(ValidationError, match=r"67108864 are needed|67108864 datasets"):
        measure(prior)


def test_an_array_has_no_labels_to_be_matched():
    rows = [[0.9, 0.1], [0.3, 0.7]]
    expected = measures.mutual_information(rows, [0.2, 0.8])
    for labels in ((0, 1), (1, 0), (1, 2), ("a", "b")):
        assert measures.mutual_information(rows, Prior([0.2, 0.8], labels)) == expected
