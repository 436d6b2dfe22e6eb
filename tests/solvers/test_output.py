"""Solvers print nothing. Each runs in a process of its own, as some print once in a process."""

import subprocess
import sys

import cvxpy as cp
import pytest

LINEAR = "local_dp.min_local_dp([[0.7, 0.3]], 0.2, solver={!r})"
CONIC = "local_dp.min_information([[0.7, 0.3]], 0.2, solver={!r})"
OWN = (
    "local_dp.min_local_dp([[0.7, 0.3]], 0.2); design.min_leakage("
    "parity(2), distortion=1 - np.eye(2), budget=0.2, entropy_floor=0.5, time_limit=1)"
)


@pytest.mark.parametrize(
    ("calls", "solver"),
    [
        (LINEAR, "HIGHS"),
        (f"{LINEAR}; {CONIC}", "CLARABEL"),
        (f"{LINEAR}; {CONIC}", "SCS"),
        (f"{LINEAR}; {CONIC}", "ECOS"),
        (OWN, None),
    ],
)
def test_nothing_of_a_solver_is_printed(calls, solver):
    if solver is not None and solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    imports = "import numpy as np; from cvxleak import design, local_dp"
    code = f"{imports}; from cvxleak.queries import parity; {calls.format(solver, solver)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
