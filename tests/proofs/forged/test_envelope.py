"""Forged certificates of failure probabilities, PML envelopes and mechanisms."""

import math

import flint
import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.proofs.envelope import ExactLaws
from tests.proofs.forging import (
    Parts,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

LOG_2 = math.log(2)
LOG_3_HALVES = math.nextafter(math.log(1.5), 2)
TOLD = {"prior": [0.75, 0.25], "matrix": [[1, 0], [0, 1]]}
THIRD = 1 / 3

FAILURE = Parts(
    "failure-probability",
    {**TOLD, "epsilon": LOG_2, "strict": False},
    {"inputs": [1, 1], "outputs": [1, 0], "weights": [1.0, THIRD - 2.0**-40]},
    {"multipliers": [0.0, 0.5]},
)
ENVELOPE = Parts(
    "pml-envelope",
    {**TOLD, "delta": 0.5},
    {"inputs": [1, 1], "outputs": [1, 0], "weights": [1.0, THIRD + 2.0**-40]},
    {"multipliers": [0.0, 0.5], "level": 2 + 2.0**-40},
)
MECHANISM = Parts(
    "pml-mechanism",
    {"prior": [0.5, 0.5], "utility": [[1, 0], [0, 1]], "epsilon": LOG_3_HALVES},
    {"matrix": [[0.75, 0.25], [0.25, 0.75]]},
    {"multipliers": [[0.5, 0], [0, 0.5]]},
)
PARTS = {"failure": (FAILURE, 0.5), "envelope": (ENVELOPE, LOG_2), "mechanism": (MECHANISM, 0.75)}


@pytest.mark.parametrize("name", PARTS)
def test_honest(name):
    parts, truth = PARTS[name]
    lower, upper = ends(parts)
    assert truth - 1e-11 < lower <= truth + 1e-15
    assert truth - 1e-15 < upper < truth + 1e-11


@pytest.mark.parametrize("name", PARTS)
def test_no_number_proves_too_much(name):
    parts, truth = PARTS[name]
    proves_nothing_false(parts, truth, truth)


def test_ends_are_rounded_outwards():
    # Three outputs of the one input that counts; e^eps between the ratios, so no rounding in mu.
    lower, upper = ends(ENVELOPE)
    ratio = 1 / (fmpq(1, 4) + fmpq(3, 4) * fmpq(*ENVELOPE.witness["weights"][1].as_integer_ratio()))
    with flint.ctx.workprec(300):
        assert arb(lower) < arb(ratio).log()
        assert arb(upper) > (2 + arb(2) ** -40).log()
    # At most e^eps p(x) of everything: the value of the witness is a float below the exact one.
    third = tampered(
        MECHANISM,
        {
            ("problem", "utility"): [[1, 0], [0, 0]],
            ("problem", "prior"): [2.0, 1.0],
            ("witness", "matrix"): [[0.5, 0.5], [0.5, 0.5]],
        },
    )
    low, high = ends(third)
    assert fmpq(*low.as_integer_ratio()) < fmpq(1, 3)
    assert high >= 2 / 3


def test_at_the_borders():
    for epsilon, strict, value in [
        (-1.0, False, 1.0),
        (0.0, False, 1.0),
        (-1.0, True, 1.0),
        (2001.0, False, 0.0),
        (2001.0, True, 0.0),
    ]:
        parts = tampered(FAILURE, {("problem", "epsilon"): epsilon, ("problem", "strict"): strict})
        assert ends(parts) == (value, value)
    # More than 0 leaks with positive probability unless all rows are the same law.
    strict = {("problem", "epsilon"): 0.0, ("problem", "strict"): True}
    assert ends(tampered(FAILURE, strict))[1] > 0
    even = {("problem", "matrix"): [[1, 1], [2, 2]], ("witness", "weights"): [0.5, 0.5]}
    assert ends(tampered(FAILURE, {**strict, **even})) == (0.0, 0.0)
    most = tampered(FAILURE, {("problem", "epsilon"): 2000.0, ("witness", "weights"): [1.0, 0.0]})
    assert ends(most) == (0.0, 0.0)
    assert ends(tampered(FAILURE, {("proof", "multipliers"): [0.0, 0.0]}))[1] == 1.0
    assert ends(tampered(FAILURE, {("proof", "multipliers"): [0.0, 1e6]}))[1] == 1.0


def test_symbols_below_the_level_do_not_count():
    # All of output 0 in the symbol: its ratio is 1, below e^eps.
    assert ends(tampered(FAILURE, {("witness", "weights", 1): 1.0}))[0] == 0.0
    assert ends(tampered(FAILURE, {("witness", "weights", 1): THIRD + 2.0**-40}))[0] == 0.0
    assert ends(tampered(FAILURE, {("witness", "weights"): [0.5, 0.0]}))[0] == pytest.approx(0.125)
    empty = {"inputs": [], "outputs": [], "weights": []}
    assert ends(FAILURE._replace(witness=empty))[0] == 0.0


def test_envelopes_take_the_best_symbols_first():
    """Mass 1/4 leaks log 4; all of it together at least what the last symbol needed leaks."""
    both = {"inputs": [0, 1], "outputs": [0, 1], "weights": [1.0, 1.0]}
    for witness in (both, {key: value[::-1] for key, value in both.items()}):
        parts = ENVELOPE._replace(witness=witness)
        for delta, leak in ((0.25 - 2.0**-20, 4), (0.25 + 2.0**-20, 4 / 3), (1.0, 4 / 3)):
            found = ends(tampered(parts, {("problem", "delta"): delta}))[0]
            assert found == pytest.approx(math.log(leak), abs=1e-12)
    # What is not shared out leaves no symbol for all of the mass.
    for witness in (
        {"inputs": [0, 1], "outputs": [0, 1], "weights": [1.0, 0.5]},
        {"inputs": [1], "outputs": [1], "weights": [1.0]},
    ):
        parts = tampered(ENVELOPE._replace(witness=witness), {("problem", "delta"): 1.0})
        assert ends(parts)[0] == 0.0
    # Outputs that cannot occur need not be shared out.
    wide = tampered(
        ENVELOPE._replace(witness=both),
        {("problem", "matrix"): [[1, 0, 0], [0, 1, 0]], ("problem", "delta"): 1.0},
    )
    assert ends(wide)[0] == pytest.approx(math.log(4 / 3), abs=1e-12)
    level = {("proof", "level"): 1.9}
    assert ends(tampered(ENVELOPE, level))[1] == math.inf
    # A bound of just delta is not below it.
    just = {("proof", "level"): 2.0, ("proof", "multipliers"): [0.0, 0.5]}
    assert ends(tampered(ENVELOPE, just))[1] == math.inf
    # At delta = 0 a level that nothing reaches.
    zero = {("problem", "delta"): 0.0}
    assert ends(tampered(ENVELOPE, {**zero, ("proof", "level"): 4.5}))[1] == pytest.approx(
        math.log(4.5)
    )
    assert ends(tampered(ENVELOPE, {**zero, ("proof", "level"): 3.5}))[1] == math.inf
    assert ends(tampered(ENVELOPE, {("proof", "level"): 0.5, ("problem", "delta"): 1.0}))[1] >= 0


FORGED = [
    (FAILURE, {("problem", "strict"): 0}, "strict: expected true or false"),
    (FAILURE, {("problem", "note"): 0}, "the problem: it has no note"),
    (FAILURE, {("witness", "note"): 0}, "the witness: it has no note"),
    (FAILURE, {("proof", "note"): 0}, "the proof: it has no note"),
    (FAILURE, {("problem", "prior"): [1.5, -0.5]}, "the prior: expected non-negative"),
    (FAILURE, {("problem", "prior"): [0.0, 0.0]}, "a distribution must not sum to zero"),
    (FAILURE, {("problem", "prior"): []}, "the prior: expected non-negative numbers"),
    (FAILURE, {("problem", "matrix"): [[1, 0]]}, "one row for each outcome"),
    (FAILURE, {("problem", "matrix"): [[1, 0], [0, 1], [0, 1]]}, "one row for each outcome"),
    (FAILURE, {("problem", "matrix"): {"0": 1, "1": 2}}, "one row for each outcome"),
    (FAILURE, {("problem", "matrix"): [[1, 0], [0, 0]]}, "a distribution must not sum to zero"),
    (FAILURE, {("problem", "matrix"): [[1, 0], [2, -1]]}, "the channel: expected non-negative"),
    (FAILURE, {("problem", "matrix"): [[1, 0], [1]]}, "a row: expected a list of 2"),
    (FAILURE, {("witness", "weights"): [1.0, -0.25]}, "the weights: expected non-negative"),
    (FAILURE, {("witness", "inputs"): [1, 2]}, "input 2 cannot occur"),
    (FAILURE, {("witness", "outputs"): [1, 2]}, "there is no output 2"),
    (FAILURE, {("witness", "outputs"): [1, -1]}, r": found -?\d"),
    (FAILURE, {("witness", "inputs"): [1]}, "as many inputs and outputs as weights"),
    (FAILURE, {("witness", "outputs"): [1]}, "as many inputs and outputs as weights"),
    (FAILURE, {("witness", "outputs"): [1, 0, 0]}, "as many inputs and outputs as weights"),
    (FAILURE, {("witness", "inputs"): [1, 1, 1]}, "as many inputs and outputs as weights"),
    (FAILURE, {("witness", "inputs"): {"0": 1, "1": 1}}, "the witness: expected lists"),
    (FAILURE, {("witness", "outputs"): {"0": 1, "1": 1}}, "the witness: expected lists"),
    (FAILURE, {("witness", "outputs"): [1, 1]}, "an output is used more than once"),
    (FAILURE, {("witness", "weights"): [1.0 + 2.0**-50, 0.0]}, "used more than once"),
    (FAILURE, {("proof", "multipliers"): [0.0, -0.5]}, "the multipliers: expected non-negative"),
    (FAILURE, {("proof", "multipliers"): [0.5]}, "the multipliers: expected a list of 2"),
    (ENVELOPE, {("problem", "delta"): -0.25}, r"delta must be in \[0, 1\]"),
    (ENVELOPE, {("problem", "delta"): 1.25}, r"delta must be in \[0, 1\]"),
    (ENVELOPE, {("proof", "level"): 0.0}, "and the level positive"),
    (ENVELOPE, {("proof", "level"): -1.0}, "and the level positive"),
    (ENVELOPE, {("problem", "note"): 0}, "the problem: it has no note"),
    (ENVELOPE, {("proof", "note"): 0}, "the proof: it has no note"),
    (MECHANISM, {("problem", "epsilon"): -0.25}, r"epsilon must be in \[0, 2000\]"),
    (MECHANISM, {("problem", "epsilon"): 2001.0}, r"epsilon must be in \[0, 2000\]"),
    (MECHANISM, {("problem", "epsilon"): 0.4}, "the witness leaks more than epsilon"),
    (MECHANISM, {("witness", "matrix"): [[1, 0], [0.5, 0.5]]}, "leaks more than epsilon"),
    (MECHANISM, {("proof", "multipliers", 0, 1): -0.25}, "must not be negative"),
    (MECHANISM, {("proof", "multipliers"): [[0.5, 0.0]]}, "the multipliers: expected 2 rows"),
    (MECHANISM, {("proof", "multipliers"): {"0": 1, "1": 2}}, "the multipliers: expected 2 rows"),
    (MECHANISM, {("problem", "utility"): [[1, 0]] * 3}, "the utility: expected 2 rows"),
    (MECHANISM, {("problem", "utility"): [[1], [0]]}, "the utility: expected a list of 2"),
    (MECHANISM, {("problem", "note"): 0}, "the problem: it has no note"),
    (MECHANISM, {("witness", "note"): 0}, "the witness: it has no note"),
    (MECHANISM, {("proof", "note"): 0}, "the proof: it has no note"),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), FORGED)
