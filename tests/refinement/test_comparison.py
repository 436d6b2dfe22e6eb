from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import verify
from cvxleak.core.errors import CertificateError, SolverError, ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.measures import posterior_gain_vulnerability
from cvxleak.model import Channel, GainMatrix, Prior
from cvxleak.refinement import Refinement, deficiency, le_cam_distance, refines
from cvxleak.solvers import exact_linear

few = settings(max_examples=25, deadline=None)


@st.composite
def channels(draw, inputs, outputs=None):
    """A channel of fractions, zeros and equal rows among them."""
    m = outputs or draw(st.integers(1, 3))
    weights = st.lists(st.integers(0, 4), min_size=m, max_size=m).filter(any)
    rows = [draw(weights) for _ in range(inputs)]
    return Channel([[f"{w}/{sum(row)}" for w in row] for row in rows])


def exact(channel):
    return [exact_law(row) for row in channel.matrix]


def composed(first, second):
    columns = list(zip(*exact(second), strict=True))
    rows = [[sum(a * b for a, b in zip(r, c, strict=True)) for c in columns] for r in exact(first)]
    return Channel(np.array(rows, dtype=object), first.inputs, second.outputs)


@few
@given(data=st.data())
def test_a_processed_channel_refines_and_the_processing_is_found(data):
    first = data.draw(channels(data.draw(st.integers(1, 4))))
    second = composed(first, data.draw(channels(first.shape[1])))
    found = refines(first, second)
    assert found
    assert found.lower == found.upper == 0
    assert exact(composed(first, found.processing)) == exact(second)


@few
@given(data=st.data())
def test_two_channels_are_decided_with_proof(data):
    k = data.draw(st.integers(1, 4))
    first, second = data.draw(channels(k)), data.draw(channels(k))
    found = refines(first, second)
    assert found.lower == found.upper
    if found:
        assert exact(composed(first, found.processing)) == exact(second)
    else:
        earned = [
            posterior_gain_vulnerability(channel, found.prior, found.gain)
            for channel in (first, second)
        ]
        assert earned[1] - earned[0] == pytest.approx(float(found.upper))
    # Processing what tells less does not close the gap, and one step after another adds up.
    third = data.draw(channels(k))
    ends = [refines(first, third), refines(first, second), refines(second, third)]
    assert ends[0].upper <= ends[1].upper + ends[2].upper
    worse = composed(first, data.draw(channels(first.shape[1])))
    assert refines(worse, second).upper >= found.upper


