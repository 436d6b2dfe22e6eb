"""`make compare`, with this tree on both sides: tables, and what it calls wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPARE = Path(__file__).with_name("compare.py")

SCRIPT = """
import os
from cvxleak.capacities import Capacity

def problems():
    flip = 0.1 + float(os.environ.get("PLANTED", 0))
    fair = Capacity([[0.5, 0.5], [0.5, 0.5]])
    return {"fair": fair, "planted": Capacity([[1 - flip, flip], [flip, 1 - flip]])}
"""

ENTRIES = """
def problems():
    channel = {"channel": [[0.9, 0.1], [0.1, 0.9]]}
    wrong = {"name": "wrong", "problem": "capacity", "data": channel, "truth": [0.4, 0.5]}
    return [wrong, {"name": "unknown", "problem": "no-such-problem", "data": {}, "truth": [0, 1]}]
"""


def run(*arguments: str | Path, old: str | Path = sys.executable) -> tuple[int, str]:
    command = [sys.executable, COMPARE, "--old", old, "--time-limit", "5", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_same_tree_on_both_sides(tmp_path: Path):
    stored = tmp_path / "found.json"
    code, said = run("capacity-bsc-0.1", "parity2-flip0.1*", "--sample", "2", "--json", stored)
    assert code == 0, said
    found = json.loads(stored.read_text())
    assert len(found["cases"]) == 2
    for case in found["cases"]:
        assert case["meet"]
        assert case["wrong"] == []
        assert case["gap"] == case["size"] == 1
        assert case["cpu"] > 0
        assert case["verify"] > 0
    assert found["families"][-1]["cases"] == 2
    assert "| family |" in said


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Return a Python in which a problem of the script is another one."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPLANTED=0.1 exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.skipif(os.name == "nt", reason="the planted Python is a shell script")
def test_brackets_that_do_not_meet_are_an_error(tmp_path: Path, planted: Path):
    script = tmp_path / "planted.py"
    script.write_text(SCRIPT)
    code, said = run("--script", script, "--cases", "--repeat", "2", old=planted)
    assert code == 1
    assert "planted/planted: the brackets do not meet" in said
    assert "planted/fair:" not in said
    assert "| planted/planted | 0.1927" in said


def test_a_missed_truth_and_a_missing_answer_are_errors(tmp_path: Path):
    script = tmp_path / "entries.py"
    script.write_text(ENTRIES)
    code, said = run("--script", script)
    assert code == 1
    assert "entries/wrong: the truth [0.4, 0.5] is missed" in said
    assert "entries/unknown: no answer: ValidationError" in said


def test_a_name_that_nothing_has_and_a_python_without_cvxleak(tmp_path: Path):
    code, said = run("no-such-family")
    assert code == 2
    assert "nothing is called ['no-such-family']" in said
    lost = tmp_path / "python"
    lost.write_text("#!/bin/sh\nexit 3\n")
    lost.chmod(0o755)
    code, said = run("capacity-bsc-0.1", old=lost)
    assert code == 1
    assert "does not run cvxleak" in said