def test_forged(parts, changes, reason):
    refused(parts, changes, reason)


def test_equal_rows_leak_nothing_at_epsilon_0():
    even = {("problem", "epsilon"): 0.0, ("witness", "matrix"): [[3, 1], [3, 1]]}
    lower, upper = ends(tampered(MECHANISM, even))
    assert lower == 0.5 <= upper
    uneven = {("problem", "epsilon"): 0.0, ("witness", "matrix"): [[3, 1], [1, 3]]}
    refused(MECHANISM, uneven, "leaks more than epsilon")


def test_inputs_of_probability_zero_do_not_count():
    parts = tampered(
        MECHANISM,
        {
            ("problem", "prior"): [0.5, 0.5, 0.0],
            ("problem", "utility"): [[1, 0], [0, 1], [9, 9]],
            ("witness", "matrix"): [[0.75, 0.25], [0.25, 0.75], [1, 0]],
            ("proof", "multipliers"): [[0.5, 0], [0, 0.5], [7, 7]],
        },
    )
    lower, upper = ends(parts)
    assert lower == 0.75
    assert upper == pytest.approx(0.75, abs=1e-12)
    cannot = tampered(
        FAILURE,
        {
            ("problem", "prior"): [0.75, 0.25, 0.0],
            ("problem", "matrix"): [[1, 0], [0, 1], [1, 0]],
            ("proof", "multipliers"): [0.0, 0.5, 3.0],
        },
    )
    assert ends(cannot)[1] == pytest.approx(0.5, abs=1e-12)
    refused(cannot, {("witness", "inputs"): [1, 2]}, "input 2 cannot occur")


