import cvxpy as cp
import numpy as np
import pytest

from cvxleak import measures
from cvxleak.constraints import maximal_leakage, mi_budget, pml, record_mi_budget, row_stochastic
from cvxleak.core.errors import ValidationError
from cvxleak.expressions import mutual_information
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
from tests.reference import binary_entropy


def rate(k, D):
    """Rate-distortion function of a uniform source under Hamming distortion."""
    return np.log(k) - binary_entropy(D) - D * np.log(k - 1)


# Each set on data: it begins at the measure.


def least_budget(build):
    budget = cp.Variable()
    return cp.Problem(cp.Minimize(budget), build(budget)).solve(solver="CLARABEL")


def test_mi_budget_holds_from_the_measure_on(random_case):
    p, q = random_case
    least = least_budget(lambda budget: mi_budget(p, q, budget))
    assert least == pytest.approx(measures.mutual_information(p, q), abs=1e-6)


def test_maximal_leakage_holds_from_the_measure_on(random_case, holds):
    p, q = random_case
    leakage = measures.maximal_leakage(p, q)
    assert holds(maximal_leakage(p, q, leakage + 1e-4))
    assert not holds(maximal_leakage(p, q, leakage - 1e-4))


def test_pml_holds_from_the_measure_on(random_case, holds):
    p, q = random_case
    worst = measures.max_information(p, q)
    assert holds(pml(p, q, worst + 1e-4))
    assert not holds(pml(p, q, worst - 1e-4))


def test_inputs_of_probability_zero_do_not_count(holds):
    p, q = np.array([0.5, 0.5, 0.0]), np.array([[0.6, 0.4], [0.4, 0.6], [0.0, 1.0]])
    assert holds(pml(p, q, np.log(1.2) + 1e-4))
    assert holds(maximal_leakage(p, q, np.log(1.2) + 1e-4))
    least = least_budget(lambda budget: mi_budget(p, q, budget))
    assert least == pytest.approx(measures.mutual_information(p, q), abs=1e-6)
    # The support of a Parameter is not known, so all inputs count.
    assert not holds(pml(cp.Parameter(3, value=p), q, np.log(1.2) + 1e-4))
    assert holds(pml(cp.Parameter(3, value=p), q, np.log(2) + 1e-4))


# Optima in closed form.


@pytest.mark.parametrize(("k", "D"), [(2, 0.1), (4, 0.3)])
def test_mi_budget_inverts_the_rate_distortion_function(k, D, solver, best):
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + mi_budget(np.full(k, 1 / k), Q, rate(k, D))
    assert best(cp.trace(Q) / k, rules, solver) == pytest.approx(1 - D, abs=1e-3)


def test_a_variable_budget_is_the_epigraph(solver):
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(4, 3.0))
    Q, leakage = cp.Variable((4, 4)), cp.Variable()
    rules = [*row_stochastic(Q), p @ cp.diag(Q) >= 0.7]
    problem = cp.Problem(cp.Minimize(leakage), rules + mi_budget(p, Q, leakage))
    assert problem.is_dcp()
    direct = cp.Problem(cp.Minimize(mutual_information(p, Q)), rules).solve(solver="CLARABEL")
    assert problem.solve(solver=solver) == pytest.approx(direct, abs=2e-4)


def test_mi_budget_is_quick_where_the_output_law_is_shared():
    """The program of 40 x 40 cells has no dense rows: a few nonzeros per cell."""
    p = np.random.default_rng(1).dirichlet(np.ones(40))
    Q, leakage = cp.Variable((40, 40)), cp.Variable()
    problem = cp.Problem(cp.Minimize(leakage), row_stochastic(Q) + mi_budget(p, Q, leakage))
    data, _, _ = problem.get_problem_data("CLARABEL")
    assert data["A"].nnz < 10 * 40 * 40


@pytest.mark.parametrize("flip", [0.1, 0.25])
def test_record_mi_budget_bounds_what_parity_tells(flip, solver, best):
    """One who knows all other bits sees the last one through a binary symmetric channel."""
    n = 3
    parity = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=2)
    knows = np.array([0.5 if x[1:] == (0, 0) else 0.0 for x in parity.space.datasets()])
    law = np.array([[0.5, 0.0], [0.0, 0.5]])
    budget = np.log(2) - binary_entropy(flip)
    Q = cp.Variable((2, 2))
    for prior in (knows, law):
        rules = row_stochastic(Q) + record_mi_budget(prior, parity, Q, 0, budget)
        assert best(cp.trace(Q) / 2, rules, solver) == pytest.approx(1 - flip, abs=1e-3)


