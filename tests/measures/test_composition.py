"""DALENIUS Definitions 10, 16, 17, Proposition 2, Theorems 3 and 4: numbers, and as laws."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    balance_value,
    composition_budget,
    composition_slack,
    entropy,
    group_budget,
    group_information,
    group_slack,
    mutual_information,
    record_information,
    unrestricted_budget,
)
from cvxleak.model import Mechanism, RecordSpace
from tests.reference import binary_entropy, parity_leakage


def capacity(rows):
    """Shannon capacity of a channel with two inputs: a concave function of one number."""
    best = minimize_scalar(
        lambda t: -mutual_information(rows, [t, 1 - t]),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return -best.fun


def individual_capacity(mechanism):
    """C_1 by DALENIUS Theorem 2: the best choice of one context for each value of a record."""
    matrix, n = mechanism.to_channel().matrix, mechanism.space.records
    table = matrix.reshape([2] * n + [-1])
    best = 0.0
    for record in range(n):
        zero, one = np.moveaxis(table, record, 0).reshape(2, 2 ** (n - 1), -1)
        best = max(best, *(capacity([a, b]) for a, b in itertools.product(zero, one)))
    return best


def priors(n, seed):
    """Laws on {0, 1}^n with all degrees of doubt and of correlation."""
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(2**n, a)) for a in (0.02, 0.1, 0.5, 3.0) for _ in range(40)]


@pytest.fixture(params=range(3))
def mechanism(request):
    rng = np.random.default_rng(request.param)
    return Mechanism.from_channel(RecordSpace.binary(3), rng.dirichlet(np.ones(3) / 2, size=8))


def test_theorem_3_over_all_adversaries(mechanism):
    c1 = individual_capacity(mechanism)
    for prior in priors(3, 0):
        for k in (1, 2, 3):
            assert group_information(mechanism, prior, k) <= group_budget(k, c1) + 1e-8


def test_theorem_3_over_adversaries_in_doubt(flip):
    n, p = 3, 0.1
    c1 = parity_leakage(n, p, 0)
    for prior in priors(n, 1):
        b = entropy(prior)  # this adversary is in the class with floor b
        floored = parity_leakage(n, p, b)
        g = balance_value(c1, floored)
        assert record_information(flip(n, p), prior, 0) <= floored + 1e-9
        for k in (1, 2, 3):
            found = group_information(flip(n, p), prior, k)
            assert found <= group_budget(k, floored, g) + 1e-9
            # What the chain rule gives is a little more: the first record costs no g.
            assert found <= k * floored + (k - 1) * g + 1e-9


def test_theorem_3_needs_the_balance(flip):
    # The parity of 2 through no noise: C_1^b is 0 at full doubt, and a pair still leaks log 2.
    mechanism, b = flip(2, 0.0), 2 * math.log(2)
    floored = parity_leakage(2, 0.0, b)
    pair = group_information(mechanism, [0.25] * 4, 2)
    assert floored == pytest.approx(0, abs=1e-12)
    assert pair == pytest.approx(math.log(2))
    assert pair > group_budget(2, floored)
    assert pair <= group_budget(2, floored, balance_value(parity_leakage(2, 0.0, 0), floored))


def test_theorem_4_over_all_adversaries(mechanism):
    rng = np.random.default_rng(9)
    other = Mechanism.from_channel(RecordSpace.binary(3), rng.dirichlet(np.ones(2), size=8))
    both = mechanism.product(other)
    epsilons = [individual_capacity(mechanism), individual_capacity(other)]
    together = individual_capacity(both)
    assert together <= composition_budget(epsilons, [0.0, 0.0]) + 1e-8
    assert composition_slack(together, epsilons) == 0.0
    for prior in priors(3, 2)[::4]:
        for record in range(3):
            assert record_information(both, prior, record) <= together + 1e-8


def test_theorem_4_over_adversaries_in_doubt(flip):
    n, flips = 3, (0.1, 0.3)
    both = flip(n, flips[0]).product(flip(n, flips[1]))
    for prior in priors(n, 3):
        b = entropy(prior)
        floored = [parity_leakage(n, p, b) for p in flips]
        gains = [
            balance_value(parity_leakage(n, p, 0), eps)
            for p, eps in zip(flips, floored, strict=True)
        ]
        found = record_information(both, prior, 0)
        assert found <= composition_budget(floored, gains) + 1e-9
        # The second release alone is faced by the adversary as given.
        assert found <= composition_budget(floored, [gains[0], 0.0]) + 1e-9


def test_proposition_2():
    for n, p, b in itertools.product((2, 4), (0.0, 0.1, 0.3), (0.0, 1.0, 1.2, 2.5)):
        c1, floored = parity_leakage(n, p, 0), parity_leakage(n, p, min(b, n * math.log(2)))
        g = balance_value(c1, floored)
        for epsilon in (floored - 0.01, floored + 0.01):
            if epsilon >= 0:
                assert (floored <= epsilon) == (c1 <= unrestricted_budget(epsilon, g))


def test_balance_is_monotone_and_starts_at_zero():
    # DALENIUS Lemma 1.
    floors = np.linspace(0, 4 * math.log(2), 20)
    gains = [balance_value(parity_leakage(4, 0.1, 0), parity_leakage(4, 0.1, b)) for b in floors]
    assert gains[0] == 0
    assert all(np.diff(gains) >= 0)
    assert gains[-1] == pytest.approx(math.log(2) - binary_entropy(0.1))


def test_slacks_are_the_least_that_will_do():
    capacities = [0.2, 0.5, 0.6]
    c = group_slack(capacities, 0.1)
    assert c == pytest.approx(0.15)
    assert all(
        found <= group_budget(k, 0.1, c) + 1e-12 for k, found in enumerate(capacities, start=1)
    )
    assert group_slack(capacities, 0.3) == 0.0
    assert composition_slack(0.9, [0.2, 0.3]) == pytest.approx(0.4)
    assert composition_slack(0.4, [0.2, 0.3]) == 0.0


def test_refuses_what_is_negative_or_missing():
    with pytest.raises(ValidationError, match="floored_capacity"):
        balance_value(0.1, 0.2)
    with pytest.raises(ValidationError, match="capacity"):
        balance_value(-0.1, 0.0)
    with pytest.raises(ValidationError, match="epsilon"):
        unrestricted_budget(-0.1, 0.0)
    with pytest.raises(ValidationError, match="balance"):
        group_budget(2, 0.1, math.nan)
    with pytest.raises(ValidationError, match="size"):
        group_budget(0, 0.1)
    with pytest.raises(ValidationError, match="capacities"):
        group_slack([], 0.1)
    with pytest.raises(ValidationError, match=r"capacities\[1\]"):
        group_slack([0.1, -0.1], 0.1)
    with pytest.raises(ValidationError, match="balances"):
        composition_budget([0.1], [0.1, 0.2])
    with pytest.raises(ValidationError, match="balances"):
        composition_budget([], [])
    with pytest.raises(ValidationError, match=r"epsilons\[0\]"):
        composition_slack(0.1, ["x"])