def test_laws_in_integers_hold_the_exact_ones():
    rng = np.random.default_rng(2)
    for _ in range(20):
        prior = (rng.random(3) * 2.0 ** rng.integers(-30, 30, 3)).tolist()
        matrix = (rng.random((3, 4)) * 2.0 ** rng.integers(-30, 30, (3, 4))).tolist()
        laws = ExactLaws({"prior": prior, "matrix": matrix})
        p = [fmpq(*x.as_integer_ratio()) for x in prior]
        p = [x / sum(p, fmpq(0)) for x in p]
        rows = [[fmpq(*x.as_integer_ratio()) for x in row] for row in matrix]
        rows = [[x / sum(row, fmpq(0)) for x in row] for row in rows]
        for y in range(4):
            exact = sum((a * row[y] for a, row in zip(p, rows, strict=True)), fmpq(0))
            low, high = (fmpq(int(x[y])) / fmpq(2) ** laws.scale for x in (laws.low, laws.high))
            assert low <= exact <= high
            assert high - low <= exact * fmpq(1, 2**100)
    assert ExactLaws({"prior": [1, 1], "matrix": [[1, 3], [0.25, 0.75]]}).is_constant
    assert not ExactLaws({"prior": [1, 1], "matrix": [[1, 3], [0.25, 0.5]]}).is_constant
    assert not ExactLaws({"prior": [1, 1], "matrix": [[0, 1], [1, 1]]}).is_constant


