"""The search tree: bounds only fall, leaves cover, outputs merge, choices bound."""

from __future__ import annotations

import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from cvxleak.audit.search import CellSearch, bound_by_dataset, bound_choices
from cvxleak.audit.search.cell_dual import CellDual, Cells
from cvxleak.audit.search.choices import CHOICE_LIMIT
from cvxleak.audit.search.whole_dataset import knows_most
from cvxleak.capacities.outputs import merge_outputs
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.measures import lumped_entropy
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import AdditiveQuery, Lumped, Mechanism, RecordSpace
from cvxleak.queries import count


def modular_sum(n: int, m: int, flip: float) -> Lumped:
    noise = np.full((m, m), flip / (m - 1))
    np.fill_diagonal(noise, 1 - flip)
    query = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=m)
    return Mechanism(query, noise).lumped(0)


def never() -> bool:
    return False


def test_upper_falls_and_every_leaf_keeps_its_promise():
    lumped = modular_sum(4, 3, 0.1)
    search = CellSearch(lumped, 2.3)
    uppers = [search.upper]
    for limit in (1, 20, 100, 400):
        search.run(
            lambda: 0.0, resolution=1e-5, stop=never, on_weights=lambda w: None, node_limit=limit
        )
        uppers.append(search.upper)
    assert uppers[0] == pytest.approx(math.log(2))
    assert all(later <= earlier for earlier, later in pairwise(uppers))
    # Rebuild every leaf's cells from the splits: its multipliers give a bound within `upper`.
    nodes, multipliers = search.preorder()
    stack = [np.broadcast_to(np.eye(2), (3, 2, 2)).copy()]
    cells = []
    for split in nodes:
        vertices = stack.pop()
        if split is None:
            cells.append(vertices)
            continue
        y, i, j, t = split
        point = (1 - t) * vertices[y, i] + t * vertices[y, j]
        for replaced in (i, j):
            child = vertices.copy()
            child[y, replaced] = point
            stack.append(child)
    assert not stack
    assert len(cells) == len(multipliers)
    values = CellDual(lumped, 2.3).value(
        Cells.of(np.stack(cells)),
        np.array([leaf.lam for leaf in multipliers]),
        np.stack([leaf.mu for leaf in multipliers]),
    )
    assert values.max() == pytest.approx(search.upper, rel=1e-9)


def test_an_interrupt_in_a_batch_keeps_the_bound_valid():
    search = CellSearch(modular_sum(4, 3, 0.1), 2.3)
    search.run(lambda: 0.0, resolution=1e-5, stop=never, on_weights=lambda w: None, node_limit=50)
    before = search.upper

    def interrupt(weights):
        assert search.upper == before  # the batch in flight counts
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.run(lambda: 0.0, resolution=1e-5, stop=never, on_weights=interrupt)
    assert search.upper == before
    search.run(lambda: 0.0, resolution=1e-5, stop=never, on_weights=lambda w: None, node_limit=400)
    assert search.upper < before
    nodes, leaves = search.preorder()
    assert nodes.count(None) == len(leaves)


def run_on(search, limit=400, on_weights=lambda weights: None):
    search.run(lambda: 0.0, resolution=1e-5, stop=never, on_weights=on_weights, node_limit=limit)


def volume(search):
    """Share of all posteriors that the leaves' cells hold: 1 if they cover and do not overlap."""
    nodes, _ = search.preorder()
    stack = [np.broadcast_to(np.eye(2), (3, 2, 2)).copy()]
    total = 0.0
    for split in nodes:
        vertices = stack.pop()
        if split is None:
            total += np.abs(np.linalg.det(vertices)).prod()
            continue
        y, i, j, t = split
        point = (1 - t) * vertices[y, i] + t * vertices[y, j]
        for replaced in (i, j):
            child = vertices.copy()
            child[y, replaced] = point
            stack.append(child)
    return total


@pytest.mark.parametrize("seed", range(60))
def test_an_interrupt_at_any_line_loses_no_node(seed):
    search = CellSearch(modular_sum(4, 3, 0.1), 2.3)
    run_on(search, 60)
    before = search.upper
    left = int(np.random.default_rng(seed).integers(1, 1500))

    def trace(frame, event, arg):
        nonlocal left
        if not frame.f_code.co_filename.endswith("best_first.py"):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_on(search, 5000)
    finally:
        sys.settrace(None)
    assert search.upper <= before
    assert search.upper >= max(leaf.bound for leaf in search.preorder()[1]) - 1e-15
    assert volume(search) == pytest.approx(1.0, abs=1e-12)
    run_on(search, search.nodes + 300)
    assert search.upper < before
    assert volume(search) == pytest.approx(1.0, abs=1e-12)
    assert search.upper == max(leaf.bound for leaf in search.preorder()[1])


def test_stop_stops_the_search():
    search = CellSearch(modular_sum(4, 3, 0.1), 2.3)
    search.run(lambda: 0.0, resolution=1e-5, stop=lambda: True, on_weights=lambda w: None)
    assert search.nodes == 0


