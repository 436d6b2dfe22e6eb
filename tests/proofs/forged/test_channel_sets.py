"""Forged certificates of sets of channels: each bound against its formula, each guard."""

import itertools
import math

import numpy as np
import pytest
from flint import arb
from scipy.optimize import linprog
from scipy.special import rel_entr, xlogy

from cvxleak.exact.balls import precision
from cvxleak.proofs.bounds import channel_sets
from tests.proofs.forging import Parts, ends, proves_nothing_false, refused, tampered

LOG_2 = math.log(2)
LOW, HIGH = [[0.7, 0.2], [0.2, 0.7]], [[0.8, 0.3], [0.3, 0.8]]
MOST = LOG_2 + 0.8 * math.log(0.8) + 0.2 * math.log(0.2)
LEAST = LOG_2 + 0.7 * math.log(0.75) + 0.3 * math.log(0.25)
RNG = np.random.default_rng(3)

CAPACITY = Parts(
    "capacity", {"lower": LOW, "upper": HIGH}, {"input": [0.5, 0.5]}, {"output": [0.5, 0.5]}
)


pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def balls(values):
    return [arb(x) for x in values]


def boxes(many, outputs):
    rows = RNG.dirichlet(np.ones(outputs), many)
    rows[rows < 0.05] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    used = rows > 0
    low = np.where(used, np.maximum(rows - RNG.uniform(0, 0.1, rows.shape), 0.0), 0.0)
    high = np.where(used, np.minimum(rows + RNG.uniform(0, 0.1, rows.shape), 1.0), 0.0)
    return low, high


def vertices(low, high):
    """Yield the vertices of a row's box and the simplex."""
    for y in range(len(low)):
        for chosen in itertools.product((0, 1), repeat=len(low) - 1):
            ends = [*chosen[:y], 0, *chosen[y:]]
            q = np.where(ends, high, low)
            q[y] = 1 - (q.sum() - q[y])
            if low[y] - 1e-12 <= q[y] <= high[y] + 1e-12:
                yield np.clip(q, 0, 1)


def test_support_is_the_linear_program():
    for low, high in zip(*boxes(30, 5), strict=True):
        nu = RNG.normal(size=5)
        found = channel_sets.support_above(balls(low), balls(high), balls(nu))
        bounds = list(zip(low, high, strict=True))
        best = -linprog(-nu, A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=bounds).fun
        assert float(found) == pytest.approx(best, abs=1e-9)
        least = linprog(nu, A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=bounds).fun
        found = channel_sets.least_over_row(balls(low), balls(high), balls(nu))
        assert float(found) == pytest.approx(least, abs=1e-9)


def test_divergence_is_that_of_the_worst_vertex():
    for low, high in zip(*boxes(40, 4), strict=True):
        t = RNG.dirichlet(np.ones(4))
        worst = max(rel_entr(q, t).sum() for q in vertices(low, high))
        found = channel_sets.divergence_above(balls(low), balls(high), [arb(x).log() for x in t])
        assert worst - 1e-12 <= float(found) <= worst + 1e-9
        coarse = channel_sets.divergence_above(
            balls(low), balls(high), [arb(x).log() for x in t], cuts=0
        )
        assert float(coarse) >= float(found) - 1e-12


def test_divergence_of_a_law_without_an_output():
    logs = [arb(0.5).log(), arb(0.5).log(), None]
    half = channel_sets.divergence_above(balls([0.5, 0.5, 0]), balls([0.5, 0.5, 0]), logs)
    assert abs(float(half)) < 1e-12
    open_ = channel_sets.divergence_above(balls([0.5, 0.4, 0]), balls([0.5, 0.5, 0.1]), logs)
    assert not open_.is_finite()


def test_information_is_bounded_at_the_worst_rows():
    low, high = boxes(3, 4)
    joint = RNG.dirichlet(np.ones(6)).reshape(2, 3)
    posteriors = RNG.dirichlet(np.ones(2), 4).T
    found = channel_sets.information_below(
        [balls(own) for own in joint],
        [balls(row) for row in low],
        [balls(row) for row in high],
        [balls(row) for row in posteriors],
    )
    mass = joint.sum(axis=1)
    expected = -xlogy(mass, mass).sum()
    for x in range(3):
        price = joint[:, x] @ np.log(posteriors)
        expected += min(q @ price for q in vertices(low[x], high[x]))
    assert float(found) == pytest.approx(expected, abs=1e-9)
    blind = channel_sets.information_below(
        [balls([1.0, 0.0]), balls([0.0, 0.0])],
        [balls([0.5, 0.5])] * 2,
        [balls([0.5, 0.5])] * 2,
        [balls([1.0, 1.0]), balls([0.0, 0.0])],
    )
    assert float(blind) == 0.0
    lost = channel_sets.information_below(
        [balls([0.5, 0.0]), balls([0.0, 0.5])],
        [balls([0.5, 0.5])] * 2,
        [balls([0.5, 0.5])] * 2,
        [balls([1.0, 1.0]), balls([0.0, 0.0])],
    )
    assert not lost.is_finite()


def test_posteriors_sum_to_one():
    joint = [balls([0.25, 0.0, 0.0]), balls([0.25, 0.5, 0.0])]
    found = channel_sets.posteriors_of(joint, balls([0.25, 0.75]))
    columns = [float(a + b) for a, b in zip(*found, strict=True)]
    assert columns == pytest.approx([1.0, 1.0, 1.0])
    assert float(found[0][0]) == pytest.approx(0.5, abs=1e-11)
    assert 0 < float(found[0][1]) < 1e-11
    assert float(found[0][2]) == pytest.approx(0.25)


def test_honest():
    lower, upper = ends(CAPACITY)
    assert lower == pytest.approx(LEAST, abs=1e-9)
    assert upper == pytest.approx(MOST, abs=1e-12)
    assert MOST < upper
    box = {"lower": [[0.2, 0.2]], "upper": [[0.8, 0.8]]}
    alone = Parts("capacity", box, {"input": [1.0]}, {"output": [0.5, 0.5]})
    assert ends(alone) == (0.0, 0.0)


def test_ends_are_rounded_outwards():
    rows = [[0.75, 0.25], [0.25, 0.75]]
    point = tampered(CAPACITY, {("problem", "lower"): rows, ("problem", "upper"): rows})
    lower, upper = ends(point)
    with precision(300):
        truth = arb(2).log() + 0.75 * arb(0.75).log() + 0.25 * arb(0.25).log()
        assert arb(lower) < truth < arb(upper)
    assert upper - lower < 1e-9


def test_no_number_proves_too_much():
    # Each member's capacity is between that of the rows nearest to each other and MOST.
    nearest = LOG_2 + 0.7 * math.log(0.7) + 0.3 * math.log(0.3)
    proves_nothing_false(CAPACITY, MOST, nearest)


REFUSED = [
    (CAPACITY, {("problem", "note"): 1}, "the problem: expected the parts"),
    (CAPACITY, {("witness", "note"): 1}, "the witness: expected the parts"),
    (CAPACITY, {("proof", "note"): 1}, "the proof: expected the parts"),
    (CAPACITY, {("witness", "input"): [1.0]}, "the input: expected a list of 2"),
    (CAPACITY, {("proof", "output"): [1.0]}, "the output: expected a list of 2"),
    (CAPACITY, {("problem", "lower"): [[0.9, 0.9], [0.2, 0.7]]}, "the set of channels: lower"),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), REFUSED)
def test_refused(parts: Parts, changes, reason: str):
    refused(parts, changes, reason)
