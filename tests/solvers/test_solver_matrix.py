"""Every solver on every program: `to_cvxpy()`, every builder of constraints, every `solver=`.

A program of one solver is wrong by what `cvxleak.solvers.conic.SOLVERS` states, at most, against a
closed form or a proved bracket; a solver that cannot take the cones says so.
"""

import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import entr

from cvxleak import constraints, verify
from cvxleak.core.errors import ValidationError
from cvxleak.envelope import PMLEnvelope
from cvxleak.local_dp import (
    MinDistortionLocalDP,
    MinInformation,
    MinLocalDP,
    class_two_leakage,
    class_two_program,
    folding_bounds,
    folding_program,
)
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import AdditiveQuery, ChannelSet, Distortion, Mechanism, RecordSpace
from cvxleak.problem import Problem
from cvxleak.queries import parity
from cvxleak.relaxations import DatasetCapacityRelaxation, TimeSharingRelaxation
from cvxleak.solvers.conic import SOLVERS
from cvxleak.sources import SourceSet
from tests.problem.test_contract import LAW, PROBLEMS

LOG2 = float(np.log(2))
PARITY = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
COUNT = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
TOLD = LOG2 - float(entr([0.1, 0.9]).sum())
"""What a bit tells that is wrong with probability .1."""
TILTED = 0.7**1.5 / 0.3**0.5 + 0.3**1.5 / 0.7**0.5
"""e to half of the Rényi divergence of order 3/2, of a bit that is wrong with probability .3."""


def installed(name: str) -> Any:
    missing = name not in cp.installed_solvers()
    return pytest.param(name, marks=pytest.mark.skipif(missing, reason=f"{name} is not installed"))


each_solver = pytest.mark.parametrize("solver", [installed(name) for name in SOLVERS])


Rule = Callable[[Any], list[Any]]


def largest(objective: Callable[[Any], Any], *rules: Rule, shape: Any) -> Any:
    x = cp.Variable(shape)
    return cp.Problem(cp.Maximize(objective(x)), [c for rule in rules for c in rule(x)])


def channel(objective: Callable[[Any], Any], rule: Rule, size: int = 2) -> Any:
    return largest(objective, constraints.row_stochastic, rule, shape=(size, size))


def prior(objective: Callable[[Any], Any], rule: Rule, size: int = 3) -> Any:
    return largest(objective, constraints.prior_polytope, rule, shape=size)


def right(q: Any) -> Any:
    return cp.trace(q) / q.shape[0]


