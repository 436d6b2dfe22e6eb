"""Forged certificates of local differential privacy over sets of channels."""

import math
from itertools import product

import numpy as np
import pytest
from flint import arb
from scipy.optimize import linprog

from cvxleak.kernel import budget
from cvxleak.kernel.budget import RefusedError
from cvxleak.model import ChannelSet
from cvxleak.proofs import local_dp_of_set
from cvxleak.proofs.exact import rational
from cvxleak.proofs.local_dp_of_set import Boxes
from tests.proofs.forging import Parts, encloses, ends, proves_nothing_false, refused, tampered

LOW, HIGH = [[0.75, 0.125], [0.125, 0.75]], [[0.875, 0.25], [0.25, 0.875]]

SET = Parts(
    "local-dp-of-set",
    {"lower": LOW, "upper": HIGH},
    {
        "most_private": [[0.75, 0.25], [0.25, 0.75]],
        "least_private": [[0.875, 0.125], [0.125, 0.875]],
    },
    {"level": 2.9375, "a": [[0, 0], [1, 0]], "b": [[1, 0], [0, 0]]},
)
"""The epsilons are from log 3 to log 7; .75 / 2.9375 > .25."""

RNG = np.random.default_rng(6)


def boxes(inputs, outputs):
    """Return the bounds of a set, some of which the other outputs make useless."""
    rows = RNG.dirichlet(np.ones(outputs), inputs)
    low = np.maximum(rows - RNG.uniform(0, 0.2, rows.shape), 0.0)
    return ChannelSet(low, np.minimum(rows + RNG.uniform(0, 0.2, rows.shape), 1.0))


def least(low, high, prices):
    bounds = list(zip(low, high, strict=True))
    return linprog(prices, A_eq=np.ones((1, len(low))), b_eq=[1.0], bounds=bounds).fun


def with_set(low, high, member, proof=None):
    return Parts(
        "local-dp-of-set",
        {"lower": low, "upper": high},
        {"most_private": member, "least_private": member},
        proof or {},
    )


def test_honest():
    lower, upper = ends(SET)
    assert lower == pytest.approx(math.log(2.9375), abs=1e-12)
    assert upper == pytest.approx(math.log(7), abs=1e-12)
    assert lower < arb("2.9375").log()
    assert arb(7).log() < upper
    assert local_dp_of_set.about(SET.problem) == (
        "every channel in a set, with 2 inputs and 2 outputs"
    )
    assert ends(SET._replace(proof={})) == (0.0, upper)


def test_no_number_proves_too_much():
    proves_nothing_false(SET, math.log(7), math.log(3))


def test_a_known_channel():
    rows = [[0.75, 0.25], [0.25, 0.75]]
    proof = {"level": 2.9999999, "a": [[0, 0], [1, 0]], "b": [[1, 0], [0, 0]]}
    encloses(with_set(rows, rows, rows, proof), lambda: arb(3).log(), 1e-7)


FORGED = [
    ({("problem", "note"): 1}, "the problem: it has no note"),
    ({("witness", "note"): 1}, "the witness: it has no note"),
    ({("proof", "note"): 1}, "the proof: it has no note"),
    ({("problem", "lower", 0): [0.9, 0.9]}, "the set of channels: lower"),
    ({("witness", "most_private", 0): [0.75, 0.5]}, "the set of channels: matrix"),
    ({("witness", "most_private", 0): [0.5, 0.5]}, "not in the set"),
    ({("witness", "least_private", 1): [0.5, 0.5]}, "not in the set"),
    ({("witness", "least_private"): [[0.875, 0.125]]}, "not in the set"),
    ({("proof", "level"): 0.75}, "the level must be at least 1"),
    ({("proof", "level"): -3}, "the level must be at least 1"),
    ({("proof", "level"): 0}, "the level must be at least 1"),
    ({("proof", "level"): 3}, "do not exclude the claimed level"),
    ({("proof", "level"): 3.5}, "do not exclude the claimed level"),
    ({("proof", "a"): {"0": 1, "1": 1}}, "the multipliers: expected 2 rows"),
    ({("proof", "a"): [[0, 0]]}, "the multipliers: expected 2 rows"),
    ({("proof", "b"): [[1, 0], [0, 0], [0, 0]]}, "the multipliers: expected 2 rows"),
    ({("proof", "b", 0): [1]}, "the multipliers: expected a list of 2"),
    ({("proof", "b", 0, 1): -1}, "must not be negative"),
    ({("proof", "a", 1, 0): -1}, "must not be negative"),
    ({("proof", "a", 1, 0): 1.25}, "do not exclude the claimed level"),
    ({("proof", "a"): [[0, 0], [0, 0]]}, "do not exclude the claimed level"),
    ({("proof", "b"): [[0, 0], [0, 0]]}, "do not exclude the claimed level"),
]


@pytest.mark.parametrize(("changes", "reason"), FORGED)
def test_forged(changes, reason):
    refused(SET, changes, reason)


def test_b_counts_for_no_more_than_a():
    lower = ends(SET)[0]
    assert ends(tampered(SET, {("proof", "b", 0, 0): 1000}))[0] == lower
    assert ends(tampered(SET, {("proof", "a", 1, 0): 0.5}))[0] == lower
    # A column that b leaves out takes from what the others prove.
    refused(SET, {("proof", "a", 0, 1): 1}, "do not exclude the claimed level")
    small = tampered(SET, {("proof", "a", 0, 1): 0.0009765625})
    assert ends(small)[0] == lower


def test_a_level_of_one():
    assert ends(tampered(SET, {("proof", "level"): 1}))[0] == 0.0