def test_a_failure_probability_of_several_inputs():
    """The largest of all inputs that reach e^eps counts, output by output."""
    parts = Parts(
        "failure-probability",
        {
            "prior": [0.25, 0.25, 0.5],
            "matrix": np.eye(3).tolist(),
            "epsilon": LOG_2,
            "strict": True,
        },
        {"inputs": [0, 1], "outputs": [0, 1], "weights": [1.0, 1.0]},
        {"multipliers": [0.0, 0.0, 0.0]},
    )
    assert ends(parts)[0] == 0.5
    proves_nothing_false(parts, ends(parts)[0], 1.0, where=("proof",))
    both = tampered(parts, {("proof", "multipliers"): [0.5, 0.5, 0.0]})
    lower, upper = ends(both)
    assert 0.5 == lower <= upper


def test_all_that_is_shared_out_has_mass_one():
    """P(y) is rounded down, and all symbols together still have all of the mass."""
    parts = Parts(
        "pml-envelope",
        {"prior": [4.0, 1.0, 2.0], "matrix": np.eye(3).tolist(), "delta": 1.0},
        {"inputs": [0, 1, 2], "outputs": [0, 1, 2], "weights": [1.0, 1.0, 1.0]},
        {"multipliers": [0.0, 0.0, 0.0], "level": 8.0},
    )
    lower, _ = ends(parts)
    assert lower == pytest.approx(math.log(7 / 4), abs=1e-12)
    assert ends(tampered(parts, {("witness", "weights"): [1.0, 1.0, 0.5]}))[0] == 0.0
    with flint.ctx.workprec(300):
        assert arb(lower) < (arb(7) / 4).log()


def test_rows_that_are_larger_throughout_are_not_the_same_law():
    larger = {("problem", "epsilon"): 0.0, ("witness", "matrix"): [[1, 1], [3, 1]]}
    refused(MECHANISM, larger, "leaks more than epsilon")
