"""Outputs merged at a price: the price covers what is hidden, in the search and in the proof."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr

from cvxleak.audit.search import CellSearch, coarsen
from cvxleak.exact.packing import pack, unpack
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.kernel.numbers import RefusedError
from cvxleak.measures import lumped_information
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.queries import count
from tests.audit.search.proving import proved_bound


def problem(seed: int, outputs: int = 5) -> Lumped:
    rows = np.random.default_rng(seed).dirichlet(np.full(outputs, 0.8), size=6)
    return Mechanism.from_channel(RecordSpace([range(2), range(3)]), rows).lumped(0)


def prices(lumped: Lumped, partition: list[list[int]], law: np.ndarray) -> np.ndarray:
    """The mean, over merged outputs, of D(R_g given the merged output || law given it)."""
    found = np.zeros(len(lumped.rows))
    for part in partition:
        own, share = lumped.rows[:, part], law[part] / law[part].sum()
        found += rel_entr(own, own.sum(axis=1, keepdims=True) * share).sum(axis=1)
    return found


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.floats(0.02, 0.5))
def test_the_price_covers_what_merging_hides(seed, budget):
    rng = np.random.default_rng(seed)
    lumped = problem(seed)
    coarse = coarsen(lumped, lumped.uniform(), budget)
    if coarse is None:
        return
    assert len(coarse.lumped.outputs) == len(coarse.partition) < 5
    assert np.allclose(prices(lumped, coarse.partition, coarse.output), coarse.price, atol=1e-12)
    merged = [lumped.rows[:, part].sum(axis=1) for part in coarse.partition]
    assert np.allclose(np.column_stack(merged), coarse.lumped.rows)
    # With any law t: the mean of the price bounds the difference for every adversary.
    any_law = prices(lumped, coarse.partition, rng.dirichlet(np.ones(5)))
    for w in rng.dirichlet(np.full(6, 0.4), size=20):
        hidden = lumped_information(w, lumped) - lumped_information(w, coarse.lumped)
        assert -1e-12 <= hidden <= w @ coarse.price + 1e-12
        assert hidden <= w @ any_law + 1e-12


def test_a_larger_budget_merges_more_and_none_merges_nothing():
    lumped = Mechanism(count(20), truncated_geometric(20, 0.2)).lumped(0)
    weights = joint_blahut_arimoto(lumped, 8.0).point
    sizes = [len(coarsen(lumped, weights, budget).partition) for budget in (1e-3, 1e-2, 1e-1)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    assert coarsen(lumped, weights, 0.0) is None
    # Neighbors say nearly the same, so they are what is merged.
    parts = coarsen(lumped, weights, 1e-2).partition
    assert all(part == list(range(part[0], part[-1] + 1)) for part in parts)
    assert coarsen(lumped, weights, 1e-2).price @ weights <= 2e-2


def test_the_tree_on_few_outputs_bounds_the_leakage_through_all():
    lumped = Mechanism(count(20), truncated_geometric(20, 0.2)).lumped(0)
    run = joint_blahut_arimoto(lumped, 8.0)
    coarse = coarsen(lumped, run.point, 0.01 * run.value)
    assert coarse is not None
    search = CellSearch(coarse.lumped, 8.0, coarse=coarse)
    assert search.upper >= np.log(2)
    search.run(
        lambda: 1.03 * run.value,
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda weights: None,
        node_limit=20_000,
    )
    assert run.value <= search.upper <= 1.03 * run.value
    entry = {"cells": search.encoded(coarse.partition, "<f8")}
    proved = proved_bound(lumped, 8.0, entry)
    assert run.value <= proved <= search.upper + 1e-9
    assert proved == pytest.approx(search.upper, rel=1e-4)


@pytest.fixture(scope="module")
def coarse_entry():
    """A problem, and what a tree on few of its outputs proves."""
    lumped = Mechanism(count(12), truncated_geometric(12, 0.2)).lumped(0)
    worst = joint_blahut_arimoto(lumped, 5.0)
    coarse = coarsen(lumped, worst.point, 0.03 * worst.value)
    assert coarse is not None
    search = CellSearch(coarse.lumped, 5.0, coarse=coarse)
    search.run(
        lambda: 1.1 * worst.value,
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda weights: None,
        node_limit=3000,
    )
    entry = search.encoded(coarse.partition, "<f8")
    assert worst.value <= proved_bound(lumped, 5.0, {"cells": entry}) <= 1.11 * worst.value
    return lumped, entry


def test_the_law_of_a_price_matters(coarse_entry):
    lumped, cells = coarse_entry
    proved = proved_bound(lumped, 5.0, {"cells": cells})
    law = unpack(cells["output"])
    for wrong in (law[:-1], -law):
        with pytest.raises(RefusedError):
            proved_bound(lumped, 5.0, {"cells": cells | {"output": pack(wrong)}})
    assert proved_bound(lumped, 5.0, {"cells": cells | {"output": pack(law[::-1] ** 3)}}) > proved
