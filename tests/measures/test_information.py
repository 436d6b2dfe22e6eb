import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    arimoto_information,
    bayes_vulnerability,
    conditional_mutual_information,
    conditional_record_information,
    entropy,
    group_information,
    information_density,
    lumped_channel,
    lumped_information,
    max_information,
    maximal_leakage,
    mutual_information,
    posterior_bayes_vulnerability,
    record_channel,
    record_information,
    renyi_divergence,
    sibson_information,
)
from cvxleak.model import AdditiveQuery, Channel, Mechanism, Prior, RecordSpace
from tests.measures.test_laws import channels, few, pairs
from tests.reference import binary_entropy as h


def information_of(joint):
    """I of a joint law, by the definition, one pair at a time."""
    total = 0.0
    for a, b in np.ndindex(joint.shape):
        if joint[a, b] > 0:
            total += joint[a, b] * math.log(joint[a, b] / joint[a].sum() / joint[:, b].sum())
    return total


def joint_of(small, prior, group):
    """p(x_I, y), one dataset at a time."""
    values = list(itertools.product(*(small.space.alphabets[i] for i in group)))
    joint = np.zeros((len(values), small.rows.shape[1]))
    for x, p, row in zip(small.datasets, prior, small.rows, strict=True):
        joint[values.index(tuple(x[i] for i in group))] += p * row
    return joint


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_symmetric_channel(p):
    value = mutual_information([[1 - p, p], [p, 1 - p]], [0.5, 0.5])
    assert value == pytest.approx(math.log(2) - h(p), abs=1e-15)
    skew = 0.3 * (1 - p) + 0.7 * p
    value = mutual_information([[1 - p, p], [p, 1 - p]], [0.3, 0.7])
    assert value == pytest.approx(h(skew) - h(p), abs=1e-15)


def test_other_closed_forms():
    # Erasure with probability e: (1 - e) H(X). Z channel: h(p/2) - h(p)/2 at the uniform prior.
    prior = [0.2, 0.3, 0.5]
    erasure = np.hstack([0.6 * np.eye(3), np.full((3, 1), 0.4)])
    assert mutual_information(erasure, prior) == pytest.approx(0.6 * entr(prior).sum())
    z = [[1.0, 0.0], [0.3, 0.7]]
    assert mutual_information(z, [0.5, 0.5]) == pytest.approx(h(0.35) - h(0.3) / 2)


def test_zero_probabilities_change_nothing():
    channel = [[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]]
    small = mutual_information([[0.7, 0.3], [0.2, 0.8]], [0.4, 0.6])
    assert mutual_information(channel, [0.4, 0.6, 0.0]) == pytest.approx(small)
    assert mutual_information(channel, [1.0, 0.0, 0.0]) == 0.0


def test_tiny_probabilities_do_not_turn_into_infinity():
    tiny = 1e-200
    channel = [[1 - tiny, tiny], [1.0, 0.0]]
    density = information_density(channel, [tiny, 1.0])
    assert density[0, 1] == pytest.approx(-math.log(tiny))
    assert max_information(channel, [tiny, 1.0]) == pytest.approx(-math.log(tiny))
    assert mutual_information(channel, [tiny, 1.0]) == pytest.approx(0, abs=1e-15)
    smallest = 5e-324
    assert np.isfinite(mutual_information([[0.5, 0.5], [1.0, smallest]], [smallest, 1.0]))


def test_density_by_its_definition():
    p, q = np.array([0.2, 0.8, 0.0]), np.array([[0.5, 0.5, 0], [0.0, 1.0, 0], [0.0, 0.5, 0.5]])
    density = information_density(q, p)
    output = p @ q
    for x, y in np.ndindex(q.shape):
        if p[x] * q[x, y] > 0:
            assert density[x, y] == pytest.approx(math.log(q[x, y] / output[y]))
        else:
            assert density[x, y] == -math.inf
    joint = p[:, None] * q
    seen = joint > 0
    assert (joint[seen] * density[seen]).sum() == pytest.approx(mutual_information(q, p))


