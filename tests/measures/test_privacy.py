import itertools
import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    dp_failure_probability,
    local_dp_epsilon,
    privacy_profile,
    product_max_information,
    record_dp_epsilon,
    record_dp_failure_probability,
    record_max_information,
    record_privacy_profile,
)
from cvxleak.model import AdditiveQuery, Channel, Mechanism, RecordSpace, TableQuery


def loss(p, q):
    """log p/q of two probabilities; None where both are 0."""
    if p == 0:
        return -math.inf if q > 0 else None
    return math.inf if q == 0 else math.log(p / q)


def epsilon_of(pairs):
    losses = [loss(p, q) for a, b in pairs for p, q in zip(a, b, strict=True)]
    return max([0.0, *(value for value in losses if value is not None)])


def profile_of(pairs, epsilon):
    """The largest excess of any event, over all events."""
    worst = 0.0
    for a, b in pairs:
        for event in itertools.product([0, 1], repeat=len(a)):
            worst = max(worst, float(a @ event - math.exp(epsilon) * (b @ event)))
    return worst


def failure_of(pairs, epsilon):
    return max(
        sum(p for p, q in zip(a, b, strict=True) if p > 0 and loss(p, q) > epsilon)
        for a, b in pairs
    )


def all_pairs(rows):
    return list(itertools.permutations(rows, 2))


def neighbors(small):
    """Rows of all datasets that differ in one record."""
    return [
        (small.rows[i], small.rows[j])
        for (i, x), (j, y) in itertools.permutations(enumerate(small.datasets), 2)
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1
    ]


@pytest.fixture(params=range(8))
def rows(request):
    rng = np.random.default_rng(request.param)
    matrix = rng.dirichlet(np.ones(4), size=3)
    if request.param % 2:
        matrix = matrix * (rng.random((3, 4)) < 0.8) + [0.01, 0, 0, 0]
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix


def test_local_by_brute_force(rows):
    pairs = all_pairs(rows)
    assert local_dp_epsilon(rows) == pytest.approx(epsilon_of(pairs))
    for epsilon in (0.0, 0.1, 0.7, 2.0):
        assert privacy_profile(rows, epsilon) == pytest.approx(
            profile_of(pairs, epsilon), abs=1e-15
        )
        assert dp_failure_probability(rows, epsilon) == pytest.approx(failure_of(pairs, epsilon))


def test_record_by_brute_force(small):
    pairs = neighbors(small)
    assert record_dp_epsilon(small.mechanism) == pytest.approx(epsilon_of(pairs))
    for epsilon in (0.0, 0.1, 0.7, 2.0):
        assert record_privacy_profile(small.mechanism, epsilon) == pytest.approx(
            profile_of(pairs, epsilon), abs=1e-15
        )
        assert record_dp_failure_probability(small.mechanism, epsilon) == pytest.approx(
            failure_of(pairs, epsilon)
        )


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_randomized_response(k, epsilon):
    e = math.exp(epsilon)
    channel = (np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1)
    assert local_dp_epsilon(channel) == pytest.approx(epsilon)
    # Only the true value is ever an excess: (e - e^t) / (e + k - 1).
    for t in (0.0, epsilon / 2, 0.9 * epsilon):
        expected = (e - math.exp(t)) / (e + k - 1)
        assert privacy_profile(channel, t) == pytest.approx(expected)
        assert dp_failure_probability(channel, t) == pytest.approx(e / (e + k - 1))
    # At the channel's own epsilon, which it has only up to rounding, nothing fails.
    assert privacy_profile(channel, epsilon) == pytest.approx(0, abs=1e-15)
    assert dp_failure_probability(channel, epsilon) == 0.0


def test_geometric_count():
    # Neighbors are one step apart, distant counts more: record DP is 1 step, local DP is n steps.
    n, epsilon = 4, 0.5
    steps = np.abs(np.subtract.outer(range(n + 1), range(n + 1)))
    weights = np.exp(-epsilon * steps)
    weights[:, [0, -1]] /= 1 - math.exp(-epsilon)
    rows = weights / weights.sum(axis=1, keepdims=True)
    count = Mechanism(AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n), rows)
    assert record_dp_epsilon(count) == pytest.approx(epsilon)
    assert local_dp_epsilon(rows) == pytest.approx(n * epsilon)


