"""Claims of differential privacy: what is proved, what refutes them, against definitions."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from cvxleak import verify
from cvxleak.core.errors import ValidationError
from cvxleak.differential_privacy import ClaimCheck, check_claim, claims
from cvxleak.measures import (
    privacy_profile,
    record_dp_epsilon,
    record_privacy_profile,
    renyi_divergence,
    renyi_dp_epsilon,
    zcdp_rho,
)
from cvxleak.mechanisms import exponential, truncated_geometric
from cvxleak.model import AdditiveQuery, Channel, Mechanism, Prior, RecordSpace
from cvxleak.model.noise import Gaussian
from cvxleak.queries import count
from tests.measures.test_laws import channels, few

RESPONSE = Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"])
ONE = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def votes(people: int, epsilon: float, sensitivity: float) -> Mechanism:
    """The candidate with most votes, by the exponential mechanism."""
    query = AdditiveQuery(RecordSpace([range(3)] * people), [ONE] * people)
    scores: Any = query.values
    return Mechanism(query, exponential(scores, epsilon, sensitivity, scores))


def holds(answer: ClaimCheck) -> bool:
    """Whether the ends are proved, near each other, and fit the verdict."""
    bound = answer.bound
    assert bound.certificate is not None
    assert verify(bound.certificate).passed
    assert bound.upper == bound.lower or bound.upper - bound.lower <= 1e-3 * bound.upper + 1e-12
    assert answer.passed == (bound.upper <= answer.stated)
    return answer.passed


@few
@given(channels(), st.sampled_from([0.0, 0.3, 1.5]), st.sampled_from([1.01, 2.0, 30.0]))
def test_parameters_are_those_of_the_measures(channel, epsilon, alpha):
    if len(channel.inputs) < 2:
        return
    found = check_claim(channel, renyi=(alpha, 1)).bound
    assert found.lower == pytest.approx(renyi_dp_epsilon(channel, alpha), rel=1e-9, abs=1e-12)
    found = check_claim(channel, epsilon=epsilon, delta=0.1).bound
    assert found.upper == pytest.approx(privacy_profile(channel, epsilon), rel=1e-9, abs=1e-12)
    found = check_claim(channel, zcdp=0.5).bound
    most = zcdp_rho(channel)  # at most a thousandth above the least
    assert most / 1.002 - 1e-12 <= found.lower <= found.upper <= most + 1e-12


@few
@given(channels(inputs=2))
def test_no_order_and_no_event_is_beyond_what_is_proved(channel):
    p, r = channel.matrix
    for one, other in ((p, r), (r, p)):
        rho = check_claim(p, r, zcdp=0.1).bound
        mu = check_claim(p, r, gdp=0.1).bound
        if math.isinf(rho.upper):
            assert (rho.lower, mu.lower) == (math.inf, math.inf)
            continue
        for alpha in 1 + np.geomspace(1e-3, 1e4, 50):
            assert renyi_divergence(one, other, alpha) <= rho.upper * alpha + 1e-12
        shifts = [0.0]
        for chosen in itertools.product([False, True], repeat=len(p)):
            one_mass, other_mass = one[list(chosen)].sum(), other[list(chosen)].sum()
            if 1e-9 < other_mass < one_mass < 1 - 1e-9:
                shifts.append(ndtri(one_mass) - ndtri(other_mass))
        assert mu.lower == pytest.approx(max(shifts), abs=1e-7)


def test_gaussian_privacy_of_a_fine_gaussian_is_its_shift():
    """Cells of N(0, 1) and N(0.5, 1): coarser, so no easier to tell apart, and nearly as easy."""
    edges = np.linspace(-6, 6, 120)
    from scipy.special import ndtr

    rows = np.diff(ndtr(edges - np.array([[0.0], [0.5]])), axis=1, prepend=0, append=1)
    rows /= rows.sum(axis=1, keepdims=True)
    found = check_claim(rows[0], rows[1], gdp=0.51)
    assert holds(found)
    assert 0.49 < found.bound.lower <= 0.5 + 1e-9
    rho = check_claim(rows[0], rows[1], zcdp=0.125 + 1e-9)  # mu^2 / 2
    assert holds(rho)
    assert rho.bound.lower > 0.123


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_noisy_maximum_that_states_a_quarter_of_what_it_spends(epsilon):
    stated = epsilon**2 / 8
    right = check_claim(votes(4, epsilon, 1.0), zcdp=stated)
    wrong = check_claim(votes(4, epsilon, 0.5), zcdp=stated)
    assert holds(right)
    assert not holds(wrong)
    assert right.violation is None
    assert wrong.verdict == "FAIL"
    seen = wrong.violation
    assert seen is not None
    assert seen.order is not None
    # Anybody can compute it again.
    channel = votes(4, epsilon, 0.5).channel
    law, other = channel.row(seen.first), channel.row(seen.second)
    assert renyi_divergence(law, other, seen.order) > stated * seen.order
    assert str(seen) in str(wrong)
    if epsilon == 0.1:
        assert wrong.bound.lower == pytest.approx(4 * right.bound.lower, rel=0.05)


def test_neighbors_of_a_mechanism():
    mechanism = Mechanism(count(8), truncated_geometric(8, 0.7))
    level = record_dp_epsilon(mechanism)
    assert holds(check_claim(mechanism, epsilon=level + 1e-9))
    assert not holds(check_claim(mechanism, epsilon=level - 1e-9))
    delta = record_privacy_profile(mechanism, 0.4)
    assert holds(check_claim(mechanism, epsilon=0.4, delta=delta + 1e-12))
    answer = check_claim(mechanism, epsilon=0.4, delta=delta - 1e-12)
    assert not holds(answer)
    seen = answer.violation
    assert seen is not None
    assert abs(seen.first - seen.second) == 1
    p, r = (
        sum(mechanism.channel.row(x)[list(mechanism.outputs).index(y)] for y in seen.outputs)
        for x in (seen.first, seen.second)
    )
    assert p - math.exp(0.4) * r == pytest.approx(delta, abs=1e-12)


def test_two_channels_are_compared_row_by_row():
    swapped = Channel(RESPONSE.matrix[::-1], RESPONSE.inputs)
    same, other = check_claim(RESPONSE, RESPONSE, epsilon=0), check_claim(RESPONSE, swapped, gdp=1)
    assert holds(same)
    assert same.bound.upper == 0
    assert not holds(other)
    assert other.violation is not None
    assert {other.violation.first[0], other.violation.second[0]} == {"first", "second"}
    assert other.violation.first[1] == other.violation.second[1]
    laws = check_claim(Prior([0.75, 0.25]), Prior([0.25, 0.75]), epsilon=1)
    assert str(laws) == "FAIL: 1-DP; epsilon is 1.09861 nats: 'first' against 'second', output [0]"
    exact = check_claim([["1/3", "2/3"]], [["1/6", "5/6"]], epsilon=0.6931471805599453)
    assert not holds(exact)  # log 2 is a little more than this float's decimal


def test_outputs_that_only_one_law_has():
    claims: list[dict[str, Any]] = [{"zcdp": 1}, {"gdp": 1}, {"epsilon": 1}, {"renyi": (2, 1)}]
    for claim in claims:
        answer = check_claim([1, 0], [0.5, 0.5], **claim)
        assert not holds(answer)
        assert (answer.bound.lower, answer.bound.upper) == (math.inf, math.inf)
    assert check_claim([1, 0], [0.5, 0.5], epsilon=9, delta=0.5).passed


def test_a_claim_within_a_millionth_is_left_open():
    truth = 0.5 * math.log(3)
    answer = check_claim(RESPONSE, zcdp=truth)
    assert answer.verdict in ("OPEN", "PASS", "FAIL")
    assert answer.bound.lower <= truth <= answer.bound.upper + 1e-15
    assert check_claim(RESPONSE, zcdp=truth * (1 + 1e-7)).passed
    assert check_claim(RESPONSE, zcdp=truth * (1 - 1e-6)).verdict == "FAIL"


@few
@given(channels())
def test_few_orders_are_a_proof_too(channel):
    if len(channel.inputs) < 2:
        return
    sharp = check_claim(channel, zcdp=0.5).bound
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "WORK_LIMIT", 0)
        rough = check_claim(channel, zcdp=0.5).bound
    assert rough.lower <= sharp.lower * (1 + 1e-9)
    assert rough.upper >= sharp.upper
    assert rough.certificate is not None
    assert verify(rough.certificate).passed


BAD = [
    ((RESPONSE,), {}, "epsilon: found no claim; exactly one of"),
    ((RESPONSE,), {"epsilon": 1, "zcdp": 1}, "epsilon: found epsilon and zcdp; exactly one of"),
    ((RESPONSE,), {"zcdp": 1, "delta": 0.1}, "delta: found 0.1 without epsilon"),
    ((RESPONSE,), {"zcdp": -1}, "zcdp: found -1"),
    ((RESPONSE,), {"epsilon": 1, "delta": 2}, "delta: found 2"),
    ((RESPONSE,), {"renyi": (1, 1)}, r"renyi: found 1; it must be in \(1"),
    ((RESPONSE,), {"renyi": 2}, "renyi: expected a sequence"),
    ((RESPONSE,), {"renyi": (2, 1, 1)}, r"renyi: found \(2, 1, 1\); \(alpha, epsilon\)"),
    (([[1.0]],), {"epsilon": 1}, "first: found no two inputs"),
    ((RESPONSE, [0.5, 0.5]), {"epsilon": 1}, "second: found .* as many rows"),
    ((votes(1, 1, 1), RESPONSE), {"epsilon": 1}, "second: found one in addition to a Mechanism"),
    ((Mechanism(count(2), Gaussian(1.0)),), {"epsilon": 1}, "mechanism: its output is a number"),
]


@pytest.mark.parametrize(("laws", "claim", "message"), BAD)
def test_bad_claims(laws, claim, message):
    with pytest.raises(ValidationError, match=message):
        check_claim(*laws, **claim)
