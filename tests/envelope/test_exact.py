"""delta_c and eps_c: closed forms, two solvers, jumps, ties, zeros, and laws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.envelope import (
    FailureProbability,
    PMLEnvelope,
    envelope_lower_bound,
    envelope_upper_bound,
    failure_probability,
    pml_envelope,
    response_envelope,
    tail_average_bound,
)
from cvxleak.measures import max_information, pml_failure_probability, pml_right_quantile
from cvxleak.mechanisms import pml_extremal, randomized_response
from cvxleak.model import Channel, Prior
from cvxleak.proofs import verify

EXAMPLE = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
FAIR = [0.25] * 4


def drawn(seed, most=6):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, most, size=2)
    prior = rng.dirichlet(np.ones(n))
    rows = rng.dirichlet(np.full(m, rng.choice([0.3, 1.0, 3.0])), size=n)
    return rng, prior, rows


def reference(statement, value):
    """Return eps_c by bisection on the values of the CVXPY program."""
    low, high = 0.0, 1.0001 * max_information(statement.channel, statement.prior)
    for _ in range(26):
        middle = (low + high) / 2
        reached = statement.to_cvxpy(middle).solve(solver="HIGHS") >= value - 1e-9
        low, high = (middle, high) if reached else (low, middle)
    return low


@pytest.mark.parametrize("seed", range(12))
def test_probability_agrees_with_the_plain_program(seed):
    rng, prior, rows = drawn(seed)
    statement = FailureProbability(prior, rows, rng.uniform(0, max_information(rows, prior)))
    bound = statement.solve()
    assert bound.gap < 1e-9
    assert bound.lower == pytest.approx(statement.to_cvxpy().solve(solver="HIGHS"), abs=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_level_agrees_with_bisection_on_the_plain_program(seed):
    rng, prior, rows = drawn(100 + seed, most=5)
    statement = PMLEnvelope(prior, rows, rng.uniform(0.05, 0.95))
    bound = statement.solve()
    assert bound.gap < 1e-9
    assert bound.lower == pytest.approx(reference(statement, statement.delta), abs=1e-6)


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_randomized_response(seed):
    rng = np.random.default_rng(seed)
    k, epsilon = int(rng.integers(2, 13)), rng.uniform(0.01, 4)
    prior = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 10.0])))
    if rng.random() < 0.2:
        prior[0] = 0.0
        prior /= prior.sum()
    if prior.max() == 1:
        return
    delta = float(rng.choice([0.0, 1.0, rng.random(), 10.0 ** -rng.integers(1, 5)]))
    bound = pml_envelope(prior, randomized_response(k, epsilon), delta)
    expected = response_envelope(prior, epsilon, delta)
    assert bound.lower - 1e-9 <= expected <= bound.upper + 1e-9
    assert bound.gap < 1e-8


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_witness_attains_the_value_and_the_certificate_passes(seed):
    rng, prior, rows = drawn(seed)
    epsilon, delta = rng.uniform(0, max_information(rows, prior)), rng.random()
    for strict in (True, False):
        bound = failure_probability(prior, rows, epsilon, strict=strict)
        after = Channel(rows).then(bound.witness)
        attained = pml_failure_probability(after, prior, epsilon, strict=strict)
        assert attained >= bound.lower - 1e-12
        assert attained <= bound.upper + 1e-12
        assert verify(bound.certificate).passed
    bound = pml_envelope(prior, rows, delta)
    after = Channel(rows).then(bound.witness)
    assert bound.lower - 1e-11 <= pml_right_quantile(after, prior, delta) <= bound.upper + 1e-11
    assert verify(bound.certificate).passed


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_laws(seed):
    rng, prior, rows = drawn(seed)
    delta = rng.uniform(0.01, 0.99)
    bound = pml_envelope(prior, rows, delta)
    assert envelope_lower_bound(prior, rows, delta) <= bound.upper + 1e-9
    assert bound.lower <= tail_average_bound(prior, rows, delta) + 1e-9
    assert tail_average_bound(prior, rows, delta) <= envelope_upper_bound(prior, rows, delta) + 1e-9
    # Post-processing cannot raise it, and neither can a larger delta.
    then = rng.dirichlet(np.ones(3), size=rows.shape[1])
    assert pml_envelope(prior, rows @ then, delta).lower <= bound.upper + 1e-9
    assert pml_envelope(prior, rows, (1 + delta) / 2).lower <= bound.upper + 1e-9
    # Splitting an output in two says nothing new: a channel need not be reduced.
    split = np.hstack([rows[:, :1] * 0.3, rows[:, :1] * 0.7, rows[:, 1:], np.zeros((len(rows), 1))])
    assert pml_envelope(prior, split, delta).lower == pytest.approx(bound.lower, abs=1e-9)
    reduced = Channel(split).reduced()
    assert pml_envelope(prior, reduced, delta).lower == pytest.approx(bound.lower, abs=1e-9)
    # The two functions are inverse to each other, away from jumps.
    back = failure_probability(prior, rows, bound.lower + 1e-9)
    assert back.lower <= delta + 1e-6
    assert failure_probability(prior, rows, bound.upper, strict=False).upper >= delta - 1e-6


def test_envelope_of_the_papers_example():
    for delta in (1e-9, 0.05, 0.1):
        assert pml_envelope(FAIR, EXAMPLE, delta).lower == pytest.approx(math.log(4))
    assert pml_envelope(FAIR, EXAMPLE, 0.101).upper < math.log(4) - 1e-3


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_all_outputs_leak_the_same(epsilon):
    prior = [0.2, 0.3, 0.5]
    mechanism = pml_extremal(prior, epsilon)
    for delta in (0.0, 1e-6, 0.3, 0.99, 1.0):
        bound = pml_envelope(prior, mechanism, delta)
        assert bound.lower == pytest.approx(epsilon, abs=1e-9)
        assert bound.upper == pytest.approx(epsilon, abs=1e-9)
    assert failure_probability(prior, mechanism, epsilon).upper == 0
    assert failure_probability(prior, mechanism, epsilon, strict=False).lower > 1 - 1e-9


def test_all_outputs_leak_the_same_with_more_outputs_than_inputs():
    # ENVELOPE Corollary 1: each pair of four equally likely inputs is an output, and leaks a bit.
    pairs = list(itertools.combinations(range(4), 2))
    channel = np.array([[float(x in pair) / 3 for pair in pairs] for x in range(4)])
    for delta in (1e-6, 0.3, 0.99):
        bound = pml_envelope(FAIR, channel, delta)
        assert bound.lower == pytest.approx(math.log(2), abs=1e-9)
        assert bound.upper == pytest.approx(math.log(2), abs=1e-9)


def test_jumps_of_the_failure_probability():
    """At the largest density of each input the two probabilities differ, and nowhere else."""
    prior, epsilon = [0.2, 0.3, 0.5], 1.0
    channel = randomized_response(3, epsilon)
    output = channel.output(prior).probabilities
    for y in range(3):
        jump = math.log(channel.matrix[y, y] / output[y])
        strict = failure_probability(prior, channel, jump)
        loose = failure_probability(prior, channel, jump, strict=False)
        right = failure_probability(prior, channel, jump + 1e-7)
        left = failure_probability(prior, channel, jump - 1e-7)
        assert loose.lower - strict.upper > 0.01
        assert strict.lower == pytest.approx(right.lower, abs=1e-5)
        assert loose.lower == pytest.approx(left.lower, abs=1e-5)
        # The envelope is constant over the jump.
        for delta in (strict.upper + 1e-6, loose.lower - 1e-6, loose.lower):
            assert pml_envelope(prior, channel, delta).lower == pytest.approx(jump, abs=1e-9)


def test_limits():
    prior, channel = [0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]]
    most = max_information(channel, prior)
    assert pml_envelope(prior, channel, 0).lower == pytest.approx(most, abs=1e-9)
    assert failure_probability(prior, channel, most + 1e-6).upper == 0
    assert failure_probability(prior, channel, 1000.0).upper == 0
    assert failure_probability(prior, channel, 0.0, strict=False).lower == 1
    assert failure_probability(prior, channel, 0.0).lower == pytest.approx(1)
    assert pml_envelope([0.5, 0.5], np.eye(2), 1.0).lower == pytest.approx(math.log(2))


def test_independent_output_leaks_nothing():
    blind = np.tile([0.2, 0.8], (3, 1))
    for delta in (0.0, 0.5, 1.0):
        assert pml_envelope([0.2, 0.3, 0.5], blind, delta).upper < 1e-11
    assert failure_probability([0.2, 0.3, 0.5], blind, 0.0).upper == 0
    assert failure_probability([1.0], [[0.5, 0.5]], 0.0).upper == 0


def test_symbols_of_probability_zero_do_not_count():
    rng = np.random.default_rng(2)
    prior, rows = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), size=3)
    more_rows = np.zeros((4, 5))
    more_rows[:3, :4], more_rows[3, 4] = rows, 1.0
    more = [*prior, 0.0]
    for delta in (0.0, 0.2, 0.7, 1.0):
        bound = pml_envelope(more, more_rows, delta)
        assert bound.lower == pytest.approx(pml_envelope(prior, rows, delta).lower, abs=1e-9)
        assert bound.witness.shape[0] == 5
    one = failure_probability(prior, rows, 0.3).lower
    assert failure_probability(more, more_rows, 0.3).lower == pytest.approx(one, abs=1e-9)


def test_identity_on_a_skewed_prior():
    """Rare inputs can be topped up by much: 1e-12 is enough for a symbol of mass 1/t."""
    prior = np.array([1e-12, 1e-6, 1 - 1e-12 - 1e-6])
    for delta in (1e-12, 1e-6, 1e-3, 0.5):
        bound = pml_envelope(prior, np.eye(3), delta)
        assert bound.gap < 1e-6
        assert bound.lower >= pml_right_quantile(np.eye(3), prior, delta) - 1e-9


def test_ties_do_not_depend_on_rounding():
    """The stored .2 + .4 + .4 exceeds 1, so that the bad outputs have mass below .1, exactly."""
    assert PMLEnvelope(FAIR, EXAMPLE, 0.1).solve().lower == pytest.approx(math.log(4))
    assert PMLEnvelope(FAIR, EXAMPLE, 0.1, tie=0.0).solve().upper > 0
    exact = PMLEnvelope(FAIR, EXAMPLE, 0.1 * (1 + 1e-9)).solve()
    assert exact.upper <= math.log(4) + 1e-9


def test_many_outputs_are_merged_without_loss():
    rng = np.random.default_rng(3)
    prior, rows = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(5000), size=3)
    bound = pml_envelope(prior, rows, 0.3)
    assert bound.gap < 1e-9
    assert bound.lower > envelope_lower_bound(prior, rows, 0.3)


def test_time_limit_still_gives_a_bracket():
    rng = np.random.default_rng(4)
    prior, rows = np.full(40, 1 / 40), rng.dirichlet(np.ones(40), size=40)
    full = pml_envelope(prior, rows, 0.5)
    hasty = pml_envelope(prior, rows, 0.5, time_limit=0.0)
    assert hasty.lower <= full.upper
    assert full.lower <= hasty.upper
    again = hasty.refine(1e-9)
    assert again.gap < 1e-9
    hasty = failure_probability(prior, rows, 1.0, time_limit=0.0)
    full = failure_probability(prior, rows, 1.0)
    assert hasty.lower <= full.upper
    assert full.lower <= hasty.upper


def test_labels_are_matched():
    prior = Prior([0.7, 0.3], ["no", "yes"])
    channel = Channel([[0.8, 0.2], [0.3, 0.7]], ["yes", "no"], ["up", "down"])
    bound = pml_envelope(prior, channel, 0.6)
    plain = pml_envelope([0.3, 0.7], channel.matrix, 0.6)
    assert bound.lower == plain.lower
    assert bound.witness.inputs == ("up", "down")
    assert bound.witness.outputs[-1] == "rest"


def test_check_of_candidates():
    statement = FailureProbability([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.4)
    bound = statement.solve()
    best = statement.check(bound.witness, bound=bound)
    assert best.feasible
    assert best.shortfall[0] <= 1e-9
    weights = statement.to_cvxpy()
    weights.solve(solver="HIGHS")
    w = weights.var_dict["weights"].value
    candidate = np.column_stack([w.T, 1 - w.sum(axis=0)])
    assert statement.check(candidate, bound=bound).violations["rows sum to 1"] < 1e-9
    assert not statement.check([[0.5, 0.6], [0.5, 0.5]], bound=bound).feasible
    level = PMLEnvelope([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.6)
    assert level.check(level.solve().witness).shortfall[0] <= 1e-9
    for wrong in (np.eye(3), [[0.0, 0.0], [1.0, 0.0]], [[math.nan, 1], [0, 1]], "text", [1.0, 2.0]):
        with pytest.raises(ValidationError, match="candidate"):
            statement.check(wrong, bound=bound)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([0.5, 0.6], np.eye(2), 0.5), "prior|probabilities"),
        (([0.5, 0.5], np.eye(3), 0.5), "prior"),
        (([0.5, 0.5], np.eye(2), -0.1), "epsilon|delta"),
        (([0.5, 0.5], np.eye(2), math.nan), "epsilon|delta"),
        (([0.5, 0.5], np.eye(2), "much"), "epsilon|delta"),
    ],
)
def test_validation(arguments, name):
    for statement in (FailureProbability, PMLEnvelope):
        with pytest.raises(ValidationError, match=name):
            statement(*arguments)
    with pytest.raises(ValidationError, match="delta"):
        PMLEnvelope([0.5, 0.5], np.eye(2), 1.1)
    with pytest.raises(ValidationError, match="strict"):
        FailureProbability([0.5, 0.5], np.eye(2), 0.5, strict=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValidationError, match="tie"):
        PMLEnvelope([0.5, 0.5], np.eye(2), 0.5, tie=-1.0)
    with pytest.raises(ValidationError, match="tol"):
        pml_envelope([0.5, 0.5], np.eye(2), 0.5, tol=-1.0)
