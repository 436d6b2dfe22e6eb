"""Leakage curves: monotone, each bracket proved, and settled by its neighbors where it can be."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import entr

from cvxleak.audit import RecordLeakage, record_leakage
from cvxleak.audit.curve import LeakageCurve, leakage_curve
from cvxleak.audit.worst_adversary.audit import Audit
from cvxleak.core.errors import InfeasibleError, SolveInterrupted, ValidationError
from cvxleak.mechanisms import binary_symmetric, random_rounding, truncated_geometric
from cvxleak.model import (
    Expectation,
    Guess,
    KnownMarginals,
    Mechanism,
    RecordSpace,
    RelativeEntropyBall,
)
from cvxleak.model.knowledge.violations import violations_of_prior
from cvxleak.problem.bound import Status
from cvxleak.proofs import read_certificates, verify
from cvxleak.queries import count, parity

LOG2 = math.log(2)


def h(p: float) -> float:
    return float(entr([p, 1 - p]).sum())


def parity_leakage(n: int, flip: float, floor: float) -> float:
    rest = floor - (n - 1) * LOG2
    if rest <= 0:
        return LOG2 - h(flip)
    alpha = brentq(lambda a: h(a) - rest, 0, 0.5) if rest < LOG2 else 0.5
    return LOG2 - h(alpha * (1 - flip) + (1 - alpha) * flip)


def test_the_curve_of_parity_is_the_closed_form():
    floors = np.linspace(0, 4 * LOG2, 25)
    curve = leakage_curve(Mechanism(parity(4), binary_symmetric(0.2)), floors)
    for b, bound in zip(floors, curve.bounds, strict=True):
        exact = parity_leakage(4, 0.2, b)
        assert bound.lower <= exact + 1e-9
        assert bound.upper >= exact - 1e-9
        assert bound.gap <= max(1e-4 * bound.upper, 1e-7)
        assert verify(bound.certificate).passed
    # The plateau, 19 of 25 floors, takes few audits: its ends settle what lies between.
    assert sum(curve.solved[:18]) <= 3


@pytest.fixture(scope="module")
def curve() -> LeakageCurve:
    mechanism = Mechanism(count(3), truncated_geometric(3, 1.0))
    return leakage_curve(mechanism, np.linspace(0, 3 * LOG2, 12), tol=1e-2)


def test_the_ends_do_not_rise(curve):
    assert np.all(np.diff(curve.lower) <= 0)
    assert np.all(np.diff(curve.upper) <= 0)
    assert all(bound.status is Status.CERTIFIED for bound in curve.bounds)


def test_the_brackets_meet_those_of_single_audits(curve):
    mechanism = Mechanism(count(3), truncated_geometric(3, 1.0))
    for b, bound in zip(curve.entropy_floors, curve.bounds, strict=True):
        single = record_leakage(mechanism, b, tol=1e-3)
        assert bound.lower <= single.upper
        assert bound.upper >= single.lower


def test_each_floor_has_a_witness_and_a_certificate_of_its_own(curve, tmp_path):
    for b, bound in zip(curve.entropy_floors, curve.bounds, strict=True):
        assert bound.witness.entropy >= b - 1e-9
        assert bound.witness.leakage == pytest.approx(bound.lower, abs=1e-9)
        assert bound.certificate.problem["entropy_floor"] == pytest.approx(b, abs=1e-12)
        verification = verify(bound.certificate)
        assert verification.passed, verification.reason
    path = tmp_path / "curve.json"
    curve.save(path)
    assert len(read_certificates(path)) == len(curve.bounds)


def test_ends_taken_from_neighbors_are_proved_for_the_floor_in_between():
    # With no time for a search the audits are rough, and monotonicity does the rest.
    mechanism = Mechanism(count(6), random_rounding(6, 3))
    floors = np.linspace(2.5, 6 * LOG2, 9)
    rough = leakage_curve(mechanism, floors, time_limit=0.0)
    assert np.all(np.diff(rough.lower) <= 0)
    assert np.all(np.diff(rough.upper) <= 0)
    for b, bound in zip(floors, rough.bounds, strict=True):
        assert verify(bound.certificate).passed
        assert bound.certificate.problem["entropy_floor"] == pytest.approx(b, abs=1e-12)
        assert bound.lower <= record_leakage(mechanism, b, tol=1e-2).upper


def unequal_records() -> Mechanism:
    rows = np.random.default_rng(5).dirichlet(np.ones(3), size=8)
    return Mechanism.from_channel(RecordSpace.binary(3), rows)


@pytest.mark.parametrize("tol", [1e-3, pytest.param(1e-7, marks=pytest.mark.slow)])
def test_records_of_different_kinds_share_the_curve(tol):
    mechanism = unequal_records()
    floors = np.linspace(0.2, 3 * LOG2, 7)
    curve = leakage_curve(mechanism, floors, tol=tol)
    for b, bound in zip(floors.tolist(), curve.bounds, strict=True):
        assert bound.status is Status.CERTIFIED
        verification = verify(bound.certificate)
        assert verification.passed, verification.reason
        for record in range(3):
            assert record_leakage(mechanism, b, record, tol=1e-2).lower <= bound.upper
        single = record_leakage(mechanism, b, tol=1e-3)
        assert bound.lower <= single.upper
        assert single.lower <= bound.upper


def test_records_of_three_values():
    rng = np.random.default_rng(20261120)
    rows = np.concatenate([rng.dirichlet(np.ones(3), size=4) for _ in range(3)])
    mechanism = Mechanism.from_channel(RecordSpace([range(3), range(4)]), rows)
    floors = [0.9, 1.2, 1.9, 2.3]
    curve = leakage_curve(mechanism, floors, 1)
    for b, bound in zip(floors, curve.bounds, strict=True):
        assert bound.status is Status.CERTIFIED
        assert bound.certificate is not None
        answer = verify(bound.certificate)
        assert answer.passed
        assert ("choices" if b == 0.9 else "share") in answer.rules["upper"]
        single = record_leakage(mechanism, b, 1)
        assert single.lower <= bound.upper
        assert bound.lower <= single.upper


def test_a_curve_ends():
    mechanism = Mechanism(count(3), truncated_geometric(3, 1.0))
    floors = np.linspace(0.0, mechanism.space.max_entropy, 50)
    curve = leakage_curve(mechanism, floors, 0)
    assert all(bound.status is Status.CERTIFIED for bound in curve.bounds)
    # What was found at the floors next to it settles many a floor.
    assert sum(curve.solved) < 40


def test_an_interrupt_ends_the_curve_with_the_brackets_reached(monkeypatch):
    advance, seen = Audit.advance, []

    def interrupted(self, *args):
        seen.append(self)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return advance(self, *args)

    monkeypatch.setattr(Audit, "advance", interrupted)
    floors = np.linspace(0.2, 3 * LOG2, 5)
    with pytest.raises(SolveInterrupted) as caught:
        leakage_curve(unequal_records(), floors, tol=1e-3)
    curve = caught.value.bound
    assert any(bound.status is Status.BRACKETED for bound in curve.bounds)
    for bound in curve.bounds:
        assert bound.lower <= bound.upper <= LOG2 + 1e-15
        assert verify(bound.certificate).passed


def test_a_bracket_of_the_curve_can_be_refined():
    mechanism = Mechanism(count(3), truncated_geometric(3, 1.0))
    bound = leakage_curve(mechanism, [1.2, 1.5], tol=1e-2).bounds[1]
    finer = bound.refine(1e-4)
    assert finer.gap <= 1e-4 * finer.upper < bound.gap
    assert verify(finer.certificate).passed


def test_one_floor_and_one_record():
    mechanism = Mechanism(count(3), random_rounding(3, 3))
    (bound,) = leakage_curve(mechanism, [1.5], records=0).bounds
    single = record_leakage(mechanism, 1.5, records=0)
    assert (bound.lower, bound.upper) == (single.lower, single.upper)


CLASSES = {
    "marginals": (KnownMarginals([0.8, 0.2]),),
    "ball": (RelativeEntropyBall(0.05, laws=[0.6, 0.4]),),
    "both": (
        RelativeEntropyBall(0.4, laws=[0.7, 0.3]),
        Expectation(lambda x, y: x * y, records=(0, 1), at_most=0.1),
    ),
}


FLOORS = np.linspace(0.0, 1.4, 3)


@cache
def without_knowledge():
    return leakage_curve(Mechanism(count(3), random_rounding(3, 3)), FLOORS, tol=1e-2)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "both" else name for name in CLASSES],
)
def test_what_is_known_of_adversaries_holds_along_the_curve(name):
    mechanism = Mechanism(count(3), random_rounding(3, 3))
    known = CLASSES[name]
    # Also from an iterator, which can be read only once.
    curve = leakage_curve(mechanism, FLOORS, adversaries=iter(known), tol=1e-2)
    assert np.all(np.diff(curve.lower) <= 0)
    assert np.all(np.diff(curve.upper) <= 0)
    free = without_knowledge()
    assert np.all(curve.lower <= free.upper)
    assert curve.upper[0] < free.lower[0] - 1e-3
    for b, bound in zip(FLOORS.tolist(), curve.bounds, strict=True):
        assert bound.status is Status.CERTIFIED
        verification = verify(bound.certificate)
        assert verification.passed, verification.reason
        assert bound.certificate.problem["entropy_floor"] == pytest.approx(b, abs=1e-12)
        assert bound.witness.entropy >= b - 1e-9
        prior = bound.witness.expand().probabilities.reshape(mechanism.space.shape)
        for one in bound.witness.adversaries:
            assert max(violations_of_prior([one], mechanism.query, prior).values()) <= 1e-9
        single = record_leakage(mechanism, b, adversaries=known, tol=1e-2)
        assert bound.lower <= single.upper
        assert single.lower <= bound.upper
    # Who is known too well has no doubt to spare.
    with pytest.raises(InfeasibleError, match="no prior"):
        leakage_curve(mechanism, [0.0, 3 * LOG2 - 1e-6], adversaries=known)


@pytest.mark.parametrize("known", [None, KnownMarginals([0.7, 0.3])])
def test_a_group_of_records(known):
    mechanism = Mechanism(parity(2), binary_symmetric(0.1))
    floors = [0.5, 1.0]
    curve = leakage_curve(mechanism, floors, records=(0, 1), adversaries=known, tol=1e-2)
    for b, bound in zip(floors, curve.bounds, strict=True):
        problem = RecordLeakage(mechanism, b, (0, 1), adversaries=known)
        single = problem.solve(tol=1e-2)
        assert bound.lower <= single.upper
        assert single.lower <= bound.upper
        assert bound.name == "leakage about 2 records"
        assert bound.witness.records == (0, 1)
        assert verify(bound.certificate).passed
        assert bound.certificate.problem["size"] == 2
    # Both bits together say more than one of them.
    one = leakage_curve(mechanism, floors, records=0, adversaries=known, tol=1e-2)
    assert curve.lower[-1] > one.upper[-1] + 1e-2


def test_upper_ends_of_a_factor_do_not_increase():
    mechanism = Mechanism(count(3), truncated_geometric(3, 1.0))
    floors = np.linspace(0, 0.98, 8) * mechanism.space.max_entropy
    curve = leakage_curve(mechanism, floors, gain=Guess(), form="factor", tol=1e-2)
    assert np.diff(curve.upper).max() <= 1e-12


def test_frame_unit_and_text(curve):
    frame = curve.to_frame()
    assert list(frame["entropy_floor"]) == list(curve.entropy_floors)
    assert np.all(frame["lower"] <= frame["upper"])
    assert set(frame["status"]) == {"CERTIFIED"}
    bits = curve.to("bits")
    assert bits.upper == pytest.approx(curve.upper / LOG2)
    assert set(bits.to_frame()["unit"]) == {"bits"}
    assert str(curve).count("\n") == len(curve.bounds)


@pytest.mark.parametrize(
    ("floors", "options", "error", "match"),
    [
        ([], {}, ValidationError, "strictly increasing"),
        ([1.0, 1.0], {}, ValidationError, "strictly increasing"),
        ([1.0, 0.5], {}, ValidationError, "strictly increasing"),
        ([1.0, math.nan], {}, ValidationError, "entropy_floors"),
        ([-1.0], {}, ValidationError, "entropy_floors"),
        (1.0, {}, ValidationError, "entropy_floors"),
        ([1.0, 2.1], {}, InfeasibleError, r"log\|X\|"),
        ([1.0], {"tol": -1.0}, ValidationError, "tol"),
        ([1.0], {"time_limit": -1.0}, ValidationError, "time_limit"),
        ([1.0], {"records": 3}, ValidationError, "record"),
        ([1.0], {"adversaries": "all"}, ValidationError, "adversaries"),
        ([1.0], {"adversaries": 1}, ValidationError, "adversaries"),
    ],
)
def test_bad_arguments(floors, options, error, match):
    mechanism = Mechanism(count(3), random_rounding(3, 3))
    with pytest.raises(error, match=match):
        leakage_curve(mechanism, floors, **options)


def test_progress_is_told_between_bounds_that_hold():
    told = []
    mechanism = Mechanism(count(4), random_rounding(4, base=3))
    floors = [1.5, 2.3, 2.6]
    for known in (None, KnownMarginals([0.5, 0.5])):
        told.clear()
        curve = leakage_curve(
            mechanism, floors, adversaries=known, tol=1e-6, progress=lambda *ends: told.append(ends)
        )
        assert told
        for lower, upper, nodes in told:
            assert lower <= curve.upper[0]
            assert curve.lower[-1] <= upper
            assert nodes >= 0