def test_record_and_group_by_brute_force(small):
    for prior, group in itertools.product(small.priors, [(0,), (2,), (0, 1), (2, 0), (0, 1, 2)]):
        expected = information_of(joint_of(small, prior, group))
        assert record_information(small.mechanism, prior, group) == pytest.approx(
            expected, abs=1e-14
        )
        if len(group) == 1:
            assert record_information(small.mechanism, prior, group[0]) == pytest.approx(
                expected, abs=1e-14
            )


def test_record_channel_by_brute_force(small):
    for prior in small.priors:
        joint = joint_of(small, prior, (1,))
        channel, law = record_channel(small.mechanism, prior, 1)
        seen = joint.sum(axis=1) > 0
        alphabet = small.space.alphabets[1]
        assert law.labels == tuple(a for a, s in zip(alphabet, seen, strict=True) if s)
        assert channel.inputs == law.labels
        assert channel.outputs == small.mechanism.outputs
        np.testing.assert_allclose(law.probabilities[:, None] * channel.matrix, joint[seen])
    _, law = record_channel(small.mechanism, small.priors[0], (2, 1))
    both = tuple(itertools.product(small.space.alphabets[2], small.space.alphabets[1]))
    assert law.labels == both


def test_lumping_keeps_the_information(small):
    rng = np.random.default_rng(3)
    for records in (0, 1, (1, 2)):
        lumped = small.mechanism.lumped(records)
        for prior in small.priors:
            weights = small.mechanism.lump(records, prior)
            assert lumped_information(weights, lumped) == pytest.approx(
                record_information(small.mechanism, prior, records), abs=1e-14
            )
        weights = rng.dirichlet(np.ones(len(lumped.rows)))
        expanded = small.mechanism.expand(records, weights)
        assert lumped_information(weights, lumped) == pytest.approx(
            record_information(small.mechanism, expanded, records), abs=1e-14
        )


def test_lumped_channel_is_the_record_channel(small):
    for prior in small.priors:
        weights = small.mechanism.lump(0, prior)
        channel, law = lumped_channel(weights, small.mechanism.lumped(0))
        expected, expected_law = record_channel(small.mechanism, prior, 0)
        assert law.labels == expected_law.labels
        assert (channel.inputs, channel.outputs) == (expected.inputs, expected.outputs)
        np.testing.assert_allclose(law.probabilities, expected_law.probabilities)
        np.testing.assert_allclose(channel.matrix, expected.matrix, atol=1e-15)


def test_plateau_of_the_parity_of_ten_thousand():
    # Knowing nothing but the parity of the others is enough for log 2 - h(p).
    n, p = 10_000, 0.2
    parity = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=2)
    lumped = Mechanism(parity, [[1 - p, p], [p, 1 - p]]).lumped(0)
    assert lumped_information(lumped.uniform(), lumped) == pytest.approx(0, abs=1e-15)
    assert lumped_information([0.5, 0, 0, 0.5], lumped) == pytest.approx(math.log(2) - h(p))


def test_group_information(small):
    for prior in small.priors[:2]:
        for k in (1, 2, 3):
            expected = max(
                information_of(joint_of(small, prior, group))
                for group in itertools.combinations(range(3), k)
            )
            assert group_information(small.mechanism, prior, k) == pytest.approx(
                expected, abs=1e-14
            )


def test_conditional_information_by_brute_force():
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.full(24, 0.3)).reshape(2, 3, 4)
    joint[:, :, 1] = 0
    joint[0, :, 2] = 0
    joint /= joint.sum()
    expected = sum(
        joint[:, :, c].sum() * information_of(joint[:, :, c] / joint[:, :, c].sum())
        for c in (0, 2, 3)
    )
    assert conditional_mutual_information(joint) == pytest.approx(expected)
    # A constant condition is none; a condition that is one of the two leaves nothing.
    assert conditional_mutual_information(joint.sum(axis=2)[:, :, None]) == pytest.approx(
        information_of(joint.sum(axis=2))
    )
    copy = np.zeros((2, 3, 2))
    copy[[0, 1], :, [0, 1]] = joint.sum(axis=2)
    assert conditional_mutual_information(copy) == pytest.approx(0, abs=1e-15)


