"""What the kernel proves of noise and of known adversaries is no worse than what a search says."""

import numpy as np
import pytest

import cvxleak.audit.search.audit as single
import cvxleak.audit.search.cell_audit as cell
import cvxleak.audit.search.noise_audit as noisy
from cvxleak import Mechanism, record_leakage
from cvxleak.audit.old_terms import in_terms
from cvxleak.mechanisms import random_rounding
from cvxleak.model import (
    ChannelSet,
    DiscreteLaplace,
    Expectation,
    Gaussian,
    KnownMarginals,
    Laplace,
    RelativeEntropyBall,
    Rounded,
    Uniform,
)
from cvxleak.queries import count

ROUNDED = random_rounding(4, base=3).matrix
SET = ChannelSet(np.maximum(ROUNDED - 0.02, 0), np.minimum(ROUNDED + 0.02, 1))
SOME = KnownMarginals([0.8, 0.2], records=(0, 2))
NEAR = RelativeEntropyBall(0.6, laws=[[0.5, 0.5], [0.7, 0.3], [0.5, 0.5], [0.2, 0.8]])
SMALL = Expectation(lambda v: v, at_most=1.5)
RARE = Expectation(lambda x, y: x * y, records=(0, 1), equals=0.1)

CASES = {
    "gaussian": (Gaussian(1.5), None),
    "laplace": (Laplace(1.2), None),
    "uniform": (Uniform("2/3"), None),
    "geometric": (DiscreteLaplace(1.2), None),
    "geometric, less of it": (DiscreteLaplace(2), None),
    "rounded": (Rounded(Laplace(1.2), 1.5), None),
    "gaussian, marginals": (Gaussian(1.5), KnownMarginals([0.8, 0.2])),
    "marginals": (ROUNDED, SOME),
    "a marginal of 0": (ROUNDED, [KnownMarginals([1, 0], records=1), SOME]),
    "ball": (ROUNDED, NEAR),
    "a ball of radius 0": (ROUNDED, RelativeEntropyBall(0, laws=[0.7, 0.3])),
    "all": (ROUNDED, [NEAR, SOME, SMALL]),
    "an equation": (ROUNDED, RARE),
    "a set of channels": (SET, SOME),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_bounds_are_no_worse_than_those_of_the_search(name, monkeypatch):
    output, known = CASES[name]
    found = []

    def kept(one):
        found.append((one, in_terms(one)))
        return found[-1][1]

    for module in (single, cell, noisy):
        monkeypatch.setattr(module, "in_terms", kept)
    floor = 0.0 if name == "a ball of radius 0" else 0.5
    record_leakage(Mechanism(count(4), output), floor, adversaries=known, tol=3e-3)
    old, new = found[-1]
    assert old.lower - 1e-10 <= new.lower <= new.upper <= old.upper + 1e-10
