"""Ctrl-C: the first raises with the proved bracket reached, a second one ends its proof."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from cvxleak.audit import RecordLeakage, balance, leakage_curve, product_leakage, record_leakage
from cvxleak.audit.worst_adversary.audit import Audit
from cvxleak.capacities import capacity
from cvxleak.core.clock import Clock
from cvxleak.core.errors import CvxleakError, SolveInterrupted
from cvxleak.design import MinLeakage, calibrate, design_curve, design_for_prior
from cvxleak.envelope import failure_probability, pml_envelope
from cvxleak.local_dp import min_distortion_local_dp, min_information, min_local_dp
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
from cvxleak.problem.bound import Status, Stopped
from cvxleak.problem.interrupts import Interrupts
from cvxleak.proofs import verify
from cvxleak.queries import parity
from cvxleak.release import release_problem


def problem() -> RecordLeakage:
    noise = np.full((4, 4), 0.2 / 3)
    np.fill_diagonal(noise, 0.8)
    query = AdditiveQuery(RecordSpace.binary(6), [(0, 1)] * 6, modulus=4)
    return RecordLeakage(Mechanism(query, noise), 3.327)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_the_first_raises_outside_of_protected_parts():
    with pytest.raises(KeyboardInterrupt), Interrupts():
        press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_first_is_noted_in_protected_parts_and_the_second_raises():
    with Interrupts() as interrupts:
        interrupts.protected = True
        press()
        assert interrupts.seen == 1
        with pytest.raises(KeyboardInterrupt):
            press()


def test_other_handlers_and_threads_are_left_alone():
    def mine(number, frame):
        raise KeyError

    before = signal.signal(signal.SIGINT, mine)
    try:
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)
    seen = []

    def inside():
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


@pytest.mark.parametrize("at", [1, 100, 1000])
def test_ctrl_c_in_the_search_raises_with_a_proved_bracket_that_can_be_refined(at):
    def progress(lower, upper, nodes):
        if nodes >= at:
            press()

    with pytest.raises(SolveInterrupted) as caught:
        problem().solve(progress=progress)
    bound = caught.value.bound
    assert bound.status is Status.BRACKETED
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert verify(bound.certificate).passed
    assert bound.lower <= 0.33596 <= bound.upper
    assert bound.refine(1e-3).status is Status.CERTIFIED


def test_ctrl_c_while_proving_is_noted_and_a_second_one_raises(monkeypatch):
    prove = Audit.found
    presses = 1

    def pressed(self, gap):
        for _ in range(presses):
            press()
        return prove(self, gap)

    monkeypatch.setattr(Audit, "found", pressed)
    with pytest.raises(SolveInterrupted) as caught:
        problem().solve(tol=1e-2)
    bound = caught.value.bound
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert bound.status is Status.CERTIFIED
    presses = 2
    with pytest.raises(KeyboardInterrupt) as twice:
        problem().solve(tol=1e-2)
    assert type(twice.value) is KeyboardInterrupt
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_no_error_of_the_library():
    assert issubclass(SolveInterrupted, KeyboardInterrupt)
    assert not issubclass(SolveInterrupted, (Exception, CvxleakError))
    assert SolveInterrupted().bound is None


def test_a_loop_over_audits_stops():
    done = []

    def progress(lower, upper, nodes):
        press()

    def user_code():
        for floor in (3.327, 3.3, 3.2):
            record_leakage(problem().mechanism, floor, tol=1e-6, progress=progress)
            done.append(floor)

    with pytest.raises(KeyboardInterrupt):
        user_code()
    assert not done


def pressed(monkeypatch, at: int = 1) -> None:
    """Press Ctrl-C in the audits' search, at its at-th beginning."""
    advance, seen = Audit.advance, []

    def interrupted(self, *arguments, **options):
        seen.append(self)
        if len(seen) == at:
            press()
        return advance(self, *arguments, **options)

    monkeypatch.setattr(Audit, "advance", interrupted)


