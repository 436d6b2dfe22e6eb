"""What multipliers prove about linear functions on sets of channels of one's own."""

import copy

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.constraints.exponential import ExpCone
from flint import arb

from cvxleak.constraints import local_dp, maximal_leakage, mi_budget, pml
from cvxleak.core.errors import CertificateError, InfeasibleError
from cvxleak.design import min_leakage
from cvxleak.design.outer_approximation import HalfSpaces
from cvxleak.design.user_constraints import UserConstraints
from cvxleak.kernel.numbers import precision
from cvxleak.proofs.bounds.user_rows import priced, read_own
from cvxleak.queries import parity

SHAPE = (3, 4)
PRIOR = [0.2, 0.3, 0.5]
EVEN = np.full(SHAPE, 0.25)


def shared(Q):
    z = cp.Variable(4, nonneg=True)
    return [Q <= cp.outer(np.ones(3), z), cp.sum(z) <= 1.7, z[0] == Q[1, 1]]


SETS = {
    "entry": lambda Q: Q[0, 0] >= 0.4,
    "equality": lambda Q: Q @ np.arange(4) == np.array([1.0, 1.5, 2.0]),
    "local dp": lambda Q: local_dp(Q, 0.7),
    "pml": lambda Q: pml(Q, PRIOR, 0.5),
    "maximal leakage": lambda Q: maximal_leakage(Q, PRIOR, 0.3),
    "shared": shared,
    "absolute": lambda Q: cp.abs(Q - EVEN) <= 0.1,
    "ball": lambda Q: cp.sum_squares(Q - EVEN) <= 0.05,
    "norms of rows": lambda Q: cp.norm(Q - EVEN, axis=1) <= 0.2,
    "cone": lambda Q: cp.SOC(cp.Constant(0.3), cp.vec(Q - EVEN, order="F")),
    "spectrum": lambda Q: cp.sigma_max(Q - EVEN) <= 0.2,
    "information": lambda Q: mi_budget(Q, PRIOR, 0.1),
    "exponential": lambda Q: ExpCone(Q[0, 0], cp.Constant(1.0), 1 + 2 * Q[1, 1]),
    "epigraph": lambda Q: (lambda t: [cp.norm(Q[0] - Q[1]) <= t, t + Q[2, 2] <= 0.5])(
        cp.Variable()
    ),
}


def half_spaces_of(rule, shape=SHAPE):
    return HalfSpaces(UserConstraints(shape, rule))


def by_solver(rule, slope):
    own = UserConstraints(SHAPE, rule)
    Q = own.channel
    rules = [Q >= 0, cp.sum(Q, axis=1) == 1, *own.constraints]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(slope, Q))), rules)
    return float(problem.solve(solver="CLARABEL"))


def proved(implied, slope, multipliers=None):
    """Return sum_x min_y (slope - what the multipliers add up to) + offset."""
    proof = implied.proof() | ({} if multipliers is None else {"own": multipliers})
    with precision():
        cells, value = priced(read_own(implied.half_spaces, *SHAPE), proof)
        table = [[arb(entry) for entry in row] for row in slope.tolist()]
        for x, y, amount in cells:
            table[x][y] -= amount
        for row in table:
            value += min(row, key=float)
        return float(value)


@pytest.mark.parametrize("name", SETS)
def test_the_bound_is_proved_and_sharp(name):
    half_spaces = half_spaces_of(SETS[name])
    rng = np.random.default_rng(3)
    for _ in range(3):
        slope = rng.normal(size=SHAPE)
        implied = half_spaces.least(slope)
        truth = by_solver(SETS[name], slope)
        assert proved(implied, slope) == pytest.approx(implied.least, abs=1e-9)
        assert implied.least == pytest.approx(truth, abs=2e-5)
        assert proved(implied, slope) <= truth + 1e-7


@pytest.mark.parametrize("name", SETS)
def test_every_half_space_holds_on_the_whole_set(name):
    """Channels of the set, found by a solver for other linear functions, are in all of them."""
    rng = np.random.default_rng(4)
    implied = half_spaces_of(SETS[name]).least(rng.normal(size=SHAPE))
    own = UserConstraints(SHAPE, SETS[name])
    Q = own.channel
    rules = [Q >= 0, cp.sum(Q, axis=1) == 1, *own.constraints]
    cells = {}
    with precision():
        found, offset = priced(read_own(implied.half_spaces, *SHAPE), implied.proof())
    cells = {(x, y): float(amount) for x, y, amount in found}
    for _ in range(4):
        slope = rng.normal(size=SHAPE)
        cp.Problem(cp.Minimize(cp.sum(cp.multiply(slope, Q))), rules).solve(solver="CLARABEL")
        total = sum(amount * Q.value[cell] for cell, amount in cells.items())
        assert total >= float(offset) - 1e-6