ALLOWED = [[True, True, False], [False, True, True], [True, False, True]]
WARDS = [[0.5, 0.5], [0.1, 0.9]]
PRINTED = ChannelSet.from_printed([[0.8, 0.2], [0.2, 0.8]], digits=1)
LINEAR: dict[str, tuple[Callable[[], cp.Problem], float]] = {
    "row_stochastic": (lambda: channel(lambda q: q[0, 0] - q[1, 0], lambda q: []), 1.0),
    "joint_law": (
        lambda: largest(
            lambda j: j[0, 0] + j[1, 0],
            lambda j: constraints.joint_law(j, [0.3, 0.7]),
            shape=(2, 2),
        ),
        1.0,
    ),
    "output_support": (
        lambda: channel(
            lambda q: q[:, 0].sum(), lambda q: constraints.output_support(q, ALLOWED), 3
        ),
        2.0,
    ),
    "in_channel_set": (
        lambda: channel(right, lambda q: constraints.in_channel_set(q, PRINTED)),
        0.85,
    ),
    "distortion_budget": (
        lambda: channel(
            lambda q: q[0, 1] + q[1, 0],
            lambda q: constraints.distortion_budget(q, WARDS, Distortion.hamming([0, 1]), 0.2),
        ),
        0.4,
    ),
    "maximal_leakage": (
        lambda: channel(cp.trace, lambda q: constraints.maximal_leakage(q, LAW, LOG2), 3),
        2.0,
    ),
    "pml": (lambda: channel(right, lambda q: constraints.pml(q, [0.5, 0.5], np.log(1.8))), 0.9),
    "pufferfish": (
        lambda: channel(
            right, lambda q: constraints.pufferfish(q, [[0.5, 0.5]], [([1, 0], [0, 1])], np.log(3))
        ),
        0.75,
    ),
    "local_dp": (lambda: channel(right, lambda q: constraints.local_dp(q, LOG2), 3), 0.5),
    # a <= 2 (1 - a) + .1
    "local_dp with delta": (
        lambda: channel(right, lambda q: constraints.local_dp(q, LOG2, 0.1)),
        0.7,
    ),
    "record_dp": (
        lambda: channel(
            lambda q: cp.min(cp.diag(q)), lambda q: constraints.record_dp(q, COUNT, LOG2), 3
        ),
        0.5,
    ),
    "divergence_budget": (
        lambda: channel(
            cp.trace, lambda q: constraints.divergence_budget(q, "total-variation", 0.4), 3
        ),
        1.8,
    ),
    "monotone_noise": (
        lambda: channel(
            lambda q: q[0, 2],
            lambda q: constraints.monotone_noise(q, Distortion.absolute(range(3))),
            3,
        ),
        1 / 3,
    ),
    "symmetric": (
        lambda: channel(
            lambda q: q[0, 1],
            lambda q: [*constraints.symmetric(q, [([1, 2, 0], [1, 2, 0])]), q[1, 1] >= 0.4],
            3,
        ),
        0.6,
    ),
    "post_processed": (
        lambda: channel(right, lambda q: constraints.post_processed(q, [[0.9, 0.1], [0.1, 0.9]])),
        0.9,
    ),
    "vulnerability_budget": (
        lambda: channel(
            lambda q: 0.4 * q[0, 0] + 0.6 * q[1, 1],
            lambda q: constraints.vulnerability_budget(q, [0.4, 0.6], 0.7),
        ),
        0.7,
    ),
    "conditional_maximal_leakage": (
        lambda: channel(
            cp.trace,
            lambda q: constraints.conditional_maximal_leakage(
                np.ones((2, 1)), [q], [0.5, 0.5], np.log(1.5)
            ),
        ),
        1.5,
    ),
    "prior_polytope": (
        lambda: largest(
            lambda p: -p[0],
            lambda p: constraints.prior_polytope(
                p, upper=0.6, vertices=[[0.2, 0.8, 0], [0.5, 0, 0.5]]
            ),
            shape=3,
        ),
        -0.275,
    ),
    "ordered_prior": (
        lambda: prior(lambda p: p[1], lambda p: constraints.ordered_prior(p, [2, 0, 1])),
        1 / 3,
    ),
}
"""A program with each builder that is linear, and its value."""

CURVED: dict[str, tuple[Callable[[], cp.Problem], float]] = {
    "mi_budget": (
        lambda: channel(right, lambda q: constraints.mi_budget(q, [0.5, 0.5], TOLD)),
        0.9,
    ),
    "record_mi_budget": (
        lambda: channel(
            right,
            lambda q: constraints.record_mi_budget(q, [0.5, 0.0, 0.5, 0.0], PARITY, 0, TOLD),
        ),
        0.9,
    ),
    "conditional_record_mi_budget": (
        lambda: channel(
            right,
            lambda q: constraints.conditional_record_mi_budget(q, [0.25] * 4, PARITY, 0, 1, TOLD),
        ),
        0.9,
    ),
    "capacity_budget": (
        lambda: channel(right, lambda q: constraints.capacity_budget(q, TOLD)),
        0.9,
    ),
    "sibson_budget": (
        lambda: channel(right, lambda q: constraints.sibson_budget(q, [0.5, 0.5], 2, np.log(1.64))),
        0.9,
    ),
    # Of the second order, a^2 / (1 - a) + (1 - a)^2 / a, and of infinite order at 2 rho.
    "renyi_dp": (lambda: channel(right, lambda q: constraints.renyi_dp(q, 2, np.log(7 / 3))), 0.75),
    "zcdp": (
        lambda: channel(right, lambda q: constraints.zcdp(q, 0.2, orders=[2])),
        1 / (1 + np.exp(-0.4)),
    ),
    "entropy_floor": (
        lambda: prior(
            lambda p: p[0],
            lambda p: constraints.entropy_floor(p, float(entr([0.2, 0.8]).sum())),
            2,
        ),
        0.8,
    ),
}
"""The same for those that take second-order or exponential cones."""

