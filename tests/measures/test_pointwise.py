"""Tails, quantiles, psi, events and bounds of pointwise maximal leakage."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.envelope import (
    adaptive_composition_bound,
    composition_bound,
    envelope_lower_bound,
    envelope_upper_bound,
    output_count_bound,
    tail_average_bound,
)
from cvxleak.measures import (
    binary_envelope,
    dp_failure_probability,
    dp_tail_bound,
    event_envelope,
    event_leakage,
    max_information,
    maximal_leakage,
    pml,
    pml_failure_probability,
    pml_left_quantile,
    pml_limit,
    pml_right_quantile,
    privacy_profile,
    psi_1,
    psi_2,
)
from cvxleak.mechanisms import randomized_response

EXAMPLE = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
FAIR = [0.25] * 4
MERGED = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])


def drawn(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 6, size=2)
    return rng, rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(m, 0.7), size=n)


@given(st.integers(0, 10**6))
def test_quantiles_by_their_definitions(seed):
    rng, prior, rows = drawn(seed)
    leakage, mass = pml(rows, prior), prior @ rows
    delta = rng.uniform(0.01, 0.99)
    sets = [np.array(s, dtype=bool) for s in product([0, 1], repeat=len(mass))]
    good = [leakage[s].max() for s in sets if mass[s].sum() >= 1 - delta]
    bad = [leakage[s].min() for s in sets if mass[s].sum() >= delta]
    left, right = (f(rows, prior, delta) for f in (pml_left_quantile, pml_right_quantile))
    assert left == pytest.approx(min(good), abs=1e-12)  # (10)
    assert right == pytest.approx(max(bad), abs=1e-12)
    assert left <= right + 1e-12
    # The least epsilon of (epsilon, delta)-probabilistic PML.
    assert pml_failure_probability(rows, prior, left) <= delta + 1e-12
    assert left < 1e-9 or pml_failure_probability(rows, prior, left - 1e-9) > delta
    assert pml_failure_probability(rows, prior, right, strict=False) >= delta - 1e-12


def test_quantiles_at_a_jump_and_at_the_ends():
    assert math.exp(pml_left_quantile(EXAMPLE, FAIR, 0.1)) == pytest.approx(10 / 9)
    assert math.exp(pml_right_quantile(EXAMPLE, FAIR, 0.1)) == pytest.approx(4)
    for quantile in (pml_left_quantile, pml_right_quantile):
        ends = np.exp(quantile(EXAMPLE, FAIR, [0.0, 1.0]))
        assert ends == pytest.approx([4, 10 / 9])
        assert quantile(EXAMPLE, FAIR, np.full((2, 3), 0.5)).shape == (2, 3)
    with pytest.raises(ValidationError, match="delta"):
        pml_left_quantile(EXAMPLE, FAIR, [0.5, 1.5])
    with pytest.raises(ValidationError, match="delta"):
        pml_right_quantile(EXAMPLE, FAIR, math.nan)


def test_an_input_and_an_output_that_cannot_occur():
    prior, rows = [0.5, 0.5, 0.0], [[0.9, 0.1, 0], [0.1, 0.9, 0], [0, 0, 1.0]]
    assert pml_limit(prior) == pytest.approx(math.log(2))
    assert pml_right_quantile(rows, prior, 1.0) == pytest.approx(math.log(1.8))
    assert psi_1(rows, prior, 0.1) == pytest.approx(
        psi_1([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], 0.1)
    )
    assert psi_2(rows, prior, 0.1) == pytest.approx(
        psi_2([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], 0.1)
    )
    assert event_leakage(rows, prior, [0, 0, 1]) == -math.inf


def test_psi_of_the_papers_example():
    epsilon = math.log(10 / 9)
    after = np.array(EXAMPLE) @ MERGED
    assert psi_1(EXAMPLE, FAIR, epsilon) == pytest.approx(13 / 180)
    assert psi_1(after, FAIR, epsilon) == pytest.approx(2 / 27)  # it rises
    assert psi_2(EXAMPLE, FAIR, math.log(3)) == pytest.approx(0.05)
    assert psi_2(EXAMPLE, FAIR, epsilon) == pytest.approx(13 / 90)
    assert psi_2(EXAMPLE, FAIR, 800.0) == 0


@given(st.integers(0, 10**6))
def test_psi(seed):
    rng, prior, rows = drawn(seed)
    epsilon = rng.uniform(0, 1)
    output = prior @ rows
    events = [np.array(s, dtype=float) for s in product([0, 1], repeat=len(output))]
    largest = max(float((rows @ e - math.exp(epsilon) * (output @ e)).max()) for e in events)
    assert psi_2(rows, prior, epsilon) == pytest.approx(largest, abs=1e-12)
    after = rows @ rng.dirichlet(np.ones(3), size=rows.shape[1])
    assert psi_2(after, prior, epsilon) <= psi_2(rows, prior, epsilon) + 1e-12
    assert psi_1(rows, prior, epsilon) <= pml_failure_probability(rows, prior, epsilon) + 1e-12
    assert psi_2(rows, prior, epsilon) <= privacy_profile(rows, epsilon) + 1e-12


@given(st.integers(0, 10**6))
def test_dp_tail_bound(seed):
    rng, _, rows = drawn(seed)
    epsilon, k = rng.uniform(0.05, 1), int(rng.integers(2, 5))
    delta = privacy_profile(rows, epsilon)
    assert dp_failure_probability(rows, k * epsilon) <= dp_tail_bound(k, epsilon, delta) + 1e-12


def test_probabilistic_dp_is_not_closed_under_post_processing():
    # ENVELOPE Definition 3: the output that gives a 0 away takes some of the other one with it.
    rows, merging = np.array([[0.1, 0.9], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.05, 0.95]])
    before, after = (dp_failure_probability(q, 0.5) for q in (rows, rows @ merging))
    assert before == pytest.approx(0.1)
    assert after == pytest.approx(0.1 + 0.9 * 0.05)
    assert privacy_profile(rows @ merging, 0.5) <= privacy_profile(rows, 0.5) <= before


def test_tail_bound_arguments():
    assert dp_tail_bound(2, 0.1, 1.0) == 1.0
    for arguments, name in (((2, 1, 1.5), "delta"), ((2, 0, 0.5), "epsilon"), ((1, 1, 0.5), "k")):
        with pytest.raises(ValidationError, match=name):
            dp_tail_bound(*arguments)


@given(st.integers(0, 10**6), st.floats(0.01, 0.99))
def test_lemma_3(seed, share):
    rng, prior, rows = drawn(seed)
    m = rows.shape[1]
    one = rng.random(m) * (rng.random(m) < 0.7)
    other = (1 - one) * rng.random(m)
    mass = prior @ rows @ one
    if mass == 0:
        return
    leakage = event_leakage(rows, prior, one)
    assert 0 <= leakage <= -math.log(min(mass, 1.0)) + 1e-12
    assert event_leakage(rows, prior, np.ones(m)) == pytest.approx(0, abs=1e-12)
    both = event_leakage(rows, prior, one + other)
    assert both <= max(leakage, event_leakage(rows, prior, other)) + 1e-12
    # (iv): within an event, one of smaller mass that leaks as much. It has the outputs of greatest
    # density at the input that the leakage is attained at, the last of them in part.
    density = rows[np.argmax(rows @ one)] / (prior @ rows)
    part, rest = np.zeros(m), share * mass
    for y in np.argsort(-density):
        part[y] = min(one[y], max(rest, 0.0) / (prior @ rows)[y])
        rest -= part[y] * (prior @ rows)[y]
    assert (part <= one).all()
    assert prior @ rows @ part == pytest.approx(share * mass)
    assert event_leakage(rows, prior, part) >= leakage - 1e-9


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_event_envelope_by_brute_force(seed):
    rng, prior, rows = drawn(seed)
    delta = rng.uniform(0.05, 1)
    output = prior @ rows
    best = 0.0
    # An optimal event is an extreme point: all but one output are in or out.
    for inside in product([0.0, 1.0], repeat=len(output)):
        for y in range(len(output)):
            event = np.array(inside)
            event[y] = 0.0
            rest = (delta - output @ event) / output[y]
            if 0 <= rest <= 1:
                event[y] = rest
                best = max(best, event_leakage(rows, prior, event))
    assert event_envelope(rows, prior, delta) == pytest.approx(best, abs=1e-9)


def binary_by_grid(prior, rows, delta):
    output, best = prior @ rows, 0.0
    for share in product(np.linspace(0, 1, 13), repeat=rows.shape[1]):
        event = np.array(share)
        mass = float(output @ event)
        if not 0 < mass < 1:
            continue
        yes, no = (event_leakage(rows, prior, e) for e in (event, 1 - event))
        best = max(best, min(yes, no), yes if mass >= delta else 0, no if 1 - mass >= delta else 0)
    return best


@pytest.mark.parametrize("seed", range(2))
def test_binary_envelope_by_a_grid(seed):
    rng = np.random.default_rng(seed)
    prior, rows = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=3)
    for delta in (0.3, 0.95):
        grid, exact = binary_by_grid(prior, rows, delta), binary_envelope(rows, prior, delta)
        assert grid <= exact + 1e-12
        assert exact <= grid + 0.1


def test_binary_and_event_envelope_differ():
    """ENVELOPE's Algorithm 1 computes (26) and (27), which is not (13)."""
    prior, rows = [0.5, 0.5], np.eye(2)
    assert event_envelope(rows, prior, 0.9) == pytest.approx(math.log(1 / 0.9))
    assert binary_envelope(rows, prior, 0.9) == pytest.approx(math.log(2))
    assert binary_envelope([[0.5, 0.5]], [1.0], 0.5) == 0


