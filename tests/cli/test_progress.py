"""Progress and interrupts, without waiting for either."""

import io
import time

import pytest
from rich.console import Console

from cvxleak.cli import progress as module
from cvxleak.cli.progress import Display


def console(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=80)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_quick_steps_say_nothing():
    for terminal in (True, False):
        screen = console(terminal=terminal)
        with Display("nats", screen) as display:
            for _ in range(3):
                display.begin("capacity")
                display.update(0.1, 0.2, 3)
                display.end()
        assert shown(screen) == ""


def test_a_log_gets_fewer_and_fewer_lines(monkeypatch: pytest.MonkeyPatch):
    screen, clock = console(), iter(range(100))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    with Display("bits", screen) as display:
        display.begin("leakage")
        for nodes in range(1, 10):
            display.update(0.0, 0.6931471805599453, nodes)
    assert shown(screen).splitlines() == [
        f"leakage: 0.000000 to 1.000000 bits, {seconds} node{'s' * (seconds > 1)}, {seconds} s"
        for seconds in (1, 2, 4, 8)
    ]


def test_a_terminal_keeps_one_line_up_to_date(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    screen = console(terminal=True)
    with Display("nats", screen) as display:
        display.begin("leakage")
        display.update(0.25, 0.5, 1)
        deadline = time.monotonic() + 600
        while "0.250000 to 0.500000 nats" not in shown(screen) and time.monotonic() < deadline:
            time.sleep(0.01)
        display.end()
    assert "leakage: 0.250000 to 0.500000 nats" in shown(screen)


def test_parts_and_probabilities_are_shown_as_such(monkeypatch: pytest.MonkeyPatch):
    screen, clock = console(), iter([0.0, 40.0, 41.0, 64.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    with Display("bits", screen) as display:
        display.unit = "probability"
        display.begin("delta")
        display.update(0.25, 0.5, 3)
        display.count(2, 9)
        display.count(3, 9)
    assert shown(screen).splitlines() == [
        "delta: 0.250000 to 0.500000 probability, 3 nodes, 40 s",
        "delta: 3 of 9, 64 s",
    ]
