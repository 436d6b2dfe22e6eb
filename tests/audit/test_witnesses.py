"""Cheap adversaries and cheap upper ends: what an audit finds before any tree."""

from dataclasses import replace
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit import Adversary, RecordLeakage, group_leakage
from cvxleak.audit.worst_adversary.audit import Audit
from cvxleak.capacities import capacity
from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import ValidationError
from cvxleak.measures import lumped_information
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import AdditiveQuery, Expectation, GainMatrix, Mechanism, RecordSpace, TableQuery
from cvxleak.problem import Gap
from cvxleak.proofs import verify
from cvxleak.queries import count

TOLERANCE = 1e-4


def table(people, categories, published):
    """Return one mechanism for each published sum of cells, rounded at random to base 3."""
    space = RecordSpace([range(categories)] * people)
    rounding = random_rounding(people, 3)
    return [
        Mechanism(
            AdditiveQuery(space, [[int(c in cells) for c in range(categories)]] * people), rounding
        )
        for cells in published
    ]


def product(mechanisms):
    return reduce(Mechanism.product, mechanisms)


CELLS_AND_MARGINS = [{0}, {1}, {2}, {3}, {0, 1}, {2, 3}, {0, 2}, {1, 3}]
PARTS = {
    "2 x 2 table": table(5, 4, CELLS_AND_MARGINS),
    "row of 3 cells": table(4, 3, [{0}, {1}, {2}, {0, 1}, {1, 2}]),
}


def random_channel(records, values, outputs, seed, concentration=1.0):
    space = RecordSpace([range(values)] * records)
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(outputs, concentration), size=space.size)
    return Mechanism.from_channel(space, rows)


def pairwise_merged(mechanism):
    matrix = mechanism.channel.matrix
    for one, other in combinations(range(matrix.shape[1]), 2):
        merged = np.delete(matrix, other, axis=1)
        merged[:, one] += matrix[:, other]
        yield Mechanism(mechanism.query, merged)


def lower_end(mechanism, floor, size=1):
    """Return what an audit finds before its trees take a turn, however fast the machine is."""
    audit = Audit(RecordLeakage(mechanism, floor, size=size), 0)
    audit._begin(Gap(TOLERANCE), Stop(Clock()), staged=False)
    return audit.lower


@pytest.mark.parametrize(
    "share", [0.0, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.6, 0.85))]
)
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_dropping_parts_of_a_product_finds_no_worse_adversary(parts, share):
    floor = share * parts[0].space.max_entropy
    whole = lower_end(product(parts), floor)
    coarser = [product(parts[:j] + parts[j + 1 :]) for j in range(len(parts))]
    coarser += [product(parts[:2]), product(parts[2:4])]
    for one in coarser:
        assert lower_end(one, floor) <= whole * (1 + TOLERANCE)


@pytest.mark.parametrize(
    ("mechanism", "size"),
    [
        pytest.param(random_channel(3, 3, 6, 1, 0.3), 1, marks=pytest.mark.slow),
        pytest.param(random_channel(3, 3, 5, 1, 0.3), 2, marks=pytest.mark.slow),
        (Mechanism(count(12), random_rounding(12, 3)), 1),
        (Mechanism(count(5), truncated_geometric(5, 0.5)), 1),
    ],
    ids=["27 datasets", "27 datasets, pairs", "rounded count", "geometric"],
)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_merging_outputs_finds_no_worse_adversary(mechanism, size, share):
    floor = share * mechanism.space.max_entropy
    whole = lower_end(mechanism, floor, size)
    for merged in pairwise_merged(mechanism):
        assert lower_end(merged, floor, size) <= whole * (1 + TOLERANCE)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_all_in_one_cell_is_found_at_once(share):
    mechanism = product(PARTS["2 x 2 table"])
    bound = group_leakage(mechanism, share * mechanism.space.max_entropy, 1, time_limit=0)
    assert bound.lower == pytest.approx(np.log(4), abs=1e-9)


