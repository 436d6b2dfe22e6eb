"""Witnesses meet the user's own constraints: inequalities with room, equations to rounding."""

import dataclasses
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from cvxleak.constraints import local_dp
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.design import DesignForPrior, design_for_prior, min_distortion, min_leakage
from cvxleak.design.slater_repair import MET, SlaterRepair
from cvxleak.design.user_constraints import UserConstraints, user_violations
from cvxleak.model import Distortion
from cvxleak.problem.bound import Bound, Status
from cvxleak.proofs import verify
from cvxleak.queries import count, parity

HAMMING = [[0.0, 1.0], [1.0, 0.0]]


def further(Q):
    z = cp.Variable()
    return [Q[0, 0] >= z, z >= 0.95]


INEQUALITIES = {
    "affine": lambda Q: Q[0, 0] >= 0.95,
    "parameter": lambda Q: Q[0, 0] >= cp.Parameter(value=0.95),
    "further variables": further,
    "local DP": lambda Q: local_dp(Q, 2.0),
    "ball": lambda Q: cp.sum_squares(Q[:, 0] - np.array([0.85, 0.15])) <= 0.01,
    "cone": lambda Q: cp.SOC(0.1 * cp.sum(Q[0]), Q[:, 0] - np.array([0.85, 0.15])),
    "entropy": lambda Q: cp.sum(cp.entr(Q[0])) >= 0.4,
    "matrix": lambda Q: cp.bmat([[Q[0, 0] - 0.7, 0.1], [0.1, Q[1, 1] - 0.6]]) >> 0,
}
EQUATIONS = {
    "affine": lambda Q: 0.3 * Q[0, 0] + 0.1 * Q[1, 1] == 0.33,
    "implied": lambda Q: [Q[0, 0] >= 0.9, Q[0, 0] <= 0.9],
    "large": lambda Q: 1e6 * Q[0, 0] == 9e5,
}


def solved(rule):
    yield design_for_prior([0.4, 0.6], HAMMING, 0.2, constraints=rule)
    yield design_for_prior([0.4, 0.6], HAMMING, 0.25, minimize="distortion", constraints=rule)
    own = {"distortion": HAMMING, "entropy_floor": 0.5, "rows": "orbits", "constraints": rule}
    yield min_leakage(parity(2), budget=0.2, **own)
    yield min_distortion(parity(2), budget=0.25, **own)


def missed(bound):
    """Return what the result says, after it is measured again."""
    design = bound.witness
    found = bound.stats.get("user_violation", getattr(design, "user_violation", None))
    matrix = design.matrix if hasattr(design, "matrix") else design.channel.matrix
    assert matrix.min() >= 0
    assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-15
    return found, matrix


@pytest.mark.parametrize("name", INEQUALITIES)
def test_inequalities_are_met(name):
    rule = INEQUALITIES[name]
    for bound in solved(rule):
        # A matrix has no half-spaces: the lower end does not know of it, and may be too low.
        assert bound.status is Status.CERTIFIED or name == "matrix"
        assert verify(bound.certificate).passed
        told, matrix = missed(bound)
        assert told == 0.0
        assert user_violations(rule, matrix) == {"constraints[0]": 0.0}


def test_a_matrix_that_the_lower_end_does_not_know_of_leaves_the_bracket_valid():
    design = DesignForPrior([0.4, 0.6], HAMMING, 0.2, constraints=INEQUALITIES["matrix"])
    truth, bound = design.to_cvxpy().solve(solver="CLARABEL"), design.solve()
    assert bound.lower <= truth <= bound.upper + 1e-6
    assert bound.upper == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("name", EQUATIONS)
def test_equations_are_met_to_rounding(name):
    rule = EQUATIONS[name]
    for bound in solved(rule):
        assert bound.status is Status.CERTIFIED
        told, matrix = missed(bound)
        assert told <= MET * (1e6 if name == "large" else 1)
        assert user_violations(rule, matrix)["constraints[0]"] == told


