"""The slab bound: valid for any multipliers that meet its vertices, derivatives right, search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr, xlogy

from cvxleak.audit.search.slab_dual import SlabDual
from cvxleak.audit.search.slab_search import SlabSearch
from cvxleak.audit.search.slabs import principal_functional, slab_vertices
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.queries import count


def problem(seed: int, values: int, contexts: int, outputs: int) -> Lumped:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(outputs), size=values * contexts)
    space = RecordSpace([range(values), range(contexts)])
    return Mechanism.from_channel(space, rows).lumped(0)


def geometric_count(n: int, epsilon: float) -> Lumped:
    return Mechanism(count(n), truncated_geometric(n, epsilon)).lumped(0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), contexts=st.integers(1, 6), cut=st.floats(0.05, 0.95))
def test_vertices_carry_every_law_of_the_slab(seed, contexts, cut):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=contexts)
    rows = rng.dirichlet(np.ones(3), size=contexts)
    low = x.min() + 0.5 * cut * np.ptp(x)
    high = x.min() + (0.5 + 0.5 * cut) * np.ptp(x)
    slab = slab_vertices(x, rows, low, high)
    means = slab.share * x[slab.first] + (1 - slab.share) * x[slab.second]
    assert (means >= low - 1e-12).all()
    assert (means <= high + 1e-12).all()
    # A linear function on the slab is largest at a vertex, so laws inside never exceed it.
    direction = rng.normal(size=contexts)
    best = (slab.share * direction[slab.first] + (1 - slab.share) * direction[slab.second]).max(
        initial=-np.inf
    )
    for v in rng.dirichlet(np.full(contexts, 0.4), size=100):
        if low <= v @ x <= high:
            assert v @ direction <= best + 1e-12
    law = slab.share[:, None] * rows[slab.first] + (1 - slab.share)[:, None] * rows[slab.second]
    assert np.allclose(slab.negentropy, -entr(law).sum(axis=1))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 3),
    lam=st.sampled_from([0.0, 1e-3, 0.3, 10.0]),
    q=st.floats(0.01, 0.999),
    cut=st.booleans(),
)
def test_any_valid_multipliers_bound_every_adversary_in_the_slabs(seed, k, lam, q, cut):
    rng = np.random.default_rng(seed)
    lumped = problem(seed, k, 4, 3)
    x = principal_functional(lumped, lumped.uniform())
    size = len(lumped.rows)
    ends = SlabDual(lumped, 0.0, x).whole()
    if cut:
        for a in range(k):
            low, high = np.sort(rng.uniform(*ends[a], size=2))
            ends[a] = low, high
    dual = SlabDual(lumped, 0.0, x)
    vertices = dual._vertices(ends)
    tau = rng.normal(size=3)
    nu = q * dual.negentropy + rng.exponential(size=size) * 0.3
    if cut:
        short = (q * vertices.negentropy - vertices.mix(nu)).max()
        nu = nu + max(short, 0.0)
    for w in rng.dirichlet(np.full(size, 0.5), size=100):
        means = [w[g] @ x[g] / w[g].sum() for g in dual.groups]
        inside = all(ends[a, 0] - 1e-12 <= means[a] <= ends[a, 1] + 1e-12 for a in range(k))
        if inside:
            floor = lumped_entropy(w, lumped)
            bound = SlabDual(lumped, floor, x).value(lam, q, tau, nu)
            assert lumped_information(w, lumped) <= bound + 1e-9 * (1 + lam)


def test_derivatives():
    lumped = problem(3, 2, 4, 3)
    rng = np.random.default_rng(3)
    dual = SlabDual(lumped, 1.2, principal_functional(lumped, lumped.uniform()))
    free, fixed = np.arange(4), np.arange(4, 8)
    base = np.concatenate([[0.2, 0.7], rng.normal(size=3), rng.normal(size=4)])

    def smooth(z):
        nu = np.concatenate([z[5:], z[1] * dual.negentropy[fixed]])
        return dual._smooth(z[0], z[1], z[2:5], np.zeros(0), nu, free, fixed)

    point = smooth(base)
    nu = np.concatenate([base[5:], base[1] * dual.negentropy[fixed]])
    assert point.value == pytest.approx(dual.value(0.2, 0.7, base[2:5], nu), rel=1e-12)
    step = 1e-6
    for place in range(len(base)):
        up, down = base.copy(), base.copy()
        up[place] += step
        down[place] -= step
        above, below = smooth(up), smooth(down)
        slope = (above.value - below.value) / (2 * step)
        assert slope == pytest.approx(point.gradient[place], rel=1e-6, abs=1e-7)
        curve = (above.gradient - below.gradient) / (2 * step)
        assert np.allclose(curve, point.hessian[:, place], rtol=1e-5, atol=1e-5)


def test_root_is_the_capacity_of_the_dataset_channel_under_the_floor():
    import cvxpy as cp

    lumped = geometric_count(8, 0.3)
    floor = 4.5
    weights = joint_blahut_arimoto(lumped, floor).point
    search = SlabSearch(lumped, floor, weights)
    search.run(
        lambda: 0.0,
        resolution=1e-8,
        stop=lambda: False,
        on_weights=lambda w: None,
        node_limit=1,
    )
    w = cp.Variable(len(lumped.rows), nonneg=True)
    information = cp.sum(cp.entr(lumped.rows.T @ w)) + w @ xlogy(lumped.rows, lumped.rows).sum(1)
    entropy = cp.sum(cp.entr(w)) + w @ lumped.log_multiplicity
    relaxed = cp.Problem(cp.Maximize(information), [cp.sum(w) == 1, entropy >= floor])
    relaxed.solve(solver="CLARABEL")
    # The bound takes the better of it and H(A) <= log 2.
    assert search.upper == pytest.approx(min(relaxed.value, np.log(2)), abs=1e-5)


def test_many_noisy_outputs_close_where_posterior_cells_do_not():
    lumped = geometric_count(30, 0.1)
    run = joint_blahut_arimoto(lumped, 15.0)
    search = SlabSearch(lumped, 15.0, run.point)
    uppers = []
    for limit in (1, 5, 20, 60):
        search.run(
            lambda: run.value * 1.01,
            resolution=1e-3,
            stop=lambda: False,
            on_weights=lambda w: None,
            node_limit=limit,
        )
        uppers.append(search.upper)
    assert uppers == sorted(uppers, reverse=True)
    assert run.value <= search.upper <= 1.01 * run.value
