"""What the report on an envelope says, compared with the problems and measures themselves."""

import math

import numpy as np
import pytest

from cvxleak import envelope, measures
from cvxleak.core.errors import ValidationError
from cvxleak.envelope import failure_probability, pml_envelope
from cvxleak.proofs import verify
from cvxleak.report import envelope_report

PRIOR = [0.2, 0.3, 0.5]
CHANNEL = np.random.default_rng(2).dirichlet(np.ones(4), size=3)


def test_all_numbers():
    report = envelope_report(PRIOR, CHANNEL, epsilon=[0.4, 0.1], delta=[0.5, 0.05, 0.5])
    assert [q.delta for q in report.named("PML envelope")] == [0.05, 0.5]
    for quantity in report.named("PML envelope"):
        bound = pml_envelope(PRIOR, CHANNEL, quantity.delta)
        assert (quantity.lower, quantity.upper) == (bound.lower, bound.upper)
        assert verify(quantity.certificate).passed
        assert f"except with probability {quantity.delta:g}." in quantity.meaning
    for name, function in {
        "PML quantile": lambda p, q, delta: measures.pml_right_quantile(q, p, delta),
        "event envelope": lambda p, q, delta: measures.event_envelope(q, p, delta),
        "Theorem 3 bound": envelope.envelope_upper_bound,
        "tail average bound": envelope.tail_average_bound,
    }.items():
        values = function(PRIOR, CHANNEL, [0.05, 0.5])
        assert [q.upper for q in report.named(name)] == pytest.approx(values)
        assert {q.status for q in report.named(name)} == {"COMPUTED"}
    for end, strict in (("", True), (", or equal", False)):
        for quantity, level in zip(
            report.named(f"failure probability{end}"), (0.1, 0.4), strict=True
        ):
            bound = failure_probability(PRIOR, CHANNEL, level, strict=strict)
            assert quantity.epsilon == level
            assert (quantity.lower, quantity.upper) == (bound.lower, bound.upper)
            assert verify(quantity.certificate).passed
            assert ("at least" in quantity.meaning) == (not strict)
        for quantity, level in zip(
            report.named(f"released failure probability{end}"), (0.1, 0.4), strict=True
        ):
            exact = measures.pml_failure_probability(CHANNEL, PRIOR, level, strict=strict)
            assert quantity.upper == pytest.approx(exact)
    assert report.facts == {"inputs": 3, "outputs": 4}
    assert len(report.certificates()) == 6


def test_bits():
    nats = envelope_report(PRIOR, CHANNEL, epsilon=0.2, delta=0.3)
    bits = envelope_report(PRIOR, CHANNEL, epsilon=0.2 / math.log(2), delta=0.3, unit="bits")
    for one, other in zip(nats.quantities, bits.quantities, strict=True):
        scale = math.log(2) if one.unit == "nats" else 1.0
        assert one.upper == pytest.approx(other.upper * scale, rel=1e-9)


def test_no_time_leaves_brackets_that_hold():
    rng = np.random.default_rng(3)
    prior, channel = np.full(30, 1 / 30), rng.dirichlet(np.ones(30), size=30)
    patient = envelope_report(prior, channel, epsilon=0.3, delta=[0.1, 0.6])
    hurried = envelope_report(prior, channel, epsilon=0.3, delta=[0.1, 0.6], time_limit=0.0)
    for exact, quick in zip(patient.quantities, hurried.quantities, strict=True):
        assert quick.lower <= exact.upper
        assert exact.lower <= quick.upper


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "delta: found none"),
        ({"delta": [0.1, 2]}, "delta: found 2"),
        ({"epsilon": -0.1}, "epsilon: found -0.1"),
        ({"epsilon": math.inf}, "epsilon: found inf"),
        ({"delta": "x"}, "delta"),
        ({"delta": 0.1, "unit": "bytes"}, "unit: found 'bytes'"),
        ({"delta": 0.1, "tol": -1}, "tol: found -1"),
        ({"delta": 0.1, "time_limit": -1}, "time_limit: found -1"),
    ],
)
def test_bad_arguments(options: dict, message: str):
    with pytest.raises(ValidationError, match=message):
        envelope_report(PRIOR, CHANNEL, **options)