def test_conditional_record_information_by_brute_force(small):
    for prior, (asked, known) in itertools.product(
        small.priors, [((0,), (1,)), ((2,), (0, 1)), ((1, 2), (0,))]
    ):
        expected = 0.0
        for value in itertools.product(*(small.space.alphabets[i] for i in known)):
            here = np.array([tuple(x[i] for i in known) == value for x in small.datasets])
            mass = float(prior @ here)
            if mass > 0:
                joint = joint_of(small, prior * here / mass, asked)
                expected += mass * information_of(joint)
        assert conditional_record_information(
            small.mechanism, prior, asked, known
        ) == pytest.approx(expected, abs=1e-14)


def test_refuses_what_does_not_fit(flip):
    mechanism = flip(2, 0.1)
    with pytest.raises(ValidationError, match="prior"):
        mutual_information([[1.0], [1.0]], [0.5, 0.25, 0.25])
    with pytest.raises(ValidationError, match="channel"):
        mutual_information([[0.5, 0.4], [0.5, 0.5]], [0.5, 0.5])
    with pytest.raises(ValidationError, match="prior"):
        record_information(mechanism, [0.5, 0.5], 0)
    for records in (2, -1, (0, 0), (), "a", 0.0):
        with pytest.raises(ValidationError, match="records"):
            record_information(mechanism, [0.25] * 4, records)
    with pytest.raises(ValidationError, match="given"):
        conditional_record_information(mechanism, [0.25] * 4, 0, (0, 1))
    with pytest.raises(ValidationError, match="records"):
        conditional_record_information(mechanism, [0.25] * 4, 0, 2)
    with pytest.raises(ValidationError, match="size"):
        group_information(mechanism, [0.25] * 4, 3)
    with pytest.raises(ValidationError, match="joint"):
        conditional_mutual_information([[0.5, 0.5]])
    with pytest.raises(ValidationError, match="joint"):
        conditional_mutual_information([[[0.5, 0.4]]])
    with pytest.raises(ValidationError, match="weights"):
        lumped_information([0.5, 0.5], mechanism.lumped(0))


def test_labels_are_matched_by_name():
    channel = Channel([[0.9, 0.1], [0.2, 0.8]], inputs=["a", "b"])
    right = mutual_information(channel, [0.1, 0.9])
    assert mutual_information(channel, Prior([0.1, 0.9], ["a", "b"])) == right
    assert mutual_information(channel, Prior([0.9, 0.1], ["b", "a"])) == right
    mechanism = Mechanism.from_channel(RecordSpace.binary(1), [[0.9, 0.1], [0.2, 0.8]])
    turned = Prior([0.9, 0.1], [(1,), (0,)])
    assert record_information(mechanism, turned, 0) == pytest.approx(right)
    for wrong in (Prior([0.9, 0.1], ["b", "c"]), Prior([0.1, 0.2, 0.7], ["a", "b", "c"])):
        with pytest.raises(ValidationError, match="prior"):
            mutual_information(channel, wrong)
    with pytest.raises(ValidationError, match="prior"):
        record_information(mechanism, Prior([0.9, 0.1], ["b", "c"]), 0)


def test_pandas():
    pd = pytest.importorskip("pandas")
    channel = Channel([[0.9, 0.1], [0.2, 0.8]], inputs=["a", "b"])
    series = pd.Series({"b": 0.9, "a": 0.1})
    right = mutual_information(channel, [0.1, 0.9])
    assert mutual_information(channel, series) == right
    assert mutual_information(channel.to_pandas(), series) == right
    assert entropy(series) == entropy([0.9, 0.1])


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.5, 2, 3.7, 40])
def test_sibson_is_the_least_divergence_from_a_product(alpha):
    rng = np.random.default_rng(7)
    for _ in range(5):
        p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), size=3)
        value = sibson_information(q, p, alpha)
        joint = (p[:, None] * q).ravel()
        # Sibson's minimizer, and others around it.
        best = (p @ q**alpha) ** (1 / alpha)
        best /= best.sum()
        at_best = renyi_divergence(joint, np.outer(p, best).ravel(), alpha)
        assert value == pytest.approx(at_best, abs=1e-10)
        for r in rng.dirichlet(np.ones(4), size=20):
            assert renyi_divergence(joint, np.outer(p, r).ravel(), alpha) >= value - 1e-12


