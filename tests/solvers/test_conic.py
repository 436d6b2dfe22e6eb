"""The runner of CVXPY's solvers: what it complains about, and what reaches the solver."""

import subprocess
import sys
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.solvers.conic import SOLVERS, attempt, check_solver
from cvxleak.solvers.linear import LinearSolver


def most_entropy(size: int = 3) -> cp.Problem:
    p = cp.Variable(size, nonneg=True)
    rng = np.random.default_rng(0)
    moments = rng.random((size // 2, size))
    return cp.Problem(
        cp.Maximize(cp.sum(cp.entr(p))), [cp.sum(p) == 1, moments @ p == moments.mean(axis=1)]
    )


def test_a_solver_that_is_missing_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["SCS", "CLARABEL"])
    with pytest.raises(
        ValidationError,
        match=r"solver: found 'ECOS', and it has no wheels for Python 3.13 and later; "
        r"installed: \['CLARABEL', 'SCS'\]",
    ):
        check_solver("ECOS")


def test_cones_that_a_solver_cannot_take():
    with pytest.raises(ValidationError, match=r"solver: found 'HIGHS', .* 'SCS'\] can"):
        attempt(most_entropy(), "HIGHS")
    matrix = cp.Variable((2, 2), symmetric=True)
    definite = cp.Problem(cp.Minimize(cp.trace(matrix)), [matrix >> np.eye(2)])
    with pytest.raises(ValidationError, match=r"solver: found 'HIGHS'.* \['CLARABEL', 'SCS'\] can"):
        attempt(definite, "HIGHS")
    assert attempt(definite) == "optimal"


def test_options_alone_are_those_of_clarabel():
    problem = cp.Problem(cp.Minimize(cp.Variable(nonneg=True)))
    assert attempt(problem, None, {"max_iter": 100}) == "optimal"
    assert problem.solver_stats.solver_name == "CLARABEL"
    assert attempt(problem) == "optimal"
    assert problem.solver_stats.solver_name == "HIGHS"


def test_one_s_own_time_limit_comes_before_the_clock_s():
    assert attempt(most_entropy(200), "CLARABEL", {"time_limit": 1e-9}, Clock(60.0)) == "user_limit"


@pytest.mark.parametrize("solver", [name for name in SOLVERS if SOLVERS[name].time_limit])
def test_no_time_left_is_not_all_the_time_there_is(solver: str, monkeypatch: pytest.MonkeyPatch):
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(cp.Problem, "solve", lambda self, **given: seen.append(given))
    attempt(most_entropy(), solver, None, Clock(0.0))
    (given,) = seen
    assert given[SOLVERS[solver].time_limit or ""] > 0  # zero is no limit to SCS


def test_clarabel_stops_in_time():
    problem = most_entropy(400)
    assert attempt(problem, "CLARABEL", None, Clock(1e-3)) == "user_limit"


@pytest.mark.parametrize("name", [None, "CLARABEL", "SCS", "HIGHS"])
def test_linear_programs_without_an_answer(name: str | None):
    one = np.ones(1)
    solver = LinearSolver(name=name)
    assert solver.minimize(one, -np.eye(1), -one, None, None, [(None, 0.0)]) is None
    assert solver.minimize(-one, -np.eye(1), -one, None, None, [(None, None)]) is None
    late = LinearSolver(Clock(0.0), name)
    with pytest.raises(SolverError, match="no time is left"):
        late.minimize(one, -np.eye(1), -one, None, None, [(None, None)])


@pytest.mark.parametrize("name", [None, "CLARABEL", "HIGHS"])
def test_linear_programs_with_equations_and_bounds(name: str | None):
    """min x - y over x + y = 3, x - 2 y <= 0, y <= 1.5: 1.5 and 1.5."""
    found = LinearSolver(name=name).minimize(
        np.array([1.0, -1.0]),
        np.array([[1.0, -2.0]]),
        np.zeros(1),
        np.ones((1, 2)),
        np.array([3.0]),
        [(0.0, None), (None, 1.5)],
    )
    assert found is not None
    assert found.value == pytest.approx(0, abs=1e-8)
    assert found.point == pytest.approx([1.5, 1.5], abs=1e-8)
    assert found.multipliers == pytest.approx([0], abs=1e-8)


BOTH = """
import cvxpy as cp
from cvxleak.envelope import envelope_curve
from cvxleak.mechanisms import truncated_geometric

x = cp.Variable(nonneg=True)
print(cp.Problem(cp.Minimize(x), [x >= 1]).solve(solver="HIGHS"))
print(envelope_curve([0.25] * 4, truncated_geometric(3, 1.0)))
"""


def test_highs_serves_cvxpy_and_the_envelope_in_one_process():
    """Another number of threads than the first of both asks for made the second go on forever."""
    subprocess.run([sys.executable, "-c", BOTH], check=True, timeout=100, capture_output=True)


def test_the_envelope_s_highs_prints_nothing():
    program = (
        "from cvxleak.envelope import pml_envelope as e; e([0.4, 0.6], [[0.8, 0.2], [0, 1]], 0.1)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout == b""
