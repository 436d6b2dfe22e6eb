"""The interior-point method behind the distortion problem of a release."""

import numpy as np
import pytest

from cvxleak.core.clock import Clock
from cvxleak.measures import mutual_information
from cvxleak.release.interior_point import release_interior_point


def random_joint(seed, shape, sparse=False):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(np.prod(shape), 0.7)).reshape(shape)
    if sparse:
        joint[rng.random(shape) < 0.4] = 0.0
        joint[0, 0, 0] += 0.1
    return joint / joint.sum()


def test_interior_point_solves_the_rate_distortion_problem():
    # Without earlier outputs and R = X it is the distortion-rate function of a Bernoulli source.
    p, crossover = 0.3, 0.08

    def entropy(q):
        return -q * np.log(q) - (1 - q) * np.log(1 - q)

    room = entropy(p) - entropy(crossover)
    law = np.array([[1 - p, p]])
    cost, told = (1 - np.eye(2))[None], [np.array([0])]
    point = release_interior_point(law, cost, told, [room], [0.0], 1e-10, Clock())
    assert point.value == pytest.approx(crossover, abs=1e-9)
    assert point.lower == pytest.approx(crossover, abs=1e-9)
    # The slope of the rate is log(D / (1 - D)).
    assert point.multipliers[0] == pytest.approx(1 / np.log((1 - crossover) / crossover), rel=1e-6)
    assert mutual_information(point.kernel[0], law[0]) == pytest.approx(room, abs=1e-8)


def test_interior_point_stops_in_time_with_a_valid_bracket():
    joint = random_joint(0, (3, 20, 10))
    law = joint.sum(axis=0)
    cost = np.einsum("rzx,rq->zxq", joint, 1 - np.eye(3)) / law[:, :, None]
    classes = [np.zeros(20, dtype=int), np.arange(20)]
    problem = law, cost, classes, [0.1, 0.2], [0.0, 0.0], 1e-10
    point = release_interior_point(*problem, Clock(0.0))
    assert point.iterations == 1
    best = release_interior_point(*problem, Clock())
    assert point.lower <= best.value
    assert best.lower <= point.value
