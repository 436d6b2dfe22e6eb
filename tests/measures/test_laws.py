"""Laws that hold for every prior and channel, zeros included."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cvxleak.measures import (
    arimoto_information,
    bayes_vulnerability,
    conditional_maximal_leakage,
    conditional_record_information,
    dp_failure_probability,
    entropy,
    expected_distortion,
    guessing_entropy,
    local_dp_epsilon,
    lumped_entropy,
    lumped_information,
    max_information,
    maximal_leakage,
    min_entropy_leakage,
    multiplicative_bayes_capacity,
    mutual_information,
    pml,
    posterior_bayes_vulnerability,
    posterior_guessing_entropy,
    privacy_profile,
    record_dp_epsilon,
    record_information,
    record_max_information,
    record_privacy_profile,
)
from cvxleak.model import Channel, Mechanism, Prior, RecordSpace

TOL = 1e-12
EPSILONS = (0.0, 0.2, 1.0, 3.0)

few = settings(max_examples=60)


@st.composite
def laws(draw, size):
    """A law with small integer weights, so that zeros and ties are common."""
    weights = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any))
    return np.array(weights, dtype=float) / sum(weights)


@st.composite
def channels(draw, inputs=None, outputs=None):
    k = inputs or draw(st.integers(1, 4))
    m = outputs or draw(st.integers(1, 4))
    return Channel([draw(laws(m)) for _ in range(k)])


@st.composite
def pairs(draw):
    channel = draw(channels())
    return draw(laws(channel.shape[0])), channel


MEASURES = {
    "mutual information": mutual_information,
    "Arimoto": lambda q, p: arimoto_information(q, p, 3),
    "max-information": max_information,
    "maximal leakage": maximal_leakage,
    "posterior vulnerability": posterior_bayes_vulnerability,
    "min-entropy leakage": min_entropy_leakage,
    "saved guesses": lambda q, p: guessing_entropy(p) - posterior_guessing_entropy(q, p),
    "Bayes capacity": lambda q, _: multiplicative_bayes_capacity(q),
    "local DP": lambda q, _: local_dp_epsilon(q),
    "profile": lambda q, _: max(privacy_profile(q, e) * (i + 1) for i, e in enumerate(EPSILONS)),
    "second maximal leakage": lambda q, p: conditional_maximal_leakage(
        np.ones((len(p), 1)), [q], p
    ),
}
"""Every measure of a channel that post-processing must not raise."""


def same(a, b):
    return a == b or abs(a - b) <= TOL


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@few
@given(data=st.data())
def test_post_processing_never_raises(measure, data):
    p, q = data.draw(pairs())
    after = data.draw(channels(inputs=q.shape[1]))
    assert measure(q.then(after), p) <= measure(q, p) + TOL


@pytest.mark.parametrize(
    "measure",
    [*MEASURES.values(), lambda q, _: sum(dp_failure_probability(q, e) for e in EPSILONS)],
    ids=[*MEASURES, "failure probability"],
)
@few
@given(data=st.data())
def test_names_and_proportional_outputs_do_not_matter(measure, data):
    p, q = data.draw(pairs())
    k, m = q.shape
    rows = data.draw(st.permutations(range(k)))
    columns = data.draw(st.permutations(range(m)))
    value = measure(q, p)
    assert same(value, measure(Channel(q.matrix[np.ix_(rows, columns)]), p[list(rows)]))
    assert same(value, measure(q.reduced(), p))
    # An output split in two by a coin of its own, and one that never occurs.
    split = np.hstack([q.matrix[:, :1] * 0.25, q.matrix[:, :1] * 0.75, q.matrix[:, 1:]])
    assert same(value, measure(Channel(np.hstack([split, np.zeros((k, 1))])), p))


@few
@given(pairs())
def test_the_order_of_the_measures(pair):
    p, q = pair
    support = Channel(q.matrix[p > 0])
    information = mutual_information(q, p)
    maximal, largest = maximal_leakage(q, p), max_information(q, p)
    assert 0 <= information <= maximal + TOL
    assert information <= entropy(p) + TOL
    assert maximal <= largest + TOL
    assert maximal <= math.log(min(support.shape)) + TOL
    assert largest <= local_dp_epsilon(support) + TOL
    assert largest <= math.log(1 / p[p > 0].min()) + TOL  # ENVELOPE (6)
    leakages = pml(q, p)
    assert leakages.max() == largest
    assert all(value >= -TOL or value == -math.inf for value in leakages)


@few
@given(pairs())
def test_vulnerability_grows_by_at_most_the_capacity(pair):
    p, q = pair
    before, after = bayes_vulnerability(p), posterior_bayes_vulnerability(q, p)
    assert before <= after + TOL
    assert after <= before * multiplicative_bayes_capacity(q) + TOL
    assert after <= before * math.exp(maximal_leakage(q, p)) + TOL


@few
@given(channels())
def test_the_shape_of_the_privacy_profile(q):
    epsilon = local_dp_epsilon(q)
    levels = np.linspace(0, min(epsilon, 5.0), 7)
    profile = np.array([privacy_profile(q, e) for e in levels])
    failure = np.array([dp_failure_probability(q, e) for e in levels])
    assert all(np.diff(profile) <= TOL)
    assert all(np.diff(failure) <= TOL)
    assert all(profile <= failure + TOL)
    assert all((profile >= 0) & (profile <= 1 + TOL))
    # Convex in e^epsilon.
    weight = np.exp(levels)
    for i in range(1, 6):
        t = (weight[i] - weight[i - 1]) / max(weight[i + 1] - weight[i - 1], 1e-300)
        assert profile[i] <= (1 - t) * profile[i - 1] + t * profile[i + 1] + 1e-9
    if epsilon < math.inf:
        assert privacy_profile(q, epsilon) <= TOL
        assert dp_failure_probability(q, epsilon) == 0.0
        if epsilon > 0.01:
            assert privacy_profile(q, epsilon - 0.01) > 0
            assert dp_failure_probability(q, epsilon - 0.01) > 0
    else:
        assert privacy_profile(q, 100.0) > 0
    # At 0: the largest total variation distance.
    distances = np.abs(q.matrix[:, None] - q.matrix).sum(axis=2) / 2
    assert privacy_profile(q, 0.0) == pytest.approx(distances.max(), abs=1e-12)


@few
@given(data=st.data())
def test_independent_releases_add_up(data):
    p, q = data.draw(pairs())
    other = data.draw(channels(inputs=len(p)))
    both = q.product(other)
    for measure in (mutual_information, max_information, maximal_leakage):
        assert measure(q, p) <= measure(both, p) + TOL
    for measure in (mutual_information, maximal_leakage):
        assert measure(both, p) <= measure(q, p) + measure(other, p) + TOL
    conditional = conditional_maximal_leakage(q, [other] * q.shape[1], p)
    assert conditional <= maximal_leakage(other, p) + TOL
    assert maximal_leakage(both, p) <= maximal_leakage(q, p) + conditional + TOL
    total = local_dp_epsilon(q) + local_dp_epsilon(other)
    assert local_dp_epsilon(both) <= total + TOL


@few
@given(data=st.data(), t=st.floats(0, 1))
def test_curvature_of_information(data, t):
    p, q = data.draw(pairs())
    p2, q2 = data.draw(laws(len(p))), data.draw(channels(*q.shape))
    # Concave in the prior, convex in the channel; exp of maximal leakage is convex too.
    mixed = t * mutual_information(q, p) + (1 - t) * mutual_information(q, p2)
    assert mutual_information(q, t * p + (1 - t) * p2) >= mixed - TOL
    between = Channel(t * q.matrix + (1 - t) * q2.matrix)
    mixed = t * mutual_information(q, p) + (1 - t) * mutual_information(q2, p)
    assert mutual_information(between, p) <= mixed + TOL
    assert multiplicative_bayes_capacity(between) <= (
        t * multiplicative_bayes_capacity(q) + (1 - t) * multiplicative_bayes_capacity(q2) + TOL
    )


@few
@given(data=st.data())
def test_distortion_is_bilinear_and_bounded(data):
    p, q = data.draw(pairs())
    d = np.abs(np.subtract.outer(range(q.shape[0]), range(q.shape[1])))
    value = expected_distortion(q, p, d)
    assert value == pytest.approx(p @ (q.matrix * d).sum(axis=1))
    assert 0 <= value <= d.max()


@st.composite
def mechanisms(draw):
    shape = draw(st.sampled_from([(2, 2), (3, 2), (2, 2, 2)]))
    space = RecordSpace([range(k) for k in shape])
    # Few distinct rows, so that lumping has something to do.
    rows = [draw(laws(3)) for _ in range(3)]
    choice = draw(st.lists(st.integers(0, 2), min_size=space.size, max_size=space.size))
    return draw(laws(space.size)), Mechanism.from_channel(space, [rows[c] for c in choice])


@few
@given(data=st.data())
def test_post_processing_never_tells_more_about_a_record(data):
    p, mechanism = data.draw(mechanisms())
    after = mechanism.then(data.draw(channels(inputs=3)))
    for record in range(mechanism.space.records):
        for measure in (record_information, record_max_information):
            assert measure(after, p, record) <= measure(mechanism, p, record) + TOL
    assert conditional_record_information(after, p, 0, 1) <= (
        conditional_record_information(mechanism, p, 0, 1) + TOL
    )
    assert record_dp_epsilon(after) <= record_dp_epsilon(mechanism) + TOL
    for epsilon in EPSILONS:
        assert record_privacy_profile(after, epsilon) <= (
            record_privacy_profile(mechanism, epsilon) + TOL
        )


@few
@given(mechanisms())
def test_a_record_tells_less_than_the_dataset(drawn):
    p, mechanism = drawn
    n = mechanism.space.records
    whole = mutual_information(mechanism.to_channel(), p)
    assert record_information(mechanism, p, range(n)) == pytest.approx(whole, abs=1e-12)
    for record in range(n):
        alone = record_information(mechanism, p, record)
        assert alone <= record_information(mechanism, p, (record, (record + 1) % n)) + TOL
        assert alone <= whole + TOL
        assert alone <= record_max_information(mechanism, p, record) + TOL
    assert record_dp_epsilon(mechanism) <= local_dp_epsilon(mechanism.to_channel()) + TOL


@few
@given(data=st.data())
def test_independent_records(data):
    _, mechanism = data.draw(mechanisms())
    parts = [data.draw(laws(k)) for k in mechanism.space.shape]
    p = parts[0]
    for part in parts[1:]:
        p = np.multiply.outer(p, part).ravel()
    # Knowing independent others only sharpens what is learned.
    alone = record_information(mechanism, p, 0)
    assert alone <= conditional_record_information(mechanism, p, 0, 1) + TOL
    # DALENIUS Theorem 1.
    for record in range(len(parts)):
        assert record_max_information(mechanism, p, record) <= (record_dp_epsilon(mechanism) + TOL)


@few
@given(mechanisms())
def test_lumping(drawn):
    p, mechanism = drawn
    for record in range(mechanism.space.records):
        weights, lumped = mechanism.lump(record, p), mechanism.lumped(record)
        assert same(lumped_information(weights, lumped), record_information(mechanism, p, record))
        assert lumped_entropy(weights, lumped) >= entropy(p) - TOL


@few
@given(data=st.data())
def test_datasets_and_records_in_another_order(data):
    p, mechanism = data.draw(mechanisms())
    shape = mechanism.space.shape
    order = data.draw(st.permutations(range(len(shape))))
    places = np.arange(len(p)).reshape(shape).transpose(order).ravel()
    space = RecordSpace([mechanism.space.alphabets[i] for i in order])
    turned = Mechanism.from_channel(space, mechanism.to_channel().matrix[places])
    for new, old in enumerate(order):
        assert same(
            record_information(turned, p[places], new), record_information(mechanism, p, old)
        )
    assert same(record_dp_epsilon(turned), record_dp_epsilon(mechanism))


@few
@given(st.lists(st.floats(0, 1), min_size=2, max_size=5), st.data())
def test_any_floats(weights, data):
    """Subnormal and huge ratios give numbers, never nan and no warning."""
    total = math.fsum(weights)
    assume(total > 1e-300)
    p = np.array(weights) / total
    assume(abs(p.sum() - 1) < 1e-9)
    tiny = data.draw(st.sampled_from([5e-324, 1e-310, 1e-200, 1e-17]))
    rows = np.full((len(p), 2), [tiny, 1.0])
    rows[0] = [1.0, tiny]
    q, prior = Channel(rows), Prior(p)
    assert 0 <= mutual_information(q, prior) <= entropy(prior) + TOL
    assert 0 <= maximal_leakage(q, prior) <= max_information(q, prior) + TOL
    assert max_information(q, prior) < 1500
    assert local_dp_epsilon(q) == pytest.approx(-math.log(tiny))
    assert privacy_profile(q, 1.0) <= dp_failure_probability(q, 1.0)
