"""Trade-off curves: against linear programs, normal laws, and the privacy profile."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

from cvxleak.core.errors import ValidationError
from cvxleak.measures import privacy_profile, record_trade_off, trade_off
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import Mechanism
from cvxleak.queries import count
from tests.measures.test_laws import channels, few

RATES = np.array([0.0, 0.01, 0.2, 0.5, 0.9, 1.0])


@few
@given(channels(inputs=2), st.sampled_from(RATES.tolist()))
def test_the_best_randomized_test(channel, rate):
    p, r = channel.matrix
    best = linprog(-r, A_ub=p[None], b_ub=[rate], bounds=(0, 1))
    assert trade_off(p, r, rate) == pytest.approx(1 + best.fun, abs=1e-9)


@few
@given(channels(), st.data())
def test_laws_of_the_curve(channel, data):
    misses = record_trade_off(channel, RATES)
    assert (misses <= 1 - RATES + 1e-12).all()
    assert (np.diff(misses) <= 1e-12).all()
    less = channel.then(data.draw(channels(inputs=channel.shape[1])))
    assert (record_trade_off(less, RATES) >= misses - 1e-9).all()
    for epsilon in (0.0, 0.5):
        delta = privacy_profile(channel, epsilon)
        assert (misses >= 1 - delta - math.exp(epsilon) * RATES - 1e-9).all()
        assert (misses >= math.exp(-epsilon) * (1 - delta - RATES) - 1e-9).all()
    # The largest distance from the curve of equal laws is the total variation.
    fine = np.linspace(0, 1, 2001)
    gap = (1 - fine - record_trade_off(channel, fine)).max()
    assert gap == pytest.approx(privacy_profile(channel, 0.0), abs=2e-3)


def test_normal_laws():
    edges = np.linspace(-8, 8, 4000)
    rows = np.diff(ndtr(edges - np.array([[0.0], [1.0]])), axis=1, prepend=0, append=1)
    rows /= rows.sum(axis=1, keepdims=True)
    found = trade_off(rows[0], rows[1], RATES[1:-1])
    assert found == pytest.approx(ndtr(ndtri(1 - RATES[1:-1]) - 1), abs=1e-4)


def test_neighbors_only():
    mechanism = Mechanism(count(4), truncated_geometric(4, 0.5))
    near = min(
        trade_off(mechanism.channel.matrix[u], mechanism.channel.matrix[v], 0.1)
        for u, v in [(0, 1), (1, 2), (2, 3), (3, 4), (1, 0), (2, 1), (3, 2), (4, 3)]
    )
    assert record_trade_off(mechanism, 0.1) == pytest.approx(float(near))
    assert record_trade_off(mechanism.channel, 0.1) < near - 0.1
    assert record_trade_off([[1.0, 0.0], [0.0, 1.0]], RATES).tolist() == [0.0] * 6


def test_rates_are_probabilities():
    for rates in (1.5, [-0.1, 0.2]):
        with pytest.raises(ValidationError, match="false_alarms: found a number outside"):
            trade_off([0.5, 0.5], [0.5, 0.5], rates)