def test_balance_and_product(monkeypatch):
    mechanism = problem().mechanism
    with monkeypatch.context() as patch:
        pressed(patch)
        with pytest.raises(SolveInterrupted) as caught:
            balance(mechanism, 3.327)
    assert caught.value.bound.stats["stopped"] is Stopped.INTERRUPTED
    assert caught.value.bound.certificate.kind == "balance"
    assert verify(caught.value.bound.certificate).passed

    with monkeypatch.context() as patch:
        pressed(patch)
        with pytest.raises(SolveInterrupted) as caught:
            product_leakage(mechanism, 3.9, tol=1e-9)
    assert caught.value.bound.certificate.kind == "product-leakage"


def test_a_leakage_curve(monkeypatch):
    mechanism = problem().mechanism
    pressed(monkeypatch, 2)
    with pytest.raises(SolveInterrupted) as caught:
        leakage_curve(mechanism, [2.0, 3.0, 3.327], tol=1e-3)
    curve = caught.value.bound
    assert len(curve.bounds) == 3
    for bound in curve.bounds:
        assert verify(bound.certificate).passed


WRONG = [[0, 1], [1, 0]]


def test_designs(monkeypatch):
    design = MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5)
    with monkeypatch.context() as patch:
        pressed(patch)
        with pytest.raises(SolveInterrupted) as caught:
            design.solve(tol=1e-6)
    bound = caught.value.bound
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert verify(bound.certificate).passed
    with monkeypatch.context() as patch:
        pressed(patch, 2)
        with pytest.raises(SolveInterrupted) as caught:
            design_curve(design, [0.1, 0.2, 0.3], tol=1e-6)
    assert 1 <= len(caught.value.bound.bounds) < 3


JOINT = [[[0.3, 0.1], [0.1, 0.1]], [[0.1, 0.1], [0.1, 0.1]]]
LAWS = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]


@pytest.mark.parametrize(
    "solve",
    [
        lambda: capacity([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1]]),
        lambda: design_for_prior([0.6, 0.4], WRONG, 0.1),
        lambda: product_leakage(Mechanism(parity(2), binary_symmetric(0.1)), 0.5),
        lambda: min_local_dp(LAWS, 0.3),
        lambda: min_distortion_local_dp(LAWS, 1.0),
        lambda: min_information(LAWS, 0.3),
        lambda: pml_envelope([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.6),
        lambda: failure_probability([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.3),
        lambda: release_problem(JOINT, 0.1, 0.2, distortion=WRONG).solve(),
        lambda: release_problem(JOINT, 0.1, 0.2, utility="information").solve(),
    ],
)
def test_methods_that_prove_nothing_before_their_end(monkeypatch, solve):
    truth = solve()
    begin, seen = Clock.__init__, []

    def once(self, *arguments, **options):
        begin(self, *arguments, **options)
        if not seen:
            seen.append(self)
            press()

    monkeypatch.setattr(Clock, "__init__", once)
    with pytest.raises(SolveInterrupted) as caught:
        solve()
    bound = caught.value.bound
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert max(bound.lower, truth.lower) <= min(bound.upper, truth.upper) + 1e-9
    assert verify(bound.certificate).passed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_ends_a_solve_without_a_bracket(monkeypatch):
    def always(self, *arguments, **options):
        press()

    monkeypatch.setattr(Clock, "__init__", always)
    with pytest.raises(KeyboardInterrupt) as caught:
        capacity([[0.9, 0.1], [0.2, 0.8]])
    assert type(caught.value) is KeyboardInterrupt


def test_calibration(monkeypatch):
    def flipped(p):
        return Mechanism(parity(3), binary_symmetric(p))

    pressed(monkeypatch, 4)
    with pytest.raises(SolveInterrupted) as caught:
        calibrate(flipped, (0.0, 0.5), leakage=0.3681, entropy_floor=0.0)
    assert caught.value.bound.bound.upper <= 0.3681
