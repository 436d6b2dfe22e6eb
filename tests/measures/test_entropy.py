import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.measures import entropy, lumped_entropy
from cvxleak.model import AdditiveQuery, Mechanism, Prior, RecordSpace


def test_closed_forms():
    assert entropy(Prior.uniform(7)) == pytest.approx(math.log(7))
    assert entropy([1.0, 0.0]) == 0.0
    assert entropy([0.5, 0.25, 0.125, 0.125]) == pytest.approx(1.75 * math.log(2))
    geometric = [2.0**-k for k in range(1, 50)] + [2.0**-49]
    assert entropy(geometric) == pytest.approx(2 * math.log(2))


def test_grouping():
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(12)).reshape(3, 4)
    marginal = joint.sum(axis=1)
    within = sum(p * entropy(row / p) for p, row in zip(marginal, joint, strict=True))
    assert entropy(joint.ravel()) == pytest.approx(entropy(marginal) + within)


def test_lumped_entropy_is_that_of_the_expanded_prior(small):
    rng = np.random.default_rng(0)
    for records in (0, 1, (0, 2)):
        lumped = small.mechanism.lumped(records)
        for weights in (rng.dirichlet(np.ones(len(lumped.rows))), lumped.uniform()):
            expanded = small.mechanism.expand(records, weights)
            assert lumped_entropy(weights, lumped) == pytest.approx(entropy(expanded))


def test_spreading_evenly_has_the_largest_entropy(small):
    for prior in small.priors:
        weights = small.mechanism.lump(1, prior)
        spread = lumped_entropy(weights, small.mechanism.lumped(1))
        assert spread >= entropy(prior) - 1e-12


def test_ten_thousand_records():
    n = 10_000
    parity = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=2)
    lumped = Mechanism(parity, [[0.7, 0.3], [0.3, 0.7]]).lumped(0)
    assert lumped_entropy(lumped.uniform(), lumped) == pytest.approx(n * math.log(2))
    assert lumped_entropy([1.0, 0.0, 0.0, 0.0], lumped) == pytest.approx((n - 2) * math.log(2))


def test_refuses_what_is_no_distribution(flip):
    with pytest.raises(ValidationError, match="prior"):
        entropy([0.5, 0.6])
    with pytest.raises(ValidationError, match="weights"):
        lumped_entropy([0.5, 0.5], flip(3, 0.1).lumped(0))