def test_proportional_outputs_are_merged():
    space = RecordSpace.binary(2)
    rows = np.array([[0.4, 0.1, 0.5, 0], [0.2, 0.05, 0.75, 0], [0.8, 0.2, 0, 0], [0, 0, 1, 0]])
    lumped = Mechanism.from_channel(space, rows).lumped(0)
    merged, partition = merge_outputs(lumped)
    assert partition == [[0, 1], [2], [3]]
    assert np.allclose(merged.rows[:, 0], lumped.rows[:, 0] + lumped.rows[:, 1])
    assert merged.multiplicities == lumped.multiplicities
    same, trivial = merge_outputs(merged)
    assert np.allclose(same.rows, merged.rows, rtol=1e-15)
    assert trivial == [[0], [1], [2]]


def test_a_thousand_outputs_are_merged_at_once():
    base = np.random.default_rng(0).dirichlet(np.ones(500), size=6)
    rows = np.concatenate([0.3 * base, 0.7 * base], axis=1)[
        :, np.random.default_rng(1).permutation(1000)
    ]
    lumped = Mechanism.from_channel(RecordSpace([(0, 1), range(3)]), rows).lumped(0)
    merged, partition = merge_outputs(lumped)
    assert sorted(y for group in partition for y in group) == list(range(1000))
    assert {len(group) for group in partition} == {2}
    assert np.allclose(np.sort(merged.rows.sum(axis=0)), np.sort(base.sum(axis=0)))


def test_nearly_proportional_outputs_are_not_merged():
    rows = [[0.4, 0.1, 0.5], [0.2, 0.05 + 1e-9, 0.75 - 1e-9], [0.8, 0.2, 0], [0, 0, 1]]
    lumped = Mechanism.from_channel(RecordSpace.binary(2), rows).lumped(0)
    assert merge_outputs(lumped)[1] == [[0], [1], [2]]


@pytest.mark.parametrize("seed", range(3))
def test_choices_bound_binary_capacities(seed):
    rows = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), size=8)
    lumped = Mechanism.from_channel(RecordSpace([(0, 1), range(4)]), rows).lumped(0)
    choices = bound_choices(lumped)
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
    assert choices.witnesses.shape[1] == 8


def test_too_many_choices_are_left_to_the_cells():
    side = math.isqrt(CHOICE_LIMIT) + 1
    rows = np.random.default_rng(0).dirichlet(np.ones(2), size=2 * side)
    lumped = Mechanism.from_channel(RecordSpace([(0, 1), range(side)]), rows).lumped(0)
    assert bound_choices(lumped) is None


def test_a_lower_threshold_opens_closed_leaves_again():
    search = CellSearch(modular_sum(4, 3, 0.1), 2.3)

    def run(threshold):
        search.run(lambda: threshold, resolution=1e-5, stop=never, on_weights=lambda weights: None)

    run(0.4)
    first = search.upper
    assert 0.375 < first <= 0.4
    run(0.375)
    assert search.upper <= 0.375 < first
    nodes, leaves = search.preorder()
    assert nodes.count(None) == len(leaves)
    assert max(leaf.bound for leaf in leaves) == search.upper


def test_bounds_without_a_tree_hold_whenever_they_are_stopped():
    rng = np.random.default_rng(5)
    for k in (2, 3):
        rows = rng.dirichlet(np.ones(5), size=k * 6)
        space = RecordSpace([range(k), range(6)])
        lumped = Mechanism.from_channel(space, rows).lumped(0)
        floor = 0.5 * lumped.max_entropy
        attained = joint_blahut_arimoto(lumped, floor, rng=0).value
        for steps in (0, 1, 5, 1000):
            calls = iter(range(10**6))

            def stop(calls=calls, steps=steps):
                return next(calls) >= steps

            choices = bound_choices(lumped, stop=stop)
            assert choices is not None
            assert attained <= choices.upper + 1e-12
            guess = knows_most(lumped, floor, lumped.uniform(), stop)
            assert guess.sum() == pytest.approx(1.0)
            assert (guess > 0).all()
            assert attained <= bound_by_dataset(lumped, floor, guess).upper


def test_who_knows_most_about_the_dataset():
    lumped = Mechanism(count(8), truncated_geometric(8, 0.7)).lumped(0)
    for floor in (0.0, 3.0, 5.0):
        found = knows_most(lumped, floor, lumped.uniform(), lambda: False)
        assert lumped_entropy(found, lumped) >= floor - 1e-6
        output = found @ lumped.rows
        value = float(found @ rel_entr(lumped.rows, output).sum(axis=1))
        # The least bound of this kind, by Newton's method, is sharp for the whole dataset.
        least = bound_by_dataset(lumped, floor, found).upper
        assert value >= min(least, np.log(2)) - 1e-3


def test_children_of_a_node_with_lam_zero_get_better_bounds():
    # From a lam next to 0, where U is hardly smooth, Newton's method got nowhere: the search
    # stood at .164602 for as long as anybody waited.
    rows = np.array(
        [
            [0.2966, 0.1097, 0.4871, 0.1037, 0.0029],
            [0.0003, 0.4683, 0.4605, 0.0706, 0.0003],
            [0.0001, 0.0300, 0.9398, 0.0300, 0.0001],
            [0.0003, 0.0706, 0.4605, 0.4683, 0.0003],
            [0.0029, 0.1037, 0.4871, 0.1097, 0.2966],
        ]
    )
    mechanism = Mechanism(count(4), rows / rows.sum(axis=1, keepdims=True))
    search = CellSearch(mechanism.lumped(0), 1.5)
    search.run(
        lambda: 0.1644, resolution=5e-5, stop=never, on_weights=lambda w: None, node_limit=16000
    )
    assert search.upper < 0.16455  # of tightness: any upper end from .1644 on is valid
