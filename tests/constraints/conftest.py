"""What the tests of the constraints share."""

import cvxpy as cp
import numpy as np
import pytest

SOLVERS = [name for name in ("CLARABEL", "ECOS", "SCS") if name in cp.installed_solvers()]


@pytest.fixture(params=SOLVERS)
def solver(request):
    return request.param


@pytest.fixture
def holds():
    """Whether linear constraints on data can be met (they may hold auxiliary variables)."""

    def check(constraints):
        problem = cp.Problem(cp.Minimize(0), constraints)
        problem.solve(solver="HIGHS")
        assert problem.status in {"optimal", "infeasible"}
        return problem.status == "optimal"

    return check


@pytest.fixture
def best():
    """The optimal value of a maximization, compiled as DPP."""

    def solve(objective, constraints, solver="CLARABEL"):
        problem = cp.Problem(cp.Maximize(objective), constraints)
        assert problem.is_dcp()
        assert problem.is_dpp()
        value = problem.solve(solver=solver)
        assert problem.status == "optimal"
        return float(value)

    return solve


@pytest.fixture(params=range(6))
def random_case(request):
    """A prior and a channel with entries far above the solvers' tolerances."""
    rng = np.random.default_rng(request.param)
    k, m = rng.integers(2, 5, size=2)
    return rng.dirichlet(np.ones(k)), 0.9 * rng.dirichlet(np.full(m, 0.7), size=k) + 0.1 / m
