"""Time sharing by masses of blocks: valid for any law, and sharp where tangents are not enough."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import rel_entr

from cvxleak.audit import record_leakage
from cvxleak.audit.search.law_blocks import TAIL, LawBlocks, blocks_of
from cvxleak.audit.search.sharing import SharingSearch
from cvxleak.audit.search.tangents import by_tangents
from cvxleak.audit.search.value_tree import contracts_by
from cvxleak.core.clock import Clock, Stop
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify
from tests.audit.search.proving import proved_bound
from tests.audit.search.test_tangents import table


def sparse_rows(rng, groups, outputs):
    """Return rows of which some share no output."""
    rows = rng.dirichlet(np.ones(outputs), size=groups)
    for g in range(groups):
        rows[g, np.arange(outputs) % 3 == g % 3] = 0
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_a_partition_that_contracts(seed):
    rng = np.random.default_rng(seed)
    rows, law = sparse_rows(rng, 12, 6), rng.dirichlet(np.full(12, 0.3))
    blocks = blocks_of(rows, law, 0.8)
    assert sorted(g for block in blocks for g in block) == list(range(12))
    kept = [block for block in blocks if contracts_by(rows[block]) <= 0.8 + 1e-12]
    assert sum(law[block].sum() for block in kept) >= 1 - TAIL


@pytest.mark.parametrize("seed", range(6))
def test_a_value_is_bounded_for_every_law(seed):
    rng = np.random.default_rng(seed)
    rows, shares = sparse_rows(rng, 6, 6), rng.dirichlet(np.ones(6))
    t, lam = rng.dirichlet(np.ones(6)), float(rng.uniform(0.75, 0.95))
    value = LawBlocks(rows, np.log(shares), t, lam, shares)
    value.run(
        lambda: value.attained + 1e-2,
        resolution=1e-2,
        stop=lambda: False,
        on_weights=lambda laws: None,
        node_limit=5000,
    )
    laws = rng.dirichlet(np.full(6, 0.4), size=2000)
    heights = rel_entr(laws @ rows, t).sum(axis=1) - lam * rel_entr(laws, shares).sum(axis=1)
    assert heights.max() <= value.attained + 1e-9
    assert value.attained <= value.upper <= value.attained + 1e-2


@pytest.mark.parametrize("dtype", ["<f8", "<f4"])
def test_a_checker_finds_the_same_bound(dtype):
    rng = np.random.default_rng(5)
    rows = sparse_rows(rng, 12, 6)
    lumped = Mechanism.from_channel(RecordSpace([range(2), range(6)]), rows).lumped(0)
    floor = 0.9 * lumped.max_entropy
    worst = joint_blahut_arimoto(lumped, floor, starts=6, rng=0, max_iterations=300)
    search = SharingSearch(lumped, floor, worst.point, 0.9, trees=LawBlocks)
    for nodes in (0, 40, 400):
        search.run(
            lambda: 0.0,
            resolution=1e-3,
            stop=lambda: False,
            on_weights=lambda laws: None,
            node_limit=nodes,
        )
        entry = {"sharing": search.encoded([[y] for y in range(6)], dtype)}
        proved = proved_bound(lumped, floor, entry)
        assert worst.value <= proved
        reached = min(search.upper, np.log(2))
        assert proved == pytest.approx(reached, abs=1e-9 if dtype == "<f8" else 1e-4)


def test_a_value_takes_the_tree_of_its_image():
    lumped = table(3, total=True).lumped(0)
    floor = 0.9 * lumped.max_entropy
    search = SharingSearch(lumped, floor, lumped.uniform(), 0.9, trees=LawBlocks)
    one, other = (search._values[a] for a in (0, 1))  # exchanging the two cells exchanges them
    start = other.upper
    one.run(
        lambda: one.attained + 1e-3,
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda laws: None,
        node_limit=300,
    )
    image = other.image(one)
    assert image is not None
    assert image.upper <= start + 1e-9
    assert image.upper == pytest.approx(one.upper, abs=1e-9)
    search._values[1] = image
    outputs = [[y] for y in range(lumped.rows.shape[-1])]
    proved = proved_bound(lumped, floor, {"sharing": search.encoded(outputs, "<f8")})
    assert proved == pytest.approx(min(search.upper, np.log(len(lumped.values))), abs=1e-9)


def test_values_that_no_symmetry_exchanges_keep_their_trees():
    rng = np.random.default_rng(0)
    rows = sparse_rows(rng, 12, 6)
    lumped = Mechanism.from_channel(RecordSpace([range(2), range(6)]), rows).lumped(0)
    floor = 0.9 * lumped.max_entropy
    search = SharingSearch(lumped, floor, lumped.uniform(), 0.9, trees=LawBlocks)
    assert search._values[0].image(search._values[1]) is None


def test_a_table_at_a_floor_where_tangents_are_not_enough():
    mechanism = table(5, total=True)
    floor = 0.95 * 5 * math.log(3)
    bound = record_leakage(mechanism, floor, 0, tol=0.02)
    assert bound.status is Status.CERTIFIED
    lumped = mechanism.lumped(0)
    tangents = by_tangents(lumped, floor, lumped.uniform(), 1.0, 1000, Stop(Clock()))
    assert tangents.upper > bound.lower / 0.98
    assert bound.certificate is not None
    answer = verify(bound.certificate)
    assert answer.passed
    assert "mass-ranges" in answer.rules["upper"]


@pytest.mark.slow
def test_twelve_people_at_97_percent():
    bound = record_leakage(
        table(12, total=True), 0.97 * 12 * math.log(3), tol=0.01, work_limit=1e11
    )
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(0.53602, abs=1e-5)
    assert bound.certificate is not None
    assert verify(bound.certificate).passed
