from itertools import product

import numpy as np
import pytest

from cvxleak.audit.worst_adversary.choices import enumerable
from cvxleak.capacities.shannon import capacity
from cvxleak.design.choices import worst_choices
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.model import Lumped


def lumped_of(rows, sizes, values):
    names = [(g,) for g in range(len(rows))]
    return Lumped(
        range(max(values) + 1), range(rows.shape[1]), np.array(values), rows, sizes, names
    )


def random_problem(seed, counts=(3, 4), outputs=3):
    rng = np.random.default_rng(seed)
    values = [a for a, count in enumerate(counts) for _ in range(count)]
    rows = rng.dirichlet(np.ones(outputs), size=len(values))
    return lumped_of(rows, rng.integers(1, 50, len(values)).tolist(), values)


@pytest.mark.parametrize("counts", [(3, 4), (2, 2, 3)])
def test_the_worst_choices_are_the_capacities_of_all_pairs(counts):
    lumped = random_problem(0, counts)
    found = worst_choices(lumped, 0.0, 1000)
    starts = np.cumsum([0, *counts[:-1]])
    truth = [
        capacity(lumped.rows[list(starts + np.array(choice))], tol=1e-7).upper
        for choice in product(*map(range, counts))
    ]
    values = [value for value, _ in found]
    assert values == sorted(values, reverse=True)
    assert values == pytest.approx(sorted(truth, reverse=True), abs=1e-5)
    for value, weights in found:
        assert lumped_information(weights, lumped) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_floor_leaves_those_with_enough_doubt(seed):
    lumped = random_problem(seed)
    free = worst_choices(lumped, 0.0, 1000)
    doubts = [lumped_entropy(weights, lumped) for _, weights in free]
    floor = float(np.median(doubts))
    kept = worst_choices(lumped, floor, 1000)
    assert [value for value, _ in kept] == [
        value for (value, _), doubt in zip(free, doubts, strict=True) if doubt >= floor
    ]
    assert worst_choices(lumped, max(doubts) + 1e-6, 1000) == []
    assert len(worst_choices(lumped, 0.0, 3)) == 3


def test_of_the_same_rows_the_choice_with_the_most_doubt_stands_for_all():
    rows = np.array([[0.9, 0.1], [0.2, 0.8], [0.2, 0.8], [0.9, 0.1]])
    lumped = lumped_of(rows, [1, 1, 7, 9], [0, 0, 1, 1])
    # Rows {0, 2} and {1, 3} are the same pair, and so are {0, 3} and {1, 2} each on their own.
    found = worst_choices(lumped, 0.0, 10)
    assert len(found) == 3
    assert np.flatnonzero(found[0][1]).tolist() == [1, 3]


def test_too_many_choices_are_none():
    assert not enumerable([800, 800], 2)
    assert enumerable([50, 50], 51)
    assert not enumerable([60, 60], 2000)
    many = random_problem(0, (800, 800))
    assert worst_choices(many, 0.0, 5) == []