def test_zeros():
    assert local_dp_epsilon([[1.0, 0.0], [0.5, 0.5]]) == math.inf
    assert local_dp_epsilon([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]) == 0.0
    assert local_dp_epsilon([[0.3, 0.7]]) == 0.0
    assert privacy_profile([[1.0, 0.0], [0.75, 0.25]], 50.0) == 0.25
    assert privacy_profile([[1.0, 0.0], [0.75, 0.25]], 5000.0) == 0.25
    assert dp_failure_probability([[1.0, 0.0], [0.75, 0.25]], 5000.0) == 0.25
    tiny = 5e-324
    almost = [[1.0, tiny], [tiny, 1.0]]
    assert local_dp_epsilon(almost) == pytest.approx(744.44, abs=0.01)
    assert privacy_profile(almost, 744.0) == pytest.approx(1 - math.exp(744 - 744.44), abs=0.01)
    assert dp_failure_probability(almost, 744.0) == 1.0
    assert privacy_profile(almost, 745.0) == dp_failure_probability(almost, 745.0) == 0.0
    assert privacy_profile(np.eye(3), 1.0) == 1.0
    assert privacy_profile([[0.3, 0.7]], 0.0) == 0.0


def test_no_neighbors_or_no_difference():
    space = RecordSpace([("only",), ("one",)])
    alone = Mechanism(TableQuery(space, [0], ("x",)), [[0.5, 0.5]])
    same = Mechanism(TableQuery(RecordSpace.binary(2), [0] * 4, ("x",)), [[0.5, 0.5]])
    for mechanism in (alone, same):
        assert record_dp_epsilon(mechanism) == 0.0
        assert record_privacy_profile(mechanism, 0.0) == 0.0
        assert record_dp_failure_probability(mechanism, 0.0) == 0.0


def test_only_neighbors_count():
    # The two records are never both changed: 0 and 2 are not neighbors.
    count = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
    mechanism = Mechanism(count, [[0.5, 0.5, 0.0], [0.4, 0.4, 0.2], [0.0, 0.5, 0.5]])
    assert record_dp_epsilon(mechanism) == math.inf
    mechanism = Mechanism(count, [[0.8, 0.2], [0.4, 0.6], [0.2, 0.8]])
    assert record_dp_epsilon(mechanism) == pytest.approx(math.log(3))  # 0.6 against 0.2
    assert local_dp_epsilon(mechanism.channel) == pytest.approx(math.log(4))


def test_ten_thousand_records():
    n, p = 10_000, 0.2
    mod = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=4)
    cyclic = np.full((4, 4), p / 3)
    np.fill_diagonal(cyclic, 1 - p)
    mechanism = Mechanism(mod, cyclic)
    assert record_dp_epsilon(mechanism) == pytest.approx(math.log((1 - p) / (p / 3)))
    assert record_privacy_profile(mechanism, 0.0) == pytest.approx(1 - p - p / 3)
    # A count rounded to its last bit: 10,000 pairs of values.
    count = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n)
    rows = [[0.7, 0.3] if value % 2 else [0.3, 0.7] for value in range(n + 1)]
    mechanism = Mechanism(count, Channel(rows))
    assert record_dp_epsilon(mechanism) == pytest.approx(math.log(7 / 3))
    assert record_dp_failure_probability(mechanism, 0.5) == pytest.approx(0.7)


def product_prior(laws):
    law = np.ones(1)
    for marginal in laws:
        law = np.multiply.outer(law, marginal)
    return law.ravel()


def test_theorem_1_no_product_prior_exceeds_epsilon(small):
    rng = np.random.default_rng(0)
    epsilon = product_max_information(small.mechanism)
    assert epsilon == record_dp_epsilon(small.mechanism)
    for _ in range(60):
        laws = [rng.dirichlet(np.full(k, 0.2)) for k in small.space.shape]
        for record in range(3):
            value = record_max_information(small.mechanism, product_prior(laws), record)
            assert value <= epsilon + 1e-12


