"""The node bound: valid for any multipliers, its derivatives right, its minimum tight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.audit.search.cell_dual import CellDual, Cells, Task
from cvxleak.audit.search.cell_search import branch
from cvxleak.audit.search.systems import solved
from cvxleak.model import Lumped, Mechanism, RecordSpace


def problem(seed: int, values: int, contexts: int, outputs: int, zeros: bool = False) -> Lumped:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(outputs), size=values * contexts)
    if zeros:
        rows[rng.random(rows.shape) < 0.3] = 0.0
        rows[rows.sum(axis=1) == 0, 0] = 1.0
        rows /= rows.sum(axis=1, keepdims=True)
    space = RecordSpace([range(values), range(contexts)])
    return Mechanism.from_channel(space, rows).lumped(0)


def joint_of(lumped: Lumped, w: np.ndarray) -> np.ndarray:
    return np.add.reduceat(w[:, None] * lumped.rows, lumped.starts)


def information(joint: np.ndarray) -> float:
    return float(entr(joint.sum(0)).sum() + entr(joint.sum(1)).sum() - entr(joint).sum())


def entropy(lumped: Lumped, w: np.ndarray) -> float:
    return float(entr(w).sum() + w @ lumped.log_multiplicity)


def random_cells(rng: np.random.Generator, outputs: int, k: int, depth: int) -> np.ndarray:
    """Vertices of one node, reached from the root by random splits."""
    vertices = np.broadcast_to(np.eye(k), (outputs, k, k)).copy()
    for _ in range(depth):
        y = rng.integers(outputs)
        i, j = rng.choice(k, size=2, replace=False)
        t = rng.uniform(0.2, 0.8)
        vertices[y, j] = (1 - t) * vertices[y, i] + t * vertices[y, j]
    return vertices


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 4),
    outputs=st.integers(1, 4),
    zeros=st.booleans(),
    depth=st.integers(0, 8),
    lam=st.sampled_from([0.0, 1e-6, 1e-2, 1.0, 100.0]),
)
def test_any_multipliers_bound_every_adversary_in_the_cells(seed, k, outputs, zeros, depth, lam):
    rng = np.random.default_rng(seed)
    lumped = problem(seed, k, 3, outputs, zeros)
    vertices = random_cells(rng, outputs, k, depth)
    cells = Cells.of(vertices[None])
    mu = rng.exponential(size=(1, outputs, k)) * (rng.random((1, outputs, k)) < 0.5)
    seen = 0
    for w in rng.dirichlet(np.full(len(lumped.rows), 0.5), size=200):
        joint = joint_of(lumped, w)
        theta = np.einsum("yaj,ay->yj", cells.inverse[0], joint)
        if (theta < 0).any():
            continue
        seen += 1
        # The adversary is feasible at its own entropy, and at any lower floor.
        floor = entropy(lumped, w) * rng.choice([1.0, 0.5])
        bound = CellDual(lumped, floor).value(cells, np.array([lam]), mu)
        assert information(joint) <= bound[0] + 1e-9 * (1 + lam)
    if depth == 0:
        assert seen == 200


@pytest.mark.parametrize("k", [2, 3])
def test_derivatives(k):
    rng = np.random.default_rng(k)
    lumped = problem(k, k, 4, 3)
    dual = CellDual(lumped, 0.6 * lumped.max_entropy)
    vertices = np.stack([random_cells(rng, 3, k, 4) for _ in range(3)])
    cells = Cells.of(vertices)
    z = rng.uniform(0.05, 0.5, size=(3, 1 + 3 * k))
    task = Task(cells, np.full(3, dual.surplus), np.full(3, 0.01))
    point = dual._point(task, z)
    step = 1e-6
    for place in range(z.shape[1]):
        up, down = z.copy(), z.copy()
        up[:, place] += step
        down[:, place] -= step
        above, below = dual._point(task, up), dual._point(task, down)
        slope = (above.value - below.value) / (2 * step)
        assert np.allclose(slope, point.gradient[:, place], rtol=1e-6, atol=1e-7)
        curve = (above.gradient - below.gradient) / (2 * step)
        assert np.allclose(curve, point.hessian[:, place], rtol=1e-5, atol=1e-5)
    value = dual.value(cells, z[:, 0] + 0.01, z[:, 1:].reshape(3, 3, k))
    assert np.allclose(value, point.value, rtol=1e-12)


def test_minimum_is_tight_where_the_cells_are_small():
    lumped = problem(1, 2, 3, 3)
    w = np.random.default_rng(0).dirichlet(np.ones(6))
    joint = joint_of(lumped, w)
    floor = entropy(lumped, w)
    rho = joint[1] / joint.sum(axis=0)
    for width in (0.1, 0.01):
        low, high = np.clip(rho - width, 0, 1), np.clip(rho + width, 0, 1)
        vertices = np.stack(
            [np.stack([1 - low, low], axis=1), np.stack([1 - high, high], axis=1)], axis=1
        )
        cells = Cells.of(vertices[None])
        dual = CellDual(lumped, floor)
        solution = dual.solve(
            cells, np.array([0.1]), np.full((1, 3, 2), 1e-3), -np.inf, accuracy=1e-9
        )
        # U at the minimum is the value of a concave program that w is feasible for.
        assert solution.bound[0] >= information(joint) - 1e-9
        relaxed = np.einsum("bag,agy->bay", *_padded(lumped, solution.weights))
        assert solution.bound[0] <= information(relaxed[0]) + 2 * width


def _padded(lumped: Lumped, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = len(lumped.values)
    return weights.reshape(len(weights), k, -1), lumped.rows.reshape(k, -1, lumped.rows.shape[1])


def test_lam_zero_is_the_limit():
    lumped = problem(2, 3, 3, 3)
    dual = CellDual(lumped, 1.0)
    cells = Cells.of(random_cells(np.random.default_rng(2), 3, 3, 3)[None])
    mu = np.full((1, 3, 3), 0.1)
    exact = dual.value(cells, np.array([0.0]), mu)
    near = dual.value(cells, np.array([1e-9]), mu)
    assert near[0] == pytest.approx(exact[0], abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 4), depth=st.integers(0, 6))
def test_splits_cut_the_cell_in_two(seed, k, depth):
    rng = np.random.default_rng(seed)
    lumped = problem(seed, k, 3, 3)
    cells = Cells.of(random_cells(rng, 3, k, depth)[None])
    joint = joint_of(lumped, rng.dirichlet(np.ones(3 * k)))[None]
    ((y, i, j, t),) = branch(cells, joint)
    assert i != j
    assert 0.1 <= t <= 0.9
    parent = cells.vertices[0, y]
    point = (1 - t) * parent[i] + t * parent[j]
    volumes = []
    for replaced in (j, i):
        child = parent.copy()
        child[replaced] = point
        volumes.append(abs(np.linalg.det(child)))
    assert sum(volumes) == pytest.approx(abs(np.linalg.det(parent)), rel=1e-9)
    assert volumes[0] / sum(volumes) == pytest.approx(t, rel=1e-6)


def test_binary_inverse_agrees_with_the_general_one():
    vertices = random_cells(np.random.default_rng(4), 5, 2, 9)[None]
    cells = Cells.of(vertices)
    assert np.allclose(cells.inverse, np.linalg.inv(vertices))
    assert math.isclose(cells.heights[0, 0, 0], -entr(vertices[0, 0, 0]).sum())


def test_a_singular_system_stops_no_other():
    matrix = np.stack([np.eye(2), np.ones((2, 2)), np.full((2, 2), np.nan), np.zeros((2, 2))])
    right = np.ones((4, 2, 1))
    with np.errstate(all="ignore"):
        found = solved(matrix, right)
    np.testing.assert_allclose(found[0], 1.0)
    assert found[1] @ right[1, :, 0] > 0
    assert not math.isnan(found[3].sum())


@pytest.mark.parametrize("k", [2, 3])
def test_a_cell_as_narrow_as_rounding_proves_nothing_and_stops_no_other(k):
    lumped = problem(1, k, 3, 3)
    whole = np.broadcast_to(np.eye(k), (3, k, k))
    narrow = whole.copy()
    narrow[1] = 1 / k
    dual = CellDual(lumped, 1.0)
    multipliers = np.full(2, 0.1), np.full((2, 3, k), 0.1)
    cells = Cells.of(np.stack([whole, narrow]))
    found = dual.solve(cells, *multipliers, -np.inf, accuracy=1e-9)
    alone = Cells.of(whole[None])
    assert found.bound[0] == pytest.approx(dual.value(alone, found.lam[:1], found.mu[:1])[0])
    assert np.isfinite(found.bound[0])
    assert found.bound[1] == np.inf
    assert np.isfinite(found.weights).all()
    assert dual.value(cells, *multipliers)[1] == np.inf
    assert len(branch(cells, found.joint)) == 2
