"""What the tests of the measures share: small mechanisms, written out in full."""

import itertools

import numpy as np
import pytest

from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace


class Small:
    """A mechanism on a small space, with its rows per dataset and a few priors."""

    def __init__(self, mechanism, seed):
        self.mechanism = mechanism
        self.space = mechanism.space
        self.datasets = list(itertools.product(*self.space.alphabets))
        self.rows = np.array([mechanism.channel.row(mechanism.query(x)) for x in self.datasets])
        rng = np.random.default_rng(seed)
        size = len(self.datasets)
        sparse = rng.dirichlet(np.ones(size)) * (rng.random(size) < 0.6)
        self.priors = [
            rng.dirichlet(np.ones(size)),
            rng.dirichlet(np.full(size, 0.2)),
            sparse / sparse.sum(),
            np.eye(size)[rng.integers(size)],
        ]


def _mechanisms():
    rng = np.random.default_rng(1)
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    weighted = AdditiveQuery(RecordSpace.binary(3), [(0, 1), (0, 2), (0, 2)], modulus=3)
    mixed = RecordSpace([(0, 1, 2), ("no", "yes"), ("a", "b")])
    zeros = rng.dirichlet(np.ones(4), size=12) * (rng.random((12, 4)) < 0.7)
    zeros[:, 3] = 0
    zeros[:, 0] += 0.01
    return {
        "count": Mechanism(count, rng.dirichlet(np.ones(3), size=4)),
        "weighted sum": Mechanism(weighted, rng.dirichlet(np.ones(2), size=3)),
        "any": Mechanism.from_channel(mixed, rng.dirichlet(np.ones(4), size=12)),
        "zeros": Mechanism.from_channel(mixed, zeros / zeros.sum(axis=1, keepdims=True)),
        "identity": Mechanism(count, np.eye(4)),
        "constant": Mechanism(count, [[0.5, 0.5]] * 4),
    }


@pytest.fixture(params=["count", "weighted sum", "any", "zeros", "identity", "constant"])
def small(request):
    return Small(_mechanisms()[request.param], seed=7)


@pytest.fixture
def flip():
    """Build the parity of n bits through a binary symmetric channel."""

    def build(n, p):
        parity = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=2)
        return Mechanism(parity, [[1 - p, p], [p, 1 - p]])

    return build
