"""Forged certificates of Rényi capacities."""

import math

import pytest
from flint import arb

from tests.proofs.forging import Parts, encloses, ends, proves_nothing_false, refused, tampered

ROWS = [[0.75, 0.25], [0.25, 0.75]]
ORDERS = [0.5, 1, 2, "inf"]


def least(alpha) -> arb:
    """Return the capacity of the symmetric channel `ROWS` in closed form."""
    if alpha == "inf":
        return arb(3).log() - arb(2).log()
    a, b = arb("0.25"), arb("0.75")
    if alpha == 1:
        return arb(2).log() + a * a.log() + b * b.log()
    order = arb(alpha)
    return arb(2).log() + (a**order + b**order).log() / (order - 1)


def symmetric(alpha) -> Parts:
    return Parts(
        "renyi-capacity",
        {"matrix": ROWS, "alpha": alpha},
        {"input": [0.5, 0.5]},
        {"output": [0.5, 0.5]},
    )


def wide(alpha) -> Parts:
    """Return the same with an output, and an input, that are of no use."""
    return Parts(
        "renyi-capacity",
        {"matrix": [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.5, 0.5, 0.0]], "alpha": alpha},
        {"input": [0.5, 0.5, 0.0]},
        {"output": [0.5, 0.5, 0.0]},
    )


CASES = [(make(alpha), alpha) for alpha in ORDERS for make in (symmetric, wide)]


@pytest.mark.parametrize(("parts", "alpha"), CASES)
def test_honest(parts, alpha):
    encloses(parts, lambda: least(alpha))


@pytest.mark.parametrize("alpha", ORDERS)
def test_an_input_that_is_not_used_tells_nothing(alpha):
    assert ends(tampered(symmetric(alpha), {("witness", "input"): [1.0, 0.0]}))[0] == 0


@pytest.mark.parametrize(("parts", "alpha"), CASES)
def test_no_number_proves_too_much(parts, alpha):
    level = float(least(alpha))
    proves_nothing_false(parts, level, level)


@pytest.mark.parametrize("alpha", [0.5, 2, "inf"])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({("problem", "matrix"): {"0": [1]}}, "the matrix is not a list of rows"),
        ({("problem", "note"): 1}, "the problem: expected the parts"),
        ({("witness", "note"): 1}, "the witness: expected the parts"),
        ({("proof", "note"): 1}, "the proof: expected the parts"),
        ({("problem", "alpha"): 0}, "alpha must be positive"),
        ({("problem", "alpha"): -1.0}, "alpha must be positive"),
        ({("problem", "alpha"): "-inf"}, "alpha: expected a number"),
        ({("problem", "alpha"): True}, "alpha: expected a number"),
        ({("witness", "input"): [1.0]}, "the input: expected a list of 2"),
        ({("witness", "input"): [1.5, -0.5]}, "finite and non-negative"),
        ({("proof", "output"): [1.5, -0.5]}, "finite and non-negative"),
        ({("proof", "output"): [0.5, 0.25, 0.25]}, "a row of the matrix: expected a list of 3"),
        ({("problem", "matrix", 0): [1.5, -0.5]}, "finite and non-negative"),
    ],
)
def test_forged(alpha, changes, reason):
    refused(symmetric(alpha), changes, reason)


@pytest.mark.parametrize("alpha", ORDERS)
def test_an_output_law_that_misses_an_output(alpha):
    """Above order 1 it proves nothing; below, only what it shares with each row counts."""
    upper = ends(tampered(symmetric(alpha), {("proof", "output"): [1.0, 0.0]}))[1]
    if alpha == 0.5:
        assert upper == pytest.approx(math.log(4), abs=1e-12)
    else:
        assert upper == math.inf
    told = {("problem", "matrix"): [[1.0, 0.0], [0.0, 1.0]]}
    assert ends(tampered(symmetric(alpha), told)) == pytest.approx((math.log(2),) * 2)
    apart = tampered(symmetric(alpha), {**told, ("proof", "output"): [1.0, 0.0]})
    assert ends(apart)[1] == math.inf


def test_an_order_that_only_its_float_makes_one():
    """A hair above 1 an output law that misses an output proves nothing; a hair below, it does."""
    above, below = f"{10**20 + 1}/{10**20}", f"{10**20 - 1}/{10**20}"
    for order in (above, below):
        lower, upper = ends(tampered(symmetric(2), {("problem", "alpha"): order}))
        assert lower == pytest.approx(float(least(1)), abs=1e-9)
        assert upper == pytest.approx(float(least(1)), abs=1e-9)
    missing = {("proof", "output"): [1.0, 0.0]}
    assert ends(tampered(symmetric(2), {("problem", "alpha"): above, **missing}))[1] == math.inf
    assert ends(tampered(symmetric(2), {("problem", "alpha"): below, **missing}))[1] > 1


@pytest.mark.parametrize("alpha", ORDERS)
def test_the_farthest_row_counts(alpha):
    level = float(least(alpha))
    for output in ([0.75, 0.25], [0.25, 0.75]):
        assert ends(tampered(symmetric(alpha), {("proof", "output"): output}))[1] > level + 0.1


@pytest.mark.parametrize("alpha", ORDERS)
def test_equal_rows_tell_nothing(alpha):
    rows = {("problem", "matrix"): [[0.5, 0.5], [0.5, 0.5]]}
    lower, upper = ends(tampered(symmetric(alpha), rows))
    assert lower == 0.0
    assert 0.0 <= upper < 1e-12