@few
@given(st.data())
def test_sibson_rises_with_the_order_and_falls_with_processing(data):
    p, q = data.draw(pairs())
    less = q.then(data.draw(channels(inputs=q.shape[1])))
    before = 0.0
    for alpha in (0.3, 0.999999, 1, 1.000001, 2, 30, 3000, math.inf):
        value = sibson_information(q, p, alpha)
        assert value >= before - 1e-9
        assert sibson_information(less, p, alpha) <= value + 1e-9
        before = value
    assert sibson_information(q, p, math.inf) == pytest.approx(maximal_leakage(q, p), abs=1e-12)
    assert sibson_information(q, p, 1.000001) == pytest.approx(mutual_information(q, p), abs=1e-4)


def test_sibson_refuses_an_order_that_is_not_positive():
    with pytest.raises(ValidationError, match="alpha: found 0"):
        sibson_information(np.eye(2), [0.5, 0.5], 0)


DIT = {
    0.5: (0.4862069298468044, 0.10503712346969045, 0.10362573313221501),
    2: (1.6094379124341003, 0.3167094729155634, 0.28329934905229137),
    3.7: (1.8138510390551583, 0.4253863619409517, 0.30134861008925584),
}
"""From dit 2.3: Rényi's divergence of the first two rows; that of the joint law from Sibson's
product law; and the difference of its Rényi entropies, averaged as Arimoto does."""


@pytest.mark.parametrize("alpha", DIT)
def test_orders_alpha_as_in_dit(alpha):
    p, q = [0.5, 0.3, 0.2], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]]
    divergence, sibson, arimoto = DIT[alpha]
    assert renyi_divergence(q[0], q[1], alpha) == pytest.approx(divergence, rel=1e-12)
    assert sibson_information(q, p, alpha) == pytest.approx(sibson, rel=1e-12)
    assert arimoto_information(q, p, alpha) == pytest.approx(arimoto, rel=1e-12)


@few
@given(st.data())
def test_arimoto_is_sibson_at_the_tilted_prior(data):
    p, q = data.draw(pairs())
    less = q.then(data.draw(channels(inputs=q.shape[1])))
    for alpha in (0.3, 2, 30, math.inf):
        value = arimoto_information(q, p, alpha)
        assert arimoto_information(less, p, alpha) <= value + 1e-9
        if math.isfinite(alpha):
            tilted = np.where(p > 0, p / p.max(), 0.0) ** alpha
            tilted /= tilted.sum()
            if (tilted > 0).sum() == (p > 0).sum():
                assert value == pytest.approx(sibson_information(q, tilted, alpha), abs=1e-10)
    best = math.log(posterior_bayes_vulnerability(q, p) / bayes_vulnerability(p))
    assert arimoto_information(q, p, math.inf) == pytest.approx(best, abs=1e-12)
    assert arimoto_information(q, p, 1e7) == pytest.approx(best, abs=1e-5)
    for alpha in (0.999999, 1, 1.000001):
        assert arimoto_information(q, p, alpha) == pytest.approx(mutual_information(q, p), abs=1e-4)
    uniform = np.full(len(p), 1 / len(p))
    assert arimoto_information(q, uniform, 3) == pytest.approx(
        sibson_information(q, uniform, 3), abs=1e-12
    )


def test_arimoto_refuses_an_order_that_is_not_positive():
    with pytest.raises(ValidationError, match="alpha: found -1"):
        arimoto_information(np.eye(2), [0.5, 0.5], -1)
