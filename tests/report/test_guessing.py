"""The bounds on how much a guess can rise: closed forms, brute force, laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr

from cvxleak.core.errors import ValidationError
from cvxleak.measures import bayes_vulnerability, mutual_information, posterior_bayes_vulnerability
from cvxleak.report import guess_rise


@pytest.mark.parametrize("flip", [0.0, 0.01, 0.1, 0.3, 0.499])
def test_binary_records_meet_the_fano_bound(flip: float):
    # A binary symmetric channel under the uniform prior raises the guess by 1/2 - flip.
    leakage = mutual_information([[1 - flip, flip], [flip, 1 - flip]], [0.5, 0.5])
    assert guess_rise(leakage, 2).fano == pytest.approx(0.5 - flip, abs=1e-6)


@pytest.mark.parametrize("k", [2, 3, 4, 10])
@pytest.mark.parametrize("leakage", [1e-6, 1e-3, 0.05, 0.3, 0.6])
def test_against_a_grid(k: int, leakage: float):
    before, rise = np.meshgrid(np.linspace(1 / k, 1, 1001), np.linspace(0, 1, 1001))
    after = np.minimum(before + rise, 1.0)
    divergence = rel_entr(after, before) + rel_entr(1 - after, 1 - before)
    possible = (before + rise <= 1) & (divergence <= leakage)
    best = rise[possible].max()
    found = guess_rise(leakage, k).fano
    assert best - 1e-9 <= found <= best + 2e-3


def test_nothing_and_everything():
    assert guess_rise(0.0, 5).fano == guess_rise(0.0, 5).pinsker == 0.0
    for leakage in (math.log(5), 3.0, math.inf):
        assert guess_rise(leakage, 5).fano == guess_rise(leakage, 5).pinsker == 0.8
    assert guess_rise(0.3, 1).fano == 0.0


def test_pinsker():
    assert guess_rise(0.08, 3).pinsker == pytest.approx(0.2)


@given(st.floats(0, 3), st.floats(0, 3), st.integers(2, 20))
def test_laws(a: float, b: float, k: int):
    low, high = sorted((a, b))
    assert guess_rise(low, k).fano <= guess_rise(high, k).fano + 1e-9
    assert guess_rise(low, k).fano <= guess_rise(low, k).pinsker
    assert guess_rise(low, k).fano <= guess_rise(low, k + 1).fano + 1e-9


@settings(max_examples=200)
@given(st.integers(2, 4), st.integers(1, 5), st.integers(0, 2**32 - 1), st.floats(0.05, 2))
def test_no_channel_exceeds_it(k: int, outputs: int, seed: int, spread: float):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(k, spread))
    channel = rng.dirichlet(np.full(outputs, spread), size=k)
    rise = posterior_bayes_vulnerability(channel, prior) - bayes_vulnerability(prior)
    bound = guess_rise(mutual_information(channel, prior), k)
    assert rise <= bound.fano + 1e-9 <= bound.pinsker + 2e-9


@pytest.mark.parametrize(("leakage", "k"), [(-0.1, 2), (math.nan, 2), (0.1, 0), (0.1, 2.0)])
def test_bad_arguments(leakage: float, k: int):
    with pytest.raises(ValidationError):
        guess_rise(leakage, k)
