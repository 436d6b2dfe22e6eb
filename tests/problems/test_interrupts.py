"""Ctrl-C: the first ends the search and leaves a proved bracket, a second one raises."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from cvxleak.certificates import verify
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
from cvxleak.problems import RecordLeakage
from cvxleak.problems.audit import Audit
from cvxleak.problems.interrupts import Interrupts
from cvxleak.result import Status, Stopped


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
def test_ctrl_c_in_the_search_returns_a_proved_bracket_that_can_be_refined(at):
    def progress(lower, upper, nodes):
        if nodes >= at:
            press()

    bound = problem().solve(progress=progress)
    assert bound.status is Status.BRACKETED
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert verify(bound.certificate).passed
    assert bound.lower <= 0.33596 <= bound.upper
    assert bound.refine(1e-3).status is Status.CERTIFIED


def test_ctrl_c_while_proving_is_noted_and_a_second_one_raises(monkeypatch):
    prove = Audit.certify
    presses = 1

    def pressed(self, tol):
        for _ in range(presses):
            press()
        return prove(self, tol)

    monkeypatch.setattr(Audit, "certify", pressed)
    bound = problem().solve(tol=1e-2)
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert bound.status is Status.CERTIFIED
    presses = 2
    with pytest.raises(KeyboardInterrupt):
        problem().solve(tol=1e-2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
