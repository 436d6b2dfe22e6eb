"""The convex relaxations: above every adversary whatever the solver does, and sharp if it is."""

from __future__ import annotations

import math
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit import record_leakage
from cvxleak.audit.worst_adversary.dual import CellDual
from cvxleak.core.errors import InfeasibleError, SolverError, ValidationError
from cvxleak.iterative import joint_blahut_arimoto, meet_entropy_floor
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.queries import count
from cvxleak.relaxations.audit import (
    DatasetCapacityRelaxation,
    PosteriorCellRelaxation,
    Relaxation,
    TimeSharingRelaxation,
)

SOLVERS = [name for name in ("CLARABEL", "ECOS", "SCS") if name in cp.installed_solvers()]
KINDS = [PosteriorCellRelaxation, DatasetCapacityRelaxation, TimeSharingRelaxation]


def rounding(n: int) -> Lumped:
    return Mechanism(count(n), random_rounding(n, base=3)).lumped(0)


def random_lumped(rng: np.random.Generator, k: int, contexts: int, outputs: int) -> Lumped:
    rows = rng.dirichlet(np.ones(outputs), size=k * contexts)
    space = RecordSpace([range(k), range(contexts)])
    return Mechanism.from_channel(space, rows).lumped(0)


def random_adversaries(lumped: Lumped, floor: float, size: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    draws = rng.dirichlet(np.full(len(lumped.rows), 0.3), size=size)
    return np.array([meet_entropy_floor(w, lumped, floor) for w in draws])


def cells_around(rng: np.random.Generator, lumped: Lumped, w: np.ndarray) -> np.ndarray:
    """Cells of a tree, three splits deep for each output, that hold the posteriors of w."""
    joint = np.add.reduceat(w[:, None] * lumped.rows, lumped.starts)
    k = len(lumped.values)
    cells = []
    for rho in (joint / joint.sum(axis=0)).T:
        cell = np.eye(k)
        for _ in range(3):
            i, j = rng.choice(k, size=2, replace=False)
            t = rng.uniform(0.3, 0.7)
            halves = cell.copy(), cell.copy()
            halves[0][j] = halves[1][i] = (1 - t) * cell[i] + t * cell[j]
            cell = next(half for half in halves if (rho @ np.linalg.inv(half) > -1e-9).all())
        cells.append(cell)
    return np.array(cells)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("k", "floor"), [(2, 0.4), (2, 1.6), (3, 1.8)])
def test_the_node_program_and_the_native_dual_agree(solver, k, floor):
    rng = np.random.default_rng(k)
    lumped = random_lumped(rng, k, 3, 3)
    program = PosteriorCellRelaxation(lumped, floor)
    native = CellDual(lumped, lumped.max_entropy - floor)
    accuracy = 1e-3 if solver == "SCS" else 1e-5
    for w in random_adversaries(lumped, floor, 4):
        cells = cells_around(rng, lumped, w)
        program.set_cells(cells)
        program.problem.solve(solver=solver)
        value = program.problem.value
        # It stops where the value is certainly above the threshold, or attained to the accuracy.
        found = native.solve(cells[None], native.first()[None], value - 1e-7, np.array([1e-8]))
        bound = float(found.bound[0])
        # Both are duals of one program: neither is below its value.
        assert value - accuracy <= bound <= value + accuracy
        assert value - accuracy <= program.upper() <= value + 20 * accuracy
        assert lumped_information(w, lumped) <= min(bound, program.upper()) + 1e-12
        assert bound < math.log(k) - 1e-2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("floor", [0.0, 1.5, 3.2])
