"""The time-sharing bound: valid for any multipliers, sharp for groups and near log|X|."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr

from cvxleak.audit import group_leakage, record_leakage
from cvxleak.audit.search import audited_group
from cvxleak.audit.search.sharing import SharingSearch, SharingTree
from cvxleak.iterative import joint_blahut_arimoto, meet_entropy_floor
from cvxleak.measures import lumped_information
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.problem.bound import Status, Stopped
from cvxleak.proofs import verify
from cvxleak.queries import count
from tests.audit.search.proving import proved_bound


def problem(seed: int, values: int, contexts: int, outputs: int) -> Lumped:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(outputs, 0.5), size=values * contexts)
    space = RecordSpace([range(values), range(contexts)])
    return Mechanism.from_channel(space, rows).lumped(0)


def rounded_pair() -> Mechanism:
    return Mechanism(count(6), random_rounding(6, base=3))


def run(search: SharingSearch, threshold: float, nodes: int) -> None:
    search.run(
        lambda: threshold,
        resolution=1e-4,
        stop=lambda: False,
        on_weights=lambda weights: None,
        node_limit=nodes,
    )


def entry(search: SharingSearch, outputs: int) -> dict:
    return {"sharing": search.encoded([[y] for y in range(outputs)], "<f8")}


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 4),
    share=st.floats(0.3, 1.0),
    lam=st.sampled_from([0.02, 0.3, 1.0, 3.0]),
)
def test_any_multipliers_bound_every_adversary(seed, k, share, lam):
    lumped = problem(seed, k, 4, 3)
    floor = share * lumped.max_entropy
    rng = np.random.default_rng(seed)
    # A guess that has nothing to do with the worst adversary.
    guess = rng.dirichlet(np.ones(len(lumped.rows)))
    search = SharingSearch(lumped, floor, guess, lam)
    run(search, 0.0, 40)
    worst = joint_blahut_arimoto(lumped, floor, starts=6, rng=0, max_iterations=100).value
    for weights in rng.dirichlet(np.full(len(lumped.rows), 0.3), size=30):
        feasible = meet_entropy_floor(weights, lumped, floor)
        worst = max(worst, lumped_information(feasible, lumped))
    assert worst <= search.upper
    proved = proved_bound(lumped, floor, entry(search, 3))
    # The checker recomputes the same number, or falls back on log k.
    assert proved == pytest.approx(min(search.upper, np.log(k)), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), lam=st.sampled_from([0.05, 0.4, 1.0, 2.5]))
def test_a_value_is_bounded_for_every_law(seed, lam):
    rng = np.random.default_rng(seed)
    rows, shares = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(4))
    t = rng.dirichlet(np.ones(3))
    value = SharingTree(rows, np.log(shares), t, lam, rng.dirichlet(np.ones(4)))
    value.run(
        lambda: value.attained + 1e-3,
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda laws: None,
        node_limit=3000,
    )
    laws = rng.dirichlet(np.full(4, 0.4), size=2000)
    heights = rel_entr(laws @ rows, t).sum(axis=1) - lam * rel_entr(laws, shares).sum(axis=1)
    assert heights.max() <= value.attained + 1e-9
    assert value.attained <= value.upper <= value.attained + 1e-3
    if lam >= value.contraction + 0.05:
        # Concave: the tangent at the maximizer is sharp.
        assert value.attained - 1e-9 <= value.tangent() <= value.attained + 1e-6


@pytest.mark.parametrize("below", [0.0, 1e-8, 1e-5, 1e-3, 0.05])
def test_groups_near_the_largest_entropy(below):
    mechanism = rounded_pair()
    floor = mechanism.space.max_entropy - below
    bound = group_leakage(mechanism, floor, 2, tol=1e-6)
    assert bound.status is Status.CERTIFIED
    assert bound.upper - bound.lower <= 1e-6 * bound.upper + 1e-7


def test_a_group_far_from_the_largest_entropy():
    bound = group_leakage(rounded_pair(), 3.9, 2)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(0.3529163, abs=1e-5)
    assert bound.certificate is not None
    assert "share" in verify(bound.certificate).rules["upper"]


def test_a_record_of_three_values_near_the_largest_entropy():
    rng = np.random.default_rng(4)
    mechanism = Mechanism.from_channel(
        RecordSpace([range(3), range(4)]), rng.dirichlet(np.ones(4), size=12)
    )
    for below in (1e-6, 1e-2):
        bound = record_leakage(mechanism, mechanism.space.max_entropy - below, 0, tol=1e-5)
        assert bound.status is Status.CERTIFIED


@pytest.mark.parametrize("further", [0.1, -0.1])
def test_trees_serve_other_floors(further):
    lumped = problem(3, 3, 4, 3)
    searches: list[SharingSearch] = []
    for share, like in ((0.7, False), (0.7 + further, False), (0.7 + further, True)):
        floor = share * lumped.max_entropy
        found = joint_blahut_arimoto(lumped, floor, starts=10, rng=0, max_iterations=500)
        multiplier = float(found.history["multiplier"][-1])
        inherited = searches[0] if like else None
        search = SharingSearch(lumped, floor, found.point, multiplier, inherited)
        assert search.leaves == (searches[0].leaves if like else 3)
        assert found.value <= search.upper
        run(search, search.attained + 1e-4, 10**4)
        assert search.attained <= search.upper <= search.attained + 1e-4
        proved = proved_bound(lumped, floor, entry(search, 3))
        assert proved == pytest.approx(search.upper, abs=1e-9)
        searches.append(search)
    assert 0 < searches[2].nodes < searches[1].nodes
    # The tree that was taken over is as it was.
    again = proved_bound(lumped, 0.7 * lumped.max_entropy, entry(searches[0], 3))
    assert again == pytest.approx(searches[0].upper, abs=1e-9)


def test_a_search_can_be_stopped_and_taken_up_again():
    lumped = rounded_pair().lumped((0, 1))
    found = joint_blahut_arimoto(lumped, 3.9, starts=10, rng=0, max_iterations=500)
    search = SharingSearch(lumped, 3.9, found.point, float(found.history["multiplier"][-1]))
    before = search.upper
    search.run(
        lambda: 0.0,
        resolution=1e-4,
        stop=lambda: True,
        on_weights=lambda weights: None,
    )
    assert search.upper == before
    run(search, found.value + 1e-3, 10**5)
    assert found.value <= search.attained + 1e-9
    assert search.upper <= found.value + 1e-3
    nodes = search.nodes
    run(search, found.value + 1e-3, 10**5)
    assert search.nodes == nodes
    run(search, found.value + 1e-4, 10**5)
    assert found.value <= search.upper <= found.value + 1e-4


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_an_audit_ends_where_time_sharing_alone_gets_no_further(monkeypatch, share):
    rng = np.random.default_rng(0)
    space = RecordSpace([range(2), range(3)])
    mechanism = Mechanism.from_channel(space, rng.dirichlet(np.full(3, 0.4), size=6))
    floor = share * space.max_entropy
    exact = record_leakage(mechanism, floor, 0)
    # As for a problem that is too large for the sharper trees. Time sharing is not sharp here, and
    # without a time limit nothing else would end the audit.
    monkeypatch.setattr(audited_group, "CELLS_LIMIT", 0)
    monkeypatch.setattr(audited_group, "SLABS_LIMIT", 0)
    bound = record_leakage(mechanism, floor, 0, time_limit=None)
    assert bound.status is Status.BRACKETED
    assert bound.stats["stopped"] is Stopped.TOO_LARGE
    assert bound.lower <= exact.upper
    assert exact.lower <= bound.upper


@pytest.mark.parametrize("seed", [55, 86, 94])
def test_tangents_are_stored_with_the_law_that_they_touch_at(seed):
    # Runs find better laws; what the search says has to be what its certificate proves.
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(4, 0.3), size=12)
    rows = rows * (rng.random(rows.shape) < 0.5)
    rows[np.arange(12), rng.integers(4, size=12)] += 0.1
    rows /= rows.sum(axis=1, keepdims=True)
    lumped = Mechanism.from_channel(RecordSpace([range(2), range(6)]), rows).lumped(0)
    floor = 0.6 * lumped.max_entropy
    guess = rng.dirichlet(np.full(len(lumped.rows), 0.4))
    search = SharingSearch(lumped, floor, guess, 1.0)
    before = search.upper
    run(search, 0.0, 60)
    # Whether a better law is found at once, in the run or not at all, the last bit decides.
    assert search.upper <= before
    reached = min(search.upper, np.log(2))
    assert proved_bound(lumped, floor, entry(search, 4)) == pytest.approx(reached, abs=1e-9)