def test_an_inequality_is_met_in_rational_numbers():
    bound = design_for_prior([0.4, 0.6], HAMMING, 0.3, constraints=lambda Q: Q[0, 0] >= 0.95)
    row = [Fraction(entry) for entry in bound.witness.matrix[0].tolist()]
    assert row[0] / sum(row) >= Fraction(0.95)


def test_what_cannot_be_repaired_is_not_certified():
    # A ball of radius 0 has no interior, and is not affine.
    point = np.array([0.9, 0.1])
    rule = lambda Q: cp.norm(Q[0] - point) <= 0  # noqa: E731
    bound = min_leakage(
        parity(2),
        distortion=HAMMING,
        budget=0.2,
        entropy_floor=0.5,
        rows="orbits",
        constraints=rule,
    )
    exact = abs(bound.witness.channel.matrix[0] - point).max() == 0
    assert bound.witness.user_violation < 1e-6
    met = SlaterRepair(UserConstraints((2, 2), (rule,))).met(bound.witness.channel.matrix)
    assert bound.status is (Status.CERTIFIED if met else Status.BRACKETED)
    assert exact or bound.witness.user_violation > 0
    assert (bound.certificate.upper is None) is not met


def test_a_witness_that_is_not_feasible_is_never_certified():
    for upper in (1.0, 1.5):
        assert Bound.proved("x", 1.0, upper, tol=1.0).status is Status.CERTIFIED
        assert Bound.proved("x", 1.0, upper, tol=1.0, feasible=False).status is Status.BRACKETED


