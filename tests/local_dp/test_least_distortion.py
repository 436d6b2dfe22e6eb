"""The converse: the full linear program, inverse of the least epsilon, exact privacy."""

import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import verify
from cvxleak.core.errors import ValidationError
from cvxleak.local_dp import MinDistortionLocalDP, min_distortion_local_dp, min_local_dp
from cvxleak.measures import local_dp_epsilon, privacy_profile
from cvxleak.sources import SourceSet

tables = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("tables.py"))))
SIX, class_three, plain_distortion = tables.SIX, tables.class_three, tables.plain_distortion


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_equals_the_full_program(seed):
    rng = np.random.default_rng(seed)
    k, m = (int(n) for n in rng.integers(2, 6, size=2))
    P = rng.dirichlet(np.ones(k), size=int(rng.integers(1, 4)))
    d = 1 - np.eye(k) if seed % 2 else rng.uniform(0, 2, (k, m))
    epsilon = float(rng.choice([0.0, 1e-6, 0.01, 0.5, 1.0, 3.0, 6.0]))
    bound = min_distortion_local_dp(P, epsilon, d)
    assert bound.upper == pytest.approx(plain_distortion(P, d, math.exp(epsilon)), abs=1e-8)
    assert bound.gap < 1e-8
    assert verify(bound.certificate).passed
    assert local_dp_epsilon(bound.witness) <= epsilon + 1e-12


@pytest.mark.parametrize("n", [1, 2, 3])
def test_inverse_of_the_least_epsilon(n):
    for budget in (0.1, 0.2, 0.29):
        epsilon = min_local_dp(class_three(n), budget).upper
        back = min_distortion_local_dp(class_three(n), epsilon).upper
        assert back == pytest.approx(budget, abs=1e-10)


def test_polytopes_and_delta():
    box = SourceSet.box(np.multiply(SIX, 0.9), np.multiply(SIX, 1.1))
    bound = min_distortion_local_dp(box, 2.0)
    assert bound.gap < 1e-9
    assert verify(bound.certificate).passed
    looser = min_distortion_local_dp(box, 2.0, delta=0.05)
    assert looser.upper < bound.upper
    assert looser.gap < 1e-7
    assert verify(looser.certificate).passed
    assert privacy_profile(looser.witness, 2.0) <= 0.05 + 1e-12


def test_cvxpy_and_check():
    problem = MinDistortionLocalDP(class_three(1), 1.5)
    bound = problem.solve()
    program = problem.to_cvxpy()
    assert program.solve() == pytest.approx(bound.upper, abs=1e-6)
    answer = problem.check(program.var_dict["channel"].value, bound=bound)
    assert max(answer.violations.values()) < 1e-5
    assert abs(answer.value - bound.upper) < 1e-5


def test_slope():
    ends = [min_distortion_local_dp([SIX], 2 + s * 1e-5).upper for s in (-1, 1)]
    slope = min_distortion_local_dp([SIX], 2.0).shadow_prices["epsilon"]
    assert slope == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-4)


def test_complaints():
    with pytest.raises(ValidationError, match="epsilon"):
        min_distortion_local_dp([SIX], -1)
    with pytest.raises(ValidationError, match="sources"):
        min_distortion_local_dp([], 1)