def near_supremum(small, mass):
    """The best max-information with all records known but one, whose value has mass t or 1 - t."""
    best = 0.0
    for record in range(3):
        others = [range(k) for i, k in enumerate(small.space.shape) if i != record]
        for context in itertools.product(*others):
            for a, b in itertools.permutations(range(small.space.shape[record]), 2):
                places = list(context)
                places.insert(record, a)
                laws = [np.eye(k)[v] for k, v in zip(small.space.shape, places, strict=True)]
                laws[record] = mass * laws[record] + (1 - mass) * np.eye(len(laws[record]))[b]
                value = record_max_information(small.mechanism, product_prior(laws), record)
                best = max(best, value)
    return best


def test_theorem_1_product_priors_come_as_near_as_wanted(small):
    epsilon = product_max_information(small.mechanism)
    if epsilon == math.inf:
        # log 1/t, without end.
        assert near_supremum(small, 1e-9) == pytest.approx(9 * math.log(10), abs=1e-6)
    elif epsilon > 0:
        # Short of it by about t (e^epsilon - 1), and never there.
        near = near_supremum(small, 1e-6)
        assert near == pytest.approx(epsilon, abs=2e-6 * math.exp(epsilon))
        assert near < epsilon
    else:
        assert near_supremum(small, 0.5) == pytest.approx(0, abs=1e-15)
    # With t = 0 the value never occurs, and knowing everything leaves nothing to tell.
    assert near_supremum(small, 0.0) == pytest.approx(0, abs=1e-15)


def test_theorem_1_needs_independence():
    # Two records that are copies move the count by two steps.
    epsilon = 0.5
    rows = np.exp(-epsilon * np.abs(np.subtract.outer(range(3), range(3))))
    rows[:, [0, -1]] /= 1 - math.exp(-epsilon)
    rows /= rows.sum(axis=1, keepdims=True)
    mechanism = Mechanism(AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2), rows)
    copies = [1e-6, 0.0, 0.0, 1 - 1e-6]
    assert record_dp_epsilon(mechanism) == pytest.approx(epsilon)
    assert record_max_information(mechanism, copies, 0) == pytest.approx(2 * epsilon, abs=1e-5)


def test_failure_probability_is_not_safe_under_post_processing():
    channel = Channel([[0.1, 0.5, 0.4], [0.0, 0.5, 0.5]])
    merged = channel.then(Channel([[1, 0], [1, 0], [0, 1]]))
    epsilon = 0.18  # below log 0.6/0.5, and below log 0.5/0.4
    assert dp_failure_probability(channel, epsilon) == pytest.approx(0.5)
    assert dp_failure_probability(merged, epsilon) == pytest.approx(0.6)
    # The privacy profile is.
    assert privacy_profile(merged, epsilon) <= privacy_profile(channel, epsilon) + 1e-15


def test_profile_and_failure_probability(rows):
    for epsilon in (0.05, 0.3, 1.0):
        profile = privacy_profile(rows, epsilon)
        assert profile <= dp_failure_probability(rows, epsilon) + 1e-12
        for k in (2, 3):  # ENVELOPE (4)
            bound = profile / (1 - math.exp(-(k - 1) * epsilon))
            assert dp_failure_probability(rows, k * epsilon) <= bound + 1e-12


def test_refuses_what_is_out_of_range(flip):
    for epsilon in (-0.1, math.inf, math.nan, "one", True):
        for call in (
            lambda e: privacy_profile(np.eye(2), e),
            lambda e: dp_failure_probability(np.eye(2), e),
            lambda e: record_privacy_profile(flip(2, 0.1), e),
            lambda e: record_dp_failure_probability(flip(2, 0.1), e),
        ):
            with pytest.raises(ValidationError, match="epsilon"):
                call(epsilon)
    with pytest.raises(ValidationError, match="channel"):
        local_dp_epsilon([[0.5, 0.6]])
