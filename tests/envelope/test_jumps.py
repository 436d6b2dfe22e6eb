"""Levels that many ratios meet, loose nodes of the curve, and ties."""

import math

import numpy as np
import pytest

from cvxleak import Status
from cvxleak.envelope import envelope_curve, failure_probability, pml_envelope, tail_average_bound
from cvxleak.envelope.program import Vertex
from cvxleak.envelope.search import largest_level
from cvxleak.envelope.statement import Data
from cvxleak.proofs import verify

PRIOR = [0.801187218083971, 0.10217298828288236, 0.004947625787092744, 0.09169216784605395]
COUNTS = np.array(
    [
        [0, 2, 3, 3, 2, 2, 1, 0],
        [2, 0, 2, 3, 0, 2, 1, 0],
        [2, 3, 3, 0, 0, 1, 0, 1],
        [3, 3, 3, 2, 0, 1, 3, 3],
    ]
)
ROWS = COUNTS / COUNTS.sum(axis=1, keepdims=True)


def test_outputs_at_the_level_are_paid_for():
    rows = [[0.75, 0, 0.25], [0.75, 0.25, 0], [0.4, 0.4, 0.2]]
    bound = failure_probability([0.014, 0.922, 0.064], rows, 0.030321759886389053)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_ends_meet_at_the_jumps(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 6, size=2)
    rows = rng.integers(0, 4, size=(n, m)) + 0.0
    rows[rows.sum(axis=1) == 0] = 1
    weights = rng.integers(1, 1000, size=n)
    data = Data(weights / weights.sum(), rows / rows.sum(axis=1, keepdims=True))
    for jump in np.unique(data.program.jumps):
        for strict, level in ((True, jump * (1 + 1e-12)), (False, jump * (1 - 1e-12))):
            vertex = data.program.solve(float(level), strict=strict)
            assert vertex.bound - vertex.value < 1e-9


def test_curve_is_narrow_where_two_inputs_jump_together():
    curve = envelope_curve(PRIOR, ROWS)
    assert curve.status is Status.CERTIFIED
    lower, upper = curve.at(np.append(np.linspace(0, 1, 5001), 0.06198113847329915))
    assert (upper - lower).max() <= curve.gap <= 1e-6
    frame = curve.to_frame()
    assert list(frame.columns) == ["delta", "lower", "upper"]
    assert (frame["upper"] - frame["lower"]).max() <= curve.gap


@pytest.mark.parametrize("seed", range(8))
def test_gap_is_the_largest_distance_of_the_ends(seed, monkeypatch):
    """With nodes whose lower ends are spoiled, and with few nodes."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(4), size=4)
    program = Data(np.full(4, 0.25), rows).program
    solve = type(program).solve

    def loose(self, level, **options):
        v = solve(self, level, **options)
        keep = 1 - 0.2 * (rng.random() < 0.3)
        masses = v.masses * keep
        return Vertex(
            v.level, v.inputs, v.outputs, masses, v.value * keep, v.multipliers, v.prices, v.bound
        )

    monkeypatch.setattr(type(program), "solve", loose)
    monkeypatch.setattr(
        "cvxleak.envelope.curve.largest_level",
        lambda *_: largest_level(program, 0.9),
    )
    curve = envelope_curve(np.full(4, 0.25), rows, tol=10.0 ** -rng.integers(1, 4))
    lower, upper = curve.at(np.linspace(0, 1, 20_001))
    assert (upper - lower).max() <= curve.gap


def test_level_of_the_envelope_times_delta_does_not_fall():
    """So eps_c has no jumps, and a tie costs what it moves delta by."""
    curve = envelope_curve(PRIOR, ROWS)
    delta = np.linspace(1e-4, 1, 4001)
    lower, upper = curve.at(delta)
    assert (np.log(delta[1:]) + upper[1:] >= np.log(delta[:-1]) + lower[:-1] - 1e-11).all()
    assert math.isclose(curve.plateaus[0, 0], 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_tie_costs_no_more_than_its_logarithm(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 5, size=2)
    prior, rows = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m), size=n)
    delta, tie = rng.uniform(0.01, 1), 10.0 ** -rng.integers(1, 8)
    plain = pml_envelope(prior, rows, delta, tie=0.0)
    tied = pml_envelope(prior, rows, delta, tie=tie)
    assert tied.upper >= plain.lower
    assert tied.lower <= plain.upper - math.log1p(-tie)


@pytest.mark.parametrize("speck", [1e-14, 1e-20, 1e-300])
def test_at_delta_1_an_output_that_hardly_occurs_is_shared_out_too(speck):
    rows = [[0.8 - speck, 0.2, speck], [0.3, 0.7, 0]]
    bound = pml_envelope([0.3, 0.7], rows, 1.0, tie=0.0)
    assert bound.status is Status.CERTIFIED
    assert math.isclose(bound.lower, -math.log(0.55 / 0.7), rel_tol=1e-9)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("rare", [4e-9, 1e-8, 1e-7])
def test_delta_may_be_the_mass_of_an_output(rare):
    """Behind it other symbols gain so little that HiGHS cannot see it."""
    prior = np.array([rare, 0.4, 0.6 - rare])
    rows = np.array([[1, 0, 0], [0, 0.7, 0.3], [0, 0.2, 0.8]])
    bound = pml_envelope(prior, rows, float(prior[0]), tie=0.0)
    assert bound.status is Status.CERTIFIED
    assert math.isclose(bound.upper, -math.log(rare), rel_tol=1e-12)


def test_huge_multipliers_do_not_spoil_the_upper_end():
    prior = [0.6401512232529086, 0.35984877674709137]
    rows = [
        [0.00022864985632467936, 0.0002100841151879093, 5.412493450926925e-07, 0.9995607247791425],
        [0.9999965171780392, 6.3001900680075775e-09, 7.694591977623495e-30, 3.47652177076382e-06],
    ]
    delta = 0.6402920628998116
    bound = pml_envelope(prior, rows, delta)
    assert bound.gap < 1e-7
    assert bound.lower == pytest.approx(0.446049, abs=1e-6)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("seed", range(20))
def test_upper_end_is_never_above_the_tail_average(seed, monkeypatch):
    """Even if no multipliers of the program prove anything."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 5, size=2)
    prior, rows = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m), size=n)
    monkeypatch.setattr(Data, "multipliers", lambda data, vertex: [0.0] * n)
    for delta in (0.0, rng.random(), 1.0):
        bound = pml_envelope(prior, rows, delta)
        assert bound.upper <= float(tail_average_bound(prior, rows, delta)) + 1e-10
        assert verify(bound.certificate).passed


@pytest.mark.parametrize("row", [[0.5, 0.5], [0.2, 0.8], [0.1, 0.3, 0.6]])
def test_nothing_exceeds_zero_exactly_if_the_output_is_independent(row):
    bound = failure_probability([0.3, 0.3, 0.4], [row] * 3, 0.0, tie=0.0)
    assert (bound.lower, bound.upper) == (0, 0)
    assert verify(bound.certificate).passed
    nearly = [*[row] * 2, [row[0] * (1 - 1e-15), *row[1:-1], row[-1] + row[0] * 1e-15]]
    assert failure_probability([0.3, 0.3, 0.4], nearly, 0.0, tie=0.0).upper == 1
