"""The post-processings of ENVELOPE's proofs, Lemma 1, and adaptive releases of any number."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.envelope import (
    adaptive_composition,
    adaptive_composition_bound,
    deterministic_form,
    pml_envelope,
    quantile_attack,
    response_attack,
    response_condition,
    response_envelope,
    response_lower_bound,
)
from cvxleak.measures import (
    conditional_maximal_leakage,
    event_leakage,
    maximal_leakage,
    pml,
    pml_left_quantile,
    pml_right_quantile,
)
from cvxleak.mechanisms import randomized_response
from cvxleak.model import Channel

seeds = st.integers(0, 10**6)
FAIR = [0.25] * 4
EXAMPLE = Channel([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]])


@settings(max_examples=20)
@given(seeds)
def test_theorem_2_the_left_quantile_can_be_lifted(seed):
    rng = np.random.default_rng(seed)
    prior, channel = rng.dirichlet(np.ones(3)), Channel(rng.dirichlet(np.ones(4), size=3))
    # At the probability of the outputs that leak most, the quantiles differ.
    leakage, mass = pml(channel, prior), channel.output(prior).probabilities
    order = np.argsort(-leakage)
    delta = float(mass[order[: rng.integers(1, 4)]].sum())
    low, high = pml_left_quantile(channel, prior, delta), pml_right_quantile(channel, prior, delta)
    assert low < high
    for share, off in ((1e-3, 0.1), (1e-7, 1e-4)):
        seen = channel.then(quantile_attack(prior, channel, delta, share))
        reached = pml_left_quantile(seen, prior, delta)
        assert high - off * (1 + mass.max() / mass.min()) <= reached <= high + 1e-9


@settings(max_examples=10)
@given(seeds, st.floats(0.05, 0.95))
def test_theorem_2_the_envelope_is_the_supremum_of_left_quantiles(seed, delta):
    rng = np.random.default_rng(seed)
    prior, channel = rng.dirichlet(np.ones(3)), Channel(rng.dirichlet(np.ones(4), size=3))
    bound = pml_envelope(prior, channel, delta)
    # The right quantile of the best post-processing is the envelope; lift the left one to it.
    best = channel.then(bound.witness)
    seen = best.then(quantile_attack(prior, best, delta, 1e-9))
    assert bound.lower - 1e-5 <= pml_left_quantile(seen, prior, delta) <= bound.upper + 1e-9


def test_theorem_2_on_example_1():
    left, right = (f(EXAMPLE, FAIR, 0.1) for f in (pml_left_quantile, pml_right_quantile))
    assert [left, right] == pytest.approx([math.log(10 / 9), math.log(4)])
    seen = EXAMPLE.then(quantile_attack(FAIR, EXAMPLE, 0.1, 1e-9))
    assert pml_left_quantile(seen, FAIR, 0.1) == pytest.approx(math.log(4), abs=1e-6)
    # And no further: the envelope is the supremum of either quantile.
    assert pml_envelope(FAIR, EXAMPLE, 0.1).upper == pytest.approx(math.log(4), abs=1e-7)
    # Without a gap there is nothing to lift.
    unchanged = quantile_attack(FAIR, EXAMPLE, 0.05, 0.5)
    assert (unchanged.matrix == np.eye(4)).all()


@settings(max_examples=60)
@given(seeds)
def test_theorem_5_iii_the_construction_attains_the_bound(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    prior, epsilon = rng.dirichlet(np.full(k, 2.0)), float(rng.uniform(0.2, 3))
    channel = randomized_response(k, epsilon)
    least = channel.output(prior).probabilities.min()
    delta = float(rng.uniform(least * (1 + 1e-6), 1))
    attack = response_attack(prior, epsilon, delta)
    assert attack.weights.sum() == pytest.approx(1)
    assert attack.weights[-1] == pytest.approx(1 - attack.theta, abs=1e-12)
    if abs(attack.theta_2 - 1) > 1e-9:
        assert response_condition(prior, epsilon, delta) == (attack.theta_2 < 1)
    seen = channel.then(attack.channel)
    mass = seen.output(prior).probabilities
    assert mass[:-1].sum() == pytest.approx(delta)
    # The paper's quantile, of the symbols before N; a share of rounding must not decide.
    reached = float(pml(seen, prior)[:-1].min())
    bound = float(response_lower_bound(prior, epsilon, delta))
    if attack.theta <= attack.theta_2:
        assert reached == pytest.approx(bound, abs=1e-9)
    else:
        assert reached <= bound + 1e-12
        assert bound == pytest.approx(pml_right_quantile(channel, prior, delta), abs=1e-9)
    assert reached <= response_envelope(prior, epsilon, delta) + 1e-12


def test_theorem_5_iii_needs_delta_above_the_least_output():
    with pytest.raises(ValidationError, match=r"delta: found 0\.1"):
        response_attack([0.2, 0.3, 0.5], 1.0, 0.1)


@settings(max_examples=10)
@given(seeds)
def test_lemma_1_the_envelope_falls_and_is_lower_semicontinuous(seed):
    rng = np.random.default_rng(seed)
    prior, rows = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), size=3)
    # Where the quantiles of the outputs jump, if anywhere.
    mass = prior @ rows
    delta = float(mass[np.argsort(-pml(rows, prior))[: rng.integers(1, 4)]].sum())
    here = pml_envelope(prior, rows, delta)
    for step in (1e-3, 1e-6):
        after = pml_envelope(prior, rows, min(delta * (1 + step), 1.0))
        assert after.lower <= here.upper + 1e-9
        assert after.upper >= here.lower - math.log1p(step) - 1e-9


@settings(max_examples=30)
@given(seeds)
def test_appendix_c_a_randomized_post_processing_is_a_function(seed):
    rng = np.random.default_rng(seed)
    prior, channel = rng.dirichlet(np.ones(3)), Channel(rng.dirichlet(np.ones(3), size=3))
    rows = rng.dirichlet(np.ones(2), size=3) * (rng.random((3, 2)) < 0.8)
    rows[:, 0] += rows.sum(axis=1) == 0
    post = Channel(rows / rows.sum(axis=1, keepdims=True))
    extended, function = deterministic_form(channel, post)
    assert set(function.matrix.ravel().tolist()) <= {0.0, 1.0}
    through, direct = extended.then(function), channel.then(post)
    assert through.matrix == pytest.approx(direct.matrix)
    # The same reduced channel, whatever the order of its columns.
    one, other = (np.array(sorted(c.reduced().matrix.T.tolist())) for c in (extended, channel))
    assert one == pytest.approx(other)
    for z, leakage in zip(direct.outputs, pml(direct, prior), strict=True):
        event = [float(pair[1] == z) for pair in extended.outputs]  # type: ignore
        if np.dot(extended.output(prior).probabilities, event) > 0:
            assert event_leakage(extended, prior, event) == pytest.approx(leakage, abs=1e-9)


def test_appendix_c_the_reduced_form_of_example_1():
    printed = [[0, 0, 1], [0, 0, 1], [0, 0.2, 0.8], [0.2, 0, 0.8]]
    assert EXAMPLE.reduced().matrix == pytest.approx(np.array(printed))


def test_three_adaptive_releases():
    rng = np.random.default_rng(4)
    prior = rng.dirichlet(np.ones(3))
    first = rng.dirichlet(np.ones(2), size=3)
    second = [rng.dirichlet(np.ones(2), size=3) for _ in range(2)]
    third = [rng.dirichlet(np.ones(2), size=3) for _ in range(4)]
    joint = adaptive_composition([first, second, third])
    # By definition.
    for x, (a, b, c) in product(range(3), product(range(2), repeat=3)):
        expected = first[x, a] * second[a][x, b] * third[2 * a + b][x, c]
        assert joint.row(x)[joint.outputs.index((a, b, c))] == pytest.approx(expected)
    terms = [maximal_leakage(first, prior), conditional_maximal_leakage(first, second, prior)]
    past = adaptive_composition([first, second])
    terms.append(conditional_maximal_leakage(past, third, prior))
    bound = adaptive_composition_bound(prior, [first, second, third], 0.3)
    assert bound == pytest.approx(sum(terms) - math.log(0.3))
    assert pml_envelope(prior, joint, 0.3).lower <= bound


def test_complaints():
    with pytest.raises(ValidationError, match=r"releases\[1\]: found 1 channel"):
        adaptive_composition([np.eye(2), [np.eye(2)]])
    with pytest.raises(ValidationError, match=r"releases\[1\]\[0\]: found 3 rows"):
        adaptive_composition([np.eye(2), [np.eye(3), np.eye(2)]])
    with pytest.raises(ValidationError, match="releases: found none"):
        adaptive_composition([])
    with pytest.raises(ValidationError, match="share"):
        quantile_attack(FAIR, EXAMPLE, 0.1, 0.0)
