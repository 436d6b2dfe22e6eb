"""Forged certificates of capacities."""

import math

import pytest
from flint import arb

from tests.proofs.forging import (
    Parts,
    encloses,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

LEVEL = 0.13081203594113694
ROWS = [[0.75, 0.25], [0.25, 0.75]]


def least() -> arb:
    return arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()


CAPACITY = Parts("capacity", {"matrix": ROWS}, {"input": [0.5, 0.5]}, {"output": [0.5, 0.5]})
WIDE = Parts(
    "capacity",
    {"matrix": [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]},
    {"input": [0.5, 0.5, 0.0]},
    {"output": [0.5, 0.5, 0.0]},
)


PARTS = {"capacity": CAPACITY, "wide": WIDE}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_honest(parts):
    encloses(parts, least)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_no_number_proves_too_much(parts):
    proves_nothing_false(parts, LEVEL, LEVEL)


FORGED = [
    (CAPACITY, {("problem", "matrix"): {"0": [1]}}, "the matrix is not a list of rows"),
    (CAPACITY, {("problem", "note"): 1}, "the problem: expected the parts"),
    (CAPACITY, {("witness", "note"): 1}, "the witness: expected the parts"),
    (CAPACITY, {("proof", "note"): 1}, "the proof: expected the parts"),
    (CAPACITY, {("witness", "input"): [1.0]}, "the input: expected a list of 2"),
    (CAPACITY, {("witness", "input"): [1.5, -0.5]}, "finite and non-negative"),
    (CAPACITY, {("proof", "output"): [1.5, -0.5]}, "finite and non-negative"),
    (CAPACITY, {("proof", "output"): [0.5, 0.25, 0.25]}, "a row of the matrix: expected a list of"),
    (CAPACITY, {("problem", "matrix", 0): [1.5, -0.5]}, "finite and non-negative"),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), FORGED)
def test_forged(parts, changes, reason):
    refused(parts, changes, reason)


def test_an_output_law_that_misses_an_output_proves_nothing():
    assert ends(tampered(CAPACITY, {("proof", "output"): [1.0, 0.0]}))[1] == math.inf


def test_the_largest_divergence_counts():
    for output in ([0.75, 0.25], [0.25, 0.75]):
        upper = ends(tampered(CAPACITY, {("proof", "output"): output}))[1]
        assert upper == pytest.approx(0.5 * math.log(3), abs=1e-12)