def test_a_channel_far_from_the_set_is_brought_into_it():
    rules = (lambda Q: Q[0, 0] >= 0.7, lambda Q: [Q[:, 2] == 0, cp.norm(Q[1]) <= 0.8])
    inside = SlaterRepair(UserConstraints((2, 3), rules))
    far = np.array([[0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    near = inside.repaired(far)
    assert not inside.met(far)
    assert inside.met(near)
    assert near[0, 0] >= 0.7
    assert (near[:, 2] == 0).all()
    good = np.array([[0.8, 0.2, 0.0], [0.5, 0.5, 0.0]])
    assert inside.repaired(good) == pytest.approx(good, abs=1e-15)


def test_an_empty_set_leaves_the_channel_as_it_is():
    half = np.full((2, 2), 0.5)
    assert SlaterRepair(UserConstraints((2, 2), (lambda Q: Q[0, 0] >= 1.5,))).repaired(half) is half
    with pytest.raises(InfeasibleError, match="no channel meets them"):
        design_for_prior([0.5, 0.5], HAMMING, 0.2, constraints=lambda Q: Q[0, 0] >= 1.5)


def test_unbiased_answers_are_unbiased():
    values = np.arange(3.0)
    rule = lambda Q: Q @ values == values  # noqa: E731
    bound = design_for_prior([0.2, 0.5, 0.3], Distortion.absolute(range(3)), 0.1, constraints=rule)
    assert np.abs(bound.witness.matrix @ values - values).max() <= 1e-14


def test_a_constant_stays_constant_and_tells_nothing():
    rule = lambda Q: Q[0, 0] >= 0.25  # noqa: E731
    bound = min_leakage(
        parity(2),
        distortion=HAMMING,
        budget=0.6,
        entropy_floor=0.5,
        rows="orbits",
        constraints=rule,
    )
    assert (bound.lower, bound.upper) == (0.0, 0.0)
    assert (bound.witness.channel.matrix == bound.witness.channel.matrix[0]).all()
    assert bound.witness.user_violation == 0.0


@pytest.mark.parametrize("budget", [0.2, 0.25])
def test_a_certificate_whose_witness_misses_own_constraints_fails(budget):
    rule = INEQUALITIES["affine"]
    own = {"distortion": HAMMING, "entropy_floor": 0.5, "rows": "orbits", "constraints": rule}
    leakage = min_leakage(parity(2), budget=budget, **own).certificate
    prior = design_for_prior([0.4, 0.6], HAMMING, budget, constraints=rule).certificate
    spent = design_for_prior(
        [0.4, 0.6], HAMMING, budget, minimize="distortion", constraints=rule
    ).certificate
    blunt = [[0.94, 0.06], [0.06, 0.94]]  # within all budgets but that of the entry
    for certificate in (leakage, prior, spent):
        witness = dict(certificate.witness)
        if certificate is leakage:
            witness["channel"] = witness["channel"] | {"matrix": blunt}
        else:
            witness["channel"] = blunt
        forged = dataclasses.replace(certificate, witness=witness, upper=10.0)
        verdict = verify(forged)
        assert not verdict.passed
        assert certificate is spent or "misses entry 0 of own" in verdict.reason


@pytest.mark.parametrize("measure", ["local_dp", "pml", "maximal_leakage"])
@pytest.mark.parametrize("own", [(), lambda Q: Q[0, 0] <= 0.9])
def test_budgets_of_which_the_exponential_is_huge(measure, own):
    error = [[0.1, 1.0], [1.0, 0.0]]
    # Conic solvers get e^13 in place of a larger factor, which leaves a gap of about e^-13.
    tol = 1e-4 if own else None
    for budget in (29.0, 31.0, 800.0):
        bound = design_for_prior(
            [0.4, 0.6], error, budget, measure=measure, constraints=own, tol=tol
        )
        exact = 0.04 + (0.036 if own else 0.0)
        assert bound.status is Status.CERTIFIED
        assert verify(bound.certificate).passed
        assert bound.lower <= exact * (1 + 1e-15)
        assert bound.upper == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("measure", ["local_dp", "pml", "maximal_leakage"])
def test_prices_of_privacy_are_the_slopes_of_the_distortion(measure):
    prior, error = [0.5, 0.3, 0.2], Distortion.absolute(range(3))

    def least(budget, **options):
        return design_for_prior(prior, error, budget, measure=measure, **options)

    step = 1e-4
    slope = (least(0.7 + step).upper - least(0.7 - step).upper) / (2 * step)
    assert least(0.7).shadow_prices["budget"] == pytest.approx(slope, rel=1e-3, abs=1e-9)
    told = least(0.7, solver="CLARABEL").shadow_prices["budget"]
    assert told == pytest.approx(slope, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "ECOS"])
def test_any_solver_of_cvxpy_gives_a_bracket_around_the_same_number(solver):
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    for number in ({"budget": 0.1}, {"slope": 1.0}, {"budget": 0.1, "minimize": "distortion"}):
        sharp = design_for_prior([0.4, 0.6], HAMMING, **number)
        bound = design_for_prior([0.4, 0.6], HAMMING, **number, solver=solver)
        assert bound.stats["solver"] == solver
        assert bound.lower <= sharp.upper
        assert bound.upper >= sharp.lower
        assert bound.gap < 1e-5


@pytest.mark.parametrize("solver", ["NOPE", 3])
def test_a_solver_that_is_not_installed_is_named(solver):
    with pytest.raises(ValidationError, match="solver: found"):
        design_for_prior([0.4, 0.6], HAMMING, 0.1, solver=solver)
    with pytest.raises(ValidationError, match="solver: found"):
        min_leakage(parity(2), distortion=HAMMING, budget=0.1, entropy_floor=0.5, solver=solver)


def test_a_constant_within_the_budget_is_exactly_silent():
    bound = design_for_prior([0.4, 0.6], HAMMING, 0.7, constraints=lambda Q: Q[0, 0] <= 0.3)
    assert (bound.lower, bound.upper) == (0.0, 0.0)
    assert (bound.witness.matrix == bound.witness.matrix[0]).all()
    assert bound.witness.matrix[0, 0] <= 0.3


def test_nothing_to_distort_is_exactly_nothing():
    for bound in (
        design_for_prior([0.4, 0.6], np.zeros((2, 2)), 0.1, minimize="distortion"),
        design_for_prior([0.4, 0.6], HAMMING, 9.0, minimize="distortion"),
        design_for_prior([0.4, 0.6], HAMMING, slope=0.0),
    ):
        assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_a_master_that_one_solver_fails_at_is_given_to_another():
    bound = min_leakage(
        count(3),
        distortion=Distortion.absolute(range(4)),
        budget=0.5,
        entropy_floor=1.0,
        objective="total",
        rows="orbits",
        constraints=lambda Q: Q[0, 0] >= 0.95,
        tol=0.01,
        time_limit=None,
    )
    assert bound.witness.user_violation == 0.0
    assert bound.witness.channel.matrix[0, 0] >= 0.95
    assert 0.42 < bound.lower <= bound.upper < 0.44


def least_distortion(prior, distortion):
    """The least with q(0|0) <= 0.3 and q(1|1) >= 0.2, row by row."""
    ends = [(0.0, 0.3), (0.0, 0.8), (0.0, 1.0), (0.0, 1.0)]
    return sum(
        p * min(d[0] * q + d[1] * (1 - q) for q in pair)
        for p, d, pair in zip(prior, distortion.tolist(), ends, strict=True)
    )


@pytest.mark.parametrize("seed", [0, 2, 4, 11, 24])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_distortions_of_any_size(seed, share):
    rng = np.random.default_rng(seed)
    prior, distortion = rng.dirichlet(np.ones(4)), rng.random((4, 2)) * 1e6
    least = least_distortion(prior, distortion)
    constant = min(float(prior @ distortion @ [q, 1 - q]) for q in (0.0, 0.3))
    budget = least + share * (constant - least)
    rules = lambda Q: [Q[0, 0] <= 0.3, Q[1, 1] >= 0.2]  # noqa: E731
    bound = design_for_prior(prior, distortion, budget * (1 + 1e-9), constraints=rules)
    assert bound.witness.matrix[0, 0] <= 0.3 + 1e-12
    assert bound.witness.matrix[1, 1] >= 0.2 - 1e-12
    assert verify(bound.certificate).passed
    assert bound.status is Status.CERTIFIED or share == 0
    least_leaky = design_for_prior(
        prior, distortion, 0.05, minimize="distortion", constraints=rules
    )
    assert least_leaky.status is Status.CERTIFIED
    assert least <= least_leaky.upper * (1 + 1e-12)


@pytest.mark.parametrize(
    ("prior", "rules", "least"),
    [
        ([0.4, 0.6], lambda Q: Q[0, 0] <= 0.3, 0.4),
        ([0.4, 0.6], lambda Q: Q[0, 0] >= 0.1, 0.4 * 0.9 + 0.6 * 0.1),
        ([0.2, 0.3, 0.5], lambda Q: [Q[0, 0] >= 0.2, Q[1, 1] >= 0.3], 1 - 0.04 - 0.09 - 0.25),
    ],
)
def test_a_leakage_budget_of_nothing(prior, rules, least):
    size = len(prior)
    bound = design_for_prior(prior, 1 - np.eye(size), 0.0, minimize="distortion", constraints=rules)
    assert bound.status is Status.CERTIFIED
    assert bound.lower <= least + 1e-12
    assert bound.upper == pytest.approx(least, abs=1e-8)
    assert (bound.witness.matrix == bound.witness.matrix[0]).all()
    assert verify(bound.certificate).passed
    assert "budget" not in bound.shadow_prices


def test_a_leakage_budget_of_nothing_that_no_channel_meets():
    with pytest.raises(InfeasibleError, match="least feasible leakage"):
        design_for_prior(
            [0.4, 0.6],
            HAMMING,
            0.0,
            minimize="distortion",
            constraints=lambda Q: [Q[0, 0] >= 0.8, Q[1, 1] >= 0.3],
        )
