"""One tree for many floors: it bounds each, proves what it says, and survives interrupts."""

from __future__ import annotations

import numpy as np
import pytest

from cvxleak.audit.search import CellSearch, find_symmetries
from cvxleak.audit.search.floors_search import FloorsSearch
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.mechanisms import generalized_symmetric, truncated_geometric
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.queries import count, modular_sum
from tests.audit.search.proving import proved_bound

GAP = 1e-3


def never() -> bool:
    return False


def random_lumped(seed: int, values: int, contexts: int, outputs: int) -> Lumped:
    rows = np.random.default_rng(seed).dirichlet(np.ones(outputs), size=values * contexts)
    space = RecordSpace([range(values), range(contexts)])
    return Mechanism.from_channel(space, rows).lumped(0)


PROBLEMS = {
    "geometric": Mechanism(count(3), truncated_geometric(3, 1.0)).lumped(0),
    "mod 3": Mechanism(modular_sum(4, 3), generalized_symmetric(3, 0.1)).lumped(0),
    "random": random_lumped(1, 2, 3, 3),
    "three values": random_lumped(2, 3, 2, 2),
}


def solved(lumped: Lumped, floors: list[float], symmetric: bool = False, limit: int = 10**5):
    lower = np.array([joint_blahut_arimoto(lumped, b, starts=8).value for b in floors])
    goal = lower / (1 - GAP)
    symmetries = find_symmetries(lumped) if symmetric else []
    search = FloorsSearch(lumped, floors, symmetries)
    search.run(
        lambda: (goal, goal - lower), stop=never, on_weights=lambda w, at: None, node_limit=limit
    )
    return search, lower, goal


def floors_of(lumped: Lumped) -> list[float]:
    return (lumped.max_entropy * np.array([0.5, 0.6, 0.7, 0.72, 0.9])).tolist()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_floor_is_closed_and_its_proof_is_that_of_a_single_tree(name, symmetric):
    lumped = PROBLEMS[name]
    floors = floors_of(lumped)
    search, lower, goal = solved(lumped, floors, symmetric)
    upper = search.upper
    assert (lower <= upper + 1e-12).all()
    assert (upper <= goal).all()
    outputs = [[y] for y in range(lumped.rows.shape[1])]
    targets = dict(enumerate(upper.tolist()))
    for place, tree in search.encoded(outputs, targets, "<f8").items():
        # The checker knows of one floor only.
        end = proved_bound(lumped, floors[place], {"cells": tree})
        assert lower[place] <= end <= upper[place] * (1 + 1e-9) + 1e-12
        assert end == pytest.approx(upper[place], rel=1e-4)
        # The proof is about this floor and higher ones: at a lower one it gives less.
        assert proved_bound(lumped, floors[place] - 0.1, {"cells": tree}) >= end


def test_one_tree_takes_fewer_nodes_than_one_for_each_floor():
    lumped = PROBLEMS["geometric"]
    floors = np.linspace(0.6, 0.9, 13) * lumped.max_entropy
    search, _, goal = solved(lumped, floors.tolist())
    single = 0
    for b, threshold in zip(floors.tolist(), goal.tolist(), strict=True):
        alone = CellSearch(lumped, b)
        alone.run(
            lambda threshold=threshold: threshold,
            resolution=GAP * threshold,
            stop=never,
            on_weights=lambda w: None,
        )
        single += alone.nodes
    assert search.nodes < 0.75 * single


@pytest.mark.parametrize("limit", [0, 1, 7, 60])
def test_a_tree_that_is_not_done_bounds_as_well(limit):
    lumped = PROBLEMS["random"]
    floors = floors_of(lumped)
    search, lower, _ = solved(lumped, floors, limit=limit)
    upper = search.upper
    assert (lower <= upper).all()
    assert (np.diff(upper) <= 1e-12).all()
    outputs = [[y] for y in range(lumped.rows.shape[1])]
    for place, tree in search.encoded(outputs, dict(enumerate(upper.tolist())), "<f4").items():
        assert lower[place] <= proved_bound(lumped, floors[place], {"cells": tree})


def test_an_interrupt_leaves_a_tree_that_holds():
    lumped = PROBLEMS["geometric"]
    floors = floors_of(lumped)
    lower = np.array([joint_blahut_arimoto(lumped, b, starts=8).value for b in floors])
    goal = lower / (1 - 1e-4)
    search = FloorsSearch(lumped, floors)

    def interrupt(weights, at):
        if search.nodes > 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.run(lambda: (goal, goal - lower), stop=never, on_weights=interrupt, node_limit=10**5)
    before = search.upper
    assert (lower <= before).all()
    # It goes on from there.
    search.run(
        lambda: (goal, goal - lower),
        stop=never,
        on_weights=lambda w, at: None,
        node_limit=10**5,
    )
    assert (search.upper <= np.minimum(goal, before)).all()


def test_a_proof_of_one_floor_does_not_pass_for_a_smaller_bound():
    lumped = PROBLEMS["mod 3"]
    floors = floors_of(lumped)
    search, _, _ = solved(lumped, floors)
    outputs = [[y] for y in range(lumped.rows.shape[1])]
    tree = search.encoded(outputs, {3: float(search.upper[3])}, "<f8")[3]
    assert proved_bound(lumped, floors[1], {"cells": tree}) > search.upper[3] + 1e-9
