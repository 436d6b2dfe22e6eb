"""Entries near the least float: every solve is quiet (warnings are errors) and its proof holds."""

import pytest

from cvxleak.audit import leakage_curve, product_leakage, record_leakage
from cvxleak.capacities import capacity
from cvxleak.envelope import pml_envelope
from cvxleak.local_dp import min_local_dp
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.proofs import verify

TINY = 5e-324
ROWS = [[0.5, 0.5, TINY], [TINY, 0.5, 0.5], [0.3, 0.7, TINY], [TINY, TINY, 1.0]]
SOLVES = {
    "capacity": lambda: capacity(ROWS),
    "record": lambda: record_leakage(mechanism(), 0.5, tol=1e-2),
    "no floor": lambda: record_leakage(mechanism(), 0.0),
    "curve": lambda: leakage_curve(mechanism(), [0.0, 0.5], tol=1e-2).bounds[1],
    "product": lambda: product_leakage(mechanism(), 0.5, tol=1e-2),
    "envelope": lambda: pml_envelope([0.5, 0.5, TINY], ROWS[:3], 0.1),
    "local DP": lambda: min_local_dp([[0.5, 0.5, TINY]], 0.2),
}


def mechanism() -> Mechanism:
    return Mechanism.from_channel(RecordSpace.binary(2), ROWS)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SOLVES)
def test_no_warning_reaches_the_user(name):
    bound = SOLVES[name]()
    assert bound.certificate is not None
    assert verify(bound.certificate).passed
