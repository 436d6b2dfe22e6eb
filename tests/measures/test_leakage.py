import itertools
import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    conditional_maximal_leakage,
    max_information,
    maximal_leakage,
    pml,
    record_max_information,
)
from cvxleak.model import Channel

# ENVELOPE (7): X uniform on four values.
EXAMPLE = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]


def test_envelope_example_1():
    prior = [0.25] * 4
    expected = np.log([4, 4, 10 / 9, 10 / 9])
    np.testing.assert_allclose(pml(EXAMPLE, prior), expected)
    merged = Channel(EXAMPLE).then(Channel([[1, 0], [0, 1], [1, 0], [0, 1]]))
    np.testing.assert_allclose(pml(merged, prior), np.log([6 / 5, 6 / 5]))


def test_pml_is_the_largest_gain_of_any_adversary():
    # By definition: sup over gain functions of the best expected gain after y over that before.
    # Indicator gains g(x, w) = 1[x = w] / p(w) attain it; random gains stay below.
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), size=3)
    leakage = pml(q, p)
    posterior = (p[:, None] * q / (p @ q)).T
    attained = np.diag(1 / p)
    gains = [attained, *rng.exponential(size=(200, 3, 5)) ** 3]
    for y, post in enumerate(posterior):
        ratios = [(post @ gain).max() / (p @ gain).max() for gain in gains]
        assert math.log(ratios[0]) == pytest.approx(leakage[y])
        assert max(ratios) <= math.exp(leakage[y]) + 1e-12


def test_outcomes_and_inputs_that_do_not_occur():
    channel = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(
        pml(channel, [0.5, 0.5, 0.0]), [math.log(2), math.log(2), -math.inf]
    )
    assert max_information(channel, [0.5, 0.5, 0.0]) == pytest.approx(math.log(2))
    assert maximal_leakage(channel, [0.5, 0.5, 0.0]) == pytest.approx(math.log(2))
    assert maximal_leakage(channel, [1.0, 0.0, 0.0]) == 0.0
    assert max_information(channel, [1.0, 0.0, 0.0]) == 0.0


@pytest.mark.parametrize("k", [2, 3, 7])
def test_randomized_response(k):
    epsilon = 1.3
    stay = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    channel = np.full((k, k), (1 - stay) / (k - 1))
    np.fill_diagonal(channel, stay)
    uniform = np.full(k, 1 / k)
    assert maximal_leakage(channel, uniform) == pytest.approx(math.log(k * stay))
    np.testing.assert_allclose(pml(channel, uniform), np.full(k, math.log(k * stay)))
    assert max_information(channel, uniform) == pytest.approx(math.log(k * stay))


def test_maximal_leakage_of_extremes():
    assert maximal_leakage(np.eye(3), [0.1, 0.2, 0.7]) == pytest.approx(math.log(3))
    assert maximal_leakage([[0.3, 0.7], [0.3, 0.7]], [0.1, 0.9]) == pytest.approx(0, abs=1e-15)
    erasure = np.hstack([0.6 * np.eye(4), np.full((4, 1), 0.4)])
    assert maximal_leakage(erasure, [0.25] * 4) == pytest.approx(math.log(4 * 0.6 + 0.4))


def test_maximal_leakage_is_the_mean_of_exp_pml():
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.full(5, 0.5), size=4)
    mean = (p @ q) @ np.exp(pml(q, p))
    assert maximal_leakage(q, p) == pytest.approx(math.log(mean))


def test_record_max_information_by_brute_force(small):
    for prior, record in itertools.product(small.priors, range(3)):
        best = -math.inf
        output = prior @ small.rows
        for value in small.space.alphabets[record]:
            here = np.array([x[record] == value for x in small.datasets])
            if prior[here].sum() > 0:
                given = prior[here] @ small.rows[here] / prior[here].sum()
                ratios = given[output > 0] / output[output > 0]
                best = max(best, math.log(ratios.max()))
        assert record_max_information(small.mechanism, prior, record) == pytest.approx(
            best, abs=1e-14
        )


def conditional_by_definition(prior, first, second):
    worst = -math.inf
    for y1 in range(first.shape[1]):
        inputs = [x for x in range(len(prior)) if prior[x] * first[x, y1] > 0]
        if inputs:
            outputs = range(second[y1].shape[1])
            worst = max(
                worst,
                math.log(sum(max(second[y1][x, y2] for x in inputs) for y2 in outputs)),
            )
    return worst


def test_conditional_maximal_leakage():
    rng = np.random.default_rng(6)
    for _ in range(20):
        prior = rng.dirichlet(np.ones(4)) * [1, 1, 1, rng.random() < 0.5]
        prior /= prior.sum()
        first = rng.dirichlet(np.ones(3), size=4) * (rng.random((4, 3)) < 0.6)
        first[:, 0] += 0.1
        first /= first.sum(axis=1, keepdims=True)
        second = [rng.dirichlet(np.full(3, 0.4), size=4) for _ in range(3)]
        conditional = conditional_maximal_leakage(first, second, prior)
        assert conditional == pytest.approx(
            conditional_by_definition(prior, first, second), abs=1e-14
        )
        # Both outputs together, the second release chosen by the first output.
        both = np.concatenate([first[:, [y]] * second[y] for y in range(3)], axis=1)
        total = maximal_leakage(both, prior)
        assert total <= maximal_leakage(first, prior) + conditional + 1e-12
        # A second release that does not look at the first output.
        same = conditional_maximal_leakage(first, [second[0]] * 3, prior)
        assert same <= maximal_leakage(second[0], prior) + 1e-12


def test_outputs_that_do_not_occur_have_no_condition():
    first = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    telling, silent = np.eye(3), np.tile([1.0, 0.0, 0.0], (3, 1))
    assert conditional_maximal_leakage(first, [silent, telling], [0.5, 0.5, 0.0]) == 0.0
    assert conditional_maximal_leakage(first, [telling, silent], [0.5, 0.5, 0.0]) == pytest.approx(
        math.log(2)
    )


def test_refuses_what_does_not_fit():
    with pytest.raises(ValidationError, match="prior"):
        maximal_leakage([[0.5, 0.5], [0.5, 0.5]], [1.0])
    with pytest.raises(ValidationError, match="second: found 1"):
        conditional_maximal_leakage(np.eye(2), [np.eye(2)], [0.5, 0.5])
    with pytest.raises(ValidationError, match=r"second\[1\]"):
        conditional_maximal_leakage(np.eye(2), [np.eye(2), np.eye(3)], [0.5, 0.5])