def test_affine_constraints_are_stored_as_they_are_stated():
    implied = half_spaces_of(lambda Q: 3 * Q[0, 1] - Q[1, 0] >= 0.125, (2, 2)).least(
        np.array([[0.0, 1.0], [0.0, 0.0]])
    )
    (entry,) = implied.half_spaces
    assert sorted(entry["entries"]) == [[0, 1, 3.0], [1, 0, -1.0]]
    assert (entry["at_least"], entry["equal"], entry["further"]) == (0.125, False, [])


@pytest.mark.parametrize(
    "rule",
    [
        lambda Q: cp.PowCone3D(Q[0, 0], Q[1, 1], Q[2, 2], 0.5),
        lambda Q: cp.bmat([[Q[0, 0], Q[1, 1]], [Q[1, 1], Q[2, 2]]]) >> 0,
    ],
)
def test_a_kind_of_constraint_without_half_spaces_costs_sharpness_only(rule):
    slope = np.random.default_rng(0).normal(size=SHAPE)
    implied = half_spaces_of(rule).least(slope)
    assert implied.half_spaces == []
    assert implied.least == pytest.approx(slope.min(axis=1).sum())
    assert implied.least <= by_solver(rule, slope)


def test_sets_without_channels_are_refused():
    with pytest.raises(InfeasibleError):
        half_spaces_of(lambda Q: Q[0, 0] >= 2).least(EVEN)


def test_hostile_multipliers_are_refused():
    slope = np.random.default_rng(5).normal(size=SHAPE)
    implied = half_spaces_of(SETS["local dp"]).least(slope)
    rows = read_own(implied.half_spaces, *SHAPE)
    assert implied.balance
    good = implied.proof()
    first = next(i for i, m in enumerate(implied.multipliers) if m)
    alone = [m * (i == first) for i, m in enumerate(implied.multipliers)]
    cases = [
        {"own": [-m for m in implied.multipliers], "balance": implied.balance},
        {"own": implied.multipliers, "balance": []},
        {"own": alone, "balance": []},
        {"own": implied.multipliers, "balance": implied.balance * 2},
        {"own": implied.multipliers, "balance": [10**6]},
        {"own": implied.multipliers[1:], "balance": implied.balance},
    ]
    with precision():
        priced(rows, good)
        for case in cases:
            with pytest.raises(CertificateError):
                priced(rows, case)


@pytest.mark.parametrize(
    "change",
    [
        {"entries": [[9, 0, 1.0]]},
        {"entries": [[0, 0]]},
        {"entries": [[0, 0, float("inf")]]},
        {"further": [[-1, 1.0]]},
        {"equal": 1},
        {"at_least": "0"},
        {"more": 1},
    ],
)
def test_malformed_half_spaces_are_refused(change):
    entry = {"entries": [[0, 0, 1.0]], "further": [], "at_least": 0.5, "equal": False}
    read_own([entry], *SHAPE)
    with pytest.raises(CertificateError):
        read_own([copy.deepcopy(entry) | change], *SHAPE)


def test_a_curved_constraint_in_a_design():
    wrong = [[0, 1], [1, 0]]
    given = {"distortion": wrong, "budget": 0.3, "entropy_floor": 1.5, "rows": "orbits"}
    free = min_leakage(parity(3), **given)
    rule = lambda Q: cp.sum_squares(Q[:, 0] - np.array([0.95, 0.2])) <= 0.01  # noqa: E731
    bound = min_leakage(parity(3), constraints=rule, **given)
    assert bound.lower > free.upper
    assert bound.gap <= 1e-3 * bound.upper
    assert bound.witness.user_violation < 1e-7


def test_a_known_prior_to_whom_little_leaks():
    # The objective is flat here: multipliers of a coarse solution gave a gap of 6e-3.
    bound = min_leakage(
        parity(2),
        distortion=[[0, 1], [1, 0]],
        budget=0.3,
        priors=[np.full(4, 0.25)],
        constraints=lambda Q: cp.norm(Q[0] - Q[1]) <= 0.5,
    )
    assert bound.gap <= 1e-3 * bound.upper
    assert bound.stats["rounds"] == 1
