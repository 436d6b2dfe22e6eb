"""Joint Blahut-Arimoto at many floors at once: what single runs find, and every floor is met."""

from __future__ import annotations

import numpy as np
import pytest

from cvxleak.audit.search.audited_floors import climb_at_floors
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import Mechanism
from cvxleak.queries import count

PROBLEMS = [
    Mechanism(count(3), truncated_geometric(3, 1.0)).lumped(0),
    Mechanism(count(6), random_rounding(6, 3)).lumped(0),
]


@pytest.mark.parametrize("lumped", PROBLEMS)
def test_each_start_ends_where_it_would_alone(lumped):
    floors = np.linspace(0.0, lumped.max_entropy, 7)
    starts = np.random.default_rng(3).dirichlet(np.ones(len(lumped.rows)), size=7)
    weights, values, multipliers = climb_at_floors(
        lumped, floors, starts, max_iterations=2000, tol=1e-12
    )
    for b, start, w, value, multiplier in zip(
        floors.tolist(), starts, weights, values, multipliers, strict=True
    ):
        alone = joint_blahut_arimoto(lumped, b, starts=start[None], max_iterations=2000)
        assert value == pytest.approx(alone.value, abs=1e-8)
        assert lumped_information(w, lumped) == pytest.approx(value, abs=1e-10)
        assert lumped_entropy(w, lumped) >= b - 1e-12
        assert multiplier >= 0


def test_values_do_not_fall():
    lumped = PROBLEMS[0]
    floors = np.full(5, 1.5)
    starts = np.random.default_rng(0).dirichlet(np.ones(len(lumped.rows)), size=5)
    few = climb_at_floors(lumped, floors, starts, max_iterations=3, tol=0.0)[1]
    more = climb_at_floors(lumped, floors, starts, max_iterations=40, tol=0.0)[1]
    assert (more >= few - 1e-14).all()