@pytest.mark.parametrize("outputs", [2, 3, 5])
def test_ends_of_probabilities_and_of_prices_are_linear_programs(outputs):
    for _ in range(8):
        channels = boxes(4, outputs)
        found = Boxes(channels)
        low, high = channels.lower, channels.upper
        one = np.eye(outputs)
        for x, y in product(range(4), range(outputs)):
            assert float(found.least[x][y]) == pytest.approx(least(low[x], high[x], one[y]))
            assert float(found.most[x][y]) == pytest.approx(-least(low[x], high[x], -one[y]))
        a, b = RNG.uniform(0, 1, (2, 4, outputs)) * (RNG.random((2, 4, outputs)) < 0.5)
        level = 1 + RNG.random()
        scale = np.minimum(1, a.sum(axis=0) / np.maximum(b.sum(axis=0), 1e-300))
        prices = scale * b / level - a
        total = sum(least(*row) for row in zip(low, high, prices, strict=True))
        exact = [[[rational(v) for v in row] for row in m.tolist()] for m in (a, b)]
        assert found.exclude(rational(level), *exact) == (total > 0)


def test_the_least_of_a_row_counts():
    """Whether it is excluded turns where the linear program says, between two levels close by."""
    for _ in range(20):
        channels = boxes(2, 4)
        low, high = channels.lower, channels.upper
        b, a = np.eye(2)[:, :1] * RNG.random(4), np.eye(2)[:, 1:] * RNG.random(4)
        scale = np.minimum(1, a.sum(axis=0) / b.sum(axis=0))
        pays = -least(low[1], high[1], -a[1])
        earns = least(low[0], high[0], scale * b[0])
        exact = [[[rational(v) for v in row] for row in m.tolist()] for m in (a, b)]
        found = Boxes(channels)
        assert found.exclude(rational(earns / pays * (1 - 1e-9)), *exact)
        assert not found.exclude(rational(earns / pays * (1 + 1e-9)), *exact)


def test_the_worst_pair_is_that_of_all():
    for inputs, outputs in product((1, 2, 3, 5), (2, 4)):
        for _ in range(6):
            found = Boxes(boxes(inputs, outputs))
            pairs = [
                (found.most[x][y] / r if r else arb.pos_inf())
                for x, other, y in product(range(inputs), range(inputs), range(outputs))
                if x != other and found.most[x][y] > (r := found.least[other][y])
            ]
            place = found.worst()
            assert (place is None) == (not pairs)
            if place is not None:
                x, other, y = place
                r = found.least[other][y]
                assert x != other
                best = found.most[x][y] / r if r else arb.pos_inf()
                assert all(best >= pair for pair in pairs)
                truth = math.log(float(best))
                assert found.epsilon(place) == pytest.approx(truth, abs=1e-12)


def test_equal_rows_and_one_row():
    half = [[0.5, 0.5]] * 2
    assert ends(with_set(half, half, half)) == (0.0, 0.0)
    alone = with_set([[0.25, 0.25]], [[0.75, 0.75]], [[0.5, 0.5]])
    assert ends(alone) == (0.0, 0.0)


def test_outputs_that_may_or_must_be_told():
    may = with_set(
        [[0.75, 0.0], [0.25, 0.5]], [[1.0, 0.25], [0.5, 0.75]], [[0.75, 0.25], [0.5, 0.5]]
    )
    assert ends(may) == (0.0, math.inf)
    must = with_set([[1, 0], [0.25, 0.5]], [[1, 0], [0.5, 0.75]], [[1, 0], [0.5, 0.5]])
    assert ends(must) == (math.inf, math.inf)
    refused(must, {("proof", "level"): 2}, "the proof: it has no level")
    unused = [[0.5, 0.5, 0], [0.25, 0.75, 0]]
    lower, upper = ends(with_set(unused, unused, unused))
    assert lower == 0
    assert upper == pytest.approx(math.log(2))


def test_bounds_that_sum_to_one_but_for_a_rounding():
    """A row is its bounds then: nothing is added to it, and nothing is taken from it."""
    for rows in (
        [[0.5, 0.5000000000001], [0.25, 0.75]],
        [[0.5, 0.4999999999999], [0.25, 0.75]],
    ):
        channels = ChannelSet(rows, rows)
        found = Boxes(channels)
        exact = [[rational(x) for x in row] for row in rows]
        assert found.most == exact
        assert found.least == exact
        parts = with_set(rows, rows, [[0.5, 0.5], [0.25, 0.75]])
        assert ends(parts)[1] == pytest.approx(math.log(2), abs=1e-12)
        for y, sign in product((0, 1), (1, -1)):
            # Output 0 is twice, and output 1 one and a half times as likely; no more than that.
            a, b = [[0, 0], [0, 0]], [[0, 0], [0, 0]]
            b[y][y], a[1 - y][y] = 1, 1
            level = rows[y][y] / rows[1 - y][y] * (1 - sign * 1e-14)
            exact = [[[rational(float(v)) for v in row] for row in m] for m in (a, b)]
            assert found.exclude(rational(level), *exact) == (sign > 0)


def test_fractions_are_counted(monkeypatch):
    """Numbers of different rows are added, so that their common denominator counts."""
    long = [f"1/{2**1000 + 1}", f"1/{2**1000 + 3}"]
    parts = tampered(SET, {("proof", "b"): [long, [0, 0]]})
    monkeypatch.setitem(budget.LIMITS, "ball operations", 11)
    with budget.limited(), pytest.raises(RefusedError, match="more than 11 ball operations"):
        ends(parts)