def test_a_count_of_many_is_told_apart_by_one_group_per_value():
    mechanism = Mechanism(count(900), random_rounding(900, 3))
    bound = group_leakage(mechanism, 450 * np.log(2), 1, time_limit=0)
    assert bound.lower == pytest.approx(np.log(2), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_capacity_of_all_rows_bounds_large_groups_without_a_tree(seed):
    mechanism = random_channel(3, 3, 3, seed)
    bound = group_leakage(mechanism, 0.0, 2, time_limit=None)
    assert bound.stats["nodes"] == 0
    assert bound.gap <= TOLERANCE * bound.upper
    assert bound.upper == pytest.approx(capacity(mechanism.to_channel()).upper, rel=TOLERANCE)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize(("records", "values", "size"), [(5, 2, 1), (3, 3, 2)])
@pytest.mark.parametrize("outputs", [3, 32])
def test_the_only_adversary_at_the_highest_floor_needs_no_tree(records, values, size, outputs):
    mechanism = random_channel(records, values, outputs, 0)
    bound = group_leakage(mechanism, mechanism.space.max_entropy, size, time_limit=None)
    assert bound.stats["nodes"] == 0
    assert bound.gap <= TOLERANCE * bound.upper
    lumped = [mechanism.lumped(group) for group in combinations(range(records), size)]
    leakage = max(lumped_information(one.uniform(), one) for one in lumped)
    assert bound.lower == pytest.approx(leakage, rel=1e-12)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("seed", [0, 1, 4, 32])
def test_the_worst_prior_of_a_class_that_is_a_segment_is_found(seed):
    """A record of 3 values, a 2 x 2 channel, an equation and an inequality."""
    rng = np.random.default_rng(3 * seed + 3)
    query = TableQuery(RecordSpace([range(3)]), np.array([0, 0, 1]), (0, 1))
    mechanism = Mechanism(query, rng.dirichlet([1, 1], size=2))
    law = rng.dirichlet(np.ones(3))
    equal, most = rng.normal(size=3).round(2), rng.normal(size=3).round(2)
    known = [
        Expectation(equal.tolist(), records=0, equals=float(equal @ law)),
        Expectation(most.tolist(), records=0, at_most=float(most @ law) + 0.02),
    ]
    audit = Audit(RecordLeakage(mechanism, 0.0, 0, adversaries=known), 0)
    audit._begin(Gap(5e-4), Stop(Clock()), staged=False)

    direction = np.cross(np.ones(3), equal)
    steps = np.linspace(-3, 3, 200_001)[:, None]
    laws = law + steps * direction / np.abs(direction).max()
    inside = (laws.min(axis=1) >= 0) & (laws @ most <= most @ law + 0.02)
    matrix = mechanism.channel.matrix[[0, 0, 1]]
    noise = entr(matrix).sum(axis=1)
    leakages = [entr(p @ matrix).sum() - p @ noise for p in laws[inside][::50]]
    assert audit.lower >= max(leakages) * (1 - 1e-6)


IN_TURN = AdditiveQuery(RecordSpace.binary(3), [[0, 1], [0, 2], [0, 1]])
"""Records 0 and 2 are alike, and record 1 is between them."""


@pytest.mark.parametrize("records", [(1, 2), (2, 1), (0, 1), None])
def test_an_adversary_is_about_the_records_in_their_order(records):
    mechanism = Mechanism(IN_TURN, [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0.3, 0.3, 0.4]])
    bound = RecordLeakage(mechanism, 1.8, records=records, size=2).solve(tol=1e-3)
    assert bound.witness.leakage == pytest.approx(bound.lower, abs=1e-12)


@pytest.mark.parametrize("records", [(1, 2), (2, 1), (0, 1), None])
def test_actions_are_about_the_values_in_the_order_of_the_records(records):
    # x_1 = 0 and x_2 = 1 is worth 1, and a lie about it costs as much.
    mechanism = Mechanism(IN_TURN, [[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]])
    gain, floor = GainMatrix([[0, 1, -1, 0], [0, 0, 0, 0]]), 2.0
    problem = RecordLeakage(mechanism, floor, records=records, size=2, gain=gain, form="posterior")
    bound = problem.solve(tol=1e-3)
    # With an action for each output, the gain is linear in the prior: exp(c / scale) is the best.
    datasets = np.array(list(IN_TURN.space.datasets()))
    seen = (datasets @ [1, 2, 1] == 1).astype(int)
    best = []
    for i, j in [(0, 1), (0, 2), (1, 2)] if records is None else [records]:
        table = np.array(gain.table)[:, 2 * datasets[:, i] + datasets[:, j]]
        for actions in [(0, 0), (0, 1), (1, 0), (1, 1)]:
            c = table[np.array(actions)[seen], np.arange(8)]
            scales = np.geomspace(1e-2, 1e3, 20_000)[:, None]
            laws = np.exp(c / scales)
            laws /= laws.sum(axis=1, keepdims=True)
            best.append((laws @ c)[entr(laws).sum(axis=1) >= floor].max())
    assert bound.lower <= max(best) + 1e-4
    assert bound.upper >= max(best)
    assert verify(bound.certificate).passed


def test_an_adversary_is_about_records_of_a_mechanism():
    one = Adversary(Mechanism(IN_TURN, np.eye(5)), 1, np.full(4, 0.25))
    assert one.records == (1,)
    for wrong in ({"mechanism": "IN_TURN"}, {"records": (1, 1)}):
        with pytest.raises(ValidationError, match=f"^{next(iter(wrong))}: "):
            replace(one, **wrong)


def test_a_matrix_of_actions_for_values_that_are_excluded_is_refused():
    mechanism = Mechanism(AdditiveQuery(RecordSpace([range(3)]), [[0, 1, 2]]), np.eye(3))
    never = Expectation([0, 1, 0], records=0, at_most=0)
    problem = RecordLeakage(
        mechanism, 0.0, adversaries=never, gain=GainMatrix(np.eye(3)), form="posterior"
    )
    with pytest.raises(ValidationError, match=r"^problem: .* 3 entries.* exclude are left out"):
        problem.solve()


def test_a_prior_is_made_feasible_in_the_order_of_the_certificate():
    mechanism = Mechanism(IN_TURN, [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0.3, 0.3, 0.4]])
    problem = RecordLeakage(mechanism, 1.8, size=2)
    bound = problem.solve(tol=1e-3)
    # Most of all it tells about records 1 and 2: x_0 is known.
    prior = [0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0]
    found = problem.repair(prior, bound=bound)
    assert found.witness.records == (2, 1)
    assert found.witness.leakage == pytest.approx(found.lower, abs=1e-12)
    other = Adversary(mechanism, (1, 2), mechanism.lump((1, 2), prior))
    with pytest.raises(ValidationError, match=r"lists them as \(2, 1\)"):
        problem.repair(other, bound=bound)