def test_record_mi_budget_holds_from_the_measure_on():
    rng = np.random.default_rng(3)
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(3), size=4)
    for records in (1, (0, 2)):
        leak = measures.record_information(p, Mechanism(count, q), records)
        least = least_budget(lambda budget, i=records: record_mi_budget(p, count, q, i, budget))
        assert least == pytest.approx(leak, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_pml_of_a_uniform_prior_bounds_the_truth(epsilon, solver, best):
    """q(y|y) <= e^eps p(y) adds up to a truth probability of e^eps / k."""
    k = 4
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + pml(np.full(k, 1 / k), Q, epsilon)
    assert best(cp.trace(Q) / k, rules, solver) == pytest.approx(np.exp(epsilon) / k, abs=1e-4)


def test_pml_is_void_from_the_rarest_input_on(best):
    p = np.array([0.1, 0.3, 0.6])
    Q = cp.Variable((3, 3))
    limit = np.log(1 / 0.1)
    assert best(cp.trace(Q), row_stochastic(Q) + pml(p, Q, limit)) == pytest.approx(3, abs=1e-6)
    assert best(cp.trace(Q), row_stochastic(Q) + pml(p, Q, limit - 0.1)) < 3 - 1e-3


@pytest.mark.parametrize("budget", [0.0, 0.5, 1.0])
def test_maximal_leakage_is_what_guessing_gains(budget, solver, best):
    k = 4
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + maximal_leakage(np.full(k, 1 / k), Q, budget)
    assert best(cp.trace(Q), rules, solver) == pytest.approx(np.exp(budget), abs=1e-3)


def test_no_channel_is_useful_and_silent():
    Q = cp.Variable((3, 3))
    useful = [*row_stochastic(Q), cp.trace(Q) >= 2.0]
    p = np.full(3, 1 / 3)
    for private in (
        mi_budget(p, Q, rate(3, 1 / 3) - 0.01),
        maximal_leakage(p, Q, np.log(2) - 0.01),
        pml(p, Q, np.log(2) - 0.01),
    ):
        problem = cp.Problem(cp.Minimize(0), useful + private)
        problem.solve(solver="CLARABEL")
        assert problem.status == "infeasible"


# Parameters.


def test_budgets_and_priors_as_parameters_are_followed():
    p, budget = cp.Parameter(3, nonneg=True), cp.Parameter(nonneg=True)
    Q = cp.Variable((3, 3))
    count = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
    w = cp.Parameter(4, nonneg=True, value=np.full(4, 0.25))
    gain = cp.Maximize(cp.trace(Q))
    known = np.array([0.5, 0.3, 0.2])
    builders = [
        (lambda prior, b: mi_budget(prior, Q, b), p),
        (lambda prior, b: pml(prior, Q, b), p),
        (lambda prior, b: maximal_leakage(known, Q, b), p),
        (lambda prior, b: record_mi_budget(prior, count, Q, 0, b), w),
    ]
    for build, prior in builders:
        problem = cp.Problem(gain, row_stochastic(Q) + build(prior, budget))
        assert problem.is_dpp()
        for b, law in [(0.1, known), (0.3, np.array([0.2, 0.6, 0.2]))]:
            budget.value, p.value = b, law
            again = problem.solve(solver="CLARABEL", enforce_dpp=True)
            fresh = cp.Problem(gain, row_stochastic(Q) + build(prior.value, b))
            assert again == pytest.approx(fresh.solve(solver="CLARABEL"), abs=1e-4)


Q32, P3 = cp.Variable((3, 2)), np.full(3, 1 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mi_budget(P3, Q32, -1.0), "budget: found -1.0"),
        (lambda: mi_budget(P3, Q32, np.inf), "budget: found inf"),
        (lambda: mi_budget(P3, Q32, cp.Variable(2)), "budget: expected a real scalar"),
        (lambda: mi_budget(P3, Q32, cp.exp(cp.Variable())), "budget: .* not concave"),
        (lambda: mi_budget([0.5, 0.5], Q32, 1.0), "prior: found 2 outcomes"),
        (lambda: mi_budget(cp.Variable(3), np.eye(3), 1.0), "prior: found variables"),
        (lambda: pml(P3, Q32, -0.5), "epsilon: found -0.5"),
        (lambda: pml(cp.Variable(3), np.eye(3), 1.0), "prior: found variables"),
        (lambda: pml(P3, Q32, cp.Variable()), "epsilon: found variables"),
        (lambda: maximal_leakage(P3, Q32, -0.5), "budget: found -0.5"),
        (lambda: maximal_leakage(P3, Q32, 1e4), "budget: found 10000.0"),
        (lambda: maximal_leakage(cp.Parameter(3), Q32, 1.0), "prior: found variables or Param"),
        (
            lambda: record_mi_budget(
                P3, AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2), Q32, 0, 1.0
            ),
            "prior: found 3 outcomes; 4 are needed",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
