"""DALENIUS Lemmas 3 and 4: the identities, the conditional priors, and the parts."""

import itertools

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    composition_chain_rule,
    conditional_mutual_information,
    conditional_record_information,
    group_chain_rule,
    record_information,
)
from cvxleak.model import AdditiveQuery, Mechanism, Prior, RecordSpace


@pytest.mark.parametrize(
    ("first", "second"), [((0,), (1,)), ((2,), (0, 1)), ((1, 0), (2,)), ((0,), (1, 2))]
)
def test_group(small, first, second):
    for prior in small.priors:
        rule = group_chain_rule(small.mechanism, prior, first, second)
        whole = record_information(small.mechanism, prior, first + second)
        assert rule.total == pytest.approx(whole, abs=1e-14)
        assert rule.first == pytest.approx(record_information(small.mechanism, prior, first))
        assert rule.condition.probabilities @ rule.second == pytest.approx(
            conditional_record_information(small.mechanism, prior, second, first), abs=1e-14
        )


def test_group_priors_are_the_conditional_laws(small):
    for prior in small.priors:
        rule = group_chain_rule(small.mechanism, prior, 0, (1, 2))
        mixture = np.zeros(len(small.datasets))
        for value, mass, given in zip(
            rule.condition.labels, rule.condition.probabilities, rule.priors, strict=True
        ):
            here = np.array([x[0] == value for x in small.datasets])
            assert mass == pytest.approx(prior[here].sum())
            np.testing.assert_allclose(given.probabilities, prior * here / mass)
            mixture += mass * given.probabilities
        np.testing.assert_allclose(mixture, prior)
        assert len(rule.condition) == len(rule.priors) == len(rule.second)
        assert all(mass > 0 for mass in rule.condition.probabilities)


def test_labels():
    space = RecordSpace([("a", "b"), (0, 1)])
    mechanism = Mechanism.from_channel(space, np.eye(4))
    prior = Prior([0.5, 0.25, 0.0, 0.25], space.datasets())
    single = group_chain_rule(mechanism, prior, 0, 1)
    assert single.condition.labels == ("a", "b")
    assert single.priors[1].labels == prior.labels
    assert single.priors[1]["b", 1] == 1.0
    assert group_chain_rule(mechanism, prior, [0], 1).condition.labels == (("a",), ("b",))
    release = composition_chain_rule((mechanism, mechanism), prior, 0)
    assert release.condition.labels == (0, 1, 3)  # output 2 cannot occur
    assert release.priors[0].labels == prior.labels
    plain = group_chain_rule(mechanism, prior.probabilities, 0, 1)
    assert plain.priors == single.priors


def test_composition(small):
    rng = np.random.default_rng(0)
    other_query = AdditiveQuery(
        small.space, [tuple(range(len(a))) for a in small.space.alphabets], modulus=2
    )
    other = Mechanism(other_query, rng.dirichlet(np.ones(3), size=2))
    rows = np.array([other.channel.row(other_query(x)) for x in small.datasets])
    for prior, record in itertools.product(small.priors, (0, 2, (0, 1))):
        rule = composition_chain_rule((small.mechanism, other), prior, record)
        both = small.mechanism.product(other)
        assert rule.total == pytest.approx(record_information(both, prior, record), abs=1e-14)
        assert rule.first == pytest.approx(record_information(other, prior, record))
        # I(X_i; Y1 | Y2) from the joint law itself.
        group = (record,) if isinstance(record, int) else record
        values = list(itertools.product(*(small.space.alphabets[i] for i in group)))
        joint = np.zeros((len(values), small.rows.shape[1], 3))
        for x, p, one, two in zip(small.datasets, prior, small.rows, rows, strict=True):
            joint[values.index(tuple(x[i] for i in group))] += p * np.outer(one, two)
        assert rule.condition.probabilities @ rule.second == pytest.approx(
            conditional_mutual_information(joint), abs=1e-14
        )


def test_composition_priors_are_the_posteriors(small):
    for prior in small.priors:
        rule = composition_chain_rule((small.mechanism, small.mechanism), prior, 0)
        posterior = small.mechanism.to_channel().posterior(prior)
        assert rule.condition.labels == posterior.inputs
        for label, given in zip(posterior.inputs, rule.priors, strict=True):
            np.testing.assert_allclose(given.probabilities, posterior.row(label), atol=1e-15)


def test_refuses_what_does_not_fit(flip):
    mechanism = flip(2, 0.1)
    with pytest.raises(ValidationError, match="second"):
        group_chain_rule(mechanism, [0.25] * 4, 0, (0, 1))
    with pytest.raises(ValidationError, match="records"):
        group_chain_rule(mechanism, [0.25] * 4, 2, 0)
    with pytest.raises(ValidationError, match="prior"):
        group_chain_rule(mechanism, [0.5, 0.5], 0, 1)
    with pytest.raises(ValidationError, match="mechanisms"):
        composition_chain_rule((mechanism, flip(3, 0.1)), [0.25] * 4, 0)
