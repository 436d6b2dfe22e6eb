"""Trees of posterior cells: what the kernel concludes from them holds, and is what they say."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit.worst_adversary.merged_outputs import merge_at_price
from cvxleak.audit.worst_adversary.posterior_cells import PosteriorCells, branch
from cvxleak.mechanisms import binary_symmetric, random_rounding, truncated_geometric
from cvxleak.model import (
    Arimoto,
    ChannelSet,
    Expectation,
    GainMatrix,
    Gini,
    Guess,
    GuessInTries,
    KnownMarginals,
    Mechanism,
    RecordSpace,
    RelativeEntropyBall,
    Shannon,
)
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.queries import count, parity
from tests.audit.worst_adversary.statements import Stated, stated


def table(seed: int, values: int = 3, contexts: int = 2, outputs: int = 3) -> Mechanism:
    """Return a mechanism whose rows are random."""
    rows = np.random.default_rng(seed).dirichlet(np.ones(outputs), size=values * contexts)
    return Mechanism.from_channel(RecordSpace([range(values), range(contexts)]), rows)


def grown(tree: PosteriorCells, nodes: int = 40) -> PosteriorCells:
    """Return a tree after a while."""
    tree.run(
        lambda: 0.98 * tree.upper,
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda _: None,
        node_limit=nodes,
    )
    return tree


def fits(case: Stated, tree: PosteriorCells) -> float:
    """Return what the kernel proves; it is what the tree says, or a little less."""
    proved = case.proved(tree.term())
    assert tree.upper * 0.9 - 1e-6 <= proved <= tree.upper + 1e-9
    assert case.largest(np.random.default_rng(0)) <= proved
    return proved


TABLE = GainMatrix([[1, -1, 0], [-1, 1, 0], [0, 0, 0.3]])
GAINS = [
    *(GainForm(gain, form) for gain in (Gini(), Guess(), TABLE) for form in ("posterior", "rise")),
    *(GainForm(gain, "factor") for gain in (Gini(), Arimoto(2), Guess(), GuessInTries(2))),
    GainForm(Shannon(), "posterior"),
    LEAKAGE,
]


@pytest.mark.parametrize("told", GAINS, ids=lambda told: told.name)
def test_gains(told):
    case = stated(table(1), 1.4, told)
    factor = 1.3 if told.form == "factor" else 0.0
    assert fits(case, PosteriorCells(case.group, None, factor)) >= fits(
        case, grown(PosteriorCells(case.group, None, factor))
    )


NOISY_COUNT = Mechanism(count(3), truncated_geometric(3, 1.0))
NEAR = RelativeEntropyBall(1e-6, laws=[0.6, 0.4])
MEAN = Expectation([0, 1, 2, 3], at_least=0.5, at_most=1.0)


@pytest.mark.parametrize(
    ("mechanism", "floor", "known", "truth"),
    [
        (Mechanism(parity(3), binary_symmetric(0.05)), 1.2, [], 0.494631937),
        (NOISY_COUNT, 0.0, [NEAR], 0.0602636),
        (NOISY_COUNT, 1.2, [KnownMarginals([0.7, 0.3])], 0.28294),
        (NOISY_COUNT, 1.5, [MEAN], 0.247847),
    ],
    ids=["no more", "ball", "marginals", "expectation"],
)
def test_a_tree_closes_under_what_is_known(mechanism, floor, known, truth):
    case = stated(mechanism, floor, known=known)
    tree, goal = PosteriorCells(case.group), 1.003 * truth
    tree.run(
        lambda: goal,
        resolution=0.003 * truth,
        stop=lambda: tree.nodes > 2000,
        on_weights=lambda _: None,
    )
    assert 0.9999 * truth <= fits(case, tree) <= goal


def test_a_set_of_channels():
    boxes = [[0.8, 0.1], [0.1, 0.8]], [[0.9, 0.2], [0.2, 0.9]]
    case = stated(Mechanism(parity(3), ChannelSet(*boxes)), 1.9)
    tree = PosteriorCells(case.group)
    tree.run(
        lambda: 0.94 * np.log(2),
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda _: None,
        node_limit=200,
    )
    proved = case.proved(tree.term())
    for flip in (0.1, 0.2):
        member = stated(Mechanism(parity(3), binary_symmetric(flip)), 1.9)
        assert proved >= member.largest(np.random.default_rng(0))
    assert proved < 0.95 * np.log(2)


def test_outputs_are_merged_at_a_price():
    case = stated(Mechanism(count(8), truncated_geometric(8, 0.3)), 4.0)
    group = case.group
    merged = merge_at_price(group, group.lumped.uniform(), 0.01)
    assert merged is not None
    assert len(merged.parts) < 9
    tree = grown(PosteriorCells(group, merged))
    assert fits(case, tree) < np.log(2)


def test_proportional_outputs_are_one_and_others_may_never_occur():
    rows = [[0.2, 0.4, 0.4, 0, 0], [0.1, 0.2, 0.7, 0, 0], [0.05, 0.1, 0.85, 0, 0], [0, 0, 1, 0, 0]]
    case = stated(Mechanism.from_channel(RecordSpace.binary(2), rows), 1.0)
    assert len(case.group.parts) == 3
    fits(case, grown(PosteriorCells(case.group)))
    merged = merge_at_price(case.group, case.group.lumped.uniform(), 1.0)
    assert merged is not None
    fits(case, grown(PosteriorCells(case.group, merged)))


def test_a_tree_serves_other_floors():
    mechanism = Mechanism(count(4), random_rounding(4, 3))
    first, second = stated(mechanism, 2.0), stated(mechanism, 2.5)
    tree = grown(PosteriorCells(first.group), 100)
    floors = np.array([first.group.surplus, second.group.surplus])
    for growth in (1.0, 2.0):
        other = tree.at(second.group, growth)
        start = fits(second, other)
        assert start < tree.upper
        assert tree.upper_at(floors) == pytest.approx([tree.upper, other.upper])
        assert fits(second, grown(other, 200)) < start
    # The tree that it came from is as it was.
    fits(first, tree)


@pytest.mark.parametrize(
    ("gain", "t", "goal"), [(Guess(), 1.747, 1.749), (Arimoto(2.0), 1.257, 1.26)], ids=str
)
def test_what_a_tree_says_of_a_factor_at_other_floors_is_not_below_what_is_proved(gain, t, goal):
    mechanism, told = Mechanism(count(3), truncated_geometric(3, 1.0)), GainForm(gain, "factor")
    case = stated(mechanism, 1.25, told)
    tree = PosteriorCells(case.group, factor=t)
    tree.run(lambda: goal, resolution=1e-3, stop=lambda: False, on_weights=lambda _: None)
    assert fits(case, tree) <= goal
    # The higher the floor, the less the leaves prove; T is left.
    for floor in (1.0, 1.5, 1.8, 2.05):
        other = stated(mechanism, floor, told)
        fits(other, tree.at(other.group, 1.0))
        proved = other.proved(tree.term())
        assert t <= proved <= tree.upper_at(np.array(other.group.surplus)) + 1e-9


def test_what_is_added_for_real_outputs_is_in_the_bound():
    case = stated(table(3), 1.0)
    extra = np.linspace(0.0, 0.5, len(case.group.extra))
    plain = grown(PosteriorCells(case.group))
    more = grown(PosteriorCells(replace(case.group, extra=extra)))
    assert plain.upper + 0.05 < more.upper <= plain.upper + 0.5


def test_cuts_divide_a_cell():
    rng = np.random.default_rng(5)
    vertices = np.tile(np.eye(3), (1, 2, 1, 1))
    for _ in range(20):
        ((y, i, j, t),) = branch(vertices, rng.dirichlet(np.ones(6)).reshape(1, 2, 3))
        assert i != j
        assert 0.1 <= t <= 0.9
        vertices[0, y, j] = (1 - t) * vertices[0, y, i] + t * vertices[0, y, j]
    assert (np.linalg.det(vertices) > 0).all()


def removed(cell: np.ndarray, weights: np.ndarray, i: int, j: int, t: float) -> float:
    """Return by how much a cut of the edge i-j lowers the interpolation of -H at a point."""
    height, point = -entr(cell).sum(axis=1), weights @ cell
    for replaced in (j, i):
        part = cell.copy()
        part[replaced] = (1 - t) * cell[i] + t * cell[j]
        shares = np.linalg.solve(part.T, point)
        if shares.min() > -1e-9:  # the point is in this part
            return float(weights @ height + shares @ entr(part).sum(axis=1))
    raise AssertionError("neither part holds the point")


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_removes_most_of_the_interpolation_gap(seed):
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(4), size=(2, 4))
    rays = rng.dirichlet(np.ones(8)).reshape(2, 4)
    ((y, i, j, t),) = branch(cells[None], rays[None])
    of_edges = [
        removed(cell, weights, a, b, np.clip(weights[b] / (weights[a] + weights[b]), 0.1, 0.9))
        for cell, weights in zip(cells, rays, strict=True)
        for a, b in combinations(range(4), 2)
    ]
    gained = removed(cells[y], rays[y], i, j, t)
    assert gained >= max(of_edges) - 1e-8
    assert gained > 1.2 * np.median(of_edges) > 0
