"""The leakage without a floor, by capacities of choices."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from cvxleak.audit.worst_adversary.choices import Choices
from cvxleak.measures import lumped_entropy
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.solvers.best_first import NUMBERS


@pytest.mark.parametrize("seed", range(3))
def test_choices_bound_binary_capacities(seed):
    rows = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), size=8)
    lumped = Mechanism.from_channel(RecordSpace([(0, 1), range(4)]), rows).lumped(0)
    choices = Choices.of(lumped)
    choices.sharpen(1e-12)
    capacities = []
    for first in lumped.rows[:4]:
        for second in lumped.rows[4:]:

            def loss(t, first=first, second=second):
                output = (1 - t) * first + t * second
                return -(
                    (1 - t) * rel_entr(first, output).sum() + t * rel_entr(second, output).sum()
                )

            best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
            capacities.append(-best.fun)
    assert choices.upper == pytest.approx(max(capacities), abs=1e-9)
    assert choices.upper >= max(capacities) - 1e-14
    weights, entropy = choices.witness()
    assert weights.shape == (8,)
    assert entropy == pytest.approx(lumped_entropy(weights, lumped))


def test_too_many_choices_are_left_to_the_cells():
    side = math.isqrt(NUMBERS // 4) + 1
    rows = np.random.default_rng(0).dirichlet(np.ones(2), size=2 * side)
    lumped = Mechanism.from_channel(RecordSpace([(0, 1), range(side)]), rows).lumped(0)
    assert Choices.of(lumped) is None
