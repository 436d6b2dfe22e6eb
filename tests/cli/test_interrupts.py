"""Ctrl-C during a command's search: the report follows with the bracket reached."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.core.clock import Clock
from cvxleak.proofs import verify

Run = Callable[..., Result]
Write = Callable[..., Path]

CHANNEL = "0.9,0.1,0.0\n0.2,0.7,0.1\n"
LOCAL = (
    '[space]\nalphabets = [["x", "y"]]\n[mechanism]\nkind = "binary_symmetric"\nflip = 0.25\n'
    "[prior]\ncounts = { x = 1, y = 3 }\n"
)
LAWS = '[sources]\nkind = "laws"\nlaws = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]\n'
AUDIT = (
    '[query]\nkind = "count"\nrecords = 3\n[mechanism]\nkind = "truncated_geometric"\nepsilon = 1\n'
    "[adversary]\nentropy_floors = [0, 1]\n"
)
COMMANDS = {
    "audit": (AUDIT, []),
    "capacity": (CHANNEL, []),
    "envelope": (LOCAL, ["--delta", "0.2", "0.6", "--epsilon", "0.3"]),
    "local-dp": (LAWS + "[local_dp]\ndistortion_budget = 0.3\n", []),
}


@pytest.fixture
def presses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Press Ctrl-C where a solve looks at its clock, as often as the only element says."""
    late, wanted = Clock.__dict__["late"].fget, [1]

    def pressed(clock):
        solving = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        if wanted[0] and solving:
            wanted[0] -= 1
            signal.raise_signal(signal.SIGINT)
        return late(clock)

    monkeypatch.setattr(Clock, "late", property(pressed))
    return wanted


@pytest.fixture
def source(write: Write, tmp_path: Path) -> Callable[[str], Path]:
    def to_file(command: str) -> Path:
        content = COMMANDS[command][0]
        if command != "capacity":
            return write(content)
        path = tmp_path / "channel.csv"
        path.write_text(content)
        return path

    return to_file


@pytest.mark.parametrize("command", COMMANDS)
def test_the_bracket_reached_is_reported(command, run: Run, source, tmp_path, presses):
    proof = tmp_path / "proof.json"
    given = source(command), *COMMANDS[command][1]
    result = run(command, *given, "--json", "-", "--certificate", proof)
    assert presses == [0]
    assert result.exit_code == 0, result.output
    assert "Interrupted: the report follows with the bounds reached." in result.stderr
    found = json.loads(result.stdout)
    assert found["interrupted"]
    assert verify(proof).passed
    exact = json.loads(run(command, *given, "--json", "-").stdout)
    assert not exact["interrupted"]
    for one, other in zip(found["quantities"], exact["quantities"], strict=True):
        assert one["name"] == other["name"]
        if one["status"] in ("BRACKETED", "CERTIFIED"):
            ends = [end for q in (one, other) for end in (q["lower"], q["upper"])]
            assert ends[0] <= ends[3] + 1e-9
            assert ends[2] <= ends[1] + 1e-9


def test_the_second_one_stops_the_program(run: Run, source, presses):
    presses[0] = 2
    given = source("envelope"), *COMMANDS["envelope"][1]
    result = run("envelope", *given, "--json", "-")
    assert result.exit_code == 130
    assert not result.stdout
    assert result.stderr.splitlines()[-1] == "cvxleak: stopped"
