"""The curve of a report's picture: proved at every point, falling, and fine where it falls."""

import math

import numpy as np
import pytest

from cvxleak.audit import record_leakage
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import KnownMarginals, Mechanism
from cvxleak.queries import count, parity
from cvxleak.report import audit_report
from cvxleak.report.curves import STEP

ROUNDED = Mechanism(count(6), random_rounding(6, 3))


def drawn(report):
    (one,) = report.facts["curves"]
    return np.array(one["points"])


def test_the_curve_of_a_parity_is_the_closed_form_at_every_point():
    # Parity of n bits through a BSC(0.1): a single bit can be all that is unknown, so log 2 - h
    # holds up to n - 1 bits of uncertainty, and at n bits nothing is told.
    report = audit_report(Mechanism(parity(3), binary_symmetric(0.1)), [1.0], curves=True)
    floors, lower, upper = drawn(report).T
    flat = math.log(2) + 0.1 * math.log(0.1) + 0.9 * math.log(0.9)
    assert floors[0] == 0.0
    assert math.isclose(floors[-1], 3 * math.log(2))
    assert 1.0 in floors
    plateau = floors <= 2 * math.log(2) + 1e-9
    assert np.all(lower[plateau] <= flat + 1e-9)
    assert np.all(upper >= lower)
    assert upper[-1] < 1e-3
    np.testing.assert_allclose(upper[plateau], flat, rtol=0.006)


def test_it_never_rises_and_has_no_wide_steps():
    report = audit_report(ROUNDED, [3.0, 3.9], curves=True)
    floors, lower, upper = drawn(report).T
    assert np.all(np.diff(floors) > 0)
    assert np.all(np.diff(lower) <= 0)
    assert np.all(np.diff(upper) <= 0)
    far = np.diff(floors) > floors[-1] / 250
    assert np.all(-np.diff(upper)[far] <= STEP * upper[0] + 1e-9)
    for place in (3, len(floors) // 2, -3):
        bound = record_leakage(ROUNDED, floors[place])
        assert lower[place] <= bound.upper
        assert bound.lower <= upper[place]


def test_bits_are_nats_in_another_unit():
    mechanism = Mechanism(parity(1), binary_symmetric(0.1))
    nats, bits = (drawn(audit_report(mechanism, unit=u, curves=True)) for u in ("nats", "bits"))
    np.testing.assert_allclose(bits * math.log(2), nats, atol=1e-6)


def test_what_else_is_known_holds_along_the_curve():
    mechanism, rare = Mechanism(count(4), random_rounding(4, 3)), KnownMarginals([0.8, 0.2])
    report = audit_report(mechanism, [0.5, 1.5], adversaries=rare, curves=True, time_limit=1.0)
    floors, lower, _ = drawn(report).T
    assert floors[-1] == 1.5  # above, perhaps nobody is left
    assert lower[0] <= 0.501  # the entropy of a record; log 2 without this knowledge


@pytest.mark.parametrize("sizes", [(1, 2), (2,)])
def test_groups_have_a_curve_too(sizes):
    mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    report = audit_report(mechanism, group_sizes=sizes, curves=True, time_limit=1.0)
    for one in report.facts["curves"]:
        found = report.named("record leakage" if one["size"] == 1 else "group leakage")
        floors, lower, upper = np.array(one["points"]).T
        assert len(floors) >= 9
        assert upper[0] == found[0].upper
        assert lower[0] >= found[0].lower


def test_it_is_there_only_if_asked_for():
    assert "curves" not in audit_report(Mechanism(parity(2), binary_symmetric(0.1))).facts