def test_either_bound_of_14_can_be_the_larger_one():
    prior, rows = [0.2, 0.3, 0.5], randomized_response(3, 1.0)
    delta = np.array([0.3, 0.9])
    binary = binary_envelope(rows, prior, delta)
    quantile = pml_right_quantile(rows, prior, delta)
    assert (binary > quantile + 0.05).tolist() == [True, False]
    assert (quantile > binary + 0.05).tolist() == [False, True]


@given(st.integers(0, 10**6))
def test_bounds_are_ordered(seed):
    rng, prior, rows = drawn(seed)
    delta = np.sort(rng.uniform(0.01, 1, size=4))
    lower = envelope_lower_bound(prior, rows, delta)
    tail, upper = tail_average_bound(prior, rows, delta), envelope_upper_bound(prior, rows, delta)
    assert (lower <= tail + 1e-9).all()
    assert (tail <= upper + 1e-9).all()
    assert (upper <= output_count_bound(rows.shape[1], delta) + 1e-9).all()
    assert (upper <= pml_limit(prior) + 1e-9).all()
    for values in (lower, tail, upper, event_envelope(rows, prior, delta)):
        assert (np.diff(values) <= 1e-9).all()


def test_bounds_at_the_ends():
    prior, rows = [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]
    for bound in (tail_average_bound, envelope_upper_bound, envelope_lower_bound):
        assert bound(prior, rows, 0.0) == pytest.approx(max_information(rows, prior))
    assert event_envelope(rows, prior, 0.0) == pytest.approx(max_information(rows, prior))
    assert output_count_bound(2, 0.0) == math.inf
    assert composition_bound(prior, [rows], 0.0) == math.inf


def test_composition_bounds():
    rng = np.random.default_rng(1)
    prior = rng.dirichlet(np.ones(3))
    first = rng.dirichlet(np.ones(2), size=3)
    second = [rng.dirichlet(np.ones(4), size=3) for _ in range(2)]
    joint = (first[:, :, None] * np.stack(second, axis=1)).reshape(3, -1)
    bound = adaptive_composition_bound(prior, [first, second], 0.3)
    assert maximal_leakage(joint, prior) - math.log(0.3) <= bound + 1e-12
    same = adaptive_composition_bound(prior, [first, [second[0]] * 2], 0.3)
    assert same <= composition_bound(prior, [first, second[0]], 0.3) + 1e-12
    with pytest.raises(ValidationError, match="channels"):
        composition_bound(prior, [], 0.3)


def test_event_arguments():
    for event in ([0.5], [1.5, 0.0], [-0.1, 0.5], [math.nan, 0.5]):
        with pytest.raises(ValidationError, match="event"):
            event_leakage(np.eye(2), [0.5, 0.5], event)
