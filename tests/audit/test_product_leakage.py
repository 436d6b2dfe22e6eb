"""Independent records: closed forms, brute force, and proofs that do not bend."""

from __future__ import annotations

import copy
import math
from itertools import product

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit import (
    IndependentAdversary,
    ProductLeakage,
    product_leakage,
    record_leakage,
)
from cvxleak.core.errors import CvxleakError, InfeasibleError, ValidationError
from cvxleak.exact.balls import precision
from cvxleak.measures import lumped_information
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.problem.bound import Status, Stopped
from cvxleak.proofs import verify
from cvxleak.proofs.product_leakage import prove
from cvxleak.queries import count, parity
from tests.reference import information

LOG2 = math.log(2)


def h(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def random_mechanism(seed: int) -> Mechanism:
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), size=6)
    return Mechanism.from_channel(RecordSpace([(0, 1), (0, 1, 2)]), rows)


def test_without_a_floor_the_others_are_known():
    mechanism = Mechanism(parity(4), binary_symmetric(0.2))
    bound = product_leakage(mechanism, 0.0)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(LOG2 - h(0.2), abs=1e-9)
    # Knowing the others' parity, and no more, takes dependence: the plateau ends earlier.
    free = record_leakage(mechanism, 2.0)
    within = product_leakage(mechanism, 2.0)
    assert free.lower == pytest.approx(LOG2 - h(0.2), abs=1e-6)
    assert within.lower < 0.5 * free.lower
    assert within.upper <= free.upper + 1e-12


@pytest.mark.parametrize("floor", [0.0, 0.8, 1.5])
def test_brute_force_lies_inside(floor, tmp_path):
    grid = np.linspace(0, 1, 41)
    simplex = [
        np.array([i, j, 20 - i - j]) / 20 for i, j in product(range(21), repeat=2) if i + j <= 20
    ]
    laws = np.array([np.outer([1 - x, x], q).ravel() for x, q in product(grid, simplex)])
    laws = laws[entr(laws).sum(axis=1) >= floor]
    for seed in range(2):
        mechanism = random_mechanism(seed)
        lumped = mechanism.lumped(0)
        bound = product_leakage(mechanism, floor, 0)
        joints = (laws[:, :, None] * mechanism.channel.matrix).reshape(-1, 2, 3, 3).sum(axis=2)
        best = max(information(joint) for joint in joints)
        assert best <= bound.upper + 1e-12
        assert best <= bound.lower + 1e-9
        assert bound.lower <= 1.1 * best  # the grid is coarse
        prior = bound.witness.expand().probabilities
        value = lumped_information(mechanism.lump(0, prior), lumped)
        assert value == pytest.approx(bound.lower, abs=1e-9)
        assert bound.witness.leakage == pytest.approx(value, abs=1e-12)
        assert bound.witness.entropy >= floor
        bound.certificate.save(tmp_path / "file.json")
        assert verify(tmp_path / "file.json").passed


def test_all_records_and_the_largest_floor():
    mechanism = random_mechanism(5)
    worst = product_leakage(mechanism, 0.0)
    each = [product_leakage(mechanism, 0.0, i) for i in (0, 1)]
    assert worst.lower == pytest.approx(max(bound.lower for bound in each), abs=1e-6)
    top = product_leakage(mechanism, math.log(6))
    assert top.lower <= top.upper <= top.lower + 1e-4


def test_an_audit_goes_on_where_it_was_stopped():
    mechanism = random_mechanism(1)
    early = product_leakage(mechanism, 1.5, time_limit=0.0)
    late = early.refine(1e-6)
    assert early.lower <= late.lower < late.upper < early.upper
    assert late.stats["stopped"] is Stopped.NO_PROGRESS
    assert late.upper <= record_leakage(mechanism, 1.5, tol=1e-6).upper * (1 + 1e-6)
    assert verify(late.certificate).passed


def test_candidates_are_laws_of_the_records():
    mechanism = random_mechanism(5)
    problem, second = ProductLeakage(mechanism, 1.0), ProductLeakage(mechanism, 1.0, 1)
    bound = problem.solve()
    laws = bound.witness.laws
    found = problem.check(laws, bound=bound)
    assert found.feasible
    assert found.value >= bound.lower - 1e-12
    alone = second.check(laws, bound=bound)
    assert alone.value == pytest.approx(IndependentAdversary(mechanism, (1,), laws).leakage)
    off = problem.check([[1.5, -0.5], [0.5, 0.5, 0.0]], bound=bound)
    assert off.violations["weights are non-negative"] == 0.5
    assert off.violations["weights sum to 1"] == 0.0
    assert off.violations["entropy is at least the floor"] == pytest.approx(1 - LOG2)
    for wrong in ([[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]], "laws"):
        with pytest.raises(ValidationError, match="candidate"):
            problem.check(wrong, bound=bound)
    with pytest.raises(ValidationError, match="another problem"):
        second.check(IndependentAdversary(mechanism, (0,), laws), bound=bound)


def test_lines_are_what_the_others_leave_of_the_query():
    for query in (count(4), parity(3)):
        table = query.table()
        columns = np.moveaxis(table, 1, -1).reshape(-1, 2)
        assert query.lines(1) == sorted({tuple(line) for line in columns.tolist()})
    assert random_mechanism(0).query.lines(0) == [(0, 3), (1, 4), (2, 5)]


def test_tampering_fails():
    bound = product_leakage(Mechanism(count(4), random_rounding(4, 3)), 1.5)
    parts = bound.certificate.problem, bound.certificate.witness, bound.certificate.proof
    with precision():
        assert prove(*parts) == (bound.lower, bound.upper)
        for place, key, value in [
            (0, "entropy_floor", 2.5),
            (0, "entropy_floor", True),
            (0, "record", 7),
            (1, "record", 2),
            (1, "laws", bound.certificate.witness["laws"][:3]),
            (1, "laws", [[0.5, 0.5]] * 3 + [[0.5, -0.5]]),
            (2, "contexts", []),
            (2, "more", None),
        ]:
            changed = copy.deepcopy(list(parts))
            changed[place][key] = value
            with pytest.raises(CvxleakError):
                prove(*changed)
        nothing = {"contexts": None, "audit": None}
        assert prove(parts[0], parts[1], nothing)[1] == pytest.approx(LOG2, abs=1e-12)


def test_arguments():
    mechanism = random_mechanism(0)
    with pytest.raises(InfeasibleError, match="log"):
        ProductLeakage(mechanism, 2.0)
    with pytest.raises(ValidationError, match="records"):
        ProductLeakage(mechanism, 0.0, 5)
    with pytest.raises(ValidationError, match=r"records: found \(0, 1\); .* one at a time"):
        ProductLeakage(mechanism, 0.0, (0, 1))
    for name, value in (("tol", 1.0), ("tol", -1.0), ("time_limit", -1.0), ("rng", "seed")):
        with pytest.raises(ValidationError, match=name):
            product_leakage(mechanism, 0.0, **{name: value})
    with pytest.raises(ValidationError, match="datasets"):
        ProductLeakage(Mechanism(parity(40), binary_symmetric(0.1)), 0.0)
