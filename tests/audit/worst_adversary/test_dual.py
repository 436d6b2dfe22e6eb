"""The bound of a node: its derivatives are right, and cells that are nothing prove nothing."""

from __future__ import annotations

import numpy as np
import pytest

from cvxleak.audit.worst_adversary.dual import CellDual, Nodes, tilted
from cvxleak.audit.worst_adversary.objective import INFORMATION, Objective
from cvxleak.model import Gini, Limits, Lumped, Mechanism, RecordSpace
from cvxleak.model.gain_form import GainForm


def problem(seed: int, k: int) -> Lumped:
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), size=4 * k)
    return Mechanism.from_channel(RecordSpace([range(k), range(4)]), rows).lumped(0)


def cells(rng: np.random.Generator, k: int, many: int) -> np.ndarray:
    """Return nodes that random cuts lead to."""
    vertices = np.tile(np.eye(k), (many, 3, 1, 1))
    for own in vertices:
        for _ in range(4):
            y, (i, j), t = rng.integers(3), rng.choice(k, 2, replace=False), rng.uniform(0.2, 0.8)
            own[y, j] = (1 - t) * own[y, i] + t * own[y, j]
    return vertices


@pytest.mark.parametrize("objective", [INFORMATION, Objective.of(GainForm(Gini(), "rise"), 3, 0.0)])
@pytest.mark.parametrize("boxes", [False, True])
@np.errstate(all="ignore")
def test_derivatives(objective, boxes):
    rng = np.random.default_rng(0)
    lumped = problem(0, 3)
    size = len(lumped.rows)
    limits = Limits(rng.uniform(0, 2, (2, size)), np.array([0.5, 1.5]), np.array([0.0, 1.0]))
    ends = (lumped.rows * 0.9, lumped.rows * 0.9 + 0.1) if boxes else None
    dual = CellDual(lumped, 1.0, limits, rng.uniform(0, 0.1, size), ends, objective)
    nodes = Nodes.of(dual, cells(rng, 3, 2), dual.price[None], np.full(2, 0.1))
    z = rng.uniform(0.05, 0.5, size=(2, dual.width))
    point = nodes.at(z)
    step, theta = 1e-6, len(dual.tangents)
    for place in range(z.shape[1]):
        # Tangents' multipliers keep their sum: all are changed in proportion.
        change = np.eye(dual.width)[place] * step * np.ones((2, 1))
        if place >= dual.width - theta:
            own = z[:, -theta:]
            change[:, -theta:] -= own * step / own.sum(axis=1, keepdims=True)
            z[:, -theta:] = own / own.sum(axis=1, keepdims=True)
            point = nodes.at(z)
            change[:, -theta:] = -z[:, -theta:] * step
            change[:, place] += step
        above, below = nodes.at(z + change), nodes.at(z - change)
        slope = (above.value - below.value) / (2 * step)
        assert np.allclose(slope, point.gradient[:, place], rtol=1e-6, atol=1e-7)
        if theta == 0:
            curve = (above.gradient - below.gradient) / (2 * step)
            assert np.allclose(curve, point.hessian[:, place], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_a_cell_as_narrow_as_rounding_proves_nothing_and_stops_no_other(k):
    dual = CellDual(problem(1, k), 0.5)
    whole = np.tile(np.eye(k), (3, 1, 1))
    narrow = whole.copy()
    narrow[1] = 1 / k
    numbers = np.tile(dual.first(), (2, 1))
    found = dual.solve(np.stack([whole, narrow]), numbers, -np.inf, np.full(2, 1e-9))
    assert found.bound[0] <= np.log(k) + 1e-8
    assert found.bound[1] == np.inf
    assert np.isfinite(found.weights).all()
    assert np.isfinite(found.rays).all()


def test_the_dual_is_solved():
    # Without a floor and with one cell per output, the bound is what the whole region allows: all.
    dual = CellDual(problem(2, 3), 10.0)
    found = dual.solve(
        np.tile(np.eye(3), (1, 3, 1, 1)), dual.first()[None], -np.inf, np.array([1e-8])
    )
    assert found.bound[0] == pytest.approx(np.log(3), abs=1e-6)


def test_means_of_exponentials_keep_small_differences():
    log_weights = np.log([0.25, 0.75])
    x = np.array([1e-13, 3e-13])
    assert tilted(1.0 + x, log_weights)[0] - 1.0 == pytest.approx(2.5e-13, abs=3e-16)
    assert tilted(np.array([-1e4, 0.0]), log_weights)[0] == pytest.approx(np.log(0.75))