def test_the_deficiency_is_that_of_a_convex_program():
    rng = np.random.default_rng(0)
    for k, m, n in ((3, 2, 4), (4, 4, 3), (6, 3, 3)):
        first, second = rng.dirichlet(np.ones(m), size=k), rng.dirichlet(np.ones(n), size=k)
        R = cp.Variable((m, n), bounds=[0, 1])
        apart = cp.max(cp.sum(cp.abs(first @ R - second), axis=1)) / 2
        truth = cp.Problem(cp.Minimize(apart), [cp.sum(R, axis=1) == 1])
        assert deficiency(first, second) == pytest.approx(truth.solve(solver="HIGHS"), abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_known_deficiencies(k):
    blind = np.ones((k, 1))
    assert refines(blind, np.eye(k)).upper == 1 - Fraction(1, k)
    assert deficiency(np.eye(k), blind) == 0
    assert le_cam_distance(np.eye(k), blind) == pytest.approx(1 - 1 / k)
    assert le_cam_distance(np.eye(k), np.eye(k)[::-1]) == 0


def test_labels_are_matched():
    first = Channel([[1, 0], [0.5, 0.5]], ["a", "b"], ["no", "yes"])
    second = Channel([[0.75, 0.25], [1, 0]], ["b", "a"], [0, 1])
    found = refines(first, second)
    assert found
    assert found.processing.inputs == ("no", "yes")
    assert found.processing.matrix.tolist() == [[1, 0], [0.5, 0.5]]


def test_numbers_are_taken_as_written():
    first = [[0.1, 0.9], [0.7, 0.3]]
    assert refines(first, [["0.34", "0.66"], ["0.58", "0.42"]])  # kept with 0.7 or 0.3
    near = refines(first, [["0.34", "0.66"], ["0.58", "0.42"]][::-1])
    assert not refines(first, [[0.1, 0.9], ["0.7000000000000000001", "0.2999999999999999999"]])
    assert near  # the flip of it


def test_evidence_is_evaluated_whoever_made_it():
    flip, clear = Channel([[0.75, 0.25], [0.25, 0.75]]), Channel(np.eye(2))
    right = refines(flip, clear)
    assert right.upper == Fraction(1, 4)
    parts = {"channel": flip, "other": clear, "prior": Prior.uniform(2)}
    forged = Refinement(**parts, processing=Channel([[0.5, 0.5]] * 2), gain=GainMatrix(np.eye(2)))
    assert forged.upper == Fraction(1, 2)
    assert forged.lower == Fraction(1, 4)
    useless = Refinement(**parts, processing=right.processing, gain=GainMatrix([[0, 0]]))
    assert (useless.lower, useless.upper) == (0, Fraction(1, 4))
    with pytest.raises(SolverError, match=r"not decided; the deficiency is at most 0\.25"):
        bool(useless)
    with pytest.raises(ValidationError, match=r"gain: found entries outside \[0, 1\]"):
        Refinement(**parts, processing=right.processing, gain=GainMatrix([[0, 2]]))
    with pytest.raises(ValidationError, match=r"processing: found shape \(1, 1\)"):
        Refinement(**parts, processing=Channel([[1]]), gain=right.gain)


@pytest.mark.parametrize(("inputs", "before"), [(40, 40), (6, 9)])
def test_what_was_processed_without_rounding_refines(inputs, before):
    """Where the columns of C are independent, R is the only one, and is found without a search."""
    rng = np.random.default_rng(inputs)
    first, kernel = (
        np.array([[Fraction(int(x), 16) for x in row] for row in counts], dtype=object)
        for counts in (
            rng.multinomial(16, np.ones(before) / before, size=inputs),
            rng.multinomial(16, np.ones(5) / 5, size=before),
        )
    )
    found = refines(first, first @ kernel)
    assert found
    assert found.upper == 0
    if inputs >= before:
        assert found.processing == Channel(kernel)


def test_independent_columns_whose_quotient_is_no_channel():
    first, second = [[0.75, 0.25], [0.25, 0.75]], [[1, 0], [0, 1]]
    found = refines(first, second)
    assert not found
    assert found.lower == found.upper == Fraction(1, 4)


@pytest.mark.parametrize("limit", ["MOST_EQUATIONS", "MOST_PIVOTS"])
def test_without_exact_pivots_the_ends_still_hold(monkeypatch, limit):
    rng = np.random.default_rng(2)
    first, second = rng.dirichlet(np.ones(3), size=5), rng.dirichlet(np.ones(4), size=5)
    truth = refines(first, second)
    assert truth.lower == truth.upper > 0
    monkeypatch.setattr(exact_linear, limit, 0)
    near = refines(first, second)
    assert near.lower <= truth.lower <= near.upper
    assert float(near.upper - near.lower) < 1e-9
    assert not near
    processed = first @ rng.dirichlet(np.ones(4), size=3)
    assert refines(first, processed).upper < 1e-9


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.eye(3), "other: found 3 inputs; the channel has 2"),
        ([[0.5, 0.6]] * 2, "other: row 0 sums to"),
        (Channel(np.eye(2), ["a", "b"]), r"other: its inputs are \['a', 'b'\]; they lack"),
    ],
)
def test_refuses_what_does_not_fit(other, message):
    with pytest.raises(ValidationError, match=message):
        refines(np.eye(2), other)


def test_refuses_what_is_too_large():
    with pytest.raises(ValidationError, match="at most 4000000 are solved"):
        refines(np.full((200, 200), 1 / 200), np.full((200, 200), 1 / 200))


@few
@given(data=st.data())
def test_the_certificate_holds_and_decides(data):
    k = data.draw(st.integers(1, 4))
    first, second = data.draw(channels(k)), data.draw(channels(k))
    for other in (second, composed(first, data.draw(channels(first.shape[1])))):
        found = refines(first, other)
        certificate = found.certificate
        answer = verify(certificate.to_dict())
        assert answer.passed, answer.reason
        assert certificate.upper == 0 if found else certificate.lower > 0
        assert fraction(certificate.lower) <= found.lower == found.upper
        assert found.upper <= fraction(certificate.upper)
        assert certificate.upper - certificate.lower < 1e-15


def test_fractions_that_are_too_long_for_a_file():
    long = Fraction(10**2000, 2 * 10**2000 + 1)
    found = refines([[long, 1 - long], [1, 0]], [[1], [1]])
    with pytest.raises(CertificateError, match="expected a number"):
        _ = found.certificate
    # What is found may be left a little short of exact, what is asked may not.
    flip, clear = Channel([[0.75, 0.25], [0.25, 0.75]]), Channel(np.eye(2))
    near = Refinement(
        Prior([long, 1 - long]),
        flip,
        clear,
        Channel([[long, 1 - long], [0, 1]]),
        GainMatrix([[1, 0], [0, long]]),
    )
    certificate = near.certificate
    assert verify(certificate).passed
    assert certificate.witness["processing"] == [[0.5, 0.5], [0.0, 1.0]]
    assert (certificate.lower, certificate.upper) == pytest.approx((0.1875, 0.625))
