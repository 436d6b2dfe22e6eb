"""Forged certificates of outputs with bounded densities: each bound against its formula."""

import math

import numpy as np
import pytest
from flint import arb
from scipy.special import rel_entr

from cvxleak.exact.packing import pack
from cvxleak.model import BoundedDensity, ChannelSet, Mechanism
from cvxleak.proofs import record_leakage
from cvxleak.proofs.bounds import noise as bounds
from cvxleak.queries import count
from tests.proofs.forging import Parts, ends, proves_nothing_false, refused, tampered

ROWS = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
LOG_2 = math.log(2)

pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def output(moves, off=0.0):
    return BoundedDensity(ChannelSet(ROWS - off, ROWS + off), moves)


def excess(moves, off=0.0, size=2):
    known = output(moves, off)
    return float(
        bounds.excess_of_cells(
            bounds.bounded_masses(known), bounds.bounded_costs(known), size
        ).upper()
    )


def test_excess_is_its_formula():
    assert excess(np.zeros((2, 3))) == 0
    assert excess([[0, 1, 0], [0, 0.5, 0]]) == pytest.approx(0.25 / 8)
    assert excess([[0.5, 0, 1], [0, 0, 0.5]]) == pytest.approx(0.5 / 4 / 8 + 0.25 / 8)
    # Where log|A| is less, or nothing is known, it counts, for all values alike.
    assert excess([[0, 9, 0], [0, 0, 0]]) == pytest.approx(0.25 * LOG_2)
    assert excess([[0, 0, 0], [0, 0, math.inf]], size=3) == pytest.approx(0.5 * math.log(3))
    assert excess([[0, 1, 0], [0, 0, 0]], off=0.125) == pytest.approx(0.375 / 8)


def test_masses_are_between_what_is_given():
    for row, ball_row in zip(
        ROWS, bounds.bounded_masses(output(np.zeros((2, 3)), 0.125)), strict=True
    ):
        for p, ball in zip(row, ball_row, strict=True):
            for end in (p - 0.125, p, p + 0.125):
                assert ball.contains(arb(end))
            assert ball.rad() < 0.1250001


def test_the_place_in_a_cell_tells_no_more_than_the_excess():
    rng = np.random.default_rng(0)
    for _ in range(50):
        # Any densities on 3 cells of 40 points, with a g in common.
        common = rng.normal(size=(3, 40))
        moved = rng.uniform(0, 2, size=(4, 3, 1)) * rng.uniform(-0.5, 0.5, size=(4, 3, 40))
        density = np.exp(common + moved)
        density /= density.sum(axis=(1, 2), keepdims=True)
        masses = density.sum(axis=2)
        known = BoundedDensity(
            ChannelSet(np.maximum(masses - 1e-12, 0), masses + 1e-12), np.ptp(moved, axis=2) + 1e-12
        )
        bound = float(
            bounds.excess_of_cells(bounds.bounded_masses(known), bounds.bounded_costs(known), 4)
        )
        law = rng.dirichlet(np.ones(4))
        real = np.array([f.ravel() for f in density])
        told = [law @ rel_entr(rows, law @ rows).sum(axis=1) for rows in (real, masses)]
        assert told[0] - told[1] <= bound
        assert bound < 0.5


def audit(off=0.0, rows=ROWS, **changes):
    t = ROWS.mean(axis=0)
    entry = {"multipliers": pack(np.array([0.0, 1.0])), "output": pack(t)}
    noise = output([[0.5, 0, 1], [0, 0.25, 0.5]], off)
    proof = {"groups": [{"records": [0], "dataset": entry}], "channel": pack(rows), **changes}
    problem = {
        "mechanism": Mechanism(count(1), noise).to_dict(),
        "entropy_floor": 0.0,
        "size": 1,
        "records": None,
    }
    return Parts("record-leakage", problem, {"records": [0], "weights": [0.5, 0.5]}, proof)


CELLS = rel_entr(ROWS, ROWS.mean(axis=0)).sum() / 2
EXCESS = 0.5 / 4 / 8 + 0.25 / 8


def test_an_honest_certificate_proves_both_ends():
    assert record_leakage.about(audit().problem).endswith("; for the number with its noise")
    lower, upper = ends(audit())
    assert lower == pytest.approx(CELLS, abs=1e-12)
    assert upper == pytest.approx(CELLS + EXCESS, abs=1e-12)
    slack = float(bounds.slack_of_distance(arb(0.75 * 0.002), 2))
    lower, upper = ends(audit(off=0.001))
    assert lower == pytest.approx(CELLS - slack, abs=1e-9)
    assert upper == pytest.approx(CELLS + slack + EXCESS + 0.001 * 1.25 / 8, abs=1e-9)


def test_no_other_number_proves_what_is_not_true():
    proves_nothing_false(audit(), CELLS, CELLS + EXCESS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({("proof", "channel"): pack(np.full((2, 2), 0.5))}, "shape"),
        ({("proof", "edges"): pack(np.array([0.5, 1.5]))}, "edges"),
        ({("problem", "mechanism", "noise", "kind"): "gaussian"}, "missing keys"),
        ({("problem", "mechanism", "noise", "oscillation", 0): [0.5, 0]}, "oscillation"),
        ({("problem", "mechanism", "noise", "oscillation", 0, 0): -1.0}, "oscillation: found -1"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    refused(audit(), changes, message)


def test_a_channel_that_is_off_widens_both_ends():
    off = ROWS + np.array([[-0.125, 0.125, 0]] * 2)
    lower, upper = ends(tampered(audit(), {("proof", "channel"): pack(off)}))
    assert lower == 0 or lower < CELLS
    assert upper > CELLS + EXCESS