SIX = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
SWAPPED = [SIX, [SIX[1], SIX[0], *SIX[2:]]]
LINEAR |= {
    "HAMMING (11)": (
        lambda: class_two_program([SIX], 0.25),
        float(np.exp(class_two_leakage([SIX], 0.25))),
    ),
    "HAMMING (18)": (
        lambda: folding_program(SWAPPED, 0.3),
        float(np.exp(folding_bounds(SWAPPED, 0.3).upper)),
    ),
}

POWER: dict[str, tuple[Callable[[], cp.Problem], float]] = {
    "renyi_dp of order 3/2": (
        lambda: channel(right, lambda q: constraints.renyi_dp(q, 1.5, 2 * np.log(TILTED))),
        0.7,
    ),
}
"""The same for those that take power cones."""

EXPONENTIAL = {
    "capacity",
    "Rényi capacity",
    "design for a prior",
    "least information",
    "release distortion",
}
"""Problems whose program HiGHS cannot take."""

STATED: dict[str, Callable[[Any], cp.Problem]] = {
    name: lambda problem: problem.to_cvxpy()
    for name in PROBLEMS
    if hasattr(PROBLEMS[name](), "to_cvxpy")
}
# Where the failure probability does not jump.
SMOOTH = PMLEnvelope([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.6)
STATED["PML envelope"] = lambda problem: SMOOTH.to_cvxpy(SMOOTH.solve().lower)
STATED["least epsilon"] = lambda problem: problem.to_cvxpy(problem.solve().upper)

VALUES: dict[str, Callable[[Any], float]] = {
    name: lambda problem: problem.solve(tol=1e-10).upper for name in STATED
}
VALUES["PML envelope"] = lambda problem: SMOOTH.delta
VALUES["least epsilon"] = lambda problem: problem.budget
# I_2 is 2 log of the program's value.
VALUES["Rényi capacity"] = lambda problem: float(np.exp(problem.solve().upper / 2))


def check(problem: cp.Problem, solver: str, value: float) -> None:
    """The value is what the table says, as the solver comes and with its sharp options."""
    stated = SOLVERS[solver]
    for options, off in (({}, stated.as_it_comes), (stated.sharp, stated.accuracy)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            found = problem.solve(solver=solver, **options)
        assert found == pytest.approx(value, rel=0, abs=off * max(1, abs(value))), (
            solver,
            dict(options),
        )


def refused(problem: cp.Problem, solver: str) -> None:
    with pytest.raises(cp.SolverError):
        problem.solve(solver=solver)


def test_no_builder_is_left_out():
    tested = {name.partition(" ")[0] for name in (*LINEAR, *CURVED, *POWER)} - {"HAMMING"}
    assert tested == set(constraints.__all__) - {"channel"}


@each_solver
@pytest.mark.parametrize("name", LINEAR)
def test_linear_builders(name: str, solver: str):
    make, value = LINEAR[name]
    check(make(), solver, value)


@each_solver
@pytest.mark.parametrize("name", CURVED)
def test_builders_with_curved_cones(name: str, solver: str):
    make, value = CURVED[name]
    if solver == "HIGHS":
        refused(make(), solver)
    else:
        check(make(), solver, value)


@each_solver
@pytest.mark.parametrize("name", POWER)
def test_builders_with_power_cones(name: str, solver: str):
    make, value = POWER[name]
    if solver in ("ECOS", "HIGHS"):
        refused(make(), solver)
    else:
        check(make(), solver, value)


@pytest.fixture(scope="module")
def stated() -> Callable[[str], tuple[cp.Problem, float]]:
    known: dict[str, tuple[cp.Problem, float]] = {}

    def get(name: str) -> tuple[cp.Problem, float]:
        if name not in known:
            problem = PROBLEMS[name]()
            known[name] = STATED[name](problem), VALUES[name](problem)
        return known[name]

    return get


@each_solver
@pytest.mark.parametrize("name", STATED)
def test_every_to_cvxpy(name: str, solver: str, stated: Callable[[str], tuple[cp.Problem, float]]):
    problem, value = stated(name)
    if solver == "HIGHS" and name in EXPONENTIAL:
        refused(problem, solver)
    else:
        check(problem, solver, value)


STEPS = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
BOX = SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])
SOLVED: dict[str, Callable[[], Problem]] = {
    "design for a prior": PROBLEMS["design for a prior"],
    "least leakage": PROBLEMS["least leakage"],
    "least distortion": PROBLEMS["least distortion"],
    "least information": lambda: MinInformation([LAW, LAW[::-1]], 0.25),
    "least epsilon, Hamming": lambda: MinLocalDP([SIX], 0.2),
    "least epsilon, a box": lambda: MinLocalDP(BOX, 0.25, STEPS),
    "least epsilon with delta": lambda: MinLocalDP([LAW], 0.25, delta=0.05),
    "least distortion at epsilon, Hamming": lambda: MinDistortionLocalDP([SIX], 1.5),
    "least distortion at epsilon, a box": lambda: MinDistortionLocalDP(BOX, 1.0, STEPS),
    "least distortion at epsilon with delta": lambda: MinDistortionLocalDP([LAW], 1.5, delta=0.05),
}
"""Every problem whose `solve` takes a solver."""

