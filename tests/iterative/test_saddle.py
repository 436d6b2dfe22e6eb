"""The ascent on the dual of the least information: closed forms, bounds, complaints."""

import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.iterative import information_saddle
from cvxleak.iterative.saddle import least_lagrangian
from cvxleak.measures import mutual_information


def test_whole_simplex():
    run = information_saddle([np.eye(4)], 1 - np.eye(4), 0.2)
    h = -0.2 * math.log(0.2) - 0.8 * math.log(0.8)
    assert run.value == pytest.approx(math.log(4) - h - 0.2 * math.log(3), abs=1e-8)
    assert run.point.weights[0] == pytest.approx([0.25] * 4, abs=1e-4)
    assert len(run.history["objective"]) == run.iterations + 1


def test_the_channel_is_near_its_value():
    P = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    d = 1 - np.eye(3)
    run = information_saddle([P[:1], P[1:]], d, 0.2)
    channel = run.point.channel
    worst = max(mutual_information(channel, p) for p in P)
    assert worst == pytest.approx(run.value, abs=1e-3)
    assert (P @ (channel.matrix * d).sum(axis=1)).max() <= 0.2 + 1e-3


def test_lagrangian_is_a_minimum():
    rng = np.random.default_rng(3)
    hulls, weights = [rng.dirichlet(np.ones(3), size=2)], [np.array([0.3, 0.7])]
    costs = rng.uniform(0, 2, (3, 4))
    value, rows, _ = least_lagrangian(hulls, weights, costs)
    law = weights[0] @ hulls[0]

    def lagrangian(Q):
        return mutual_information(Q, law) + (Q * costs).sum()

    assert lagrangian(rows) == pytest.approx(value, abs=1e-9)
    for _ in range(50):
        other = 0.9 * rows + 0.1 * rng.dirichlet(np.ones(4), size=3)
        assert lagrangian(other) >= value - 1e-12


def test_complaints():
    with pytest.raises(ValidationError, match="parts"):
        information_saddle([], np.eye(2), 0.1)
    with pytest.raises(ValidationError, match="parts"):
        information_saddle([[[0.5, 0.5]]], np.eye(3), 0.1)
    with pytest.raises(ValidationError, match="budget"):
        information_saddle([[[0.5, 0.5]]], np.eye(2), -1)
