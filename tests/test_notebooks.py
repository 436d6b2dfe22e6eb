"""What notebooks and shells show of results: short, right, and no markup from labels."""

from functools import cache
from math import inf

import pytest

from cvxleak import Channel, Mechanism, Prior, capacity, record_leakage, verify
from cvxleak.audit import leakage_curve
from cvxleak.capacities import Capacity
from cvxleak.core.notebook import MOST, html_table
from cvxleak.design import DesignCurve
from cvxleak.desk import DeskReport, Exposure
from cvxleak.differential_privacy import check_claim
from cvxleak.envelope import envelope_curve
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model.noise import Gaussian
from cvxleak.problem import verify_iterates
from cvxleak.queries import count, parity
from cvxleak.report import audit_report
from cvxleak.samples import audit_samples
from cvxleak.sweeps import sweep

NOISY = Mechanism(parity(3), binary_symmetric(0.1))
BOUND = record_leakage(Mechanism(count(6), random_rounding(6, base=3)), 3.9)
ROWS = [[0.75, 0.25], [0.25, 0.75]]


@cache
def shown() -> dict[str, object]:
    return {
        "bound": BOUND,
        "verification": verify(BOUND.certificate),
        "adversary": BOUND.witness,
        "prior": Prior([0.5, 0.5], ["a", "<b>"]),
        "channel": Channel(ROWS, ["<i>", "no"]),
        "mechanism": NOISY,
        "real output": Mechanism(count(2), Gaussian(1.0)),
        "claim": check_claim(ROWS, zcdp=0.1),
        "leakage curve": leakage_curve(NOISY, [0.0, 1.0]),
        "design curve": DesignCurve((0.1, 0.2), (BOUND, BOUND), 0.1),
        "envelope": envelope_curve([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]]),
        "report": audit_report(NOISY),
        "iterates": verify_iterates(Capacity(ROWS), [[0.4, 0.6]] * 50, [0.1] * 50),
        "desk": DeskReport("ex_ante", 1, 2, (Exposure(("<b>",), 0.1, 0.2), Exposure((), 1, inf))),
        "samples": audit_samples((["<b>", "no"] * 40, ["<i>", "c"] * 40)),
        "sweep": sweep(lambda flip: capacity(binary_symmetric(flip)), {"flip": [0.1, 0.5]}),
    }


@pytest.mark.parametrize("name", shown())
def test_short_and_escaped(name):
    thing = shown()[name]
    assert len(repr(thing)) < 200
    page = thing._repr_html_()
    assert page.count("<table>") == page.count("</table>") <= 1
    assert "<b>" not in page
    assert "<i>" not in page


def test_numbers_are_there():
    assert repr(BOUND) == f"Bound({BOUND})"
    page = BOUND._repr_html_()
    assert f"<td>{BOUND.lower:.7g}</td><td>{BOUND.upper:.7g}</td><td>nats</td>" in page
    assert repr(verify(BOUND.certificate)) == "Verification(PASS: both bounds are proved)"
    assert verify({}).verdict == "FAIL"
    assert verify(BOUND.certificate, time_limit=0.0).verdict == "NOT CONFIRMED"
    assert repr(Capacity(ROWS).check([0.5, 0.5])) == "Check(feasible; value 0.130812 nats)"
    assert "<td>all parties</td><td>1</td><td>inf</td>" in shown()["desk"]._repr_html_()
    assert "<td>no</td><td>0.25</td><td>0.75</td>" in Channel(ROWS, ["yes", "no"])._repr_html_()
    assert Prior([0.25, 0.75])._repr_html_().count("<tr>") == 3


def test_large_tables_are_cut():
    page = Prior.uniform(1000)._repr_html_()
    assert page.count("<tr>") == MOST + 2
    wide = html_table("", range(100), [range(100)])
    assert wide.count("<td>") == MOST + 2
    assert wide.count("…") == 2