PROVED = 1e-7
"""How wide a bracket is at most, if the problem's own tolerance asks for no less."""


@pytest.fixture(scope="module")
def sharp() -> Callable[[str], Any]:
    known: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in known:
            known[name] = SOLVED[name]().solve()
        return known[name]

    return get


@each_solver
@pytest.mark.parametrize("name", SOLVED)
def test_every_solve_by_a_solver(name: str, solver: str, sharp: Callable[[str], Any]):
    problem = SOLVED[name]()
    if solver == "HIGHS" and "epsilon" not in name:
        with pytest.raises(ValidationError, match="solver: found 'HIGHS', which cannot take"):
            problem.solve(solver=solver)
        return
    bound = problem.solve(solver=solver)
    assert bound.lower <= sharp(name).upper
    assert bound.upper >= sharp(name).lower
    assert bound.gap <= max(PROVED, problem.tolerance * bound.upper)
    assert verify(bound.certificate).passed


HARMLESS = {
    "CLARABEL": {"max_iter": 190},
    "ECOS": {"max_iters": 190},
    "SCS": {"max_iters": 90_000},
    "HIGHS": {"presolve": "on"},
}


@each_solver
@pytest.mark.parametrize("name", [*SOLVED, "a relaxation"])
def test_options_and_the_time_limit_reach_the_solver(
    name: str, solver: str, monkeypatch: pytest.MonkeyPatch
):
    if solver == "HIGHS" and "epsilon" not in name:
        pytest.skip("it cannot take exponential cones")
    seen: list[dict[str, Any]] = []
    solve = cp.Problem.solve

    def watched(self: cp.Problem, *args: Any, **options: Any) -> Any:
        seen.append(options)
        return solve(self, *args, **options)

    monkeypatch.setattr(cp.Problem, "solve", watched)
    options: dict[str, Any] = {"solver": solver, "solver_options": HARMLESS[solver]}
    lumped = Mechanism(parity(3), binary_symmetric(0.2)).lumped(0)
    target: Any = DatasetCapacityRelaxation(lumped, 1.0) if name not in SOLVED else SOLVED[name]()
    target.solve(time_limit=50.0, **options)
    own = [given for given in seen if given.get("solver") == solver]
    assert any(HARMLESS[solver].items() <= given.items() for given in own)
    limit = SOLVERS[solver].time_limit
    if limit is not None:
        assert any(0 < given.get(limit, 0) <= 50 for given in own)
    if name in SOLVED:
        with pytest.raises(ValidationError, match=f"solver_options: {solver} refuses"):
            target.solve(solver=solver, solver_options={"nonsense": 1})
        with pytest.raises(ValidationError, match="solver_options: found 3"):
            target.solve(solver=solver, solver_options=3)


@each_solver
def test_relaxations(solver: str):
    lumped = Mechanism(parity(3), binary_symmetric(0.2)).lumped(0)
    for kind in (DatasetCapacityRelaxation, TimeSharingRelaxation):
        relaxation = kind(lumped, 1.0)
        if solver == "HIGHS":
            with pytest.raises(ValidationError, match="solver: found 'HIGHS', which cannot take"):
                relaxation.solve(solver=solver)
            continue
        sharp = relaxation.solve()
        options = SOLVERS[solver].sharp
        assert relaxation.solve(solver=solver, solver_options=options) == pytest.approx(
            sharp, abs=1e-6
        )