def test_no_adversary_is_above_a_relaxation(kind, floor):
    lumped = rounding(5)
    upper = kind(lumped, floor).solve()
    for w in random_adversaries(lumped, floor, 40):
        assert lumped_information(w, lumped) <= upper + 1e-12
    assert joint_blahut_arimoto(lumped, floor).value <= upper + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_a_solver_that_stops_early_costs_sharpness_and_not_validity(kind):
    lumped = random_lumped(np.random.default_rng(5), 2, 4, 4)
    best = joint_blahut_arimoto(lumped, 1.7).value
    sharp = kind(lumped, 1.7).solve()
    for iterations in (1, 3, 10, 30):
        relaxation = kind(lumped, 1.7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                relaxation.problem.solve(solver="SCS", max_iters=iterations)
            except cp.SolverError:
                continue
        if relaxation.weights.value is None:
            with pytest.raises(SolverError, match="no point"):
                relaxation.upper()
            continue
        assert relaxation.upper() >= max(best, sharp - 1e-4)


def test_the_capacity_bounds_every_record_and_equals_closed_forms():
    # Without a floor it is the capacity of the query's own channel.
    flip = 0.2
    parity = Mechanism.from_channel(
        RecordSpace.binary(3),
        np.array([[1 - flip, flip], [flip, 1 - flip]])[
            np.indices((2, 2, 2)).sum(axis=0).ravel() % 2
        ],
    )
    uppers = [DatasetCapacityRelaxation(parity.lumped(i), 1.0).solve() for i in range(3)]
    capacity = math.log(2) - float(entr([flip, 1 - flip]).sum())
    assert uppers == pytest.approx([capacity] * 3, abs=1e-5)
    # At the largest floor the prior is uniform, and the bound is I(X;Y) under it.
    lumped = rounding(4)
    uniform = lumped.uniform()
    exact = entr(uniform @ lumped.rows).sum() - uniform @ entr(lumped.rows).sum(axis=1)
    assert DatasetCapacityRelaxation(lumped, 4 * math.log(2) - 1e-6).solve() == pytest.approx(
        exact, abs=5e-3
    )


def test_slabs_start_at_the_capacity_and_fall_towards_the_leakage():
    lumped = Mechanism(count(5), truncated_geometric(5, 0.5)).lumped(0)
    capacity = DatasetCapacityRelaxation(lumped, 3.0).solve()
    uppers = [TimeSharingRelaxation(lumped, 3.0, pieces).solve() for pieces in (1, 2, 4, 8, 32)]
    assert uppers[0] == pytest.approx(capacity, abs=1e-4)
    assert np.all(np.diff(uppers) < 0)
    leakage = joint_blahut_arimoto(lumped, 3.0).value
    assert leakage < uppers[-1] < leakage + 0.015


def test_a_functional_that_tells_nothing_apart_is_one_slab():
    lumped = rounding(4)
    flat = TimeSharingRelaxation(lumped, 2.0, 8, np.zeros(len(lumped.rows)))
    assert flat.solve() == pytest.approx(DatasetCapacityRelaxation(lumped, 2.0).solve(), abs=1e-4)


def feasible(relaxation: Relaxation) -> list[np.ndarray]:
    """Adversaries that meet the floor and the relaxation's own constraints."""
    rng = np.random.default_rng(0)
    found = []
    for target in rng.dirichlet(np.full(len(relaxation.lumped.rows), 0.3), size=6):
        distance = cp.sum_squares(relaxation.weights - target)
        cp.Problem(cp.Minimize(distance), relaxation.problem.constraints).solve(solver="CLARABEL")
        p = np.maximum(relaxation.weights.value, 0)
        found.append(p / p.sum())
    return found


def known_marginal(relaxation: Relaxation) -> list[cp.Constraint]:
    one = relaxation.lumped.value_index == 1
    return [relaxation.weights[one].sum() == 0.1]


def polytope(relaxation: Relaxation) -> list[cp.Constraint]:
    uniform = relaxation.lumped.uniform()
    return [relaxation.weights <= 1.8 * uniform, relaxation.weights >= 0.3 * uniform]


def ball(relaxation: Relaxation) -> list[cp.Constraint]:
    uniform = relaxation.lumped.uniform()
    return [cp.sum(cp.kl_div(relaxation.weights, uniform)) <= 0.2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limits", [known_marginal, polytope, ball])
def test_constraints_of_ones_own_make_the_bound_smaller_and_keep_it(kind, limits):
    lumped = rounding(4)
    free, limited = kind(lumped, 1.0), kind(lumped, 1.0)
    limited.constrain(limits(limited))
    upper = limited.solve(solver="CLARABEL")
    if kind is not PosteriorCellRelaxation or limits is known_marginal:  # H(A) is free otherwise
        assert upper < free.solve() - 1e-3
    assert upper == pytest.approx(limited.problem.value, abs=1e-3)
    for w in feasible(limited):
        # The adversaries found here miss their constraints by a solver's tolerance.
        assert lumped_entropy(w, lumped) >= 1.0 - 1e-6
        assert lumped_information(w, lumped) <= upper + 1e-5


def of_two(relaxation: Relaxation) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(7).dirichlet(np.ones(len(relaxation.lumped.rows)), size=2)
    return 0.5 * draws[0] + 0.5 * relaxation.lumped.uniform(), draws[1]


def mixture(relaxation: Relaxation) -> list[cp.Constraint]:
    one, other = of_two(relaxation)
    share = cp.Variable(bounds=[0, 1])
    return [relaxation.weights == share * one + (1 - share) * other]


def near(relaxation: Relaxation) -> list[cp.Constraint]:
    # By hand what cp.norm1 would do.
    distance = cp.Variable(len(relaxation.lumped.rows), bounds=[0, 1])
    away = relaxation.weights - relaxation.lumped.uniform()
    return [away <= distance, -away <= distance, cp.sum(distance) <= 0.4]


@pytest.mark.parametrize("kind", KINDS)
def test_variables_of_ones_own_have_bounds_and_keep_the_bound(kind):
    lumped = rounding(4)
    relaxation = kind(lumped, 0.5)
    relaxation.constrain(mixture(relaxation))
    upper = relaxation.solve()
    assert upper == pytest.approx(relaxation.problem.value, abs=1e-4)
    one, other = of_two(relaxation)
    for share in np.linspace(0, 1, 21):
        w = share * one + (1 - share) * other
        if lumped_entropy(w, lumped) >= 0.5:
            assert lumped_information(w, lumped) <= upper + 1e-12
    aided, plain = kind(lumped, 1.0), kind(lumped, 1.0)
    aided.constrain(near(aided))
    plain.constrain([cp.norm1(plain.weights - lumped.uniform()) <= 0.4])
    sharp = aided.solve()
    assert sharp == pytest.approx(aided.problem.value, abs=1e-4)
    # The norm has kinks, and one tangent to it says less than all of its pieces.
    assert plain.solve() >= sharp - 1e-4
    assert plain.problem.value == pytest.approx(sharp, abs=1e-4)


@pytest.mark.parametrize(
    "limits",
    [
        known_marginal,
        mixture,
        *(pytest.param(limits, marks=pytest.mark.slow) for limits in (polytope, ball, near)),
    ],
)
def test_an_audit_certifies_the_class_of_adversaries_that_a_relaxation_bounds(limits):
    mechanism = Mechanism(count(2), random_rounding(2, base=3))
    relaxation = TimeSharingRelaxation(mechanism.lumped(1), 0.5, pieces=32)
    relaxation.constrain(limits(relaxation))
    upper = relaxation.solve()
    known = relaxation.adversaries(mechanism, 1)
    bound = record_leakage(mechanism, 0.5, 1, adversaries=known, tol=1e-2)
    assert len(bound.certificate.problem["adversaries"]) == len(known)
    # The audit's bound is the sharper one, up to what it leaves open.
    assert bound.upper <= upper * 1.01 + 1e-6
    for w in feasible(relaxation):
        assert lumped_information(w, relaxation.lumped) <= bound.upper + 1e-5
        for one in known:
            # Each value of the query and the record is the context of one group.
            groups = [
                next(
                    g
                    for g, contexts in enumerate(relaxation.lumped.contexts)
                    if total in contexts and relaxation.lumped.value_index[g] == x
                )
                for total, x in one.query.values
            ]
            mean = w[groups] @ one.feature
            assert mean <= one.at_most + 1e-5
            assert one.at_least is None or mean >= one.at_least - 1e-5


def test_a_class_of_adversaries_is_that_of_the_mechanism_that_it_was_made_for():
    mechanism = Mechanism(count(3), random_rounding(3, base=3))
    relaxation = DatasetCapacityRelaxation(mechanism.lumped(0), 0.5)
    assert relaxation.adversaries(mechanism, 0) == ()
    relaxation.constrain([cp.norm(relaxation.weights) <= 0.5])
    with pytest.raises(SolverError, match="no point"):
        relaxation.adversaries(mechanism, 0)
    relaxation.solve()
    assert relaxation.weights.value is not None
    (one,) = relaxation.adversaries(mechanism, 2)  # records look alike
    assert (one.at_least, one.at_most) == (None, pytest.approx(0.5, abs=1e-6))
    with pytest.raises(ValidationError, match="not the one of the relaxation"):
        relaxation.adversaries(Mechanism(count(3), random_rounding(3, base=2)), 0)
    with pytest.raises(ValidationError, match="mechanism"):
        relaxation.adversaries(mechanism.lumped(0), 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limits", [mixture, near])
def test_with_variables_of_ones_own_too_a_solver_may_stop_early(kind, limits):
    lumped = rounding(3)
    sharp = kind(lumped, 0.5)
    sharp.constrain(limits(sharp))
    value = sharp.solve(solver="CLARABEL")
    tried = 0
    for iterations in (3, 10, 30):
        relaxation = kind(lumped, 0.5)
        relaxation.constrain(limits(relaxation))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                relaxation.problem.solve(solver="SCS", max_iters=iterations)
            except cp.SolverError:
                continue
        if relaxation.weights.value is not None:
            tried += 1
            assert relaxation.upper() >= value - 1e-4
    assert tried


def test_floors_and_cells_are_parameters():
    lumped = rounding(4)
    for kind in KINDS:
        relaxation = kind(lumped, 0.5)
        assert relaxation.problem.is_dcp(dpp=True)
        relaxation.solve()
        relaxation.entropy_floor.value = 2.2
        assert relaxation.solve() == pytest.approx(kind(lumped, 2.2).solve(), abs=1e-5)


@pytest.mark.parametrize(
    ("constraint", "match"),
    [
        (lambda w: cp.sum_squares(w) >= 0.5, "not convex"),
        (lambda w: cp.norm(w) <= cp.Variable(), "finite bounds"),
        (lambda w: cp.norm(w) <= cp.Variable(bounds=[0, None]), "finite bounds"),
        (lambda w: w[0] <= cp.Variable(boolean=True), "whole numbers"),
        (lambda w: cp.SOC(w[0], w[1:]), "equalities and inequalities"),
        (lambda w: True, "equalities and inequalities"),
    ],
)
def test_constraints_that_cannot_be_priced_are_refused(constraint, match):
    relaxation = DatasetCapacityRelaxation(rounding(3), 1.0)
    with pytest.raises(ValidationError, match=match):
        relaxation.constrain([constraint(relaxation.weights)])


def test_bad_arguments_are_named():
    lumped = rounding(3)
    for kind in KINDS:
        with pytest.raises(ValidationError, match="lumped"):
            kind("lumped", 1.0)
        with pytest.raises(ValidationError, match="entropy_floor"):
            kind(lumped, -1.0)
        with pytest.raises(InfeasibleError, match=r"log\|X\|"):
            kind(lumped, 2.2)
    outputs = lumped.rows.shape[1]
    for cells in (
        np.eye(2),
        np.full((outputs, 2, 2), 0.4),
        np.full((outputs, 2, 2), 0.5),
        np.broadcast_to([[1.5, -0.5], [0, 1]], (outputs, 2, 2)),
    ):
        with pytest.raises(ValidationError, match="cells"):
            PosteriorCellRelaxation(lumped, 1.0, cells)
    with pytest.raises(ValidationError, match="functional"):
        TimeSharingRelaxation(lumped, 1.0, 4, [1.0, 2.0])
    with pytest.raises(ValidationError, match="pieces"):
        TimeSharingRelaxation(lumped, 1.0, 0)


def test_constraints_that_nobody_meets():
    relaxation = DatasetCapacityRelaxation(rounding(3), 1.0)
    with pytest.raises(SolverError, match="no point"):
        relaxation.upper()
    relaxation.constrain([relaxation.weights[0] >= 0.9, relaxation.weights[1] >= 0.9])
    with pytest.raises(InfeasibleError, match="no prior"):
        relaxation.solve()
